"""Optimal routing: never slower than any other, nor faster than the bound; exact where known."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabricsim import routing
from fabricsim.catalog import load_topology, load_traffic
from fabricsim.errors import SpecError, TooLargeError, UnreachableError
from fabricsim.fabric import Counts, Fabric, from_networkx
from fabricsim.simulate import simulate
from tests.helpers import Command
from tests.test_builders import anything

LP = 1e-7
"""Relative error that the interior-point solver may make."""


@settings(max_examples=25, deadline=None)
@given(anything, st.sampled_from(["all-to-all", "permutation", "incast"]), st.integers(0, 9))
def test_optimal_beats_or_equals_all_others(
    made: tuple[Any, Fabric, Counts], name: str, seed: int
) -> None:
    fabric = made[1]
    assume(len(fabric.endpoints) * fabric.links < 3000)
    traffic = load_traffic(name, size="1 MB")
    best = simulate(fabric, traffic, "optimal", seed)
    assert best.transfer_time_s >= best.bound_s * (1 - LP)
    for other in routing.names():
        try:
            found = simulate(fabric, traffic, other, seed)
        except SpecError:  # dimension order off a torus
            continue
        assert best.transfer_time_s <= found.transfer_time_s * (1 + LP), other


@pytest.mark.parametrize("generation", [2, 3])
def test_tray_mates_keep_off_the_backplane(generation: int) -> None:
    """Spray sends half of the traffic between mates on one plane over the backplane."""
    size = {"trays_per_rack": 4, "chips_per_tray": 4, "racks": 1, "switches_per_plane": 2}
    fabric = load_topology(f"trn3-nl72x2-gen{generation}", **size)
    traffic = load_traffic("all-to-all", size="16 MB")
    off_tray, mates_of_plane = 12, 1 if generation == 2 else 3
    pair_s = 1e6 / 512e9
    sprayed = simulate(fabric, traffic, "spray").transfer_time_s
    assert sprayed == pytest.approx(pair_s * (off_tray + mates_of_plane / 2), rel=1e-9)
    best = simulate(fabric, traffic, "optimal")
    assert best.transfer_time_s == pytest.approx(pair_s * off_tray, rel=LP)
    assert best.efficiency == pytest.approx(1, rel=LP)


def test_longer_paths_are_used_where_they_help() -> None:
    """Two neighbours on a ring of five: the way round has room for as much again."""
    fabric = load_topology("trn2-nl16", dims=[5], bandwidth="1 GB/s")
    graph_time = simulate(fabric, load_traffic("incast", size="1 GB"), "optimal").transfer_time_s
    assert graph_time == pytest.approx(2.0, rel=LP)  # four senders over two links
    alone: nx.Graph[str] = nx.Graph()
    alone.add_nodes_from("abc", kind="endpoint", transit=True)
    alone.add_edges_from([("a", "b"), ("b", "c"), ("c", "a")], capacity=1e9)
    ring = from_networkx(alone)
    shift = load_traffic("permutation", size="1 GB", algorithm="shift")
    assert simulate(ring, shift).transfer_time_s == pytest.approx(1.0)
    # Each pair has the direct link and the two links of the way round, which is others' direct one
    # reversed: 2/3 of a pair's bytes go straight.
    assert simulate(ring, shift, "optimal").transfer_time_s == pytest.approx(2 / 3, rel=LP)


def test_all_flows_are_done_at_once_and_sizes_count() -> None:
    fabric = load_topology("star", endpoints=4, bandwidth="1 GB/s")
    traffic = load_traffic("incast", size="1 GB")
    assert simulate(fabric, traffic, "optimal").transfer_time_s == pytest.approx(3.0, rel=LP)


def test_a_program_that_is_too_large_says_how_large(fabricsim: Command) -> None:
    error = fabricsim.fails("run", "trn3-nl72x2-gen3", "all-to-all", "--routing", "optimal")
    assert "a linear program of 767,232 unknowns" in error
    with pytest.raises(TooLargeError):
        simulate(load_topology("trn3-nl72x2-gen3"), load_traffic("all-to-all"), "optimal")


def test_an_unreachable_pair_is_named() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from("ab", kind="endpoint")
    graph.add_edge("a", "b", capacity=1e9)
    with pytest.raises(UnreachableError, match="no path from b to a"):
        simulate(from_networkx(graph), load_traffic("all-to-all"), "optimal")
