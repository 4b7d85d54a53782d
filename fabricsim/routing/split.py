"""Routings that split a flow over all shortest paths: spray, spray-uniform, dimension-order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fabricsim.arrays import BoolArray, FloatArray, IntArray, sum_at
from fabricsim.errors import SpecError
from fabricsim.fabric import Fabric
from fabricsim.routing import Routes
from fabricsim.routing.shortest import (
    LinkFilter,
    NextHops,
    blocks,
    next_hops,
    require_reachable,
)


def spray(fabric: Fabric, src: IntArray, dst: IntArray, seed: int = 0) -> Routes:
    """Split at each node over the links on shortest paths, in proportion to their capacity.

    What packet spraying with many small packets tends to.

    Parameters
    ----------
    fabric : Fabric
    src, dst : (flows,) ints
        Nodes at which flows start and end; a flow to its own node takes no link.
    seed : int
        Not used: nothing is drawn.

    Returns
    -------
    Routes

    Raises
    ------
    UnreachableError
        A pair has no path.

    Examples
    --------
    >>> from fabricsim.builders.torus import Torus, build
    >>> square = build(Torus(dims=(2, 2), bandwidth=("1 GB/s", "3 GB/s")))
    >>> routes = spray(square, np.array([0]), np.array([3]))
    >>> sorted(routes.matrix.data.tolist())
    [0.25, 0.25, 0.75, 0.75]
    """
    del seed
    return _split(fabric, src, dst, weight=fabric.capacity)


def spray_uniform(fabric: Fabric, src: IntArray, dst: IntArray, seed: int = 0) -> Routes:
    """Split at each node evenly over the cables on shortest paths, whatever their capacity.

    What a sprayer does that does not know of a degraded cable. Parameters, returns and errors as
    `spray`.
    """
    del seed
    return _split(fabric, src, dst, weight=fabric.cables.astype(np.float64))


def dimension_order(fabric: Fabric, src: IntArray, dst: IntArray, seed: int = 0) -> Routes:
    """Go along x until it is right, then along y, then z; for tori.

    The half-way distance of an even ring is split over both directions. Parameters and returns as
    `spray`.

    Raises
    ------
    SpecError
        The fabric is no torus: it has switches, or links that change several coordinates.
    """
    del seed
    return _split(fabric, src, dst, weight=fabric.capacity, allowed=_axis_filter(fabric))


def _axis_filter(fabric: Fabric) -> LinkFilter:
    """Allow the links along the first axis on which a node and the target differ."""
    places = fabric.coordinates
    changes = places[fabric.link_src] != places[fabric.link_dst]
    if fabric.nodes != len(fabric.endpoints) or (changes.sum(axis=1) != 1).any():
        raise SpecError(
            f"dimension-order routing needs a torus, and {fabric.name} has switches or links off "
            "the grid: take spray, ecmp or single"
        )
    axis = changes.argmax(axis=1)

    def allowed(targets: IntArray) -> BoolArray:
        differs = places[targets][:, None, :] != places[None, :, :]
        first = np.where(differs.any(axis=2), differs.argmax(axis=2), -1)
        return np.asarray(first[:, fabric.link_src] == axis, dtype=np.bool_)

    return allowed


def _split(
    fabric: Fabric,
    src: IntArray,
    dst: IntArray,
    *,
    weight: FloatArray,
    allowed: LinkFilter | None = None,
) -> Routes:
    parts, order = [], []
    latency = np.zeros(len(src))
    for flows in blocks(fabric, dst):
        targets, target = np.unique(dst[flows], return_inverse=True)
        table = next_hops(fabric, targets, allowed)
        start = target * fabric.nodes + src[flows]
        require_reachable(fabric, table.hops[start], src[flows], dst[flows])
        parts.append(follow(table, start, weight[table.link], fabric.links))
        latency[flows] = _longest(fabric, table)[start]
        order.append(flows)
    matrix = sparse.csr_array((0, fabric.links))
    if parts:
        matrix = parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")
        position = np.argsort(np.concatenate(order))
        if (np.diff(position) != 1).any():
            matrix = matrix[position]
        matrix.sort_indices()
    return Routes(matrix, latency)


def follow(table: NextHops, start: IntArray, weight: FloatArray, links: int) -> sparse.csr_array:
    """Follow all flows hop by hop, split at each state in proportion to weights.

    Parameters
    ----------
    table : NextHops
        Choices that lead every state to its target, without cycles.
    start : (flows,) ints
        States.
    weight : (choices,) floats
    links : int
        Columns of the result.

    Returns
    -------
    (flows, links) CSR array
        Fraction of each flow on each link.
    """
    states, flows = len(table.first) - 1, len(start)
    of_state = np.repeat(np.arange(states), np.diff(table.first))
    share = weight / sum_at(of_state, weight, states)[of_state]
    move = sparse.csr_array((share, table.next_state, table.first), shape=(states, states))
    own_row = np.arange(flows + 1, dtype=np.int32)
    at = sparse.csr_array((np.ones(flows), start.astype(np.int32), own_row), shape=(flows, states))
    visits = at
    while at.nnz:
        at = at @ move
        visits = visits + at
    carry = sparse.csr_array((share, table.link, table.first), shape=(states, links))
    return sparse.csr_array(visits @ carry)


def _longest(fabric: Fabric, table: NextHops) -> NDArray[np.float64]:
    """Latency of the slowest shortest path from each state, nearest states first."""
    longest = np.zeros(len(table.first) - 1)
    passing = np.tile(fabric.transit_latency, len(longest) // fabric.nodes)
    passing[table.hops == 0] = 0.0  # the target itself is not passed through
    choices = np.diff(table.first)
    of_choice = np.repeat(table.hops, choices)
    for hop in range(1, int(table.hops.max(initial=0)) + 1):
        pick = np.flatnonzero(of_choice == hop)
        at = np.flatnonzero((table.hops == hop) & (choices > 0))
        if not len(pick):
            continue
        then = table.next_state[pick]
        reach = fabric.latency[table.link[pick]] + passing[then] + longest[then]
        starts = np.concatenate(([0], np.cumsum(choices[at])[:-1]))
        longest[at] = np.maximum.reduceat(reach, starts)
    return longest
