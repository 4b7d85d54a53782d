"""Patterns: parameters -> Schedule. One module a collective; this one finds them by name.

A pattern's module defines `PATTERN`: the model of its parameters, its algorithms (each a function
of parameters, groups and seed that returns the steps), the factor of its bus bandwidth, and what
any algorithm must at least move, for the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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
    "reduce": "fabricsim.patterns.reduce",
    "permutation": "fabricsim.patterns.permutation",
    "incast": "fabricsim.patterns.incast",
    "uniform-random": "fabricsim.patterns.uniform",
    "hotspot": "fabricsim.patterns.hotspot",
    "nearest-neighbour": "fabricsim.patterns.neighbour",
    "matrix": "fabricsim.patterns.matrix",
    "poisson": "fabricsim.patterns.poisson",
    "transfers": "fabricsim.patterns.transfers",
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
    needs: Mapping[str, Callable[[Groups], object]] = field(default_factory=dict)
    """For algorithms that do not always apply: raises SpecError where they do not."""
    chunked: frozenset[str] = frozenset()
    """Algorithms that `chunks` matters to, where it may be ``"best"``."""
    interchangeable: bool = True
    """Whether all algorithms do the same, so that the fastest may be chosen."""
    measured: bool = False
    """Whether the size in the metrics is what a rank sends on average, not `parameters.size`."""


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


CHUNKS = (1, 4, 16, 64)
"""The numbers of chunks among which ``"best"`` chooses."""


def alternatives(
    name: str, parameters: TrafficParameters, endpoints: int, placement: Placement = NOWHERE
) -> tuple[list[TrafficParameters], dict[str, str]]:
    """List what parameters leave open: every algorithm for ``"auto"``, every number of chunks.

    Parameters
    ----------
    name, parameters, endpoints, placement
        As in `schedule`.

    Returns
    -------
    chosen : list of TrafficParameters
        With nothing left open; the fastest run is the one that is meant.
    why_not : dict of str to str
        Algorithms that do not apply, and why.
    """
    pattern = find(name)
    chosen, why_not = [], {}
    algorithms = [parameters.algorithm]
    if parameters.algorithm == "auto":
        algorithms = list(pattern.algorithms)
        why_not = _why_not(pattern, groups_of(parameters, endpoints, placement))
    for algorithm in algorithms:
        one = parameters.model_copy(update={"algorithm": algorithm})
        if algorithm in why_not:
            continue
        if algorithm in pattern.chunked and getattr(parameters, "chunks", 1) == "best":
            chosen += [one.model_copy(update={"chunks": chunks}) for chunks in CHUNKS]
        else:
            chosen.append(one)
    return chosen, why_not


def _why_not(pattern: Pattern, groups: Groups) -> dict[str, str]:
    """Say of each algorithm that does not apply why."""
    found = {}
    for algorithm, check in pattern.needs.items() if groups.size > 1 else ():
        try:
            check(groups)
        except SpecError as error:
            found[algorithm] = str(error)
    return found


def groups_of(
    parameters: TrafficParameters, endpoints: int, placement: Placement = NOWHERE
) -> Groups:
    """Lay out the groups of a pattern on a machine of so many endpoints.

    Raises
    ------
    SpecError
        The group size does not divide the ranks.
    """
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
    return Groups(size, ranks // size, placement.of_ranks(parameters.ranks_per_chip))


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
        The group size does not divide the ranks, or the algorithm does not apply.
    TooLargeError
        More transfers than can be written out.
    """
    pattern = find(name)
    groups = groups_of(parameters, endpoints, placement)
    why_not, algorithm = _why_not(pattern, groups), parameters.algorithm
    if algorithm in why_not:
        others = ", ".join(other for other in pattern.algorithms if other not in why_not)
        raise SpecError(
            f"traffic.algorithm = {algorithm!r} does not apply here: {why_not[algorithm]}; "
            f"these do: {others}"
        )
    steps = pattern.algorithms[algorithm](parameters, groups, seed)
    cut = pattern.cut
    if cut is not None and any(step.combine is not None for step in steps):
        # What ranks must send is less where switches do the sums; what crosses a cut is not.
        cut = replace(cut, bytes_sent=None)
    sent = sum(float(step.size.sum()) * step.repeat for step in steps) if pattern.measured else 0.0
    return Schedule(
        groups=groups,
        steps=steps,
        size=sent / groups.ranks if pattern.measured else parameters.size,
        busbw_factor=pattern.busbw_factor(groups.size),
        demand=pattern.demand(parameters, groups, seed) if pattern.demand else None,
        cut=cut,
        ranks_per_chip=parameters.ranks_per_chip,
        chunks=getattr(parameters, "chunks", None)
        if parameters.algorithm in pattern.chunked
        else None,
    )
