"""Questions that people asked in public about collectives, with the right answers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from fabricsim.catalog import load_topology, load_traffic
from fabricsim.result import Result
from fabricsim.simulate import simulate
from fabricsim.solver.fluid import fluid_times
from tests.helpers import Command, build

GB = 1e9
ON_A_SWITCH = ["ring", "direct", "halving-doubling"]


def on_star(endpoints: int, bandwidth: str, traffic: str, **parameters: Any) -> Result:
    fabric = load_topology("star", endpoints=endpoints, bandwidth=bandwidth)
    return simulate(fabric, load_traffic(traffic, **parameters))


def test_in_switch_reduction_prints_more_than_the_links_carry() -> None:
    # 8 x H100 measure a busbw of 480 GB/s: that is an algbw of 274.3, and 308.6 on the wire.
    measured = 480 * GB / (2 * 7 / 8)
    assert measured == pytest.approx(274.3 * GB, rel=1e-3)
    wire = measured * 9 / 8
    assert wire == pytest.approx(308.6 * GB, rel=1e-3)
    fabric = load_topology(
        "star", endpoints=8, bandwidth=f"{wire / GB} GB/s", in_network_reduction=True
    )
    result = simulate(fabric, load_traffic("all-reduce", size="8 GiB", algorithm="in-network"))
    assert result.busbw_Bps == pytest.approx(480 * GB, rel=1e-9)
    assert result.algbw_Bps == pytest.approx(measured, rel=1e-9)
    assert result.wire_Bps == pytest.approx(wire, rel=1e-9)
    assert result.link_kinds[0].max_utilisation == pytest.approx(1)
    # The bound is that of switches that reduce: S/B. Without them it would be 2 S (n - 1)/(n B).
    assert result.bound_s == pytest.approx(result.size_B / wire, rel=1e-12)
    assert result.efficiency == pytest.approx(8 / 9, rel=1e-9)


def test_in_switch_reduction_on_the_server(fabricsim: Command) -> None:
    args = ["run", "hgx-h100", "all-reduce", "--set", "traffic.size=8GiB"]
    fast = fabricsim(*args, "--set", "traffic.algorithm=in-network", "--json", "-").json
    assert fast["wire_Bps"] == pytest.approx(fast["algbw_Bps"] * 9 / 8, rel=1e-9)
    assert fast["wire_Bps"] < 450 * GB < fast["busbw_Bps"]
    error = fabricsim.fails("run", "star", "all-reduce", "--set", "traffic.algorithm=in-network")
    assert "the switches of this fabric do not reduce" in error
    assert "these do: ring," in error


@pytest.mark.parametrize("planes", [1, 3])
def test_in_switch_reduction_over_several_switches(planes: int) -> None:
    fabric, _ = build(
        "switched",
        trays_per_rack=5,
        chips_per_tray=2,
        switches_per_plane=planes,
        backplane_bandwidth="90 GB/s",
        switch_latency="1 us",
        in_network_reduction=True,
    )
    n, size = 10, 9e9
    for traffic, out in (("all-reduce", (n + 1) / n), ("reduce-scatter", 1), ("all-gather", 1)):
        result = simulate(fabric, load_traffic(traffic, size="9 GB", algorithm="in-network"))
        assert result.transfer_time_s == pytest.approx(size * out / (90 * GB), rel=1e-9)
        # A sum goes up and comes down before the copies do.
        trips = 2 if traffic == "all-reduce" else 1
        assert result.latency_s == pytest.approx(trips * 1e-6, rel=1e-6)
        assert result.efficiency <= 1
    groups = load_traffic("all-reduce", size="9 GB", algorithm="in-network", group_size=5)
    assert simulate(fabric, groups).transfer_time_s == pytest.approx(0.1 * 6 / 5, rel=1e-9)


def test_in_switch_reduction_needs_one_switch_for_all(fabricsim: Command) -> None:
    error = fabricsim.fails(
        *["run", "trn3-nl72x2-gen1", "all-reduce", "--set", "traffic.algorithm=in-network"],
        *["--set", "topology.in_network_reduction=true"],
    )
    assert "ranks hang on the same switches" in error


@pytest.mark.parametrize("algorithm", ON_A_SWITCH)
def test_ring_and_direct_take_the_same_on_one_switch(algorithm: str) -> None:
    result = on_star(8, "50 GB/s", "all-reduce", size="100 MB", algorithm=algorithm)
    assert result.transfer_time_s == pytest.approx(3.50e-3, rel=1e-9)


def test_how_much_is_latency_and_how_much_is_bytes(fabricsim: Command) -> None:
    def run(hop: str) -> Any:
        return fabricsim(
            *["run", "star", "all-reduce", "--set", "topology.endpoints=256"],
            *["--set", "topology.bandwidth=50 GB/s", "--set", f"topology.link_latency={hop}"],
            *["--set", "traffic.size=512 MB", "--json", "-"],
        ).json

    two, six = run("1 us"), run("3 us")  # two links a hop
    assert two["steps"] == 2 * 255
    assert two["transfer_time_s"] == six["transfer_time_s"]
    assert six["transfer_time_s"] == pytest.approx(2 * 255 / 256 * 512e6 / (50 * GB), rel=1e-9)
    for run_, hop in ((two, 2e-6), (six, 6e-6)):
        assert run_["time_s"] - run_["transfer_time_s"] == pytest.approx(510 * hop, rel=1e-9)
    # Three times the latency is three times that part of the time, and no more.
    assert six["time_s"] / two["time_s"] < 1.2
    out = fabricsim("run", "star", "all-reduce", "--set", "topology.link_latency=3 us").out
    assert "of transfer, 84 us of latency in 14 steps" in out


def test_steps_that_are_alike_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("fabricsim.simulate")
    solved = []

    def count(*args: Any, **options: Any) -> Any:
        solved.append(args)
        return fluid_times(*args, **options)

    monkeypatch.setattr(module, "fluid_times", count)
    result = on_star(64, "50 GB/s", "all-reduce", size="1 GiB")
    assert (result.steps, len(solved)) == (126, 1)


def test_the_order_of_the_dimensions() -> None:
    m = S = 1e9
    B = 100 * GB
    times = {}
    for dims in ([2, 8], [8, 2]):
        fabric, _ = build("torus", dims=dims, bandwidth="100 GB/s")
        # The busiest links, in the axis of eight, carry what 16 pairs exchange.
        a2a = simulate(fabric, load_traffic("all-to-all", size=f"{16 * m:.0f} B"))
        assert a2a.transfer_time_s == pytest.approx(16 * m / B, rel=1e-9)
        traffic = load_traffic("all-reduce", size="1 GB", algorithm="hierarchical", chunks=4096)
        times[dims[0]] = simulate(fabric, traffic).transfer_time_s
    assert times[8] == pytest.approx(2 * 7 / 8 * S / B, rel=2e-3)
    assert times[2] == pytest.approx(2 * 1 / 2 * S / B, rel=2e-3)
    assert times[8] / times[2] == pytest.approx(1.75, rel=4e-3)


@pytest.mark.parametrize("traffic", ["all-reduce", "all-gather", "reduce-scatter"])
@pytest.mark.parametrize("n", [2, 3, 7, 8, 17, 64])
def test_busbw_on_an_ideal_switch_is_the_injection_bandwidth(traffic: str, n: int) -> None:
    for algorithm in ["ring", "bidirectional-ring", "direct"]:
        result = on_star(n, "50 GB/s", traffic, size="1 GiB", algorithm=algorithm)
        assert result.busbw_Bps == pytest.approx(50 * GB, rel=1e-9)


def test_torus_all_reduce_on_a_cube_is_at_the_injection_bound(fabricsim: Command) -> None:
    args = ["run", "tpu-v4-cube", "all-reduce", "--set", "traffic.size=1GiB"]
    result = fabricsim(*args, "--set", "traffic.algorithm=torus", "--json", "-").json
    bound = 2 * 2**30 * 63 / 64 / (6 * 50 * GB)
    assert result["bound"] == "injection"
    assert result["bound_s"] == pytest.approx(bound, rel=1e-9)
    assert result["transfer_time_s"] == pytest.approx(bound, rel=1e-6)
    assert result["time_s"] == pytest.approx(bound, rel=1e-2)


@pytest.mark.parametrize(
    ("dims", "bandwidth"),
    [
        ([4, 4, 4], ["128 GB/s", "128 GB/s", "64 GB/s"]),
        ([8, 4, 2], ["50 GB/s"]),
        ([4, 8], ["50 GB/s"]),
        ([3, 5], ["50 GB/s"]),
    ],
    ids=str,
)
def test_parts_are_sized_so_that_all_dimensions_are_busy(
    dims: list[int], bandwidth: list[str]
) -> None:
    fabric, _ = build("torus", dims=dims, bandwidth=bandwidth)
    traffic = load_traffic("all-reduce", algorithm="torus", chunks=256)
    result = simulate(fabric, traffic)
    assert result.efficiency > 0.98
    assert all(kind.mean_utilisation > 0.98 for kind in result.link_kinds)


FABRICS = {
    "star": {},
    "trn2-nl16": {},
    "trn3-nl32x2-gen1": {},
    "hgx-h100": {},
    "tpu-v4-cube": {"dims": [4, 4, 2]},
}


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize(
    "traffic", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"]
)
def test_nothing_beats_its_bound_and_auto_takes_the_fastest(name: str, traffic: str) -> None:
    fabric = load_topology(name, **FABRICS[name])
    auto = simulate(fabric, load_traffic(traffic, size="1000003 B", algorithm="auto"))
    run = [tried for tried in auto.alternatives if tried.why_not is None]
    assert len({tried.algorithm for tried in run}) >= 2
    assert all(tried.efficiency is not None and tried.efficiency <= 1 + 1e-9 for tried in run)
    assert auto.time_s == min(tried.time_s for tried in run if tried.time_s is not None)
    again = simulate(
        fabric,
        load_traffic(
            traffic,
            size="1000003 B",
            algorithm=auto.algorithm,
            **({} if auto.chunks is None else {"chunks": auto.chunks}),
        ),
    )
    assert again.time_s == auto.time_s
    assert again.alternatives == ()


def test_explain_shows_all_and_why_others_do_not_apply(fabricsim: Command) -> None:
    out = fabricsim("run", "star", "all-reduce", "--explain").out
    for name in ("ring", "direct", "halving-doubling", "double-binary-tree"):
        assert f"\n  {name} " in out
    assert "the groups are no whole tori" in out
    assert "the groups lie within one level of the fabric" in out
    error = fabricsim.fails("run", "star", "permutation", "--explain")
    assert "different traffic" in error


@pytest.mark.parametrize("name", ["trn2-nl64", "trn3-nl32x2-gen1", "trn3-nl72x2-gen1"])
def test_the_best_all_reduce_of_a_domain_is_near_its_injection_bandwidth(name: str) -> None:
    # Torus or switched racks: as long as all links of a chip are put to use, and evenly.
    result = simulate(load_topology(name), load_traffic("all-reduce", algorithm="auto"))
    assert result.algorithm == ("torus" if name == "trn2-nl64" else "all-levels")
    assert 0.92 < result.busbw_Bps / result.injection_Bps < 1


def test_swing_is_faster_than_rings_for_small_messages() -> None:
    fabric = load_topology("tpu-v4-cube")
    times = {
        name: simulate(fabric, load_traffic("all-reduce", size="64 KiB", algorithm=name)).time_s
        for name in ("swing", "ring", "bidirectional-ring", "torus")
    }
    assert min(times, key=times.__getitem__) == "swing"
    assert times["torus"] < 3 * times["swing"]


def test_hierarchy_keeps_bytes_off_the_links_between_racks() -> None:
    fabric = load_topology("trn3-nl72x2-gen1")

    def across(algorithm: str) -> float:
        result = simulate(fabric, load_traffic("all-reduce", algorithm=algorithm, chunks=1))
        return {kind.kind: kind.bytes for kind in result.link_kinds}["cross-rack"]

    # Two racks exchange S, and S back, however the ranks inside share it: the least a cut allows.
    assert across("hierarchical") == pytest.approx(2 * 2**30, rel=1e-9)
    assert across("direct") > 10 * across("hierarchical")
