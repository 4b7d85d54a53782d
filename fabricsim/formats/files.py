"""Reading what others wrote, without trust: bounded in size, in depth and in counts.

Every error names the file and the line or the record. Nothing in a file is ever executed: XML is
read by defusedxml, YAML by its safe loader, NumPy's files without pickles.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from fabricsim.errors import SpecError, TooLargeError

MOST_B = 1 << 29
"""Bytes of a file that is read: what is larger would not fit when it is taken apart."""

MOST_RECORDS = 5_000_000
"""Nodes, links or transfers of one file."""

MOST_DEPTH = 64
"""Elements of an XML file within each other."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def shown(value: object) -> str:
    """Write what a file holds for an error message: short, however large it is."""
    return reprlib.repr(value)


def data(path: Path) -> bytes:
    """Read all of a file.

    Raises
    ------
    SpecError
        It cannot be read.
    TooLargeError
        It has more than `MOST_B` bytes.
    """
    try:
        size = path.stat().st_size
        if size > MOST_B:
            raise TooLargeError(f"{path.name}: has {size:,} bytes, and at most {MOST_B:,} are read")
        return path.read_bytes()
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None


def text(path: Path) -> str:
    """Read all of a file as UTF-8; errors as `data`, and bytes that are none."""
    try:
        return data(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path.name}: byte {error.start} is not UTF-8") from None


def lines(path: Path, comment: str = "#") -> Iterator[tuple[str, list[str]]]:
    """Give where each line that holds something is ("x.topo, line 3"), and its words."""
    for number, line in enumerate(text(path).splitlines(), start=1):
        words = line.partition(comment)[0].split()
        if words:
            yield f"{path.name}, line {number}", words


def integer(word: object, where: str, *, low: int = 0, high: int = 2**31 - 1) -> int:
    """Read a whole number between two bounds.

    Raises
    ------
    SpecError
        It is none; the message begins with `where`.
    """
    value = word
    if isinstance(word, str) and _INTEGER.fullmatch(word):
        value = int(word)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError(f"{where}: must be a whole number, not {shown(word)}")
    if not low <= value <= high:
        raise SpecError(f"{where}: must lie between {low} and {high}, not {shown(value)}")
    return value


def number(word: object, where: str, *, above: float | None = None) -> float:
    """Read a finite number of zero or more, or above a bound; raises as `integer`."""
    try:
        if isinstance(word, bool) or not isinstance(word, str | int | float):
            raise ValueError
        value = float(word)
    except (ValueError, OverflowError):
        raise SpecError(f"{where}: must be a number, not {shown(word)}") from None
    if not (0 <= value < float("inf")) or (above is not None and value <= above):
        need = "zero or more" if above is None else f"above {above:g}"
        raise SpecError(f"{where}: must be finite, {need}, not {shown(word)}")
    return value


def refuse_beyond(count: int, where: str, what: str) -> None:
    """Raise TooLargeError where a file holds, or announces, more records than are ever read."""
    if count > MOST_RECORDS:
        raise TooLargeError(f"{where}: {count:,} {what}, and at most {MOST_RECORDS:,} are read")


def load_json(path: Path) -> Any:
    """Read a JSON file; errors name the line."""
    try:
        return json.loads(text(path))
    except json.JSONDecodeError as error:
        raise SpecError(f"{path.name}: not valid JSON: {error}") from None
    except RecursionError:
        raise SpecError(f"{path.name}: not read: its JSON is nested too deeply") from None
    except ValueError as error:
        raise SpecError(f"{path.name}: not valid JSON: {error}") from None


def load_yaml(path: Path) -> Any:
    """Read a YAML file of plain data; errors name the line."""
    yaml = extra("yaml", "PyYAML", "formats")
    try:
        return yaml.safe_load(text(path))
    except RecursionError:
        raise SpecError(f"{path.name}: not read: its YAML is nested too deeply") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise SpecError(f"{path.name}: not valid YAML: {error}") from None


def extra(module: str, package: str, name: str) -> Any:
    """Import a package that comes with an extra, or say which extra it is."""
    try:
        return import_module(module)
    except ImportError:
        raise SpecError(
            f"this needs {package}, which is not installed: pip install 'fabricsim[{name}]'"
        ) from None


@dataclass
class Element:
    """An element of an XML file."""

    tag: str
    attributes: dict[str, str]
    where: str
    """File and line."""
    children: list[Element] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Give an attribute that must be there."""
        if name not in self.attributes:
            raise SpecError(f"{self.where}: <{self.tag}> has no {name!r}")
        return self.attributes[name]

    def of(self, tag: str) -> list[Element]:
        """Children of one tag."""
        return [child for child in self.children if child.tag == tag]


class _Tree:
    """Builds `Element`s as the parser tells of tags."""

    def __init__(self, file: str) -> None:
        self.file, self.count = file, 0
        self.open: list[Element] = []
        self.root: Element | None = None
        self.expat: Any = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        where = f"{self.file}, line {self.expat.CurrentLineNumber}"
        self.count += 1
        refuse_beyond(self.count, where, "elements")
        if len(self.open) == MOST_DEPTH:
            raise SpecError(f"{where}: more than {MOST_DEPTH} elements within each other")
        element = Element(tag.rpartition("}")[2], dict(attributes), where)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, tag: str) -> None:
        del tag
        self.open.pop()

    def close(self) -> Element:
        assert self.root is not None
        return self.root


def load_xml(path: Path, what: str) -> Element:
    """Read the elements of a file of `what`, not the text between them; errors name the line.

    Entities, and whatever lies outside of the file, are refused; a DOCTYPE may be there.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    tree = _Tree(path.name)
    parser = DefusedXMLParser(target=tree)
    tree.expat = parser.parser
    try:
        parser.feed(data(path))
        root: Any = parser.close()
    except ParseError as error:
        raise SpecError(f"{path.name}: not valid {what}: {error}") from None
    except DefusedXmlException as error:
        line = tree.expat.CurrentLineNumber
        raise SpecError(f"{path.name}, line {line}: refused: {type(error).__name__}") from None
    assert isinstance(root, Element)
    return root
