"""Nearest neighbour: each rank sends to those next to it, as stencils exchange their borders."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabricsim.arrays import IntArray
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.grid import torus_or_none
from fabricsim.patterns.schedule import Groups, Step, tiled


class NearestNeighbour(TrafficParameters):
    """`size` is what a rank sends in all, the same to each neighbour."""

    algorithm: Literal["direct"] = "direct"


def _transfers(p: NearestNeighbour, groups: Groups, seed: int) -> Step:
    del seed
    rank = np.arange(groups.size)
    box = torus_or_none(groups)
    peers: list[IntArray] = [(rank + 1) % groups.size, (rank - 1) % groups.size]
    if box is not None:
        peers = [box.moved(axis, way) for axis in range(len(box.sizes)) for way in (1, -1)]
    pairs = np.concatenate([rank * groups.size + peer for peer in peers])
    src, dst = np.divmod(np.unique(pairs), groups.size)
    src, dst = src[src != dst], dst[src != dst]
    many = np.bincount(src, minlength=groups.size)
    return tiled(groups, src, dst, p.size / many[src])


def direct(p: NearestNeighbour, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send to all neighbours at once: on a torus both ways along every axis, else by number."""
    return (_transfers(p, groups, seed),)


PATTERN = Pattern(
    parameters=NearestNeighbour,
    algorithms={"direct": direct},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    demand=_transfers,
)
