"""Formats: other tools' files, in and out. One small module each; this one finds them by name.

A format's module defines `FORMAT`, a `Format`: how to tell such a file, how to read it and how to
write it, where both make sense. Other packages add formats through the entry point group
``fabricsim.formats``. A topology is a networkx graph here, as `fabricsim.fabric.from_networkx`
takes it; traffic is `Transfers`, or `Sizes` of a collective. No file is trusted: see `files`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from fabricsim.errors import FabricsimError, SpecError, unknown_name

_MODULES = {
    "edge-list": "fabricsim.formats.edge_list",
    "node-link": "fabricsim.formats.node_link",
    "graphml": "fabricsim.formats.graphml",
    "transfers": "fabricsim.formats.transfers",
    "matrix": "fabricsim.formats.matrix",
    "nccl-tests": "fabricsim.formats.nccl_tests",
}

HEAD_B = 1 << 16
"""Bytes at the beginning of a file by which its format is told."""

Holds = Literal["topology", "matrix", "transfers", "sizes"]
TOPOLOGY: tuple[Holds, ...] = ("topology",)
TRAFFIC: tuple[Holds, ...] = ("matrix", "transfers", "sizes")
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """One kind of file."""

    description: str
    holds: Holds
    """``"topology"``: a networkx graph. ``"transfers"`` and ``"matrix"``: `Transfers`; a matrix may
    be run by the pattern of that name, too. ``"sizes"``: `Sizes` of a collective."""
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    """Tells such a file from others with the same suffix, by its first `HEAD_B` bytes."""
    read: Callable[[Path, Options], Any] | None = None
    """File and options -> what it holds."""
    write: Callable[[Any, Options], str | bytes] | None = None
    """What it holds and options -> the text, or the bytes, of a file."""
    leaves_out: str = ""
    """What of its kind such a file cannot hold, and what a reader has to say again."""
    options: tuple[str, ...] = ()
    """Names of what the format leaves open, for reading or writing."""


def names(holds: tuple[Holds, ...] = TOPOLOGY + TRAFFIC) -> list[str]:
    """Names of the formats that hold one of these, those of other packages last."""
    return [name for name in [*_MODULES, *sorted(_third_party())] if find(name).holds in holds]


def find(name: str) -> Format:
    """Find a format by name.

    Raises
    ------
    SpecError
        No format of that name.
    """
    if name in _MODULES:
        found = import_module(_MODULES[name]).FORMAT
    else:
        others = _third_party()
        if name not in others:
            raise unknown_name("format", name, [*_MODULES, *others])
        found = others[name].load()
    if not isinstance(found, Format):
        raise FabricsimError(f"the entry point of format {name!r} is no fabricsim Format")
    return found


def sniff(path: Path, holds: tuple[Holds, ...]) -> str | None:
    """Tell the format of a file by its suffix and its beginning; None where no format fits.

    The one format that has the suffix is it, even where the beginning looks like none: reading it
    then tells what is wrong.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_B)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    known = names(holds)
    by_suffix = [name for name in known if path.suffix.lower() in find(name).suffixes]
    rest = [name for name in known if name not in by_suffix]
    for name in by_suffix + rest:
        if find(name).read is not None and find(name).sniff(head):
            return name
    readable = [name for name in by_suffix if find(name).read is not None]
    return readable[0] if len(readable) == 1 else None


def tell(path: Path, holds: tuple[Holds, ...]) -> str:
    """Tell the format of a file, as `sniff`.

    Raises
    ------
    SpecError
        No format fits.
    """
    found = sniff(path, holds)
    if found is None:
        known = ", ".join(name for name in names(holds) if find(name).read)
        raise SpecError(
            f"{path.name}: looks like no {what(holds)} in a format that is known: give its format, "
            f"one of {known}"
        )
    return found


def what(holds: tuple[Holds, ...]) -> str:
    """Say in a word what some formats hold."""
    return {TOPOLOGY: "topology", TRAFFIC: "traffic"}.get(holds, "topology or traffic")


def read(path: Path, name: str, options: Options) -> Any:
    """Read a file in the format of that name.

    Raises
    ------
    SpecError
        The format is not read, or has no such option, or the file is not as it should be.
    TooLargeError
        The file holds more than is ever read.
    """
    found = find(name)
    if found.read is None:
        raise SpecError(f"{path.name}: {name} is written only, not read")
    refuse_options(name, options)
    return found.read(path, options)


def refuse_options(name: str, options: Options) -> None:
    """Raise SpecError for an option that a format has not."""
    for option in options:
        if option not in find(name).options:
            raise unknown_name(f"option of {name}", option, find(name).options)


def _third_party() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group="fabricsim.formats")}
