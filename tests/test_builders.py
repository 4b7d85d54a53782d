"""Builders: what is built agrees with what is counted, and both with the closed forms."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabricsim.catalog import load_topology, names, topology
from fabricsim.errors import FabricError, SpecError
from fabricsim.fabric import Counts, Fabric, bundle_cables, from_networkx, to_networkx
from fabricsim.graph import hop_distances
from tests.helpers import NL72X2_GEN1, all_pairs, build

bandwidths = st.integers(1, 20).map(lambda b: f"{b} GB/s")


@st.composite
def tori(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    dims = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return "torus", {
        "dims": dims,
        "bandwidth": [draw(bandwidths) for _ in dims],
        "double_cables": draw(st.booleans()),
    }


@st.composite
def meshes(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    builder, parameters = draw(tori())
    wrap = [draw(st.sampled_from([True, False, 2, 4])) for _ in parameters["dims"]]
    return builder, {**parameters, "wrap": wrap}


@st.composite
def twisted(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    short = draw(st.integers(2, 4))
    dims = draw(st.permutations([short, 2 * short, draw(st.sampled_from([short, 2 * short]))]))
    bandwidth = [draw(bandwidths) for _ in dims]
    return "torus", {"dims": dims, "bandwidth": bandwidth, "twisted": True}


@st.composite
def switched(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    racks, chips = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["direct", "switched"]))
    tray: dict[str, Any] = {"kind": kind, "bandwidth": draw(bandwidths)}
    if kind == "switched":
        tray["switches"] = draw(st.integers(1, 3))
    planes = draw(st.integers(1, chips))
    parameters = {
        "racks": racks,
        "trays_per_rack": draw(st.integers(1, 4)),
        "chips_per_tray": chips,
        "planes": planes,
        "switches_per_plane": draw(st.integers(1, 3)),
        "backplane_bandwidth": draw(bandwidths),
        "links_per_switch": draw(st.integers(1, 3)),
    }
    if draw(st.booleans()):
        parameters["cross_rack_bandwidth"] = draw(bandwidths)
    else:
        trunk = {"bandwidth": draw(bandwidths), "cables": draw(st.integers(1, 2))}
        parameters["switch_trunk"] = trunk
    if planes > 1 or draw(st.booleans()):
        parameters["tray"] = tray
    return "switched", parameters


@st.composite
def fat_trees(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    radix, servers = draw(st.integers(2, 8)), draw(st.sampled_from([1, 1, 2, 3]))
    parameters = {
        "switch_bandwidth": f"{radix * 100} Gb/s",
        "port_bandwidth": "100 Gb/s",
        "layers": draw(st.integers(1, 3)),
        "endpoints": servers * draw(st.integers(1, 40 // servers)),
        "endpoints_per_server": servers,
        "attachment": draw(st.sampled_from(["tor", "rail"])),
        "planes": draw(st.integers(1, 2)),
        "endpoint_ports": draw(st.sampled_from([1, 1, 2])),
        "oversubscription": draw(st.sampled_from([0.5, 1, 1.5, 2, 3])),
    }
    if draw(st.booleans()):
        parameters["endpoints_per_leaf"] = draw(st.integers(1, 4))
    return "fat_tree", parameters


@st.composite
def dragonflies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    a, h = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    return "dragonfly", {
        "switch_bandwidth": "1 Tb/s",
        "port_bandwidth": "100 Gb/s",
        "switches_per_group": a,
        "global_ports": h,
        "endpoints_per_switch": draw(st.integers(1, 2)),
        "groups": draw(st.integers(1, a * h + 1)),
    }


@st.composite
def slim_flies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    return "slim_fly", {
        "switch_bandwidth": "2 Tb/s",
        "port_bandwidth": "100 Gb/s",
        "q": draw(st.sampled_from([3, 4, 5])),
        "endpoints_per_switch": draw(st.integers(1, 2)),
    }


@st.composite
def stars(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    return "star", {"endpoints": draw(st.integers(1, 9)), "bandwidth": draw(bandwidths)}


def built(made: tuple[str, dict[str, Any]]) -> tuple[Fabric, Counts]:
    try:
        return build(made[0], **made[1])
    except ValueError:
        assume(False)
        raise


anything = st.one_of(
    tori(), meshes(), twisted(), switched(), fat_trees(), dragonflies(), slim_flies(), stars()
).map(lambda made: (made, *built(made)))


@settings(max_examples=150, deadline=None)
@given(anything)
def test_counts_agree_with_what_is_built(made: tuple[Any, Fabric, Counts]) -> None:
    fabric, counts = made[1:]
    is_switch = fabric.node_kind != 0
    assert len(fabric.endpoints) == counts.endpoints
    assert is_switch.sum() == counts.switches == sum(counts.switches_by_kind.values())
    between = is_switch[fabric.link_src] & is_switch[fabric.link_dst]
    assert between.sum() == 2 * counts.switch_links
    assert (~between).sum() == 2 * counts.endpoint_links
    for ends in (fabric.link_src, fabric.link_dst):
        out = np.bincount(ends, fabric.capacity, minlength=fabric.nodes)[fabric.endpoints]
        degree = np.bincount(ends, minlength=fabric.nodes)[fabric.endpoints]
        if "wrap" not in made[0][1]:
            np.testing.assert_allclose(out, counts.injection_Bps, rtol=1e-12)
            assert (degree == counts.degree).all()
        else:  # the corners of a mesh have the fewest
            assert out.min() == pytest.approx(counts.injection_Bps, rel=1e-12)
            assert degree.min() == counts.degree


@settings(max_examples=150, deadline=None)
@given(anything)
def test_every_link_has_its_way_back(made: tuple[Any, Fabric, Counts]) -> None:
    fabric = made[1]

    def listed(one: Any, other: Any) -> list[tuple[Any, ...]]:
        rest = (fabric.capacity, fabric.latency, fabric.link_kind)
        return sorted(zip(one, other, *rest, strict=True))

    assert listed(fabric.link_src, fabric.link_dst) == listed(fabric.link_dst, fabric.link_src)


@settings(max_examples=100, deadline=None)
@given(anything)
def test_diameter_agrees_with_networkx(made: tuple[Any, Fabric, Counts]) -> None:
    _, fabric, counts = made
    graph: nx.DiGraph[Any] = nx.DiGraph(to_networkx(fabric))
    # An endpoint that does not forward is reached, and left, through a copy of its own.
    silent = [int(e) for e in fabric.endpoints if not fabric.transit[e]]
    for node in silent:
        for u in list(graph.predecessors(node)):
            graph.add_edge(u, ("in", node))
        graph.remove_edges_from(list(graph.in_edges(node)))
    farthest = 0
    for start in map(int, fabric.endpoints):
        reach = nx.single_source_shortest_path_length(graph, start)
        for end in map(int, fabric.endpoints):
            if end != start:
                farthest = max(farthest, reach[("in", end) if end in silent else end])
    assert farthest == counts.diameter


def least_bisection(fabric: Fabric) -> float:
    """Try every balanced split of the endpoints: the least capacity of a cut between the halves."""
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for u, v, capacity in zip(fabric.link_src, fabric.link_dst, fabric.capacity, strict=True):
        already = graph.get_edge_data(u, v, {"capacity": 0.0})["capacity"]
        graph.add_edge(int(u), int(v), capacity=already + float(capacity))
    ends = [int(e) for e in fabric.endpoints]
    best = float("inf")
    for half in combinations(ends, len(ends) // 2):
        joined = graph.copy()
        joined.add_edges_from([("left", e) for e in half])
        joined.add_edges_from([(e, "right") for e in ends if e not in half])
        best = min(best, nx.maximum_flow_value(joined, "left", "right"))
    return best


@settings(max_examples=60, deadline=None)
@given(anything)
def test_bisection_agrees_with_brute_force(made: tuple[Any, Fabric, Counts]) -> None:
    _, fabric, counts = made
    assume(2 <= len(fabric.endpoints) <= 8 and fabric.nodes < 40)
    assume(made[0][1].get("endpoints_per_server", 1) == 1)  # servers are not cut through
    least = least_bisection(fabric)
    assert counts.bisection_Bps is not None
    assert counts.bisection_Bps >= least * (1 - 1e-12)
    if len(fabric.endpoints) % 2 == 0 and made[0][0] in ("star", "fat_tree"):
        assert counts.bisection_Bps == pytest.approx(least)


@pytest.mark.parametrize(
    ("dims", "links"),
    [([4, 4], 8), ([3, 3], 8), ([2, 2, 2], 4), ([4, 2], 4), ([5], 2), ([2, 3], 3), ([2], 1)],
)
def test_bisection_of_tori_is_the_least_there_is(dims: list[int], links: int) -> None:
    fabric, counts = build("torus", dims=dims, bandwidth="1 GB/s")
    assert counts.bisection_Bps == links * 1e9
    if len(fabric.endpoints) < 10:
        assert least_bisection(fabric) == links * 1e9


def test_bisection_of_switched_racks_is_the_least_there_is() -> None:
    small = {**NL72X2_GEN1, "trays_per_rack": 2, "chips_per_tray": 2, "planes": 2}
    small |= {"switches_per_plane": 1, "tray": {"kind": "direct", "bandwidth": "512 GB/s"}}
    for across in ("128 GB/s", "2 TB/s"):
        fabric, counts = build("switched", **{**small, "cross_rack_bandwidth": across})
        assert counts.bisection_Bps == pytest.approx(least_bisection(fabric))


@settings(max_examples=60, deadline=None)
@given(anything)
def test_round_trip_through_networkx_keeps_every_bit(made: tuple[Any, Fabric, Counts]) -> None:
    fabric = made[1]
    back = from_networkx(to_networkx(fabric))
    for name, value in vars(fabric).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(back, name), value, err_msg=name)
        else:
            assert getattr(back, name) == value, name


@settings(max_examples=60, deadline=None)
@given(anything)
def test_bundling_keeps_capacity_and_cables(made: tuple[Any, Fabric, Counts]) -> None:
    fabric = made[1]
    bundled = bundle_cables(fabric)
    assert bundled.cables.sum() == fabric.links
    assert bundled.capacity.sum() == pytest.approx(fabric.capacity.sum())
    ends = set(zip(bundled.link_src, bundled.link_dst, strict=True))
    assert ends == set(zip(fabric.link_src, fabric.link_dst, strict=True))


@pytest.mark.parametrize("name", names("topologies"))
def test_catalogue_gives_a_source_for_every_parameter(name: str) -> None:
    spec = topology(name)
    assert spec.description
    for parameter in spec.given:
        assert spec.source[parameter], parameter
    declared = {
        name
        for name, field in type(spec.parameters).model_fields.items()
        if field.is_required() or name.endswith("latency")
    }
    assert declared <= set(spec.given) | {
        "cross_rack_latency",
        "tray_switch_latency",
        "forward_latency",
    }


@pytest.mark.parametrize(
    ("name", "endpoints", "switches", "injection", "degree", "diameter"),
    [
        ("trn2-nl16", 16, 0, 512e9, 4, 4),
        ("trn2-nl64", 64, 0, 640e9, 6, 6),
        ("trn3-nl16", 16, 0, 1024e9, 4, 4),
        ("trn3-nl64", 64, 0, 1280e9, 6, 6),
        ("trn3-nl32x2-gen1", 64, 32, 1152e9, 10, 4),
        ("trn3-nl32x2-gen2", 64, 16, 1152e9, 10, 3),
        ("trn3-nl32x2-gen3", 64, 16, 1152e9, 10, 3),
        ("trn3-nl72x2-gen1", 144, 368, 1152e9, 19, 5),
        ("trn3-nl72x2-gen1-backup", 144, 368, 1152e9, 19, 5),
        ("trn3-nl72x2-gen2", 144, 328, 1152e9, 19, 5),
        ("trn3-nl72x2-gen3", 144, 308, 1152e9, 19, 3),
        ("trn3-nl72x2-vendor", 144, 368, 704e9, 19, 5),
        ("trn2-4x4x16", 256, 0, 640e9, 6, 12),
        ("gb200-nvl72", 72, 18, 900e9, 18, 2),
        ("gb200-nvl36x2", 72, 36, 900e9, 18, 3),
        ("hgx-h100", 8, 4, 450e9, 18, 2),
        ("mi450x-ualoe72", 72, 12, 1.8e12, 72, 2),
        ("tpu-v4-cube", 64, 0, 300e9, 6, 6),
        ("tpu-v5p-cube", 64, 0, 600e9, 6, 6),
        ("tpu-v7-cube", 64, 0, 600e9, 6, 6),
        ("tpu-v4-pod", 4096, 0, 300e9, 6, 24),
        ("tpu-v5p-pod", 8960, 0, 600e9, 6, 32),
        ("tpu-v7-pod", 9216, 0, 600e9, 6, 32),
        ("cloudmatrix384", 384, 7 * (48 + 16), 392e9, 14, 4),
        ("ft2-64", 2048, 96, 50e9, 1, 4),
        ("mpft-64", 16384, 768, 50e9, 1, 4),
        ("ft3-64", 65536, 5120, 50e9, 1, 6),
        ("slim-fly-q28", 32928, 1568, 50e9, 1, 4),
        ("dragonfly-p16", 261632, 16352, 50e9, 1, 5),
        ("hgx-h100-cluster", 32, 16 + 1, 500e9, 19, 4),
        ("gb200-cluster", 144, 36 + 8 + 4, 950e9, 19, 6),
        ("trn2-cluster", 256, 4 + 2, 665e9, 7, 6),
        ("trn3-nl32x2-cluster", 256, 128 + 2, 1177e9, 11, 4),
        ("trn3-nl72x2-cluster", 576, 4 * 368 + 2 * (5 + 3), 1177e9, 20, 6),
        ("fat-tree-12.8t", 8192, 192, 12.5e9, 1, 4),
        ("fat-tree-25.6t", 32768, 384, 12.5e9, 1, 4),
        ("fat-tree-51.2t", 131072, 768, 12.5e9, 1, 4),
    ],
)
def test_catalogue_counts(
    name: str, endpoints: int, switches: int, injection: float, degree: int, diameter: int
) -> None:
    spec = topology(name)
    counts = spec.builder.count(spec.parameters)
    assert (counts.endpoints, counts.switches) == (endpoints, switches)
    assert (counts.degree, counts.diameter) == (degree, diameter)
    assert counts.injection_Bps == pytest.approx(injection)


@pytest.mark.parametrize(
    ("name", "places", "devices"),
    [
        # (rack, tray, position) of two chips, and what lies between them
        ("trn3-nl32x2-gen1", ((0, 0, 0), (0, 5, 0)), 1),
        ("trn3-nl32x2-gen1", ((0, 0, 0), (0, 5, 1)), 2),
        ("trn3-nl32x2-gen1", ((0, 0, 0), (1, 5, 1)), 3),
        ("trn3-nl32x2-gen2", ((0, 0, 0), (0, 5, 1)), 1),
        ("trn3-nl72x2-gen1", ((0, 0, 0), (0, 5, 0)), 1),
        ("trn3-nl72x2-gen1", ((0, 0, 0), (0, 5, 1)), 3),
        ("trn3-nl72x2-gen1", ((0, 0, 0), (1, 5, 1)), 4),
        ("trn3-nl72x2-gen3", ((0, 0, 0), (0, 5, 1)), 1),
        ("gb200-nvl72", ((0, 0, 0), (0, 5, 1)), 1),
        ("gb200-nvl36x2", ((0, 0, 0), (0, 5, 1)), 1),
        ("gb200-nvl36x2", ((0, 0, 0), (1, 5, 1)), 2),
    ],
)
def test_devices_between_chips_as_published(
    name: str, places: tuple[tuple[int, ...], tuple[int, ...]], devices: int
) -> None:
    fabric = load_topology(name)
    one, other = (
        np.flatnonzero((fabric.coordinates == place).all(axis=1) & (fabric.node_kind == 0))[:1]
        for place in places
    )
    hops = hop_distances(fabric.link_src, fabric.link_dst, fabric.nodes, other, fabric.transit)
    assert hops[0, one[0]] - 1 == devices


@pytest.mark.parametrize(
    ("name", "port", "layers", "radix", "endpoints"),
    [
        ("fat-tree-12.8t", "100 Gb/s", 2, 128, 8_192),
        ("fat-tree-12.8t", "400 Gb/s", 2, 32, 512),
        ("fat-tree-12.8t", "100 Gb/s", 3, 128, 524_288),
        ("fat-tree-25.6t", "100 Gb/s", 2, 256, 32_768),
        ("fat-tree-25.6t", "400 Gb/s", 2, 64, 2_048),
        ("fat-tree-25.6t", "100 Gb/s", 3, 256, 4_194_304),
        ("fat-tree-51.2t", "100 Gb/s", 2, 512, 131_072),
        ("fat-tree-51.2t", "400 Gb/s", 2, 128, 8_192),
        ("fat-tree-51.2t", "100 Gb/s", 3, 512, 33_554_432),
    ],
)
def test_endpoints_that_fit(name: str, port: str, layers: int, radix: int, endpoints: int) -> None:
    spec = topology(name, port_bandwidth=port, layers=layers)
    counts = spec.builder.count(spec.parameters)
    assert counts.endpoints == endpoints
    assert counts.switches == (3 * radix // 2 if layers == 2 else 5 * radix**2 // 4)


def test_ranks_count_the_planes_of_a_server_first() -> None:
    fabric, _ = build("torus", dims=[4, 4, 4], bandwidth="1 GB/s")
    assert fabric.coordinates[1].tolist() == [1, 0, 0]
    assert (fabric.coordinates[:16, 2] == 0).all()


@pytest.mark.parametrize(
    ("builder", "parameters", "words"),
    [
        ("torus", {"dims": [4, 4], "bandwidth": ["1 GB/s"] * 3}, "bandwidth has 3 figures"),
        ("switched", {**NL72X2_GEN1, "planes": 5}, "some planes would have no chip"),
        ("switched", {**NL72X2_GEN1, "tray": None}, "needs a tray"),
        ("switched", {**NL72X2_GEN1, "cross_rack_bandwidth": None}, "cross_rack_bandwidth"),
        ("switched", {**NL72X2_GEN1, "switch_trunk": {"bandwidth": "1 TB/s"}}, "not by both"),
        ("switched", {**NL72X2_GEN1, "links_per_switch": [1, 2]}, "one for each of the 10"),
        ("switched", {**NL72X2_GEN1, "backplane_lanes": 80}, "both or neither"),
        (
            "switched",
            {**NL72X2_GEN1, "backplane_lanes": 64, "active_backplane_lanes": 80},
            "= 80 is more than backplane_lanes = 64",
        ),
        (
            "torus",
            {"dims": [4, 4, 12], "bandwidth": "1 GB/s", "twisted": True},
            r"dims = \[4, 4, 12\] cannot be twisted: n x n x 2n and n x 2n x 2n can",
        ),
        ("torus", {"dims": [1, 1, 2], "bandwidth": "1 GB/s", "twisted": True}, "cannot be twisted"),
        (
            "torus",
            {"dims": [4, 4, 8], "bandwidth": "1 GB/s", "twisted": True, "wrap": [8, True, True]},
            "needs wrap = true",
        ),
        ("torus", {"dims": [4, 4], "bandwidth": "1 GB/s", "wrap": [True] * 3}, "wrap has 3"),
        (
            "torus",
            {"dims": [4, 8], "bandwidth": "1 GB/s", "max_endpoints": 31},
            "are 32 chips, and max_endpoints = 31",
        ),
        (
            "switched",
            {**NL72X2_GEN1, "tray": {"kind": "direct", "bandwidth": "1 GB/s", "switches": 2}},
            "a direct tray has no switches",
        ),
        (
            "fat_tree",
            {"switch_bandwidth": "3.6 Tb/s", "port_bandwidth": "100 Gb/s", "endpoints": 649},
            r"at most 648 with layers = 2 \(11664 with layers = 3\)",
        ),
        ("fat_tree", {"switch_bandwidth": "1 Tb/s", "port_bandwidth": "300 Gb/s"}, "whole number"),
        (
            "fat_tree",
            {"switch_bandwidth": "51.2 Tb/s", "port_bandwidth": "100 Gb/s", "max_radix": 256},
            "max_radix = 256",
        ),
        (
            "fat_tree",
            {"switch_bandwidth": "400 Gb/s", "port_bandwidth": "100 Gb/s", "oversubscription": 9},
            "no port up",
        ),
    ],
)
def test_refuses_what_cannot_be_built(builder: str, parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build(builder, **parameters)


def two_endpoints(**edge: Any) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="endpoint")
    graph.add_node("s", kind="switch")
    graph.add_edge("a", "s", capacity=1e9)
    graph.add_edge("s", "b", **edge)
    return graph


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        ({}, "from 'b' to 's' has no 'capacity'"),
        ({"capacity": 0.0}, "link from b to s: capacity 0, must be finite, above zero"),
        ({"capacity": float("nan")}, "from b to s: capacity nan"),
        ({"capacity": float("inf")}, "from b to s: capacity inf"),
        ({"capacity": -1.0}, "from b to s: capacity -1"),
        ({"capacity": "fast"}, "must be numbers"),
        ({"capacity": 1.0, "latency": -1.0}, "from b to s: latency -1"),
    ],
)
def test_a_bad_link_is_named(edge: dict[str, Any], words: str) -> None:
    with pytest.raises(FabricError, match=words):
        from_networkx(two_endpoints(**edge))


def test_switches_are_never_ranks() -> None:
    graph = two_endpoints(capacity=1e9)
    graph.nodes["s"]["rank"] = 2
    with pytest.raises(FabricError, match="'s' is a switch with a rank"):
        from_networkx(graph)
    assert len(from_networkx(two_endpoints(capacity=1e9)).endpoints) == 2


def test_parallel_cables_stay_apart() -> None:
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    graph.add_nodes_from(["a", "b"], kind="endpoint")
    for _ in range(4):
        graph.add_edge("a", "b", capacity=12.5e9)
    fabric = from_networkx(graph)
    assert fabric.links == 8
    assert bundle_cables(fabric).capacity.tolist() == [50e9, 50e9]


def test_unknown_builder() -> None:
    with pytest.raises(SpecError, match="did you mean 'torus'"):
        build("toruss")


def test_all_pairs_of_a_fabric_are_reached() -> None:
    fabric, _ = build("switched", **NL72X2_GEN1)
    src, dst = all_pairs(fabric)
    hops = hop_distances(
        fabric.link_src, fabric.link_dst, fabric.nodes, fabric.endpoints, fabric.transit
    )
    assert (hops[dst, src] > 0).all()
