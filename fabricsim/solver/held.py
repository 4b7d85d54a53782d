"""Which link holds each flow, kept true from event to event.

Max-min fair rates are known once it is known which bottleneck link holds each flow: the levels of
the bottleneck links then solve a linear system, in which a row is a link's capacity and an entry is
what the flows held at one link use of another. In order of level the system is triangular, since
a flow is held at the lowest link of its path. From one event to the next few flows change their
link, so that a step or two from the last assignment find the next: solve for the levels; sort the
links; let each flow be held at the first link of its path; let a link that is overloaded without
holding flows take those of highest level; repeat until nothing moves. This is policy iteration;
what it settles on satisfies the certificate of max-min fairness.

Events themselves, and the way to the first assignment, are the business of `fluid`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsv

from fabricsim.arrays import BoolArray, FloatArray, IntArray, sum_at
from fabricsim.solver.max_min import PRECISION, ROUNDING, ranges
from fabricsim.solver.problem import Problem, only

MOST_STEPS = 50
"""Steps after which the caller should rather solve from scratch."""


def by_level(level: FloatArray, held: IntArray, links: int) -> IntArray:
    """Order the links by the level of the flows that they hold; last those that hold none."""
    of_link = np.full(links + 1, np.inf)
    of_link[held] = level
    return np.argsort(of_link[:links], kind="stable")


class Held:
    """Flows, the link that holds each, and the triangular system of levels.

    Attributes
    ----------
    held : (flows,) ints
        The link that holds each flow; `links` (one past the last) for flows that are not there.
    level : (links + 1,) floats
        Rate over weight of the flows that a link holds; 0 in the last place.
    """

    def __init__(self, problem: Problem, held: IntArray, order: IntArray) -> None:
        """Start from an assignment, and an order of the links in which levels rise."""
        self.problem = problem
        self.routes, self.by_link = problem.routes, problem.by_link
        self.capacity, self.weight = problem.capacity, problem.weight
        links = len(self.capacity)
        self.held = held.copy()
        self._target = np.empty_like(self.held)
        self.holds = np.bincount(held, minlength=links + 1)[:links]
        self.binding: BoolArray = self.holds > 0
        self.level = np.zeros(links + 1)
        self.order = order
        self.place = np.empty(links + 1, np.int32)
        self._place_links()
        self._build()
        # Links of equal level may stand in an order that differs from the given assignment's.
        self._hold_at(np.flatnonzero(self.binding))

    def only(self, keep: BoolArray) -> Held:
        """Leave only some flows, of which none is there that is left out."""
        return Held(only(self.problem, np.flatnonzero(keep)), self.held[keep], self.order)

    def settle(self) -> bool:
        """Step until the assignment is right for the flows that are there.

        Returns
        -------
        bool
            False where it did not settle: then solve from scratch.
        """
        moves = 0
        for _ in range(MOST_STEPS):
            capacity = self.capacity[self.order]
            solution = dtrsv(self.matrix, capacity, lower=1)
            bound = self.binding[self.order]
            slip = ROUNDING * capacity / self.matrix.diagonal()
            self.level[self.order] = np.where(bound, solution, 0.0)
            least = np.where(bound, solution - slip, -np.inf)
            lower = bound & (solution + slip < np.maximum.accumulate(least))
            over = ~bound & (solution < -ROUNDING * capacity)
            if not (lower.any() or over.any()):
                return True
            # Links that are in order up to rounding keep their order.
            envelope = np.maximum.accumulate(np.where(bound & ~lower, solution, -np.inf))
            level = np.where(bound, np.where(lower, solution, envelope), np.inf)
            for place in np.flatnonzero(over):
                level[place] = self._join(self.order[place])
            ahead = self.order[lower | over]
            self._reorder(self.order[np.argsort(level, kind="stable")])
            moved = self._hold_at(ahead)
            moves += moved
            if moves > len(self.held):
                return False
            if not moved:
                # What seemed out of order or overloaded was rounding, unless it is large.
                return bool((solution >= -PRECISION * self.capacity[self.order])[~bound].all())
        return False

    def remove(self, flows: IntArray) -> None:
        """Take flows away that have finished."""
        self._account(flows, self.held[flows], -1.0)
        self.held[flows] = len(self.capacity)

    def add(self, flows: IntArray) -> None:
        """Let flows in that have arrived: each at the first link of its path that binds."""
        if len(flows):
            self._binding_first()
        for flow in flows:
            start, end = self.routes.indptr[flow], self.routes.indptr[flow + 1]
            path = self.routes.indices[start:end]
            first = path[np.argmin(np.where(self.binding[path], self.place[path], np.inf))]
            if not self.binding[first]:
                # Nothing on its path is full: it is held where least is left for it.
                use = self.routes.data[start:end] * self.weight[flow]
                free = self.capacity[path] - self._load(path)
                first = path[np.argmin(free / use)]
                self._bind(first)
                self._binding_first()
            self._account(np.array([flow]), np.array([first]), 1.0)
            self.held[flow] = first

    def _binding_first(self) -> None:
        """Put links that do not bind last: only there does a row see all that its link carries."""
        self._reorder(self.order[np.argsort(~self.binding[self.order], kind="stable")])

    def _load(self, links: IntArray) -> FloatArray:
        column = self.level[self.order] * self.binding[self.order]
        return np.asarray(self.matrix[self.place[links]] @ column)

    def _bind(self, link: int) -> None:
        self.binding[link] = True
        self.matrix[self.place[link], self.place[link]] = 0.0

    def _join(self, link: int) -> float:
        """Let an overloaded link bind; return the level down to which it must bring its flows."""
        start, end = self.by_link.indptr[link], self.by_link.indptr[link + 1]
        flow = self.by_link.indices[start:end]
        here = self.held[flow] < len(self.capacity)
        level = self.level[self.held[flow[here]]]
        use = (self.by_link.data[start:end] * self.weight[flow])[here]
        high = np.argsort(-level, kind="stable")
        level, use = level[high], use[high]
        kept = np.cumsum((level * use)[::-1])[::-1]
        down_to = (self.capacity[link] - np.append(kept[1:], 0.0)) / np.cumsum(use)
        enough = down_to >= np.append(level[1:], -np.inf)
        self._bind(link)
        return float(down_to[np.argmax(enough)])

    def _hold_at(self, links: IntArray) -> int:
        """Let links that have moved ahead hold the flows that now meet them first on their path.

        Only these links can have become the first of a path; a flow that crosses several of them
        is written last for the first. Returns how many flows moved.
        """
        links = links[np.argsort(-self.place[links])]
        start = self.by_link.indptr[links]
        length = self.by_link.indptr[links + 1] - start
        flow = self.by_link.indices[ranges(start, length)]
        target = np.repeat(links, length)
        before = self.place[self.held[flow]] > self.place[target]
        flow, target = flow[before], target[before]
        self._target[flow] = target
        last = self._target[flow] == target
        flow, target = flow[last], target[last]
        self._account(flow, self.held[flow], -1.0, target)
        self.held[flow] = target
        self._release(np.flatnonzero(self.binding & (self.holds == 0)))
        return len(flow)

    def _account(
        self, flows: IntArray, at: IntArray, sign: float, then: IntArray | None = None
    ) -> None:
        """Add what flows use to the columns of the links that hold them, or take it off.

        With `then` the flows move on: taken off at one link, added at the other.
        """
        start = self.routes.indptr[flows]
        length = self.routes.indptr[flows + 1] - start
        entry = ranges(start, length)
        row = self.place[self.routes.indices[entry]]
        use = self.routes.data[entry] * np.repeat(self.weight[flows], length)
        np.add.at(self.matrix, (row, np.repeat(self.place[at], length)), sign * use)
        np.add.at(self.holds, at, int(sign))
        if then is not None:
            np.add.at(self.matrix, (row, np.repeat(self.place[then], length)), use)
            np.add.at(self.holds, then, 1)
        if sign < 0:
            self._release(at[self.holds[at] == 0])

    def _release(self, links: IntArray) -> None:
        """Let links that hold nothing bind no more: their row then tells what they have left."""
        place = self.place[links]
        self.binding[links] = False
        self.matrix[:, place] = 0.0
        self.matrix[place, place] = 1.0

    def _reorder(self, order: IntArray) -> None:
        """Lay the system out anew for an order of links; only what changes place is moved."""
        changed = np.flatnonzero(order != self.order)
        if not len(changed):
            return
        before = self.place[order[changed]]
        self.matrix[changed] = self.matrix[before]
        self.matrix[:, changed] = self.matrix[:, before]
        self.order = order
        self._place_links()

    def _place_links(self) -> None:
        self.place[self.order] = np.arange(len(self.order))
        self.place[-1] = -1

    def _build(self) -> None:
        links = len(self.capacity)
        there = np.flatnonzero(self.held < links)
        start = self.routes.indptr[there]
        length = self.routes.indptr[there + 1] - start
        entry = ranges(start, length)
        use = self.routes.data[entry] * np.repeat(self.weight[there], length)
        row = self.place[self.routes.indices[entry]]
        column = np.repeat(self.place[self.held[there]], length)
        flat = sum_at(column * links + row, use, links * links)
        self.matrix = flat.reshape((links, links), order="F")
        idle = self.place[:-1][~self.binding]
        self.matrix[idle, idle] = 1.0
