"""Questions that people asked in public about shapes and zeros, with the right answers."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from fabricsim.catalog import load_topology, load_traffic
from fabricsim.errors import FabricError
from fabricsim.fabric import Fabric, from_networkx
from fabricsim.result import Result
from fabricsim.simulate import simulate
from tests.helpers import Command, build

GB = 1e9


def all_to_all(fabric: Fabric, pair_B: float, **options: Any) -> Result:
    n = len(fabric.endpoints)
    return simulate(fabric, load_traffic("all-to-all", size=f"{pair_B * n:.0f} B"), **options)


def test_a_link_of_capacity_zero_is_an_error_that_names_it(fabricsim: Command) -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from("ab", kind="endpoint")
    graph.add_edge("a", "b", capacity=0.0, kind="nvlink")
    with pytest.raises(FabricError, match="nvlink link from a to b: capacity 0"):
        from_networkx(graph)
    error = fabricsim.fails("run", "star", "incast", "--set", "topology.bandwidth=0 GB/s")
    assert "topology.bandwidth: input should be greater than 0" in error


@pytest.mark.parametrize(
    ("double", "cables", "factor"), [(False, 12, 4), (True, 24, 2)], ids=["single", "double"]
)
def test_axes_of_two_have_one_cable_unless_doubled(double: bool, cables: int, factor: int) -> None:
    parameters = {"dims": [2, 2, 2], "bandwidth": "100 GB/s", "double_cables": double}
    fabric, counts = build("torus", **parameters)
    assert counts.endpoint_links == cables
    m = 1e6
    for routing in ("spray", "spray-uniform", "dimension-order"):
        result = all_to_all(fabric, m, routing=routing)
        assert result.transfer_time_s == pytest.approx(factor * m / (100 * GB), rel=1e-12)


def test_axes_of_one_have_no_link() -> None:
    flat, _ = build("torus", dims=[4, 1, 4], bandwidth="1 GB/s")
    assert flat.link_kinds == ("x", "z")
    alone, counts = build("torus", dims=[1, 1], bandwidth="1 GB/s")
    assert (alone.links, counts.diameter, counts.injection_Bps) == (0, 0, 0)
    assert all_to_all(alone, 1e6).time_s == 0


def test_four_parallel_cables_are_four_times_one() -> None:
    def trunk(cables: int) -> Fabric:
        graph: nx.MultiGraph[str] = nx.MultiGraph()
        graph.add_nodes_from(["a", "b", "c", "d"], kind="endpoint")
        graph.add_nodes_from(["left", "right"], kind="switch")
        for host, switch in zip("abcd", ["left", "left", "right", "right"], strict=True):
            graph.add_edge(host, switch, capacity=50 * GB)
        for _ in range(cables):
            graph.add_edge("left", "right", capacity=12.5 * GB)
        return from_networkx(graph)

    # Four flows of m cross the trunk each way; with four cables the hosts limit: three flows of m.
    m = 1e9
    assert all_to_all(trunk(1), m).transfer_time_s == pytest.approx(4 * m / (12.5 * GB))
    assert all_to_all(trunk(4), m).transfer_time_s == pytest.approx(4 * m / (50 * GB))
    kinds = all_to_all(trunk(4), m).link_kinds
    assert sum(kind.links for kind in kinds) == 2 * (4 + 4)
    # Hashed, each of the four flows has a cable: at least as long as one flow on one cable.
    for seed in range(5):
        hashed = all_to_all(trunk(4), m, routing="ecmp", seed=seed).transfer_time_s
        assert any(hashed == pytest.approx(k * m / (12.5 * GB)) for k in (1, 2, 3, 4))


def test_planes_of_different_speed_are_striped() -> None:
    graph: nx.Graph[str] = nx.Graph()
    gpus = [f"gpu{i}" for i in range(4)]
    graph.add_nodes_from(gpus, kind="endpoint")
    for name, gbit in zip("wxyz", (1000, 800, 800, 1000), strict=True):
        graph.add_node(name, kind="switch")
        graph.add_edges_from([(gpu, name) for gpu in gpus], capacity=gbit * 1.25e8)
    fabric = from_networkx(graph)
    result = simulate(fabric, load_traffic("permutation", size="450 GB", algorithm="shift"))
    assert result.transfer_time_s == pytest.approx(1, rel=1e-12)
    assert result.busbw_Bps == pytest.approx(450 * GB, rel=1e-12)


def test_fat_trees_that_are_partly_filled() -> None:
    parameters = {"switch_bandwidth": "3.6 Tb/s", "port_bandwidth": "100 Gb/s"}
    fabric, counts = build("fat_tree", **parameters, endpoints=108, oversubscription=3)
    assert counts.switches_by_kind == {"leaf": 4, "spine": 1}
    leaf_up = fabric.link_kinds.index("leaf-spine")
    assert (fabric.link_kind == leaf_up).sum() == 2 * 4 * 9
    n, d, p, m = 108, 27, 12.5 * GB, 1e6
    result = all_to_all(fabric, m)
    assert result.transfer_time_s == pytest.approx(m * 3 * (n - d) / p, rel=1e-12)


@pytest.mark.parametrize("endpoints", [1, 2, 19, 36, 37, 55, 107, 108, 109, 400, 648])
def test_fat_trees_of_any_size_do_not_block(endpoints: int) -> None:
    parameters = {"switch_bandwidth": "3.6 Tb/s", "port_bandwidth": "100 Gb/s"}
    fabric, _ = build("fat_tree", **parameters, endpoints=endpoints)
    traffic = load_traffic("permutation", size="125 MB")
    for seed in range(3):
        result = simulate(fabric, traffic, seed=seed)
        assert result.transfer_time_s == pytest.approx(0.01 if endpoints > 1 else 0, rel=1e-9)


def test_an_impossible_fat_tree_names_the_nearest_legal_sizes(fabricsim: Command) -> None:
    error = fabricsim.fails("show", "fat-tree-12.8t", "--set", "topology.endpoints=9000")
    assert "at most 8192 with layers = 2 (524288 with layers = 3)" in error
    error = fabricsim.fails("show", "fat-tree-12.8t", "--set", "topology.port_bandwidth=300 Gb/s")
    assert "the nearest port_bandwidth is 298 Gb/s" in error or "37.2 GB/s" in error


@pytest.mark.parametrize(
    "traffic",
    [
        "all-to-all",
        "all-reduce",
        "all-gather",
        "reduce-scatter",
        "broadcast",
        "permutation",
        "incast",
    ],
)
@pytest.mark.parametrize(
    "settings",
    [
        ["--set", "topology.endpoints=1"],
        ["--set", "traffic.group_size=1"],
        ["--set", "traffic.size=0 B"],
    ],
    ids=["one endpoint", "groups of one", "no bytes"],
)
def test_one_rank_or_no_bytes_is_no_exception(
    traffic: str, settings: list[str], fabricsim: Command
) -> None:
    ran = fabricsim("run", "star", traffic, *settings, "--json", "-")
    assert ran.status == 0, ran.err
    assert ran.json["time_s"] == ran.json["busbw_Bps"] == ran.json["transfer_time_s"] == 0
    assert ran.json["bottleneck"]["link_kind"] is None
    assert "Nothing crosses the network." in fabricsim("run", "star", traffic, *settings).out


def test_ranks_are_endpoints_and_never_switches() -> None:
    fabric = load_topology("trn3-nl72x2-gen1")
    result = simulate(fabric, load_traffic("all-to-all"))
    assert result.ranks == result.endpoints == 144
    assert (fabric.node_kind[fabric.endpoints] == 0).all()
    assert np.array_equal(fabric.endpoints, np.arange(144))
