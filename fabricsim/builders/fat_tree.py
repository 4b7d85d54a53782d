"""Fat-tree (folded Clos): leaves, spines and cores of one kind of switch, in one or more planes.

A tree has only the switches that its endpoints need: one that fits on a single switch has no
spine, one that fits in two layers has no core. Leaves are filled one after the other. Three ways
to attach the endpoints of a server: all to one leaf, each to a leaf of its own (rails), or each to
a plane of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fabricsim import units
from fabricsim.arrays import IntArray
from fabricsim.builders import Builder
from fabricsim.fabric import Counts, Fabric, assemble
from fabricsim.parameters import Bandwidth, Count, Duration, Parameters


class FatTree(Parameters):
    """Parameters of a fat-tree."""

    switch_bandwidth: Bandwidth
    """Of one switch, all ports, one direction."""
    port_bandwidth: Bandwidth
    """Of one port, at endpoints and between switches; the radix is their quotient."""
    layers: Annotated[int, Field(ge=1, le=3, strict=True)] = 2
    """At most this many layers of switches."""
    endpoints: Count | None = None
    """All that fit, if left out."""
    planes: Count = 1
    """Parallel networks; an endpoint is in each, but for ``attachment = "plane"``."""
    endpoint_ports: Count = 1
    """Ports of an endpoint in each plane that it is in."""
    attachment: Literal["tor", "rail", "plane"] = "tor"
    """Where the endpoints of a server go: all to one leaf (``"tor"``), endpoint i to leaf i of a
    group of leaves (``"rail"``), or endpoint i to plane i mod planes (``"plane"``): then planes
    are joined by the servers alone."""
    endpoints_per_server: Count = 1
    """Consecutive endpoints that stand in one server."""
    endpoints_per_leaf: Count | None = None
    """As many as the ports allow, if left out."""
    oversubscription: Annotated[float, Field(gt=0)] = 1.0
    """Ports down to ports up, at a leaf."""
    max_radix: Count | None = None
    """The most logical ports that the switch chip can have, where fewer than its bandwidth."""
    link_latency: Duration = 0.0
    switch_latency: Duration = 0.0
    message_latency: Duration = 0.0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        ratio = self.switch_bandwidth / self.port_bandwidth
        if ratio != round(ratio) or ratio < 1:
            raise ValueError(
                f"switch_bandwidth is {ratio:g} times port_bandwidth, and must be a whole number "
                f"of times: the nearest port_bandwidth is "
                f"{units.show(self.switch_bandwidth / max(round(ratio), 1), 'B/s')}"
            )
        if self.max_radix is not None and ratio > self.max_radix:
            raise ValueError(
                f"port_bandwidth asks for {round(ratio)} ports, and the switch has at most "
                f"max_radix = {self.max_radix}"
            )
        if self.layers > 1 and (self.leaf_up < 1 or self.leaf_down < 1):
            raise ValueError(self._no_room())
        self._check_servers()
        if self.endpoints is not None and self.endpoints > self.fits:
            more = self.model_copy(update={"layers": 3}).fits
            hint = f" ({more} with layers = 3)" if self.layers < 3 else ""
            raise ValueError(
                f"endpoints = {self.endpoints} is more than fit: at most {self.fits} with "
                f"layers = {self.layers}{hint} on switches of {self.radix} ports"
            )
        return self

    def _no_room(self) -> str:
        if self.endpoints_per_leaf is not None:
            ports = self.endpoints_per_leaf * self.endpoint_ports
            return (
                f"endpoints_per_leaf = {self.endpoints_per_leaf} takes {ports} ports down and "
                f"{_up(ports, self.oversubscription)} up, and the switch has {self.radix}"
            )
        if self.leaf_up and self._ports_down:
            return (
                f"endpoints_per_server = {self.endpoints_per_server} with endpoint_ports = "
                f"{self.endpoint_ports} is more than the {self._ports_down} ports down of a leaf"
            )
        return (
            f"oversubscription = {self.oversubscription:g} leaves no port up or none down on "
            f"a switch of {self.radix} ports: take one between {1 / (self.radix - 1):.3g} "
            f"and {self.radix - 1}"
        )

    def _check_servers(self) -> None:
        g = self.endpoints_per_server
        if self.attachment == "plane" and g % self.planes:
            raise ValueError(
                f"endpoints_per_server = {g} cannot be spread evenly over planes = {self.planes}"
            )
        if self.endpoints is not None and self.endpoints % g:
            below = self.endpoints // g * g
            raise ValueError(
                f"endpoints = {self.endpoints} is not a whole number of servers of "
                f"endpoints_per_server = {g}: take {below or g} or {below + g}"
            )

    @property
    def radix(self) -> int:
        """Ports of a switch."""
        return round(self.switch_bandwidth / self.port_bandwidth)

    @property
    def planes_per_endpoint(self) -> int:
        """Planes that an endpoint is in."""
        return 1 if self.attachment == "plane" else self.planes

    @property
    def server_endpoints_per_plane(self) -> int:
        """Endpoints of a server in one plane."""
        shared = self.planes if self.attachment == "plane" else 1
        return self.endpoints_per_server // shared

    @property
    def rails(self) -> int:
        """Leaves over which the endpoints of a server are spread."""
        return self.endpoints_per_server if self.attachment == "rail" else 1

    @property
    def leaf_up(self) -> int:
        """Ports of a leaf towards the spines."""
        if self.endpoints_per_leaf is None:
            return int(self.radix / (1 + self.oversubscription))
        ports = self.endpoints_per_leaf * self.endpoint_ports
        up = _up(ports, self.oversubscription)
        return up if ports + up <= self.radix else 0

    @property
    def _ports_down(self) -> int:
        return int(min(self.leaf_up * self.oversubscription, self.radix - self.leaf_up))

    @property
    def leaf_down(self) -> int:
        """Endpoints of a full leaf: whole servers, unless these are spread over rails."""
        most = self.endpoints_per_leaf or self._ports_down // self.endpoint_ports
        return most if self.rails > 1 else self._whole_servers(most)

    def _whole_servers(self, endpoints: int) -> int:
        return endpoints // self.server_endpoints_per_plane * self.server_endpoints_per_plane

    @property
    def single_switch(self) -> int:
        """Most endpoints of a plane that is one switch."""
        return self._whole_servers(self.radix // self.endpoint_ports)

    @property
    def leaves_per_pod(self) -> int:
        """Leaves of a pod of three layers: whole groups of rails."""
        return self.radix // 2 // self.rails * self.rails

    @property
    def fits(self) -> int:
        """Most endpoints: radix, radix^2 / 2 or radix^3 / 4 where not oversubscribed."""
        most = self.single_switch
        if self.layers >= 2:
            most = max(most, self.leaf_down * (self.radix // self.rails * self.rails))
        if self.layers == 3:
            most = max(most, self.leaf_down * self.leaves_per_pod * self.radix)
        return most * (self.planes // self.planes_per_endpoint)


def _up(ports_down: int, oversubscription: float) -> int:
    """Fewest ports up that keep to the oversubscription."""
    return math.ceil(ports_down / oversubscription)


@dataclass(frozen=True)
class _Shape:
    """What one plane is made of."""

    endpoints: int
    down: int
    """Endpoints of a full leaf."""
    rails: int
    """Leaves of a group: endpoint i of a server is on leaf i of its group."""
    leaves: int
    pods: int
    leaves_per_pod: int
    leaf_cables: tuple[int, ...]
    """Cables from any leaf to each spine (of its pod)."""
    core_cables: tuple[int, ...]
    """Cables from any spine to each core of its group; the spines of one index form a group."""

    @property
    def spines_per_pod(self) -> int:
        return len(self.leaf_cables)

    @property
    def spines(self) -> int:
        return self.pods * self.spines_per_pod

    @property
    def cores(self) -> int:
        return self.spines_per_pod * len(self.core_cables)

    @property
    def leaf_links(self) -> int:
        return self.leaves * sum(self.leaf_cables)

    @property
    def core_links(self) -> int:
        return self.spines * sum(self.core_cables)


def _spread(cables: int, below: int, radix: int) -> tuple[int, ...]:
    """Spread a switch's cables evenly over as few switches above as hold those of all `below`.

    Every switch below has the same number of cables to a given one above, so that what is sprayed
    up in proportion to capacity finds the same proportions on its way down.
    """
    above = -(-cables // (radix // below))
    return tuple(cables // above + (i < cables % above) for i in range(above))


def _shape(p: FatTree) -> _Shape:
    n = (p.fits if p.endpoints is None else p.endpoints) // (p.planes // p.planes_per_endpoint)
    if n <= p.single_switch:
        return _Shape(n, p.single_switch, 1, 1, 1, 1, (), ())
    leaves = -(-n // (p.leaf_down * p.rails)) * p.rails
    if leaves <= p.radix:
        up = _spread(p.leaf_up, leaves, p.radix)
        return _Shape(n, p.leaf_down, p.rails, leaves, 1, leaves, up, ())
    pods = -(-leaves // p.leaves_per_pod)
    cores = _spread(p.radix // 2, pods, p.radix)
    return _Shape(n, p.leaf_down, p.rails, leaves, pods, p.leaves_per_pod, (1,) * p.leaf_up, cores)


def _attached(p: FatTree, s: _Shape) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Plane (-1 for all), leaf, and port of the leaf of every endpoint; and its rank."""
    rank = np.arange(s.endpoints * (p.planes // p.planes_per_endpoint), dtype=np.int32)
    server, i = np.divmod(rank, p.endpoints_per_server)
    plane = np.full(len(rank), -1)
    within = rank
    if p.attachment == "plane":
        plane = i % p.planes
        within = server * p.server_endpoints_per_plane + i // p.planes
    if s.rails > 1:
        leaf = server // s.down * s.rails + i
        return plane, leaf, server % s.down, rank
    return plane, within // s.down, within % s.down, rank


def build(p: FatTree) -> Fabric:
    """Join endpoints to leaves, leaves to spines, and spines to cores where three layers are used.

    With two layers every leaf has the same number of cables to each spine. With three, pods of
    radix/2 leaves have one spine for each port up of a leaf; the spines of one index in all pods
    share a group of cores.

    Examples
    --------
    >>> tree = FatTree(switch_bandwidth="3.6 Tb/s", port_bandwidth="100 Gb/s", endpoints=108,
    ...                oversubscription=3)
    >>> counts = count(tree)
    >>> counts.switches_by_kind
    {'leaf': 4, 'spine': 1}
    """
    s = _shape(p)
    plane_of, leaf_of, port, ranks = _attached(p, s)
    links: list[tuple[str, IntArray, IntArray]] = []
    per_plane = s.leaves + s.spines + s.cores
    leaf, pod_of_leaf = np.arange(s.leaves), np.arange(s.leaves) // s.leaves_per_pod
    spine = np.arange(s.spines)
    for plane in range(p.planes):
        first_leaf = len(ranks) + plane * per_plane
        first_spine, first_core = first_leaf + s.leaves, first_leaf + s.leaves + s.spines
        own = np.repeat(ranks[(plane_of == plane) | (plane_of < 0)], p.endpoint_ports)
        links.append(("host", own, first_leaf + leaf_of[own]))
        low, index = _each_cable(leaf, s.leaf_cables)
        high = pod_of_leaf[low] * s.spines_per_pod + index
        links.append(("leaf-spine", first_leaf + low, first_spine + high))
        low, index = _each_cable(spine, s.core_cables)
        high = low % max(s.spines_per_pod, 1) * len(s.core_cables) + index
        links.append(("spine-core", first_spine + low, first_core + high))
    kinds = np.repeat(np.array([1, 2, 3], np.int8), [s.leaves, s.spines, s.cores])
    return assemble(
        "fat_tree",
        [(*link, p.port_bandwidth, p.link_latency) for link in links if len(link[1])],
        node_kind=np.r_[np.zeros(len(ranks), np.int8), np.tile(kinds, p.planes)],
        node_kinds=("endpoint", "leaf", "spine", "core"),
        endpoints=ranks,
        forward=False,
        switch_latency=p.switch_latency,
        forward_latency=0.0,
        message_latency=p.message_latency,
        coordinates=_places(s, plane_of, leaf_of, port, p.planes),
        axes=("plane", "pod", "leaf", "port", "switch"),
    )


def _each_cable(
    low: NDArray[np.int_], cables: tuple[int, ...]
) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """List the lower switch, and the index of the upper one, of every cable."""
    index = np.repeat(np.arange(len(cables)), cables)
    return np.repeat(low, len(index)), np.tile(index, len(low))


def _places(
    s: _Shape, plane_of: IntArray, leaf_of: IntArray, port: IntArray, planes: int
) -> NDArray[np.int32]:
    """Coordinates on (plane, pod, leaf, port, switch)."""
    leaf, spine, core = np.arange(s.leaves), np.arange(s.spines), np.arange(s.cores)
    nowhere = -1

    def rows(*columns: IntArray | int) -> IntArray:
        return np.column_stack(np.broadcast_arrays(*columns))

    pod, index = np.divmod(leaf_of, s.leaves_per_pod)
    places = [rows(plane_of, pod, index, port, nowhere)]
    for plane in range(planes):
        pod, index = np.divmod(leaf, s.leaves_per_pod)
        places.append(rows(plane, pod, index, nowhere, nowhere))
        if s.spines:
            pod, index = np.divmod(spine, s.spines_per_pod)
            places.append(rows(plane, pod, nowhere, nowhere, index))
        if s.cores:
            places.append(rows(plane, nowhere, nowhere, nowhere, core))
    return np.concatenate(places).astype(np.int32)


def count(p: FatTree) -> Counts:
    """Count a fat-tree from its parameters."""
    s = _shape(p)
    by_kind = {"leaf": s.leaves, "spine": s.spines, "core": s.cores}
    layers = 1 + (s.spines > 0) + (s.cores > 0)
    endpoints = s.endpoints * (p.planes // p.planes_per_endpoint)
    ports = p.planes_per_endpoint * p.endpoint_ports
    return Counts(
        endpoints=endpoints,
        switches=p.planes * (s.leaves + s.spines + s.cores),
        switch_links=p.planes * (s.leaf_links + s.core_links),
        endpoint_links=ports * endpoints,
        injection_Bps=ports * p.port_bandwidth,
        bisection_Bps=p.planes * p.port_bandwidth * _bisection(p, s),
        diameter=2 * layers if s.endpoints > 1 else 0,
        degree=ports,
        switches_by_kind={kind: p.planes * n for kind, n in by_kind.items() if n},
        notes=_notes(p, s),
    )


def _notes(p: FatTree, s: _Shape) -> tuple[str, ...]:
    notes = []
    down = p.leaf_down * p.endpoint_ports
    if s.leaves > 1 and down != p.leaf_up * p.oversubscription:
        notes.append(
            f"{down} ports down and {p.leaf_up} up at a leaf: {down / p.leaf_up:.4g} to 1, the "
            f"nearest to oversubscription = {p.oversubscription:g} on {p.radix} ports"
        )
    if p.attachment == "plane" and p.planes > 1:
        notes.append(
            "planes are joined by the servers alone: endpoints on different planes have no path "
            "in this fabric by itself; diameter and bisection are within planes"
        )
    if p.radix > 256:
        notes.append(
            f"{p.radix} ports need a switch chip with as many port controllers: some 51.2T chips "
            "have 512 (Tomahawk Ultra), others stop at 320 (Tomahawk 5 boxes) or 256 (Spectrum-4); "
            "max_radix holds the fabric to a limit"
        )
    return tuple(notes)


def _bisection(p: FatTree, s: _Shape) -> int:
    """Cables of one plane between two halves of the servers: whole leaves and one split leaf.

    Where servers are spread over rails, whole groups of leaves and one group of split leaves. A
    single server is cut through.
    """
    ports, up = p.endpoint_ports, sum(s.leaf_cables)
    total, whole = s.endpoints // s.rails, 1 if s.rails > 1 else p.server_endpoints_per_plane
    half = total // whole // 2 * whole
    if half == 0:
        return s.endpoints // 2 * ports
    if s.leaves == 1:
        return half * ports
    last = total - (s.leaves // s.rails - 1) * s.down
    best = half * ports
    for with_last in (0, last):
        rest = half - with_last
        if rest < 0:
            continue
        full, split = divmod(rest, s.down)
        cost = min(up, with_last * ports) + full * min(up, s.down * ports)
        best = min(best, cost + min(split * ports, up + (s.down - split) * ports))
    return best * s.rails


BUILDER = Builder(FatTree, build, count)
