"""All-to-all: each rank sends a part of its buffer to each other rank."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from fabricsim.arrays import IntArray
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.grid import Grid, levels, whole_torus
from fabricsim.patterns.lanes import Carried, Lane, in_steps
from fabricsim.patterns.schedule import Groups, Step, refuse_beyond, tiled


class AllToAll(TrafficParameters):
    """`size` is the whole send buffer of a rank, its own part included."""

    algorithm: Literal["auto", "direct", "pairwise", "hierarchical", "torus-dimension"] = "direct"


def _all_pairs(p: AllToAll, groups: Groups, seed: int) -> Step:
    del seed
    n = groups.size
    refuse_beyond(groups.count * n * (n - 1))
    src, dst = np.nonzero(~np.eye(n, dtype=bool))
    return tiled(groups, src, dst, p.size / n)


def _lane(p: AllToAll, groups: Groups, src: IntArray, dst: IntArray, start: int = 0) -> Lane:
    """Make transfers that carry the part of their own two ranks."""
    n = groups.size

    def carries(which: IntArray, round_: IntArray) -> Carried:
        del round_
        return np.arange(len(which)), src[which] * n + dst[which], p.size / n

    return Lane(src, dst, p.size / n, carries, start=start, adds=False)


def direct(p: AllToAll, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Every part straight to its rank, all at once: one step of n (n - 1) x S/n."""
    del seed
    refuse_beyond(groups.count * groups.size * (groups.size - 1))
    src, dst = np.nonzero(~np.eye(groups.size, dtype=bool))
    return in_steps(groups, [_lane(p, groups, src, dst)])


def pairwise(p: AllToAll, groups: Groups, seed: int) -> tuple[Step, ...]:
    """One partner at a time, in step t the rank t further: n - 1 steps of S/n.

    Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
    """
    del seed
    rank = np.arange(groups.size)
    return in_steps(
        groups,
        [
            _lane(p, groups, rank, (rank + t) % groups.size, start=t - 1)
            for t in range(1, groups.size)
        ],
    )


def hierarchical(p: AllToAll, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Gather inside first, then one message across: a step a level, of k - 1 x S/k.

    In a tray (rack, node) each rank gives to the mate at the receiver's position what is for that
    position anywhere; so there is one message from rank to rank across, larger by the mates. The
    levels are those of the fabric, the innermost first. Each rank sends S (k - 1)/k at each level
    of k. NCCL's PXN does this by NVLink and rails (Jeaugey, "Doubling all2all performance with
    NCCL 2.12", 2022).
    """
    del seed
    return _by_axis(p, groups, levels(groups))


def torus_dimension(p: AllToAll, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Dimension by dimension on a torus, x first: a step a dimension, of k - 1 x S/k.

    What is for other planes is gathered at the place in the row from which it goes on. The bytes
    on each link are those of `direct`, but dimensions work one after the other. Each rank sends
    S (k - 1)/k in each dimension of k. Suh and Shin, "All-to-all personalized communication in
    multidimensional torus and mesh networks", IEEE TPDS 12(1), 2001.
    """
    del seed
    return _by_axis(p, groups, whole_torus(groups))


def _by_axis(p: AllToAll, groups: Groups, box: Grid) -> tuple[Step, ...]:
    n = groups.size
    rank = np.arange(n)
    refuse_beyond(groups.count * n * (max(box.sizes) - 1))
    lanes = []
    for axis, k in enumerate(box.sizes):
        for hops in range(1, k):
            peer = box.moved(axis, hops)
            carries = partial(_through, p, box, axis, peer)
            lanes.append(Lane(rank, peer, p.size / k, carries, start=axis, adds=False))
    return in_steps(groups, lanes)


def _through(
    p: AllToAll, box: Grid, axis: int, peer: IntArray, which: IntArray, round_: IntArray
) -> Carried:
    """Tell what goes from a rank to its peer: axes before are those of the receiver already."""
    del round_
    n, many = len(box.index), len(box.sizes)
    place = box.index[which]
    later, done = range(axis, many), range(axis)
    source = (box.index[None, :, later] == place[:, None, later]).all(axis=2)
    target = (box.index[None, :, done] == place[:, None, done]).all(axis=2)
    target &= box.index[None, :, axis] == box.index[peer[which], axis][:, None]
    row, one, other = np.nonzero(source[:, :, None] & target[:, None, :])
    return row, one * n + other, p.size / n


PATTERN = Pattern(
    parameters=AllToAll,
    algorithms={
        "direct": direct,
        "pairwise": pairwise,
        "hierarchical": hierarchical,
        "torus-dimension": torus_dimension,
    },
    busbw_factor=lambda n: (n - 1) / n,
    demand=_all_pairs,
    needs={"hierarchical": levels, "torus-dimension": whole_torus},
)
