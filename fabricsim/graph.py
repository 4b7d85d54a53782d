"""Graph algorithms on plain arrays of directed edges: hop distances and components.

No fabric, no capacity: only who is joined to whom. Routing and bounds build on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fabricsim.arrays import BoolArray, IntArray


def hop_distances(
    src: IntArray, dst: IntArray, nodes: int, targets: IntArray, transit: BoolArray
) -> NDArray[np.int32]:
    """Count the edges of a shortest path from every node to each target.

    Breadth-first from all targets at once, backwards along the edges; a path may pass only
    through nodes where `transit` is true (its two ends are free).

    Parameters
    ----------
    src, dst : (edges,) ints
        Ends of the directed edges.
    nodes : int
        How many nodes there are.
    targets : (targets,) ints
        Nodes to reach.
    transit : (nodes,) bools
        Whether a path may pass through the node.

    Returns
    -------
    (targets, nodes) int32
        Hops to the target; -1 where there is no path.

    Examples
    --------
    A ring of four, one way round:

    >>> src = np.array([0, 1, 2, 3])
    >>> hop_distances(src, (src + 1) % 4, 4, np.array([0]), np.ones(4, bool))
    array([[0, 3, 2, 1]], dtype=int32)
    """
    return hop_distances_to_sets(
        src, dst, nodes, np.arange(len(targets)), targets, len(targets), transit
    )


def hop_distances_to_sets(
    src: IntArray,
    dst: IntArray,
    nodes: int,
    of_set: IntArray,
    member: IntArray,
    sets: int,
    transit: BoolArray,
) -> NDArray[np.int32]:
    """Count the edges of a shortest path from every node to the nearest member of each set.

    Parameters
    ----------
    src, dst, nodes, transit
        As in `hop_distances`.
    of_set, member : (members,) ints
        The sets: each member as the index of its set and its node.
    sets : int
        How many sets there are.

    Returns
    -------
    (sets, nodes) int32
        Hops to the nearest member; -1 where there is no path.

    Examples
    --------
    A ring of four, one way round, to the nearer of nodes 0 and 1:

    >>> src = np.array([0, 1, 2, 3])
    >>> passes = np.ones(4, bool)
    >>> hop_distances_to_sets(src, (src + 1) % 4, 4, np.array([0, 0]), np.array([0, 1]), 1, passes)
    array([[0, 0, 2, 1]], dtype=int32)
    """
    ones = np.ones(len(src), np.int32)
    backwards = sparse.csr_array((ones, (dst, src)), shape=(nodes, nodes))
    hops = np.full((sets, nodes), -1, np.int32)
    rows, cols = of_set, member
    hops[rows, cols] = 0
    depth = 0
    while len(rows):
        depth += 1
        frontier = sparse.csr_array(
            (np.ones(len(rows), np.int32), (rows, cols)), shape=(sets, nodes)
        )
        reached = (frontier @ backwards).tocoo()
        new = hops[reached.row, reached.col] < 0
        rows, cols = reached.row[new], reached.col[new]
        hops[rows, cols] = depth
        onward = transit[cols]
        rows, cols = rows[onward], cols[onward]
    return hops


def components(src: IntArray, dst: IntArray, nodes: int) -> tuple[int, NDArray[np.int32]]:
    """Label the parts of the graph that are joined, whatever the direction of the edges.

    Returns
    -------
    count : int
        Number of parts.
    label : (nodes,) int32
        The part of each node.
    """
    from scipy.sparse import csgraph

    ones = np.ones(len(src), np.int8)
    joined = sparse.csr_array((ones, (src, dst)), shape=(nodes, nodes))
    count, label = csgraph.connected_components(joined, directed=True, connection="weak")
    return int(count), label


def waiting_in_circles(nodes: int, before: IntArray, after: IntArray) -> IntArray:
    """Find nodes of which each must come before itself; none where an order exists.

    Parameters
    ----------
    nodes : int
    before, after : (pairs,) ints
        Node `before[i]` must come before node `after[i]`.

    Returns
    -------
    (found,) ints
        The nodes of one circle, or of circles that touch.
    """
    from scipy.sparse import csgraph

    own = np.flatnonzero(before == after)
    if len(own):
        return before[own[:1]]
    pairs = sparse.csr_array((np.ones(len(before), bool), (before, after)), shape=(nodes, nodes))
    count, part = csgraph.connected_components(pairs, directed=True, connection="strong")
    if count == nodes:
        return np.zeros(0, np.int64)
    return np.flatnonzero(part == np.argmax(np.bincount(part)))
