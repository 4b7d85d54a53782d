"""Max-min fair rates: exact progressive filling, many bottleneck links at a time.

A link whose flows all have their smallest share there is a bottleneck now, whatever the global
order: its flows can be frozen at that share (Bertsekas and Gallager, Data Networks, section 6.5.2;
Ros-Giralt et al., "On the bottleneck structure of congestion-controlled networks", SIGMETRICS
2020). A round looks only at a window of the links with the smallest shares: shares only grow, so no
link outside of it can be lower. Times and events are the business of `fluid`.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fabricsim.arrays import FloatArray, IntArray, sum_at
from fabricsim.solver.problem import Problem, prepare

POOL = 1024
"""Links, at least, that are kept in order between two looks at all of them."""

WINDOW = 4096
"""Route entries that the first round looks at; the rounds then adapt."""

SMALLEST, LARGEST = 512, 1 << 15
"""Between these a round's route entries adapt: small ones cost calls, large ones miss the cache."""

FEWEST = 8
"""Links that a round looks at whatever their entries."""

PIECE = 1 << 15
"""Route entries that are frozen at a time, which bounds the memory of a round."""

EPS = float(np.finfo(np.float64).eps)

LOST = 2.0**-40
"""Part of a load below which it is summed anew, lest rounding be large beside it."""

PRECISION = 1e-11
"""Relative error of a share beyond which its sums are made anew."""

ROUNDING = 32 * EPS
"""Part of a link's capacity that the rounding of its own sums may leave free.

What a link has left and the load on it are known to a few units in the last place (`_Totals`), but
each level that was taken off it is itself a quotient of two such sums, wrong by up to about 4 EPS
of its value, and was multiplied by a weight and a fraction: what is left is wrong by up to some
10 EPS of the capacity, and likewise on the link that it is compared with.
"""


def max_min_rates(
    routes: sparse.sparray | sparse.spmatrix,
    capacity: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    demand: ArrayLike | None = None,
) -> FloatArray:
    """Share links max-min fairly among flows.

    Parameters
    ----------
    routes : (flows, links) sparse array
        Fraction of the flow's rate that the link carries: 1 on a path, 1/2 on each of two, 2 where
        a path crosses the link twice.
    capacity : (links,) floats
        B/s; flows on a link of capacity 0 get rate 0.
    weight : (flows,) floats, optional
        Shares are in proportion to weights; 1 if left out.
    demand : (flows,) floats, optional
        Most that a flow takes, in B/s; without limit if left out.

    Returns
    -------
    (flows,) floats
        Rates in B/s: none can grow without lowering one that is smaller or equal (over weights).

    Raises
    ------
    ValueError
        An argument is not as it should be, or a flow has neither link nor demand.

    Examples
    --------
    Two flows share a first link, one of them goes on over a narrow second:

    >>> routes = sparse.csr_array([[1.0, 0.0], [1.0, 1.0]])
    >>> max_min_rates(routes, [10.0, 2.0])
    array([8., 2.])
    """
    return solve(prepare(routes, capacity, weight, demand))


def solve(problem: Problem) -> FloatArray:
    """Share links max-min fairly; `max_min_rates` on what is prepared."""
    level, held = bottlenecks(problem)
    # A level is a quotient: a flow that has its demand has it to the last bit.
    full = held >= len(problem.capacity)
    return np.where(full, problem.demand, np.minimum(level * problem.weight, problem.demand))


def bottlenecks(problem: Problem) -> tuple[FloatArray, IntArray]:
    """Find the level of each flow (rate over weight), and the link that holds it there.

    A flow held by its demand gets a link past the last.
    """
    bare = (np.diff(problem.routes.indptr) == 0) & np.isinf(problem.demand)
    if bare.any():
        raise ValueError(f"flow {int(np.argmax(bare))} crosses no link and has no demand: no rate")
    filling = Filling(*_with_demands(problem))
    filling.run()
    return filling.level, filling.held


def _with_demands(p: Problem) -> tuple[sparse.csr_array, sparse.csr_array, FloatArray, FloatArray]:
    """Make each finite demand a link of its own, which that flow alone crosses."""
    limited = np.flatnonzero(np.isfinite(p.demand))
    if not len(limited):
        return p.routes, p.by_link, p.capacity, p.weight
    flows = p.routes.shape[0]
    ones = np.ones(len(limited))
    own = sparse.csr_array(
        (ones, limited, np.arange(len(limited) + 1)), shape=(len(limited), flows)
    )
    by_link = sparse.vstack([p.by_link, own], format="csr")
    by_flow = sparse.hstack([p.routes, own.T], format="csr")
    return by_flow, by_link, np.concatenate([p.capacity, p.demand[limited]]), p.weight


class _Totals:
    """A total for each link, from which much may be taken without losing digits.

    Each amount is split in two, of which the larger is a multiple of a unit so coarse that all
    sums and differences of such are exact; the smaller are summed apart (Rump, Ogita and Oishi,
    "Accurate floating-point summation part I", SIAM J. Sci. Comput. 31(1), 2008, section 3).
    """

    def __init__(self, total: FloatArray, most: FloatArray) -> None:
        self._high, self._low = total.copy(), np.zeros(len(total))
        self._unit = _unit(most)

    def take(self, link: IntArray, amount: FloatArray) -> None:
        """Take amounts off; a link may occur many times."""
        unit = self._unit.take(link)
        coarse = (unit + amount) - unit
        np.subtract.at(self._high, link, coarse)
        np.subtract.at(self._low, link, amount - coarse)

    def reset(self, link: IntArray, total: FloatArray) -> None:
        """Give links a new total, known better than the old."""
        self._high[link], self._low[link], self._unit[link] = total, 0.0, _unit(total)

    def left(self, link: IntArray) -> FloatArray:
        """Tell what is left; never less than 0."""
        return np.maximum(self._high.take(link) + self._low.take(link), 0.0)


def _unit(most: FloatArray) -> FloatArray:
    return np.ldexp(4.0, np.minimum(np.frexp(most)[1], 1020))


class Filling:
    """The state of progressive filling: who is still rising, and what the links have left.

    Attributes
    ----------
    level : (flows,) floats
        Rate over weight at which a flow was frozen.
    held : (flows,) ints
        The bottleneck that froze it.
    rounds : int
    """

    def __init__(
        self,
        routes: sparse.csr_array,
        by_link: sparse.csr_array,
        capacity: FloatArray,
        weight: FloatArray,
    ) -> None:
        flows, links = routes.shape
        self._routes, self._by_link = routes, by_link
        self._capacity, self._weight = capacity, weight
        self.level, self.held = np.zeros(flows), np.zeros(flows, np.int32)
        self.rounds = 0
        self._rising = np.ones(flows, bool)
        self._first = np.empty(flows, np.int32)
        self._share = np.zeros(links)
        self._window = WINDOW
        self._count = np.diff(by_link.indptr).astype(np.intp)
        self._left = _Totals(capacity, capacity)
        # Where each flow counts once, a link's load is its count of flows; else it is a sum.
        self._use: FloatArray | None = None
        if not ((routes.data == 1.0).all() and (weight == 1.0).all()):
            self._use = routes.data * np.repeat(weight, np.diff(routes.indptr))
            about = by_link @ weight
            self._load = _Totals(np.zeros(links), about)
            for piece in _pieces(np.diff(routes.indptr)):
                entries = slice(routes.indptr[piece.start], routes.indptr[piece.stop])
                self._load.take(routes.indices[entries].astype(np.intp), -self._use[entries])
            self._least_load = about * LOST

    def run(self) -> None:
        """Freeze flows round by round until none is left."""
        while len(live := np.flatnonzero(self._count)):
            share, size, top = self._renew(live), max(POOL, len(live) // 64), np.inf
            if len(live) > size:
                top = np.partition(share, size)[size]
            # Shares only grow, so that the smallest stay in the pool until it is used up.
            pool, share = live[share <= top], share[share <= top]
            while len(pool):
                order = np.argsort(share, kind="stable")
                self._round(pool[order], share[order])
                pool = pool[self._count[pool] > 0]
                share = self._renew(pool)
                pool, share = pool[share <= top], share[share <= top]

    def _renew(self, links: IntArray) -> FloatArray:
        """Compute shares. A share never falls: where it seems to, that is rounding."""
        if self._use is None:
            load: FloatArray | IntArray = self._count[links]
        else:
            load = self._load.left(links)
            eaten = load < self._least_load[links]
            if eaten.any():
                self._sum_again(links[eaten])
                load = self._load.left(links)
        share = np.maximum(self._left.left(links) / load, self._share[links])
        self._share[links] = share
        return share

    def _round(self, pool: IntArray, share: FloatArray) -> None:
        """Freeze the flows of those links in the window on which no flow has a smaller share.

        A flow's smallest share is that of the first link of the window that it crosses. A link is
        a bottleneck when that costs it no more of its capacity than rounding may leave free.
        """
        self.rounds += 1
        entries = np.cumsum(self._count[pool])
        fits = int(np.searchsorted(entries, self._window, side="right"))
        few = min(FEWEST, 1 + int(np.searchsorted(entries, LARGEST, side="right")))
        window = pool[: max(fits, few)]
        share = share[: len(window)]
        flow, place = self._crossing(window)
        self._first[flow[::-1]] = place[::-1]
        first = self._first.take(flow)
        load = self._count[window] if self._use is None else self._load.left(window)
        lowest = np.searchsorted(share, share - ROUNDING * self._capacity[window] / load)
        blocked = np.zeros(len(window), bool)
        blocked[place.compress(first < lowest.take(place))] = True
        free = np.flatnonzero(~blocked.take(place))
        self._adapt(len(free) / len(place))
        flow, place, first = flow.take(free), place.take(free), first.take(free)
        if (lowest < np.arange(len(window))).any():
            # Near ties: a flow may cross several bottlenecks.
            index = np.arange(len(flow), dtype=np.int32)
            self._first[flow] = index
            once = np.flatnonzero(self._first.take(flow) == index)
            flow, place, first = flow.take(once), place.take(once), first.take(once)
        self.held[flow] = window.take(place)
        self._freeze(flow, share.take(first))

    def _adapt(self, frozen: float) -> None:
        """Look at less next time where much was looked at in vain, and at more where little was."""
        if frozen < 0.5:
            self._window = max(self._window // 2, SMALLEST)
        elif frozen > 0.75:
            self._window = min(self._window * 2, LARGEST)

    def _crossing(self, window: IntArray) -> tuple[IntArray, IntArray]:
        """List the rising flows on each link of a window, and the link's place in the window."""
        start = self._by_link.indptr[window]
        length = self._by_link.indptr[window + 1] - start
        flow = self._by_link.indices.take(ranges(start, length)).astype(np.intp)
        place = np.repeat(np.arange(len(window)), length)
        rising = np.flatnonzero(self._rising.take(flow))
        return flow.take(rising), place.take(rising)

    def _freeze(self, flow: IntArray, level: FloatArray) -> None:
        """Fix the level of flows, and take what they use from their links."""
        self.level[flow] = level
        self._rising[flow] = False
        start = self._routes.indptr.take(flow)
        length = self._routes.indptr.take(flow + 1) - start
        for piece in _pieces(length):
            entry = ranges(start[piece], length[piece])
            link = self._routes.indices.take(entry).astype(np.intp)
            used = np.repeat(level[piece], length[piece])
            np.subtract.at(self._count, link, 1)
            if self._use is not None:
                use = self._use.take(entry)
                self._load.take(link, use)
                used *= use
            self._left.take(link, used)

    def _sum_again(self, links: IntArray) -> None:
        """Add up anew the load on links of which little is left of what there was."""
        flow, place = self._crossing(links)
        start = self._by_link.indptr[links]
        entry = ranges(start, self._by_link.indptr[links + 1] - start)
        rising = self._rising.take(self._by_link.indices.take(entry))
        use = self._by_link.data.take(entry.compress(rising)) * self._weight.take(flow)
        load = sum_at(place, use, len(links))
        self._load.reset(links, load)
        self._least_load[links] = load * LOST


def ranges(start: IntArray, length: IntArray) -> IntArray:
    """Concatenate the ranges start, start + 1, ..., start + length - 1."""
    end = np.cumsum(length)
    total = int(end[-1]) if len(end) else 0
    return np.repeat(start - (end - length), length) + np.arange(total)


def _pieces(length: IntArray) -> list[slice]:
    """Cut items into pieces of about `PIECE` entries, given the entries of each."""
    end = np.cumsum(length)
    total = int(end[-1]) if len(end) else 0
    cuts = np.searchsorted(end, np.arange(PIECE, total, PIECE))
    bounds = np.unique(np.concatenate([[0], cuts, [len(length)]]))
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
