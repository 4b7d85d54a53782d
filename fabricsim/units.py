"""Quantities with units: text to SI floats, and SI floats to text for people.

Inside fabricsim a bandwidth is a float in bytes per second, a size in bytes, a duration in seconds.
The prefixes and the number formats are QuantiPhy's; this module says which units are allowed where.
"""

from __future__ import annotations

import math
import re

from quantiphy import Quantity

# For each dimension: the pattern of its unit with prefix, and an example for error messages.
# Prefixes below one are left out for bytes and bits, so that "400 mb/s" is no millibit.
_BYTES = r"(?:[kKMGTPE]i?)?"
_ALLOWED = {
    "B/s": (re.compile(_BYTES + r"([Bb])(?:/s|ps)"), "'128 GB/s' or '200 Gb/s'"),
    "B": (re.compile(_BYTES + r"(B)"), "'64 MiB' or '1 GB'"),
    "s": (re.compile(r"[afpnuµμm]?(s)"), "'6.5 us' or '150 ns'"),
}
_NAMES = {"B/s": "bandwidth", "B": "size", "s": "duration"}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*")


def parse(text: object, unit: str) -> float:
    """Read a quantity with its unit.

    Parameters
    ----------
    text : str
        A number and a unit, such as ``"128 GB/s"``, ``"200 Gb/s"``, ``"64 MiB"``, ``"6.5 us"``.
        Prefixes are decimal; ``Ki``, ``Mi``, ``Gi`` ... are binary.
    unit : {"B/s", "B", "s"}
        What is expected: a bandwidth (bits are divided by eight), a size or a duration.

    Returns
    -------
    float
        The value in `unit`.

    Raises
    ------
    ValueError
        No number, no unit, another unit, or a value that no float can hold.

    Examples
    --------
    >>> parse("200 Gb/s", "B/s")
    25000000000.0
    >>> parse("64 MiB", "B")
    67108864.0
    """
    pattern, example = _ALLOWED[unit]
    if not isinstance(text, str):
        raise ValueError(f"a {_NAMES[unit]} needs a unit, such as {example}, not {text!r}")
    number = _NUMBER.fullmatch(text)
    if number is None:
        raise ValueError(f"{text!r} is not a number with a unit, such as {example}")
    if not number[2]:
        raise ValueError(f"{text!r} has no unit: write {example}")
    suffix = pattern.fullmatch(number[2])
    if suffix is None:
        raise ValueError(f"{number[2]!r} is not a unit of {_NAMES[unit]}: write {example}")
    value = float(Quantity(text, binary=True))
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is beyond what a number can hold")
    return value / 8 if suffix[1] == "b" else value


def show(value: float, unit: str) -> str:
    """Write a value for people, to three figures, with the prefix that suits it.

    Examples
    --------
    >>> show(1.03e-3, "s"), show(126e9, "B/s")
    ('1.03 ms', '126 GB/s')
    """
    return Quantity(value, unit).render(prec=2)


def show_size(size_B: float) -> str:
    """Write a number of bytes for people: in binary units where these are round.

    Examples
    --------
    >>> show_size(67108864.0), show_size(1e9)
    ('64 MiB', '1 GB')
    """
    step = 1024.0
    while size_B >= step * 1024:
        step *= 1024
    if size_B >= step and size_B % (step / 16) == 0:
        return str(Quantity(size_B, "B").binary(prec=3))
    return show(size_B, "B")
