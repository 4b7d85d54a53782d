"""Broadcast: every rank ends with the buffer of the first."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.parameters import Count
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.schedule import CutDemand, Groups, Step, tiled


class Broadcast(TrafficParameters):
    """`size` is the buffer of the first rank of each group."""

    algorithm: Literal["pipelined-ring", "tree"] = "pipelined-ring"
    chunks: Count = 64
    """Parts that follow each other along the ring; only for ``"pipelined-ring"``."""


def pipelined_ring(p: Broadcast, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Pass chunks from rank to rank: chunks + n - 2 steps of S/chunks.

    In step t the rank i passes on chunk t - i. With many chunks the time tends to S over the
    bandwidth of a link, whatever n.
    """
    del seed
    n, c = groups.size, p.chunks
    steps: list[Step] = []
    busy_before = (0, 0)
    for t in range(c + n - 2 if n > 1 else 0):
        busy = (max(0, t - c + 1), min(t, n - 2) + 1)
        if busy == busy_before:
            steps[-1] = Step(steps[-1].src, steps[-1].dst, steps[-1].size, steps[-1].repeat + 1)
        else:
            rank = np.arange(*busy)
            steps.append(tiled(groups, rank, rank + 1, p.size / c))
        busy_before = busy
    return tuple(steps)


def tree(p: Broadcast, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Double the ranks that have the buffer at each step: ceil(log2 n) steps of S."""
    del seed
    steps, have = [], 1
    while have < groups.size:
        rank = np.arange(min(have, groups.size - have))
        steps.append(tiled(groups, rank, rank + have, p.size))
        have *= 2
    return tuple(steps)


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The buffer leaves the side of the first rank and enters the other."""
    del n, m
    return np.where(root, size, 0.0), np.where(root, 0.0, size)


PATTERN = Pattern(
    parameters=Broadcast,
    algorithms={"pipelined-ring": pipelined_ring, "tree": tree},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    cut=CutDemand(_across),
)
