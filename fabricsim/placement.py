"""Where the endpoints of a fabric stand, as the algorithms of collectives need to know it."""

from __future__ import annotations

from functools import partial

import numpy as np

from fabricsim.arrays import FloatArray, sum_at
from fabricsim.fabric import Fabric
from fabricsim.patterns.schedule import Placement
from fabricsim.routing.split import spray

MOST_PEERS = 64
"""Peers along an axis that are looked at."""


def placement(fabric: Fabric) -> Placement:
    """Find the axes of a fabric, and which of them are rings of neighbours.

    An axis is a ring where the fabric has no switches, and every endpoint is joined both to the
    next along the axis and to the one before, the last to the first.

    Parameters
    ----------
    fabric : Fabric

    Returns
    -------
    Placement

    Examples
    --------
    >>> from fabricsim import load_topology
    >>> where = placement(load_topology("trn2-nl64"))
    >>> where.axes, where.rings
    (('x', 'y', 'z'), (True, True, True))
    """
    n = len(fabric.endpoints)
    rank = np.full(fabric.nodes, -1)
    rank[fabric.endpoints] = np.arange(n)
    where = fabric.coordinates[fabric.endpoints]
    one, other = rank[fabric.link_src], rank[fabric.link_dst]
    joined = np.flatnonzero((one >= 0) & (other >= 0))
    differs = where[one[joined]] != where[other[joined]]
    rings = []
    for axis in range(len(fabric.axes)):
        along = joined[differs[:, axis] & (differs.sum(axis=1) == 1)]
        size = int(where[:, axis].max(initial=0)) + 1
        hop = (where[other[along], axis] - where[one[along], axis]) % size
        neighbours = all(len(np.unique(one[along[hop == h]])) == n for h in (1 % size, size - 1))
        rings.append(fabric.nodes == n and (size == 1 or neighbours))
    out = sum_at(fabric.link_src, fabric.capacity, fabric.nodes)[fabric.endpoints]
    return Placement(
        axes=fabric.axes,
        coordinates=where,
        rings=tuple(rings),
        usage=partial(_usage, fabric, tuple(rings)),
        injection_Bps=float(out.min()) if n else 0.0,
        reduces=fabric.reduces,
    )


def _usage(fabric: Fabric, rings: tuple[bool, ...]) -> FloatArray:
    """Find the seconds that a byte from the first endpoint, along each axis, takes of its links.

    Along a ring bytes go to both neighbours. Along another axis they go to all peers there, or
    some where there are many, sprayed.
    """
    first, where = fabric.endpoints[0], fabric.coordinates[fabric.endpoints]
    own = np.flatnonzero(fabric.link_src == first)
    usage = np.zeros((len(rings), len(own)))
    for axis, ring in enumerate(rings):
        apart = where != where[0]
        peers = fabric.endpoints[apart[:, axis] & (apart.sum(axis=1) == 1)]
        if not len(peers):
            continue
        if ring:
            share = np.isin(fabric.link_dst[own], peers) * fabric.capacity[own]
            share = share / share.sum()
        else:
            peers = peers[:: 1 + len(peers) // MOST_PEERS]
            routes = spray(fabric, np.full(len(peers), first), peers)
            share = np.asarray(routes.matrix.mean(axis=0)).ravel()[own]
        usage[axis] = share / fabric.capacity[own]
    return usage
