"""Whole runs against closed forms: the cases of tests/cases/runs.json."""

import json
from typing import Any

import pytest

from tests.helpers import CASES, Command

RUNS = json.loads((CASES / "runs.json").read_text())


@pytest.mark.parametrize("case", RUNS, ids=lambda case: f"{case['args'][0]}: {case['why']}")
def test_run(case: dict[str, Any], fabricsim: Command) -> None:
    ran = fabricsim("run", *case["args"], "--json", "-")
    assert ran.status == 0, ran.err
    for key, value in case["expect"].items():
        assert ran.json[key] == pytest.approx(value, rel=case["rel_tol"], abs=0), case["why"]
    assert ran.json["efficiency"] <= 1 + 1e-9
