"""Reduce: the first rank ends with the sum of the buffers of all."""

from __future__ import annotations

import numpy as np

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.patterns import Pattern, broadcast
from fabricsim.patterns.broadcast import Rooted
from fabricsim.patterns.lanes import mirrored
from fabricsim.patterns.schedule import CutDemand, Groups, Step


def pipelined_ring(p: Rooted, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Sums of chunks from rank to rank, in c chunks: c + n - 2 steps of S/c.

    The broadcast of the same name backwards.
    """
    return mirrored(broadcast.pipelined_ring(p, groups, seed), adds=True)


def tree(p: Rooted, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Half as many sums at each step: ceil(log2 n) steps of S; the broadcast backwards."""
    return mirrored(broadcast.tree(p, groups, seed), adds=True)


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """One sum enters the side of the first rank, and leaves the other."""
    del n, m
    return np.where(root, 0.0, size), np.where(root, size, 0.0)


PATTERN = Pattern(
    parameters=Rooted,
    algorithms={"pipelined-ring": pipelined_ring, "tree": tree},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    cut=CutDemand(_across),
    chunked=frozenset({"pipelined-ring"}),
)
