"""Edges: any fabric of one's own, or of another tool, read from a file.

What is in the file is the fabric, so that counting reads the file, too. How files are read is the
business of `fabricsim.formats`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from fabricsim import formats, units
from fabricsim.arrays import BoolArray, IntArray, sum_at
from fabricsim.builders import Builder
from fabricsim.errors import FabricsimError, SpecError, unknown_name
from fabricsim.fabric import ENDPOINT, Counts, Fabric, from_networkx
from fabricsim.formats.graphs import checked
from fabricsim.graph import hop_distances
from fabricsim.parameters import Bandwidth, Duration, FilePath, Parameters, as_list

if TYPE_CHECKING:
    import networkx as nx

_AT_ONCE = 256
"""Endpoints from which distances are measured together."""


def _patterns(value: object) -> object:
    return value if value is None else as_list(value)


class Edges(Parameters):
    """Parameters of a fabric that is read from a file."""

    path: FilePath
    """A relative path starts at the topology file."""
    format: str | None = None
    """Name of the file's format; told by the file if left out."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What the format leaves open, such as ``gigabyte`` for astra-sim."""
    bandwidth: Bandwidth | None = None
    """Of links of which the file gives none."""
    duplex: bool = True
    """Whether a line of a CSV file is a cable, both ways, where it does not say so itself."""
    endpoints: Annotated[tuple[str, ...] | None, BeforeValidator(_patterns)] = None
    """Names of the nodes that are endpoints, or patterns of them such as ``"gpu*"``; all others
    are switches. If left out the file says, and where it does not all nodes are endpoints."""
    forward: bool = False
    """Whether endpoints pass on the traffic of others, where the file does not say."""
    switch_latency: Duration = 0.0
    """To pass through a switch, where the file does not say."""
    forward_latency: Duration = 0.0
    """To pass through an endpoint, where the file does not say."""
    message_latency: Duration | None = None
    """Of each transfer, at its two ends together; what the file says, or 0, if left out."""


def build(p: Edges) -> Fabric:
    """Read the fabric from its file.

    A list of edges has a first line with the names of its columns: ``src``, ``dst`` and
    ``bandwidth``, and where wanted ``latency``, ``kind`` and ``duplex``. Bandwidth and latency have
    units. A graph's edges have ``bandwidth`` with a unit or ``capacity`` in B/s, and ``latency``
    with a unit or in seconds; an undirected edge is a cable. See `from_networkx` for the rest.
    Endpoints keep the order of the file.

    Raises
    ------
    SpecError
        The file cannot be read, or a link in it is not as it should be.
    FabricError
        The links do not describe a network.
    """
    name = p.format or formats.tell(p.path, formats.TOPOLOGY)
    if formats.find(name).holds != "topology":
        raise SpecError(f"{p.path.name}: a file in the format {name} holds no topology")
    options = {"duplex": p.duplex} if name == "edge-list" else {}
    graph = checked(formats.read(p.path, name, options | p.options), p.path.name)
    if p.endpoints is not None:
        _mark_endpoints(graph, p.endpoints)
    if p.message_latency is not None:
        graph.graph["message_latency"] = p.message_latency
    _read_quantities(graph, p)
    marked = any("kind" in data or "rank" in data for _, data in graph.nodes(data=True))
    for _, data in graph.nodes(data=True):
        kind = data.get("kind", "endpoint" if "rank" in data or not marked else "switch")
        if kind == "endpoint":
            data.setdefault("transit", p.forward)
        data.setdefault(
            "transit_latency", p.forward_latency if kind == "endpoint" else p.switch_latency
        )
    try:
        return from_networkx(graph)
    except FabricsimError as error:
        raise type(error)(f"{p.path.name}: {error}") from None


def _mark_endpoints(graph: nx.Graph[Any], patterns: tuple[str, ...]) -> None:
    names = {node: str(data.get("name", node)) for node, data in graph.nodes(data=True)}
    named = {node: [fnmatchcase(names[node], pattern) for pattern in patterns] for node in graph}
    for i, pattern in enumerate(patterns):
        if not any(matches[i] for matches in named.values()):
            raise unknown_name("node or pattern of endpoints", pattern, names.values())
    for node, data in graph.nodes(data=True):
        kind = str(data.get("kind", "switch"))
        data.pop("rank", None)
        data["kind"] = "endpoint" if any(named[node]) else kind.replace("endpoint", "switch")


def _read_quantities(graph: nx.Graph[Any], p: Edges) -> None:
    """Put plain numbers in place of bandwidths and latencies with units."""
    for one, other, data in graph.edges(data=True):
        where = data.pop("place", f"{p.path.name}, edge from {one} to {other}")
        if "bandwidth" in data:
            if "capacity" in data:
                raise SpecError(f"{where}: has a bandwidth and a capacity: give one of them")
            data["capacity"] = _parse(data.pop("bandwidth"), "B/s", f"{where}, bandwidth")
        elif "capacity" not in data:
            if p.bandwidth is None:
                raise SpecError(
                    f"{where}: is without bandwidth: give 'bandwidth', such as '100 Gb/s'"
                    + ("" if p.path.suffix == ".csv" else " or 'capacity' in B/s")
                    + ", or topology.bandwidth for all such links"
                )
            data["capacity"] = p.bandwidth
        if isinstance(data.get("latency"), str):
            data["latency"] = _parse(data["latency"], "s", f"{where}, latency")


def _parse(value: object, unit: str, where: str) -> float:
    try:
        return units.parse(value, unit)
    except ValueError as error:
        raise SpecError(f"{where}: {error}") from None


def count(p: Edges) -> Counts:
    """Count the fabric in the file; its bisection is not known."""
    fabric = build(p)
    is_switch = fabric.node_kind != ENDPOINT
    between = is_switch[fabric.link_src] & is_switch[fabric.link_dst]
    ends = fabric.endpoints
    out = sum_at(fabric.link_src, fabric.capacity, fabric.nodes)[ends]
    degree = np.bincount(np.r_[fabric.link_src, fabric.link_dst], minlength=fabric.nodes)[ends]
    diameter, lost = _distances(fabric)
    by_kind = np.bincount(fabric.node_kind, minlength=len(fabric.node_kinds))
    pairs = len(ends) * (len(ends) - 1)
    return Counts(
        endpoints=len(ends),
        switches=int(is_switch.sum()),
        switch_links=_cables(fabric, between),
        endpoint_links=_cables(fabric, ~between),
        injection_Bps=float(out.min()) if len(ends) else 0.0,
        bisection_Bps=None,
        diameter=diameter,
        degree=-(-int(degree.min()) // 2) if len(ends) else 0,
        switches_by_kind={
            kind: int(n)
            for kind, n in zip(fabric.node_kinds[1:], by_kind[1:].tolist(), strict=True)
            if n
        },
        notes=(f"{lost:,} of {pairs:,} pairs have no path",) if lost else (),
    )


def _cables(fabric: Fabric, which: BoolArray) -> int:
    """Count cables: a link there and a link back are one, a link without its way back is one."""
    one, other = fabric.link_src[which].astype(np.int64), fabric.link_dst[which].astype(np.int64)
    nodes = fabric.nodes
    forward, there = np.unique(one * nodes + other, return_counts=True)
    reverse: IntArray = forward % nodes * nodes + forward // nodes
    at = np.minimum(np.searchsorted(forward, reverse), max(len(forward) - 1, 0))
    back = np.where(forward[at] == reverse, there[at], 0) if len(forward) else there
    more = np.maximum(there, back)
    alone = back == 0
    return int(more[alone].sum() + more[~alone].sum() // 2)


def _distances(fabric: Fabric) -> tuple[int, int]:
    """Most links between two endpoints that have a path, and how many pairs have none."""
    farthest = lost = 0
    for start in range(0, len(fabric.endpoints), _AT_ONCE):
        targets = fabric.endpoints[start : start + _AT_ONCE]
        hops = hop_distances(
            fabric.link_src, fabric.link_dst, fabric.nodes, targets, fabric.transit
        )[:, fabric.endpoints]
        farthest, lost = max(farthest, int(hops.max())), lost + int((hops < 0).sum())
    return farthest, lost


BUILDER = Builder(Edges, build, count)
