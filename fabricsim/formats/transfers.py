"""Transfers, one a line: CSV with a head, or NPZ with an array for each column.

Columns ``src``, ``dst`` and ``bytes``; where wanted ``start`` and ``delay`` in seconds, and, in
CSV, ``after``: the numbers of the transfers that must have arrived before, the first line's being
0, with semicolons between them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricsim.arrays import FloatArray
from fabricsim.errors import SpecError, unknown_name
from fabricsim.formats import Format, Options
from fabricsim.formats.arrays import ZIP, arrays
from fabricsim.formats.files import integer, number, refuse_beyond, text
from fabricsim.transfers import Transfers, transfers

_NEEDED, _COLUMNS = ("src", "dst", "bytes"), ("src", "dst", "bytes", "start", "delay", "after")


def sniff(head: bytes) -> bool:
    """Whether the first line, or the archive, names a source, a destination and bytes."""
    if head.startswith(ZIP):
        return b"src.npy" in head
    first = head.decode("utf-8-sig", "replace").lstrip().partition("\n")[0]
    return set(_NEEDED) <= {name.strip() for name in first.split(",")}


def read(path: Path, options: Options) -> Transfers:
    """Read transfers.

    Raises
    ------
    SpecError
        A column, a line or an array that is not as it should be.
    TooLargeError
        More transfers than are ever read.
    """
    del options
    return _read_npz(path) if path.suffix.lower() == ".npz" else _read_csv(path)


def _check_columns(file: str, names: list[str]) -> None:
    for name in names:
        if name not in _COLUMNS:
            raise SpecError(f"{file}: {unknown_name('column', name, _COLUMNS)}")
    for name in _NEEDED:
        if name not in names:
            raise SpecError(f"{file}: there must be a column {name!r}")


def _read_csv(path: Path) -> Transfers:
    reader = csv.reader(text(path).splitlines(), skipinitialspace=True)
    columns: dict[str, list[Any]] = {}
    before: list[int] = []
    after: list[int] = []
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_columns(path.name, names)
        columns = {name: [] for name in names}
        count = 0
        for row in reader:
            if not row:
                continue
            where = f"{path.name}, line {reader.line_num}"
            if len(row) != len(names):
                raise SpecError(f"{where}: has {len(row)} columns, not {len(names)}")
            for name, word in zip(names, row, strict=True):
                place = f"{where}, {name}"
                if name == "after":
                    others = [integer(item.strip(), place) for item in word.split(";") if item]
                    before += others
                    after += [count] * len(others)
                elif name in ("src", "dst"):
                    columns[name].append(integer(word.strip(), place))
                else:
                    columns[name].append(number(word.strip() or "0", place))
            count += 1
            refuse_beyond(max(count, len(before)), where, "transfers")
    except csv.Error as error:
        raise SpecError(
            f"{path.name}, line {reader.line_num + 1}: not valid CSV: {error}"
        ) from None
    if before and max(before) >= count:
        raise SpecError(f"{path.name}: a transfer waits for number {max(before)} of {count}")
    return _made(
        {name: np.array(values) for name, values in columns.items() if name != "after"},
        np.array(before, np.int64),
        np.array(after, np.int64),
    )


def _read_npz(path: Path) -> Transfers:
    found = arrays(path)
    _check_columns(path.name, list(found))
    length = found["src"].size
    refuse_beyond(length, path.name, "transfers")
    for name, values in found.items():
        if values.shape != (length,) or name == "after":
            raise SpecError(f"{path.name}, {name}: must be a row of {length} numbers")
        low, whole = (0, name in ("src", "dst"))
        bad = ~(np.isfinite(values) & (values >= low))
        if whole:
            bad |= (values != np.floor(values)) | (values >= 2**31)
        if bad.any():
            record = int(np.argmax(bad))
            need = "a rank, from 0" if whole else "finite, zero or more"
            raise SpecError(
                f"{path.name}, {name}[{record}]: must be {need}, not {values[record]:g}"
            )
    return _made(found, None, None)


def _made(
    columns: dict[str, NDArray[Any]],
    before: NDArray[np.int64] | None,
    after: NDArray[np.int64] | None,
) -> Transfers:
    src, dst = columns["src"].astype(np.int64), columns["dst"].astype(np.int64)

    def optional(name: str) -> FloatArray | None:
        return columns[name].astype(np.float64) if name in columns else None

    return transfers(
        int(max(src.max(initial=-1), dst.max(initial=-1))) + 1,
        src,
        dst,
        columns["bytes"],
        start=optional("start"),
        delay=optional("delay"),
        before=before,
        after=after,
    )


def write(traffic: Transfers, options: Options) -> str:
    """Write all that transfers are as CSV; columns of nothing are left out."""
    del options
    columns = {"src": traffic.src.tolist(), "dst": traffic.dst.tolist()}
    columns |= {"bytes": [repr(value) for value in traffic.size.tolist()]}
    for name in ("start", "delay"):
        if getattr(traffic, name).any():
            columns[name] = [repr(value) for value in getattr(traffic, name).tolist()]
    if len(traffic.before):
        waits: list[list[str]] = [[] for _ in columns["src"]]
        for one, other in zip(traffic.before.tolist(), traffic.after.tolist(), strict=True):
            waits[other].append(str(one))
        columns["after"] = [";".join(items) for items in waits]
    rows = [",".join(columns)]
    rows += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join(rows) + "\n"


FORMAT = Format(
    description="One transfer a line: src,dst,bytes, and start,delay,after where wanted; or NPZ",
    holds="transfers",
    suffixes=(".csv", ".npz"),
    sniff=sniff,
    read=read,
    write=write,
)
