"""nccl-tests: command lines, and the tables that they print.

A command such as ``mpirun -np 64 all_reduce_perf -b 8 -e 1G -f 2`` says what to run: the sizes go
from ``-b`` to ``-e``, times ``-f`` or plus ``-i``; K, M and G are binary. A table says what was
measured; the out-of-place columns are read. Of a log, all lines but these are passed over. What
the tests print is described in nccl-tests' README.md and doc/PERFORMANCE.md.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from fabricsim.arrays import FloatArray
from fabricsim.errors import SpecError, TooLargeError, unknown_name
from fabricsim.formats import Format, Options
from fabricsim.formats.files import integer, number, refuse_beyond, shown, text

PATTERNS = {
    "all_reduce_perf": "all-reduce",
    "all_gather_perf": "all-gather",
    "reduce_scatter_perf": "reduce-scatter",
    "alltoall_perf": "all-to-all",
    "broadcast_perf": "broadcast",
    "reduce_perf": "reduce",
}
"""The programs that have a pattern here."""

MOST_SIZES = 10_000
"""Sizes of one command."""

_MIB = 1 << 20
_FLAGS = {
    "t": "nthreads", "g": "ngpus", "b": "minbytes", "e": "maxbytes", "i": "stepbytes",
    "f": "stepfactor", "n": "iters", "m": "agg_iters", "w": "warmup_iters", "N": "run_cycles",
    "p": "parallel_init", "c": "check", "o": "op", "d": "datatype", "r": "root", "z": "blocking",
    "y": "stream_null", "T": "timeout", "G": "cudagraph", "C": "report_cputime", "a": "average",
    "R": "local_register", "x": "cta_policy", "D": "device_implementation",
    "V": "device_cta_count", "J": "output_file", "S": "report_timestamps", "M": "memory",
    "I": "per_iter_timing", "K": "per_iter_skip", "u": "unalign",
}  # fmt: skip
_PROGRAM = re.compile(rb"(?<![A-Za-z])[a-z_]+_perf\b")
_HEAD = re.compile(r"#\s*size\s+count\s+type\b.*\btime\s+algbw\s+busbw")
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KkMmGg]?)B?")
_TAG = re.compile(r"^\[[\d,]+\](?:<std(?:out|err)>)?:?")


@dataclass(frozen=True, eq=False)
class Sizes:
    """A collective at several sizes, and how long it took where that was measured.

    Attributes
    ----------
    pattern : str
        Name of the pattern, such as ``"all-reduce"``.
    size_B : (sizes,) floats
        Bytes, as nccl-tests define it for the collective.
    ranks : int or None
        How many take part, where the file says so.
    time_s, busbw_Bps : (sizes,) floats, or None
        As measured.
    """

    pattern: str
    size_B: FloatArray
    ranks: int | None = None
    time_s: FloatArray | None = None
    busbw_Bps: FloatArray | None = None


def sniff(head: bytes) -> bool:
    """Whether it names one of the programs, or has the head of a table."""
    return _PROGRAM.search(head) is not None or _is_head(head.decode("utf-8", "replace"))


def _is_head(content: str) -> bool:
    return _HEAD.search(content) is not None


def is_command(words: str) -> bool:
    """Whether text is a command rather than the name of a file."""
    return _PROGRAM.search(words.encode()) is not None and " " in words.strip()


def read(path: Path, options: Options) -> Sizes:
    """Read a table, or else a command.

    Raises
    ------
    SpecError
        Neither, or one that is not as it should be, or of a collective that has no pattern here.
    """
    content = text(path)
    if _is_head(content):
        return _table(path.name, content, options)
    lines = content.replace("\\\n", " ").splitlines()
    commands = [line for line in lines if _command_in(line)]
    if len(commands) != 1:
        raise SpecError(f"{path.name}: holds {len(commands)} commands of nccl-tests: give one")
    return command(commands[0], path.name)


def _command_in(line: str) -> bool:
    return not line.lstrip().startswith("#") and _PROGRAM.search(line.encode()) is not None


def command(words: str, where: str = "the command") -> Sizes:
    """Read the command line of one of the tests.

    Examples
    --------
    >>> command("all_reduce_perf -b 8 -e 64 -f 2").size_B
    array([ 8., 16., 32., 64.])
    """
    try:
        parts = shlex.split(words, comments=True)
    except ValueError as error:
        raise SpecError(f"{where}: {error}") from None
    at = next((i for i, part in enumerate(parts) if part.endswith("_perf")), None)
    if at is None:
        raise SpecError(f"{where}: names no program of nccl-tests")
    pattern = _pattern(parts[at].rpartition("/")[2], where)
    given = _flags(parts[at + 1 :], where)
    if given.get("root", "0") != "0":
        raise SpecError(f"{where}, root: only rank 0 is a root here, not {shown(given['root'])}")
    low = _size(given.get("minbytes", "32M"), f"{where}, minbytes")
    high = _size(given.get("maxbytes", "32M"), f"{where}, maxbytes")
    factor = integer(given.get("stepfactor", "1"), f"{where}, stepfactor", low=1)
    step = _size(given.get("stepbytes", str(_MIB)), f"{where}, stepbytes")
    if low > high:
        raise SpecError(f"{where}: minbytes {low:.0f} is above maxbytes {high:.0f}")
    return Sizes(pattern, _scan(low, high, factor, step, where), _ranks(parts[:at], given, where))


def _pattern(program: str, where: str) -> str:
    if program not in PATTERNS:
        raise SpecError(f"{where}: {unknown_name('program of nccl-tests', program, PATTERNS)}")
    return PATTERNS[program]


def _flags(parts: Sequence[str], where: str) -> dict[str, str]:
    """Read flags, short (``-b 8``, ``-b8``) and long (``--minbytes 8``, ``--minbytes=8``)."""
    given = {}
    rest = iter(parts)
    for part in rest:
        if part in ("|", ">", ">>", "2>&1", "&", ";", "&&"):
            break
        name, equals, value = part.partition("=")
        if name.startswith("--"):
            name = name[2:]
        else:
            name, value = _FLAGS.get(part[1:2], part), part[2:]
            equals = value
        if not part.startswith("-") or name not in _FLAGS.values():
            raise SpecError(f"{where}: {unknown_name('flag of nccl-tests', part, _FLAGS.values())}")
        if not equals:
            value = next(rest, "")
        if not value:
            raise SpecError(f"{where}: {part} is without its value")
        given[name] = value
    return given


def _size(word: str, where: str) -> float:
    found = _SIZE.fullmatch(word)
    if found is None:
        raise SpecError(f"{where}: must be a size such as 8, 4K or 1G, not {shown(word)}")
    return float(found[1]) * float(1024 ** " KMG".index((found[2] or " ").upper()))


def _scan(low: float, high: float, factor: int, step: float, where: str) -> FloatArray:
    if factor > 1:
        count = 1 if low == 0 else int(np.floor(np.log(high / low) / np.log(factor) + 1e-9)) + 1
        return np.array([low * float(factor) ** k for k in range(count)])
    if low < high and step <= 0:
        raise SpecError(f"{where}, stepbytes: must be above zero")
    count = int((high - low) // step) + 1 if low < high else 1
    if count > MOST_SIZES:
        raise TooLargeError(f"{where}: {count:,} sizes, and at most {MOST_SIZES:,} are run")
    return low + step * np.arange(count, dtype=np.float64)


def _ranks(launcher: Sequence[str], given: dict[str, str], where: str) -> int | None:
    """Count the ranks: processes, by threads, by GPUs; None where the command says nothing."""
    said = [given[name] for name in ("nthreads", "ngpus") if name in given]
    for flag, value in pairwise(launcher):
        if flag in ("-np", "-n", "--np", "--ntasks"):
            said.append(value)
    said += [part.partition("=")[2] for part in launcher if part.startswith("--ntasks=")]
    if not said:
        return None
    ranks = 1
    for word in said:
        ranks *= integer(word, f"{where}, number of ranks", low=1, high=10**6)
    return ranks


def _table(file: str, content: str, options: Options) -> Sizes:
    program, ranks = options.get("program"), 0
    rows: list[tuple[float, float, float]] = []
    columns: list[str] = []
    for line_number, line in enumerate(content.splitlines(), start=1):
        where = f"{file}, line {line_number}"
        line = _TAG.sub("", line).strip()
        if line.startswith("#"):
            words = line.lstrip("# ").split()
            if words[:3] == ["size", "count", "type"]:
                columns = ["time" if word == "cputime" else word for word in words]
            ranks += words[:1] == ["Rank"]
        elif columns and line[:1].isdigit():
            rows.append(_row(columns, line.split(), where))
            refuse_beyond(len(rows), where, "rows")
        if program is None and (found := _PROGRAM.search(line.encode())):
            program = found[0].decode()
    if program is None:
        raise SpecError(
            f"{file}: does not say which test it is: give --set traffic.program=all_reduce_perf, "
            f"or another of {', '.join(PATTERNS)}"
        )
    if not rows:
        raise SpecError(f"{file}: its table has no rows")
    size, time, busbw = np.array(rows).T
    return Sizes(_pattern(str(program), file), size, ranks or None, time * 1e-6, busbw * 1e9)


def _row(columns: list[str], words: list[str], where: str) -> tuple[float, float, float]:
    if len(words) < columns.index("busbw") + 1:
        raise SpecError(f"{where}: has {len(words)} columns, and its head has {len(columns)}")
    size, time, busbw = (
        number(words[columns.index(name)], f"{where}, {name}") for name in ("size", "time", "busbw")
    )
    return size, time, busbw


FORMAT = Format(
    description="A command such as all_reduce_perf -b 8 -e 1G -f 2, or a table that it printed",
    holds="sizes",
    suffixes=(".txt", ".log", ".out", ".sh"),
    sniff=sniff,
    read=read,
    options=("program",),
)
