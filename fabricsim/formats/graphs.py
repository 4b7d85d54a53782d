"""What the formats of graphs share: the attributes that a fabric's graph has, and their types.

`fabricsim.fabric.to_networkx` says what the attributes mean. A link may have ``bandwidth`` with a
unit in place of ``capacity``; ``place`` says where it stands in its file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fabricsim.errors import SpecError
from fabricsim.formats.files import integer, number, refuse_beyond, shown

if TYPE_CHECKING:
    import networkx as nx

MOST_KINDS = 100
"""Kinds of nodes, or of links."""

Check = Callable[[object, str], object]


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise SpecError(f"{where}: must be text, not {shown(value)}")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise SpecError(f"{where}: must be true or false, not {shown(value)}")
    return value


def _quantity(value: object, where: str) -> str | float:
    """Text is read later, with its unit."""
    return value if isinstance(value, str) else number(value, where)


def _place(value: object, where: str) -> int:
    return integer(value, where, low=-1)


def _cables(value: object, where: str) -> int:
    return integer(value, where, low=1)


def _list(value: object, where: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise SpecError(f"{where}: must be a list, not {shown(value)}")
    return value


def _places(value: object, where: str) -> tuple[int, ...]:
    return tuple(_place(item, where) for item in _list(value, where))


def _texts(value: object, where: str) -> tuple[str, ...]:
    return tuple(_text(item, where) for item in _list(value, where))


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SpecError(f"{where}: must be a table, not {shown(value)}")
    return value


NODE: Mapping[str, Check] = {
    "kind": _text,
    "transit": _flag,
    "transit_latency": number,
    "coordinates": _places,
    "domain": _place,
    "rail": _place,
    "rank": integer,
}
LINK: Mapping[str, Check] = {
    "bandwidth": _text,
    "capacity": number,
    "latency": _quantity,
    "kind": _text,
    "cables": _cables,
}
GRAPH: Mapping[str, Check] = {
    "axes": _texts,
    "message_latency": number,
    "node_kinds": _texts,
    "link_kinds": _texts,
    "reduces": _flag,
    "spec": _table,
}


def checked(graph: nx.Graph[Any], file: str) -> nx.Graph[Any]:
    """Check the attributes of a graph that a file gave, and return it.

    Raises
    ------
    SpecError
        An attribute of the wrong type; the message names the node or the link.
    TooLargeError
        More nodes or links than are ever read.
    """
    refuse_beyond(graph.number_of_nodes(), file, "nodes")
    refuse_beyond(graph.number_of_edges(), file, "links")
    _check(graph.graph, GRAPH, file)
    kinds: dict[str, set[object]] = {"nodes": set(), "links": set()}
    axes = len(graph.graph.get("axes", ()))
    for node, attributes in graph.nodes(data=True):
        where = f"{file}, node {shown(node)}"
        _check(attributes, NODE, where)
        kinds["nodes"].add(attributes.get("kind"))
        if len(attributes.get("coordinates", "-" * axes)) != axes:
            raise SpecError(f"{where}: has other than {axes} coordinates, one for each of 'axes'")
    for one, other, attributes in graph.edges(data=True):
        where = attributes.get("place", f"{file}, edge from {shown(one)} to {shown(other)}")
        _check(attributes, LINK, where)
        kinds["links"].add(attributes.get("kind"))
    for what, found in kinds.items():
        if len(found) > MOST_KINDS:
            raise SpecError(f"{file}: {len(found)} kinds of {what}, and at most {MOST_KINDS} fit")
    return graph


def _check(attributes: dict[str, Any], checks: Mapping[str, Check], where: str) -> None:
    for key in attributes.keys() & checks.keys():
        attributes[key] = checks[key](attributes[key], f"{where}, {key}")
