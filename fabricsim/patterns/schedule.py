"""Schedule: what the ranks of a job send, step by step. Only data, and how groups are laid out.

How an algorithm's transfers become steps is in `lanes`. Where ranks stand, for algorithms that
care, is in `Placement`, which the caller fills in: nothing here knows a fabric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.errors import SpecError, TooLargeError

RankArray = NDArray[np.int32]

SUM, COPY = 1, 2
"""What switches may do with transfers on their way: see `Step.combine`."""

MOST_TRANSFERS = 30_000_000
"""Transfers of one step that are written out; about 2 GB with the routes of short paths."""


CORE = "core"
"""The axis of the ranks that share a chip."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the endpoints, or the ranks, of a machine stand.

    Attributes
    ----------
    axes : tuple of str
        Names of the axes, such as rack, tray, position; or x, y, z.
    coordinates : (endpoints, axes) ints
    rings : tuple of bool
        For each axis, whether neighbours along it are joined, the last to the first.
    usage : callable
        Gives (axes, links) floats: for how many seconds one byte that an endpoint sends along an
        axis, evenly to its neighbours or peers there, keeps each of its links busy.
    injection_Bps : float
        What an endpoint, or a rank, can send in all.
    reduces : bool
        Whether the switches add up what they pass on.
    """

    axes: tuple[str, ...]
    coordinates: IntArray
    rings: tuple[bool, ...]
    usage: Callable[[], FloatArray]
    injection_Bps: float = 0.0
    reduces: bool = False

    def of_ranks(self, ranks_per_chip: int) -> Placement:
        """Place the ranks of a chip along an axis of their own, which costs nothing to cross."""
        if ranks_per_chip == 1:
            return self
        core = np.tile(np.arange(ranks_per_chip), len(self.coordinates))
        return Placement(
            (*self.axes, CORE),
            np.column_stack([np.repeat(self.coordinates, ranks_per_chip, axis=0), core]),
            (*self.rings, False),
            lambda: np.pad(self.usage(), ((0, 1), (0, 0))),
            self.injection_Bps / ranks_per_chip,
            self.reduces,
        )


NOWHERE = Placement((), np.zeros((0, 0), np.int32), (), lambda: np.zeros((0, 0)))
"""The placement of ranks of which nothing is known."""


@dataclass(frozen=True)
class Groups:
    """Groups of consecutive ranks that run the same collective at once."""

    size: int
    """Ranks in a group."""
    count: int
    """How many groups."""
    placement: Placement = NOWHERE
    """Of all ranks, in the order of the groups."""

    @property
    def ranks(self) -> int:
        """Ranks of all groups."""
        return self.size * self.count


@dataclass(frozen=True, eq=False)
class Content:
    """What the transfers of one execution of a step carry: rows of (transfer, block).

    Every block of a collective's data has a number. A transfer either adds its blocks to those of
    the receiver, or puts them in their place. What a step sends it had before the step, except in
    a step with `combine`: there, switches do the sums before the copies.

    Attributes
    ----------
    transfer : (rows,) ints
        Index into the step's transfers, within the first group.
    block : (rows,) ints
    size : (rows,) floats
        Bytes of the block.
    adds : (rows,) bools
    """

    transfer: IntArray
    block: IntArray
    size: FloatArray
    adds: BoolArray


@dataclass(frozen=True, eq=False)
class Order:
    """Which transfers of a step wait for which others of it.

    Attributes
    ----------
    before, after : (pairs,) ints
        Transfer `after[i]` waits until transfer `before[i]` has arrived, with its latency.
    delay : (transfers,) floats
        Seconds between the moment when nothing holds a transfer back and its start.
    """

    before: IntArray
    after: IntArray
    delay: FloatArray


@dataclass(frozen=True, eq=False)
class Step:
    """Transfers that start together, unless they have an order of their own.

    Attributes
    ----------
    src, dst : (transfers,) int32
        Ranks.
    size : (transfers,) floats
        Bytes.
    repeat : int
        How many times the step is done, one after the other.
    content : callable, optional
        Tells what the transfers carry the k-th time, k = 0 to repeat - 1. The simulation does not
        need it; it proves that an algorithm does what its name says.
    combine : (transfers,) ints, optional
        `SUM` where switches add up all such transfers to a rank on their way, and `COPY` where
        they make the copies of all such transfers from a rank: each link carries one for all of
        them. The rank's own part goes by the switch, too. 0 for other transfers.
    start : (transfers,) floats, optional
        Seconds after the start of the step at which each transfer starts; 0 if left out.
    order : Order, optional
        Where given, transfers of no bytes, or from a rank to itself, count too: as computations.
    """

    src: RankArray
    dst: RankArray
    size: FloatArray
    repeat: int = 1
    content: Callable[[int], Content] | None = None
    combine: IntArray | None = None
    start: FloatArray | None = None
    order: Order | None = None


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
    chunks: int | None = None
    """Into how many the algorithm cuts the data, if it does."""

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


def chunk_count(chunks: int | str) -> int:
    """Give the number of chunks, where it has been chosen.

    Raises
    ------
    SpecError
        It is still ``"best"``: only a run of the collective alone can tell.
    """
    if isinstance(chunks, str):
        raise SpecError(f"chunks = {chunks!r} is found by trying: give a number here")
    return chunks


def refuse_beyond(transfers: int) -> None:
    """Raise TooLargeError where a step has more transfers than can be written out."""
    if transfers > MOST_TRANSFERS:
        raise TooLargeError(
            f"{transfers:,} transfers in one step, and at most {MOST_TRANSFERS:,} fit: take fewer "
            "endpoints (topology.endpoints, topology.dims), or a smaller traffic.group_size"
        )
