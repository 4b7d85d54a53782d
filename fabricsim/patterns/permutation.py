"""Permutation: each rank sends to one other, and receives from one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.schedule import Groups, Step, tiled


class Permutation(TrafficParameters):
    """`size` is what a rank sends."""

    algorithm: Literal["random", "shift"] = "random"
    shift: int = 1
    """How many ranks further the receiver is; only for ``"shift"``."""


def random(p: Permutation, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Draw receivers at random, nobody itself: a derangement, uniform among all, from the seed."""
    n = groups.size
    if n == 1:
        return ()
    rng = np.random.default_rng(seed)
    rank = np.arange(n)
    receiver = rng.permutation(n)
    while (receiver == rank).any():
        receiver = rng.permutation(n)
    return (tiled(groups, rank, receiver, p.size),)


def shift(p: Permutation, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send to the rank that is `shift` further, cyclically."""
    del seed
    n = groups.size
    if p.shift % n == 0:
        return ()
    rank = np.arange(n)
    return (tiled(groups, rank, (rank + p.shift) % n, p.size),)


def _demand(p: Permutation, groups: Groups, seed: int) -> Step:
    steps = (random if p.algorithm == "random" else shift)(p, groups, seed)
    return steps[0] if steps else tiled(groups, [], [], p.size)


PATTERN = Pattern(
    parameters=Permutation,
    algorithms={"random": random, "shift": shift},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    demand=_demand,
)
