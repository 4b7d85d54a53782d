"""Clusters: pods joined by NICs. Counts, the rules of routing, and the catalogue's entries."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabricsim import routing
from fabricsim.builders import Part, find
from fabricsim.catalog import load_topology, load_traffic, topology
from fabricsim.fabric import Counts, Fabric, bundle_cables, from_networkx, to_networkx
from fabricsim.routing import Routes
from fabricsim.simulate import simulate
from tests.helpers import NL72X2_GEN1, Command, all_pairs, build
from tests.test_builders import least_bisection
from tests.test_routing import check_conserves

PORT = {"port_bandwidth": "100 Gb/s"}


def part(builder: str, **parameters: Any) -> Part:
    found = find(builder)
    return Part(found, found.parameters.model_validate(parameters))


SMALL_RACK: dict[str, Any] = {
    **NL72X2_GEN1,
    "trays_per_rack": 2,
    "chips_per_tray": 2,
    "planes": 2,
    "switches_per_plane": 2,
    "tray": {"kind": "direct", "bandwidth": "512 GB/s"},
}

PODS = {
    "star": (part("star", endpoints=4, bandwidth="9 GB/s"), 4),
    "torus": (part("torus", dims=[4, 2], bandwidth="9 GB/s"), 8),
    "ring": (part("torus", dims=[8], bandwidth="9 GB/s"), 8),
    "rack": (part("switched", **SMALL_RACK), 8),
}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Fabric, Counts, dict[str, Any]]:
    pod, chips = PODS[draw(st.sampled_from(sorted(PODS)))]
    pods, share = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 4]))
    nics = pods * chips // share
    network = draw(st.sampled_from(["star", "tor", "rail", "plane", "torus", "dragonfly"]))
    rails = draw(st.booleans()) or network == "plane"
    if network == "star":
        out = part("star", endpoints=nics, bandwidth=draw(st.sampled_from(["1 GB/s", "3 GB/s"])))
    elif network == "torus":
        out = part("torus", dims=[nics], bandwidth="2 GB/s")
    elif network == "dragonfly":
        size = {"switches_per_group": 4, "global_ports": 1, "endpoints_per_switch": 2}
        out = part("dragonfly", **PORT, switch_bandwidth="1 Tb/s", **size)
    else:
        group = chips // share
        planes = draw(st.sampled_from([1, 2]))
        assume(network != "plane" or group % planes == 0)
        out = part(
            "fat_tree",
            **PORT,
            switch_bandwidth="1.6 Tb/s",
            layers=3,
            endpoints=nics,
            planes=planes,
            attachment=network,
            endpoints_per_server=1 if network == "tor" else group,
        )
    parameters: dict[str, Any] = {
        "pods": pods,
        "pod": pod,
        "nic_bandwidth": "2 GB/s",
        "chips_per_nic": share,
        "scale_out": out,
        "rail_forwarding": rails,
        "nic_latency": "1 us",
    }
    try:
        fabric, counts = build("cluster", **parameters)
    except ValueError:
        assume(False)
        raise
    return fabric, counts, parameters


@settings(max_examples=80, deadline=None)
@given(clusters())
def test_counts_agree_with_what_is_built(made: tuple[Fabric, Counts, dict[str, Any]]) -> None:
    fabric, counts, parameters = made
    kinds = np.array(fabric.node_kinds)[fabric.node_kind]
    switch = (kinds != "endpoint") & (kinds != "nic")
    assert len(fabric.endpoints) == counts.endpoints
    assert (kinds == "nic").sum() == counts.nics
    assert counts.nics * parameters["chips_per_nic"] == counts.endpoints
    assert switch.sum() == counts.switches == sum(counts.switches_by_kind.values())
    for kind, number in counts.switches_by_kind.items():
        assert (kinds == kind).sum() == number
    between = switch[fabric.link_src] & switch[fabric.link_dst]
    assert between.sum() == 2 * counts.switch_links
    assert (~between).sum() == 2 * counts.endpoint_links
    for ends in (fabric.link_src, fabric.link_dst):
        out = np.bincount(ends, fabric.capacity, minlength=fabric.nodes)[fabric.endpoints]
        np.testing.assert_allclose(out, counts.injection_Bps, rtol=1e-12)
        degree = np.bincount(ends, minlength=fabric.nodes)[fabric.endpoints]
        assert (degree == counts.degree).all()


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_links_go_both_ways_and_survive_networkx(
    made: tuple[Fabric, Counts, dict[str, Any]],
) -> None:
    fabric = made[0]
    rest = (fabric.capacity, fabric.latency, fabric.link_kind)
    there = sorted(zip(fabric.link_src, fabric.link_dst, *rest, strict=True))
    assert there == sorted(zip(fabric.link_dst, fabric.link_src, *rest, strict=True))
    back = from_networkx(to_networkx(fabric))
    for name, value in vars(fabric).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(back, name), value, err_msg=name)
        else:
            assert getattr(back, name) == value, name


def oracle(fabric: Fabric) -> dict[tuple[int, int], int]:
    """Links between all pairs of endpoints by the rules of pods, one pair at a time."""
    whole: nx.DiGraph[int] = nx.DiGraph(to_networkx(fabric))
    pod, chips = fabric.domain, [int(e) for e in fabric.endpoints]

    def path(graph: nx.DiGraph[int], one: int, other: int) -> int:
        passing = [n for n in graph if fabric.transit[n] or n in (one, other)]
        return int(nx.shortest_path_length(graph.subgraph(passing), one, other))

    inside = {
        d: whole.subgraph([n for n in whole if pod[n] == d]).copy() for d in set(pod) if d >= 0
    }
    between = whole.copy()
    between.remove_edges_from([(u, v) for u, v in whole.edges if pod[u] == pod[v] >= 0])
    found = {}
    for one in chips:
        for other in chips:
            if pod[one] == pod[other]:
                found[one, other] = path(inside[pod[one]], one, other)
                continue
            start = one
            if len(fabric.rail):
                mates = [n for n in chips if pod[n] == pod[one]]
                start = next(n for n in mates if fabric.rail[n] == fabric.rail[other])
            outside = [n for n in whole if pod[n] < 0 or n in (start, other)]
            lead = path(inside[pod[one]], one, start)
            found[one, other] = lead + path(between.subgraph(outside), start, other)
    return found


@settings(max_examples=60, deadline=None)
@given(clusters(), st.sampled_from(["spray", "spray-uniform", "ecmp", "single"]))
def test_routes_keep_to_the_rules(made: tuple[Fabric, Counts, dict[str, Any]], name: str) -> None:
    fabric, counts, parameters = made
    wired = bundle_cables(fabric)
    src, dst = all_pairs(wired)
    routes = routing.find(name).route(wired, src, dst, 0)
    check_conserves(wired, routes)
    hops = oracle(wired)
    total = np.asarray(routes.matrix.sum(axis=1)).ravel()
    expected = [hops[one, other] for one, other in zip(src, dst, strict=True)]
    np.testing.assert_allclose(total, expected, rtol=1e-12)
    assert counts.diameter >= max(expected, default=0)
    if parameters["scale_out"].builder in (find("star"), find("fat_tree")):
        assert counts.diameter == max(expected, default=0)
    check_pods(wired, routes)


def check_pods(fabric: Fabric, routes: Routes) -> None:
    """Traffic within a pod takes its links alone; other traffic, none of a third pod or its own."""
    src, dst = all_pairs(fabric)
    matrix = routes.matrix.tocoo()
    pod, one, other = fabric.domain, fabric.link_src[matrix.col], fabric.link_dst[matrix.col]
    start, end = pod[src[matrix.row]], pod[dst[matrix.row]]
    home = start == end
    inner = (pod[one] == pod[other]) & (pod[one] >= 0)
    assert inner[home].all()
    assert (pod[one] == start)[inner & ~home].all()
    if not len(fabric.rail):
        assert not (inner & ~home).any()


@settings(max_examples=30, deadline=None)
@given(clusters())
def test_bisection_is_no_less_than_the_least(made: tuple[Fabric, Counts, dict[str, Any]]) -> None:
    fabric, counts, parameters = made
    assume(2 <= len(fabric.endpoints) <= 8)
    assume(parameters["scale_out"].builder in (find("star"), find("fat_tree")))
    assert counts.bisection_Bps is not None
    assert counts.bisection_Bps >= least_bisection(fabric) * (1 - 1e-12)


def by_kind(fabric: Fabric, values: Any) -> dict[str, float]:
    sums = np.bincount(fabric.link_kind, values, minlength=len(fabric.link_kinds))
    return dict(zip(fabric.link_kinds, sums.tolist(), strict=True))


def test_a_pod_keeps_its_traffic_where_the_network_is_fewer_hops() -> None:
    fabric = bundle_cables(load_topology("trn2-cluster", pods=1))
    alone = bundle_cables(load_topology("trn2-nl64"))
    spray = routing.find("spray").route
    inside, whole = (spray(f, *all_pairs(f), 0).matrix for f in (alone, fabric))
    # Opposite corners are six links apart in the torus and four by way of a ToR.
    assert inside.sum(axis=1).max() == 6
    carried = by_kind(fabric, whole.sum(axis=0))
    assert carried["nic"] == carried["host"] == 0
    for kind, load in by_kind(alone, inside.sum(axis=0)).items():
        assert carried[kind] == pytest.approx(load, rel=1e-12)


def test_latency_between_servers_is_as_published() -> None:
    fabric = load_topology("trn2-cluster")
    routes = routing.find("spray").route(fabric, np.array([0]), fabric.endpoints[-1:], 0)
    assert routes.latency[0] + fabric.message_latency == pytest.approx(15e-6, rel=0.03)


def test_forwarding_costs_the_hop_through_the_pod() -> None:
    fabric = load_topology("hgx-h100-cluster", pods=16, rail_forwarding=True)
    spray = routing.find("spray").route
    rank = fabric.endpoints
    routes = spray(fabric, rank[[0, 0]], rank[[8, 9]], 0)
    assert routes.matrix.sum(axis=1).tolist() == [4, 6]
    switch, link = 115e-9, 5e-9
    assert routes.latency[1] - routes.latency[0] == pytest.approx(switch + 2 * link)


@pytest.mark.parametrize("planes", [1, 2])
def test_planes_joined_by_pods(planes: int) -> None:
    scale_out = part(
        "fat_tree",
        **PORT,
        switch_bandwidth="800 Gb/s",
        planes=planes,
        attachment="plane",
        endpoints_per_server=4,
        endpoints=16,
    )
    parameters = {
        "pods": 4,
        "pod": part("star", endpoints=4, bandwidth="450 GB/s"),
        "nic_bandwidth": "100 Gb/s",
        "scale_out": scale_out,
        "rail_forwarding": True,
    }
    fabric, counts = build("cluster", **parameters)
    result = simulate(fabric, load_traffic("all-to-all", size="16 MB"))
    # Twelve of sixteen parts leave by the NIC; the planes do not block.
    assert result.transfer_time_s == pytest.approx(12e6 / 12.5e9, rel=1e-9)
    assert counts.bisection_Bps == 8 * 12.5e9
    if planes > 1:
        with pytest.raises(ValueError, match="need rail_forwarding = true"):
            build("cluster", **{**parameters, "rail_forwarding": False})


def test_two_chips_share_a_nic_with_a_link_to_each_of_two_tors() -> None:
    fabric = load_topology("trn3-nl32x2-cluster", pods=2)
    kinds = np.array(fabric.node_kinds)[fabric.node_kind]
    nic = np.flatnonzero(kinds == "nic")[0]
    to_chips, to_tors = (
        (fabric.link_src == nic) & (fabric.link_kind == fabric.link_kinds.index(kind))
        for kind in ("nic", "host")
    )
    assert fabric.link_dst[to_chips].tolist() == [0, 1]
    assert fabric.capacity[to_chips].tolist() == [25e9, 25e9]
    assert fabric.capacity[to_tors].tolist() == [25e9, 25e9]
    assert fabric.coordinates[fabric.link_dst[to_tors], fabric.axes.index("plane")].tolist() == [
        0,
        1,
    ]
    spec = topology("trn3-nl32x2-cluster", pods=2, chips_per_nic=1, nic_bandwidth="400 Gb/s")
    assert spec.builder.count(spec.parameters).nics == 128
    assert spec.builder.count(spec.parameters).injection_Bps == (1152 + 50) * 1e9


def test_9216_chips_are_built_in_seconds() -> None:
    start = perf_counter()
    fabric = load_topology("trn3-nl72x2-cluster", pods=64)
    assert perf_counter() - start < 5
    assert len(fabric.endpoints) == 9216


def test_nics_are_shown(fabricsim: Command) -> None:
    ran = fabricsim("show", "trn3-nl72x2-cluster", "--set", "topology.pods=64", "--json", "-")
    assert ran.json["nics"] == 9216 // 2
    assert ran.json["copper_cables"] == 64 * 11_520
    assert "  NICs       288" in fabricsim("show", "trn3-nl72x2-cluster").out
    assert "NICs" not in fabricsim("show", "hgx-h100").out


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["pods=0"], "pods: input should be greater than or equal to 1"),
        (["pod=hgx-h10"], "topology.pod: unknown topology 'hgx-h10': did you mean 'hgx-h100'?"),
        (["chips_per_nic=3"], "= 3 does not divide the 8 chips of a pod: the nearest that does is"),
        (["pods=100000"], "endpoints = 800000 is more than fit"),
        (["pod=gb200-cluster"], "a cluster can be neither a pod nor the network of another"),
        (["scale_out=slim-fly-q28", "pods=9999"], "room for 32928 NICs, and 9999 pods have 79992"),
        (["scale_out.parameters.endpoints_per_server=3"], "is not a whole number of servers"),
        (["scale_out.parameters.endpoints_per_server=16"], "16 of scale_out does not divide the 8"),
        (["scale_out.layers=3"], "give the name of a topology, or a table with either"),
        (
            ["scale_out.parameters.layer=3"],
            "fat_tree has no parameter 'layer': did you mean 'layers'",
        ),
    ],
)
def test_what_cannot_be_joined(settings: list[str], words: str, fabricsim: Command) -> None:
    flags = [flag for setting in settings for flag in ("--set", f"topology.{setting}")]
    assert words in fabricsim.fails("show", "hgx-h100-cluster", *flags)


def test_a_network_may_have_endpoints_to_spare() -> None:
    dragonfly = {
        "builder": "dragonfly",
        "parameters": {
            "switch_bandwidth": "25.6 Tb/s",
            "port_bandwidth": "400 Gb/s",
            "switches_per_group": 8,
            "global_ports": 4,
            "endpoints_per_switch": 4,
        },
    }
    fabric = load_topology("hgx-h100-cluster", pods=8, scale_out=dragonfly)
    assert len(fabric.endpoints) == 64
    assert (fabric.node_kind == fabric.node_kinds.index("nic")).sum() == 64
    torus = part("torus", dims=[20], bandwidth="1 GB/s")
    pod = part("star", endpoints=4, bandwidth="1 GB/s")
    with pytest.raises(ValueError, match="needs as many as there are NICs: 16"):
        build("cluster", pods=4, pod=pod, nic_bandwidth="1 GB/s", scale_out=torus)


def test_parts_are_named_in_files_alone() -> None:
    star = part("star", endpoints=2, bandwidth="1 GB/s")
    with pytest.raises(ValueError, match=r"give a fabricsim.builders.Part"):
        build("cluster", pods=1, pod="hgx-h100", nic_bandwidth="1 GB/s", scale_out=star)


def test_a_part_may_be_a_file_beside_the_cluster(tmp_path: Path, fabricsim: Command) -> None:
    (tmp_path / "pod.toml").write_text(
        'builder = "star"\n[parameters]\nendpoints = 3\nbandwidth = "7 GB/s"\n'
    )
    cluster = tmp_path / "cluster.toml"
    text = (
        'builder = "cluster"\n[parameters]\npods = 2\nnic_bandwidth = "1 GB/s"\n'
        'scale_out = {{ topology = "star" }}\npod = "{}"\n'
    )
    cluster.write_text(text.format("pod.toml"))
    fabric = load_topology(str(cluster))
    assert len(fabric.endpoints) == 6
    assert fabric.link_kinds == ("host", "nic", "network-host")
    assert fabric.spec["parameters"]["pod"] == "pod.toml"
    cluster.write_text(text.format("cluster.toml"))
    assert "cluster.toml: is a part of itself" in fabricsim.fails("show", str(cluster))
