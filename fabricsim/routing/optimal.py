"""Routing by linear program: the split over all paths that brings everything through soonest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fabricsim.arrays import FloatArray, IntArray
from fabricsim.errors import FabricsimError, TooLargeError
from fabricsim.fabric import Fabric
from fabricsim.graph import hop_distances
from fabricsim.routing import Routes
from fabricsim.routing.shortest import NextHops, require_reachable
from fabricsim.routing.split import follow

MOST_UNKNOWNS = 250_000
"""Unknowns of the largest program that is tried; the solver takes minutes on more."""

NOTHING = 1e-9
"""Part of the largest amount below which the program's amounts are rounding."""


def optimal(fabric: Fabric, src: IntArray, dst: IntArray, size: FloatArray) -> Routes:
    """Split over all paths so that the last byte arrives as soon as it can.

    Minimises T subject to: for each destination, what enters a node and what starts there leaves
    it again; no link carries more than its capacity times T (the concurrent-flow program with one
    commodity a destination; Ahuja, Magnanti and Orlin, Network Flows, chapter 17). Among the
    solutions it takes one that loads the links least in all, which has no cycles. Paths may be of
    any length, and may leave a pod and come back. Rates must be shared in proportion to sizes; then
    all flows are done by T.

    Parameters
    ----------
    fabric : Fabric
    src, dst : (flows,) ints
        Nodes at which flows start and end, never the same.
    size : (flows,) floats
        Bytes.

    Returns
    -------
    Routes

    Raises
    ------
    UnreachableError
        A pair has no path.
    TooLargeError
        A program of more than `MOST_UNKNOWNS` unknowns: destinations times links.

    Examples
    --------
    Two ways from 0 to 3 on a square, one of them three times as wide:

    >>> from fabricsim.builders.torus import Torus, build
    >>> square = build(Torus(dims=(2, 2), bandwidth=("1 GB/s", "3 GB/s")))
    >>> routes = optimal(square, np.array([0]), np.array([3]), np.array([1e9]))
    >>> np.round(routes.matrix.data, 6).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    if not len(src):
        return Routes(sparse.csr_array((0, fabric.links)), np.zeros(0))
    targets, target = np.unique(dst, return_inverse=True)
    unknowns = len(targets) * fabric.links
    if unknowns > MOST_UNKNOWNS:
        raise TooLargeError(
            f"optimal routing to {len(targets):,} destinations over {fabric.links:,} links is a "
            f"linear program of {unknowns:,} unknowns, and at most {MOST_UNKNOWNS:,} are tried: "
            "take a smaller fabric, or spray"
        )
    hops = hop_distances(fabric.link_src, fabric.link_dst, fabric.nodes, targets, fabric.transit)
    require_reachable(fabric, hops[target, src], src, dst)
    amount = _solve(fabric, targets, target, src, size)
    state, link = np.nonzero(amount > NOTHING * amount.max())
    table = _choices(fabric, targets, state, link)
    start = target * fabric.nodes + src
    matrix = follow(table, start, amount[state, link][_by_state(fabric, state, link)], fabric.links)
    matrix.sort_indices()
    return Routes(matrix, _longest(fabric, targets, table)[start])


def _solve(
    fabric: Fabric, targets: IntArray, target: IntArray, src: IntArray, size: FloatArray
) -> FloatArray:
    """Find how much of what goes to each target each link carries: (targets, links), scaled."""
    from scipy.optimize import linprog

    links, nodes, count = fabric.links, fabric.nodes, len(targets)
    rank = np.arange(links)
    ends = np.r_[fabric.link_src, fabric.link_dst]
    signs = np.r_[np.ones(links), -np.ones(links)]
    incidence = sparse.csr_array((signs, (ends, np.r_[rank, rank])), shape=(nodes, links))
    scale = float(size.max())
    starts = np.zeros((count, nodes))
    np.add.at(starts, (target, src), size / scale)
    starts[np.arange(count), targets] -= starts.sum(axis=1)
    # Nothing leaves its target, and nothing enters a node that would have to pass it on but
    # does not forward.
    into, out = fabric.link_dst[None, :], fabric.link_src[None, :]
    usable = (fabric.transit[into] | (into == targets[:, None])) & (out != targets[:, None])
    most = np.where(usable, np.inf, 0.0).ravel()
    conserve = sparse.hstack(
        [sparse.block_diag([incidence] * count), sparse.csr_array((count * nodes, 1))]
    )
    capacity = fabric.capacity / fabric.capacity.max()
    carry = sparse.hstack(
        [
            sparse.csr_array(sparse.kron(np.ones((1, count)), sparse.eye_array(links))),
            -capacity[:, None],
        ]
    )
    most = np.append(most, np.inf)
    only_time = np.r_[np.zeros(count * links), 1.0]

    def program(objective: FloatArray) -> FloatArray:
        found = linprog(
            objective,
            A_ub=carry.tocsr(),
            b_ub=np.zeros(links),
            A_eq=conserve.tocsr(),
            b_eq=starts.ravel(),
            bounds=[(0.0, top) for top in most],
            method="highs-ipm",  # several times as fast here as simplex
        )
        if not found.success:
            raise FabricsimError(f"the linear program of optimal routing failed: {found.message}")
        return np.asarray(found.x, np.float64)

    least = program(only_time)[-1]
    most[-1] = least * (1 + NOTHING)
    return program(1.0 - only_time)[:-1].reshape(count, links)


def _by_state(fabric: Fabric, target: IntArray, link: IntArray) -> IntArray:
    """Order of choices by target, then by the node that they leave."""
    return np.lexsort((link, fabric.link_src[link], target))


def _choices(fabric: Fabric, targets: IntArray, target: IntArray, link: IntArray) -> NextHops:
    """Lay out the links that the program uses as choices of states."""
    order = _by_state(fabric, target, link)
    target, link = target[order], link[order]
    state = target * fabric.nodes + fabric.link_src[link]
    count = np.bincount(state, minlength=len(targets) * fabric.nodes)
    return NextHops(
        nodes=fabric.nodes,
        hops=np.zeros(0, np.int32),
        first=np.concatenate(([0], np.cumsum(count))).astype(np.int32),
        link=link.astype(np.int32),
        next_state=(target * fabric.nodes + fabric.link_dst[link]).astype(np.int32),
    )


def _longest(fabric: Fabric, targets: IntArray, table: NextHops) -> NDArray[np.float64]:
    """Latency of the slowest path that is used from each state; paths have no cycles."""
    states = len(table.first) - 1
    used = np.flatnonzero(np.diff(table.first))
    passing = np.tile(fabric.transit_latency, len(targets))
    passing[np.arange(len(targets)) * fabric.nodes + targets] = 0.0
    step = fabric.latency[table.link] + passing[table.next_state]
    longest = np.zeros(states)
    while len(used):
        further = longest.copy()
        further[used] = np.maximum.reduceat(step + longest[table.next_state], table.first[used])
        if (further == longest).all():
            break
        longest = further
    return longest
