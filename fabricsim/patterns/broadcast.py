"""Broadcast: every rank ends with the buffer of the first. A reduce is the same backwards."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.parameters import Count
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.grid import ring_order
from fabricsim.patterns.lanes import Carried, Lane, in_steps, marked
from fabricsim.patterns.schedule import CutDemand, Groups, Step, chunk_count


class Rooted(TrafficParameters):
    """Parameters of broadcast and reduce; `size` is the buffer, the root the first rank."""

    algorithm: Literal["auto", "pipelined-ring", "tree"] = "pipelined-ring"
    chunks: Count | Literal["best"] = "best"
    """Parts that follow each other along the ring; only for ``"pipelined-ring"``. ``"best"`` takes
    the fastest of a few."""


def pipelined_ring(p: Rooted, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Chunks from rank to rank, in c chunks: c + n - 2 steps of S/c.

    On a whole torus from neighbour to neighbour, elsewhere by number. In step t place i passes on
    chunk t - i, so that with many chunks the time tends to S over the bandwidth of a link,
    whatever n. Each rank but the last sends S. Chan et al., "Collective communication:
    theory, practice, and experience", Concurrency Computat. 19(13), 2007.
    """
    del seed
    order, chunks = ring_order(groups), chunk_count(p.chunks)

    def carries(which: IntArray, round_: IntArray) -> Carried:
        return np.arange(len(which)), round_, p.size / chunks

    hop = np.arange(groups.size - 1)
    lane = Lane(order[:-1], order[1:], p.size / chunks, carries, chunks, start=hop, adds=False)
    return in_steps(groups, [lane])


def tree(p: Rooted, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Twice as many ranks at each step: ceil(log2 n) steps of S.

    A binomial tree: the root sends S as many times. Thakur, Rabenseifner and Gropp, IJHPCA 19(1),
    2005.
    """
    del seed
    lanes: list[Lane] = []
    have = 1
    whole = marked(lambda which: np.ones((len(which), 1), bool), p.size)
    while have < groups.size:
        rank = np.arange(min(have, groups.size - have))
        lanes.append(Lane(rank, rank + have, p.size, whole, start=len(lanes), adds=False))
        have *= 2
    return in_steps(groups, lanes)


def _across(size: float, n: int, m: IntArray, root: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The buffer leaves the side of the first rank and enters the other."""
    del n, m
    return np.where(root, size, 0.0), np.where(root, 0.0, size)


PATTERN = Pattern(
    parameters=Rooted,
    algorithms={"pipelined-ring": pipelined_ring, "tree": tree},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    cut=CutDemand(_across),
    chunked=frozenset({"pipelined-ring"}),
)
