"""Schedule: what the ranks of a job send, step by step. Only data, and how groups are laid out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.errors import TooLargeError

RankArray = NDArray[np.int32]

MOST_TRANSFERS = 30_000_000
"""Transfers of one step that are written out; about 2 GB with the routes of short paths."""


@dataclass(frozen=True)
class Groups:
    """Groups of consecutive ranks that run the same collective at once."""

    size: int
    """Ranks in a group."""
    count: int
    """How many groups."""

    @property
    def ranks(self) -> int:
        """Ranks of all groups."""
        return self.size * self.count


@dataclass(frozen=True, eq=False)
class Step:
    """Transfers that start together.

    Attributes
    ----------
    src, dst : (transfers,) int32
        Ranks.
    size : (transfers,) floats
        Bytes.
    repeat : int
        How many times the step is done, one after the other.
    """

    src: RankArray
    dst: RankArray
    size: FloatArray
    repeat: int = 1


@dataclass(frozen=True)
class CutDemand:
    """How many bytes a collective must at least bring into and out of a part of the machine.

    `bytes_across(size, n, m, root)` takes the collective's size (bytes), the ranks `n` of a
    group, the ranks `m` of it that lie in the part, and whether the group's first rank does; it
    returns the bytes that must leave the part and those that must enter it. All but `size` are
    arrays. It is only called with 0 < m < n.
    """

    bytes_across: Callable[[float, int, IntArray, BoolArray], tuple[FloatArray, FloatArray]]
    bytes_sent: Callable[[float, IntArray], FloatArray] | None = None
    """Bytes that the endpoints of a group send at least together, for (size, endpoints)."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """Steps in order: each starts when the one before is done."""

    groups: Groups
    steps: tuple[Step, ...]
    size: float
    """Bytes, as the collective defines it."""
    busbw_factor: float
    """busbw / algbw."""
    demand: Step | None = None
    """What must go from whom to whom, whatever the algorithm; None where the algorithm decides."""
    cut: CutDemand | None = None
    """What must cross any cut, whatever the algorithm."""
    ranks_per_chip: int = 1

    @property
    def transfers(self) -> int:
        """Transfers of all steps."""
        return sum(len(step.src) * step.repeat for step in self.steps)


def tiled(groups: Groups, src: ArrayLike, dst: ArrayLike, size: ArrayLike, repeat: int = 1) -> Step:
    """Lay the transfers of one group over all groups.

    Parameters
    ----------
    groups : Groups
    src, dst : (transfers,) ints
        Ranks within the group.
    size : float or (transfers,) floats
        Bytes.
    repeat : int
        How many times the step is done.

    Raises
    ------
    TooLargeError
        More transfers than can be written out.
    """
    one, other = np.asarray(src, np.int32), np.asarray(dst, np.int32)
    refuse_beyond(groups.count * len(one))
    base = np.arange(groups.count, dtype=np.int32)[:, None] * np.int32(groups.size)
    sizes = np.broadcast_to(np.asarray(size, np.float64), (groups.count, len(one)))
    return Step((base + one).ravel(), (base + other).ravel(), sizes.ravel(), repeat)


def refuse_beyond(transfers: int) -> None:
    """Raise TooLargeError where a step has more transfers than can be written out."""
    if transfers > MOST_TRANSFERS:
        raise TooLargeError(
            f"{transfers:,} transfers in one step, and at most {MOST_TRANSFERS:,} fit: take fewer "
            "endpoints (topology.endpoints, topology.dims), or a smaller traffic.group_size"
        )
