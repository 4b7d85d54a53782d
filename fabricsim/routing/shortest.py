"""Which links lie on a shortest path to each destination: what every routing starts from.

In a fabric of pods a shortest path is one of those that keep to its rules (see `Fabric.domain`):
traffic within a pod stays there, even if the network outside would be fewer hops, and traffic
between pods does not wander through them, unless to the endpoint of its rail (`Fabric.rail`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricsim.arrays import BoolArray, IntArray
from fabricsim.errors import UnreachableError
from fabricsim.fabric import Fabric
from fabricsim.graph import hop_distances, hop_distances_to_sets

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
    by_source = np.argsort(fabric.link_src, kind="stable")
    src, dst = fabric.link_src[by_source], fabric.link_dst[by_source]
    if len(fabric.domain):
        hops, may_take = _within_pods(fabric, targets, src, dst)
    else:
        hops = hop_distances(src, dst, fabric.nodes, targets, fabric.transit)
        may_take = fabric.transit[dst] | (dst == targets[:, None])
    onward = hops[:, dst]
    nearer = (onward >= 0) & (hops[:, src] == onward + 1)
    nearer &= may_take
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


def _within_pods(
    fabric: Fabric, targets: IntArray, src: IntArray, dst: IntArray
) -> tuple[NDArray[np.int32], BoolArray]:
    """Measure the paths that pods allow, and tell the links that these may take.

    Nodes in the pod of a target reach it inside; others by the links outside of pods. With rails,
    a node in another pod goes inside of that to the endpoint of the target's rail, and on from
    there.

    Returns
    -------
    hops : (targets, nodes) int32
        Links to each target; -1 where no path is allowed.
    may_take : (targets, links) bools
        Whether traffic to the target may take the link where it comes nearer by it.
    """
    nodes, domain, transit = fabric.nodes, fabric.domain, fabric.transit
    outside = domain < 0
    inner = (domain[src] == domain[dst]) & ~outside[src]
    at_home = (domain == domain[targets][:, None]) & ~outside
    inside = hop_distances(src[inner], dst[inner], nodes, targets, transit)
    hops = hop_distances(src[~inner], dst[~inner], nodes, targets, transit & outside)
    stays = at_home
    passes = transit[dst] | (dst == targets[:, None])
    if len(fabric.rail):
        rails, rail_of_target = np.unique(fabric.rail[targets], return_inverse=True)
        exits = np.flatnonzero(~outside & np.isin(fabric.rail, rails))
        of_exit = np.searchsorted(rails, fabric.rail[exits])
        lead = hop_distances_to_sets(
            src[inner], dst[inner], nodes, of_exit, exits, len(rails), transit
        )
        exit_of = np.full((len(rails), int(domain.max()) + 1), -1)
        exit_of[of_exit, domain[exits]] = exits
        leave = exit_of[:, domain][rail_of_target]  # for nodes outside of pods without meaning
        lead = lead[rail_of_target]
        onward = np.take_along_axis(hops, leave, axis=1)
        through = np.where((lead >= 0) & (leave >= 0) & (onward >= 0), lead + onward, -1)
        hops = np.where(outside, hops, through)
        stays = at_home | (~outside & (lead != 0))
        passes |= inner & (lead[:, dst] == 0)
    hops = np.where(at_home, inside, hops).astype(np.int32)
    enters = outside[dst] | (dst == targets[:, None])
    return hops, passes & np.where(inner, stays[:, src], ~stays[:, src] & enters)


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
