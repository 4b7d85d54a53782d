"""Uniform random: each rank sends messages to others drawn at random."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabricsim.parameters import Count
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.schedule import Groups, Step, refuse_beyond, tiled


class UniformRandom(TrafficParameters):
    """`size` is what a rank sends in all."""

    algorithm: Literal["direct"] = "direct"
    messages: Count = 16
    """How many a rank sends, of equal size."""


def _drawn(p: UniformRandom, groups: Groups, seed: int) -> Step:
    n = groups.size
    if n == 1:
        return tiled(groups, [], [], 0.0)
    refuse_beyond(groups.ranks * p.messages)
    rng = np.random.default_rng(seed)
    rank = np.repeat(np.arange(groups.ranks, dtype=np.int32), p.messages)
    place, first = rank % n, rank - rank % n
    receiver = (place + rng.integers(1, n, len(rank))) % n + first
    return Step(rank, receiver.astype(np.int32), np.full(len(rank), p.size / p.messages))


def direct(p: UniformRandom, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send all messages at once: one step of S/messages each, to others drawn with replacement.

    Dally and Towles, "Principles and practices of interconnection networks" (2004);
    the all-to-all is the same traffic without chance.
    """
    return (_drawn(p, groups, seed),)


PATTERN = Pattern(
    parameters=UniformRandom,
    algorithms={"direct": direct},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    demand=_drawn,
)
