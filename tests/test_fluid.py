"""Finishing times against exact event loops, closed forms, and a peer's makespans."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fabricsim.arrays import FloatArray
from fabricsim.solver import fluid, held
from fabricsim.solver.certificate import max_min_violation
from fabricsim.solver.fluid import fluid_times
from fabricsim.solver.held import Held, by_level
from fabricsim.solver.max_min import bottlenecks
from fabricsim.solver.problem import prepare
from tests.helpers import CASES
from tests.test_max_min import by_fractions, fractions


def star(n: int) -> sparse.csr_array:
    """Routes of all pairs over one ideal switch: n links up, then n links down."""
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    links = np.column_stack([i, n + j]).ravel()
    flows = len(i)
    shape = (flows, 2 * n)
    return sparse.csr_array((np.ones(2 * flows), links, np.arange(0, 2 * flows + 1, 2)), shape)


def exact_times(problem: dict[str, Any]) -> list[Fraction]:
    """Go from event to event in exact arithmetic."""
    size = [Fraction(float(s)) for s in problem["size"]]
    begin = [Fraction(float(s)) for s in problem["start"]]
    routes, weight = problem["routes"], problem["weight"]
    finish, left, now = list(begin), list(size), Fraction(0)
    waiting = {f for f in range(len(size)) if size[f] and routes[[f]].nnz}
    while waiting:
        here = sorted(f for f in waiting if begin[f] <= now)
        later = [begin[f] for f in waiting if begin[f] > now]
        if not here:
            now = min(later)
            continue
        part = {"routes": routes[here], "capacity": problem["capacity"], "weight": weight[here]}
        rates = by_fractions({**part, "demand": np.full(len(here), np.inf)})
        step = min(left[f] / rate for f, rate in zip(here, rates, strict=True))
        step = min([step, *(time - now for time in later)])
        now += step
        for f, rate in zip(here, rates, strict=True):
            left[f] -= rate * step
            if left[f] == 0:
                finish[f] = now
                waiting.discard(f)
    return finish


@st.composite
def transfers(draw: st.DrawFn) -> dict[str, Any]:
    flows, links = draw(st.integers(0, 8)), draw(st.integers(1, 5))
    rows = [[draw(fractions) for _ in range(links)] for _ in range(flows)]
    times = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 7.25])
    return {
        "routes": sparse.csr_array(np.array(rows, np.float64).reshape(flows, links)),
        "capacity": np.array([draw(st.sampled_from([1.0, 1.0, 2.0, 0.375])) for _ in range(links)]),
        "size": np.array([draw(st.sampled_from([0.0, 1.0, 1.0, 2.0, 5.5])) for _ in range(flows)]),
        "start": np.array([draw(times) for _ in range(flows)]),
        "weight": np.array([draw(st.sampled_from([1.0, 1.0, 0.5, 3.0])) for _ in range(flows)]),
    }


@pytest.mark.parametrize("follow", [True, False], ids=["followed", "from scratch"])
@settings(max_examples=150, deadline=None)
@given(problem=transfers())
def test_agrees_with_exact_arithmetic(follow: bool, problem: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fluid, "FEW", 0 if follow else 10**9)
        times = fluid_times(**problem)
    exact = [float(time) for time in exact_times(problem)]
    np.testing.assert_allclose(times, exact, rtol=1e-10, atol=0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 300), st.integers(1, 30), st.booleans())
def test_following_is_solving_from_scratch(seed: int, flows: int, links: int, late: bool) -> None:
    rng = np.random.default_rng(seed)
    hops = rng.integers(1, 5, flows)
    rows = np.repeat(np.arange(flows), hops)
    data = rng.choice([0.25, 0.5, 1.0, 1 / 3], len(rows))
    routes = sparse.csr_array((data, (rows, rng.integers(0, links, len(rows)))), (flows, links))
    arguments: dict[str, Any] = {
        "routes": routes,
        "capacity": rng.choice([1.0, 2.5, 1e3], links),
        "size": rng.choice([1.0, 2.0, *rng.lognormal(0, 1, 20)], flows),
        "start": rng.choice([0.0, *rng.exponential(20, 10)], flows) if late else np.zeros(flows),
        "weight": rng.choice([1.0, 2.0], flows),
    }
    both = []
    for few in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fluid, "FEW", few)
            both.append(fluid_times(**arguments))
    np.testing.assert_allclose(both[0], both[1], rtol=1e-9)


def test_levels_that_are_followed_bear_the_certificate() -> None:
    rng = np.random.default_rng(0)
    routes = star(12)
    problem = prepare(routes, np.ones(24), rng.choice([1.0, 2.0], 132))
    level, link = bottlenecks(problem)
    now = Held(problem, link, by_level(level, link, 24))
    there = np.ones(132, bool)
    for flow in rng.permutation(132)[:120]:
        assert now.settle()
        rates = now.level[now.held] * problem.weight
        here = np.flatnonzero(there)
        violation = max_min_violation(
            routes[here], problem.capacity, rates[here], weight=problem.weight[here]
        )
        assert violation < 1e-12
        assert (rates[~there] == 0).all()
        now.remove(np.array([flow]))
        there[flow] = False


def test_large_case_finishing_times() -> None:
    data = np.load(CASES / "large" / "sg_star64.npz")
    indices, indptr = data["indices"], data["indptr"]
    shape = (len(indptr) - 1, len(data["cap"]))
    routes = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape)
    size = np.full(shape[0], float(data["size_bytes"]))
    times = fluid_times(routes, data["cap"], size)
    np.testing.assert_allclose(times, data["finish_own_fluid"], rtol=1e-9)


def test_skewed_all_to_all_has_the_makespan_of_simgrid() -> None:
    """64 endpoints of 1 GB/s, log-normal sizes: SimGrid 4.1 gives 155.796505251 s."""
    size = np.random.default_rng(1).lognormal(0, 1, 64 * 63) * 1e9
    times = fluid_times(star(64), np.full(128, 1e9), size)
    assert times.max() == pytest.approx(155.796505251, rel=1e-8)
    # Nobody finishes before the bytes of its endpoints could have left or arrived.
    i, j = np.nonzero(~np.eye(64, dtype=bool))
    for end in (i, j):
        total = np.bincount(end, size)
        last = np.zeros(64)
        np.maximum.at(last, end, times)
        assert (last * 1e9 >= total * (1 - 1e-9)).all()


def test_the_whole_skewed_all_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where following gives up at once: every event is solved from scratch."""
    size = np.random.default_rng(1).lognormal(0, 1, 12 * 11)
    expected = fluid_times(star(12), np.ones(24), size)
    monkeypatch.setattr(held, "MOST_STEPS", 0)
    np.testing.assert_allclose(fluid_times(star(12), np.ones(24), size), expected, rtol=1e-12)


def test_equal_transfers_finish_together() -> None:
    times = fluid_times(star(20), np.ones(40), np.ones(380))
    np.testing.assert_allclose(times, 19.0, rtol=1e-12)
    assert len(np.unique(times)) == 1


def test_arrivals_are_events() -> None:
    routes = sparse.csr_array([[1.0], [1.0]])
    # The first is alone for 1 s, then shares until it is done, then the second is alone.
    times = fluid_times(routes, [10.0], [20.0, 30.0], start=[0.0, 1.0])
    np.testing.assert_allclose(times, [3.0, 5.0], rtol=1e-15)
    # A gap in which nothing is there.
    times = fluid_times(routes, [10.0], [20.0, 30.0], start=[0.0, 100.0])
    np.testing.assert_allclose(times, [2.0, 103.0], rtol=1e-15)


def test_no_bytes_or_no_links_finish_as_they_start() -> None:
    routes = sparse.csr_array([[1.0], [0.0], [1.0]])
    times = fluid_times(routes, [10.0], [0.0, 5.0, 10.0], start=[2.0, 3.0, 0.0])
    assert times.tolist() == [2.0, 3.0, 1.0]
    assert fluid_times(sparse.csr_array((0, 1)), [1.0], []).shape == (0,)


def test_a_million_equal_transfers() -> None:
    routes = sparse.csr_array(np.ones((1_000_000, 1)))
    times = fluid_times(routes, [1e6], np.ones(1_000_000))
    np.testing.assert_allclose(times, 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"capacity": [1.0, 0.0]}, "transfer 1 never finishes: it crosses link 1 of capacity 0"),
        ({"size": [1.0, -1.0]}, r"size\[1\] is -1"),
        ({"size": [1.0, np.inf]}, r"size\[1\] is inf"),
        ({"size": [1.0]}, "size has shape"),
        ({"start": [0.0, np.nan]}, r"start\[1\] is nan"),
        ({"weight": [1.0, -2.0]}, r"weight\[1\] is -2"),
    ],
)
def test_refuses(arguments: dict[str, Any], words: str) -> None:
    good: dict[str, FloatArray | list[float] | sparse.csr_array] = {
        "routes": sparse.csr_array(np.eye(2)),
        "capacity": [1.0, 1.0],
        "size": [1.0, 1.0],
    }
    with pytest.raises(ValueError, match=words):
        fluid_times(**{**good, **arguments})


def test_a_dead_link_without_bytes_hurts_nobody() -> None:
    routes = sparse.csr_array(np.eye(2))
    assert fluid_times(routes, [1.0, 0.0], [1.0, 0.0]).tolist() == [1.0, 0.0]
