"""Poisson: flows that arrive at random, whatever the state of the network (open loop).

The result tells how long flows take (`fct`), and how many times as long as each would alone.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fabricsim.arrays import FloatArray
from fabricsim.errors import SpecError
from fabricsim.parameters import Count, Size
from fabricsim.patterns import Pattern, TrafficParameters
from fabricsim.patterns.schedule import Groups, Step, refuse_beyond


class Poisson(TrafficParameters):
    """`size` is the mean size of a flow; in the metrics it is what a rank sends on average."""

    algorithm: Literal["fixed", "exponential", "pareto", "empirical"] = "exponential"
    """How the sizes of flows are distributed."""
    size: Size = 0.0
    load: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Bytes that arrive, over what the endpoints can inject."""
    flows: Count = 1000
    """How many arrive in a group."""
    shape: Annotated[float, Field(gt=1)] = 1.5
    """Exponent of the tail; only for ``"pareto"``."""
    cdf: tuple[tuple[Size, Annotated[float, Field(ge=0, le=1)]], ...] = ()
    """Sizes, and the part of the flows that are no larger; only for ``"empirical"``, which has
    no `size`. Between these points sizes are evenly likely."""

    @model_validator(mode="after")
    def _one_distribution(self) -> Self:
        if self.algorithm != "empirical":
            if self.cdf or not self.size:
                raise ValueError(f"{self.algorithm} sizes need a mean 'size', and no 'cdf'")
            return self
        size, part = [s for s, _ in self.cdf], [q for _, q in self.cdf]
        if self.size or len(self.cdf) < 2 or size != sorted(size) or part != sorted(part):
            raise ValueError(
                "empirical sizes need a 'cdf' of two points or more that rise, and no 'size'"
            )
        if part[0] != 0 or part[-1] != 1 or size[-1] == 0:
            raise ValueError("the first point of 'cdf' must be at 0, and the last at 1")
        return self

    @property
    def mean_size(self) -> float:
        """Mean size of a flow."""
        if self.algorithm != "empirical":
            return self.size
        size, part = np.array(self.cdf).T
        return float(np.diff(part) @ ((size[1:] + size[:-1]) / 2))


def _fixed(p: Poisson, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    del rng
    return np.full(shape, p.size)


def _exponential(p: Poisson, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return rng.exponential(p.size, shape)


def _pareto(p: Poisson, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return p.size * (p.shape - 1) / p.shape * (1 + rng.pareto(p.shape, shape))


def _empirical(p: Poisson, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    size, part = np.array(p.cdf).T
    drawn: FloatArray = np.interp(rng.random(shape), part, size)
    return drawn


def _arrivals(p: Poisson, groups: Groups, seed: int) -> Step:
    """Draw flows from uniform senders to uniform others, a Poisson process in each group."""
    n, shape = groups.size, (groups.count, p.flows)
    if n == 1:
        empty = np.zeros(0, np.int32)
        return Step(empty, empty, np.zeros(0), start=np.zeros(0))
    refuse_beyond(groups.count * p.flows)
    injection = groups.placement.injection_Bps * n
    if injection <= 0:
        raise SpecError("poisson needs to know what endpoints can inject: run it on a fabric")
    rng = np.random.default_rng(seed)
    draw = {
        "fixed": _fixed,
        "exponential": _exponential,
        "pareto": _pareto,
        "empirical": _empirical,
    }[p.algorithm]
    start = np.cumsum(rng.exponential(p.mean_size / (p.load * injection), shape), axis=1)
    src = rng.integers(0, n, shape)
    dst = (src + rng.integers(1, n, shape)) % n
    first = np.arange(groups.count)[:, None] * n
    return Step(
        (src + first).ravel().astype(np.int32),
        (dst + first).ravel().astype(np.int32),
        draw(p, rng, shape).ravel(),
        start=start.ravel(),
    )


def fixed(p: Poisson, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Flows of one size."""
    return (_arrivals(p, groups, seed),)


def exponential(p: Poisson, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Flows of exponential sizes."""
    return (_arrivals(p, groups, seed),)


def pareto(p: Poisson, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Flows of Pareto sizes, many small and few large: of mean S, the tail of exponent `shape`."""
    return (_arrivals(p, groups, seed),)


def empirical(p: Poisson, groups: Groups, seed: int) -> tuple[Step, ...]:
    """Flows of sizes as measured, from the points of `cdf`."""
    return (_arrivals(p, groups, seed),)


PATTERN = Pattern(
    parameters=Poisson,
    algorithms={
        "fixed": fixed,
        "exponential": exponential,
        "pareto": pareto,
        "empirical": empirical,
    },
    busbw_factor=lambda n: 1.0 if n > 1 else 0.0,
    demand=_arrivals,
    interchangeable=False,
    measured=True,
)
