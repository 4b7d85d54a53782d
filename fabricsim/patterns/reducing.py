"""All-reduce, all-gather and reduce-scatter: their parameters, and their algorithms by name.

The three share their algorithms: a reduce-scatter backwards in time is an all-gather, and an
all-reduce is one after the other, or better. Each algorithm is a function of parameters, groups
and which of the three it is; its docstring states steps and bytes for a buffer of S and n ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

from fabricsim.parameters import Count
from fabricsim.patterns import Algorithm, TrafficParameters
from fabricsim.patterns.exchange import direct, halving_doubling, in_network, reducing_switches
from fabricsim.patterns.grid import even_torus, levels, switched_levels, whole_torus
from fabricsim.patterns.grids import all_levels, hierarchical, torus
from fabricsim.patterns.ring import bidirectional_ring, ring
from fabricsim.patterns.schedule import Groups, Step
from fabricsim.patterns.swing import swing
from fabricsim.patterns.trees import double_binary_tree

Kind = Literal["all-reduce", "all-gather", "reduce-scatter"]

_ALGORITHMS: dict[str, Callable[[Any, Groups, Kind], tuple[Step, ...]]] = {
    "ring": ring,
    "bidirectional-ring": bidirectional_ring,
    "double-binary-tree": double_binary_tree,
    "halving-doubling": halving_doubling,
    "direct": direct,
    "torus": torus,
    "swing": swing,
    "hierarchical": hierarchical,
    "all-levels": all_levels,
    "in-network": in_network,
}

CHUNKED = frozenset({"double-binary-tree", "torus", "hierarchical", "all-levels"})
"""The algorithms that `chunks` matters to."""

NEEDS: dict[str, Callable[[Groups], object]] = {
    "torus": whole_torus,
    "swing": even_torus,
    "hierarchical": levels,
    "all-levels": switched_levels,
    "in-network": reducing_switches,
}
"""What raises SpecError where an algorithm does not apply."""


class Reducing(TrafficParameters):
    """Parameters of the three collectives."""

    algorithm: Literal[
        "auto",
        "ring",
        "bidirectional-ring",
        "double-binary-tree",
        "halving-doubling",
        "direct",
        "torus",
        "swing",
        "hierarchical",
        "all-levels",
        "in-network",
    ] = "ring"
    chunks: Count | Literal["best"] = "best"
    """Parts that follow each other, so that the stages of an algorithm overlap; ``"best"`` takes
    the fastest of a few. Only for the algorithms that say so."""


def algorithms(kind: Kind) -> dict[str, Algorithm]:
    """Give the algorithms of one of the three collectives, by name."""
    return {name: _bound(name, kind) for name in _ALGORITHMS}


def _bound(name: str, kind: Kind) -> Algorithm:
    made = _ALGORITHMS[name]

    @wraps(made)
    def algorithm(p: Any, groups: Groups, seed: int) -> tuple[Step, ...]:
        del seed
        return made(p, groups, kind) if groups.size > 1 else ()

    return algorithm
