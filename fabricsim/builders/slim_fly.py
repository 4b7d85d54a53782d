"""Slim Fly: switches joined as an MMS graph, of diameter two with nearly the fewest cables.

After Besta and Hoefler, "Slim Fly: a cost effective low-diameter network topology" (SC 2014);
the graphs are those of McKay, Miller and Siran, "A note on large graphs of diameter two and given
maximum degree" (J. Combin. Theory B 74(1), 1998), in the form of Hafner, "Geometric realisation of
the graphs of McKay-Miller-Siran" (J. Combin. Theory B 90(2), 2004). They exist for prime powers
q = 4w + delta, delta -1, 0 or 1. The formulas for their numbers hold for any such q, so that a size
which does not exist can still be counted, as the literature does.
"""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from fabricsim.arrays import IntArray
from fabricsim.builders import Builder
from fabricsim.builders.galois import field, prime_power
from fabricsim.errors import SpecError
from fabricsim.fabric import Counts, Fabric, assemble
from fabricsim.parameters import Bandwidth, Count, Duration, Parameters


class SlimFly(Parameters):
    """Parameters of a Slim Fly."""

    switch_bandwidth: Bandwidth
    """Of one switch, all ports, one direction."""
    port_bandwidth: Bandwidth
    """Of one port, at endpoints and between switches."""
    q: Annotated[int, Field(ge=3, strict=True)]
    """There are 2 q^2 switches."""
    endpoints_per_switch: Count | None = None
    """Half of the ports between switches, rounded up, if left out: full global bandwidth."""
    link_latency: Duration = 0.0
    switch_latency: Duration = 0.0
    message_latency: Duration = 0.0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.q % 4 == 2:
            raise ValueError(
                f"q = {self.q} leaves 2 when divided by 4, and MMS graphs need q = 4w - 1, 4w or "
                f"4w + 1: the nearest that exist are {_nearest(self.q)}"
            )
        radix = int(self.switch_bandwidth / self.port_bandwidth * (1 + 1e-12))
        used = self.degree + self.concentration
        if used > radix:
            raise ValueError(
                f"a switch needs {used} ports ({self.degree} to switches, {self.concentration} to "
                f"endpoints) and has {radix}: switch_bandwidth over port_bandwidth"
            )
        return self

    @property
    def delta(self) -> int:
        """What q is more than the nearest multiple of 4: -1, 0 or 1."""
        return (self.q + 1) % 4 - 1

    @property
    def degree(self) -> int:
        """Ports of a switch towards others: (3q - delta) / 2."""
        return (3 * self.q - self.delta) // 2

    @property
    def concentration(self) -> int:
        """Endpoints of a switch."""
        return self.endpoints_per_switch or -(-self.degree // 2)

    @property
    def switches(self) -> int:
        """2 q^2."""
        return 2 * self.q**2


def _exists(q: int) -> bool:
    return q >= 3 and q % 4 != 2 and prime_power(q) is not None


def _nearest(q: int) -> str:
    """Name the nearest values below and above for which there is a graph."""
    below = next((n for n in range(q - 1, 2, -1) if _exists(n)), None)
    above = next(n for n in range(q + 1, 2 * q + 3) if _exists(n))
    return f"{below} and {above}" if below else f"{above}"


def _switch_links(q: int, delta: int) -> tuple[IntArray, IntArray]:
    """List the cables between switches; the switch (side, x, y) has number side q^2 + x q + y.

    Two switches (0, x, y) and (0, x, y') are joined if y - y' is in X, (1, m, c) and (1, m, c') if
    c - c' is in X', and (0, x, y) and (1, m, c) if y = m x + c. X and X' are halves of the powers
    of a primitive element (Hafner 2004): the even and the odd ones for delta = 1 and 0, and for
    delta = -1 plus and minus the first w even ones, and these times the element.
    """
    gf = field(q)
    exponents = np.arange(0, q - delta, 2)
    if delta == -1:
        w = (q + 1) // 4
        exponents = np.r_[exponents[:w], exponents[:w] + 2 * w - 1]
    sets = gf.powers[exponents % (q - 1)], gf.powers[(exponents + 1) % (q - 1)]
    one, other = [], []
    row, y = np.arange(q)[:, None, None] * q, np.arange(q)[:, None]
    for side, apart in enumerate(sets):
        to = gf.add[y, apart]
        near, far = np.broadcast_arrays(row + y, row + to)
        once = near < far
        one.append(side * q * q + near[once])
        other.append(side * q * q + far[once])
    x, m, c = np.ogrid[:q, :q, :q]
    near, far = np.broadcast_arrays(x * q + gf.add[gf.multiply[m, x], c], q * q + m * q + c)
    return np.concatenate([*one, near.ravel()]), np.concatenate([*other, far.ravel()])


def build(p: SlimFly) -> Fabric:
    """Join endpoints to switches, and the switches as an MMS graph.

    Ranks count the endpoints of a switch, then switches.

    Raises
    ------
    SpecError
        There is no graph of that size: q is no prime power.

    Examples
    --------
    The Hoffman-Singleton graph of 50 switches with 7 ports each:

    >>> p = SlimFly(switch_bandwidth="1.1 Tb/s", port_bandwidth="100 Gb/s", q=5)
    >>> count(p).switches, p.degree, count(p).switch_links
    (50, 7, 175)
    """
    if prime_power(p.q) is None:
        raise SpecError(
            f"q = {p.q} is no prime power, so there is no such MMS graph: it can be counted, not "
            f"built; the nearest that can are {_nearest(p.q)}"
        )
    n = p.switches * p.concentration
    ranks = np.arange(n, dtype=np.int32)
    one, other = _switch_links(p.q, p.delta)
    switch = np.r_[ranks // p.concentration, np.arange(p.switches)]
    port = np.r_[ranks % p.concentration, np.full(p.switches, -1)]
    side, row = np.divmod(switch, p.q**2)
    return assemble(
        "slim_fly",
        [
            ("host", ranks, n + ranks // p.concentration, p.port_bandwidth, p.link_latency),
            ("switch", n + one, n + other, p.port_bandwidth, p.link_latency),
        ],
        node_kind=np.repeat(np.array([0, 1], np.int8), [n, p.switches]),
        node_kinds=("endpoint", "switch"),
        endpoints=ranks,
        forward=False,
        switch_latency=p.switch_latency,
        forward_latency=0.0,
        message_latency=p.message_latency,
        coordinates=np.column_stack([side, row // p.q, row % p.q, port]).astype(np.int32),
        axes=("side", "row", "switch", "port"),
    )


def count(p: SlimFly) -> Counts:
    """Count a Slim Fly from its parameters."""
    n = p.switches * p.concentration
    notes: tuple[str, ...] = ()
    if prime_power(p.q) is None:
        notes = (
            f"q = {p.q} is no prime power: these counts follow from the formulas, but there is no "
            f"such graph; the nearest that can be built are {_nearest(p.q)}",
        )
    # Half of the rows of one side and half of the other make a half: rows of a side share no
    # cable, and any row of one side has q cables to any of the other.
    less, more = p.q // 2, p.q - p.q // 2
    return Counts(
        endpoints=n,
        switches=p.switches,
        switch_links=p.q**2 * p.degree,
        endpoint_links=n,
        injection_Bps=p.port_bandwidth,
        bisection_Bps=min(p.q * (less**2 + more**2), n // 2) * p.port_bandwidth,
        diameter=4,
        degree=1,
        switches_by_kind={"switch": p.switches},
        notes=notes,
    )


BUILDER = Builder(SlimFly, build, count)
