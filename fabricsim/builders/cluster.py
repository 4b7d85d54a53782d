"""Cluster: pods of a scale-up fabric, joined through NICs by a scale-out network.

Both can be any other builder's. The endpoints of the network are the NICs, each a node of its own
that one or several chips of a pod share. Traffic within a pod stays in it; traffic between pods
leaves by the NIC of its chip, or first crosses the pod to the chip at the place of its destination
(`rail_forwarding`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import InstanceOf, ValidationInfo, field_validator, model_validator

from fabricsim.arrays import IntArray
from fabricsim.builders import Builder, Part, read_part
from fabricsim.builders.fat_tree import FatTree
from fabricsim.errors import SpecError
from fabricsim.fabric import Counts, Fabric
from fabricsim.parameters import Bandwidth, Count, Duration, Parameters


class Cluster(Parameters):
    """Parameters of a cluster."""

    pods: Count
    """How many pods are joined."""
    pod: InstanceOf[Part]
    """The scale-up fabric of one pod."""
    nic_bandwidth: Bandwidth
    """Of one chip to its NIC."""
    chips_per_nic: Count = 1
    """Consecutive chips that share a NIC."""
    scale_out: InstanceOf[Part]
    """The network between NICs. It is given as many endpoints as there are NICs where its builder
    has a parameter for that; otherwise endpoints that are left over are left out."""
    rail_forwarding: bool = False
    """Whether traffic between pods first crosses its own pod to the chip at the place of its
    destination, so that it leaves on that chip's rail."""
    nic_latency: Duration = 0.0
    """To pass through a NIC. What a message costs at its ends is the pod's figure."""

    @field_validator("pod", mode="before")
    @classmethod
    def _read_pod(cls, value: object, info: ValidationInfo) -> Part:
        return read_part(value, info)

    @field_validator("scale_out", mode="before")
    @classmethod
    def _read_scale_out(cls, value: object, info: ValidationInfo) -> Part:
        if not {"pods", "pod", "chips_per_nic"} <= set(info.data):
            raise ValueError("cannot be sized before pods, pod and chips_per_nic are right")
        chips = info.data["pod"].count().endpoints
        nics = info.data["pods"] * (chips // info.data["chips_per_nic"])
        return read_part(value, info, {"endpoints": nics})

    @model_validator(mode="after")
    def _joined(self) -> Self:
        for part in (self.pod, self.scale_out):
            if isinstance(part.parameters, Cluster):
                raise ValueError("a cluster can be neither a pod nor the network of another")
        chips, network = self.pod.count().endpoints, self.scale_out.count()
        if chips % self.chips_per_nic:
            near = [k for k in range(1, chips + 1) if chips % k == 0]
            best = min(near, key=lambda k: abs(k - self.chips_per_nic))
            raise ValueError(
                f"chips_per_nic = {self.chips_per_nic} does not divide the {chips} chips of a pod: "
                f"the nearest that does is {best}"
            )
        if network.endpoints < self.nics:
            raise ValueError(
                f"scale_out has room for {network.endpoints} NICs, and {self.pods} pods have "
                f"{self.nics}"
            )
        if isinstance(self.scale_out.parameters, FatTree):
            self._check_rails(self.scale_out.parameters)
        return self

    def _check_rails(self, tree: FatTree) -> None:
        if tree.attachment == "tor":
            return
        if self.nics_per_pod % tree.endpoints_per_server:
            raise ValueError(
                f"endpoints_per_server = {tree.endpoints_per_server} of scale_out does not divide "
                f"the {self.nics_per_pod} NICs of a pod"
            )
        if tree.attachment == "plane" and tree.planes > 1 and not self.rail_forwarding:
            raise ValueError(
                "planes that only the pods join need rail_forwarding = true: without it no path "
                "leads from one plane to another"
            )

    @property
    def nics_per_pod(self) -> int:
        """NICs of one pod."""
        return self.pod.count().endpoints // self.chips_per_nic

    @property
    def nics(self) -> int:
        """NICs of all pods."""
        return self.pods * self.nics_per_pod


def _apart(names: Iterable[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Rename what the network and the pods both have."""
    already = set(taken)
    return tuple(f"network-{name}" if name in already else name for name in names)


def build(p: Cluster) -> Fabric:
    """Build one pod and the network, repeat the pod, and join each chip to its NIC.

    Ranks count the chips of a pod, then pods.

    Raises
    ------
    SpecError
        More endpoints than NICs in a network that passes traffic through its endpoints.

    Examples
    --------
    >>> from fabricsim.builders import find
    >>> star = find("star")
    >>> pod = Part(star, star.parameters(endpoints=8, bandwidth="450 GB/s"))
    >>> network = Part(star, star.parameters(endpoints=16, bandwidth="400 Gb/s"))
    >>> cluster = Cluster(pods=2, pod=pod, nic_bandwidth="400 Gb/s", scale_out=network)
    >>> fabric = build(cluster)
    >>> len(fabric.endpoints), fabric.link_kinds
    (16, ('host', 'nic', 'network-host'))
    """
    pod, network = p.pod.build(), p.scale_out.build()
    where = _network_nodes(p, pod, network)
    chips = np.arange(p.pods)[:, None] * pod.nodes + pod.endpoints
    chip, nic = chips.ravel(), np.repeat(where[network.endpoints[: p.nics]], p.chips_per_nic)
    wired = (where[network.link_src] >= 0) & (where[network.link_dst] >= 0)

    def ends(pods: IntArray, to_nic: list[IntArray], others: IntArray) -> NDArray[np.int32]:
        start = np.repeat(np.arange(p.pods) * pod.nodes, pod.links)
        repeated = np.tile(pods, p.pods) + start
        return np.concatenate([repeated, *to_nic, where[others[wired]]]).astype(np.int32)

    def per_link(pods: NDArray[Any], to_nic: float, others: NDArray[Any]) -> NDArray[Any]:
        own = np.full(2 * len(chip), to_nic, pods.dtype)
        return np.concatenate([np.tile(pods, p.pods), own, others[wired]])

    def per_node(pods: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([np.tile(pods, p.pods), others[where >= 0]])

    is_nic = network.node_kind == 0
    nic_kind = len(pod.node_kinds)
    node_kinds = (*pod.node_kinds, "nic")
    link_kinds = (*pod.link_kinds, "nic")
    domain = np.r_[np.repeat(np.arange(p.pods), pod.nodes), np.full((where >= 0).sum(), -1)]
    rail = np.full(pod.nodes, -1, np.int32)
    rail[pod.endpoints] = np.arange(len(pod.endpoints))
    return Fabric(
        name="cluster",
        link_src=ends(pod.link_src, [chip, nic], network.link_src),
        link_dst=ends(pod.link_dst, [nic, chip], network.link_dst),
        capacity=per_link(pod.capacity, p.nic_bandwidth, network.capacity),
        latency=per_link(pod.latency, 0.0, network.latency),
        link_kind=per_link(pod.link_kind, len(pod.link_kinds), network.link_kind + len(link_kinds)),
        link_kinds=(*link_kinds, *_apart(network.link_kinds, link_kinds)),
        node_kind=per_node(pod.node_kind, network.node_kind + nic_kind),
        node_kinds=(*node_kinds, *_apart(network.node_kinds[1:], node_kinds)),
        endpoints=chip.astype(np.int32),
        transit=per_node(pod.transit, is_nic | network.transit),
        transit_latency=per_node(
            pod.transit_latency, np.where(is_nic, p.nic_latency, network.transit_latency)
        ),
        message_latency=pod.message_latency,
        coordinates=_places(p, pod, network, where),
        axes=("pod", *_apart(pod.axes, ["pod"]), *_apart(network.axes, ["pod", *pod.axes])),
        cables=per_link(pod.cables, 1, network.cables),
        reduces=pod.reduces and network.reduces,
        domain=domain.astype(np.int32),
        rail=per_node(rail, np.full(network.nodes, -1, np.int32))
        if p.rail_forwarding
        else rail[:0],
        node_names=_names(p, pod, network, where),
    )


def _network_nodes(p: Cluster, pod: Fabric, network: Fabric) -> IntArray:
    """Give every node of the network its number behind the pods; -1 for endpoints left over."""
    spare = network.endpoints[p.nics :]
    if len(spare) and network.transit[spare].any():
        raise SpecError(
            f"scale_out has {len(network.endpoints)} endpoints that pass on traffic, and needs as "
            f"many as there are NICs: {p.nics}"
        )
    kept = np.ones(network.nodes, bool)
    kept[spare] = False
    return np.where(kept, p.pods * pod.nodes + np.cumsum(kept) - 1, -1)


def _places(p: Cluster, pod: Fabric, network: Fabric, where: IntArray) -> NDArray[np.int32]:
    """Coordinates: the number of the pod, those in the pod, those in the network."""
    inside, outside = len(pod.axes), len(network.axes)
    first = p.pods * pod.nodes
    places = np.full((first + int((where >= 0).sum()), 1 + inside + outside), -1, np.int32)
    places[:first, 0] = np.repeat(np.arange(p.pods), pod.nodes)
    places[:first, 1 : 1 + inside] = np.tile(pod.coordinates, (p.pods, 1))
    places[first:, 1 + inside :] = network.coordinates[where >= 0]
    places[where[network.endpoints[: p.nics]], 0] = np.arange(p.nics) // p.nics_per_pod
    return places


def _names(p: Cluster, pod: Fabric, network: Fabric, where: IntArray) -> tuple[str, ...]:
    """Names of all nodes where the pod or the network names its own."""
    if not (pod.node_names or network.node_names):
        return ()
    inside = [pod.node_name(node) for node in range(pod.nodes)]
    return (
        *(f"pod {i} {name}" for i in range(p.pods) for name in inside),
        *(network.node_name(int(node)) for node in np.flatnonzero(where >= 0)),
    )


def count(p: Cluster) -> Counts:
    """Count a cluster from its parameters.

    The bisection is that between halves of the pods; of an odd number, one is cut through, with
    its NICs on one side. The diameter is exact for stars and fat-trees; that of another network is
    taken as it stands, though NICs that far apart may have nothing to say to each other: those of
    different rails, or endpoints left over.
    """
    pod, network = p.pod.count(), p.scale_out.count()
    chips = p.pods * pod.endpoints
    spare = network.endpoints - p.nics
    by_kind = {kind: p.pods * n for kind, n in pod.switches_by_kind.items()}
    kinds = _apart(network.switches_by_kind, [*by_kind, "nic"])
    by_kind |= dict(zip(kinds, network.switches_by_kind.values(), strict=True))
    diameter = pod.diameter
    if p.pods > 1:
        inside = pod.diameter if p.rail_forwarding else 0
        diameter = max(diameter, inside + 2 + _apart_in_network(p, network))
    return Counts(
        endpoints=chips,
        switches=p.pods * pod.switches + network.switches,
        switch_links=p.pods * pod.switch_links + network.switch_links,
        endpoint_links=p.pods * pod.endpoint_links
        + chips
        + network.endpoint_links
        - spare * network.degree,
        injection_Bps=pod.injection_Bps + p.nic_bandwidth,
        bisection_Bps=_bisection(p, pod, network),
        diameter=diameter,
        degree=pod.degree + 1,
        switches_by_kind=by_kind,
        nics=p.nics,
        copper_cables=pod.copper_cables and p.pods * pod.copper_cables,
        notes=(*pod.notes, *network.notes),
    )


def _apart_in_network(p: Cluster, network: Counts) -> int:
    """Most links between two NICs that exchange traffic: with rails, those of one rail."""
    tree = p.scale_out.parameters
    if p.rail_forwarding and isinstance(tree, FatTree) and tree.attachment == "rail":
        groups = network.switches_by_kind["leaf"] // tree.planes // tree.rails
        return network.diameter if groups > 1 else 2
    return network.diameter


def _bisection(p: Cluster, pod: Counts, network: Counts) -> float | None:
    each = min(p.nic_bandwidth, network.injection_Bps / p.chips_per_nic)
    whole = p.pods // 2 * pod.endpoints * each
    if p.pods % 2 == 0:
        return whole if network.bisection_Bps is None else min(whole, network.bisection_Bps)
    if pod.bisection_Bps is None:
        return None
    return whole + pod.bisection_Bps + pod.endpoints // 2 * p.nic_bandwidth


BUILDER = Builder(Cluster, build, count)
