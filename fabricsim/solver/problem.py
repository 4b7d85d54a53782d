"""The input of the solvers, checked and prepared once: routes by flow and by link.

Shared by the max-min solver, the fluid solver and the certificate, so that all three read routes,
weights and demands alike and refuse them with the same words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fabricsim.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Problem:
    """Routes and what limits them.

    Attributes
    ----------
    routes : (flows, links) CSR array
        No duplicates, no zeros.
    by_link : (links, flows) CSR array
        Its transpose.
    capacity : (links,) floats
    weight, demand : (flows,) floats
        Demand is infinite where there is none.
    """

    routes: sparse.csr_array
    by_link: sparse.csr_array
    capacity: FloatArray
    weight: FloatArray
    demand: FloatArray


def prepare(
    routes: sparse.sparray | sparse.spmatrix,
    capacity: ArrayLike,
    weight: ArrayLike | None = None,
    demand: ArrayLike | None = None,
) -> Problem:
    """Check the arguments of a solver and lay them out.

    Raises
    ------
    ValueError
        Shapes that do not fit, or a value that is no fraction, capacity, weight or demand; the
        message names the argument and the index.
    """
    if not sparse.issparse(routes):
        raise ValueError(f"routes must be a SciPy sparse array, not {type(routes).__name__}")
    by_flow: sparse.csr_array = sparse.csr_array(cast(Any, routes))
    if by_flow.dtype != np.float64:
        by_flow = by_flow.astype(np.float64)
    if not by_flow.has_canonical_format or (by_flow.data == 0).any():
        by_flow = by_flow.copy()
        by_flow.sum_duplicates()
        by_flow.eliminate_zeros()
    flows, links = by_flow.shape
    if not (np.isfinite(by_flow.data).all() and (by_flow.data > 0).all()):
        entry = int(np.argmax(~(np.isfinite(by_flow.data) & (by_flow.data > 0))))
        flow = int(np.searchsorted(by_flow.indptr, entry, side="right")) - 1
        raise ValueError(
            f"routes[{flow}, {by_flow.indices[entry]}] is {by_flow.data[entry]:g}: the fraction of "
            "a flow on a link must be finite and not negative"
        )
    return Problem(
        routes=by_flow,
        by_link=by_flow.T.tocsr(),
        capacity=vector("capacity", capacity, links, "at least 0 and finite", low=0.0),
        weight=(
            np.ones(flows)
            if weight is None
            else vector("weight", weight, flows, "above 0 and finite", above=0.0)
        ),
        demand=(
            np.full(flows, np.inf)
            if demand is None
            else vector("demand", demand, flows, "at least 0", low=0.0, finite=False)
        ),
    )


def only(problem: Problem, flows: IntArray) -> Problem:
    """Leave only some flows, in the order given."""
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


def crossed(problem: Problem) -> Problem:
    """Leave only the links that some flow crosses."""
    used = np.flatnonzero(np.diff(problem.by_link.indptr))
    if len(used) == len(problem.capacity):
        return problem
    return replace(
        problem,
        routes=problem.routes[:, used],
        by_link=problem.by_link[used],
        capacity=problem.capacity[used],
    )


def vector(
    name: str,
    values: ArrayLike,
    length: int,
    need: str,
    *,
    low: float | None = None,
    above: float | None = None,
    finite: bool = True,
) -> FloatArray:
    """Check one vector argument of a solver.

    Raises
    ------
    ValueError
        Naming the argument, the first index that is wrong, and what would be right.
    """
    array = np.asarray(values, np.float64)
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, must be ({length},)")
    bad = np.isnan(array)
    if finite:
        bad |= ~np.isfinite(array)
    if low is not None:
        bad |= array < low
    if above is not None:
        bad |= ~(array > above)
    if bad.any():
        index = int(np.argmax(bad))
        raise ValueError(f"{name}[{index}] is {array[index]:g}, must be {need}")
    return array
