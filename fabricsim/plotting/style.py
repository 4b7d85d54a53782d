"""The look of every figure: one style file, line styles that survive grey, and units on axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
import matplotlib.style
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fabricsim.units import show, show_size

STYLE = Path(__file__).with_name("fabricsim.mplstyle")


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of fabricsim, whatever the caller's own settings."""
    with mpl.rc_context():
        mpl.rcdefaults()
        matplotlib.style.use(STYLE)
        yield


def marks() -> Iterator[tuple[str, str]]:
    """Line styles and markers to tell lines apart without colour."""
    return cycle(
        zip(("-", "--", "-.", ":", "-", "--"), ("o", "s", "^", "D", "v", "P"), strict=True)
    )


def in_units(axis: Axis, unit: str) -> None:
    """Write an axis in rich units: bandwidths, durations, or sizes in bytes."""
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: show_size(value) if unit == "B" else show(value, unit))
    )


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure; the ending of the name says how (.png, .svg, .pdf)."""
    figure.savefig(path, metadata={"Date": None} if Path(path).suffix == ".svg" else None)
