"""Traffic matrix: rows are senders, columns receivers; CSV without a head, NPY, or NPZ."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fabricsim.arrays import FloatArray
from fabricsim.errors import SpecError, TooLargeError
from fabricsim.formats import Format, Options
from fabricsim.formats.arrays import NPY, ZIP, arrays
from fabricsim.formats.files import text
from fabricsim.transfers import Transfers, transfers

MOST_RANKS = 5000
"""Rows of a matrix that is read: 200 MB of it."""

_NUMBERS = frozenset(b"0123456789.+-eE, \t\r\n")


def sniff(head: bytes) -> bool:
    """Whether it has an array of NumPy, or nothing but numbers and commas."""
    if head.startswith(ZIP):
        return b".npy" in head and b"src.npy" not in head
    return head.startswith(NPY) or (b"," in head and set(head) <= _NUMBERS)


def matrix(path: Path) -> FloatArray:
    """Read a square matrix of numbers, none below zero.

    Raises
    ------
    SpecError
        The file is no such matrix.
    TooLargeError
        More than `MOST_RANKS` rows.
    """
    if path.suffix.lower() in (".npy", ".npz"):
        found = arrays(path)
        if len(found) != 1:
            names = ", ".join(found) or "none"
            raise SpecError(f"{path}: must hold one array, and holds: {names}")
        (data,) = found.values()
    else:
        rows = [row for row in text(path).splitlines() if row.strip()]
        _refuse(path, max(len(rows), rows[0].count(",") + 1 if rows else 0))
        try:
            data = np.loadtxt(rows, delimiter=",", ndmin=2)
        except ValueError as error:
            raise SpecError(f"{path}: cannot be read as numbers: {error}") from None
    if data.ndim != 2 or data.shape[0] != data.shape[1]:
        shape = " x ".join(map(str, data.shape))
        raise SpecError(f"{path}: is {shape}, and must be square: a row and a column for each rank")
    _refuse(path, len(data))
    data = data.astype(np.float64)
    bad = ~(np.isfinite(data) & (data >= 0))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise SpecError(
            f"{path}: row {row + 1}, column {column + 1} is {data[row, column]:g}; bytes must be "
            "finite, zero or more"
        )
    return data


def _refuse(path: Path, ranks: int) -> None:
    if ranks > MOST_RANKS:
        raise TooLargeError(
            f"{path}: has {ranks:,} ranks, and at most {MOST_RANKS:,} are read: list what is not "
            "zero, as src,dst,bytes"
        )


def read(path: Path, options: Options) -> Transfers:
    """Read the entries that are not zero; what a rank sends to itself does not move."""
    del options
    data = matrix(path)
    src, dst = np.nonzero(data * ~np.eye(len(data), dtype=bool))
    return transfers(len(data), src, dst, data[src, dst])


def write(traffic: Transfers, options: Options) -> str:
    """Write the bytes of each pair as CSV.

    Raises
    ------
    SpecError
        The transfers have an order or starts, which a matrix has not.
    TooLargeError
        More than `MOST_RANKS` ranks.
    """
    del options
    if traffic.ordered or traffic.start.any():
        raise SpecError("a matrix has no starts and no order: write the format transfers")
    if traffic.ranks > MOST_RANKS:
        raise TooLargeError(f"a matrix of {traffic.ranks:,} ranks: at most {MOST_RANKS:,} fit")
    data = np.zeros((traffic.ranks, traffic.ranks))
    np.add.at(data, (traffic.src, traffic.dst), traffic.size)
    return "".join(",".join(map(_exact, row)) + "\n" for row in data.tolist())


def _exact(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


FORMAT = Format(
    description="A square of bytes, from the row's rank to the column's: CSV, NPY or NPZ",
    holds="matrix",
    suffixes=(".csv", ".npy", ".npz"),
    sniff=sniff,
    read=read,
    write=write,
)
