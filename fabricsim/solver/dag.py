"""Times of transfers that wait for others: a directed acyclic graph of transfers and delays.

A transfer is let in as the last of those that it waits for has arrived, and its delay is over;
from then on it shares links as all do, see `fluid`. Steps, one after the other, are the special
case where everything waits for all of the step before.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.graph import waiting_in_circles
from fabricsim.solver.certificate import violation
from fabricsim.solver.fluid import follow, refuse_endless
from fabricsim.solver.problem import Problem, crossed, only, prepare, vector


@dataclass(frozen=True, eq=False)
class Times:
    """When transfers start and finish.

    Attributes
    ----------
    start, finish : (transfers,) floats
        Seconds; a transfer arrives at `finish` plus its latency.
    violation : float
        The largest of `max_min_violation` over all events; 0 if not asked for.
    """

    start: FloatArray
    finish: FloatArray
    violation: float


def dag_times(
    routes: sparse.sparray | sparse.spmatrix,
    capacity: ArrayLike,
    size: ArrayLike,
    before: IntArray,
    after: IntArray,
    *,
    start: ArrayLike | None = None,
    delay: ArrayLike | None = None,
    latency: ArrayLike | None = None,
    certify: bool = False,
) -> Times:
    """Find when each transfer starts and finishes.

    Parameters
    ----------
    routes, capacity, size, start
        As in `fluid_times`; `start` is the earliest that a transfer starts.
    before, after : (pairs,) ints
        Transfer `after[i]` waits until transfer `before[i]` has arrived.
    delay : (transfers,) floats, optional
        Seconds between the moment when nothing holds a transfer back and its start.
    latency : (transfers,) floats, optional
        Seconds between the finish of a transfer and its arrival.
    certify : bool
        Whether to check the rates at every event.

    Raises
    ------
    ValueError
        As `fluid_times`; and where transfers wait for each other in a circle.

    Examples
    --------
    Two transfers of 10 B over a link of 10 B/s, the second 1 s after the first has arrived:

    >>> times = dag_times(sparse.csr_array([[1.0], [1.0]]), [10.0], [10.0, 10.0],
    ...                   np.array([0]), np.array([1]), delay=[0.0, 1.0], latency=[0.5, 0.5])
    >>> times.start, times.finish
    (array([0. , 2.5]), array([1. , 3.5]))
    """
    problem = prepare(routes, capacity)
    count = len(problem.weight)
    need = "at least 0 and finite"
    sizes = vector("size", size, count, need, low=0.0)
    starts, delays, latencies = (
        np.zeros(count) if given is None else vector(name, given, count, need, low=0.0)
        for name, given in (("start", start), ("delay", delay), ("latency", latency))
    )
    for name, index in (("before", before), ("after", after)):
        if len(index) and not 0 <= index.min() <= index.max() < count:
            raise ValueError(f"{name} must lie between 0 and {count - 1}")
    circle = waiting_in_circles(count, before, after)
    if len(circle):
        raise ValueError(f"transfer {circle[0]} waits for itself, by way of others or not")
    refuse_endless(problem, sizes)
    moving = np.flatnonzero((sizes > 0) & (np.diff(problem.routes.indptr) > 0))
    waiting = _Waiting(moving, before, after, starts, delays, latencies)
    seen = [0.0]

    def watch(part: Problem, rate: FloatArray, there: BoolArray) -> None:
        seen.append(violation(only(part, np.flatnonzero(there)), rate[there]))

    part = crossed(only(problem, moving))
    follow(part, sizes[moving], waiting, watch if certify else None)
    waiting.due(np.inf)  # what is left are delays
    return Times(waiting.begin, waiting.finish, max(seen))


class _Waiting:
    """Knows what waits for what, and lets transfers in as their time comes.

    Those that move bytes are known to `follow` by their place in `moving`; all others are done as
    soon as they begin.
    """

    def __init__(
        self,
        moving: IntArray,
        before: IntArray,
        after: IntArray,
        start: FloatArray,
        delay: FloatArray,
        latency: FloatArray,
    ) -> None:
        count = len(start)
        self.moving, self.delay, self.latency = moving, delay, latency
        self.slot = np.full(count, -1)
        self.slot[moving] = np.arange(len(moving))
        order = np.argsort(before, kind="stable")
        self.after = after[order]
        self.first = np.searchsorted(before[order], np.arange(count + 1))
        self.pending = np.bincount(after, minlength=count)
        self.ready = start.copy()
        self.begin, self.finish = np.zeros(count), np.zeros(count)
        self.queue: list[tuple[float, int, IntArray]] = []
        self.pushed = 0
        self._push(np.flatnonzero(self.pending == 0))

    def due(self, now: float) -> IntArray:
        found = [np.zeros(0, np.int64)]
        while self.queue and self.queue[0][0] <= now:
            time, _, come = heappop(self.queue)
            self.begin[come] = time
            moves = self.slot[come] >= 0
            found.append(self.slot[come[moves]])
            self._arrive(come[~moves], time)
        return np.concatenate(found)

    def next(self) -> float:
        return self.queue[0][0] if self.queue else np.inf

    def done(self, flows: IntArray, now: float) -> None:
        self._arrive(self.moving[flows], now)

    def _arrive(self, come: IntArray, now: float) -> None:
        """Let those in that have waited for transfers which finish now."""
        self.finish[come] = now
        waiters = self.first[come + 1] - self.first[come]
        if not waiters.any():
            return
        within = np.arange(waiters.sum()) - np.repeat(np.cumsum(waiters) - waiters, waiters)
        after = self.after[np.repeat(self.first[come], waiters) + within]
        arrival = np.repeat(now + self.latency[come], waiters)
        np.maximum.at(self.ready, after, arrival)
        np.subtract.at(self.pending, after, 1)
        self._push(np.unique(after[self.pending[after] == 0]))

    def _push(self, come: IntArray) -> None:
        """Queue transfers that nothing holds back any more, together where they start together."""
        times, group = np.unique(self.ready[come] + self.delay[come], return_inverse=True)
        order = np.argsort(group, kind="stable")
        parts = np.split(come[order], np.searchsorted(group[order], np.arange(1, len(times))))
        for time, part in zip(times.tolist(), parts, strict=False):
            heappush(self.queue, (time, self.pushed, part))
            self.pushed += 1
