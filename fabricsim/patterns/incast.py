"""Incast: all other ranks of a group send to the first."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.schedule import Groups, Step, tiled


class Incast(TrafficParameters):
    """`size` is what each sender sends."""

    algorithm: Literal["direct"] = "direct"


def _to_first(p: Incast, groups: Groups, seed: int) -> Step:
    del seed
    senders = np.arange(1, groups.size)
    return tiled(groups, senders, np.zeros_like(senders), p.size)


def direct(p: Incast, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send everything at once: one step of n - 1 times S."""
    return (_to_first(p, groups, seed),)


PATTERN = Pattern(
    parameters=Incast,
    algorithms={"direct": direct},
    busbw_factor=lambda n: float(n - 1),
    demand=_to_first,
)
