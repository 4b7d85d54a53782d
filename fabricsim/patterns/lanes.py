"""Lanes: transfers that overlap in time, and how they become the steps of a schedule.

An algorithm says from which step on each transfer is done, and how many times; `in_steps` cuts
that into steps, and takes together consecutive ones that are alike. Pipelines come out of it by
themselves. `mirrored` turns a reduce-scatter into an all-gather, and a broadcast into a reduce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.patterns.schedule import Content, Groups, Step, tiled

Carried = tuple[IntArray, IntArray, ArrayLike]
"""Rows of what transfers carry: which transfer, which block, and the block's bytes."""

Carries = Callable[[IntArray, IntArray], Carried]
"""Some transfers of a lane (indices), the round that each is in -> what they carry."""


@dataclass(frozen=True, eq=False)
class Lane:
    """Transfers of one group, each done `rounds` times in consecutive steps.

    Attributes
    ----------
    src, dst : (transfers,) ints
        Ranks within the group.
    size : float or (transfers,) floats
        Bytes, the same in every round.
    carries : callable
        Tells what transfers carry.
    rounds : int
    start : int or (transfers,) ints
        The step of the first round.
    adds : bool
        Whether the receiver adds what it gets to what it has, or puts it in its place.
    """

    src: IntArray
    dst: IntArray
    size: ArrayLike
    carries: Carries
    rounds: int = 1
    start: int | IntArray = 0
    adds: bool = True


def in_steps(groups: Groups, lanes: Sequence[Lane], *, merge: bool = True) -> tuple[Step, ...]:
    """Cut lanes into steps, the same in all groups.

    Parameters
    ----------
    groups : Groups
    lanes : sequence of Lane
    merge : bool
        Whether what a rank sends to another in one step is one transfer.

    Examples
    --------
    Three chunks along two hops: both hops are busy in the second and the third step.

    >>> hop = np.arange(2)
    >>> lane = Lane(hop, hop + 1, 8.0, lambda which, round_: (which, round_, 8.0), 3, start=hop)
    >>> [(step.src.tolist(), step.repeat) for step in in_steps(Groups(3, 1), [lane])]
    [([0], 1), ([0, 1], 2), ([1], 1)]
    """
    lanes = [lane for lane in lanes if len(lane.src) and lane.rounds]
    if not lanes:
        return ()
    length = [len(lane.src) for lane in lanes]
    of_lane = np.repeat(np.arange(len(lanes)), length)
    in_lane = np.concatenate([np.arange(m) for m in length])
    src = np.concatenate([lane.src for lane in lanes])
    dst = np.concatenate([lane.dst for lane in lanes])
    size = np.concatenate([_each(lane.size, m) for lane, m in zip(lanes, length, strict=True)])
    start = np.concatenate([_each(lane.start, m) for lane, m in zip(lanes, length, strict=True)])
    start = start.astype(np.int64)
    stop = start + np.array([lane.rounds for lane in lanes])[of_lane]

    def content(active: IntArray, transfer: IntArray, step: int) -> Content:
        rows: list[IntArray] = []
        blocks, sizes, adds = [], [], []
        for index in np.unique(of_lane[active]):
            own = np.flatnonzero(of_lane[active] == index)
            which = in_lane[active[own]]
            row, block, bytes_ = lanes[index].carries(which, step - start[active[own]])
            rows.append(transfer[own[row]])
            blocks.append(block)
            sizes.append(_each(bytes_, len(row)))
            adds.append(np.full(len(row), lanes[index].adds))
        return Content(*map(np.concatenate, (rows, blocks, sizes, adds)))

    steps = []
    for begin, end in pairwise(np.unique(np.concatenate([start, stop])).tolist()):
        active = np.flatnonzero((start <= begin) & (begin < stop))
        if len(active):
            pair = src[active] * np.int64(groups.size) + dst[active]
            first, transfer = _distinct(pair) if merge else (np.arange(len(active)),) * 2
            total = np.bincount(transfer, size[active])
            step = tiled(groups, src[active][first], dst[active][first], total, end - begin)
            told = _Told(content, active, transfer, begin)
            steps.append(replace(step, content=told))
    return tuple(steps)


def _distinct(pair: IntArray) -> tuple[IntArray, IntArray]:
    """Keep the first of equal pairs, in their order; tell which each becomes."""
    _, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[inverse]


@dataclass(frozen=True, eq=False)
class _Told:
    """The content of a step by the number of its execution."""

    content: Callable[[IntArray, IntArray, int], Content]
    active: IntArray
    transfer: IntArray
    begin: int

    def __call__(self, k: int) -> Content:
        return self.content(self.active, self.transfer, self.begin + k)


def _each(value: ArrayLike, length: int) -> FloatArray:
    return np.broadcast_to(np.asarray(value, np.float64), length)


def mirrored(steps: Sequence[Step], *, adds: bool = False) -> tuple[Step, ...]:
    """Run steps backwards in time, each transfer the other way.

    Where partial sums came together on their way to a block's owner, the whole sum now spreads
    from the owner to all; and the other way round.

    Parameters
    ----------
    steps : sequence of Step
    adds : bool
        Whether receivers add what they get in the mirrored steps.
    """

    def mirror(step: Step) -> Step:
        content = step.content
        assert content is not None

        def backwards(k: int) -> Content:
            told = content(step.repeat - 1 - k)
            return replace(told, adds=np.full(len(told.block), adds))

        return replace(step, src=step.dst, dst=step.src, content=backwards)

    return tuple(mirror(step) for step in reversed(steps))


def marked(mask: Callable[[IntArray], BoolArray], size: float) -> Carries:
    """Tell what transfers carry by a table of transfers x blocks, for a lane of one round.

    Parameters
    ----------
    mask : callable
        Some of the transfers (indices) -> (these, blocks) bools.
    size : float
        Bytes of a block.
    """

    def carries(which: IntArray, round_: IntArray) -> Carried:
        del round_
        row, block = np.nonzero(mask(which))
        return row, block, size

    return carries
