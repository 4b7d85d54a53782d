"""Max-min rates against exact fractions, the certificate, and instances that catch tolerances."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fabricsim.arrays import FloatArray
from fabricsim.solver import max_min
from fabricsim.solver.certificate import max_min_violation
from fabricsim.solver.max_min import max_min_rates
from tests.helpers import CASES

EXACT = 1e-12


def from_case(case: dict[str, Any]) -> dict[str, Any]:
    def number(text: str) -> float:
        return float(Fraction(text))

    links, flows = len(case["capacity"]), len(case["flows"])
    routes = sparse.lil_array((flows, links))
    for i, flow in enumerate(case["flows"]):
        for link, fraction in flow["path"].items():
            routes[i, int(link)] = number(fraction)
    return {
        "routes": routes.tocsr(),
        "capacity": np.array([number(c) for c in case["capacity"]]),
        "weight": np.array([number(f["weight"]) for f in case["flows"]]),
        "demand": np.array(
            [np.inf if f["demand"] is None else number(f["demand"]) for f in case["flows"]]
        ),
    }


@pytest.mark.parametrize("path", sorted((CASES / "max_min").glob("*.json")), ids=lambda p: p.stem)
def test_small_cases_with_rational_rates(path: Path) -> None:
    case = json.loads(path.read_text())
    problem = from_case(case)
    rates = max_min_rates(**problem)
    exact = [float(Fraction(rate)) for rate in case["rates"]]
    np.testing.assert_allclose(rates, exact, rtol=EXACT, atol=0)
    assert max_min_violation(rates=rates, **problem) < EXACT


@pytest.mark.parametrize("name", ["ft8_a2a", "torus444_a2a_dorpos"])
def test_large_cases_with_rational_rates(name: str) -> None:
    data = np.load(CASES / "large" / f"{name}.npz")
    indices, indptr = data["indices"], data["indptr"]
    shape = (len(indptr) - 1, len(data["cap"]))
    routes = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=shape)
    rates = max_min_rates(routes, data["cap"])
    np.testing.assert_allclose(rates, data["rates_exact"], rtol=1e-11, atol=0)
    assert max_min_violation(routes, data["cap"], rates) < 1e-11


def by_fractions(problem: dict[str, Any]) -> list[Fraction]:
    """Progressive filling in exact arithmetic, as the textbook has it: all flows rise together."""
    dense = problem["routes"].toarray()
    flows, links = dense.shape
    a = [[Fraction(float(x)) for x in row] for row in dense]
    capacity = [Fraction(float(c)) for c in problem["capacity"]]
    weight = [Fraction(float(w)) for w in problem["weight"]]
    rates = [Fraction(0)] * flows
    rising = set(range(flows))
    while rising:
        steps = []
        for link in range(links):
            slope = sum(a[f][link] * weight[f] for f in rising)
            if slope:
                used = sum(a[f][link] * rates[f] for f in range(flows))
                steps.append((capacity[link] - used) / slope)
        steps += [
            (Fraction(float(problem["demand"][f])) - rates[f]) / weight[f]
            for f in rising
            if np.isfinite(problem["demand"][f])
        ]
        step = min(steps)
        for f in rising:
            rates[f] += step * weight[f]
        full = {
            link
            for link in range(links)
            if sum(a[f][link] * rates[f] for f in range(flows)) == capacity[link]
        }
        rising -= {
            f
            for f in rising
            if rates[f] == problem["demand"][f] or any(a[f][link] for link in full)
        }
    return rates


fractions = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 2.0])


@st.composite
def problems(draw: st.DrawFn, capacities: st.SearchStrategy[float]) -> dict[str, Any]:
    flows, links = draw(st.integers(0, 12)), draw(st.integers(1, 6))
    rows = [[draw(fractions) for _ in range(links)] for _ in range(flows)]
    limited = [draw(st.booleans()) or not any(row) for row in rows]
    demands = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(0, 10))
    return {
        "routes": sparse.csr_array(np.array(rows, np.float64).reshape(flows, links)),
        "capacity": np.array([draw(capacities) for _ in range(links)]),
        "weight": np.array([draw(st.sampled_from([0.5, 1.0, 1.0, 3.0])) for _ in range(flows)]),
        "demand": np.array([draw(demands) if limit else np.inf for limit in limited]),
    }


ties = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 1 / 3])
decades = st.floats(-10, 10).map(lambda x: 10.0**x)


@settings(max_examples=300, deadline=None)
@given(problems(st.one_of(ties, st.floats(0, 100))))
def test_agrees_with_exact_arithmetic(problem: dict[str, Any]) -> None:
    rates = max_min_rates(**problem)
    exact = np.array([float(rate) for rate in by_fractions(problem)])
    # Below 1e-300 floats have fewer digits.
    np.testing.assert_allclose(rates, exact, rtol=1e-11, atol=1e-300)


@settings(max_examples=300, deadline=None)
@given(problems(st.one_of(ties, decades)))
def test_the_certificate_holds(problem: dict[str, Any]) -> None:
    rates = max_min_rates(**problem)
    assert (rates >= 0).all()
    assert max_min_violation(rates=rates, **problem) < 1e-11


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3000), st.integers(1, 400))
def test_the_certificate_holds_on_larger_networks(seed: int, flows: int, links: int) -> None:
    rng = np.random.default_rng(seed)
    hops = rng.integers(1, 6, flows)
    rows = np.repeat(np.arange(flows), hops)
    cols = rng.integers(0, links, len(rows))
    data = rng.choice([0.25, 0.5, 1.0], len(rows))
    problem = {
        "routes": sparse.csr_array((data, (rows, cols)), shape=(flows, links)),
        "capacity": rng.choice([0.0, 1.0, 1.0, 2.5], links) * rng.choice([1, 1e3], links),
        "weight": rng.choice([1.0, 1.0, 2.0, 1e-6], flows),
        "demand": rng.choice([np.inf, np.inf, 0.0, 0.01, 1.0], flows),
    }
    assert max_min_violation(rates=max_min_rates(**problem), **problem) < 1e-10


@pytest.mark.parametrize("pool", [1, 2, 1024])
@pytest.mark.parametrize("window", [1, 64, 8192])
def test_rates_do_not_depend_on_how_much_a_round_looks_at(
    pool: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    routes = sparse.random_array((500, 60), density=0.05, rng=rng).tocsr()
    demand = np.where(np.diff(routes.indptr) == 0, 1.0, np.inf)
    expected = max_min_rates(routes, np.ones(60), demand=demand)
    monkeypatch.setattr(max_min, "POOL", pool)
    monkeypatch.setattr(max_min, "WINDOW", window)
    rates = max_min_rates(routes, np.ones(60), demand=demand)
    np.testing.assert_allclose(rates, expected, rtol=1e-12)


def one_link(flows: int) -> sparse.csr_array:
    return sparse.csr_array(np.ones((flows, 1)))


def test_a_million_equal_flows() -> None:
    rates = max_min_rates(one_link(1_000_000), [1.0])
    assert (rates == 1e-6).all()


def test_no_flows_and_one_flow() -> None:
    assert max_min_rates(sparse.csr_array((0, 3)), np.ones(3)).shape == (0,)
    assert max_min_rates(one_link(1), [7.0]).tolist() == [7.0]


def test_flows_just_below_their_share_leave_the_rest_to_the_free_one() -> None:
    """A solver that takes levels within 1e-5 for equal gives the free flow its even share."""
    n, share = 200_000, 1000.0
    demand = np.append(np.full(n, share - 1e-9), np.inf)
    rates = max_min_rates(one_link(n + 1), [(n + 1) * share], demand=demand)
    assert rates[-1] == pytest.approx(share + n * 1e-9, rel=1e-9)
    assert rates[-1] > share + 1e-4


def test_near_ties_stay_apart() -> None:
    routes = sparse.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    rates = max_min_rates(routes, [2.0, 2.0 * (1 + 1e-12)])
    assert rates[0] == rates[1] == 1.0
    assert rates[2] - 1.0 == pytest.approx(2e-12, rel=1e-3)


def test_duplicates_add_up_and_zeros_are_no_crossing() -> None:
    routes = sparse.csr_array(
        (np.array([1.0, 1.0, 1.0, 0.0]), (np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))),
        shape=(2, 2),
    )
    assert max_min_rates(routes, [6.0, 0.0]).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
def test_any_sparse_format(kind: Any) -> None:
    routes = sparse.coo_array([[1.0, 0.0], [1.0, 1.0]]).asformat(kind)
    assert max_min_rates(routes, [10.0, 2.0]).tolist() == [8.0, 2.0]
    assert max_min_rates(sparse.csr_matrix(routes), [10.0, 2.0]).tolist() == [8.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"capacity": [1.0]}, r"capacity has shape \(1,\), must be \(2,\)"),
        ({"capacity": [1.0, -1.0]}, r"capacity\[1\] is -1, must be at least 0"),
        ({"capacity": [np.nan, 1.0]}, r"capacity\[0\] is nan"),
        ({"capacity": [np.inf, 1.0]}, r"capacity\[0\] is inf"),
        ({"weight": [1.0, 0.0]}, r"weight\[1\] is 0, must be above 0"),
        ({"weight": [1.0, np.inf]}, r"weight\[1\] is inf"),
        ({"demand": [-1.0, 1.0]}, r"demand\[0\] is -1"),
        ({"routes": sparse.csr_array([[1.0, 0.0], [0.0, 0.0]])}, "flow 1 crosses no link"),
        ({"routes": sparse.csr_array([[1.0, 0.0], [0.0, -1.0]])}, r"routes\[1, 1\] is -1"),
        ({"routes": np.eye(2)}, "must be a SciPy sparse array"),
    ],
)
def test_refuses(arguments: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {"routes": sparse.csr_array(np.eye(2)), "capacity": [1.0, 1.0]}
    with pytest.raises(ValueError, match=words):
        max_min_rates(**{**good, **arguments})


def violation(rates: list[float], **more: FloatArray) -> float:
    routes = sparse.csr_array([[1.0, 0.0], [1.0, 1.0]])
    return max_min_violation(routes, np.array([10.0, 2.0]), np.array(rates), **more)


def test_the_certificate_tells_wrong_rates() -> None:
    assert violation([8.0, 2.0]) == 0
    assert violation([8.0, 2.2]) == pytest.approx(0.1)  # overloads the second link
    assert violation([7.0, 2.0]) == pytest.approx(0.1)  # leaves a tenth of the first link
    assert violation([9.0, 1.0]) == pytest.approx(0.5)  # unfair to the second flow
    assert violation([8.0, 2.0], demand=np.array([4.0, 9.0])) == 1  # twice the demand
    assert violation([4.0, 2.0], demand=np.array([4.0, 9.0])) == 0
    assert violation([0.0, 0.0]) == 1
    assert violation([np.nan, 2.0]) == np.inf
    assert violation([-1.0, 2.0]) == np.inf
