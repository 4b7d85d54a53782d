"""No routing beats the bound, on any fabric."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricsim.catalog import load_topology, load_traffic
from fabricsim.fabric import Counts, Fabric
from fabricsim.simulate import simulate
from tests.test_builders import anything
from tests.test_cluster import clusters

fabrics = st.one_of(anything.map(lambda made: made[1]), clusters().map(lambda made: made[0]))


@settings(max_examples=60, deadline=None)
@given(fabrics, st.sampled_from(["spray", "spray-uniform", "ecmp", "single"]), st.integers(0, 9))
def test_all_to_all_never_beats_the_bound(fabric: Fabric, routing: str, seed: int) -> None:
    result = simulate(fabric, load_traffic("all-to-all", size="1 MB"), routing, seed)
    assert 0 < result.efficiency <= 1 + 1e-9


@settings(max_examples=20, deadline=None)
@given(anything, st.sampled_from(["permutation", "incast", "broadcast", "all-reduce"]))
def test_other_patterns_never_beat_the_bound(
    made: tuple[Any, Fabric, Counts], traffic: str
) -> None:
    result = simulate(made[1], load_traffic(traffic, size="1 MB"))
    assert 0 < result.efficiency <= 1 + 1e-9


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("hgx-h100", {}),
        ("gb200-nvl36x2", {}),
        ("tpu-v7-cube", {}),
        ("tpu-v4-pod", {"dims": [4, 4, 8], "twisted": True}),
        ("cloudmatrix384", {"endpoints": 128}),
    ],
)
def test_peers_that_reach_their_bound(name: str, parameters: dict[str, Any]) -> None:
    result = simulate(load_topology(name, **parameters), load_traffic("all-to-all", size="64 MB"))
    assert result.efficiency == pytest.approx(1, rel=1e-9)
