"""Torus: chips in a grid of any number of dimensions, rows closed to rings or not. No switches.

Meshes (rows left open) and the twisted tori of three dimensions are special cases of it. Optical
circuit switches that join cubes to larger tori are cables here: they are set once, and pass light.
"""

from __future__ import annotations

from itertools import permutations
from math import prod
from typing import Annotated, Self, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from fabricsim.builders import Builder
from fabricsim.fabric import Counts, Fabric, assemble
from fabricsim.parameters import Bandwidth, Count, Duration, Parameters, as_list

_AXES = "xyzuvw"

T = TypeVar("T")


class Torus(Parameters):
    """Parameters of a torus."""

    dims: Annotated[tuple[Count, ...], Field(min_length=1, max_length=len(_AXES))]
    """Chips along each dimension, x first."""
    bandwidth: Annotated[tuple[Bandwidth, ...], BeforeValidator(as_list)]
    """Of one link: one figure, or one for each dimension."""
    double_cables: bool = False
    """Whether two chips that are neighbours both ways round (size 2) have two cables."""
    wrap: Annotated[tuple[bool | Count, ...], BeforeValidator(as_list)] = (True,)
    """Whether the rows of a dimension close to rings: yes, no, or a number of which its size must
    be a multiple; one for all, or one for each dimension."""
    twisted: bool = False
    """Whether the way round a short dimension comes out half-way along the long ones; for shapes
    n x n x 2n and n x 2n x 2n, in any order."""
    max_endpoints: Count | None = None
    """The most chips that the machine can join."""
    link_latency: Annotated[tuple[Duration, ...], BeforeValidator(as_list)] = (0.0,)
    """Of one link: one figure, or one for each dimension."""
    forward_latency: Duration = 0.0
    """To pass through a chip."""
    message_latency: Duration = 0.0
    """Of each transfer, at its two ends together."""

    @model_validator(mode="after")
    def _one_or_one_each(self) -> Self:
        for name in ("bandwidth", "link_latency", "wrap"):
            given = len(getattr(self, name))
            if given not in (1, len(self.dims)):
                raise ValueError(
                    f"{name} has {given} figures: give one, or one for each of "
                    f"the {len(self.dims)} dimensions of dims"
                )
        return self

    @model_validator(mode="after")
    def _can_be_joined(self) -> Self:
        n = prod(self.dims)
        if self.max_endpoints is not None and n > self.max_endpoints:
            raise ValueError(
                f"dims = {list(self.dims)} are {n} chips, and max_endpoints = {self.max_endpoints}"
            )
        if self.twisted:
            shape, short = sorted(self.dims), min(self.dims)
            if short < 2 or shape not in (
                [short, short, 2 * short],
                [short, 2 * short, 2 * short],
            ):
                raise ValueError(
                    f"dims = {list(self.dims)} cannot be twisted: n x n x 2n and n x 2n x 2n can, "
                    "such as 4x4x8 and 4x8x8"
                )
            if not all(_closes(self, axis) for axis in range(3)):
                raise ValueError("a twisted torus needs wrap = true on every dimension")
        return self


def _of(values: tuple[T, ...], axis: int) -> T:
    """Give the figure of one dimension, where there may be one for all."""
    return values[axis] if len(values) > 1 else values[0]


def _closes(p: Torus, axis: int) -> bool:
    """Whether the last chip of a row is joined to the first."""
    wrap = _of(p.wrap, axis)
    return wrap if isinstance(wrap, bool) else p.dims[axis] % wrap == 0


def _is_ring(p: Torus, axis: int) -> bool:
    """Whether a row of k chips has k cables; otherwise it has k - 1."""
    if p.dims[axis] == 2:  # the way round ends at the same neighbour, unless it is twisted
        return _closes(p, axis) and (p.double_cables or p.twisted)
    return p.dims[axis] > 2 and _closes(p, axis)


def build(p: Torus) -> Fabric:
    """Join each chip to its neighbours along every dimension.

    A dimension of size k > 2 is a ring; size 2 has one cable, or two with `double_cables`; size 1
    has none. Where `wrap` says no, the first and the last chip are not joined. Ranks count along
    x first. Chips forward for each other.

    In a twisted torus the cable from the last chip of a short row to the first arrives half-way
    along the long dimensions, so that all dimensions look alike: the graphs FCC(n), for
    n x n x 2n, and BCC(n), for n x 2n x 2n, of Camarero, Martinez and Beivide, "Lattice graphs for
    high-scale interconnection topologies" (IEEE TPDS 26(9), 2015); used by TPU v4 (Jouppi et al.,
    arXiv 2304.01433).

    Examples
    --------
    >>> fabric = build(Torus(dims=(4, 4, 4), bandwidth=("128 GB/s", "128 GB/s", "64 GB/s")))
    >>> fabric.links, fabric.link_kinds
    (384, ('x', 'y', 'z'))
    """
    n = prod(p.dims)
    ranks = np.arange(n, dtype=np.int32)
    dims, strides = np.array(p.dims), np.cumprod((1, *p.dims[:-1]))
    coordinates = (ranks[:, None] // strides % dims).astype(np.int32)
    long = np.flatnonzero(dims > dims.min())
    links = []
    for axis, size in enumerate(p.dims):
        start = ranks if _is_ring(p, axis) else ranks[coordinates[:, axis] < size - 1]
        if not len(start):
            continue
        place = coordinates[start]
        place[:, axis] = (place[:, axis] + 1) % size
        if p.twisted and axis not in long:
            around = place[:, axis] == 0
            for other in long:
                place[around, other] = (place[around, other] + size) % dims[other]
        bandwidth, latency = _of(p.bandwidth, axis), _of(p.link_latency, axis)
        links.append((_AXES[axis], start, place @ strides, bandwidth, latency))
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
    """Count a torus from its parameters; where rows are open, degree and injection at a corner."""
    n = prod(p.dims)
    cables = degree = diameter = 0
    injection = 0.0
    for axis, size in enumerate(p.dims):
        ring = _is_ring(p, axis)
        at_least = 2 if ring else int(size > 1)
        cables += n if ring else n // size * (size - 1)
        degree += at_least
        injection += at_least * _of(p.bandwidth, axis)
        diameter += size // 2 if ring else size - 1
    return Counts(
        endpoints=n,
        switches=0,
        switch_links=0,
        endpoint_links=cables,
        injection_Bps=injection,
        bisection_Bps=_twisted_bisection(p) if p.twisted else _bisection(p),
        diameter=3 * min(p.dims) // 2 if p.twisted else diameter,
        degree=degree,
    )


def _bisection(p: Torus) -> float:
    """Least of the straight and stepped cuts into halves.

    A dimension of even size is cut straight across, at two places of a ring and at one of an open
    row. An odd one leaves a layer in the middle, which is cut along the next dimension, and so on;
    for k-ary n-cubes of odd k this is the known 2 (k^n - 1) / (k - 1) links (Leighton 1992,
    section 1.9).
    """
    best = float("inf")
    for order in permutations(range(len(p.dims))):
        total, layer = 0.0, prod(p.dims)
        for axis in order:
            if p.dims[axis] == 1:
                continue
            layer //= p.dims[axis]
            total += (2 if _is_ring(p, axis) else 1) * layer * _of(p.bandwidth, axis)
            if p.dims[axis] % 2 == 0:
                break
        best = min(best, total)
    return best


def _twisted_bisection(p: Torus) -> float:
    """Least of the flat cuts into halves of a twisted torus.

    A flat cut puts chips on the side that (c . x mod m) < m / 2 says; it crosses 2 N c_i / m links
    of each dimension i. The coordinate of any dimension modulo n gives one (n even); so does, with
    m = 2n, the sum of all coordinates for n x n x 2n and of any two for n x 2n x 2n.
    """
    n, chips = min(p.dims), prod(p.dims)
    widths = sorted(_of(p.bandwidth, axis) for axis in range(3))
    together = 3 if sorted(p.dims)[1] == n else 2
    slanted = chips / n * sum(widths[:together])
    return min(slanted, 2 * chips / n * widths[0]) if n % 2 == 0 else slanted


BUILDER = Builder(Torus, build, count)
