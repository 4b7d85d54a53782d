"""Every algorithm moves the data that its name promises: proved by executing what is simulated.

Each rank starts with its own contribution to every block. What a step carries is applied transfer
by transfer: a sum adds what the sender holds, a copy puts it in place. In the end every rank must
hold every contribution exactly once, no more and no less.
"""

from __future__ import annotations

from math import ceil, log2, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabricsim import patterns
from fabricsim.catalog import load_topology, load_traffic
from fabricsim.errors import SpecError
from fabricsim.patterns.grid import ring_order
from fabricsim.patterns.schedule import NOWHERE, SUM, Content, Groups, Placement, Schedule, Step
from fabricsim.simulate import simulate

SIZE = 1_000_003.0
"""Bytes: a prime, so that no number of ranks or chunks divides it."""

Held = NDArray[np.int64]
"""(ranks, blocks, contributors): how many times a rank holds a contribution to a block."""

COUNTS = [*range(2, 18), 64]
ANYWHERE = ["ring", "bidirectional-ring", "double-binary-tree", "halving-doubling", "direct"]
KINDS = ["all-reduce", "all-gather", "reduce-scatter"]


def placed(
    dims: tuple[int, ...], *, rings: bool, reduces: bool = False, x_first: bool = True
) -> Placement:
    """Place ranks on a grid, numbered along the first axis first, or along the last."""
    n = prod(dims)
    order = dims if x_first else dims[::-1]
    strides = np.cumprod((1, *order[:-1]))
    where = np.arange(n)[:, None] // strides % np.array(order)
    return Placement(
        tuple("abcde"[: len(dims)]),
        where if x_first else where[:, ::-1],
        (rings,) * len(dims),
        lambda: np.diag([1.0 if k == 2 else 0.5 for k in dims]),
        reduces=reduces,
    )


def schedule(
    pattern: str, n: int, algorithm: str, placement: Placement = NOWHERE, **parameters: Any
) -> Schedule:
    model = patterns.find(pattern).parameters
    given_ = {"size": f"{SIZE:.0f} B", "algorithm": algorithm, **parameters}
    return patterns.schedule(pattern, model.model_validate(given_), n, 0, placement)


def executions(steps: tuple[Step, ...]) -> list[tuple[Step, Content]]:
    """Each step as often as it is done, with what it carries; sizes must be what is carried."""
    done = []
    for step in steps:
        assert step.content is not None
        assert (step.src != step.dst).all()
        for k in range(step.repeat):
            told = step.content(k)
            carried = np.bincount(told.transfer, told.size, minlength=len(step.src))
            np.testing.assert_allclose(carried, step.size, rtol=1e-12)
            pair = np.stack([told.transfer, told.block])
            assert len(np.unique(pair, axis=1).T) == len(told.block), "a block twice in a transfer"
            done.append((step, told))
    return done


def block_sizes(done: list[tuple[Step, Content]]) -> NDArray[np.float64]:
    """Bytes of each block, the same wherever it goes."""
    block = np.concatenate([told.block for _, told in done])
    size = np.concatenate([told.size for _, told in done])
    sizes = np.zeros(block.max() + 1)
    sizes[block] = size
    np.testing.assert_array_equal(sizes[block], size)
    assert (sizes > 0).all()
    return sizes


def apply(held: Held, step: Step, told: Content) -> None:
    src, dst = step.src[told.transfer], step.dst[told.transfer]
    stages = [np.ones(len(told.block), bool)]
    if step.combine is not None:  # switches do the sums of a step before the copies
        sums = step.combine[told.transfer] == SUM
        stages = [sums, ~sums]
    for now in stages:
        sent = held[src[now], told.block[now]].copy()
        assert (sent.sum(axis=1) > 0).all(), "sent what it does not have"
        adds = told.adds[now]
        to, block = dst[now], told.block[now]
        held[to[~adds], block[~adds]] = sent[~adds]
        np.add.at(held, (to[adds], block[adds]), sent[adds])


def prove(pattern: str, made: Schedule) -> None:
    """Execute a reducing collective, and look at what everyone has in the end."""
    n = made.groups.size
    done = executions(made.steps)
    sizes = block_sizes(done)
    blocks = len(sizes)
    assert sizes.sum() == pytest.approx(SIZE, rel=1e-12)
    owner = np.arange(blocks) * n // blocks
    if pattern != "all-reduce":
        each = np.bincount(owner, sizes)
        np.testing.assert_allclose(each, SIZE / n, rtol=1e-12)
    held = np.zeros((n, blocks, n), np.int64)
    rank = np.arange(n)
    if pattern == "all-gather":
        held[owner, np.arange(blocks), owner] = 1
    else:
        held[rank, :, rank] = 1
    for step, told in done:
        apply(held, step, told)
    if pattern == "all-reduce":
        assert (held == 1).all()
    elif pattern == "all-gather":
        assert (held == (owner[:, None] == rank)).all()
    else:
        assert (held[owner, np.arange(blocks)] == 1).all()


def sent(made: Schedule, end: str = "src") -> NDArray[np.float64]:
    """Bytes that each rank sends in all, or gets."""
    total = np.zeros(made.groups.ranks)
    for step in made.steps:
        np.add.at(total, getattr(step, end), step.size * step.repeat)
    return total


def count(made: Schedule) -> int:
    return sum(step.repeat for step in made.steps)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("algorithm", ANYWHERE)
@pytest.mark.parametrize("pattern", KINDS)
def test_every_contribution_arrives_once(pattern: str, algorithm: str, n: int) -> None:
    prove(pattern, schedule(pattern, n, algorithm, chunks=1 if n == 64 else 3))


TORI = [(2,), (5,), (4, 4), (2, 8), (8, 2), (3, 4), (3, 5), (2, 2, 2), (4, 2, 3), (4, 4, 4)]
TORI += [(2, 3, 2, 2)]
EVEN = [(2,), (6,), (8,), (10,), (4, 4), (2, 8), (4, 6), (2, 2, 2), (4, 2, 6), (4, 4, 4), (12, 2)]


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("dims", TORI, ids=str)
@pytest.mark.parametrize("pattern", KINDS)
def test_on_a_torus(pattern: str, dims: tuple[int, ...], chunks: int) -> None:
    place = placed(dims, rings=True)
    for algorithm in ("ring", "torus", "hierarchical"):
        if algorithm != "hierarchical" or len(dims) > 1:
            prove(pattern, schedule(pattern, prod(dims), algorithm, place, chunks=chunks))


@pytest.mark.parametrize("dims", EVEN, ids=str)
@pytest.mark.parametrize("pattern", KINDS)
def test_swing(pattern: str, dims: tuple[int, ...]) -> None:
    made = schedule(pattern, prod(dims), "swing", placed(dims, rings=True))
    prove(pattern, made)
    steps = sum(ceil(log2(k)) for k in dims)
    twice = 2 if pattern == "all-reduce" else 1
    assert count(made) == twice * steps
    n = prod(dims)
    np.testing.assert_allclose(sent(made), twice * SIZE * (n - 1) / n)


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("dims", [(2, 2), (3, 4), (2, 3, 4), (4, 4, 4), (2, 9, 4)], ids=str)
@pytest.mark.parametrize("pattern", KINDS)
def test_by_levels(pattern: str, dims: tuple[int, ...], chunks: int) -> None:
    place = placed(dims, rings=False, x_first=False)
    for algorithm in ("hierarchical", "all-levels"):
        made = schedule(pattern, prod(dims), algorithm, place, chunks=chunks)
        prove(pattern, made)
        twice = 2 if pattern == "all-reduce" else 1
        assert count(made) == twice * len(dims) + chunks - 1
        np.testing.assert_allclose(sent(made), twice * SIZE * (prod(dims) - 1) / prod(dims))


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("pattern", KINDS)
def test_in_the_network(pattern: str, n: int) -> None:
    prove(pattern, schedule(pattern, n, "in-network", placed((n,), rings=False, reduces=True)))


def prove_all_to_all(made: Schedule) -> None:
    n = made.groups.size
    done = executions(made.steps)
    at = np.repeat(np.arange(n), n)
    for step, told in done:
        assert (at[told.block] == step.src[told.transfer]).all(), "sent what it does not have"
        assert len(np.unique(told.block)) == len(told.block)
        at[told.block] = step.dst[told.transfer]
        np.testing.assert_allclose(told.size, SIZE / n)
    assert (at == np.tile(np.arange(n), n)).all()


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("algorithm", ["direct", "pairwise"])
def test_all_to_all(algorithm: str, n: int) -> None:
    made = schedule("all-to-all", n, algorithm)
    prove_all_to_all(made)
    assert count(made) == (1 if algorithm == "direct" else n - 1)
    np.testing.assert_allclose(sent(made), SIZE * (n - 1) / n)


@pytest.mark.parametrize("dims", [(2, 2), (3, 4), (4, 2, 3), (4, 4, 4)], ids=str)
def test_all_to_all_by_axis(dims: tuple[int, ...]) -> None:
    n = prod(dims)
    by_dimension = schedule("all-to-all", n, "torus-dimension", placed(dims, rings=True))
    by_level = schedule("all-to-all", n, "hierarchical", placed(dims, rings=False, x_first=False))
    for made in (by_dimension, by_level):
        prove_all_to_all(made)
        assert count(made) == len(dims)
        np.testing.assert_allclose(sent(made), SIZE * sum((k - 1) / k for k in dims))


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("algorithm", ["pipelined-ring", "tree"])
@pytest.mark.parametrize("chunks", [1, 3, 20])
def test_from_and_to_the_root(algorithm: str, n: int, chunks: int) -> None:
    down = schedule("broadcast", n, algorithm, chunks=chunks)
    up = schedule("reduce", n, algorithm, chunks=chunks)
    for made in (down, up):
        done = executions(made.steps)
        sizes = block_sizes(done)
        assert sizes.sum() == pytest.approx(SIZE, rel=1e-12)
        held = np.zeros((n, len(sizes), n), np.int64)
        if made is down:
            held[0, :, 0] = 1
        else:
            held[np.arange(n), :, np.arange(n)] = 1
        for step, told in done:
            apply(held, step, told)
        assert (held[:, :, 0] == 1).all() if made is down else (held[0] == 1).all()
        assert count(made) == (chunks + n - 2 if algorithm != "tree" else ceil(log2(n)))
        assert sent(made).sum() == pytest.approx((n - 1) * SIZE, rel=1e-12)


def papers(pattern: str, algorithm: str, n: int, chunks: int) -> tuple[int, float]:
    """Steps, and the most bytes that a rank sends over S, as the papers and docstrings have them.

    Of an all-gather the most that a rank gets: it is a reduce-scatter backwards.
    """
    twice = 2 if pattern == "all-reduce" else 1
    fair = twice * (n - 1) / n
    power = 2 ** int(log2(n))
    height = ceil(log2(n))
    if algorithm in ("ring", "bidirectional-ring"):
        return twice * (n - 1), fair
    if algorithm == "direct":
        return twice, fair
    if algorithm == "in-network":
        return 1, {"all-reduce": (n + 1) / n, "reduce-scatter": 1.0, "all-gather": 1 / n}[pattern]
    if algorithm == "double-binary-tree":
        return 2 * height + chunks - 1, 2.0
    assert algorithm == "halving-doubling"
    steps = int(log2(n)) * twice
    if power == n:
        return steps, fair
    # The neighbour of a rank beyond the power of two takes its vector and gives its results.
    if pattern == "all-reduce":
        return steps + 2, 1.0 + 2 * (power - 1) / power
    return steps + 2, 1.0


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("algorithm", [*ANYWHERE, "in-network"])
@pytest.mark.parametrize("pattern", KINDS)
def test_steps_and_bytes_are_those_of_the_papers(pattern: str, algorithm: str, n: int) -> None:
    place = placed((n,), rings=False, reduces=True)
    made = schedule(pattern, n, algorithm, place, chunks=4)
    steps, most = papers(pattern, algorithm, n, 4)
    assert count(made) == steps
    if algorithm == "in-network":
        # Of what switches add up a rank sends each part once; of what they copy, its own part.
        switch = load_topology("star", endpoints=n, in_network_reduction=True)
        result = simulate(switch, load_traffic(pattern, algorithm=algorithm, size=f"{SIZE:.0f} B"))
        assert result.wire_Bps * result.time_s == pytest.approx(most * SIZE, rel=1e-9)
        return
    total = sent(made, "dst" if pattern == "all-gather" else "src")
    if algorithm == "double-binary-tree":
        assert total.max() <= most * SIZE * (1 + 1e-12)
        if pattern == "all-reduce":  # two trees of n - 1 edges, up and down, half of S each
            assert total.sum() == pytest.approx(2 * (n - 1) * SIZE, rel=1e-12)
        return
    assert total.max() == pytest.approx(most * SIZE, rel=1e-12)
    if all_send_alike(algorithm, n):
        assert total.min() == pytest.approx(most * SIZE, rel=1e-12)


def all_send_alike(algorithm: str, n: int) -> bool:
    return algorithm != "halving-doubling" or n & (n - 1) == 0


@pytest.mark.parametrize("n", range(2, 70))
def test_a_leaf_of_one_tree_is_none_of_the_other(n: int) -> None:
    made = schedule("all-reduce", n, "double-binary-tree", chunks=1)
    got = np.zeros(n)
    for step in made.steps:
        np.add.at(got, step.dst, step.size / SIZE)
    # A rank gets from at most two below in one tree, and from above in both: 2 x S/2 + 2 x S/2.
    assert got.max() <= 2 + 1e-12


@pytest.mark.parametrize("dims", TORI, ids=str)
def test_steps_and_bytes_on_tori(dims: tuple[int, ...]) -> None:
    n, longest = prod(dims), max(dims) - 1
    for pattern in KINDS:
        twice = 2 if pattern == "all-reduce" else 1
        stages = twice * len(dims)
        for chunks in (1, 3):
            made = schedule(pattern, n, "torus", placed(dims, rings=True), chunks=chunks)
            np.testing.assert_allclose(sent(made), twice * SIZE * (n - 1) / n)
            assert count(made) <= longest * (stages + chunks - 1)
            if len(dims) == 1:
                continue
            made = schedule(pattern, n, "hierarchical", placed(dims, rings=True), chunks=chunks)
            np.testing.assert_allclose(sent(made), twice * SIZE * (n - 1) / n)
            many = [longest] * (stages + 2) if chunks == 3 else [twice * (k - 1) for k in dims]
            assert count(made) == sum(many)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 3))
def test_rings_on_tori_go_from_neighbour_to_neighbour(dims: list[int], cores: int) -> None:
    if max(dims) == 1:
        return
    where = placed(tuple(dims), rings=True).of_ranks(cores)
    n = prod(dims) * cores
    order = ring_order(Groups(n, 1, where))
    assert sorted(order) == list(range(n))
    hops = np.abs(where.coordinates[order] - where.coordinates[np.roll(order, -1)])[:, : len(dims)]
    hops = np.minimum(hops, np.array(dims) - hops)
    assert (hops.sum(axis=1) <= 1).all()
    assert (hops.sum(axis=1) == 0).sum() == n - n // cores


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(2, 5), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from(KINDS),
    st.sampled_from(["torus", "ring", "bidirectional-ring"]),
)
def test_ranks_that_share_a_chip(
    dims: list[int], cores: int, chunks: int, pattern: str, algorithm: str
) -> None:
    if prod(dims) * cores > 48:
        return
    made = schedule(
        pattern,
        prod(dims),
        algorithm,
        placed(tuple(dims), rings=True),
        chunks=chunks,
        ranks_per_chip=cores,
    )
    prove(pattern, made)


def test_groups_are_all_alike() -> None:
    whole = schedule("all-reduce", 4, "halving-doubling")
    three = schedule("all-reduce", 12, "halving-doubling", group_size=4)
    for one, all_ in zip(whole.steps, three.steps, strict=True):
        for group in range(3):
            part = slice(group * len(one.src), (group + 1) * len(one.src))
            np.testing.assert_array_equal(all_.src[part], one.src + 4 * group)
            np.testing.assert_array_equal(all_.dst[part], one.dst + 4 * group)
            np.testing.assert_array_equal(all_.size[part], one.size)


def test_sub_tori_and_their_rings() -> None:
    cube = placed((4, 4, 4), rings=True)
    # Planes are whole 4x4 tori; half a plane has an axis of two neighbours, and one of four.
    for size in (16, 8):
        made = schedule("all-reduce", 64, "torus", cube, group_size=size, chunks=1)
        assert made.groups.count == 64 // size
    with pytest.raises(SpecError, match=r"no whole tori; these do: ring, .*, direct, hierarchical"):
        schedule("all-reduce", 64, "torus", placed((4, 4, 4), rings=False))
    with pytest.raises(SpecError, match="every axis must be even, and b has 3"):
        schedule("all-reduce", 12, "swing", placed((4, 3), rings=True))
    with pytest.raises(SpecError, match="switches of this fabric do not reduce"):
        schedule("all-reduce", 12, "in-network", placed((12,), rings=False))
    with pytest.raises(SpecError, match="within one level"):
        schedule("all-reduce", 12, "hierarchical", placed((12,), rings=False))
    with pytest.raises(SpecError, match="evenly"):
        schedule("all-reduce", 7, "hierarchical")
