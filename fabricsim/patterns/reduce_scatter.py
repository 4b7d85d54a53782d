"""Reduce-scatter: every rank ends with its part of the sum of all buffers."""

from __future__ import annotations

from typing import Literal

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.ring import ring_steps
from fabricsim.patterns.schedule import CutDemand, Groups, Step


class ReduceScatter(TrafficParameters):
    """`size` is the whole input of a rank."""

    algorithm: Literal["ring"] = "ring"


def ring(p: ReduceScatter, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Pass partial sums around a ring: n - 1 steps of S/n for each rank."""
    del seed
    return ring_steps(groups, p.size / groups.size, groups.size - 1)


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """One partial sum leaves for each part that ends outside, one enters for each inside."""
    del root
    return size * (n - m) / n, size * m / n


PATTERN = Pattern(
    parameters=ReduceScatter,
    algorithms={"ring": ring},
    busbw_factor=lambda n: (n - 1) / n,
    cut=CutDemand(_across),
)
