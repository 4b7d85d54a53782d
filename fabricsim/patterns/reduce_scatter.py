"""Reduce-scatter: every rank ends with its part of the sum of all buffers."""

from __future__ import annotations

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.patterns import Pattern
from fabricsim.patterns.reducing import CHUNKED, NEEDS, Reducing, algorithms
from fabricsim.patterns.schedule import CutDemand


class ReduceScatter(Reducing):
    """`size` is the whole input of a rank."""


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """One partial sum leaves for each part that ends outside, one enters for each inside."""
    del root
    return size * (n - m) / n, size * m / n


PATTERN = Pattern(
    parameters=ReduceScatter,
    algorithms=algorithms("reduce-scatter"),
    busbw_factor=lambda n: (n - 1) / n,
    cut=CutDemand(_across),
    needs=NEEDS,
    chunked=CHUNKED,
)
