"""Lower bounds on the time of a run, whatever the routing and the algorithm.

Two kinds, both exact statements about the wires:

- *Cuts*: what must leave or enter a part of the machine, over the capacity of the links there.
  Parts are single endpoints (the bound called ``injection``) and what falls apart when the links
  of one kind are taken away (called after the kind, such as ``cross-rack cut``).
- *Hops*: a byte on its way crosses at least so many links of a kind; the sum over all bytes, over
  the capacity of all links of the kind (such as ``z hops``), or of any. This is the dual of the
  concurrent-flow program with length 1 on the links of the kind and 0 on the others: for any
  lengths l >= 0, time >= sum(bytes x distance under l) / sum(capacity x l) (Shahrokhi and Matula,
  "The maximum concurrent flow problem", J. ACM 37(2), 1990).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fabricsim.arrays import FloatArray, IntArray, sum_at
from fabricsim.graph import components, hop_distances

MOST_PARTS = 8192
"""Parts for which hop distances are computed: their square must fit in memory."""


@dataclass(frozen=True)
class Bound:
    """No routing and no algorithm is faster than `time_s`; `name` says why."""

    time_s: float
    name: str


@dataclass(frozen=True, eq=False)
class Wires:
    """The links of a network, as plain arrays.

    `src`, `dst` and `kind` are (links,) ints, `capacity` (links,) floats in B/s.
    """

    nodes: int
    src: IntArray
    dst: IntArray
    capacity: FloatArray
    kind: IntArray
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Parts:
    """A division of the nodes, and the capacity that leaves and enters each part."""

    name: str
    of_node: IntArray
    capacity_out: FloatArray
    capacity_in: FloatArray


AcrossCut = Callable[[IntArray, int], tuple[FloatArray, FloatArray]]
"""Part of each node, number of parts -> bytes that must (leave, enter) each part."""


def divisions(wires: Wires) -> list[Parts]:
    """Divide the network: into single nodes, and into what each kind of links joins."""
    found = [_parts("injection", wires, np.arange(wires.nodes), wires.nodes)]
    for index, kind in enumerate(wires.kinds):
        others = wires.kind != index
        count, label = components(wires.src[others], wires.dst[others], wires.nodes)
        if count > 1:
            found.append(_parts(f"{kind} cut", wires, label, count))
    return found


def _parts(name: str, wires: Wires, of_node: IntArray, count: int) -> Parts:
    one, other = of_node[wires.src], of_node[wires.dst]
    leaving = np.where(one != other, wires.capacity, 0.0)
    return Parts(
        name,
        of_node,
        sum_at(one, leaving, count),
        sum_at(other, leaving, count),
    )


def cut_bounds(parts: list[Parts], across: AcrossCut) -> list[Bound]:
    """Bound the time by what must cross the cut around each part.

    Parameters
    ----------
    parts : list of Parts
        From `divisions`.
    across : callable
        Tells the bytes that must leave and enter each part.

    Returns
    -------
    list of Bound
        One for each division: its worst part.
    """
    bounds = []
    for division in parts:
        out, into = across(division.of_node, len(division.capacity_out))
        worst = 0.0
        for size, capacity in ((out, division.capacity_out), (into, division.capacity_in)):
            needed = size > 0
            if needed.any():
                worst = max(worst, float((size[needed] / capacity[needed]).max()))
        bounds.append(Bound(worst, division.name))
    return bounds


def hop_bounds(wires: Wires, src: IntArray, dst: IntArray, size: FloatArray) -> list[Bound]:
    """Bound the time by the links of each kind that every byte must cross.

    Parameters
    ----------
    wires : Wires
    src, dst : (transfers,) ints
        Nodes between which bytes must go.
    size : (transfers,) floats
        Bytes.

    Returns
    -------
    list of Bound
        One for each kind of links that divides the network into at most `MOST_PARTS` parts, and
        one for links of all kinds together (``all hops``), which is the best where every way on
        crosses links of several kinds, as in twisted tori.
    """
    bounds = []
    kinds = [(f"{kind} hops", wires.kind == index) for index, kind in enumerate(wires.kinds)]
    if len(kinds) > 1:
        kinds.append(("all hops", np.ones(len(wires.kind), bool)))
    for name, own in kinds:
        count, label = components(wires.src[~own], wires.dst[~own], wires.nodes)
        if not 1 < count <= MOST_PARTS:
            continue
        one, other = label[wires.src[own]], label[wires.dst[own]]
        ends, which = np.unique(label[dst], return_inverse=True)
        hops = hop_distances(one, other, count, ends, np.ones(count, bool))
        crossed = np.maximum(hops[which, label[src]], 0)
        total = float(size @ crossed) / float(wires.capacity[own].sum())
        bounds.append(Bound(total, name))
    return bounds


def transfers_across(src: IntArray, dst: IntArray, size: FloatArray) -> AcrossCut:
    """Tell what given transfers bring across any cut."""

    def across(of_node: IntArray, count: int) -> tuple[FloatArray, FloatArray]:
        one, other = of_node[src], of_node[dst]
        leaving = np.where(one != other, size, 0.0)
        return sum_at(one, leaving, count), sum_at(other, leaving, count)

    return across
