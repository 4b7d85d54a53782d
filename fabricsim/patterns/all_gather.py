"""All-gather: every rank ends with the parts of all, one after the other."""

from __future__ import annotations

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.patterns import Pattern
from fabricsim.patterns.reducing import CHUNKED, NEEDS, Reducing, algorithms
from fabricsim.patterns.schedule import CutDemand


class AllGather(Reducing):
    """`size` is the whole output of a rank."""


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The parts of the inside leave at least once, those of the outside enter at least once."""
    del root
    return size * m / n, size * (n - m) / n


PATTERN = Pattern(
    parameters=AllGather,
    algorithms=algorithms("all-gather"),
    busbw_factor=lambda n: (n - 1) / n,
    cut=CutDemand(_across),
    needs=NEEDS,
    chunked=CHUNKED,
)
