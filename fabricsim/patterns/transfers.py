"""Transfers: who sends how much to whom, when and after what, from a file."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from fabricsim import formats
from fabricsim.errors import SpecError
from fabricsim.graph import waiting_in_circles
from fabricsim.parameters import FilePath, Size
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.matrix import Matrix
from fabricsim.patterns.schedule import Groups, Order, Step, refuse_beyond
from fabricsim.transfers import Transfers


class InFile(TrafficParameters):
    """`size` is what a byte of the file stands for; in the metrics, what a rank sends on average.

    Every group runs the same file.
    """

    algorithm: Literal["direct"] = "direct"
    size: Size = 1.0
    file: FilePath
    """A relative path starts at the traffic file."""
    format: str | None = None
    """Name of the file's format; told by the file if left out."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What the format leaves open."""


def read_file(p: InFile | Matrix) -> Transfers:
    """Read the file.

    Raises
    ------
    SpecError
        The file holds something else, or is not as it should be.
    """
    options = {} if isinstance(p, Matrix) else p.options
    name = ("matrix" if isinstance(p, Matrix) else p.format) or formats.tell(
        p.file, formats.TRAFFIC
    )
    if formats.find(name).holds not in ("transfers", "matrix"):
        raise SpecError(f"{p.file.name}: a file in the format {name} holds no transfers")
    data: Transfers = formats.read(p.file, name, options)
    circle = waiting_in_circles(len(data.src), data.before, data.after)
    if len(circle):
        some = ", ".join(map(str, circle[:3].tolist()))
        raise SpecError(
            f"{p.file.name}: nothing can start: these wait for themselves, by way of others or "
            f"not: transfers {some}" + (f" and {len(circle) - 3} more" if len(circle) > 3 else "")
        )
    return data


def direct(p: InFile, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Start every transfer as soon as its time has come and what it waits for has arrived."""
    del seed
    data = read_file(p)
    if data.ranks > groups.size:
        raise SpecError(
            f"{p.file.name} is for {data.ranks:,} ranks, and there are {groups.size}: take a "
            "topology of more endpoints, or a larger traffic.group_size"
        )
    count, pairs = len(data.src), len(data.before)
    refuse_beyond(groups.count * max(count, pairs))
    first = np.arange(groups.count)[:, None]

    def tiled(values: Any, shift: int) -> Any:
        return (values + first * shift).ravel().astype(values.dtype)

    order = Order(
        tiled(data.before, count), tiled(data.after, count), np.tile(data.delay, groups.count)
    )
    return (
        Step(
            tiled(data.src, groups.size),
            tiled(data.dst, groups.size),
            p.size * np.tile(data.size, groups.count),
            start=np.tile(data.start, groups.count) if data.start.any() else None,
            order=order if data.ordered else None,
        ),
    )


def _demand(p: InFile, groups: Groups, seed: int) -> Step:
    (step,) = direct(p, groups, seed)
    return Step(step.src, step.dst, step.size)


PATTERN = Pattern(
    parameters=InFile,
    algorithms={"direct": direct},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    demand=_demand,
    measured=True,
)
