"""Routings that give each flow one shortest path: ecmp and single."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fabricsim.arrays import IntArray
from fabricsim.fabric import Fabric
from fabricsim.routing import Routes
from fabricsim.routing.shortest import NextHops, blocks, next_hops, require_reachable

Choose = Callable[[NextHops, IntArray, IntArray], IntArray]
"""Choices of all states, flows, their states -> the choice that each flow takes there."""


def single(fabric: Fabric, src: IntArray, dst: IntArray, seed: int = 0) -> Routes:
    """Give each flow one shortest path, the same every time: the first link at each node.

    Parameters
    ----------
    fabric : Fabric
    src, dst : (flows,) ints
        Nodes at which flows start and end.
    seed : int
        Not used: nothing is drawn.

    Returns
    -------
    Routes

    Raises
    ------
    UnreachableError
        A pair has no path.
    """
    del seed
    return _walk(fabric, src, dst, _first_link)


def _first_link(table: NextHops, flow: IntArray, state: IntArray) -> IntArray:
    del flow
    return table.first[state]


def ecmp(fabric: Fabric, src: IntArray, dst: IntArray, seed: int = 0) -> Routes:
    """Give each flow one shortest path, drawn by a seeded hash at each node.

    A link is drawn in proportion to its capacity; parallel cables are separate members. The hash
    is of source, destination, node and seed, so that equal pairs share a path. Parameters, returns
    and errors as `single`.

    Examples
    --------
    >>> from fabricsim.builders.torus import Torus, build
    >>> square = build(Torus(dims=(2, 2), bandwidth=("1 GB/s",)))
    >>> ecmp(square, np.array([0]), np.array([3])).matrix.data.tolist()
    [1.0, 1.0]
    """
    key = _mix(_mix(_mix(np.uint64(seed % 2**64)) ^ src.astype(np.uint64)) ^ dst.astype(np.uint64))

    def choose(table: NextHops, flow: IntArray, state: IntArray) -> IntArray:
        node = (state % table.nodes).astype(np.uint64)
        drawn = (_mix(key[flow] ^ _mix(node)) >> np.uint64(11)) * 2.0**-53
        total = np.concatenate(([0.0], np.cumsum(fabric.capacity[table.link])))
        first, end = table.first[state], table.first[state + 1]
        point = total[first] + drawn * (total[end] - total[first])
        choice: IntArray = np.searchsorted(total, point, side="right") - 1
        return np.minimum(np.maximum(choice, first), end - 1)

    return _walk(fabric, src, dst, choose)


def _mix(value: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    x = np.atleast_1d(value) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), dtype=np.uint64)


def _walk(fabric: Fabric, src: IntArray, dst: IntArray, choose: Choose) -> Routes:
    latency = np.zeros(len(src))
    rows, cols = [], []
    for flows in blocks(fabric, dst):
        targets, target = np.unique(dst[flows], return_inverse=True)
        table = next_hops(fabric, targets)
        state = target * fabric.nodes + src[flows]
        require_reachable(fabric, table.hops[state], src[flows], dst[flows])
        moving = table.hops[state] > 0
        flow, state = flows[moving], state[moving]
        while len(flow):
            choice = choose(table, flow, state)
            link, state = table.link[choice], table.next_state[choice]
            rows.append(flow)
            cols.append(link)
            latency[flow] += fabric.latency[link]
            moving = table.hops[state] > 0
            flow, state = flow[moving], state[moving]
            latency[flow] += fabric.transit_latency[state % fabric.nodes]
    row = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    col = np.concatenate(cols) if cols else np.zeros(0, np.int64)
    ones = np.ones(len(row))
    matrix = sparse.csr_array((ones, (row, col)), shape=(len(src), fabric.links))
    matrix.sort_indices()
    return Routes(matrix, latency)
