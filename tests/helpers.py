"""What several tests share."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabricsim import cli
from fabricsim.arrays import IntArray
from fabricsim.builders import find
from fabricsim.fabric import Counts, Fabric

CASES = Path(__file__).parent / "cases"


@dataclass
class Ran:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.out)
        return data


class Command:
    """Runs the command line in this process, as `fabricsim` would."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *args: str) -> Ran:
        self.monkeypatch.setattr(sys, "argv", ["fabricsim", *args])
        status = 0
        try:
            cli.main()
        except SystemExit as stop:
            status = int(stop.code or 0)
        out, err = self.capsys.readouterr()
        return Ran(status, out, err)

    def fails(self, *args: str) -> str:
        """Run what must fail with status 2 and one line; return the line."""
        ran = self(*args)
        assert ran.status == 2, ran
        assert ran.out == ""
        assert ran.err.startswith("fabricsim: ")
        assert ran.err.count("\n") == 1
        assert "Traceback" not in ran.err
        return ran.err


def build(builder: str, **parameters: Any) -> tuple[Fabric, Counts]:
    """Build and count a fabric from parameters."""
    found = find(builder)
    p = found.parameters.model_validate(parameters)
    return found.build(p), found.count(p)


def all_pairs(fabric: Fabric) -> tuple[IntArray, IntArray]:
    """Nodes of all ordered pairs of endpoints."""
    n = len(fabric.endpoints)
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    return fabric.endpoints[i], fabric.endpoints[j]


NL72X2_GEN1: dict[str, Any] = {
    "racks": 2,
    "trays_per_rack": 18,
    "chips_per_tray": 4,
    "planes": 4,
    "switches_per_plane": 10,
    "backplane_bandwidth": "512 GB/s",
    "tray": {"kind": "switched", "bandwidth": "512 GB/s", "switches": 8},
    "cross_rack_bandwidth": "128 GB/s",
}
