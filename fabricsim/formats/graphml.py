"""GraphML: graphs of networkx, and of the Internet Topology Zoo as published.

The Zoo (Knight et al., "The Internet Topology Zoo", IEEE JSAC 29(9), 2011) names nodes by ``label``
and gives the speed of a link, where it is known, as ``LinkSpeedRaw`` in bits per second.
"""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricsim.errors import SpecError
from fabricsim.formats import Format, Options
from fabricsim.formats.files import load_xml, number, text

if TYPE_CHECKING:
    import networkx as nx

_AS_JSON = ("axes", "node_kinds", "link_kinds", "spec", "coordinates")
"""Attributes that are no scalars: GraphML has none, so that they are text of JSON."""


def sniff(head: bytes) -> bool:
    """Whether it has the element that GraphML begins with."""
    return b"<graphml" in head


def read(path: Path, options: Options) -> nx.Graph[Any]:
    """Read a graph.

    Raises
    ------
    SpecError
        Not GraphML, or XML that is refused.
    """
    import networkx as nx

    del options
    for part in load_xml(path, "GraphML").of("graph"):  # refuses what networkx would expand
        for node in part.of("node"):
            node.get("id")
        for edge in part.of("edge"):
            edge.get("source")
            edge.get("target")
    try:
        graph: nx.Graph[Any] = nx.parse_graphml(text(path))
    except (nx.NetworkXError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise SpecError(f"{path.name}: not valid GraphML: {error}") from None
    for one, other, link in graph.edges(data=True):
        if "LinkSpeedRaw" in link and "capacity" not in link and "bandwidth" not in link:
            where = f"{path.name}, edge from {one} to {other}, LinkSpeedRaw"
            link["capacity"] = number(link["LinkSpeedRaw"], where) / 8
    tables = [graph.graph, *(attributes for _, attributes in graph.nodes(data=True))]
    for table in tables:
        for key in _AS_JSON & table.keys():
            table[key] = _from_json(table[key], f"{path.name}, {key}")
    return _numbered(_named(graph))


def _from_json(value: object, where: str) -> object:
    try:
        return json.loads(str(value))
    except (ValueError, RecursionError):
        raise SpecError(f"{where}: must be text of JSON") from None


def _named(graph: nx.Graph[Any]) -> nx.Graph[Any]:
    """Put labels in place of the names of nodes, if each is another."""
    import networkx as nx

    labels = {node: str(label) for node, label in graph.nodes(data="label") if label}
    if len(set(labels.values())) < graph.number_of_nodes():
        return graph
    return nx.relabel_nodes(graph, labels)


def _numbered(graph: nx.Graph[Any]) -> nx.Graph[Any]:
    """Put numbers in place of text where nodes are 0, 1, ..., and all links have numbers, too."""
    import networkx as nx

    if list(graph) == [str(i) for i in range(len(graph))]:
        graph = nx.relabel_nodes(graph, {name: int(name) for name in graph})
    if not graph.is_directed():
        return graph
    edges = [(one, other, str(link.get("id")), link) for one, other, link in graph.edges(data=True)]
    if isinstance(graph, nx.MultiDiGraph):
        edges = [(u, v, str(key), link) for u, v, key, link in graph.edges(keys=True, data=True)]
    if not all(key.isdecimal() and len(key) < 19 for _, _, key, _ in edges):
        return graph
    numbered: nx.MultiDiGraph[Any] = nx.MultiDiGraph(**graph.graph)
    numbered.add_nodes_from(graph.nodes(data=True))
    for one, other, key, link in edges:
        numbered.add_edge(one, other, key=int(key), **link)
    return numbered


def write(graph: nx.MultiDiGraph[Any], options: Options) -> bytes:
    """Write a fabric with all that it is."""
    import networkx as nx

    del options
    plain = graph.copy()
    for table in [plain.graph, *(attributes for _, attributes in plain.nodes(data=True))]:
        for key in _AS_JSON & table.keys():
            table[key] = json.dumps(table[key])
    out = BytesIO()
    nx.write_graphml(plain, out)
    return out.getvalue()


FORMAT = Format(
    description="A graph as networkx writes it, or of the Internet Topology Zoo",
    holds="topology",
    suffixes=(".graphml",),
    sniff=sniff,
    read=read,
    write=write,
)
