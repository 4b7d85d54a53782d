"""All-to-all: each rank sends a part of its buffer to each other rank."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.schedule import Groups, Step, refuse_beyond, tiled


class AllToAll(TrafficParameters):
    """`size` is the whole send buffer of a rank, its own part included."""

    algorithm: Literal["direct"] = "direct"


def _all_pairs(p: AllToAll, groups: Groups, seed: int) -> Step:
    del seed
    n = groups.size
    refuse_beyond(groups.count * n * (n - 1))
    src, dst = np.nonzero(~np.eye(n, dtype=bool))
    return tiled(groups, src, dst, p.size / n)


def direct(p: AllToAll, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send every part straight to its rank, all at once: one step of n (n - 1) times S/n."""
    return (_all_pairs(p, groups, seed),)


PATTERN = Pattern(
    parameters=AllToAll,
    algorithms={"direct": direct},
    busbw_factor=lambda n: (n - 1) / n,
    demand=_all_pairs,
)
