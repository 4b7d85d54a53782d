"""Scale-up fabrics of the catalogue: published totals, meshes, twisted tori, racks joined."""

from __future__ import annotations

import numpy as np
import pytest

from fabricsim import routing
from fabricsim.arrays import FloatArray
from fabricsim.catalog import load_topology, topology
from fabricsim.fabric import Fabric
from fabricsim.graph import hop_distances
from tests.helpers import Command, all_pairs, build


def load(fabric: Fabric, name: str = "spray") -> FloatArray:
    """Bytes on each link when every pair exchanges one byte."""
    routes = routing.find(name).route(fabric, *all_pairs(fabric), 0)
    return np.asarray(routes.matrix.T @ np.ones(routes.matrix.shape[0]))


def least_load(fabric: Fabric) -> float:
    """All hops of all pairs, spread evenly over all links: no routing has a lower worst load."""
    src, dst = fabric.link_src, fabric.link_dst
    hops = hop_distances(src, dst, fabric.nodes, fabric.endpoints, fabric.transit)
    return float(hops.sum()) / fabric.links


@pytest.mark.parametrize(
    ("name", "cables"),
    [
        *((f"trn3-nl32x2-{gen}", 5_120) for gen in ("gen1", "gen2", "gen3")),
        *((f"trn3-nl72x2-{gen}", 11_520) for gen in ("gen1", "gen1-backup", "gen2", "gen3")),
        ("trn2-nl64", None),
    ],
)
def test_copper_cables_as_published(name: str, cables: int | None, fabricsim: Command) -> None:
    assert fabricsim("show", name, "--json", "-").json["copper_cables"] == cables
    table = fabricsim("show", name).out
    assert ("\n  copper " in table) == (cables is not None)
    assert cables is None or f"{cables:,} cables" in table


def test_active_lanes_are_the_bandwidth_of_the_backplane() -> None:
    # A lane of PCIe Gen6 is 8 GB/s per direction.
    for generation in ("nl32x2-gen1", "nl72x2-gen1", "nl72x2-gen3"):
        given = topology(f"trn3-{generation}").given
        assert given["backplane_bandwidth"] == f"{given['active_backplane_lanes'] * 8} GB/s"
        assert given["backplane_lanes"] - given["active_backplane_lanes"] == 16


def test_switches_of_a_rack_as_published() -> None:
    one_rack = topology("trn3-nl72x2-gen1", racks=1)
    assert one_rack.builder.count(one_rack.parameters).switches == 184


def test_nvl36x2_joins_its_racks_by_162_cables() -> None:
    spec = topology("gb200-nvl36x2")
    counts = spec.builder.count(spec.parameters)
    fabric = load_topology("gb200-nvl36x2")
    trunk = fabric.link_kind == fabric.link_kinds.index("trunk")
    assert counts.switch_links == 162
    assert trunk.sum() == 2 * 162
    assert fabric.capacity[trunk].tolist() == [1.6e12 / 8] * 2 * 162
    # Half of a chip's 72 ports of 50 GB/s go to the GPUs, half across.
    switch = fabric.node_kind != 0
    for own in (trunk, ~trunk):
        out = np.bincount(fabric.link_src[own], fabric.capacity[own], fabric.nodes)[switch]
        np.testing.assert_allclose(out, 36 * 50e9)
    # So all 36 GPUs of a rack reach the other one at their full rate.
    each = load(fabric)
    assert each[trunk].max() / 200e9 < 36 / 50e9
    assert counts.bisection_Bps == 36 * 900e9


def test_hgx_splits_18_links_over_four_chips() -> None:
    fabric = load_topology("hgx-h100")
    cables = [int(((fabric.link_src == 0) & (fabric.link_dst == 8 + i)).sum()) for i in range(4)]
    assert cables == [5, 4, 4, 5]
    assert (fabric.capacity == 25e9).all()


@pytest.mark.parametrize(
    ("dims", "links", "diameter", "injection"),
    [
        ([4, 4, 4], 384, 6, 600e9),
        ([4, 4, 2], 2 * (32 + 32 + 16), 5, 500e9),
        ([2, 2, 1], 2 * 4, 2, 200e9),
        ([6, 4], 2 * (20 + 24), 7, 300e9),
    ],
)
def test_tpu_axes_wrap_only_where_they_are_a_multiple_of_4(
    dims: list[int], links: int, diameter: int, injection: float
) -> None:
    spec = topology("tpu-v7-cube", dims=dims)
    counts = spec.builder.count(spec.parameters)
    fabric = load_topology("tpu-v7-cube", dims=dims)
    assert (fabric.links, counts.diameter) == (links, diameter)
    assert counts.injection_Bps == injection


@pytest.mark.parametrize(("size", "middle"), [(4, 2), (5, 2)])
def test_an_open_row_is_busiest_in_its_middle(size: int, middle: int) -> None:
    fabric, _ = build("torus", dims=[size], bandwidth="1 GB/s", wrap=False)
    # The cable from chip i - 1 to chip i carries what i chips send to the rest.
    each = load(fabric)
    forward = fabric.link_src < fabric.link_dst
    assert each[forward].tolist() == [i * (size - i) for i in range(1, size)]
    assert each.max() == middle * (size - middle)
    assert np.array_equal(load(fabric, "dimension-order"), each)


def test_a_pod_is_no_larger_than_published(fabricsim: Command) -> None:
    error = fabricsim.fails("show", "tpu-v7-pod", "--set", "topology.dims=[24,24,24]")
    assert "13824 chips, and max_endpoints = 9216" in error


@pytest.mark.parametrize(
    ("dims", "modelled", "measured"), [([4, 4, 8], 96 / 55, 1.63), ([4, 8, 8], 32 / 23, 1.31)]
)
def test_twisted_torus_against_what_was_measured(
    dims: list[int], modelled: float, measured: float
) -> None:
    plain = load_topology("tpu-v4-pod", dims=dims)
    twisted = load_topology("tpu-v4-pod", dims=dims, twisted=True)
    assert twisted.links == plain.links
    # All dimensions are loaded alike, which no routing can better.
    each = load(twisted)
    np.testing.assert_allclose(each, least_load(twisted), rtol=1e-12)
    gain = load(plain).max() / each.max()
    assert gain == pytest.approx(modelled, rel=1e-12)
    assert 1.06 < gain / measured < 1.08


@pytest.mark.parametrize("dims", [[3, 3, 6], [6, 3, 6], [4, 4, 8], [8, 4, 8], [4, 8, 4]])
def test_twisted_torus_looks_the_same_from_every_chip(dims: list[int]) -> None:
    fabric, counts = build("torus", dims=dims, bandwidth="1 GB/s", twisted=True)
    src, dst = fabric.link_src, fabric.link_dst
    hops = hop_distances(src, dst, fabric.nodes, fabric.endpoints, fabric.transit)
    spheres = np.sort(hops, axis=1)
    assert (spheres == spheres[0]).all()
    assert hops.max() == counts.diameter == 3 * min(dims) // 2
    np.testing.assert_allclose(load(fabric), least_load(fabric), rtol=1e-12)


@pytest.mark.parametrize("dims", [[2, 2, 4], [4, 4, 8], [4, 8, 8], [3, 3, 6], [3, 6, 6]])
def test_bisection_of_twisted_tori_is_a_cut_there_is(dims: list[int]) -> None:
    fabric, counts = build("torus", dims=dims, bandwidth="1 GB/s", twisted=True)
    n, places = min(dims), fabric.coordinates
    flat = [places[:, axis] % n < n / 2 for axis in range(3)] if n % 2 == 0 else []
    flat += [places.sum(axis=1) % (2 * n) < n, places[:, 1:].sum(axis=1) % (2 * n) < n]
    cuts = [
        fabric.capacity[one[fabric.link_src] & ~one[fabric.link_dst]].sum()
        for one in flat
        if one.sum() * 2 == len(fabric.endpoints)
    ]
    assert counts.bisection_Bps == min(cuts)
    plain = build("torus", dims=dims, bandwidth="1 GB/s", double_cables=True)[1]
    assert plain.bisection_Bps is not None
    assert plain.bisection_Bps < min(cuts)
