"""Patterns: parameters -> Schedule. One module a collective; this one finds them by name.

A pattern's module defines `PATTERN`: the model of its parameters, its algorithms (each a function
of parameters, groups and seed that returns the steps), the factor of its bus bandwidth, and what
any algorithm must at least move, for the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fabricsim.errors import SpecError, unknown_name
from fabricsim.parameters import Count, Parameters, Size
from fabricsim.patterns.schedule import NOWHERE, CutDemand, Groups, Placement, Schedule, Step

_MODULES = {
    "all-to-all": "fabricsim.patterns.all_to_all",
    "all-reduce": "fabricsim.patterns.all_reduce",
    "all-gather": "fabricsim.patterns.all_gather",
    "reduce-scatter": "fabricsim.patterns.reduce_scatter",
    "broadcast": "fabricsim.patterns.broadcast",
    "permutation": "fabricsim.patterns.permutation",
    "incast": "fabricsim.patterns.incast",
}

Algorithm = Callable[[Any, Groups, int], tuple[Step, ...]]


class TrafficParameters(Parameters):
    """Parameters that all patterns share; each adds `algorithm` and its own."""

    size: Size
    """Bytes, as nccl-tests define it for the collective."""
    group_size: Count | None = None
    """Ranks in a group of consecutive ranks; all groups run at once. All ranks, if left out."""
    ranks_per_chip: Count = 1
    """Ranks that share an endpoint and its links, such as logical NeuronCores."""
    algorithm: str


@dataclass(frozen=True)
class Pattern:
    """One kind of traffic."""

    parameters: type[TrafficParameters]
    algorithms: Mapping[str, Algorithm]
    """By name; the first is the default."""
    busbw_factor: Callable[[int], float]
    """Ranks of a group -> busbw / algbw, as nccl-tests define it."""
    demand: Callable[[Any, Groups, int], Step] | None = None
    """What must go from whom to whom, whatever the algorithm."""
    cut: CutDemand | None = None
    """What must cross any cut, whatever the algorithm."""


def names() -> list[str]:
    """Names of all patterns."""
    return list(_MODULES)


def find(name: str) -> Pattern:
    """Find a pattern by name.

    Raises
    ------
    SpecError
        No pattern of that name.
    """
    if name not in _MODULES:
        raise unknown_name("pattern", name, _MODULES)
    pattern = import_module(_MODULES[name]).PATTERN
    assert isinstance(pattern, Pattern)
    return pattern


def schedule(
    name: str,
    parameters: TrafficParameters,
    endpoints: int,
    seed: int,
    placement: Placement = NOWHERE,
) -> Schedule:
    """Make the steps of a pattern for a machine of so many endpoints.

    Parameters
    ----------
    name : str
        Name of the pattern.
    parameters : TrafficParameters
        Of that pattern's own model.
    endpoints : int
        Chips that take part.
    seed : int
        For patterns that draw.
    placement : Placement
        Where the endpoints stand, for algorithms that depend on it.

    Raises
    ------
    SpecError
        The group size does not divide the ranks.
    TooLargeError
        More transfers than can be written out.
    """
    pattern = find(name)
    ranks = endpoints * parameters.ranks_per_chip
    size = parameters.group_size or ranks
    if ranks % size:
        divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
        near = [max(n for n in divisors if n < size)]
        near += [n for n in divisors if n > size][:1]
        raise SpecError(
            f"traffic.group_size = {size} does not divide the {ranks} ranks; the nearest that "
            f"would: {' or '.join(map(str, near))}"
        )
    groups = Groups(size, ranks // size, placement.of_ranks(parameters.ranks_per_chip))
    return Schedule(
        groups=groups,
        steps=pattern.algorithms[parameters.algorithm](parameters, groups, seed),
        size=parameters.size,
        busbw_factor=pattern.busbw_factor(size),
        demand=pattern.demand(parameters, groups, seed) if pattern.demand else None,
        cut=pattern.cut,
        ranks_per_chip=parameters.ranks_per_chip,
    )
