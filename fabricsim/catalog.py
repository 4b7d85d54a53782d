"""The catalogue: finds topologies and traffic by name or by path, and loads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from fabricsim import specs
from fabricsim.errors import SpecError, TooLargeError, unknown_name
from fabricsim.fabric import Fabric
from fabricsim.specs import Topology, Traffic

Kind = Literal["topologies", "traffic"]

MOST_LINKS = 50_000_000
"""Directed links that a fabric is built with; about 3 GB."""


def folder(kind: Kind) -> Path:
    """Where the catalogue's files are: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "_catalog" / kind
    return installed if installed.is_dir() else package.parent / kind


def names(kind: Kind) -> list[str]:
    """Names of all entries."""
    return sorted(path.stem for path in folder(kind).glob("*.toml"))


def find(kind: Kind, name_or_path: str, base: Path | None = None) -> Path:
    """Find the file of an entry.

    Parameters
    ----------
    kind : {"topologies", "traffic"}
    name_or_path : str
        A name of the catalogue, or a path: whatever ends in ``.toml`` or has a folder in it, and
        any file that is there.
    base : Path, optional
        Folder that a relative path starts from; the current one, if left out.

    Raises
    ------
    SpecError
        Neither an entry nor a file; the message names the nearest entry.
    """
    path = base / name_or_path if base else Path(name_or_path)
    known = names(kind)
    other = name_or_path not in known and path.is_file()
    if path.suffix == ".toml" or os.sep in name_or_path or other:
        if not path.is_file():
            what = "is no file" if path.exists() else "does not exist"
            raise SpecError(f"{name_or_path}: {what}; give a file or a name of the catalogue")
        return path
    if name_or_path not in known:
        raise unknown_name("topology" if kind == "topologies" else "traffic", name_or_path, known)
    return folder(kind) / f"{name_or_path}.toml"


def topology(name_or_path: str, **parameters: Any) -> Topology:
    """Load the specification of a topology; parameters and errors as `load_topology`."""

    def find_part(name: str, base: Path) -> Path:
        return find("topologies", name, base)

    return specs.read_topology(find("topologies", name_or_path), parameters, find_part)


def build(spec: Topology) -> Fabric:
    """Build the fabric of a specification.

    Raises
    ------
    TooLargeError
        More links than are ever built; counting (`fabricsim show`) has no such limit.
    """
    from dataclasses import replace

    counts = spec.builder.count(spec.parameters)
    if counts.directed_links > MOST_LINKS:
        raise TooLargeError(
            f"{spec.name} has {counts.directed_links:,} directed links, and at most "
            f"{MOST_LINKS:,} are built: take fewer endpoints (it has {counts.endpoints:,})"
        )
    return replace(spec.builder.build(spec.parameters), name=spec.name, spec=spec.echo)


def load_topology(name_or_path: str, **parameters: Any) -> Fabric:
    """Build a fabric of the catalogue or of a file.

    Parameters
    ----------
    name_or_path : str
        A name, such as ``"trn2-nl64"``, or the path of a TOML file.
    **parameters
        Parameters of the builder to put in place of the file's. Quantities are text with a unit.

    Returns
    -------
    Fabric

    Raises
    ------
    SpecError
        An unknown name, a file that cannot be read, or a parameter that is not as it should be.
    TooLargeError
        A fabric with more links than are ever built.

    Examples
    --------
    >>> fabric = load_topology("trn2-nl64", dims=[4, 4, 16])
    >>> len(fabric.endpoints)
    256
    """
    return build(topology(name_or_path, **parameters))


def load_traffic(name_or_path: str, **parameters: Any) -> Traffic:
    """Load traffic of the catalogue or of a file, to hand to `simulate`.

    Parameters
    ----------
    name_or_path : str
        A name, such as ``"all-to-all"``, or the path of a TOML file.
    **parameters
        Parameters of the pattern to put in place of the file's. Quantities are text with a unit.

    Returns
    -------
    Traffic

    Raises
    ------
    SpecError
        An unknown name, a file that cannot be read, or a parameter that is not as it should be.

    Examples
    --------
    >>> load_traffic("all-to-all", size="64 MiB").parameters.size
    67108864.0
    """
    return specs.read_traffic(find("traffic", name_or_path), parameters)
