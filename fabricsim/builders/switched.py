"""Switched racks: chips in trays, switch planes along each rack, cables from rack to rack.

Covers the switched scale-up domains: Trainium3 NL32x2 and NL72x2 in every switch generation,
single-tier racks and servers such as NVL72 and HGX (one plane, no tray links), and racks joined by
their switches such as NVL36x2.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BeforeValidator, model_validator

from fabricsim.arrays import IntArray
from fabricsim.builders import Builder
from fabricsim.fabric import Counts, Fabric, assemble
from fabricsim.parameters import Bandwidth, Count, Duration, Parameters, as_list


class Tray(Parameters):
    """How the chips of a tray are joined on their board."""

    kind: Literal["direct", "switched"]
    """Straight to each other, or through switches on the tray."""
    bandwidth: Bandwidth
    """Of one chip to the board: split over its tray mates, or over the tray's switches."""
    switches: Count = 1
    """Switches on a tray, each joined to each of its chips; only for ``"switched"``."""

    @model_validator(mode="after")
    def _switches_only_if_switched(self) -> Self:
        if self.kind == "direct" and self.switches != 1:
            raise ValueError("a direct tray has no switches: leave out 'switches'")
        return self


class Trunk(Parameters):
    """How the switches of a rack are joined to those of the others."""

    bandwidth: Bandwidth
    """Of one switch to its partners, at the same place in the other racks, together."""
    cables: Count = 1
    """From one switch to each partner."""


class Switched(Parameters):
    """Parameters of switched racks."""

    racks: Count = 1
    trays_per_rack: Count
    chips_per_tray: Count
    planes: Count = 1
    """Sets of switches in a rack; the chip at position i of its tray is in plane i mod planes."""
    switches_per_plane: Count
    """Each is joined to every chip of its plane."""
    backplane_bandwidth: Bandwidth
    """Of one chip to all switches of its plane together."""
    links_per_switch: Annotated[tuple[Count, ...], BeforeValidator(as_list)] = (1,)
    """Cables, all alike, from a chip to a switch of its plane: one figure, or one for each."""
    backplane_lanes: Count | None = None
    """Lanes of a chip on the backplane, each a copper cable, with the spare ones."""
    active_backplane_lanes: Count | None = None
    """Lanes that carry `backplane_bandwidth`; the others stand by as spares."""
    tray: Tray | None = None
    cross_rack_bandwidth: Bandwidth | None = None
    """Of one chip to its partners, at the same place in the other racks, together."""
    switch_trunk: Trunk | None = None
    """Joins the racks by their switches, in place of cables from chip to chip."""
    link_latency: Duration = 0.0
    """Of cables and traces within a rack."""
    cross_rack_latency: Duration = 0.0
    """Of a cable between racks."""
    switch_latency: Duration = 0.0
    """To pass through a switch of the rack."""
    tray_switch_latency: Duration = 0.0
    """To pass through a switch of a tray."""
    forward_latency: Duration = 0.0
    """To pass through a chip that forwards."""
    message_latency: Duration = 0.0
    """Of each transfer, at its two ends together."""
    in_network_reduction: bool = False
    """Whether the switches can add up what chips send through them."""

    @model_validator(mode="after")
    def _joined(self) -> Self:
        if self.planes > self.chips_per_tray:
            raise ValueError(
                f"planes = {self.planes} is more than the {self.chips_per_tray} chips of a tray: "
                "some planes would have no chip"
            )
        if self.planes > 1 and self.tray is None:
            raise ValueError(
                f"planes = {self.planes} needs a tray: without it no path leads from one plane "
                "to another"
            )
        if self.racks > 1 and self.cross_rack_bandwidth is None and self.switch_trunk is None:
            raise ValueError(
                f"racks = {self.racks} needs a cross_rack_bandwidth (cables from chip to chip) or "
                "a switch_trunk (from switch to switch)"
            )
        if self.cross_rack_bandwidth is not None and self.switch_trunk is not None:
            raise ValueError(
                "racks are joined by cross_rack_bandwidth (from chip to chip) or by switch_trunk "
                "(from switch to switch), not by both"
            )
        return self

    @model_validator(mode="after")
    def _wired(self) -> Self:
        given = len(self.links_per_switch)
        if given not in (1, self.switches_per_plane):
            raise ValueError(
                f"links_per_switch has {given} figures: give one, or one for each of the "
                f"{self.switches_per_plane} switches of switches_per_plane"
            )
        lanes, active = self.backplane_lanes, self.active_backplane_lanes
        if (lanes is None) != (active is None):
            raise ValueError("backplane_lanes and active_backplane_lanes are given both or neither")
        if lanes is not None and active is not None and active > lanes:
            raise ValueError(
                f"active_backplane_lanes = {active} is more than backplane_lanes = {lanes}"
            )
        return self

    @property
    def chips(self) -> int:
        """Chips in all racks."""
        return self.racks * self.trays_per_rack * self.chips_per_tray

    @property
    def forwards(self) -> bool:
        """Whether chips pass on the traffic of others: where there is a second way out."""
        return self.tray is not None or (self.racks > 1 and self.cross_rack_bandwidth is not None)

    @property
    def cables_per_chip(self) -> tuple[int, ...]:
        """Cables of a chip to each switch of its plane."""
        links = self.links_per_switch
        return links if len(links) > 1 else links * self.switches_per_plane


def build(p: Switched) -> Fabric:
    """Join the chips of each tray, of each plane, and the partners across racks.

    Ranks count the chips of a tray, then the trays of a rack, then racks.

    Examples
    --------
    >>> rack = Switched(trays_per_rack=18, chips_per_tray=4, switches_per_plane=18,
    ...                 backplane_bandwidth="900 GB/s")
    >>> fabric = build(rack)
    >>> len(fabric.endpoints), fabric.nodes - len(fabric.endpoints), float(fabric.capacity[0])
    (72, 18, 50000000000.0)
    """
    chip = np.arange(p.chips, dtype=np.int32)
    tray, position = np.divmod(chip, p.chips_per_tray)
    rack = tray // p.trays_per_rack
    links: list[tuple[str, IntArray, IntArray, float, float]] = []

    plane = rack * p.planes + position % p.planes
    each = np.repeat(np.arange(p.switches_per_plane), p.cables_per_chip)
    near = p.chips + plane[:, None] * p.switches_per_plane + each
    share = p.backplane_bandwidth / len(each)
    links.append(("backplane", np.repeat(chip, len(each)), near.ravel(), share, p.link_latency))
    backplane_switches = p.racks * p.planes * p.switches_per_plane
    tray_switches = 0
    if p.tray is not None and p.tray.kind == "switched":
        tray_switches = p.racks * p.trays_per_rack * p.tray.switches
        near = p.chips + backplane_switches + tray[:, None] * p.tray.switches
        near = near + np.arange(p.tray.switches)
        share = p.tray.bandwidth / p.tray.switches
        links.append(("pcb", np.repeat(chip, p.tray.switches), near.ravel(), share, p.link_latency))
    elif p.tray is not None and p.chips_per_tray > 1:
        one, other = np.triu_indices(p.chips_per_tray, k=1)
        base = np.arange(p.racks * p.trays_per_rack)[:, None] * p.chips_per_tray
        share = p.tray.bandwidth / (p.chips_per_tray - 1)
        links.append(("pcb", (base + one).ravel(), (base + other).ravel(), share, p.link_latency))
    if p.racks > 1 and p.cross_rack_bandwidth is not None:
        in_rack = p.trays_per_rack * p.chips_per_tray
        one, other = np.triu_indices(p.racks, k=1)
        place = np.arange(in_rack)[:, None]
        share = p.cross_rack_bandwidth / (p.racks - 1)
        ends = (place + one * in_rack).ravel(), (place + other * in_rack).ravel()
        links.append(("cross-rack", *ends, share, p.cross_rack_latency))
    if p.racks > 1 and p.switch_trunk is not None:
        in_rack = p.planes * p.switches_per_plane
        one, other = np.triu_indices(p.racks, k=1)
        place = p.chips + np.repeat(np.arange(in_rack), p.switch_trunk.cables)[:, None]
        share = p.switch_trunk.bandwidth / (p.racks - 1) / p.switch_trunk.cables
        ends = (place + one * in_rack).ravel(), (place + other * in_rack).ravel()
        links.append(("trunk", *ends, share, p.cross_rack_latency))

    switches = backplane_switches + tray_switches
    kind = np.repeat(np.array([0, 1, 2], np.int8), [p.chips, backplane_switches, tray_switches])
    latency = np.where(kind == 1, p.switch_latency, p.tray_switch_latency)
    return assemble(
        "switched",
        links,
        node_kind=kind,
        node_kinds=("endpoint", "backplane-switch", "tray-switch"),
        endpoints=chip,
        forward=p.forwards,
        switch_latency=latency,
        forward_latency=p.forward_latency,
        message_latency=p.message_latency,
        coordinates=_places(p, rack, tray, position, switches, backplane_switches),
        axes=("rack", "tray", "position"),
        reduces=p.in_network_reduction,
    )


def _places(
    p: Switched, rack: IntArray, tray: IntArray, position: IntArray, switches: int, backplane: int
) -> IntArray:
    """Coordinates: chips by rack, tray, position; switches by what they serve."""
    places = np.full((p.chips + switches, 3), -1, np.int32)
    places[: p.chips, 0], places[: p.chips, 1] = rack, tray % p.trays_per_rack
    places[: p.chips, 2] = position
    at_rack = np.arange(backplane) // (p.planes * p.switches_per_plane)
    places[p.chips : p.chips + backplane, 0] = at_rack
    if switches > backplane and p.tray is not None:
        at_tray = np.arange(switches - backplane) // p.tray.switches
        places[p.chips + backplane :, 0] = at_tray // p.trays_per_rack
        places[p.chips + backplane :, 1] = at_tray % p.trays_per_rack
    return places


def count(p: Switched) -> Counts:
    """Count switched racks from their parameters."""
    trays = p.racks * p.trays_per_rack
    mates = p.chips_per_tray - 1
    by_kind = {"backplane-switch": p.racks * p.planes * p.switches_per_plane}
    degree, injection = sum(p.cables_per_chip), p.backplane_bandwidth
    endpoint_links = p.chips * degree
    switch_links = 0
    if p.tray is not None and p.tray.kind == "switched":
        by_kind["tray-switch"] = trays * p.tray.switches
        endpoint_links += p.chips * p.tray.switches
        degree += p.tray.switches
        injection += p.tray.bandwidth
    elif p.tray is not None and mates:
        endpoint_links += trays * p.chips_per_tray * mates // 2
        degree += mates
        injection += p.tray.bandwidth
    if p.racks > 1 and p.cross_rack_bandwidth is not None:
        endpoint_links += p.trays_per_rack * p.chips_per_tray * p.racks * (p.racks - 1) // 2
        degree += p.racks - 1
        injection += p.cross_rack_bandwidth
    if p.racks > 1 and p.switch_trunk is not None:
        pairs = p.racks * (p.racks - 1) // 2
        switch_links = pairs * p.planes * p.switches_per_plane * p.switch_trunk.cables
    return Counts(
        endpoints=p.chips,
        switches=sum(by_kind.values()),
        switch_links=switch_links,
        endpoint_links=endpoint_links,
        injection_Bps=injection,
        bisection_Bps=_bisection(p),
        diameter=_diameter(p),
        degree=degree,
        switches_by_kind=by_kind,
        copper_cables=p.backplane_lanes and p.backplane_lanes * p.chips,
    )


def _diameter(p: Switched) -> int:
    """Most links between two chips: backplane 2, tray 1 or 2, one across racks, in any order.

    A trunk between switches lengthens the way along the backplane by one.
    """
    in_tray = 1 if p.tray is not None and p.tray.kind == "direct" else 2
    within = [0]
    if p.trays_per_rack > 1:
        within.append(2)
    if p.chips_per_tray > 1:
        if p.planes > 1:  # to a mate on another plane by the tray, and on along the backplane
            within.append(in_tray + (2 if p.trays_per_rack > 1 else 0))
        if p.planes < p.chips_per_tray:
            within.append(2 if p.tray is None else in_tray)
    if p.racks > 1 and p.switch_trunk is not None:
        return max(*within, 3 + (in_tray if p.planes > 1 else 0))
    return max(within) + (1 if p.racks > 1 else 0)


def _bisection(p: Switched) -> float:
    """Least of the straight and stepped cuts into halves: between racks, trays or positions.

    An odd number of racks or trays leaves one in the middle, which is cut along the next stage,
    in the same manner as an odd torus.
    """
    rack = min(_tray_cut(p), _position_cut(p))
    if p.racks == 1:
        return rack
    in_rack = p.trays_per_rack * p.chips_per_tray
    side, odd = divmod(p.racks, 2)
    pairs = side * (side + odd)
    if p.switch_trunk is not None:
        trunks = p.planes * p.switches_per_plane * p.switch_trunk.bandwidth / (p.racks - 1)
        # Cutting all chips of the smaller side from their switches may be cheaper.
        between = min(pairs * trunks, side * in_rack * p.backplane_bandwidth) + odd * rack
    else:
        each = (p.cross_rack_bandwidth or 0.0) / (p.racks - 1)
        between = pairs * in_rack * each + odd * rack
    return min(between, p.racks * rack) if in_rack % 2 == 0 else between


def _tray_cut(p: Switched) -> float:
    """Cut one rack between its trays: a switch stage costs the links of its smaller part."""
    side, odd = divmod(p.trays_per_rack, 2)
    smaller = sum(min(side * (a + b) + odd * a, side * (a + b) + odd * b) for a, b in _halves(p))
    return smaller * p.backplane_bandwidth + odd * _board_cut(p)


def _position_cut(p: Switched) -> float:
    """Cut one rack through the middle of every tray."""
    if p.chips_per_tray % 2:
        return float("inf")
    smaller = sum(min(a, b) for a, b in _halves(p))
    return p.trays_per_rack * (smaller * p.backplane_bandwidth + _board_cut(p))


def _board_cut(p: Switched) -> float:
    """Cut the board of one tray into halves."""
    if p.tray is None:
        return 0.0
    side = p.chips_per_tray // 2
    if p.tray.kind == "switched":
        return side * p.tray.bandwidth
    mates = max(p.chips_per_tray - 1, 1)
    return side * (p.chips_per_tray - side) * p.tray.bandwidth / mates


def _halves(p: Switched) -> list[tuple[int, int]]:
    """Chips of a tray on either side of its middle, for each plane; whole planes go left first."""
    left, sides = p.chips_per_tray // 2, []
    for plane in range(p.planes):
        size = len(range(plane, p.chips_per_tray, p.planes))
        sides.append((min(size, left), size - min(size, left)))
        left -= sides[-1][0]
    return sides


BUILDER = Builder(Switched, build, count)
