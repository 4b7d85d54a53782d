"""Specifications: the TOML files of topologies and traffic, read and validated.

Every error names the file and the field. How a fabric or a schedule follows from the parameters
is the business of builders and patterns.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fabricsim import builders, formats, patterns
from fabricsim.builders import Builder, Part
from fabricsim.errors import SpecError
from fabricsim.parameters import Parameters
from fabricsim.patterns import TrafficParameters


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    source: dict[str, str] = Field(default_factory=dict)
    """Where each parameter's figure comes from, or that it is an assumption and why."""


class _TopologyFile(_File):
    builder: str


class _TrafficFile(_File):
    pattern: str


@dataclass(frozen=True)
class Topology:
    """A validated topology: what to build, and where its figures come from."""

    name: str
    description: str
    builder_name: str
    builder: Builder
    parameters: Parameters
    given: Mapping[str, Any]
    """The parameters as they were written, with their units."""
    source: Mapping[str, str]

    @property
    def echo(self) -> dict[str, Any]:
        """What a result says of its topology, enough to build it again."""
        return {"name": self.name, "builder": self.builder_name, "parameters": dict(self.given)}


@dataclass(frozen=True)
class Traffic:
    """A validated traffic: a pattern and its parameters."""

    name: str
    description: str
    pattern: str
    parameters: TrafficParameters
    given: Mapping[str, Any]
    source: Mapping[str, str]

    @property
    def echo(self) -> dict[str, Any]:
        """What a result says of its traffic, enough to run it again."""
        return {"name": self.name, "pattern": self.pattern, "parameters": dict(self.given)}


Find = Callable[[str, Path], Path]
"""Name or path of a topology, folder that a path starts from -> file."""


def read_topology(
    path: Path,
    overrides: Mapping[str, Any],
    find: Find,
    *,
    fill: Mapping[str, Any] | None = None,
    above: tuple[Path, ...] = (),
) -> Topology:
    """Read a topology file.

    Parameters
    ----------
    path : Path
        A TOML file with `builder`, `[parameters]` and, for each of these, a line in `[source]`; or
        a file of another tool that holds a topology.
    overrides : mapping
        Parameters to put in place of the file's; a name with dots reaches into a table.
    find : callable
        Finds the files of topologies that the file names as its parts.
    fill : mapping, optional
        Parameters to put in place of the file's where the builder has them.
    above : tuple of Path
        Files that have this one as a part: none may come again.

    Raises
    ------
    SpecError
        The file cannot be read, or a field of it is not as it should be.
    """
    if path in above:
        raise SpecError(f"{path.name}: is a part of itself")
    file = _validated(_TopologyFile, _read_file(path, formats.TOPOLOGY, overrides), path.name, ())
    builder = builders.find(file.builder)
    known = {k: v for k, v in (fill or {}).items() if k in builder.parameters.model_fields}
    given = _overridden(file.parameters | known, overrides)
    parameters = _validated(
        builder.parameters,
        given,
        path.name,
        overrides,
        table="topology",
        owner=file.builder,
        context=_context(path, find, above),
    )
    source = _sources(file.source, given, overrides, path.name)
    return Topology(path.stem, file.description, file.builder, builder, parameters, given, source)


def _context(path: Path, find: Find, above: tuple[Path, ...]) -> dict[str, Any]:
    """Tell the validators of a topology in the file `path` its folder, and how to read its parts.

    A part is the name of a topology, or a table with `topology` or `builder`, and `parameters`.
    """

    def part(value: object, fill: Mapping[str, Any]) -> Part:
        table = value if isinstance(value, Mapping) else {"topology": value}
        keys = set(table) - {"parameters"}
        name = table.get("topology", table.get("builder"))
        if keys not in ({"topology"}, {"builder"}) or not isinstance(name, str):
            raise ValueError(
                "give the name of a topology, or a table with either 'topology' or 'builder', and "
                "'parameters' where wanted"
            )
        parameters = table.get("parameters", {})
        if not isinstance(parameters, Mapping):
            raise ValueError(f"'parameters' must be a table, not {parameters!r}")
        if "topology" in keys:
            file = find(name, path.parent)
            spec = read_topology(file, parameters, find, fill=fill, above=(*above, path))
            return Part(spec.builder, spec.parameters)
        builder = builders.find(name)
        known = {k: v for k, v in fill.items() if k in builder.parameters.model_fields}
        model, given = builder.parameters, known | dict(parameters)
        context = _context(path, find, above)
        return Part(builder, _validated(model, given, name, (), owner=name, context=context))

    return {"folder": path.parent, "part": part}


def read_traffic(path: Path, overrides: Mapping[str, Any]) -> Traffic:
    """Read a traffic file: `pattern` and `[parameters]`; else as `read_topology`."""
    file = _validated(_TrafficFile, _read_file(path, formats.TRAFFIC, overrides), path.name, ())
    given = _overridden(file.parameters, overrides)
    model = patterns.find(file.pattern).parameters
    parameters = _validated(
        model,
        given,
        path.name,
        overrides,
        table="traffic",
        owner=file.pattern,
        context={"folder": path.parent},
    )
    source = _sources(file.source, given, overrides, path.name)
    return Traffic(path.stem, file.description, file.pattern, parameters, given, source)


def _read_file(
    path: Path, holds: tuple[formats.Holds, ...], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Read a TOML file, or say in its place what to do with a file of another tool."""
    if path.suffix == ".toml":
        return read_toml(path)
    name = overrides.get("format") or formats.sniff(path, holds)
    if name is None and not path.suffix:
        return read_toml(path)
    name = str(name or formats.tell(path, holds))
    kind, file = formats.find(name).holds, str(path.absolute())
    if kind not in holds:
        raise SpecError(f"{path.name}: {name} is no format of {formats.what(holds)}")
    if kind == "sizes":
        raise SpecError(f"{path.name}: asks for sizes of its own: `fabricsim run` runs them all")
    description = f"read from {path.name}, in the format {name}"
    if kind == "topology":
        return {"description": description, "builder": "edges", "parameters": {"path": file}}
    pattern = "transfers" if "format" in overrides else kind
    return {"description": description, "pattern": pattern, "parameters": {"file": file}}


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; SpecError where it is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: byte {error.start} is not UTF-8; a TOML file must be") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: not valid TOML: {error}") from None


def _overridden(parameters: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(parameters)
    for name, value in overrides.items():
        head, _, rest = name.partition(".")
        if rest:
            inner = result.get(head, {})
            if not isinstance(inner, Mapping):
                raise SpecError(f"{name}: {head} is no table, so it has no {rest!r}")
            value = _overridden(inner, {rest: value})
        result[head] = value
    return result


def _sources(
    source: Mapping[str, str], given: Mapping[str, Any], overrides: Mapping[str, Any], file: str
) -> dict[str, str]:
    stray = sorted(set(source) - set(given))
    if stray:
        raise SpecError(f"{file}, source.{stray[0]}: there is no parameter of that name")
    set_by_user = {name.partition(".")[0] for name in overrides}
    return {
        name: "set by the user" if name in set_by_user else source.get(name, "") for name in given
    }


Model = TypeVar("Model", bound=BaseModel)


def _validated(
    model: type[Model],
    data: Mapping[str, Any],
    file: str,
    overrides: Iterable[str],
    *,
    table: str = "",
    owner: str = "",
    context: Mapping[str, Any] | None = None,
) -> Model:
    """Validate, and turn the first of pydantic's errors into one line that says where and what."""
    try:
        return model.model_validate(data, context=context)
    except ValidationError as failure:
        errors = failure.errors()
    # A name that is not known explains most of what else is wrong: it comes first.
    first = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    place = [str(part) for part in first["loc"]]
    field = place[0] if place else ""
    field += "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in place[1:])
    overridden = {name.partition(".")[0] for name in overrides}
    if place and place[0] in overridden:
        where = f"{table}.{field}"
    elif table:
        where = f"{file}, parameters" + (f".{field}" if field else "")
    else:
        where = f"{file}, {field}" if field else file
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    raise SpecError(f"{where}: {_in_words(first, model, owner)}{more}")


def _in_words(error: Any, model: type[BaseModel], owner: str) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        name = str(error["loc"][-1])
        fields = [] if len(error["loc"]) > 1 else sorted(model.model_fields)
        near = difflib.get_close_matches(name, fields, n=1, cutoff=0.5)
        known = f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(fields)
        return f"{owner or 'this file'} has no parameter {name!r}" + (
            f": {known}" if fields else ""
        )
    if kind == "missing":
        return "is missing" + (f", and {owner} needs it" if owner else "")
    if kind == "value_error":
        return str(context["error"])
    message = error["msg"][0].lower() + error["msg"][1:]
    shown = repr(error["input"])
    return f"{message}, not {shown if len(shown) < 60 else shown[:57] + '...'}"
