"""Torus: chips in a grid of any number of dimensions, each row closed to a ring. No switches."""

from __future__ import annotations

from itertools import permutations
from math import prod
from typing import Annotated, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from fabricsim.builders import Builder
from fabricsim.fabric import Counts, Fabric, assemble
from fabricsim.parameters import Bandwidth, Count, Duration, Parameters

_AXES = "xyzuvw"


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


class Torus(Parameters):
    """Parameters of a torus."""

    dims: Annotated[tuple[Count, ...], Field(min_length=1, max_length=len(_AXES))]
    """Chips along each dimension, x first."""
    bandwidth: Annotated[tuple[Bandwidth, ...], BeforeValidator(_as_list)]
    """Of one link: one figure, or one for each dimension."""
    double_cables: bool = False
    """Whether two chips that are neighbours both ways round (size 2) have two cables."""
    link_latency: Annotated[tuple[Duration, ...], BeforeValidator(_as_list)] = (0.0,)
    """Of one link: one figure, or one for each dimension."""
    forward_latency: Duration = 0.0
    """To pass through a chip."""
    message_latency: Duration = 0.0
    """Of each transfer, at its two ends together."""

    @model_validator(mode="after")
    def _one_or_one_each(self) -> Self:
        for name in ("bandwidth", "link_latency"):
            given = len(getattr(self, name))
            if given not in (1, len(self.dims)):
                raise ValueError(
                    f"{name} has {given} figures: give one, or one for each of "
                    f"the {len(self.dims)} dimensions of dims"
                )
        return self


def _per_dimension(values: tuple[float, ...], dims: tuple[int, ...]) -> tuple[float, ...]:
    return values if len(values) > 1 else values * len(dims)


def _cables_per_chip(size: int, double: bool) -> float:
    """Cables of a dimension divided by chips: a ring has one for each chip."""
    if size == 1:
        return 0.0
    return 0.5 if size == 2 and not double else 1.0


def build(p: Torus) -> Fabric:
    """Join each chip to its neighbours along every dimension.

    A dimension of size k > 2 is a ring; size 2 has one cable, or two with `double_cables`; size 1
    has none. Ranks count along x first. Chips forward for each other.

    Examples
    --------
    >>> fabric = build(Torus(dims=(4, 4, 4), bandwidth=("128 GB/s", "128 GB/s", "64 GB/s")))
    >>> fabric.links, fabric.link_kinds
    (384, ('x', 'y', 'z'))
    """
    n = prod(p.dims)
    ranks = np.arange(n, dtype=np.int32)
    strides = np.cumprod((1, *p.dims[:-1]))
    coordinates = (ranks[:, None] // strides % np.array(p.dims)).astype(np.int32)
    links = []
    bandwidths, latencies = (_per_dimension(v, p.dims) for v in (p.bandwidth, p.link_latency))
    for axis, size in enumerate(p.dims):
        place = coordinates[:, axis]
        start = ranks if _cables_per_chip(size, p.double_cables) == 1 else ranks[place == 0]
        if size > 1:
            step = np.where(place[start] == size - 1, 1 - size, 1) * strides[axis]
            links.append((_AXES[axis], start, start + step, bandwidths[axis], latencies[axis]))
    return assemble(
        "torus",
        links,
        node_kind=np.zeros(n, np.int8),
        node_kinds=("endpoint",),
        endpoints=ranks,
        forward=True,
        switch_latency=0.0,
        forward_latency=p.forward_latency,
        message_latency=p.message_latency,
        coordinates=coordinates,
        axes=tuple(_AXES[: len(p.dims)]),
    )


def count(p: Torus) -> Counts:
    """Count a torus from its parameters."""
    n = prod(p.dims)
    bandwidths = _per_dimension(p.bandwidth, p.dims)
    per_chip = [_cables_per_chip(size, p.double_cables) for size in p.dims]
    return Counts(
        endpoints=n,
        switches=0,
        switch_links=0,
        endpoint_links=round(sum(n * c for c in per_chip)),
        injection_Bps=sum(2 * c * b for c, b in zip(per_chip, bandwidths, strict=True)),
        bisection_Bps=_bisection(p.dims, per_chip, bandwidths),
        diameter=sum(size // 2 for size in p.dims),
        degree=round(sum(2 * c for c in per_chip)),
    )


def _bisection(
    dims: tuple[int, ...], per_chip: list[float], bandwidths: tuple[float, ...]
) -> float:
    """Least of the straight and stepped cuts into halves.

    A dimension of even size is cut straight across, at two places of its ring. An odd one leaves
    a layer in the middle, which is cut along the next dimension, and so on; for k-ary n-cubes of
    odd k this is the known 2 (k^n - 1) / (k - 1) links (Leighton 1992, section 1.9).
    """
    best = float("inf")
    for order in permutations(range(len(dims))):
        total, layer = 0.0, prod(dims)
        for axis in order:
            if dims[axis] == 1:
                continue
            layer //= dims[axis]
            total += 2 * per_chip[axis] * layer * bandwidths[axis]
            if dims[axis] % 2 == 0:
                break
        best = min(best, total)
    return best


BUILDER = Builder(Torus, build, count)
