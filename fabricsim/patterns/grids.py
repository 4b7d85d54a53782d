"""Algorithms that go axis by axis, for all-reduce, all-gather and reduce-scatter.

Along each axis of a grid the ranks reduce-scatter what they hold, so that less is left for the
next axis; all-gathers undo it. The axes may be levels (tray, rack) or the dimensions of a torus.
With chunks, all axes are busy at once, each with another chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import lcm, prod
from typing import TYPE_CHECKING

import numpy as np

from fabricsim.arrays import FloatArray, IntArray
from fabricsim.patterns.grid import Grid, levels, switched_levels, whole_torus
from fabricsim.patterns.lanes import Carried, Lane, in_steps
from fabricsim.patterns.schedule import Groups, Step, chunk_count

if TYPE_CHECKING:
    from fabricsim.patterns.reducing import Kind, Reducing


def hierarchical(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """Level by level: reduce-scatter inside, all-reduce across, all-gather inside.

    The levels are those of the fabric, such as position, tray, rack, the innermost first; a level
    of k ranks takes one step, all pairs at once. On a torus they are the axes, x first, in rings
    of k - 1 steps that go one way. A rank sends S (n - 1)/n, all-reduce twice that, but across a
    level only what the levels inside have left: S (k - 1)/k over the ranks inside. In c chunks the
    levels work at the same time: as many steps as the longest level takes, (c + levels - 1) times,
    levels counted twice in an all-reduce. Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005;
    Cho et al., "BlueConnect", SysML 2019.
    """
    box = levels(groups)
    order = tuple(range(len(box.sizes)))
    parts = [_Part(order, 1, 1.0)]
    return _stages(p.size, groups, kind, box, parts, chunk_count(p.chunks))


def torus(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """All dimensions of a torus at once: parts of the buffer take them in different orders.

    Each part goes round its rings both ways, half of it each; parts are sized so that the links of
    all dimensions are done at the same time, whatever their length and bandwidth (a small linear
    program over the orders). Steps: k - 1 of the longest dimension for each dimension, all-reduce
    twice that; in c chunks c + dimensions - 1 times that of one. A rank sends S (n - 1)/n,
    all-reduce twice that, spread over all its links. Sack and Gropp, "Collective algorithms for
    multiported torus networks", ACM Trans. Parallel Comput. 1(2), 2015; Jain and
    Sabharwal, ICS 2010.
    """
    box = whole_torus(groups)
    chunks = chunk_count(p.chunks)
    parts = [
        _Part(order, way, weight / 2)
        for order, weight in _weights(groups, box, chunks, kind)
        for way in (1, -1)
    ]
    return _stages(p.size, groups, kind, box, parts, chunks)


def all_levels(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """All levels at once: parts of the buffer take tray, rack and so on in different orders.

    Inside first, as `hierarchical` does, leaves the links across half idle while those inside
    work. Here parts are sized so that all links of a rank are done at the same time, as far as
    they can (a small linear program over the orders). Steps: one for each level, all-reduce twice
    that; in c chunks c - 1 more. A rank sends S (n - 1)/n, all-reduce twice that, spread over all
    its links. The idea of Rashidi et al., "Themis: a network bandwidth-aware collective scheduling
    policy for distributed training of DL models", ISCA 2022, who choose orders chunk by chunk.
    """
    box = switched_levels(groups)
    chunks = chunk_count(p.chunks)
    parts = [_Part(order, 1, weight) for order, weight in _weights(groups, box, chunks, kind)]
    return _stages(p.size, groups, kind, box, parts, chunks)


@dataclass(frozen=True)
class _Part:
    """A part of the buffer: the order of its axes, the way round them, its share of the bytes."""

    order: tuple[int, ...]
    way: int
    share: float


def _rounds(box: Grid, axis: int) -> int:
    """Steps of a reduce-scatter along an axis."""
    return box.sizes[axis] - 1 if box.rings[axis] else 1


def _kinds(axes: int, kind: Kind) -> list[tuple[int, bool]]:
    """Stages in order: the position in the order of axes, and whether it gathers."""
    scatter, gather = [(s, False) for s in range(axes)], [(s, True) for s in reversed(range(axes))]
    return {"reduce-scatter": scatter, "all-gather": gather, "all-reduce": scatter + gather}[kind]


def _stages(
    size_B: float, groups: Groups, kind: Kind, box: Grid, parts: Sequence[_Part], chunks: int
) -> tuple[Step, ...]:
    """Make the steps of all parts.

    A stage takes as many steps as its longest axis. The others are stretched to it: a block is cut
    into as many pieces as there are steps, and a ring of k ranks sends k - 1 of them in each; what
    it passes on it has got a step earlier at the latest. So all links are evenly busy.
    """
    stages = _kinds(len(box.sizes), kind)
    length = [max(_rounds(box, part.order[s]) for part in parts) for s, _ in stages]
    if chunks > 1:
        length = [max(length)] * len(stages)
    pieces = lcm(*length)
    start = np.concatenate([[0], np.cumsum(length)]).tolist()
    lanes: list[Lane] = []
    for i, (s, gathers) in enumerate(stages):
        for number, part in enumerate(parts):
            block = _Blocks(box, part, number, len(parts), chunks, pieces, length[i], size_B)
            lanes += block.lanes(s, start[i], gathers=gathers)
    return in_steps(groups, lanes)


@dataclass(frozen=True)
class _Blocks:
    """What one part moves in one stage; its finest blocks are (owner, part, chunk, piece)."""

    box: Grid
    part: _Part
    number: int
    parts: int
    chunks: int
    pieces: int
    steps: int
    size_B: float

    def lanes(self, s: int, start: int, *, gathers: bool) -> list[Lane]:
        """Make the transfers of a stage: to the next neighbour, or to each peer of an axis."""
        box, axis = self.box, self.part.order[s]
        n, k = prod(box.sizes), box.sizes[axis]
        rank = np.arange(n)
        held_B = self.size_B * self.part.share / self.chunks
        for done in self.part.order[: s + 1]:
            held_B /= box.sizes[done]
        found = []
        # What gathers goes round the same way: the mirror image of a ring that goes the other way.
        ring = box.rings[axis]
        way = -self.part.way if gathers and ring else self.part.way
        for hops in [way] if ring else range(1, k):
            peer = box.moved(axis, hops)
            size = held_B * ((k - 1) if ring else 1) / self.steps

            def carries(which: IntArray, round_: IntArray, hops: int = hops) -> Carried:
                return self._carried(s, hops, which, round_, gathers=gathers)

            src, dst = (peer, rank) if gathers else (rank, peer)
            rounds = self.chunks * self.steps
            found.append(Lane(src, dst, size, carries, rounds, start, adds=not gathers))
        return found

    def _carried(
        self, s: int, hops: int, which: IntArray, round_: IntArray, *, gathers: bool
    ) -> Carried:
        """Tell the blocks that the reduce-scatter from each of some ranks moves."""
        box, axis = self.box, self.part.order[s]
        chunk, step = np.divmod(round_, self.steps)
        if gathers:
            step = self.steps - 1 - step
        many = box.sizes[axis] - 1 if box.rings[axis] else 1
        # In each step `many` pieces of a block, out of `steps` pieces for each round of the axis.
        row, j = np.divmod(np.arange(len(which) * many), many)
        turn, piece = np.divmod(step[row] * many + j, self.steps)
        place = box.index[which[row]]
        target = (
            place[:, axis] + hops if not box.rings[axis] else place[:, axis] - hops * (1 + turn)
        )
        matches = box.index[None, :, axis] == (target % box.sizes[axis])[:, None]
        for done in self.part.order[:s]:
            matches &= box.index[None, :, done] == place[:, done, None]
        line, owner = np.nonzero(matches)
        fine = self.pieces // self.steps
        each = np.arange(fine)
        first = (owner * self.parts + self.number) * self.chunks + chunk[row[line]]
        block = first[:, None] * self.pieces + piece[line][:, None] * fine + each
        share = self.part.share / (prod(box.sizes) * self.chunks * self.pieces)
        return np.repeat(row[line], fine), block.ravel(), self.size_B * share


def _weights(
    groups: Groups, box: Grid, chunks: int, kind: Kind
) -> list[tuple[tuple[int, ...], float]]:
    """Share the buffer among the orders of the axes, so that it takes the least time.

    The steps of a stage, or of all stages that overlap, last as long as the link of a rank with
    the most bytes for its bandwidth. Minimised over the shares that is a linear program.
    """
    from scipy.optimize import linprog

    orders = list(permutations(range(len(box.sizes))))
    stages = _kinds(len(box.sizes), kind)
    # load[stage, axis, order]: bytes along the axis, of a buffer of one byte
    load = np.zeros((len(stages), len(box.sizes), len(orders)))
    for o, order in enumerate(orders):
        for i, (s, _) in enumerate(stages):
            inside = prod(box.sizes[axis] for axis in order[:s])
            k = box.sizes[order[s]]
            load[i, order[s], o] = (k - 1) / k / inside
    times: dict[tuple[int, ...], int] = {}
    for m in range(chunks + len(stages) - 1):
        active = tuple(i for i in range(len(stages)) if 0 <= m - i < chunks)
        times[active] = times.get(active, 0) + 1
    usage = groups.placement.usage()[list(box.columns)] * np.where(box.halved, 2.0, 1.0)[:, None]
    usage /= usage.max()
    links = usage.shape[1]
    rows: list[FloatArray] = []
    for t, active in enumerate(times):
        lasts = np.zeros((links, len(times)))
        lasts[:, t] = -1.0
        rows.append(np.hstack([usage.T @ load[list(active)].sum(axis=0), lasts]))
    cost = np.concatenate([np.zeros(len(orders)), list(times.values())])
    whole = np.concatenate([np.ones(len(orders)), np.zeros(len(times))])
    found = linprog(cost, np.vstack(rows), np.zeros(links * len(times)), [whole], [1.0])
    assert found.x is not None, found.message
    share = found.x[: len(orders)]
    share = np.where(share > 1e-9, share, 0.0) / share[share > 1e-9].sum()
    return [(orders[o], float(share[o])) for o in np.flatnonzero(share)]
