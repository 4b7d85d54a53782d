"""Two binary trees over all ranks, for all-reduce, all-gather and reduce-scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabricsim.arrays import BoolArray, IntArray
from fabricsim.patterns.lanes import Carried, Carries, Lane, in_steps, mirrored
from fabricsim.patterns.schedule import Groups, Step, chunk_count

if TYPE_CHECKING:
    from fabricsim.patterns.reducing import Kind, Reducing


def binary_tree(n: int) -> tuple[IntArray, IntArray]:
    """Parent and depth of every rank in an in-order binary tree; odd ranks are leaves.

    The root is rank 0, its own parent here, with one child.

    Examples
    --------
    >>> binary_tree(6)[0].tolist()
    [0, 2, 4, 2, 0, 4]
    """
    rank = np.arange(n)
    low = rank & -rank
    parent = (rank ^ low) | (low << 1)
    parent = np.where(parent >= n, rank ^ low, parent)
    depth, above = np.zeros(n, np.int64), rank
    while above.any():
        depth += above > 0
        above = parent[above]
    return parent, depth


def double_binary_tree(p: Reducing, groups: Groups, kind: Kind) -> tuple[Step, ...]:
    """Up and down two trees, half each, in `chunks` c: c + 2 h - 1 steps; h = ceil(log2 n).

    Who is a leaf in one tree is none in the other, so that in an all-reduce no rank sends, or
    gets, more than 2 S: S up, S down. In a reduce-scatter only what the ranks below own comes
    down; an all-gather is the reverse. Sanders, Speck and Traff, "Two-tree algorithms for full
    bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009, in the form that
    NCCL uses: the second tree is the first one mirrored (n even) or shifted by one (n odd).
    """
    n, chunks = groups.size, chunk_count(p.chunks)
    parent, depth = binary_tree(n)
    height, child = int(depth.max()), np.arange(1, n)
    everything = np.ones((n - 1, n), bool)
    down_too = everything if kind == "all-reduce" else _below(parent)[child]
    block_B = p.size / (2 * n * chunks)
    lanes = []
    for tree, name in enumerate((np.arange(n), _second(n))):

        def carries(blocks: BoolArray, tree: int = tree, name: IntArray = name) -> Carries:
            def told(which: IntArray, round_: IntArray) -> Carried:
                row, owner = np.nonzero(blocks[which])
                return row, (2 * name[owner] + tree) * chunks + round_[row], block_B

            return told

        low, high = name[child], name[parent[child]]
        up = Lane(low, high, n * block_B, carries(everything), chunks, height - depth[child])
        size = down_too.sum(axis=1) * block_B
        start = height + depth[child] - 1
        down = Lane(high, low, size, carries(down_too), chunks, start, adds=False)
        lanes += [up, down]
    steps = in_steps(groups, lanes)
    return mirrored(steps) if kind == "all-gather" else steps


def _second(n: int) -> IntArray:
    """Ranks in the order that makes a leaf of every inner node of the first tree."""
    return np.arange(n)[::-1] if n % 2 == 0 else np.roll(np.arange(n), -1)


def _below(parent: IntArray) -> BoolArray:
    """(ranks, ranks) bools: whether the second is the first, or below it in the tree."""
    n = len(parent)
    below = np.eye(n, dtype=bool)
    above = parent
    for _ in range(n.bit_length()):
        below[above, np.arange(n)] = True
        above = parent[above]
    return below
