"""Where the endpoints of a fabric stand, as the algorithms of collectives need to know it."""

from __future__ import annotations

import numpy as np

from fabricsim.arrays import sum_at
from fabricsim.fabric import Fabric
from fabricsim.patterns.schedule import Placement


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
    >>> where.axes, where.rings, where.bandwidth.tolist()
    (('x', 'y', 'z'), (True, True, True), [256000000000.0, 256000000000.0, 128000000000.0])
    """
    n = len(fabric.endpoints)
    rank = np.full(fabric.nodes, -1)
    rank[fabric.endpoints] = np.arange(n)
    where = fabric.coordinates[fabric.endpoints]
    one, other = rank[fabric.link_src], rank[fabric.link_dst]
    joined = np.flatnonzero((one >= 0) & (other >= 0))
    differs = where[one[joined]] != where[other[joined]]
    rings, bandwidth = [], []
    for axis in range(len(fabric.axes)):
        along = joined[differs[:, axis] & (differs.sum(axis=1) == 1)]
        size = int(where[:, axis].max(initial=0)) + 1
        hop = (where[other[along], axis] - where[one[along], axis]) % size
        neighbours = all(len(np.unique(one[along[hop == h]])) == n for h in (1 % size, size - 1))
        rings.append(fabric.nodes == n and (size == 1 or neighbours))
        out = sum_at(one[along], fabric.capacity[along], n)
        bandwidth.append(float(out.min(initial=np.inf)) if n else 0.0)
    out = sum_at(fabric.link_src, fabric.capacity, fabric.nodes)[fabric.endpoints]
    return Placement(
        axes=fabric.axes,
        coordinates=where,
        rings=tuple(rings),
        bandwidth=np.array(bandwidth),
        injection_Bps=float(out.min()) if n else 0.0,
        reduces=fabric.reduces,
    )
