"""Permutation: each rank sends to one other, and receives from one.

The algorithms are different traffic, not ways to do the same.
"""

from __future__ import annotations

from math import ceil, isqrt
from typing import Literal

import numpy as np

from fabricsim.arrays import IntArray
from fabricsim.errors import SpecError
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.grid import torus_or_none
from fabricsim.patterns.schedule import Groups, Step, tiled


class Permutation(TrafficParameters):
    """`size` is what a rank sends."""

    algorithm: Literal["random", "shift", "bit-complement", "transpose", "tornado"] = "random"
    shift: int = 1
    """How many ranks further the receiver is; only for ``"shift"``."""


def random(p: Permutation, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Draw receivers at random, nobody itself: a derangement, uniform among all, from the seed."""
    n = groups.size
    if n == 1:
        return ()
    rng = np.random.default_rng(seed)
    rank = np.arange(n)
    receiver = rng.permutation(n)
    while (receiver == rank).any():
        receiver = rng.permutation(n)
    return (tiled(groups, rank, receiver, p.size),)


def shift(p: Permutation, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send to the rank that is `shift` further, cyclically."""
    del seed
    return _to(p, groups, (np.arange(groups.size) + p.shift) % groups.size)


def bit_complement(p: Permutation, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send to the rank whose number has all bits (digits) the other way: r to n - 1 - r.

    In other than powers of two it is the complement of the digits of any base, so that on a torus
    everyone sends through its centre. Dally and Towles, "Principles and practices of
    interconnection networks" (2004), chapter 3.
    """
    del seed
    return _to(p, groups, groups.size - 1 - np.arange(groups.size))


def transpose(p: Permutation, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send as a matrix is transposed: of n = m x m ranks, a m + b to b m + a.

    Dally and Towles, chapter 3.
    """
    del seed
    n, m = groups.size, isqrt(groups.size)
    if m * m != n:
        raise SpecError(
            f"traffic.algorithm = 'transpose' needs a square number of ranks in a group, not {n}; "
            f"the nearest are {m * m} and {(m + 1) ** 2}"
        )
    return _to(p, groups, np.arange(n).reshape(m, m).T.ravel())


def tornado(p: Permutation, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send almost half-way round every ring: ceil(k/2) - 1 further along each axis of k.

    All go the same way round, which leaves the links of the other way idle; where the group is no
    torus its ranks count as one ring. Dally and Towles, chapter 3.
    """
    del seed
    box = torus_or_none(groups)
    if box is None:
        hops = ceil(groups.size / 2) - 1
        return _to(p, groups, (np.arange(groups.size) + hops) % groups.size)
    receiver: IntArray = np.arange(groups.size)
    for axis, k in enumerate(box.sizes):
        receiver = box.moved(axis, ceil(k / 2) - 1)[receiver]
    return _to(p, groups, receiver)


def _to(p: Permutation, groups: Groups, receiver: IntArray) -> tuple[Step, ...]:
    rank = np.arange(groups.size)
    moves = receiver != rank
    if not moves.any():
        return ()
    return (tiled(groups, rank[moves], receiver[moves], p.size),)


_ALGORITHMS = {
    "random": random,
    "shift": shift,
    "bit-complement": bit_complement,
    "transpose": transpose,
    "tornado": tornado,
}


def _demand(p: Permutation, groups: Groups, seed: int) -> Step:
    steps = _ALGORITHMS[p.algorithm](p, groups, seed)
    return steps[0] if steps else tiled(groups, [], [], p.size)


PATTERN = Pattern(
    parameters=Permutation,
    algorithms=_ALGORITHMS,
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    demand=_demand,
    interchangeable=False,
)
