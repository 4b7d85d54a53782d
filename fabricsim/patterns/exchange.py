"""Algorithms by pairs of ranks, for all-reduce, all-gather and reduce-scatter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fabricsim.arrays import IntArray
from fabricsim.errors import SpecError
from fabricsim.patterns.lanes import Carried, Lane, in_steps, marked, mirrored
from fabricsim.patterns.schedule import COPY, CORE, SUM, Groups, Step, refuse_beyond

if TYPE_CHECKING:
    from fabricsim.patterns.reducing import Kind, Reducing


def _all_pairs(groups: Groups, size_B: float, *, gather: bool = False) -> Lane:
    """Bring the block of every rank from all others to it, or from it to all others."""
    n = groups.size
    refuse_beyond(groups.count * n * (n - 1))
    src, dst = np.nonzero(~np.eye(n, dtype=bool))
    block = src if gather else dst

    def carries(which: IntArray, round_: IntArray) -> Carried:
        del round_
        return np.arange(len(which)), block[which], size_B / n

    return Lane(src, dst, size_B / n, carries, adds=not gather)


def direct(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """Straight to the owner of each block: one step of n (n - 1) x S/n; all-reduce two.

    Each rank sends S (n - 1)/n, all-reduce twice that, as a ring does. Thakur, Rabenseifner and
    Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005
    (the pairwise exchange, here all pairs at once).
    """
    scatter = in_steps(groups, [_all_pairs(groups, p.size)])
    gather = in_steps(groups, [_all_pairs(groups, p.size, gather=True)])
    return {"reduce-scatter": scatter, "all-gather": gather, "all-reduce": scatter + gather}[kind]


def reducing_switches(groups: Groups) -> None:
    """Check that switches can reduce for the groups.

    Raises
    ------
    SpecError
        They cannot.
    """
    if not groups.placement.reduces:
        raise SpecError("the switches of this fabric do not reduce (in_network_reduction)")
    if CORE in groups.placement.axes:
        raise SpecError("it takes one rank a chip (ranks_per_chip = 1)")


def in_network(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """Switches add up and copy: one step; a rank sends and gets S (n + 1)/n in an all-reduce.

    A rank owns 1/n of the buffer: it has the switch read that part from all ranks, itself
    included, and add it up; then the switch writes the sum to all ranks. Parts stream: the copies
    of a part follow its sum at once. A reduce-scatter sends S and gets S/n, an all-gather the
    reverse. Klenk et al., "An in-network architecture for accelerating shared-memory multiprocessor
    collectives", ISCA 2020.
    """
    reducing_switches(groups)
    lanes, combine = [], []
    if kind != "all-gather":
        lanes.append(_all_pairs(groups, p.size))
        combine += [SUM] * len(lanes[-1].src)
    if kind != "reduce-scatter":
        lanes.append(_all_pairs(groups, p.size, gather=True))
        combine += [COPY] * len(lanes[-1].src)
    (step,) = in_steps(groups, lanes, merge=False)
    return (replace(step, combine=np.tile(np.array(combine, np.int8), groups.count)),)


def halving_doubling(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """Halve vectors, double distances: log2 n steps of S/2, S/4, ...; all-reduce and back again.

    Neighbours exchange first, and most. For other than powers of two the ranks beyond the power
    of two below hand their vectors to a neighbour first, and get their results back at the end: two
    steps more, of S and, in a reduce-scatter, S/n. Otherwise a rank sends S (n - 1)/n, all-reduce
    twice that. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; Thakur,
    Rabenseifner and Gropp, IJHPCA 19(1), 2005.
    """
    if kind == "all-reduce":
        scatter = _halving(groups, p.size, every_rank=False)
        return scatter + mirrored(scatter)
    scatter = _halving(groups, p.size, every_rank=True)
    return mirrored(scatter) if kind == "all-gather" else scatter


def _halving(groups: Groups, size_B: float, *, every_rank: bool) -> tuple[Step, ...]:
    """Reduce-scatter; without `every_rank` the ranks beyond a power of two end with nothing."""
    n = groups.size
    rounds = n.bit_length() - 1
    core = 2**rounds
    extra = np.arange(n - core)
    virtual = np.arange(core)
    rank = np.where(virtual < len(extra), 2 * virtual + 1, virtual + len(extra))
    # Who sums up each block: the owner, or the neighbour that stands in for it.
    home = virtual
    if every_rank:
        home = np.arange(n)
        home = np.where(home < 2 * len(extra), home // 2, home - len(extra))
    block_B = size_B / len(home)
    everything = marked(lambda which: np.ones((len(which), len(home)), bool), block_B)
    lanes = [Lane(2 * extra, 2 * extra + 1, size_B, everything)]
    start = min(1, len(extra))
    for j in range(rounds):
        peer = virtual ^ 2**j
        sent = home % 2 ** (j + 1) == (peer % 2 ** (j + 1))[:, None]
        carries = marked(sent.__getitem__, block_B)
        size = sent.sum(axis=1) * block_B
        lanes.append(Lane(rank, rank[peer], size, carries, start=start + j))
    if every_rank:
        back = marked(lambda which: np.arange(n) == 2 * which[:, None], block_B)
        lanes.append(
            Lane(2 * extra + 1, 2 * extra, block_B, back, start=start + rounds, adds=False)
        )
    return in_steps(groups, lanes)
