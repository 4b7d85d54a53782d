"""Swing, for all-reduce, all-gather and reduce-scatter on tori."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fabricsim.arrays import BoolArray, IntArray
from fabricsim.patterns.grid import Grid, even_torus
from fabricsim.patterns.lanes import Carried, Lane, in_steps, mirrored
from fabricsim.patterns.schedule import Groups, Step, refuse_beyond

if TYPE_CHECKING:
    from fabricsim.patterns.reducing import Kind, Reducing


def swing(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """Swing back and forth on a torus: log2 n steps of S/2, S/4, ...; all-reduce and back again.

    In step s on an axis the partner is 1, -1, 3, -5, 11, ... ranks away, ((1 - (-2)^(s + 1))/3),
    the other way for odd ranks: nearer than in halving and doubling. The axes take turns. On D axes
    there are 2 D such all-reduces at once, of S/(2 D) each, which begin on another axis or swing
    the other way, so that all links are used. Axes must be even; where they are no powers of two,
    an axis of k takes ceil(log2 k) steps, and nothing is sent twice to a rank. A rank sends
    S (n - 1)/n, all-reduce twice that. De Sensi et al., "Swing: short-cutting rings for higher
    bandwidth allreduce", NSDI 2024.
    """
    box = even_torus(groups)
    refuse_beyond(groups.size**2)
    ways = [(axis, sign) for axis in range(len(box.sizes)) for sign in (1, -1)]
    block_B = p.size / groups.size / len(ways)
    lanes = []
    for part, (axis, sign) in enumerate(ways):
        peers = _peers(box, axis, sign)
        for step, new in enumerate(_news(peers)):
            carries = partial(_carried, peers, step, part, len(ways), block_B)
            size = new.sum(axis=1) * block_B
            lanes.append(
                Lane(peers[step], np.arange(groups.size), size, carries, start=step, adds=False)
            )
    gather = in_steps(groups, lanes)
    scatter = mirrored(gather, adds=True)
    return {"reduce-scatter": scatter, "all-gather": gather, "all-reduce": scatter + gather}[kind]


def _peers(box: Grid, first: int, sign: int) -> list[IntArray]:
    """List the partner of each rank in each step of an all-gather: far ones first."""
    axes = [(first + i) % len(box.sizes) for i in range(len(box.sizes))]
    rounds = [(box.sizes[axis] - 1).bit_length() for axis in axes]
    turns = [(s, a) for s in range(max(rounds)) for a, r in zip(axes, rounds, strict=True) if s < r]
    peers = []
    for s, axis in reversed(turns):
        hops = sign * (1 - (-2) ** (s + 1)) // 3
        peers.append(box.moved(axis, np.where(box.index[:, axis] % 2 == 0, hops, -hops)))
    return peers


def _news(peers: list[IntArray]) -> list[BoolArray]:
    """(ranks, blocks) bools for each step: what a rank's partner has and the rank has not."""
    have = np.eye(len(peers[0]), dtype=bool)
    news = []
    for peer in peers:
        news.append(have[peer] & ~have)
        have |= news[-1]
    assert have.all()
    return news


def _carried(
    peers: list[IntArray],
    step: int,
    part: int,
    parts: int,
    block_B: float,
    which: IntArray,
    round_: IntArray,
) -> Carried:
    """Tell what is new in a step; found anew when asked, since all tables would be large."""
    del round_
    row, owner = np.nonzero(_news(peers)[step][which])
    return row, owner * parts + part, block_B
