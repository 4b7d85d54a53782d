"""Star: endpoints on one ideal switch, the reference against which others are measured."""

from __future__ import annotations

import numpy as np

from fabricsim.builders import Builder
from fabricsim.fabric import Counts, Fabric, assemble
from fabricsim.parameters import Bandwidth, Count, Duration, Parameters


class Star(Parameters):
    """Parameters of a star."""

    endpoints: Count
    bandwidth: Bandwidth
    """Of each endpoint."""
    link_latency: Duration = 0.0
    switch_latency: Duration = 0.0
    message_latency: Duration = 0.0
    in_network_reduction: bool = False
    """Whether the switch can add up what endpoints send through it."""


def build(p: Star) -> Fabric:
    """Join every endpoint to one switch that blocks nobody.

    Examples
    --------
    >>> fabric = build(Star(endpoints=8, bandwidth="50 GB/s"))
    >>> fabric.links, float(fabric.capacity[0])
    (16, 50000000000.0)
    """
    n = p.endpoints
    ranks = np.arange(n, dtype=np.int32)
    return assemble(
        "star",
        [("host", ranks, np.full(n, n, np.int32), p.bandwidth, p.link_latency)],
        node_kind=np.r_[np.zeros(n, np.int8), np.int8(1)],
        node_kinds=("endpoint", "switch"),
        endpoints=ranks,
        forward=False,
        switch_latency=p.switch_latency,
        forward_latency=0.0,
        message_latency=p.message_latency,
        coordinates=np.r_[ranks, np.int32(-1)][:, None],
        axes=("port",),
        reduces=p.in_network_reduction,
    )


def count(p: Star) -> Counts:
    """Count a star from its parameters."""
    return Counts(
        endpoints=p.endpoints,
        switches=1,
        switch_links=0,
        endpoint_links=p.endpoints,
        injection_Bps=p.bandwidth,
        bisection_Bps=(p.endpoints // 2) * p.bandwidth,
        diameter=2 if p.endpoints > 1 else 0,
        degree=1,
        switches_by_kind={"switch": 1},
    )


BUILDER = Builder(Star, build, count)
