"""A collective at several sizes, as nccl-tests runs it, beside what was measured.

What to run is a command such as ``all_reduce_perf -b 8 -e 1G -f 2``, a file that holds one, or a
table that was printed by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricsim import formats
from fabricsim.catalog import find, load_traffic, names
from fabricsim.errors import SpecError
from fabricsim.fabric import Fabric
from fabricsim.formats.nccl_tests import Sizes, command, is_command
from fabricsim.result import Result
from fabricsim.simulate import simulate
from fabricsim.units import show, show_size


def sizes(words: str, parameters: Mapping[str, Any]) -> tuple[Sizes, dict[str, Any]] | None:
    """Read what to run, if it is a collective at sizes of its own.

    Parameters
    ----------
    words : str
        A command, or a path.
    parameters : mapping
        Of the traffic; ``program`` says which test printed a table that does not say so itself.

    Returns
    -------
    sizes : Sizes
    parameters : dict
        Without those that were for reading.
    """
    if is_command(words):
        return command(words), dict(parameters)
    path = Path(words)
    if words in names("traffic") or path.suffix == ".toml" or not path.is_file():
        return None
    name = str(parameters.get("format") or formats.sniff(path, formats.TRAFFIC))
    if name not in formats.names(("sizes",)):
        return None
    reading = {key: parameters[key] for key in formats.find(name).options if key in parameters}
    rest = {key: parameters[key] for key in parameters if key not in (*reading, "format")}
    found: Sizes = formats.read(find("traffic", words), name, reading)
    return found, rest


@dataclass(frozen=True)
class Measured:
    """One row of a measured table."""

    time_s: float
    busbw_Bps: float


def run_sizes(
    fabric: Fabric,
    asked: Sizes,
    parameters: Mapping[str, Any],
    routing: str | None = None,
    seed: int = 0,
) -> list[tuple[Result, Measured | None]]:
    """Run a collective at each of its sizes, as the catalogue has it.

    Raises
    ------
    SpecError
        As `load_traffic` and `simulate`; and where the file is for another number of ranks.
    """
    runs = []
    for index, size in enumerate(asked.size_B.tolist()):
        traffic = load_traffic(asked.pattern, **parameters, size=f"{size!r} B")
        result = simulate(fabric, traffic, routing, seed)
        if asked.ranks not in (None, result.group_size):
            raise SpecError(
                f"the sizes are for {asked.ranks} ranks, and a group has {result.group_size}: take "
                f"another topology, or --set traffic.group_size={asked.ranks}"
            )
        measured = None
        if asked.time_s is not None and asked.busbw_Bps is not None:
            measured = Measured(float(asked.time_s[index]), float(asked.busbw_Bps[index]))
        runs.append((result, measured))
    return runs


def to_rows(runs: Sequence[tuple[Result, Measured | None]]) -> list[dict[str, Any]]:
    """Give each result as plain data, with what was measured."""
    return [
        result.to_dict() | {"measured": vars(measured) if measured else None}
        for result, measured in runs
    ]


def to_table(runs: Sequence[tuple[Result, Measured | None]]) -> str:
    """Write all sizes for people, one row each."""
    first = runs[0][0]
    lines = [
        f"{first.topology['name']}: {first.traffic['name']} among {first.group_size} ranks, "
        f"{first.routing}",
        "",
        f"  {'size':>10}{'algorithm':>20}{'time':>11}{'algbw':>11}{'busbw':>11}",
    ]
    if runs[0][1]:
        lines[-1] += f"{'measured':>13}{'busbw':>11}{'measured / simulated':>23}"
    for result, measured in runs:
        line = (
            f"  {show_size(result.size_B):>10}{result.algorithm:>20}{show(result.time_s, 's'):>11}"
            f"{show(result.algbw_Bps, 'B/s'):>11}{show(result.busbw_Bps, 'B/s'):>11}"
        )
        if measured:
            ratio = f"{measured.time_s / result.time_s:.3g}" if result.time_s > 0 else "-"
            line += f"{show(measured.time_s, 's'):>13}{show(measured.busbw_Bps, 'B/s'):>11}"
            line += f"{ratio:>23}"
        lines.append(line)
    return "\n".join(lines) + "\n"
