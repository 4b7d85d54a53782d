"""Finishing times of transfers that share links max-min fairly.

As some finish, or start, the rates of the rest change; this module goes from one such event to the
next. Rates are found from scratch by `max_min`, or followed from event to event by `held`. When
transfers start is listed beforehand here; in `dag` it depends on others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.solver.certificate import violation
from fabricsim.solver.max_min import bottlenecks
from fabricsim.solver.problem import Problem, crossed, only, prepare, vector

ROUNDING = 1e-12
"""Part of a transfer that may be left over when it is done: what rounding makes of ties."""

SYSTEM_B = 1 << 25
"""Bytes that a dense system of link levels may always take; more, if the routes take more."""

FEW = 20
"""Transfers that go on for each that finishes, from which it pays to follow who is held where."""

MANY = 64
"""Arrivals at once from which solving from scratch is quicker than letting them in one by one."""


def fluid_times(
    routes: sparse.sparray | sparse.spmatrix,
    capacity: ArrayLike,
    size: ArrayLike,
    *,
    start: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> FloatArray:
    """Find when each transfer finishes.

    Parameters
    ----------
    routes, capacity, weight
        As in `max_min_rates`.
    size : (flows,) floats
        Bytes.
    start : (flows,) floats, optional
        Seconds; 0 if left out.

    Returns
    -------
    (flows,) floats
        Seconds. A transfer of no bytes, or over no link, finishes as it starts.

    Raises
    ------
    ValueError
        An argument is not as it should be, or a transfer can never finish, since it crosses a
        link of capacity 0.

    Examples
    --------
    Two transfers share a link of 10 B/s; the larger has it for itself at last:

    >>> fluid_times(sparse.csr_array([[1.0], [1.0]]), [10.0], [10.0, 30.0])
    array([2., 4.])
    """
    return _finish(prepare(routes, capacity, weight), size, start, None)


def certified_times(
    routes: sparse.sparray | sparse.spmatrix,
    capacity: ArrayLike,
    size: ArrayLike,
    *,
    start: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> tuple[FloatArray, float]:
    """Find when each transfer finishes, and check the rates between any two events.

    Parameters and errors as `fluid_times`.

    Returns
    -------
    finish : (flows,) floats
        Seconds.
    violation : float
        The largest of `max_min_violation` over all events.
    """
    seen = [0.0]

    def watch(problem: Problem, rate: FloatArray, there: BoolArray) -> None:
        part = only(problem, np.flatnonzero(there))
        seen.append(violation(part, rate[there]))

    return _finish(prepare(routes, capacity, weight), size, start, watch), max(seen)


Watch = Callable[[Problem, FloatArray, BoolArray], None]
"""Told of each event: the rates from there on, and which transfers are there."""


class Arrivals(Protocol):
    """Says which transfers start when, and hears when some are done."""

    def due(self, now: float) -> IntArray:
        """Give the transfers that start by now and have not been given before."""

    def next(self) -> float:
        """Tell when the next ones start, as far as is known."""

    def done(self, flows: IntArray, now: float) -> None:
        """Hear that transfers are done."""


class _Listed:
    """Transfers that start at times known beforehand."""

    def __init__(self, begin: FloatArray) -> None:
        self.flows = np.argsort(begin, kind="stable")
        self.begin = begin[self.flows]
        self.given = 0

    def due(self, now: float) -> IntArray:
        first = self.given
        self.given += int(np.searchsorted(self.begin[first:], now, side="right"))
        return self.flows[first : self.given]

    def next(self) -> float:
        return float(self.begin[self.given]) if self.given < len(self.begin) else np.inf

    def done(self, flows: IntArray, now: float) -> None:
        pass


def _finish(
    problem: Problem, size: ArrayLike, start: ArrayLike | None, watch: Watch | None
) -> FloatArray:
    flows = len(problem.weight)
    sizes = vector("size", size, flows, "at least 0 and finite", low=0.0)
    begin = np.zeros(flows)
    if start is not None:
        begin = vector("start", start, flows, "at least 0 and finite", low=0.0)
    refuse_endless(problem, sizes)
    finish = begin.copy()
    moving = np.flatnonzero((sizes > 0) & (np.diff(problem.routes.indptr) > 0))
    if len(moving):
        part = crossed(only(problem, moving))
        finish[moving] = follow(part, sizes[moving], _Listed(begin[moving]), watch)
    return finish


def follow(
    problem: Problem, size: FloatArray, arrivals: Arrivals, watch: Watch | None
) -> FloatArray:
    """Go from event to event until all transfers are done; all have bytes and cross links.

    Returns
    -------
    (flows,) floats
        When each is done, in seconds.
    """
    finish = np.zeros(len(size))
    index = place = np.arange(len(size))
    left, enough = size.copy(), ROUNDING * size
    there = np.zeros(len(size), bool)
    remaining, now = len(size), 0.0
    held = None
    while remaining:
        new = place[arrivals.due(now)]
        there[new] = True
        next_arrival = arrivals.next()
        if not there.any():
            now = next_arrival
            continue
        if held is not None and len(new) <= MANY:
            held.add(new)
            held = held if held.settle() else None
        else:
            held = None
        if held is None:
            rate, link = _from_scratch(problem, there)
        else:
            rate = held.level.take(held.held) * problem.weight
        if watch is not None:
            watch(problem, rate, there)
        with np.errstate(divide="ignore"):
            step = float((left / rate).min())
        if not np.isfinite(step):
            raise ValueError("a transfer never finishes: its rate is too small for a float")
        arrives_first = next_arrival - now <= step
        step, now = (next_arrival - now, next_arrival) if arrives_first else (step, now + step)
        left -= rate * step
        done = np.flatnonzero(left <= enough)
        finish[index[done]] = now
        left[done] = np.inf
        there[done] = False
        remaining -= len(done)
        arrivals.done(index[done], now)
        if held is not None:
            held.remove(done)
        elif FEW * len(done) < remaining and _fits(problem):
            from fabricsim.solver.held import Held, by_level

            link[~there] = len(problem.capacity)
            held = Held(problem, link, by_level(rate / problem.weight, link, len(problem.capacity)))
        if 4 * remaining < 3 * len(left):
            keep = np.isfinite(left)
            problem, held = only(problem, np.flatnonzero(keep)), held and held.only(keep)
            index, left, enough, there = index[keep], left[keep], enough[keep], there[keep]
            place = np.zeros_like(place)
            place[index] = np.arange(len(index))
    return finish


def _from_scratch(problem: Problem, there: BoolArray) -> tuple[FloatArray, IntArray]:
    """Find rates, and the link that holds each flow; 0 for flows that are not there."""
    rate = np.zeros(len(there))
    link = np.zeros(len(there), np.int64)
    here = np.flatnonzero(there)
    level, link[here] = bottlenecks(only(problem, here))
    rate[here] = level * problem.weight[here]
    return rate, link


def _fits(problem: Problem) -> bool:
    """Whether a dense system of the links' levels is small enough."""
    return 8 * len(problem.capacity) ** 2 <= max(SYSTEM_B, 16 * problem.routes.nnz)


def refuse_endless(problem: Problem, size: FloatArray) -> None:
    """Raise ValueError for a transfer that crosses a link of capacity 0."""
    dead = problem.capacity == 0
    if not dead.any():
        return
    stuck = (problem.routes @ dead.astype(np.float64) > 0) & (size > 0)
    if stuck.any():
        flow = int(np.argmax(stuck))
        path = problem.routes.indices[problem.routes.indptr[flow] : problem.routes.indptr[flow + 1]]
        raise ValueError(
            f"transfer {flow} never finishes: it crosses link {path[dead[path]][0]} of capacity 0"
        )
