"""Edge list: one link a line, in CSV with a head."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricsim.errors import SpecError, unknown_name
from fabricsim.formats import Format, Options
from fabricsim.formats.files import text

if TYPE_CHECKING:
    import networkx as nx

_COLUMNS = ("src", "dst", "bandwidth", "latency", "kind", "duplex")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def sniff(head: bytes) -> bool:
    """Whether the first line names a source, a destination and a bandwidth."""
    first = head.decode("utf-8-sig", "replace").lstrip().partition("\n")[0]
    return set(_COLUMNS[:3]) <= {name.strip() for name in first.split(",")}


def read(path: Path, options: Options) -> nx.MultiDiGraph[Any]:
    """Read links; quantities keep their units.

    Raises
    ------
    SpecError
        A column or a line that is not as it should be.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    links = 0
    for line, row in _rows(path):
        where = f"{path.name}, line {line}"
        for end in ("src", "dst"):
            if not row.get(end):
                raise SpecError(f"{where}, {end}: is missing")
        flag = row.get("duplex", "").lower()
        if flag and flag not in _FLAGS:
            raise SpecError(f"{where}, duplex: must be true or false, not {row['duplex']!r}")
        link = {key: row[key] for key in ("bandwidth", "latency", "kind") if row.get(key)}
        ends = [(row["src"], row["dst"])]
        if _FLAGS.get(flag, options.get("duplex", True)):
            ends.append((row["dst"], row["src"]))
        for one, other in ends:
            graph.add_edge(one, other, key=links, **link, place=where)
            links += 1
    return graph


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Give the lines of a CSV file that hold something, with their numbers."""
    reader = csv.DictReader(text(path).splitlines(), skipinitialspace=True)
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        for name in names:
            if name not in _COLUMNS:
                raise SpecError(f"{path.name}: {unknown_name('column', name, _COLUMNS)}")
        for name in _COLUMNS[:3]:
            if name not in names:
                raise SpecError(f"{path.name}: the first line must name a column {name!r}")
        reader.fieldnames = names
        for row in reader:
            if None in row:
                raise SpecError(
                    f"{path.name}, line {reader.line_num}: has more than {len(names)} columns"
                )
            yield reader.line_num, {key: (value or "").strip() for key, value in row.items()}
    except csv.Error as error:
        raise SpecError(
            f"{path.name}, line {reader.line_num + 1}: not valid CSV: {error}"
        ) from None


def write(graph: nx.MultiDiGraph[Any], options: Options) -> str:
    """Write the links of a fabric, one line each direction; what only nodes have is left out."""
    del options
    name = {node: data.get("name", node) for node, data in graph.nodes(data=True)}
    rows = ["src,dst,bandwidth,latency,kind,duplex"]
    for one, other, link in graph.edges(data=True):
        quantities = f"{link['capacity']!r} B/s,{link['latency']!r} s"
        rows.append(f"{name[one]},{name[other]},{quantities},{link['kind']},false")
    return "\n".join(rows) + "\n"


FORMAT = Format(
    description="One link a line: src,dst,bandwidth, and latency,kind,duplex where wanted",
    holds="topology",
    suffixes=(".csv",),
    sniff=sniff,
    read=read,
    write=write,
    leaves_out="a list of edges holds links alone: to read it, say which nodes are endpoints "
    "(topology.endpoints), whether they forward (topology.forward), and latencies of nodes",
    options=("duplex",),
)
