"""Max-min fair rates: exact progressive filling, many bottleneck links at a time.

A link whose flows all have their smallest share there is a bottleneck now, whatever the global
order: its flows can be frozen at that share (Bertsekas and Gallager, Data Networks, section 6.5.2;
Ros-Giralt et al., "On the bottleneck structure of congestion-controlled networks", SIGMETRICS
2020). Only the links with the smallest shares are looked at in a round, since a flow's smallest
share can only be on one of them. Times and events are the business of `fluid`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fabricsim.arrays import FloatArray, IntArray, sum_at
from fabricsim.solver.problem import Problem, prepare

POOL = 1024
"""Links that are kept in order between two looks at all of them."""

WINDOW = 8192
"""Route entries that a round looks at: about what fits in a second-level cache."""

EPS = float(np.finfo(np.float64).eps)

PRECISION = 1e-11
"""Relative error of a share beyond which its sums are made anew."""

ROUNDING = 32 * EPS
"""Part of a link's capacity that the rounding of its own sums may leave free."""


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
    level, link = bottlenecks(problem)
    by_demand = link >= len(problem.capacity)
    return np.where(by_demand, problem.demand, level * problem.weight)


def bottlenecks(problem: Problem) -> tuple[FloatArray, IntArray]:
    """Find the level of each flow (rate over weight), and the link that holds it there.

    A flow held by its demand gets a link past the last.
    """
    bare = (np.diff(problem.routes.indptr) == 0) & np.isinf(problem.demand)
    if bare.any():
        raise ValueError(f"flow {int(np.argmax(bare))} crosses no link and has no demand: no rate")
    filling = _Filling(*_with_demands(problem))
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


@dataclass(eq=False)
class _Filling:
    """The state of progressive filling: who is still rising, and what the links have left."""

    routes: sparse.csr_array
    by_link: sparse.csr_array
    capacity: FloatArray
    weight: FloatArray

    def __post_init__(self) -> None:
        flows, links = self.routes.shape
        self.level = np.zeros(flows)
        self.held = np.zeros(flows, np.int64)
        self.rising = np.ones(flows, bool)
        self.count = np.diff(self.by_link.indptr).astype(np.int64)
        self.load = self.by_link @ self.weight
        self.left = self.capacity.copy()
        # Below these, subtraction may have eaten too many digits, and sums are made anew.
        self._trust = np.minimum(0.5, self.count * EPS / PRECISION)
        self._least_load, self._least_left = self._trust * self.load, self._trust * self.left
        self.share = np.full(links, np.inf)
        self._first = np.empty(flows, np.int32)
        self._refresh(np.flatnonzero(self.count > 0), np.zeros(links))

    def run(self) -> None:
        """Freeze flows round by round until none is left."""
        while len(pool := np.flatnonzero(self.count > 0)):
            top = np.inf
            if len(pool) > POOL:
                top = np.partition(self.share[pool], POOL)[POOL]
            # Shares only grow, so that the smallest stay in the pool until it is used up.
            while len(pool := pool[(self.share[pool] <= top) & (self.count[pool] > 0)]):
                self._freeze(*self._bottlenecked(self._window(pool)))

    def _window(self, pool: IntArray) -> IntArray:
        """Take the links of smallest share, as many as have WINDOW entries, and their ties."""
        pool = pool[np.argsort(self.share[pool], kind="stable")]
        entries = np.cumsum(self.count[pool])
        take = max(8, int(np.searchsorted(entries, WINDOW)) + 1)
        if take >= len(pool):
            return pool
        last = pool[take - 1]
        tie = self.share[last] + ROUNDING * self.capacity[last] / self.load[last]
        return pool[: np.searchsorted(self.share[pool], tie, side="right")]

    def _bottlenecked(self, window: IntArray) -> tuple[IntArray, FloatArray]:
        """Find the flows of those links in the window on which no flow has a smaller share.

        A flow's smallest share is that of the first link of the window that it crosses. A link is
        a bottleneck when that costs it no more of its capacity than rounding may leave free.
        """
        start, end = self.by_link.indptr[window], self.by_link.indptr[window + 1]
        flow = self.by_link.indices[ranges(start, end - start)]
        place = np.repeat(np.arange(len(window), dtype=np.int32), end - start)
        rising = np.flatnonzero(self.rising[flow])
        flow, place = flow[rising], place[rising]
        self._first[flow[::-1]] = place[::-1]
        share = self.share[window]
        least = share - ROUNDING * self.capacity[window] / self.load[window]
        lower = share[self._first[flow]] < least[place]
        blocked = np.zeros(len(window), bool)
        blocked[place[lower]] = True
        free = ~blocked[place]
        flow, place = flow[free], place[free]
        level = share[self._first[flow]]
        index = np.arange(len(flow), dtype=np.int32)
        self._first[flow] = index
        once = self._first[flow] == index
        self.held[flow] = window[place]
        return flow[once], level[once]

    def _freeze(self, flow: IntArray, level: FloatArray) -> None:
        """Fix the level of flows, and take what they use from their links."""
        self.level[flow] = level
        self.rising[flow] = False
        start, end = self.routes.indptr[flow], self.routes.indptr[flow + 1]
        entry = ranges(start, end - start)
        link = self.routes.indices[entry]
        load = self.routes.data[entry] * np.repeat(self.weight[flow], end - start)
        links = len(self.capacity)
        gone = np.bincount(link, minlength=links)
        self.count -= gone
        self.load -= sum_at(link, load, links)
        self.left -= sum_at(link, load * np.repeat(level, end - start), links)
        touched = np.flatnonzero((gone > 0) & (self.count > 0))
        eaten = self.load[touched] < self._least_load[touched]
        eaten |= self.left[touched] < self._least_left[touched]
        self._sum_again(touched[eaten])
        self._refresh(touched, self.share)

    def _sum_again(self, links: IntArray) -> None:
        """Add up anew what the flows of links use, and what is left.

        What is used is summed in two parts, of which the larger are multiples of a unit so coarse
        that their sum is exact (Rump, Ogita and Oishi, "Accurate floating-point summation part I",
        SIAM J. Sci. Comput. 31(1), 2008, section 3).
        """
        if not len(links):
            return
        start, end = self.by_link.indptr[links], self.by_link.indptr[links + 1]
        entry = ranges(start, end - start)
        flow = self.by_link.indices[entry]
        place = np.repeat(np.arange(len(links)), end - start)
        load = self.by_link.data[entry] * self.weight[flow]
        self.load[links] = sum_at(place, load * self.rising[flow], len(links))
        capacity = self.capacity[links]
        unit = np.ldexp(4.0, np.frexp(capacity)[1])[place]
        used = load * self.level[flow]
        coarse = (unit + used) - unit
        left = capacity - sum_at(place, coarse, len(links))
        self.left[links] = left - sum_at(place, used - coarse, len(links))
        trust = self._trust[links]
        self._least_load[links] = np.minimum(self.load[links] / 2, trust * self.load[links])
        self._least_left[links] = np.minimum(self.left[links] / 2, trust * capacity)

    def _refresh(self, links: IntArray, before: FloatArray) -> None:
        """Compute shares. A share never falls: where it seems to, that is rounding."""
        share = np.maximum(self.left[links], 0.0) / self.load[links]
        self.share[links] = np.maximum(share, before[links])


def ranges(start: IntArray, length: IntArray) -> IntArray:
    """Concatenate the ranges start, start + 1, ..., start + length - 1."""
    end = np.cumsum(length)
    total = int(end[-1]) if len(end) else 0
    return np.repeat(start - (end - length), length) + np.arange(total, dtype=start.dtype)
