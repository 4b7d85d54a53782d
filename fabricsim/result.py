"""Result: what a person or a script wants to know of a run; as JSON and as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from fabricsim.arrays import FloatArray
from fabricsim.units import show, show_size
from fabricsim.version import __version__


@dataclass(frozen=True)
class LinkKind:
    """How busy the links of one kind were, over the transfer time of the run."""

    kind: str
    links: int
    """Directed links."""
    capacity_Bps: float
    """Of one link, one direction; the mean where they differ."""
    bytes: float
    """Carried by all links of the kind."""
    mean_utilisation: float
    max_utilisation: float


@dataclass(frozen=True)
class Alternative:
    """One of the ways to run the traffic that were tried."""

    algorithm: str
    chunks: int | None
    """Where the algorithm has any."""
    time_s: float | None = None
    busbw_Bps: float | None = None
    steps: int | None = None
    efficiency: float | None = None
    why_not: str | None = None
    """Why it does not apply."""

    @classmethod
    def of(cls, result: Result) -> Alternative:
        """Keep what matters of a run."""
        return cls(
            result.algorithm,
            result.chunks,
            result.time_s,
            result.busbw_Bps,
            result.steps,
            result.efficiency,
        )


def completion_times(time_s: FloatArray, alone_s: FloatArray) -> dict[str, Any]:
    """Sum up how long flows took, and how many times as long as they would alone.

    Parameters
    ----------
    time_s, alone_s : (flows,) floats

    Returns
    -------
    dict
        ``flows``, and mean, percentiles and maximum of ``time_s`` and of ``slowdown``.
    """

    def spread(values: FloatArray) -> dict[str, float]:
        marks = {f"p{q:g}": float(np.percentile(values, q)) for q in (50, 90, 95, 99, 99.9)}
        return {"mean": float(values.mean()), **marks, "max": float(values.max())}

    return {"flows": len(time_s), "time_s": spread(time_s), "slowdown": spread(time_s / alone_s)}


@dataclass(frozen=True)
class Result:
    """One run. Numbers are in SI units and unrounded.

    `time_s` is everything; `transfer_time_s` the same run with every latency at zero. `bound_s` is
    the least transfer time that any routing and algorithm could reach, and `bound` says why.
    """

    time_s: float
    transfer_time_s: float
    algbw_Bps: float
    busbw_Bps: float
    endpoints: int
    ranks: int
    group_size: int
    size_B: float
    flows: int
    steps: int
    link_kinds: tuple[LinkKind, ...]
    injection_Bps: float
    wire_Bps: float
    """What the busiest endpoint sends over its links, with what it passes on, over `time_s`."""
    algorithm: str
    """The one that was run: of those that were tried, the fastest."""
    chunks: int | None
    bound_s: float
    bound: str
    topology: Mapping[str, Any]
    traffic: Mapping[str, Any]
    routing: str
    seed: int
    version: str = __version__
    completion: Mapping[str, Any] | None = None
    """Of flows that start at times of their own: see `completion_times`."""
    violation: float | None = None
    """Largest violation of the certificate of max-min fairness, where it was asked for."""
    alternatives: tuple[Alternative, ...] = ()
    """What was tried, where the traffic left the algorithm or its chunks open."""

    @property
    def latency_s(self) -> float:
        """Seconds of `time_s` that no bandwidth would save."""
        return self.time_s - self.transfer_time_s

    @property
    def efficiency(self) -> float:
        """`bound_s` over `transfer_time_s`: 1 is the best that the wires allow."""
        return self.bound_s / self.transfer_time_s if self.transfer_time_s > 0 else 1.0

    @property
    def bottleneck(self) -> LinkKind | None:
        """The kind of links that was busiest; None where nothing was sent."""
        if self.transfer_time_s == 0:
            return None
        return max(self.link_kinds, key=lambda k: (round(k.max_utilisation, 9), k.mean_utilisation))

    def to_dict(self) -> dict[str, Any]:
        """Give the result as plain data, with the keys of the JSON file."""
        worst = self.bottleneck
        return {
            "time_s": self.time_s,
            "transfer_time_s": self.transfer_time_s,
            "algbw_Bps": self.algbw_Bps,
            "busbw_Bps": self.busbw_Bps,
            "endpoints": self.endpoints,
            "ranks": self.ranks,
            "group_size": self.group_size,
            "size_B": self.size_B,
            "flows": self.flows,
            "bottleneck": {
                "link_kind": worst.kind if worst else None,
                "utilisation": worst.max_utilisation if worst else 0.0,
            },
            "link_kinds": [vars(kind) for kind in self.link_kinds],
            "injection_Bps": self.injection_Bps,
            "wire_Bps": self.wire_Bps,
            "algorithm": self.algorithm,
            "chunks": self.chunks,
            "alternatives": [vars(tried) for tried in self.alternatives],
            "max_min_violation": self.violation,
            "bound_s": self.bound_s,
            "bound": self.bound,
            "efficiency": self.efficiency,
            "steps": self.steps,
            "topology": dict(self.topology),
            "traffic": dict(self.traffic),
            "routing": self.routing,
            "seed": self.seed,
            "version": self.version,
        } | ({} if self.completion is None else {"fct": dict(self.completion)})

    def to_json(self) -> str:
        """Write the result as JSON text; the same run gives the same bytes."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def to_table(self) -> str:
        """Write the result for people."""
        groups = f", groups of {self.group_size}" if self.group_size < self.ranks else ""
        head = (
            f"{self.topology['name']}: {self.traffic.get('name', 'traffic')} of "
            f"{show_size(self.size_B)} among {self.ranks} ranks{groups}, {self.routing}"
        )
        rows = [
            (
                "time",
                show(self.time_s, "s"),
                _parts(self.transfer_time_s, self.latency_s, self.steps),
            ),
            ("algbw", show(self.algbw_Bps, "B/s"), "size over time"),
            (
                "busbw",
                show(self.busbw_Bps, "B/s"),
                f"of {show(self.injection_Bps, 'B/s')} that an endpoint can inject",
            ),
            ("wire", show(self.wire_Bps, "B/s"), "leaves the busiest endpoint"),
            (
                "bound",
                show(self.bound_s, "s"),
                f"the wires allow no less ({self.bound}); efficiency {_percent(self.efficiency)}",
            ),
        ]
        if self.alternatives:
            chunks = f", {self.chunks} chunks" if (self.chunks or 1) > 1 else ""
            rows.insert(0, ("algorithm", self.algorithm, f"the fastest of those tried{chunks}"))
        if self.completion is not None:
            rows += _completion_rows(self.completion)
        if self.violation is not None:
            note = "the largest relative violation of max-min fairness, over all events"
            rows.append(("certified", f"{self.violation:.1g}", note))
        lines = [head, ""]
        lines += [f"  {name:<11}{value:>10}   {note}" for name, value, note in rows]
        lines += [
            "",
            f"  {'links':<14}{'number':>9}{'each':>11}{'carried':>11}{'mean':>8}{'max':>8}",
        ]
        lines += [
            f"  {k.kind:<14}{k.links:>9,}{show(k.capacity_Bps, 'B/s'):>11}{show(k.bytes, 'B'):>11}"
            f"{_percent(k.mean_utilisation):>8}{_percent(k.max_utilisation):>8}"
            for k in self.link_kinds
        ]
        return "\n".join([*lines, "", *(f"  {line}" for line in self.explain())]) + "\n"

    def explain(self) -> list[str]:
        """Say in words what limits the run, and what would help."""
        worst = self.bottleneck
        if worst is None:
            return ["Nothing crosses the network."]
        return [f"Bottleneck: {self._limit(worst)}", f"What would help: {self._help(worst)}"]

    def _limit(self, worst: LinkKind) -> str:
        latency = self.latency_s
        if latency > self.transfer_time_s:
            return (
                f"latency, {_percent(latency / self.time_s)} of the time: {self.steps} "
                f"step{'s' if self.steps > 1 else ''} of {show(latency / self.steps, 's')} each, "
                "before any byte is counted."
            )
        busy = f"{worst.kind} links, the busiest {_percent(worst.max_utilisation)} of the time"
        if worst.max_utilisation < 0.995:
            return f"{busy}; no link is busy all the time, as transfers or steps end unevenly."
        if worst.mean_utilisation < 0.995:
            return f"{busy}, but {_percent(worst.mean_utilisation)} on average: the load is uneven."
        return f"{busy}, all of them alike."

    def _help(self, worst: LinkKind) -> str:
        latency = self.latency_s
        if latency > self.transfer_time_s:
            return "larger messages, or an algorithm of fewer steps; bandwidth hardly would."
        gain = 1 / self.efficiency if self.efficiency > 0 else float("inf")
        if gain > 1.02:
            return (
                f"another routing, algorithm (--explain) or placement, up to {gain:.3g}x: "
                f"the wires allow {show(self.bound_s, 's')} ({self.bound})."
            )
        others = [k for k in self.link_kinds if k.kind != worst.kind and k.max_utilisation > 0]
        if not others:
            return f"faster {worst.kind} links, in proportion; no other kind of link is in use."
        second = max(others, key=lambda k: k.max_utilisation)
        room = worst.max_utilisation / second.max_utilisation
        if room < 1.02:
            return f"faster {worst.kind} and {second.kind} links together: both are full."
        return f"faster {worst.kind} links, up to {room:.3g}x: then {second.kind} links limit."


def _completion_rows(completion: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    times, slowdown = completion["time_s"], completion["slowdown"]
    return [
        (
            "flows",
            show(times["p50"], "s"),
            f"median of {completion['flows']:,}; 99% within {show(times['p99'], 's')}",
        ),
        (
            "slowdown",
            f"{slowdown['p50']:.3g}",
            f"median, against alone; 99% within {slowdown['p99']:.3g}",
        ),
    ]


def alternatives_table(alternatives: Sequence[Alternative]) -> str:
    """Write all that was tried for people, the fastest first."""
    tried = sorted(alternatives, key=lambda a: a.time_s if a.time_s is not None else inf)
    lines = [
        f"  {'algorithm':<20}{'chunks':>7}{'steps':>7}{'time':>10}{'busbw':>11}{'efficiency':>12}"
    ]
    for a in tried:
        name = f"  {a.algorithm:<20}{a.chunks or '':>7}"
        if a.time_s is None or a.busbw_Bps is None or a.efficiency is None:
            lines.append(f"{name}  {a.why_not}")
            continue
        lines.append(
            f"{name}{a.steps:>7}{show(a.time_s, 's'):>10}{show(a.busbw_Bps, 'B/s'):>11}"
            f"{_percent(a.efficiency):>12}"
        )
    return "\n".join(lines) + "\n"


def comparison_table(results: Sequence[Result]) -> str:
    """Write results side by side for people, one row each."""
    head = ("topology", "ranks", "time", "busbw", "of injection", "efficiency", "bottleneck")
    rows = [
        (
            str(r.topology["name"]),
            f"{r.ranks}"
            if r.group_size == r.ranks
            else f"{r.ranks // r.group_size} x {r.group_size}",
            show(r.time_s, "s"),
            show(r.busbw_Bps, "B/s"),
            _percent(r.busbw_Bps / r.injection_Bps) if r.injection_Bps else "-",
            _percent(r.efficiency),
            "latency" if r.latency_s > r.transfer_time_s else _name(r.bottleneck),
        )
        for r in results
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [
            f"{cell:<{width}}" if i in (0, len(head) - 1) else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _name(kind: LinkKind | None) -> str:
    return kind.kind if kind else "none"


def _parts(transfer_s: float, latency_s: float, steps: int) -> str:
    count = f" in {steps} steps" if steps > 1 else ""
    return f"{show(transfer_s, 's')} of transfer, {show(latency_s, 's')} of latency{count}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
