"""All-reduce: every rank ends with the sum of the buffers of all."""

from __future__ import annotations

import numpy as np

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.patterns import Pattern
from fabricsim.patterns.reducing import CHUNKED, NEEDS, Reducing, algorithms
from fabricsim.patterns.schedule import CutDemand


class AllReduce(Reducing):
    """`size` is the buffer of a rank."""


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Each side must learn the sum of the other: S bytes each way."""
    del n, root
    return np.full(len(m), size), np.full(len(m), size)


def _sent(size: float, endpoints: IntArray) -> FloatArray:
    """Together 2 S (n - 1) over n endpoints (Patarasuk and Yuan, theorem 1)."""
    return 2.0 * size * (endpoints - 1).astype(np.float64)


PATTERN = Pattern(
    parameters=AllReduce,
    algorithms=algorithms("all-reduce"),
    busbw_factor=lambda n: 2 * (n - 1) / n,
    cut=CutDemand(_across, _sent),
    needs=NEEDS,
    chunked=CHUNKED,
)
