"""All-gather: every rank ends with the parts of all, one after the other."""

from __future__ import annotations

from typing import Literal

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.ring import ring_steps
from fabricsim.patterns.schedule import CutDemand, Groups, Step


class AllGather(TrafficParameters):
    """`size` is the whole output of a rank."""

    algorithm: Literal["ring"] = "ring"


def ring(p: AllGather, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Pass the parts around a ring: n - 1 steps of S/n for each rank."""
    del seed
    return ring_steps(groups, p.size / groups.size, groups.size - 1)


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The parts of the inside leave at least once, those of the outside enter at least once."""
    del root
    return size * m / n, size * (n - m) / n


PATTERN = Pattern(
    parameters=AllGather,
    algorithms={"ring": ring},
    busbw_factor=lambda n: (n - 1) / n,
    cut=CutDemand(_across),
)
