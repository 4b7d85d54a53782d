"""The certificate of max-min fairness: one pass that decides whether rates are right.

Nothing is solved here. The tolerances with which a caller compares are the caller's.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fabricsim.arrays import FloatArray
from fabricsim.solver.problem import Problem, prepare


def max_min_violation(
    routes: sparse.sparray | sparse.spmatrix,
    capacity: FloatArray,
    rates: FloatArray,
    *,
    weight: FloatArray | None = None,
    demand: FloatArray | None = None,
) -> float:
    """Measure how far rates are from max-min fairness.

    Rates are max-min fair exactly when no link carries more than its capacity, no flow has more
    than its demand, and every flow either has its full demand or crosses a saturated link on which
    its rate over weight is the largest (Bertsekas and Gallager, Data Networks, section 6.5.2).

    Parameters
    ----------
    routes, capacity, weight, demand
        As in `max_min_rates`.
    rates : (flows,) floats
        What to check, in B/s.

    Returns
    -------
    float
        The largest relative violation; 0 where the certificate holds to the last bit. An overload
        counts relative to the link's capacity, an excess over demand to the demand. A flow below
        its demand counts by the best of its links: the larger of the link's free share of its
        capacity, and of how far the flow's level lies below the largest on it.

    Examples
    --------
    >>> from scipy import sparse
    >>> one_link = sparse.csr_array([[1.0], [1.0]])
    >>> max_min_violation(one_link, np.array([10.0]), np.array([5.0, 5.0]))
    0.0
    >>> max_min_violation(one_link, np.array([10.0]), np.array([4.0, 6.0]))
    0.33333333333333337
    """
    return violation(prepare(routes, capacity, weight, demand), np.asarray(rates, np.float64))


def violation(problem: Problem, rates: FloatArray) -> float:
    """Measure how far rates are from max-min fairness; `max_min_violation` on what is prepared."""
    if len(rates) == 0:
        return 0.0
    if not np.isfinite(rates).all() or (rates < 0).any():
        return float("inf")
    return max(_overload(problem, rates), _unfairness(problem, rates))


def _relative(excess: FloatArray, to: FloatArray) -> FloatArray:
    """Excess over a base; any excess over zero is infinitely much."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(excess <= 0, 0.0, excess / to)


def _overload(p: Problem, rates: FloatArray) -> float:
    used = p.by_link @ rates
    over_link = _relative(used - p.capacity, p.capacity)
    finite = np.isfinite(p.demand)
    over_demand = _relative(rates[finite] - p.demand[finite], p.demand[finite])
    return max(float(over_link.max(initial=0.0)), float(over_demand.max(initial=0.0)))


def _unfairness(p: Problem, rates: FloatArray) -> float:
    level = rates / p.weight
    used = p.by_link @ rates
    free = _relative(p.capacity - used, p.capacity)
    top = np.zeros(len(p.capacity))
    crossed = np.diff(p.by_link.indptr) > 0
    starts = p.by_link.indptr[:-1][crossed]
    if len(starts):
        top[crossed] = np.maximum.reduceat(level[p.by_link.indices], starts)
    indptr, link = p.routes.indptr, p.routes.indices
    flow = np.repeat(np.arange(len(rates)), np.diff(indptr))
    below = _relative(top[link] - level[flow], top[link])
    worst_of_entry = np.maximum(free[link], below)
    by_links = np.full(len(rates), np.inf)
    has = np.diff(indptr) > 0
    if has.any():
        by_links[has] = np.minimum.reduceat(worst_of_entry, indptr[:-1][has])
    by_demand = np.full(len(rates), np.inf)
    finite = np.isfinite(p.demand)
    by_demand[finite] = _relative(p.demand[finite] - rates[finite], p.demand[finite])
    return float(np.minimum(by_links, by_demand).max())
