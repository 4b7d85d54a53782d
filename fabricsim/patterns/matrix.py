"""Matrix: who sends how many bytes to whom, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationInfo, field_validator

from fabricsim.errors import SpecError
from fabricsim.formats.matrix import matrix
from fabricsim.parameters import Size
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.schedule import Groups, Step, tiled


class Matrix(TrafficParameters):
    """`size` is what an entry of 1 stands for; in the metrics it is what a rank sends on average.

    Every group runs the same matrix. What a rank sends to itself does not move.
    """

    algorithm: Literal["direct"] = "direct"
    size: Size = 1.0
    file: Path
    """Rows are senders, columns receivers: CSV without a head, NPY, or NPZ of one array. A relative
    path starts from the folder of the traffic file, or else from the current one."""

    @field_validator("file")
    @classmethod
    def _beside_the_traffic_file(cls, file: Path, info: ValidationInfo) -> Path:
        beside = Path((info.context or {}).get("folder", "")) / file
        found = beside if beside.is_file() else file
        if not found.is_file():
            raise ValueError(f"{file} is no file")
        if found.suffix not in (".csv", ".npy", ".npz"):
            raise ValueError(f"{file}: give a .csv, .npy or .npz file")
        return found


def _transfers(p: Matrix, groups: Groups, seed: int) -> Step:
    del seed
    data = matrix(p.file)
    if len(data) != groups.size:
        raise SpecError(
            f"{p.file} is for {len(data)} ranks, and a group has {groups.size}: take another file, "
            f"or traffic.group_size = {len(data)}"
        )
    src, dst = np.nonzero(data * ~np.eye(len(data), dtype=bool))
    return tiled(groups, src, dst, p.size * data[src, dst])


def direct(p: Matrix, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Send everything at once: one step with a transfer for each entry that is not zero."""
    return (_transfers(p, groups, seed),)


PATTERN = Pattern(
    parameters=Matrix,
    algorithms={"direct": direct},
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    demand=_transfers,
    measured=True,
)
