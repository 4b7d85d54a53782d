"""Questions that people asked in public about clusters and figures, with the right answers."""

from __future__ import annotations

from typing import Any

import pytest

from fabricsim.catalog import load_topology, load_traffic, names, topology
from fabricsim.result import Result
from fabricsim.simulate import simulate
from fabricsim.specs import Topology

GB = 1e9


def bandwidths(result: Result) -> tuple[float, float]:
    """Give algbw and busbw of the bandwidth term alone."""
    n = result.group_size
    algbw = result.size_B / result.transfer_time_s
    return algbw, algbw * (n - 1) / n


@pytest.mark.parametrize("forwarding", [False, True])
@pytest.mark.parametrize(("nodes", "algbw", "busbw"), [(2, 100, 93.75), (6, 60, 58.75)])
def test_all_to_all_over_nodes_of_8_gpus(
    nodes: int, algbw: float, busbw: float, forwarding: bool
) -> None:
    fabric = load_topology("hgx-h100-cluster", pods=nodes, rail_forwarding=forwarding)
    result = simulate(fabric, load_traffic("all-to-all", size="1 GB"))
    n, g, nic = 8 * nodes, 8, 50 * GB
    assert bandwidths(result) == pytest.approx((algbw * GB, busbw * GB), rel=1e-9)
    assert bandwidths(result) == pytest.approx(
        (nic * nodes / (nodes - 1), nic * (n - 1) / (n - g)), rel=1e-9
    )
    # Above the 50 GB/s of a NIC, and right: 8 parts of n stay in the node, and the wire is full.
    assert result.bound.split()[0] in ("nic", "host")
    assert result.efficiency == pytest.approx(1, rel=1e-9)
    moved = {kind.kind: kind.bytes for kind in result.link_kinds}
    assert moved["nic"] == pytest.approx(2 * n * 1e9 * (n - g) / n)


def test_forwarding_to_the_rail_keeps_bytes_off_the_spine() -> None:
    n, g, size = 128, 8, 128e6
    off_node = n * size * (n - g) / n
    for forwarding, crossing in ((True, 0.0), (False, (g - 1) / g)):
        fabric = load_topology("hgx-h100-cluster", pods=16, rail_forwarding=forwarding)
        assert "leaf-spine" in fabric.link_kinds
        result = simulate(fabric, load_traffic("all-to-all", size=f"{size:.0f} B"))
        moved = {kind.kind: kind.bytes for kind in result.link_kinds}
        # What crosses the spine goes up once and down once.
        assert moved["leaf-spine"] == pytest.approx(2 * crossing * off_node, rel=1e-9)
        assert moved["host"] == pytest.approx(2 * off_node, rel=1e-9)
        # Inside the node, (g-1)/g of what leaves it is forwarded, on top of its own traffic.
        own = n * size * (g - 1) / n
        forwarded = off_node * (g - 1) / g if forwarding else 0.0
        assert moved["backplane"] == pytest.approx(2 * (own + forwarded), rel=1e-9)
        assert result.transfer_time_s == pytest.approx(size * (n - g) / n / (50 * GB), rel=1e-9)


def test_figures_of_a_vendor_that_differ() -> None:
    spec = topology("trn3-nl72x2-vendor")
    assert injection(spec) == 704 * GB
    lines = " ".join(spec.source.values())
    for figure in ("2,048 GiB/s", "2.56 TB/s", "per-direction rate", "The analyst gives 512"):
        assert figure in lines
    analyst = {"backplane_bandwidth": "512 GB/s", "tray.bandwidth": "512 GB/s"}
    other = topology("trn3-nl72x2-vendor", **analyst)
    assert injection(other) == injection(topology("trn3-nl72x2-gen1")) == 1152 * GB
    assert other.source["backplane_bandwidth"] == other.source["tray"] == "set by the user"


def injection(spec: Topology) -> float:
    return spec.builder.count(spec.parameters).injection_Bps


def quantities(value: Any) -> list[Any]:
    """All figures in a parameter, which may be a list or a table."""
    if isinstance(value, dict):
        return [q for inner in value.values() for q in quantities(inner)]
    return [q for inner in value for q in quantities(inner)] if isinstance(value, list) else [value]


SCALE_UP = [
    name for name in names("topologies") if topology(name).builder_name in ("torus", "switched")
]


@pytest.mark.parametrize("name", SCALE_UP)
def test_figures_say_direction_and_unit(name: str) -> None:
    spec = topology(name)
    for parameter in ("bandwidth", "backplane_bandwidth", "cross_rack_bandwidth"):
        if parameter in spec.given:
            assert "direction" in spec.source[parameter], parameter
            assert all(q.endswith("B/s") for q in quantities(spec.given[parameter]))
