"""Scale-out networks: fat-trees with servers, dragonflies, Slim Flies, and published counts."""

from __future__ import annotations

from itertools import combinations
from time import perf_counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricsim.builders.galois import field, prime_power
from fabricsim.catalog import load_topology, topology
from fabricsim.errors import SpecError
from fabricsim.fabric import Fabric, to_networkx
from fabricsim.graph import components
from tests.helpers import Command, build

PORT = {"port_bandwidth": "100 Gb/s"}


@pytest.mark.parametrize(
    ("name", "endpoints", "switches", "links"),
    [
        ("ft2-64", 2_048, 96, 2_048),
        ("mpft-64", 16_384, 768, 16_384),
        ("ft3-64", 65_536, 5_120, 131_072),
        ("slim-fly-q28", 32_928, 1_568, 32_928),
        ("dragonfly-p16", 261_632, 16_352, 384_272),
    ],
)
def test_published_table_of_topologies(
    name: str, endpoints: int, switches: int, links: int, fabricsim: Command
) -> None:
    shown = fabricsim("show", name, "--json", "-").json
    assert shown["endpoints"] == shown["endpoint_links"] == endpoints
    assert shown["switches"] == switches
    assert shown["switch_links"] == links


def test_counting_33_million_endpoints_is_immediate(fabricsim: Command) -> None:
    start = perf_counter()
    ran = fabricsim("show", "fat-tree-51.2t", "--set", "topology.layers=3", "--json", "-")
    assert ran.json["endpoints"] == 33_554_432
    assert "port controllers" in ran.json["notes"][0]
    assert perf_counter() - start < 1


@pytest.mark.parametrize(
    ("port", "planes", "endpoints"),
    [("100 Gb/s", 4, 32_768), ("200 Gb/s", 2, 8_192), ("400 Gb/s", 1, 2_048), ("800 Gb/s", 1, 512)],
)
def test_ports_are_split_at_any_speed(port: str, planes: int, endpoints: int) -> None:
    spec = topology("fat-tree-25.6t", port_bandwidth=port, planes=planes)
    counts = spec.builder.count(spec.parameters)
    assert counts.endpoints == endpoints
    assert counts.injection_Bps == max(400e9, 800e9 * (port == "800 Gb/s")) / 8


def leaf_of(fabric: Fabric) -> list[int]:
    """The switch of each endpoint's first cable."""
    host = (fabric.link_kind == 0) & (fabric.link_src < len(fabric.endpoints))
    src, first = np.unique(fabric.link_src[host], return_index=True)
    assert len(src) == len(fabric.endpoints)
    return [int(leaf) for leaf in fabric.link_dst[host][first]]


def test_rails_put_endpoint_i_of_each_server_on_leaf_i() -> None:
    fabric, counts = build(
        "fat_tree",
        **PORT,
        switch_bandwidth="1.6 Tb/s",
        attachment="rail",
        endpoints=80,
        endpoints_per_server=4,
    )
    # A leaf of 16 ports serves 8 servers; 20 servers make two full groups and one of four servers.
    assert counts.switches_by_kind["leaf"] == 3 * 4
    leaf = np.array(leaf_of(fabric)) - 80
    server, i = np.divmod(np.arange(80), 4)
    assert np.array_equal(leaf, server // 8 * 4 + i)


def test_tors_keep_servers_whole() -> None:
    parameters: dict[str, Any] = {**PORT, "switch_bandwidth": "1.6 Tb/s", "endpoints": 24}
    fabric, _ = build("fat_tree", **parameters, endpoints_per_server=3)
    leaf = np.array(leaf_of(fabric)).reshape(-1, 3)
    assert (leaf == leaf[:, :1]).all()
    # Six of eight ports down are used, so two servers fill a leaf.
    assert np.bincount(leaf[:, 0] - 24).tolist() == [2, 2, 2, 2]


def test_planes_of_their_own_are_joined_by_servers_alone(fabricsim: Command) -> None:
    fabric, counts = build(
        "fat_tree",
        **PORT,
        switch_bandwidth="400 Gb/s",
        attachment="plane",
        planes=2,
        endpoints_per_server=4,
        endpoints=16,
    )
    parts, label = components(fabric.link_src, fabric.link_dst, fabric.nodes)
    assert parts == 2
    assert np.array_equal(label[fabric.endpoints], np.arange(16) % 4 % 2)
    assert counts.switches == 2 * (4 + 2)
    assert "joined by the servers alone" in counts.notes[0]
    error = fabricsim.fails("run", "mpft-64", "permutation", "--set", "topology.endpoints=8192")
    assert "no path from endpoint" in error


@pytest.mark.parametrize("attachment", ["tor", "rail"])
@pytest.mark.parametrize("oversubscription", [1, 3])
def test_bisection_with_whole_servers(attachment: str, oversubscription: int) -> None:
    fabric, counts = build(
        "fat_tree",
        **PORT,
        switch_bandwidth="400 Gb/s",
        attachment=attachment,
        endpoints_per_server=2 if oversubscription == 1 else 1,
        endpoints=8,
        oversubscription=oversubscription,
    )
    g = 2 if oversubscription == 1 else 1
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for u, v, capacity in zip(fabric.link_src, fabric.link_dst, fabric.capacity, strict=True):
        already = graph.get_edge_data(u, v, {"capacity": 0.0})["capacity"]
        graph.add_edge(int(u), int(v), capacity=already + float(capacity))
    best = float("inf")
    servers = range(8 // g)
    for half in combinations(servers, len(servers) // 2):
        joined = graph.copy()
        for e in range(8):
            joined.add_edge(*(("left", e) if e // g in half else (e, "right")))
        best = min(best, nx.maximum_flow_value(joined, "left", "right"))
    assert counts.bisection_Bps == pytest.approx(best)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"endpoints": 9, "endpoints_per_server": 4}, "take 8 or 12"),
        (
            {"attachment": "plane", "planes": 3, "endpoints_per_server": 4},
            "cannot be spread evenly over planes = 3",
        ),
        ({"endpoints_per_server": 9}, "more than the 8 ports down of a leaf"),
        ({"endpoints_per_leaf": 9}, "takes 9 ports down and 9 up, and the switch has 16"),
    ],
)
def test_fat_trees_refuse_servers_that_do_not_fit(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build("fat_tree", **PORT, switch_bandwidth="1.6 Tb/s", **parameters)


def test_cloudmatrix_chips_and_switches() -> None:
    spec = topology("cloudmatrix384")
    counts = spec.builder.count(spec.parameters)
    assert counts.switches_by_kind == {"leaf": 7 * 48, "spine": 7 * 16}
    fabric = load_topology("cloudmatrix384")
    # A first-level chip has 448 GB/s to its eight packages and 448 GB/s up, as published.
    leaf = fabric.node_kind == 1
    for kind in ("host", "leaf-spine"):
        own = (fabric.link_kind == fabric.link_kinds.index(kind)) & leaf[fabric.link_src]
        out = np.bincount(fabric.link_src[own], fabric.capacity[own], fabric.nodes)[leaf]
        np.testing.assert_allclose(out, 448e9)


def switch_graph(fabric: Fabric) -> nx.MultiGraph[int]:
    n = len(fabric.endpoints)
    graph: nx.MultiGraph[int] = nx.MultiGraph(to_networkx(fabric).subgraph(range(n, fabric.nodes)))
    # Both directions of a cable are edges now: keep one.
    graph.remove_edges_from([(u, v, key) for u, v, key in graph.edges if u > v])
    return graph


@pytest.mark.parametrize("q", [3, 4, 5, 7, 8, 9, 11, 13, 16, 17])
def test_slim_flies_have_diameter_two(q: int) -> None:
    fabric, counts = build(
        "slim_fly", **PORT, switch_bandwidth="9 Tb/s", q=q, endpoints_per_switch=1
    )
    one, other = fabric.link_src, fabric.link_dst
    n = counts.switches
    joined = np.zeros((n, n), int)
    between = (one >= n) & (other >= n)
    np.add.at(joined, (one[between] - n, other[between] - n), 1)
    assert joined.max() == 1
    assert not joined.diagonal().any()
    delta = {1: 1, 0: 0, 3: -1}[q % 4]
    assert (joined.sum(axis=0) == (3 * q - delta) / 2).all()
    assert ((joined + joined @ joined) > 0).all()
    assert counts.diameter == 4


def test_slim_fly_of_50_switches_is_hoffman_singleton() -> None:
    fabric, _ = build("slim_fly", **PORT, switch_bandwidth="2 Tb/s", q=5, endpoints_per_switch=1)
    graph = nx.Graph(switch_graph(fabric))
    # 50 nodes of degree 7, no cycle shorter than 5: there is only one such graph.
    assert len(graph) == 50
    assert {degree for _, degree in graph.degree()} == {7}
    assert nx.girth(graph) == 5


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 16, 25, 27, 29])
def test_fields_obey_the_axioms(q: int) -> None:
    gf = field(q)
    add, times = gf.add, gf.multiply
    every = np.arange(q)
    for table, neutral, part in ((add, 0, every), (times, 1, every[1:])):
        assert (table == table.T).all()
        assert (table[neutral] == every).all()
        for row in table[np.ix_(part, part)]:
            assert sorted(row) == part.tolist()
        assert (table[table[:, :, None], every] == table[every[:, None, None], table]).all()
    assert (times[:, add] == add[times[:, :, None], times[:, None, :]]).all()
    assert sorted(gf.powers) == every[1:].tolist()
    assert (times[gf.powers[:-1], gf.powers[1 % (q - 1)]] == gf.powers[1:]).all()


def test_prime_powers() -> None:
    found = [q for q in range(33) if prime_power(q)]
    expected = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]
    assert found == expected
    with pytest.raises(ValueError, match="28 is no prime power"):
        field(28)


@pytest.mark.parametrize(
    ("q", "words"),
    [
        (6, "q = 6 leaves 2 when divided by 4.*nearest that exist are 5 and 7"),
        (31, "a switch needs 71 ports"),
    ],
)
def test_slim_flies_that_cannot_be(q: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build("slim_fly", **PORT, switch_bandwidth="6.4 Tb/s", q=q)


def test_slim_fly_of_no_prime_power_is_counted_but_not_built() -> None:
    with pytest.raises(SpecError, match=r"q = 28 is no prime power.*27 and 29"):
        load_topology("slim-fly-q28")
    spec = topology("slim-fly-q28")
    assert "27 and 29" in spec.builder.count(spec.parameters).notes[0]
    assert len(load_topology("slim-fly-q28", q=9, endpoints_per_switch=1).endpoints) == 162


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 4))
def test_dragonfly_groups_are_joined_alike(data: st.DataObject, a: int, h: int) -> None:
    groups = data.draw(st.integers(1, a * h + 1))
    fabric, _ = build(
        "dragonfly",
        **PORT,
        switch_bandwidth="2 Tb/s",
        switches_per_group=a,
        global_ports=h,
        endpoints_per_switch=1,
        groups=groups,
    )
    graph = switch_graph(fabric)
    group = {node: int(fabric.coordinates[node, 0]) for node in graph}
    between = np.zeros((groups, groups), int)
    ports = dict.fromkeys(graph, 0)
    for u, v in graph.edges():
        between[group[u], group[v]] += 1
        between[group[v], group[u]] += 1
        if group[u] != group[v]:
            ports[u] += 1
            ports[v] += 1
    np.fill_diagonal(between, 0)
    assert max(ports.values()) <= h
    if groups > 1:
        off = between[~np.eye(groups, dtype=bool)]
        assert off.min() == a * h // (groups - 1)
        assert off.max() <= off.min() + 1
        # At most one port of a group stays free, and only where the numbers leave no choice.
        free = a * h - between.sum(axis=1)
        assert set(free) == {1 if groups % 2 and a * h % 2 else 0}
        # The same from every group: turning all groups by one changes nothing.
        assert np.array_equal(np.roll(between, (1, 1), axis=(0, 1)), between)


def test_dragonflies_that_do_not_fit() -> None:
    p: dict[str, Any] = {"switches_per_group": 4, "global_ports": 2, "endpoints_per_switch": 2}
    with pytest.raises(ValueError, match="at most 9, switches_per_group x global_ports"):
        build("dragonfly", **PORT, switch_bandwidth="1 Tb/s", **p, groups=10)
    with pytest.raises(ValueError, match=r"needs 7 ports \(2 to endpoints, 3 in the group, 2 glo"):
        build("dragonfly", **PORT, switch_bandwidth="600 Gb/s", **p)
