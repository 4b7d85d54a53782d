"""Builders: parameters -> Fabric. One module each; this one finds them by name.

A builder's module defines `BUILDER`, a `Builder` of three things: the model of its parameters, a
function that builds the fabric, and one that counts it from the parameters without building it.
Other packages add builders through the entry point group ``fabricsim.builders``. A builder whose
fabrics are made of others takes them as `Part`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic import ValidationInfo

from fabricsim.errors import FabricsimError, unknown_name
from fabricsim.fabric import Counts, Fabric
from fabricsim.parameters import Parameters

_MODULES = {
    "star": "fabricsim.builders.star",
    "torus": "fabricsim.builders.torus",
    "switched": "fabricsim.builders.switched",
    "fat_tree": "fabricsim.builders.fat_tree",
    "dragonfly": "fabricsim.builders.dragonfly",
    "slim_fly": "fabricsim.builders.slim_fly",
    "cluster": "fabricsim.builders.cluster",
    "edges": "fabricsim.builders.edges",
}


@dataclass(frozen=True)
class Builder:
    """One way to make fabrics."""

    parameters: type[Parameters]
    """Model of the parameters; its validators refuse what cannot be built."""
    build: Callable[[Any], Fabric]
    """Parameters -> Fabric."""
    count: Callable[[Any], Counts]
    """Parameters -> Counts, without building."""


@dataclass(frozen=True)
class Part:
    """A fabric that another one is made of."""

    builder: Builder
    parameters: Parameters

    def build(self) -> Fabric:
        """Build it."""
        return self.builder.build(self.parameters)

    def count(self) -> Counts:
        """Count it."""
        return self.builder.count(self.parameters)


def read_part(value: object, info: ValidationInfo, fill: Mapping[str, Any] | None = None) -> Part:
    """Read the part that a topology file names; for validators of fields.

    Whoever reads the file says in the context of the validation how (``"part"``): a builder knows
    no catalogue.

    Parameters
    ----------
    value : object
        A `Part`, the name of a topology, or a table with ``topology`` or ``builder``, and
        ``parameters``.
    info : ValidationInfo
        What pydantic tells of the validation.
    fill : mapping, optional
        Values of parameters that the part has, and that the table does not give.
    """
    if isinstance(value, Part):
        return value
    if not info.context:
        raise ValueError("a part is named in topology files only: give a fabricsim.builders.Part")
    read: Callable[[object, Mapping[str, Any]], Part] = info.context["part"]
    return read(value, fill or {})


def names() -> list[str]:
    """Names of all builders, those of other packages included."""
    return sorted({*_MODULES, *_third_party()})


def find(name: str) -> Builder:
    """Find a builder by name.

    Raises
    ------
    SpecError
        No builder of that name.
    """
    if name in _MODULES:
        found = import_module(_MODULES[name]).BUILDER
    else:
        others = _third_party()
        if name not in others:
            raise unknown_name("builder", name, names())
        found = others[name].load()
    if not isinstance(found, Builder):
        raise FabricsimError(f"the entry point of builder {name!r} is no fabricsim Builder")
    return found


def _third_party() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group="fabricsim.builders")}
