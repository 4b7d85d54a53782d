"""Hotspot: part of everyone's bytes goes to a few ranks, the rest to all others evenly."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fabricsim.errors import SpecError
from fabricsim.parameters import Count
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.schedule import Groups, Step, refuse_beyond, tiled


class Hotspot(TrafficParameters):
    """`size` is what a rank sends in all."""

    algorithm: Literal["direct"] = "direct"
    hotspots: Count = 1
    """How many hot ranks a group has: its first."""
    fraction: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The part of a rank's bytes that goes to the hot ranks, evenly."""


def _transfers(p: Hotspot, groups: Groups, seed: int) -> Step:
    del seed
    n = groups.size
    if p.hotspots > n:
        raise SpecError(f"traffic.hotspots = {p.hotspots} is more than the {n} ranks of a group")
    refuse_beyond(groups.count * n * n)
    others = ~np.eye(n, dtype=bool)
    hot = others & (np.arange(n) < p.hotspots)
    everywhere = others / max(n - 1, 1)
    # The only hot rank has no hot rank to send to: it sends evenly.
    many = hot.sum(axis=1, keepdims=True)
    to_hot = np.where(many > 0, hot / np.maximum(many, 1), everywhere)
    share = p.fraction * to_hot + (1 - p.fraction) * everywhere
    src, dst = np.nonzero(share)
    return tiled(groups, src, dst, p.size * share[src, dst])


def direct(p: Hotspot, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send everything at once: one step of n (n - 1) transfers.

    Pfister and Norton, "Hot spot contention and combining in multistage interconnection networks",
    IEEE Trans. Computers 34(10), 1985.
    """
    return (_transfers(p, groups, seed),)


PATTERN = Pattern(
    parameters=Hotspot,
    algorithms={"direct": direct},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    demand=_transfers,
)
