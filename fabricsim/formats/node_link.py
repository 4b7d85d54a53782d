"""Node-link JSON: a graph as networkx writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricsim.errors import SpecError
from fabricsim.formats import Format, Options
from fabricsim.formats.files import load_json, shown

if TYPE_CHECKING:
    import networkx as nx


def sniff(head: bytes) -> bool:
    """Whether it is a table with nodes, or that says whether it is directed."""
    return head.lstrip().startswith(b"{") and (b'"nodes"' in head or b'"directed"' in head)


def read(path: Path, options: Options) -> nx.Graph[Any]:
    """Read a graph.

    Raises
    ------
    SpecError
        Not JSON, or not a node-link graph; the message names the record.
    """
    import networkx as nx

    del options
    data = load_json(path)
    if not isinstance(data, dict) or "nodes" not in data:
        raise SpecError(f"{path.name}: not a node-link graph: it has no 'nodes'")
    key = "links" if "links" in data else "edges"  # networkx has called them both
    _check_records(path.name, "nodes", data["nodes"], ("id",))
    _check_records(path.name, key, data.get(key, []), ("source", "target"))
    if not isinstance(data.get("graph", {}), dict | list):
        raise SpecError(f"{path.name}, graph: must be a table, not {shown(data['graph'])}")
    try:
        graph: nx.Graph[Any] = nx.node_link_graph(data, edges=key)
    except (KeyError, TypeError, ValueError, RecursionError, nx.NetworkXError) as error:
        raise SpecError(f"{path.name}: not a node-link graph: {error!r}") from None
    return graph


def _check_records(file: str, name: str, records: object, keys: tuple[str, ...]) -> None:
    if not isinstance(records, list):
        raise SpecError(f"{file}: not a node-link graph: {name!r} must be a list")
    for index, record in enumerate(records):
        if not isinstance(record, dict):
            raise SpecError(f"{file}, {name}[{index}]: must be a table, not {shown(record)}")
        for key in keys:
            if not isinstance(record.get(key), str | int | list):
                raise SpecError(
                    f"{file}, {name}[{index}]: not a node-link graph: {key!r} is "
                    + (f"{shown(record[key])}, no name" if key in record else "missing")
                )


def write(graph: nx.MultiDiGraph[Any], options: Options) -> str:
    """Write a fabric with all that it is."""
    import networkx as nx

    del options
    return json.dumps(nx.node_link_data(graph, edges="edges"), indent=1) + "\n"


FORMAT = Format(
    description="A graph as networkx writes it, with attributes as fabricsim.to_networkx gives",
    holds="topology",
    suffixes=(".json",),
    sniff=sniff,
    read=read,
    write=write,
)
