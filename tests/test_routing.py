"""Routing: flow conservation, shortest paths, and the closed forms of tori and racks."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricsim import routing
from fabricsim.arrays import FloatArray
from fabricsim.errors import SpecError, UnreachableError
from fabricsim.fabric import Counts, Fabric, bundle_cables, from_networkx
from fabricsim.graph import hop_distances
from fabricsim.routing import Routes
from tests.helpers import NL72X2_GEN1, all_pairs, build
from tests.test_builders import anything, tori

ALL = ["spray", "spray-uniform", "ecmp", "single"]


def route(fabric: Fabric, name: str, seed: int = 0) -> tuple[Fabric, Routes]:
    strategy = routing.find(name)
    wired = bundle_cables(fabric) if strategy.cables_alike else fabric
    return wired, strategy.route(wired, *all_pairs(fabric), seed)


def load(fabric: Fabric, name: str, seed: int = 0) -> FloatArray:
    """Load of each link when every pair exchanges one byte, over its number of cables."""
    wired, routes = route(fabric, name, seed)
    return np.asarray(routes.matrix.T @ np.ones(routes.matrix.shape[0])) / wired.cables


def check_conserves(fabric: Fabric, routes: Routes) -> None:
    """Each flow leaves its source once, reaches its destination once, and is kept between."""
    src, dst = all_pairs(fabric)
    flows = np.arange(len(src))
    matrix = routes.matrix.tocoo()
    net = np.zeros((len(src), fabric.nodes))
    np.add.at(net, (matrix.row, fabric.link_src[matrix.col]), matrix.data)
    np.add.at(net, (matrix.row, fabric.link_dst[matrix.col]), -matrix.data)
    net[flows, src] -= 1
    net[flows, dst] += 1
    np.testing.assert_allclose(net, 0, atol=1e-12)


@settings(max_examples=80, deadline=None)
@given(anything, st.sampled_from(ALL), st.integers(0, 2**64))
def test_flows_are_conserved_on_shortest_paths(
    made: tuple[Any, Fabric, Counts], name: str, seed: int
) -> None:
    wired, routes = route(made[1], name, seed)
    check_conserves(wired, routes)
    src, dst = all_pairs(wired)
    ends, which = np.unique(dst, return_inverse=True)
    if len(src):
        hops = hop_distances(wired.link_src, wired.link_dst, wired.nodes, ends, wired.transit)
        total = np.asarray(routes.matrix.sum(axis=1)).ravel()
        np.testing.assert_allclose(total, hops[which, src], rtol=1e-12)
    if name in ("ecmp", "single"):
        assert (routes.matrix.data == 1).all()


@settings(max_examples=40, deadline=None)
@given(tori())
def test_dimension_order_is_conserved_and_ordered(made: tuple[str, dict[str, Any]]) -> None:
    fabric, _ = build(made[0], **made[1])
    wired, routes = route(fabric, "dimension-order")
    check_conserves(wired, routes)
    # On the way no node may be right on a later axis before it is right on an earlier one,
    # unless source and destination agreed there from the start.
    src, dst = all_pairs(fabric)
    places = fabric.coordinates
    for flow in range(min(len(src), 200)):
        links = routes.matrix.indices[routes.matrix.indptr[flow] : routes.matrix.indptr[flow + 1]]
        for link in links:
            here = places[wired.link_src[link]]
            there = places[wired.link_dst[link]]
            axis = int(np.argmax(here != there))
            assert (here[:axis] == places[dst[flow]][:axis]).all()
            assert (here[axis + 1 :] == places[src[flow]][axis + 1 :]).all()


def torus_factor(k: int, double: bool) -> float:
    if k == 2:
        return 0.25 if double else 0.5
    return k / 8 if k % 2 == 0 else (k * k - 1) / (8 * k)


@settings(max_examples=60, deadline=None)
@given(tori(), st.sampled_from(["spray", "spray-uniform", "dimension-order"]))
def test_torus_loads_are_the_closed_form(made: tuple[str, dict[str, Any]], name: str) -> None:
    parameters = made[1]
    fabric, _ = build("torus", **parameters)
    wired, _ = route(fabric, name)
    each = load(fabric, name)
    n = len(fabric.endpoints)
    for axis, k in enumerate(parameters["dims"]):
        if k > 1:
            own = wired.link_kind == wired.link_kinds.index("xyzuvw"[axis])
            expected = n * torus_factor(k, parameters["double_cables"])
            np.testing.assert_allclose(each[own], expected, rtol=1e-12)


def test_loads_of_the_two_rack_domain() -> None:
    fabric, _ = build("switched", **NL72X2_GEN1)
    wired, _ = route(fabric, "spray")
    each = load(fabric, "spray")
    cross = wired.link_kind == wired.link_kinds.index("cross-rack")
    np.testing.assert_allclose(each[cross], 72, rtol=1e-12)  # all chips of the other rack
    # 68 chips of each rack are off the tray; their flows go up and down the backplane once
    backplane = wired.link_kind == wired.link_kinds.index("backplane")
    np.testing.assert_allclose(each[backplane], 2 * 68 / 10, rtol=1e-12)


def planes() -> Fabric:
    """Two GPUs joined by four switches of 1000, 800, 800 and 1000 Gb/s."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="endpoint")
    for name, gbit in zip("wxyz", (1000, 800, 800, 1000), strict=True):
        graph.add_node(name, kind="switch")
        graph.add_edges_from([("a", name), (name, "b")], capacity=gbit * 1.25e8)
    return from_networkx(graph)


def test_spray_is_in_proportion_to_capacity_and_spray_uniform_is_even() -> None:
    fabric = planes()
    by_capacity = load(fabric, "spray")
    np.testing.assert_allclose(by_capacity, 2 * fabric.capacity / 450e9 / 2, rtol=1e-12)
    np.testing.assert_allclose(load(fabric, "spray-uniform"), 0.25, rtol=1e-12)


def test_parallel_cables_are_members_for_ecmp_and_one_pipe_for_spray() -> None:
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    hosts = [f"h{i}" for i in range(64)]
    graph.add_nodes_from(hosts, kind="endpoint")
    graph.add_nodes_from(["left", "right"], kind="switch")
    for i, host in enumerate(hosts):
        graph.add_edge(host, "left" if i < 32 else "right", capacity=1e9)
    for _ in range(4):
        graph.add_edge("left", "right", capacity=12.5e9)
    fabric = from_networkx(graph)
    trunk = (fabric.capacity == 12.5e9) & (fabric.link_src == 64)
    used = load(fabric, "ecmp")[trunk]
    assert used.sum() == 32 * 32
    assert len(used) == 4
    assert (used > 0.7 * 256).all()
    assert (used < 1.3 * 256).all()
    wired, routes = route(fabric, "spray")
    assert wired.capacity.max() == 50e9
    assert routes.matrix.data.max() == 1


def test_ecmp_draws_in_proportion_to_capacity() -> None:
    graph: nx.Graph[str] = nx.Graph()
    hosts = [f"h{i}" for i in range(80)]
    graph.add_nodes_from(hosts, kind="endpoint")
    graph.add_nodes_from(["left", "fat", "thin", "right"], kind="switch")
    for i, host in enumerate(hosts):
        graph.add_edge(host, "left" if i < 40 else "right", capacity=1e9)
    graph.add_edges_from([("left", "fat"), ("fat", "right")], capacity=30e9)
    graph.add_edges_from([("left", "thin"), ("thin", "right")], capacity=10e9)
    fabric = from_networkx(graph)
    up = load(fabric, "ecmp")[(fabric.link_src == 80) & (fabric.capacity > 5e9)]
    assert up.sum() == 1600
    assert up.max() == pytest.approx(1200, abs=5 * np.sqrt(1600 * 0.75 * 0.25))


def test_seeds_change_ecmp_and_nothing_else() -> None:
    fabric, _ = build("torus", dims=[4, 4], bandwidth="1 GB/s")
    for name in ALL:
        first, again, other = (route(fabric, name, seed)[1].matrix for seed in (1, 1, 2))
        assert abs(first - again).max() == 0
        assert (abs(first - other).max() > 0) == (name == "ecmp")


def test_latency_is_that_of_the_longest_path_used() -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="endpoint")
    for name, latency in (("fast", 1e-9), ("slow", 5e-9)):
        graph.add_node(name, kind="switch", transit_latency=100e-9)
        graph.add_edges_from([("a", name), (name, "b")], capacity=1e9, latency=latency)
    fabric = from_networkx(graph)
    assert route(fabric, "spray")[1].latency.tolist() == pytest.approx([110e-9] * 2)
    assert route(fabric, "single")[1].latency.tolist() == pytest.approx([102e-9] * 2)


def test_endpoints_do_not_forward_unless_they_say_so() -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from("abc", kind="endpoint")
    graph.add_edges_from([("a", "b"), ("b", "c")], capacity=1e9)
    with pytest.raises(UnreachableError, match=r"no path from c to a \(2 of 6 pairs"):
        route(from_networkx(graph), "spray")
    graph.nodes["b"]["transit"] = True
    assert route(from_networkx(graph), "spray")[1].matrix.shape[0] == 6


@pytest.mark.parametrize("name", ALL)
def test_an_unreachable_pair_is_named(name: str) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from("ab", kind="endpoint")
    graph.add_edge("a", "b", capacity=1e9)
    with pytest.raises(UnreachableError, match="no path from b to a"):
        route(from_networkx(graph), name)


def test_dimension_order_needs_a_torus() -> None:
    fabric, _ = build("star", endpoints=4, bandwidth="1 GB/s")
    with pytest.raises(SpecError, match="needs a torus"):
        route(fabric, "dimension-order")


def test_unknown_routing() -> None:
    with pytest.raises(SpecError, match="did you mean 'spray'"):
        routing.find("spry")


def test_blocks_of_destinations_give_the_same_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    from fabricsim.routing import shortest, single_path, split

    fabric, _ = build("torus", dims=[3, 4], bandwidth="1 GB/s")
    whole = {name: route(fabric, name, 5)[1] for name in ALL}
    for module in (split, single_path):
        monkeypatch.setattr(module, "blocks", lambda f, d: shortest.blocks(f, d, links_at_once=1))
    for name in ALL:
        parts = route(fabric, name, 5)[1]
        assert abs(parts.matrix - whole[name].matrix).max() < 1e-15
        np.testing.assert_array_equal(parts.latency, whole[name].latency)
