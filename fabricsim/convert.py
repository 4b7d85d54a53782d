"""Conversion: a topology or traffic, of the catalogue or of any known format, into another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fabricsim import catalog, formats, patterns, specs
from fabricsim.arrays import FloatArray, IntArray
from fabricsim.errors import SpecError, unknown_name
from fabricsim.fabric import Fabric, to_networkx
from fabricsim.formats import Format, Holds
from fabricsim.patterns.matrix import Matrix
from fabricsim.patterns.schedule import Schedule, Step, refuse_beyond
from fabricsim.patterns.transfers import InFile, read_file
from fabricsim.placement import placement
from fabricsim.transfers import Transfers, transfers


def convert(
    given: str,
    target: str,
    *,
    to: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    on: Fabric | None = None,
    seed: int = 0,
) -> tuple[str | bytes, str]:
    """Write a topology or traffic in the format of a file's name.

    Parameters
    ----------
    given : str
        Name or path of a topology or of traffic.
    target : str
        Name of the file to be written; not written here.
    to : str, optional
        The format; told by the ending of `target` if left out.
    parameters : mapping, optional
        Parameters to put in place of those of `given`.
    options : mapping, optional
        What the format to be written leaves open.
    on : Fabric, optional
        Where traffic of the catalogue runs: a collective needs to know its ranks.
    seed : int
        For traffic that draws.

    Returns
    -------
    content : str or bytes
        What the file is to hold.
    left_out : str
        What of the given it cannot hold, for people; or empty.

    Raises
    ------
    SpecError
        Neither a topology nor traffic, or one that the format cannot hold.
    """
    parameters = parameters or {}
    kind = _kind(given, parameters)
    accepts: tuple[Holds, ...] = (
        formats.TOPOLOGY if kind == "topologies" else ("transfers", "matrix")
    )
    found = _format(target, to, accepts)
    assert found.write is not None
    if kind == "topologies":
        graph = to_networkx(catalog.load_topology(given, **parameters))
        return found.write(graph, options or {}), found.leaves_out
    return found.write(_transfers(given, parameters, on, seed), options or {}), found.leaves_out


def _kind(given: str, parameters: Mapping[str, Any]) -> catalog.Kind:
    """Tell whether a name or a path is of a topology or of traffic."""
    kinds: tuple[catalog.Kind, ...] = ("topologies", "traffic")
    for kind in kinds:
        if given in catalog.names(kind):
            return kind
    path = Path(given)
    if not path.is_file():
        known = [name for kind in kinds for name in catalog.names(kind)]
        raise unknown_name("file, topology or traffic", given, known)
    if path.suffix == ".toml":
        return "topologies" if "builder" in specs.read_toml(path) else "traffic"
    name = str(parameters.get("format") or formats.tell(path, formats.TOPOLOGY + formats.TRAFFIC))
    return "topologies" if formats.find(name).holds == "topology" else "traffic"


def _format(target: str, to: str | None, holds: tuple[Holds, ...]) -> Format:
    """Find the format to write, by its name or by the ending of the file."""
    writable = [name for name in formats.names(holds) if formats.find(name).write]
    if to is not None:
        if to not in writable:
            raise unknown_name(f"format of {formats.what(holds)} that is written", to, writable)
        return formats.find(to)
    suffix = Path(target).suffix.lower()
    fit = [name for name in writable if suffix in formats.find(name).suffixes]
    if not fit:
        raise SpecError(f"{target}: its ending tells no format: give --to {', '.join(writable)}")
    return formats.find(fit[0])


def _transfers(
    given: str, parameters: Mapping[str, Any], on: Fabric | None, seed: int
) -> Transfers:
    traffic = catalog.load_traffic(given, **parameters)
    if isinstance(traffic.parameters, InFile | Matrix):
        data = read_file(traffic.parameters)
        return replace(data, size=data.size * traffic.parameters.size)
    if on is None:
        raise SpecError(f"{given}: who sends to whom depends on where it runs: give --on TOPOLOGY")
    where = placement(on)
    chosen, _ = patterns.alternatives(traffic.pattern, traffic.parameters, len(on.endpoints), where)
    return in_order(patterns.schedule(traffic.pattern, chosen[0], len(on.endpoints), seed, where))


def in_order(schedule: Schedule) -> Transfers:
    """Give the steps of a schedule as transfers, with a point where all meet between two steps.

    Raises
    ------
    SpecError
        Switches add up or copy: no transfers from end to end do the same.
    TooLargeError
        More transfers than can be written out.
    """
    refuse_beyond(schedule.transfers)
    steps = [step for step in schedule.steps for _ in range(step.repeat)]
    if any(step.combine is not None for step in steps):
        raise SpecError("what switches add up or copy is no transfer from end to end")
    steps = [step for step in steps if len(step.src)]
    parts: list[Step] = steps[:1] or [_NOTHING]
    before: list[IntArray] = [_NOTHING.src]
    after: list[IntArray] = [_NOTHING.src]
    last = np.arange(len(parts[0].src))
    for step in steps[1:]:
        meeting = int(last[-1]) + 1
        here = np.arange(meeting + 1, meeting + 1 + len(step.src))
        parts += [_MEETING, step]
        before += [last, np.full(len(here), meeting)]
        after += [np.full(len(last), meeting), here]
        last = here
    starts = np.concatenate([_starts(part) for part in parts])
    return transfers(
        schedule.groups.ranks,
        np.concatenate([part.src for part in parts]),
        np.concatenate([part.dst for part in parts]),
        np.concatenate([part.size for part in parts]),
        start=starts if len(parts) == 1 else None,
        delay=starts if len(parts) > 1 else None,
        before=np.concatenate(before),
        after=np.concatenate(after),
    )


_NOTHING = Step(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))
_MEETING = Step(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1))
"""Moves nothing, and waits."""


def _starts(step: Step) -> FloatArray:
    return np.zeros(len(step.src)) if step.start is None else step.start
