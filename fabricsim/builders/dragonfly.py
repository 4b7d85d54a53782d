"""Dragonfly: groups of switches, all joined within a group, and every group joined to every other.

After Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology" (ISCA
2008). Global cables are laid in a circle: each group uses its global ports in the same order, for
the groups 1, 2, 3 ... places further on, so that the fabric looks the same from every group.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from fabricsim.arrays import IntArray
from fabricsim.builders import Builder
from fabricsim.fabric import Counts, Fabric, assemble
from fabricsim.graph import hop_distances
from fabricsim.parameters import Bandwidth, Count, Duration, Parameters


class Dragonfly(Parameters):
    """Parameters of a dragonfly; the letters are those of the paper."""

    switch_bandwidth: Bandwidth
    """Of one switch, all ports, one direction."""
    port_bandwidth: Bandwidth
    """Of one port, at endpoints and between switches."""
    switches_per_group: Count
    """a: each joined to all others of its group."""
    global_ports: Count
    """h: ports of a switch towards other groups."""
    endpoints_per_switch: Count
    """p."""
    groups: Count | None = None
    """g; as many as can all be joined to each other, a h + 1, if left out."""
    local_latency: Duration = 0.0
    """Of cables at endpoints and within a group."""
    global_latency: Duration = 0.0
    """Of cables between groups."""
    switch_latency: Duration = 0.0
    message_latency: Duration = 0.0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        used = self.endpoints_per_switch + self.switches_per_group - 1 + self.global_ports
        radix = int(self.switch_bandwidth / self.port_bandwidth * (1 + 1e-12))
        if used > radix:
            raise ValueError(
                f"a switch needs {used} ports ({self.endpoints_per_switch} to endpoints, "
                f"{self.switches_per_group - 1} in the group, {self.global_ports} global) and has "
                f"{radix}: switch_bandwidth over port_bandwidth"
            )
        if self.groups is not None and self.groups > self.outward + 1:
            raise ValueError(
                f"groups = {self.groups} is more than can all be joined to each other: at most "
                f"{self.outward + 1}, switches_per_group x global_ports + 1"
            )
        return self

    @property
    def outward(self) -> int:
        """Global ports of a group."""
        return self.switches_per_group * self.global_ports

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return self.outward + 1 if self.groups is None else self.groups


def _offsets(p: Dragonfly) -> NDArray[np.int_]:
    """List how many groups further on each global cable of a group leads, in the order of ports.

    Every other group gets as many cables as all can have; what is left over goes in pairs, one
    cable forward and one back, to the nearest groups, and to the opposite one if a last cable is
    left. With odd numbers of groups and ports one port of every group stays free.
    """
    g = p.group_count
    if g == 1:
        return np.zeros(0, np.int_)
    each, left = divmod(p.outward, g - 1)
    counts = np.full(g, each)
    counts[0] = 0
    near = np.arange(1, left // 2 + 1)
    counts[near] += 1
    counts[g - near] += 1
    if left % 2 and g % 2 == 0:
        counts[g // 2] += 1
    return np.repeat(np.arange(g), counts)


def _switch_links(p: Dragonfly) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
    """List the cables within groups and those between groups, by switches."""
    a, group = p.switches_per_group, np.arange(p.group_count)[:, None]
    one, other = np.triu_indices(a, k=1)
    local = (group * a + one).ravel(), (group * a + other).ravel()
    offset = _offsets(p)
    port = np.arange(len(offset))
    # The k-th cable by the way of d groups forward is, at its far end, the k-th of g - d groups.
    first = np.searchsorted(offset, offset)
    far_port = np.searchsorted(offset, p.group_count - offset) + port - first
    far_group = (group + offset) % p.group_count
    near = group * a + port // p.global_ports
    far = far_group * a + far_port // p.global_ports
    once = (offset * 2 < p.group_count) | ((offset * 2 == p.group_count) & (group < far_group))
    return local, (near[once], far[once])


def build(p: Dragonfly) -> Fabric:
    """Join endpoints to switches, the switches of each group, and the groups.

    Ranks count the endpoints of a switch, then the switches of a group, then groups.

    Examples
    --------
    >>> small = Dragonfly(switch_bandwidth="700 Gb/s", port_bandwidth="100 Gb/s",
    ...                   switches_per_group=4, global_ports=2, endpoints_per_switch=2)
    >>> fabric = build(small)
    >>> len(fabric.endpoints), fabric.nodes - len(fabric.endpoints), fabric.link_kinds
    (72, 36, ('host', 'local', 'global'))
    """
    switches = p.group_count * p.switches_per_group
    n = switches * p.endpoints_per_switch
    ranks = np.arange(n, dtype=np.int32)
    local, outward = _switch_links(p)
    links = [
        ("host", ranks, n + ranks // p.endpoints_per_switch, p.local_latency),
        ("local", n + local[0], n + local[1], p.local_latency),
        ("global", n + outward[0], n + outward[1], p.global_latency),
    ]
    switch = np.r_[ranks // p.endpoints_per_switch, np.arange(switches)]
    port = np.r_[ranks % p.endpoints_per_switch, np.full(switches, -1)]
    places = (switch // p.switches_per_group, switch % p.switches_per_group, port)
    return assemble(
        "dragonfly",
        [
            (kind, one, other, p.port_bandwidth, latency)
            for kind, one, other, latency in links
            if len(one)
        ],
        node_kind=np.repeat(np.array([0, 1], np.int8), [n, switches]),
        node_kinds=("endpoint", "switch"),
        endpoints=ranks,
        forward=False,
        switch_latency=p.switch_latency,
        forward_latency=0.0,
        message_latency=p.message_latency,
        coordinates=np.column_stack(places).astype(np.int32),
        axes=("group", "switch", "port"),
    )


def count(p: Dragonfly) -> Counts:
    """Count a dragonfly from its parameters."""
    g, a = p.group_count, p.switches_per_group
    n = g * a * p.endpoints_per_switch
    between = g * len(_offsets(p)) // 2
    return Counts(
        endpoints=n,
        switches=g * a,
        switch_links=g * a * (a - 1) // 2 + between,
        endpoint_links=n,
        injection_Bps=p.port_bandwidth,
        bisection_Bps=_bisection(p) * p.port_bandwidth,
        diameter=_diameter(p) if n > 1 else 0,
        degree=1,
        switches_by_kind={"switch": g * a},
    )


def _diameter(p: Dragonfly) -> int:
    """Most links between two endpoints: at most a local, a global and a local one between switches.

    Two steps from a switch reach so few others that only small dragonflies can do with less; of
    these the switches of one group are tried.
    """
    a, h, switches = p.switches_per_group, p.global_ports, p.group_count * p.switches_per_group
    within_two = 1 + (a - 1) + h + 2 * (a - 1) * h + h * (h - 1)
    if p.group_count > 1 and a > 1 and switches > within_two:
        return 5
    local, outward = _switch_links(p)
    one, other = np.r_[local[0], outward[0]], np.r_[local[1], outward[1]]
    src, dst = np.r_[one, other], np.r_[other, one]
    hops = hop_distances(src, dst, switches, np.arange(a), np.ones(switches, bool))
    return int(hops.max()) + 2


def _bisection(p: Dragonfly) -> int:
    """Cables between two halves: neighbouring groups, and half of the middle one where g is odd.

    Or the endpoints of one half from their switches, where that is less.
    """
    g, a, per_switch = p.group_count, p.switches_per_group, p.endpoints_per_switch
    offset, half = _offsets(p), g // 2
    # Groups 0 to half - 1 are on the left, the middle one (of odd g) is number half, then come
    # those on the right. From group i the cable of offset d leads right if i + d is there.
    right = half + g % 2
    most, least = np.minimum(half - 1, g - 1 - offset), np.maximum(0, right - offset)
    cut = int(np.maximum(most - least + 1, 0).sum())
    if g % 2:
        on_left = np.arange(len(offset)) // p.global_ports < a // 2
        leads_left = (half + offset) % g < half
        cut += int((on_left != leads_left).sum()) + a // 2 * (a - a // 2)
        cut += a % 2 * (per_switch // 2)
    return min(cut, g * a * per_switch // 2)


BUILDER = Builder(Dragonfly, build, count)
