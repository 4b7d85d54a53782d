"""Algorithms around a ring, for all-reduce, all-gather and reduce-scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabricsim.arrays import IntArray
from fabricsim.patterns.grid import ring_order
from fabricsim.patterns.lanes import Carried, Lane, in_steps, mirrored
from fabricsim.patterns.schedule import Groups, Step

if TYPE_CHECKING:
    from fabricsim.patterns.reducing import Kind, Reducing


def _round_trip(order: IntArray, size_B: float, part: int, parts: int) -> Lane:
    """Reduce-scatter of one part of every block round a ring.

    In round t place i passes on the partial sum of the block of place i - 1 - t.
    """
    n = len(order)

    def carries(which: IntArray, round_: IntArray) -> Carried:
        owner = order[(which - 1 - round_) % n]
        return np.arange(len(which)), owner * parts + part, size_B / n / parts

    return Lane(order, np.roll(order, -1), size_B / n / parts, carries, rounds=n - 1)


def ring(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """Around a ring: n - 1 steps of S/n; all-reduce 2 (n - 1), reduce-scatter then all-gather.

    On a whole torus the ring follows neighbours, elsewhere the numbers of the ranks. Patarasuk and
    Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel
    Distrib. Comput. 69 (2009). Each rank sends S (n - 1)/n, all-reduce twice that.
    """
    order = ring_order(groups)
    scatter = in_steps(groups, [_round_trip(order, p.size, 0, 1)])
    gather = mirrored(in_steps(groups, [_round_trip(order[::-1], p.size, 0, 1)]))
    return {"reduce-scatter": scatter, "all-gather": gather, "all-reduce": scatter + gather}[kind]


def bidirectional_ring(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """Around a ring both ways at once, half of the bytes each: steps as `ring`, of 2 x S/2n.

    It takes half the time of `ring` where a rank has links of its own to both neighbours, and the
    same where all goes over one. Jain and Sabharwal, "Optimal bucket algorithms for large MPI
    collectives on torus interconnects", ICS 2010. Bytes as `ring`.
    """
    order = ring_order(groups)
    both = [_round_trip(order, p.size, 0, 2), _round_trip(order[::-1], p.size, 1, 2)]
    scatter = in_steps(groups, both)
    gather = mirrored(scatter)
    return {"reduce-scatter": scatter, "all-gather": gather, "all-reduce": scatter + gather}[kind]
