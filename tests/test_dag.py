"""Transfers that wait for others: longest paths, steps as the special case, and the certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fabricsim.arrays import FloatArray, IntArray
from fabricsim.catalog import load_topology, load_traffic
from fabricsim.convert import in_order
from fabricsim.ordered import ordered
from fabricsim.patterns import alternatives, schedule
from fabricsim.patterns.schedule import Order
from fabricsim.placement import placement
from fabricsim.routing import find
from fabricsim.simulate import simulate
from fabricsim.solver.dag import dag_times
from fabricsim.solver.fluid import fluid_times

seconds = st.integers(0, 8).map(float)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, IntArray, IntArray]:
    """Pairs of transfers of which the first has the lower number: no circles."""
    count = draw(st.integers(1, 12))
    pairs = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=25)
    )
    ordered = sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]})
    table = np.array(ordered, np.int64).reshape(-1, 2)
    return count, table[:, 0], table[:, 1]


def values(draw: Callable[..., Any], count: int) -> FloatArray:
    return np.array(draw(st.lists(seconds, min_size=count, max_size=count)))


@settings(deadline=None)
@given(st.data(), graphs())
def test_with_a_link_each_it_is_the_longest_path(
    data: st.DataObject, graph: tuple[int, IntArray, IntArray]
) -> None:
    count, before, after = graph
    size, start, delay, latency = (values(data.draw, count) for _ in range(4))
    moves = values(data.draw, count) > 0  # others cross no link: they take no time
    routes = sparse.csr_array(np.diag(moves.astype(float)))
    times = dag_times(
        routes, np.ones(count), size, before, after, start=start, delay=delay, latency=latency
    )
    begin, end = np.zeros(count), np.zeros(count)
    for one in range(count):
        waits = [end[b] + latency[b] for b in before[after == one]]
        begin[one] = max([start[one], *waits]) + delay[one]
        end[one] = begin[one] + size[one] * moves[one]
    np.testing.assert_allclose(times.start, begin, rtol=1e-12)
    np.testing.assert_allclose(times.finish, end, rtol=1e-12)


@settings(deadline=None)
@given(st.data(), st.integers(1, 8))
def test_without_order_it_is_the_fluid_solver(data: st.DataObject, flows: int) -> None:
    routes = sparse.csr_array(
        np.array(
            data.draw(
                st.lists(
                    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=3, max_size=3),
                    min_size=flows,
                    max_size=flows,
                )
            )
        )
    )
    size, start = values(data.draw, flows), values(data.draw, flows)
    none = np.zeros(0, np.int64)
    times = dag_times(routes, [1.0, 2.0, 3.0], size, none, none, start=start, certify=True)
    expected = fluid_times(routes, [1.0, 2.0, 3.0], size, start=start)
    np.testing.assert_allclose(times.finish, expected, rtol=1e-14)
    np.testing.assert_array_equal(times.start, start)
    assert times.violation < 1e-9


@settings(deadline=None)
@given(st.data(), graphs())
def test_shared_links_are_fair_and_nothing_starts_early(
    data: st.DataObject, graph: tuple[int, IntArray, IntArray]
) -> None:
    count, before, after = graph
    link = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    routes = sparse.csr_array((np.ones(count), (range(count), link)), shape=(count, 3))
    size, delay, latency = (values(data.draw, count) for _ in range(3))
    times = dag_times(
        routes, np.ones(3), size, before, after, delay=delay, latency=latency, certify=True
    )
    assert times.violation < 1e-9
    assert (times.start[after] >= times.finish[before] + latency[before] + delay[after]).all()
    assert (times.finish - times.start >= size * (1 - 1e-9)).all()
    # What waits for nothing that lasts starts at once.
    free = ~np.isin(np.arange(count), after)
    np.testing.assert_array_equal(times.start[free], delay[free])


@pytest.mark.parametrize(
    ("pattern", "parameters"),
    [
        ("all-reduce", {"algorithm": "ring", "chunks": 2}),
        ("all-reduce", {"algorithm": "ring", "chunks": 1, "group_size": 4}),
        ("all-gather", {"algorithm": "ring"}),
        ("broadcast", {}),
        ("all-to-all", {}),
    ],
)
@pytest.mark.parametrize("name", ["trn2-nl16", "hgx-h100"])
def test_steps_are_the_special_case(pattern: str, parameters: dict[str, object], name: str) -> None:
    fabric, traffic = load_topology(name), load_traffic(pattern, size="1 MiB", **parameters)
    where = placement(fabric)
    chosen, _ = alternatives(pattern, traffic.parameters, len(fabric.endpoints), where)
    steps = schedule(pattern, chosen[0], len(fabric.endpoints), 0, where)
    data = in_order(steps)
    went = ordered(
        fabric,
        fabric.endpoints[data.src],
        fabric.endpoints[data.dst],
        data.size,
        data.start,
        Order(data.before, data.after, data.delay),
        lambda src, dst: find("spray").route(fabric, src, dst, 0),
        certify=True,
    )
    result = simulate(fabric, traffic)
    assert went.time_s == pytest.approx(result.time_s, rel=1e-12)
    assert went.transfer_time_s == pytest.approx(result.transfer_time_s, rel=1e-12)
    assert went.times.violation < 1e-9


@pytest.mark.parametrize(("before", "after"), [([0, 1, 2], [1, 2, 0]), ([1], [1])])
def test_a_circle_is_refused(before: list[int], after: list[int]) -> None:
    with pytest.raises(ValueError, match="waits for itself"):
        dag_times(
            sparse.csr_array(np.ones((3, 1))),
            [1.0],
            np.ones(3),
            np.array(before),
            np.array(after),
        )


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 300))
def test_a_long_chain(count: int) -> None:
    number = np.arange(count - 1)
    one_link = sparse.csr_array(np.ones((count, 1)))
    times = dag_times(one_link, [1.0], np.ones(count), number, number + 1)
    np.testing.assert_allclose(times.finish, np.arange(1, count + 1), rtol=1e-12)
