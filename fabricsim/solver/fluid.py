"""Finishing times of transfers that share links max-min fairly.

As some finish, or start, the rates of the rest change. The rates themselves are found in `max_min`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fabricsim.arrays import FloatArray
from fabricsim.solver.max_min import solve
from fabricsim.solver.problem import Problem, prepare, vector

ROUNDING = 64 * np.finfo(np.float64).eps
"""Part of a transfer that rounding may leave over when it is done."""


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
    problem = prepare(routes, capacity, weight)
    flows = len(problem.weight)
    left = vector("size", size, flows, "at least 0 and finite", low=0.0).copy()
    begin = (
        np.zeros(flows)
        if start is None
        else vector("start", start, flows, "at least 0 and finite", low=0.0)
    )
    _refuse_endless(problem, left)
    finish = begin.copy()
    enough = ROUNDING * left
    waiting = (left > 0) & (np.diff(problem.routes.indptr) > 0)
    now = 0.0
    while waiting.any():
        busy = np.flatnonzero(waiting & (begin <= now))
        later = begin[waiting & (begin > now)]
        arrival = later.min() if len(later) else np.inf
        if not len(busy):
            now = arrival
            continue
        rate = solve(_part(problem, busy))
        step = min(float((left[busy] / rate).min()), arrival - now)
        left[busy] -= rate * step
        now = now + step if step < arrival - now else arrival
        done = busy[left[busy] <= enough[busy]]
        finish[done] = now
        waiting[done] = False
    return finish


def _part(problem: Problem, flows: np.ndarray) -> Problem:
    """Leave only some flows."""
    if len(flows) == len(problem.weight):
        return problem
    routes = problem.routes[flows]
    return replace(
        problem,
        routes=routes,
        by_link=routes.T.tocsr(),
        weight=problem.weight[flows],
        demand=problem.demand[flows],
    )


def _refuse_endless(problem: Problem, size: FloatArray) -> None:
    dead = problem.capacity == 0
    if not dead.any():
        return
    stuck = (problem.routes @ dead.astype(np.float64) > 0) & (size > 0)
    if stuck.any():
        flow = int(np.argmax(stuck))
        links = problem.routes.indices[
            problem.routes.indptr[flow] : problem.routes.indptr[flow + 1]
        ]
        raise ValueError(
            f"transfer {flow} never finishes: it crosses link {links[dead[links]][0]} of capacity 0"
        )
