"""All-reduce: every rank ends with the sum of the buffers of all."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.ring import ring_steps
from fabricsim.patterns.schedule import CutDemand, Groups, Step


class AllReduce(TrafficParameters):
    """`size` is the buffer of a rank."""

    algorithm: Literal["ring"] = "ring"


def ring(p: AllReduce, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Reduce-scatter, then all-gather, around a ring: 2 (n - 1) steps of S/n for each rank.

    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    JPDC 69 (2009), section 3.
    """
    del seed
    return ring_steps(groups, p.size / groups.size, 2 * (groups.size - 1))


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Each side must learn the sum of the other: S bytes each way."""
    del n, root
    return np.full(len(m), size), np.full(len(m), size)


def _sent(size: float, endpoints: IntArray) -> FloatArray:
    """Together 2 S (n - 1) over n endpoints (Patarasuk and Yuan, theorem 1)."""
    return 2.0 * size * (endpoints - 1).astype(np.float64)


PATTERN = Pattern(
    parameters=AllReduce,
    algorithms={"ring": ring},
    busbw_factor=lambda n: 2 * (n - 1) / n,
    cut=CutDemand(_across, _sent),
)
