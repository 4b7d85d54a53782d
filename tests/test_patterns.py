"""Synthetic traffic: who sends how much to whom, and how long it takes where that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabricsim import patterns
from fabricsim.catalog import load_topology, load_traffic, names
from fabricsim.errors import SpecError
from fabricsim.patterns.schedule import NOWHERE, Placement, Step
from fabricsim.placement import placement
from fabricsim.simulate import simulate
from tests.helpers import Command, build

GB = 1e9
EVENLY = [
    "bit-complement",
    "transpose",
    "tornado",
    "uniform-random",
    "hotspot",
    "nearest-neighbour",
]


def step(
    traffic: str, n: int, where: Placement = NOWHERE, seed: int = 0, **parameters: Any
) -> Step:
    load = load_traffic(traffic, **parameters)
    made = patterns.schedule(load.pattern, load.parameters, n, seed, where)
    assert len(made.steps) == 1
    return made.steps[0]


def bytes_between(made: Step, n: int) -> NDArray[np.float64]:
    between = np.zeros((n, n))
    np.add.at(between, (made.src, made.dst), made.size)
    return between


def torus(*dims: int) -> Placement:
    return placement(build("torus", dims=list(dims), bandwidth="1 GB/s")[0])


@pytest.mark.parametrize("traffic", EVENLY)
@pytest.mark.parametrize("n", [16, 64])
def test_each_rank_sends_its_size_to_others(traffic: str, n: int) -> None:
    between = bytes_between(step(traffic, n, size="1000003 B"), n)
    assert (between.diagonal() == 0).all()
    sent = between.sum(axis=1)
    if traffic == "transpose":  # the diagonal of the matrix of ranks stays where it is
        assert (sent == 0).sum() == np.sqrt(n)
    moves = sent > 0
    np.testing.assert_allclose(sent[moves], 1000003, rtol=1e-12)
    assert moves.all() or traffic == "transpose"


@pytest.mark.parametrize("traffic", ["bit-complement", "transpose"])
def test_permutations_that_are_their_own_inverse(traffic: str) -> None:
    between = bytes_between(step(traffic, 16), 16)
    np.testing.assert_array_equal(between, between.T)


def test_bit_complement_and_transpose() -> None:
    made = step("bit-complement", 8)
    assert made.dst.tolist() == [0b111, 0b110, 0b101, 0b100, 0b011, 0b010, 0b001, 0b000]
    assert step("bit-complement", 5).src.tolist() == [0, 1, 3, 4]
    made = step("transpose", 9)
    assert dict(zip(made.src.tolist(), made.dst.tolist(), strict=True)) == {
        1: 3, 2: 6, 3: 1, 5: 7, 6: 2, 7: 5
    }  # fmt: skip
    with pytest.raises(SpecError, match="not 8; the nearest are 4 and 9"):
        step("transpose", 8)


def test_tornado_goes_almost_half_way_round_every_axis() -> None:
    assert step("tornado", 8).dst.tolist() == [3, 4, 5, 6, 7, 0, 1, 2]
    assert step("tornado", 7).dst.tolist() == [3, 4, 5, 6, 0, 1, 2]
    made = step("tornado", 40, torus(8, 5))
    x, y = made.src % 8, made.src // 8
    np.testing.assert_array_equal(made.dst, (x + 3) % 8 + 8 * ((y + 2) % 5))
    # On a ring of k each link one way carries (k/2 - 1) S; the other way is idle.
    fabric, _ = build("torus", dims=[8], bandwidth="1 GB/s")
    result = simulate(fabric, load_traffic("tornado", size="1 GB"))
    assert result.transfer_time_s == pytest.approx(3, rel=1e-9)
    assert result.link_kinds[0].mean_utilisation == pytest.approx(0.5)


def test_neighbours() -> None:
    np.testing.assert_array_equal(
        bytes_between(step("nearest-neighbour", 4, size="2 B"), 4),
        [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]],
    )
    made = step("nearest-neighbour", 24, torus(2, 3, 4), size="5 B")
    assert len(made.src) == 24 * 5
    assert (made.size == 1).all()
    # All links of a torus alike are busy all the time.
    fabric, _ = build("torus", dims=[3, 4, 5], bandwidth="1 GB/s")
    result = simulate(fabric, load_traffic("nearest-neighbour", size="6 GB"))
    assert result.transfer_time_s == pytest.approx(1, rel=1e-9)
    assert result.efficiency == pytest.approx(1)


def test_uniform_random_is_drawn_by_the_seed() -> None:
    one, same, other = (step("uniform-random", 64, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.dst, same.dst)
    assert (one.dst != other.dst).any()
    many = bytes_between(step("uniform-random", 8, messages=7000, size="7000 B"), 8)
    # 7,000 messages to 7 others: 1,000 each, give or take five standard deviations.
    assert np.abs(many[~np.eye(8, dtype=bool)] - 1000).max() < 5 * np.sqrt(7000 * 6 / 49)


@pytest.mark.parametrize("hotspots", [1, 3])
@pytest.mark.parametrize("fraction", [0.0, 0.25, 1.0])
def test_hotspots_get_their_fraction(hotspots: int, fraction: float) -> None:
    n = 16
    made = step("hotspot", n, size="1 B", hotspots=hotspots, fraction=fraction)
    between = bytes_between(made, n)
    cold = between[hotspots:]
    expected = fraction + (1 - fraction) * hotspots / (n - 1)
    np.testing.assert_allclose(cold[:, :hotspots].sum(axis=1), expected, rtol=1e-12)
    np.testing.assert_allclose(between.sum(axis=1), 1, rtol=1e-12)
    with pytest.raises(SpecError, match=r"traffic.hotspots = 17 is more than the 16 ranks"):
        step("hotspot", n, hotspots=17)


def test_a_matrix_from_every_kind_of_file(tmp_path: Path, fabricsim: Command) -> None:
    data = np.arange(9.0).reshape(3, 3)
    np.savetxt(tmp_path / "m.csv", data, delimiter=",")
    np.save(tmp_path / "m.npy", data.astype(np.int64))
    np.savez(tmp_path / "m.npz", bytes=data)
    moved = data * ~np.eye(3, dtype=bool)
    for suffix in ("csv", "npy", "npz"):
        spec = tmp_path / f"{suffix}.toml"
        spec.write_text(f'pattern = "matrix"\n[parameters]\nsize = "1 kB"\nfile = "m.{suffix}"\n')
        load = load_traffic(str(spec))
        made = patterns.schedule(load.pattern, load.parameters, 3, 0)
        np.testing.assert_array_equal(bytes_between(made.steps[0], 3), 1000 * moved)
        ran = fabricsim("run", "star", str(spec), "--set", "topology.endpoints=6", "--json", "-")
        assert "for 3 ranks, and a group has 6" in ran.err
        ran = fabricsim(
            *["run", "star", str(spec), "--set", "topology.endpoints=6"],
            *["--set", "traffic.group_size=3", "--json", "-"],
        )
        # The busiest end is the receiver 2: 2 + 5; the metrics count what a rank sends on average.
        assert ran.json["transfer_time_s"] == pytest.approx(13e3 / (50 * GB), rel=1e-9)
        assert ran.json["size_B"] == pytest.approx(moved.sum() * 1000 / 3)
        assert ran.json["efficiency"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("m.csv", "1,2\n3,4\n5,6\n", "is 3 x 2, and must be square"),
        ("m.csv", "0,-1\n3,0\n", "row 1, column 2 is -1; bytes must be finite, zero or more"),
        ("m.csv", "0,nan\n3,0\n", "row 1, column 2 is nan"),
        ("m.csv", "0,many\n3,0\n", "cannot be read as numbers"),
        ("m.npy", "no array", "cannot be read as numbers"),
        ("m.npz", "no archive", "cannot be read as numbers"),
        ("m.txt", "0,1\n1,0\n", "give a .csv, .npy or .npz file"),
    ],
)
def test_a_matrix_that_is_none(
    tmp_path: Path, name: str, content: str, says: str, fabricsim: Command
) -> None:
    (tmp_path / name).write_text(content)
    error = fabricsim.fails("run", "star", "matrix", "--set", f"traffic.file={tmp_path / name}")
    assert says in error
    assert name in error


def test_a_matrix_that_would_run_code_is_not_read(tmp_path: Path, fabricsim: Command) -> None:
    np.save(tmp_path / "m.npy", np.array([[{}, {}], [{}, {}]], dtype=object), allow_pickle=True)
    error = fabricsim.fails("run", "star", "matrix", "--set", f"traffic.file={tmp_path / 'm.npy'}")
    assert "cannot be read as numbers" in error
    missing = fabricsim.fails("run", "star", "matrix", "--set", "traffic.file=nowhere.csv")
    assert "traffic.file: nowhere.csv is no file" in missing
    np.savez(tmp_path / "m.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    error = fabricsim.fails("run", "star", "matrix", "--set", f"traffic.file={tmp_path / 'm.npz'}")
    assert "must hold one array, and holds: a, b" in error


def test_flows_that_arrive_seldom_are_as_fast_as_alone() -> None:
    fabric = load_topology("trn2-nl16")
    result = simulate(fabric, load_traffic("poisson", load=1e-6, flows=50))
    assert result.completion is not None
    assert result.completion["flows"] == 50
    slowdown = result.completion["slowdown"]
    assert slowdown["mean"] == pytest.approx(1, rel=1e-6)
    assert slowdown["max"] == pytest.approx(1, rel=1e-6)


def test_more_load_takes_longer_and_no_flow_beats_itself_alone(fabricsim: Command) -> None:
    fabric = load_topology("star", endpoints=16)
    slowdowns = []
    for load in (0.1, 0.5, 0.9):
        result = simulate(fabric, load_traffic("poisson", load=load, flows=300), seed=3)
        assert result.completion is not None
        slowdown, times = result.completion["slowdown"], result.completion["time_s"]
        assert 1 - 1e-9 <= slowdown["p50"] <= slowdown["p90"] <= slowdown["p99"] <= slowdown["max"]
        assert times["p50"] <= times["p99.9"] <= times["max"] <= result.time_s
        slowdowns.append(slowdown["mean"])
    assert slowdowns == sorted(slowdowns)
    ran = fabricsim("run", "star", "poisson", "--json", "-")
    assert set(ran.json["fct"]) == {"flows", "time_s", "slowdown"}
    assert "99% within" in fabricsim("run", "star", "poisson").out


def test_a_processor_that_is_shared() -> None:
    # All flows on one link of max-min fair rates are an M/M/1 queue that shares its server: the
    # mean slowdown is 1/(1 - load), whatever the sizes (Kleinrock 1976, volume II).
    fabric, _ = build("star", endpoints=2, bandwidth="1 GB/s")
    for algorithm in ("exponential", "fixed"):
        load = load_traffic("poisson", algorithm=algorithm, load=0.5, flows=2500, size="1 MB")
        result = simulate(fabric, load, seed=1)
        assert result.completion is not None
        assert result.completion["slowdown"]["mean"] == pytest.approx(1 / (1 - 0.5), rel=0.1)


SIZES = {"fixed": 0.0, "exponential": 1.0, "pareto": 1 / np.sqrt(3 * (3 - 2))}
"""Standard deviation over mean; of Pareto with exponent 3."""


@pytest.mark.parametrize("algorithm", SIZES)
def test_sizes_and_arrivals_are_distributed_as_they_say(algorithm: str) -> None:
    n, flows = 8, 200_000
    where = placement(load_topology("star"))
    parameters: dict[str, Any] = {"shape": 3} if algorithm == "pareto" else {}
    made = step(
        "poisson", n, where, algorithm=algorithm, size="1 MB", load=0.4, flows=flows, **parameters
    )
    assert made.size.mean() == pytest.approx(1e6, rel=0.01)
    assert made.size.std() / made.size.mean() == pytest.approx(SIZES[algorithm], rel=0.1)
    assert made.start is not None
    gaps = np.diff(made.start)
    assert gaps.mean() == pytest.approx(1e6 / (0.4 * n * 50 * GB), rel=0.01)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)
    between = bytes_between(made, n)
    assert (between.diagonal() == 0).all()
    others = between[~np.eye(n, dtype=bool)]
    assert others.min() > 0.9 * others.mean()


def test_sizes_as_measured() -> None:
    where = placement(load_topology("star"))
    made = step("poisson-websearch", 8, where, flows=100_000)
    for size, part in load_traffic("poisson-websearch").given["cdf"]:
        number, unit = size.split()
        bytes_ = float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit]
        assert (made.size <= bytes_).mean() == pytest.approx(part, abs=0.01)
    mean = load_traffic("poisson-websearch").parameters.mean_size  # type: ignore[attr-defined]
    assert made.size.mean() == pytest.approx(mean, rel=0.02)


@pytest.mark.parametrize(
    ("settings_", "says"),
    [
        (["algorithm=empirical", "size=0 B"], "need a 'cdf' of two points or more that rise"),
        (["algorithm=fixed", "size=0 B"], "fixed sizes need a mean 'size'"),
        (["load=1.5"], "less than or equal to 1"),
        (["algorithm=pareto", "shape=1"], "greater than 1"),
    ],
)
def test_poisson_says_what_is_wrong(settings_: list[str], says: str, fabricsim: Command) -> None:
    sets = [arg for setting in settings_ for arg in ("--set", f"traffic.{setting}")]
    assert says in fabricsim.fails("run", "star", "poisson", *sets)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([*EVENLY, "poisson"]), st.integers(1, 9), st.integers(1, 3))
def test_any_number_of_ranks(traffic: str, n: int, groups: int) -> None:
    if traffic == "transpose" and n not in (1, 4, 9):
        return
    fabric, _ = build("star", endpoints=n * groups, bandwidth="1 GB/s")
    small: dict[str, Any] = {"flows": 5} if traffic == "poisson" else {}
    result = simulate(fabric, load_traffic(traffic, group_size=n, **small))
    assert result.efficiency <= 1 + 1e-9
    assert (result.time_s == 0) == (n == 1 or (traffic == "tornado" and n == 2))


def test_all_of_the_catalogue_can_be_loaded_and_say_what_they_are() -> None:
    for name in names("traffic"):
        load = load_traffic(name)
        assert load.description, name
        assert load.parameters.algorithm in {*patterns.find(load.pattern).algorithms, "auto"}
