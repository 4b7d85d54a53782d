"""Which links lie on a shortest path to each destination: what every routing starts from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricsim.arrays import BoolArray, IntArray
from fabricsim.errors import UnreachableError
from fabricsim.fabric import Fabric
from fabricsim.graph import hop_distances

LinkFilter = Callable[[IntArray], BoolArray]
"""Targets (targets,) -> which links (targets, links) a routing may take towards each of them."""


@dataclass(frozen=True, eq=False)
class NextHops:
    """The links that lead towards each of some targets, as one list of choices.

    A *state* is a pair of target and node: state = index of the target x nodes + node. The choices
    of a state stand together, in the order of links.

    Attributes
    ----------
    nodes : int
        Nodes of the fabric.
    hops : (states,) int32
        Links to the target; -1 where none leads there.
    first : (states + 1,) ints
        Where the choices of each state begin.
    link : (choices,) ints
        The link of each choice.
    next_state : (choices,) ints
        The state that the link leads to.
    """

    nodes: int
    hops: NDArray[np.int32]
    first: NDArray[np.int32]
    link: NDArray[np.int32]
    next_state: NDArray[np.int32]


def next_hops(fabric: Fabric, targets: IntArray, allowed: LinkFilter | None = None) -> NextHops:
    """List the links that bring traffic one hop nearer to each target.

    Parameters
    ----------
    fabric : Fabric
    targets : (targets,) ints
        Nodes.
    allowed : callable, optional
        Further condition on links, for each target.

    Returns
    -------
    NextHops
    """
    hops = hop_distances(fabric.link_src, fabric.link_dst, fabric.nodes, targets, fabric.transit)
    by_source = np.argsort(fabric.link_src, kind="stable")
    src, dst = fabric.link_src[by_source], fabric.link_dst[by_source]
    onward = hops[:, dst]
    nearer = (onward >= 0) & (hops[:, src] == onward + 1)
    nearer &= fabric.transit[dst] | (dst == targets[:, None])
    if allowed is not None:
        nearer &= allowed(targets)[:, by_source]
    target, at = np.nonzero(nearer)
    state = target * fabric.nodes + src[at]
    counts = np.bincount(state, minlength=len(targets) * fabric.nodes)
    return NextHops(
        nodes=fabric.nodes,
        hops=hops.ravel(),
        first=np.concatenate(([0], np.cumsum(counts))).astype(np.int32),
        link=by_source[at].astype(np.int32),
        next_state=(target * fabric.nodes + dst[at]).astype(np.int32),
    )


def require_reachable(fabric: Fabric, hops: IntArray, src: IntArray, dst: IntArray) -> None:
    """Raise if any flow has no path.

    Parameters
    ----------
    hops : (flows,) ints
        Links from source to destination of each flow; -1 where there is no path.

    Raises
    ------
    UnreachableError
        Naming the first such pair, and how many there are.
    """
    lost = np.flatnonzero(hops < 0)
    if len(lost):
        one, other = fabric.node_name(src[lost[0]]), fabric.node_name(dst[lost[0]])
        raise UnreachableError(
            f"{fabric.name}: no path from {one} to {other} ({len(lost)} of {len(src)} pairs are "
            "cut off); join them by a link, or let a node between them forward"
        )


def blocks(fabric: Fabric, dst: IntArray, links_at_once: int = 1 << 23) -> list[IntArray]:
    """Divide flows by destination, so that what `next_hops` builds for a block stays small.

    Returns
    -------
    list of (flows of the block,) ints
        Indices of flows; all flows to one destination are in the same block.
    """
    order = np.argsort(dst, kind="stable")
    _, starts = np.unique(dst[order], return_index=True)
    at_once = max(1, links_at_once // max(fabric.links + fabric.nodes, 1))
    return np.split(order, starts[at_once::at_once])
