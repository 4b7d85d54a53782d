"""Fabric: the nodes and directed links of a network as NumPy arrays, and its counts.

Lives here: the data, its validation, the way to and from networkx, and the merging of parallel
cables. How a fabric is made from parameters is the builders' business; what travels over it is
not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fabricsim.arrays import BoolArray, FloatArray, IntArray
from fabricsim.errors import FabricError

if TYPE_CHECKING:
    import networkx as nx

ENDPOINT = 0
"""The node kind of endpoints: index 0 of every fabric's `node_kinds`."""


@dataclass(frozen=True)
class Counts:
    """What `show` tells of a fabric, computed from its parameters alone.

    A link here is a cable (both directions); bandwidths are of one direction.
    """

    endpoints: int
    switches: int
    switch_links: int
    """Cables between switches."""
    endpoint_links: int
    """Cables at endpoints; one between two endpoints counts once."""
    injection_Bps: float
    """What one endpoint can send: the sum of its links; the least where endpoints differ."""
    bisection_Bps: float | None
    """The least capacity, one way, between two halves of the endpoints; None where not known."""
    diameter: int
    """Most links on a shortest path between two endpoints."""
    degree: int
    """Cables at an endpoint; the least where endpoints differ."""
    switches_by_kind: Mapping[str, int] = field(default_factory=dict)
    nics: int = 0
    """Network cards that are nodes of their own; their cables count as those at endpoints."""
    copper_cables: int | None = None
    """Copper cables of all backplanes, spare lanes included; None where not known."""
    notes: tuple[str, ...] = ()
    """What a reader of the counts should know, such as a switch that few chips can be."""

    @property
    def directed_links(self) -> int:
        """Links of the built fabric: two for each cable."""
        return 2 * (self.switch_links + self.endpoint_links)


def _none() -> NDArray[np.int32]:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Fabric:
    """A network of endpoints and switches.

    Every link is directed; a cable is two links. All arrays are read-only.

    Attributes
    ----------
    name : str
        Name for people.
    link_src, link_dst : (links,) ints
        Nodes at the two ends of each link.
    capacity : (links,) floats
        Bytes per second; above zero.
    latency : (links,) floats
        Seconds that a byte needs from end to end.
    link_kind : (links,) ints
        Index into `link_kinds`.
    link_kinds : tuple of str
        Names such as ``"x"``, ``"backplane"``, ``"cross-rack"``, ``"leaf-spine"``.
    node_kind : (nodes,) ints
        Index into `node_kinds`.
    node_kinds : tuple of str
        ``"endpoint"`` first; all others are kinds of switches.
    endpoints : (endpoints,) ints
        The nodes that traffic starts and ends at, in the order of ranks.
    transit : (nodes,) bools
        Whether traffic may pass through the node: all switches, and chips that forward.
    transit_latency : (nodes,) floats
        Seconds that passing through the node takes.
    message_latency : float
        Seconds that each transfer costs at its two ends together: software, DMA, NIC.
    coordinates : (nodes, axes) ints
        Where each node stands; -1 on an axis on which it has no place.
    axes : tuple of str
        Names of the axes of `coordinates`.
    cables : (links,) ints
        How many equal parallel cables the link stands for; 1 unless `bundle_cables` merged them.
    domain : (nodes,) ints, or empty
        The pod that each node is in, -1 outside of pods. Traffic within a pod stays in it, and
        traffic between pods takes no link inside of a pod. Empty: no pods.
    rail : (nodes,) ints, or empty
        The place of each endpoint in its pod, -1 elsewhere. If given, traffic to another pod first
        goes through its own pod to the endpoint at the place of its destination.
    node_names : tuple of str
        Names of the nodes, or empty: then a name is made of kind and coordinates.
    reduces : bool
        Whether the switches can add up what endpoints send through them.
    spec : mapping
        The specification that the fabric was built from, or empty.

    Raises
    ------
    FabricError
        Where the arrays do not describe a network; the message names the link or the node.
    """

    name: str
    link_src: IntArray
    link_dst: IntArray
    capacity: FloatArray
    latency: FloatArray
    link_kind: IntArray
    link_kinds: tuple[str, ...]
    node_kind: IntArray
    node_kinds: tuple[str, ...]
    endpoints: IntArray
    transit: BoolArray
    transit_latency: FloatArray
    message_latency: float
    coordinates: IntArray
    axes: tuple[str, ...]
    cables: IntArray
    domain: IntArray = field(default_factory=_none)
    rail: IntArray = field(default_factory=_none)
    node_names: tuple[str, ...] = ()
    reduces: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        _validate(self)

    @property
    def nodes(self) -> int:
        """Number of nodes, endpoints and switches."""
        return len(self.node_kind)

    @property
    def links(self) -> int:
        """Number of directed links."""
        return len(self.link_src)

    def node_name(self, node: int) -> str:
        """Name a node for people: its own name, or kind and coordinates."""
        if self.node_names:
            return self.node_names[node]
        kind = self.node_kinds[self.node_kind[node]]
        place = [
            f"{a} {c}" for a, c in zip(self.axes, self.coordinates[node], strict=True) if c >= 0
        ]
        return f"{kind} ({', '.join(place)})" if place else f"{kind} {node}"

    def link_name(self, link: int) -> str:
        """Name a link for people: its kind and the names of its ends."""
        src, dst = self.node_name(self.link_src[link]), self.node_name(self.link_dst[link])
        kind = self.link_kinds[self.link_kind[link]]
        return (
            f"{kind} from {src} to {dst}" if kind == "link" else f"{kind} link from {src} to {dst}"
        )


def _validate(fabric: Fabric) -> None:
    links, nodes = len(fabric.link_src), len(fabric.node_kind)
    per_link = ("link_dst", "capacity", "latency", "link_kind", "cables")
    per_node = ["transit", "transit_latency", "coordinates"]
    per_node += [name for name in ("domain", "rail") if len(getattr(fabric, name))]
    for name, length in [(n, links) for n in per_link] + [(n, nodes) for n in per_node]:
        if len(getattr(fabric, name)) != length:
            raise FabricError(f"{name} has {len(getattr(fabric, name))} entries, not {length}")
    if fabric.node_kinds[:1] != ("endpoint",):
        raise FabricError(f"node_kinds must begin with 'endpoint', not {fabric.node_kinds!r}")
    if fabric.node_names and len(fabric.node_names) != nodes:
        raise FabricError(f"node_names has {len(fabric.node_names)} entries, not {nodes}")
    for name, top in (
        ("link_src", nodes),
        ("link_dst", nodes),
        ("endpoints", nodes),
        ("link_kind", len(fabric.link_kinds)),
        ("node_kind", len(fabric.node_kinds)),
    ):
        index = getattr(fabric, name)
        if len(index) and (index.min() < 0 or index.max() >= top):
            raise FabricError(f"{name} must lie between 0 and {top - 1}")
    is_endpoint = fabric.node_kind == ENDPOINT
    stray = fabric.endpoints[~is_endpoint[fabric.endpoints]]
    if len(stray):
        raise FabricError(f"{fabric.node_name(stray[0])} is a switch, and switches are never ranks")
    if len(np.unique(fabric.endpoints)) != is_endpoint.sum() or len(fabric.endpoints) != (
        is_endpoint.sum()
    ):
        raise FabricError("endpoints must list each endpoint node exactly once")
    for bad, what in (
        (~(np.isfinite(fabric.capacity) & (fabric.capacity > 0)), "capacity"),
        (~(np.isfinite(fabric.latency) & (fabric.latency >= 0)), "latency"),
    ):
        if bad.any():
            link = int(np.argmax(bad))
            need = "above zero" if what == "capacity" else "zero or more"
            value = getattr(fabric, what)[link]
            raise FabricError(f"{fabric.link_name(link)}: {what} {value:g}, must be finite, {need}")
    own = fabric.link_src == fabric.link_dst
    if own.any():
        raise FabricError(f"{fabric.link_name(int(np.argmax(own)))}: joins a node to itself")


def assemble(
    name: str,
    links: Sequence[tuple[str, IntArray, IntArray, ArrayLike, ArrayLike]],
    *,
    node_kind: IntArray,
    node_kinds: tuple[str, ...],
    endpoints: IntArray,
    forward: bool,
    switch_latency: ArrayLike,
    forward_latency: float,
    message_latency: float,
    coordinates: IntArray,
    axes: tuple[str, ...],
    reduces: bool = False,
) -> Fabric:
    """Make a fabric of groups of cables.

    Parameters
    ----------
    name : str
        Name for people.
    links : sequence of (kind, src, dst, capacity, latency)
        Groups of cables; each cable from `src` to `dst` becomes two links. Capacity (of one
        direction) and latency are one number or one for each cable. Groups may share a kind.
    node_kind, node_kinds, endpoints, message_latency, coordinates, axes, reduces
        As in `Fabric`.
    forward : bool
        Whether endpoints pass on the traffic of others.
    switch_latency : float or (nodes,) floats
        Seconds to pass through a switch.
    forward_latency : float
        Seconds to pass through an endpoint that forwards.
    """
    kinds = tuple(dict.fromkeys(kind for kind, *_ in links))
    src, dst, capacity, latency, link_kind = [], [], [], [], []
    for kind, one_end, other_end, cap, lat in links:
        src += [one_end, other_end]
        dst += [other_end, one_end]
        capacity += [np.broadcast_to(np.asarray(cap, np.float64), len(one_end))] * 2
        latency += [np.broadcast_to(np.asarray(lat, np.float64), len(one_end))] * 2
        link_kind.append(np.full(2 * len(one_end), kinds.index(kind), np.int16))
    is_endpoint = node_kind == ENDPOINT
    return Fabric(
        name=name,
        link_src=_joined(src, np.int32),
        link_dst=_joined(dst, np.int32),
        capacity=_joined(capacity, np.float64),
        latency=_joined(latency, np.float64),
        link_kind=_joined(link_kind, np.int16),
        link_kinds=kinds,
        node_kind=node_kind,
        node_kinds=node_kinds,
        endpoints=endpoints,
        transit=~is_endpoint | forward,
        transit_latency=np.where(is_endpoint, forward_latency, switch_latency),
        message_latency=message_latency,
        coordinates=coordinates,
        axes=axes,
        cables=np.ones(sum(map(len, link_kind)), np.int32),
        reduces=reduces,
    )


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)


def bundle_cables(fabric: Fabric) -> Fabric:
    """Merge equal parallel links into one of their summed capacity.

    Links are merged when they share ends, kind, capacity and latency. Traffic that splits evenly
    over cables loads the members of a bundle alike, so that rates and times stay the same; the
    number of members is kept in `cables`.

    Parameters
    ----------
    fabric : Fabric

    Returns
    -------
    Fabric
        The same fabric where no links are parallel.
    """
    columns = (fabric.latency, fabric.capacity, fabric.link_kind, fabric.link_dst, fabric.link_src)
    order = np.lexsort(columns)
    differs = np.zeros(fabric.links, bool)
    differs[:1] = True
    for column in columns:
        differs[1:] |= np.diff(column[order]) != 0
    starts = np.flatnonzero(differs)
    if len(starts) == fabric.links:
        return fabric
    first = order[starts]
    members = np.add.reduceat(fabric.cables[order], starts)
    return replace(
        fabric,
        link_src=fabric.link_src[first],
        link_dst=fabric.link_dst[first],
        capacity=np.add.reduceat(fabric.capacity[order], starts),
        latency=fabric.latency[first],
        link_kind=fabric.link_kind[first],
        cables=members,
    )


def to_networkx(fabric: Fabric) -> nx.MultiDiGraph[int]:
    """Give the fabric as a networkx graph.

    Returns
    -------
    networkx.MultiDiGraph
        Nodes 0, 1, ... with ``kind``, ``transit``, ``transit_latency`` (s), ``coordinates``, for
        endpoints ``rank``, and ``name``, ``domain`` and ``rail`` where the fabric has them; edges
        with ``capacity`` (B/s), ``latency`` (s), ``kind`` and ``cables``. The graph's own
        attributes carry the rest.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(
        name=fabric.name,
        axes=fabric.axes,
        message_latency=fabric.message_latency,
        node_kinds=fabric.node_kinds,
        link_kinds=fabric.link_kinds,
        reduces=fabric.reduces,
        spec=dict(fabric.spec),
    )
    for node in range(fabric.nodes):
        graph.add_node(
            node,
            kind=fabric.node_kinds[fabric.node_kind[node]],
            transit=bool(fabric.transit[node]),
            transit_latency=float(fabric.transit_latency[node]),
            coordinates=tuple(int(c) for c in fabric.coordinates[node]),
        )
        if fabric.node_names:
            graph.nodes[node]["name"] = fabric.node_names[node]
        for key in ("domain", "rail"):
            if len(getattr(fabric, key)):
                graph.nodes[node][key] = int(getattr(fabric, key)[node])
    for rank, node in enumerate(fabric.endpoints):
        graph.nodes[int(node)]["rank"] = rank
    for link in range(fabric.links):
        graph.add_edge(
            int(fabric.link_src[link]),
            int(fabric.link_dst[link]),
            key=link,
            capacity=float(fabric.capacity[link]),
            latency=float(fabric.latency[link]),
            kind=fabric.link_kinds[fabric.link_kind[link]],
            cables=int(fabric.cables[link]),
        )
    return graph


def from_networkx(graph: nx.Graph[Any]) -> Fabric:
    """Make a fabric of any networkx graph.

    An undirected edge is a cable (two links); a directed one is one link; parallel edges of a
    multigraph stay parallel links.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        Edges need ``capacity`` (B/s) and may have ``latency`` (s, default 0), ``kind`` (default
        ``"link"``) and ``cables``. Nodes may have ``kind``, ``transit``, ``transit_latency`` (s),
        ``coordinates``, ``domain``, ``rail`` and ``rank``. A node is an endpoint when its kind is
        ``"endpoint"`` or it has a rank; a node without either is an endpoint, too, unless any
        other node has one. Endpoints without rank keep the graph's order. Endpoints do not forward
        unless ``transit`` says so; switches do.

    Raises
    ------
    FabricError
        An edge without capacity, ranks that are not 0, 1, 2 ..., or what `Fabric` refuses.

    Examples
    --------
    A GPU joined to a peer by two planes of different speed:

    >>> import networkx as nx
    >>> graph = nx.Graph()
    >>> graph.add_nodes_from(["a", "b"], kind="endpoint")
    >>> graph.add_nodes_from(["s", "t"], kind="switch")
    >>> graph.add_edges_from([("a", "s"), ("s", "b")], capacity=100e9)
    >>> graph.add_edges_from([("a", "t"), ("t", "b")], capacity=50e9)
    >>> from_networkx(graph).links
    8
    """
    names = list(graph.nodes)
    index = {node: i for i, node in enumerate(names)}
    marked = any("kind" in data or "rank" in data for _, data in graph.nodes(data=True))
    kinds: dict[str, int] = {
        k: i for i, k in enumerate(graph.graph.get("node_kinds", ["endpoint"]))
    }
    node_kind = []
    for _, data in graph.nodes(data=True):
        fallback = "endpoint" if "rank" in data or not marked else "switch"
        node_kind.append(kinds.setdefault(str(data.get("kind", fallback)), len(kinds)))
    link_kinds: dict[str, int] = {k: i for i, k in enumerate(graph.graph.get("link_kinds", []))}
    rows: list[tuple[int, int, float, float, int, int]] = []
    edges = list(graph.edges(data=True))
    if graph.is_directed() and graph.is_multigraph():
        multi = cast("nx.MultiDiGraph[Any]", graph)
        keyed = sorted(multi.edges(keys=True, data=True), key=_link_order)
        edges = [(u, v, data) for u, v, _, data in keyed]
    for u, v, data in edges:
        if "capacity" not in data:
            raise FabricError(f"the edge from {u!r} to {v!r} has no 'capacity' (bytes per second)")
        kind = link_kinds.setdefault(str(data.get("kind", "link")), len(link_kinds))
        ends = [(index[u], index[v])] + ([] if graph.is_directed() else [(index[v], index[u])])
        try:
            rest = (float(data["capacity"]), float(data.get("latency", 0.0)))
        except (TypeError, ValueError):
            raise FabricError(
                f"the edge from {u!r} to {v!r}: capacity (B/s) and latency (s) must be numbers"
            ) from None
        rows += [(a, b, *rest, kind, int(data.get("cables", 1))) for a, b in ends]
    is_endpoint = np.array([k == ENDPOINT for k in node_kind], bool)
    table = list(zip(*rows, strict=True)) if rows else [()] * 6
    attributes = [data for _, data in graph.nodes(data=True)]
    axes = tuple(graph.graph.get("axes", ()))
    nowhere = (-1,) * len(axes)
    return Fabric(
        name=str(graph.graph.get("name", "")) or "graph",
        link_src=np.array(table[0], np.int32),
        link_dst=np.array(table[1], np.int32),
        capacity=np.array(table[2], np.float64),
        latency=np.array(table[3], np.float64),
        link_kind=np.array(table[4], np.int16),
        link_kinds=tuple(link_kinds),
        node_kind=np.array(node_kind, np.int8),
        node_kinds=tuple(kinds),
        endpoints=_ranked(names, attributes, is_endpoint),
        transit=np.array(
            [a.get("transit", not e) for a, e in zip(attributes, is_endpoint, strict=True)], bool
        ),
        transit_latency=np.array([a.get("transit_latency", 0.0) for a in attributes], np.float64),
        message_latency=float(graph.graph.get("message_latency", 0.0)),
        coordinates=np.array([a.get("coordinates", nowhere) for a in attributes], np.int32).reshape(
            len(names), len(axes)
        ),
        axes=axes,
        cables=np.array(table[5], np.int32),
        domain=_optional("domain", attributes),
        rail=_optional("rail", attributes),
        node_names=_names(names, attributes),
        reduces=bool(graph.graph.get("reduces", False)),
        spec=dict(graph.graph.get("spec", {})),
    )


def _optional(key: str, attributes: list[dict[str, Any]]) -> NDArray[np.int32]:
    """Collect what nodes may have: empty where none has it, -1 where one has not."""
    if not any(key in a for a in attributes):
        return _none()
    return np.array([a.get(key, -1) for a in attributes], np.int32)


def _link_order(edge: tuple[Any, Any, Any, Any]) -> tuple[bool, int]:
    """Sort links that `to_networkx` numbered by their number, and leave others where they are."""
    numbered = isinstance(edge[2], int)
    return (not numbered, edge[2] if numbered else 0)


def _names(names: list[Any], attributes: list[dict[str, Any]]) -> tuple[str, ...]:
    """Keep the graph's names, but for the plain numbers that `to_networkx` gives."""
    if names == list(range(len(names))) and not any("name" in a for a in attributes):
        return ()
    return tuple(str(a.get("name", n)) for n, a in zip(names, attributes, strict=True))


def _ranked(
    names: list[Any], attributes: list[dict[str, Any]], is_endpoint: BoolArray
) -> NDArray[np.int32]:
    """List the endpoints by rank."""
    endpoints = np.flatnonzero(is_endpoint).astype(np.int32)
    ranks = [attributes[e].get("rank") for e in endpoints]
    for node, data in enumerate(attributes):
        if "rank" in data and not is_endpoint[node]:
            raise FabricError(f"{names[node]!r} is a switch with a rank: switches are never ranks")
    if all(rank is None for rank in ranks):
        return endpoints
    if sorted(r for r in ranks if r is not None) != list(range(len(endpoints))):
        raise FabricError("the ranks of the endpoints must be 0, 1, 2, ... without gaps")
    return endpoints[np.argsort(np.array(ranks, int))]
