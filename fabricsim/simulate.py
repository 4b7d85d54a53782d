"""One run, from a fabric and traffic to a Result: the only place where the rooms meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricsim import patterns, routing
from fabricsim.arrays import FloatArray, IntArray, sum_at
from fabricsim.errors import SpecError, TooLargeError
from fabricsim.fabric import Fabric, bundle_cables
from fabricsim.innetwork import combined
from fabricsim.ordered import ordered
from fabricsim.patterns.schedule import Order, Placement, Schedule, Step
from fabricsim.placement import placement
from fabricsim.result import Alternative, LinkKind, Result, completion_times
from fabricsim.routing import Routes, Routing
from fabricsim.solver.bound import (
    AcrossCut,
    Bound,
    Wires,
    cut_bounds,
    divisions,
    hop_bounds,
    transfers_across,
)
from fabricsim.solver.fluid import certified_times, fluid_times
from fabricsim.specs import Traffic


def simulate(
    fabric: Fabric,
    traffic: Traffic,
    routing: str | None = None,
    seed: int = 0,
    *,
    certify: bool = False,
) -> Result:
    """Run traffic on a fabric.

    Every step of the schedule starts when the one before is done. Within a step all transfers
    start together and share the links max-min fairly; as transfers finish, the rest speed up.
    Where the traffic leaves the algorithm open (``"auto"``), or the chunks (``"best"``), all are
    run, and the fastest is the result; `Result.alternatives` has the others.

    Parameters
    ----------
    fabric : Fabric
        From `load_topology`, a builder or `from_networkx`.
    traffic : Traffic
        From `load_traffic`.
    routing : str, optional
        Name of a routing; ``"spray"`` if left out.
    seed : int
        For what is drawn: hashed paths, random patterns.
    certify : bool
        Whether to check the rates at every event against the certificate of max-min fairness; the
        result then tells the largest violation.

    Returns
    -------
    Result

    Raises
    ------
    SpecError
        An unknown routing, a group size that does not divide the ranks, or a routing that the
        fabric does not allow.
    UnreachableError
        A pair has no path.
    TooLargeError
        More transfers than can be written out.

    Examples
    --------
    >>> from fabricsim import load_topology, load_traffic
    >>> result = simulate(load_topology("trn2-nl64"), load_traffic("all-to-all", size="64 MiB"))
    >>> round(result.transfer_time_s * 1e6, 3)
    524.288
    """
    name = routing or _default_routing()
    where = placement(fabric)
    chosen, why_not = patterns.alternatives(
        traffic.pattern, traffic.parameters, len(fabric.endpoints), where
    )
    if len(chosen) == 1 and not why_not:
        return _run(fabric, replace(traffic, parameters=chosen[0]), where, name, seed, {}, certify)
    results: list[Result] = []
    routed: dict[bytes, Routes] = {}
    tried = [Alternative(algorithm, None, why_not=why) for algorithm, why in why_not.items()]
    for parameters in chosen:
        try:
            one = replace(traffic, parameters=parameters)
            result = _run(fabric, one, where, name, seed, routed, certify)
        except (SpecError, TooLargeError) as error:
            if traffic.parameters.algorithm != "auto":
                raise
            tried.append(Alternative(parameters.algorithm, None, why_not=str(error)))
        else:
            results.append(result)
            tried.append(Alternative.of(result))
    if not results:
        raise SpecError(f"none of the algorithms can be run: {tried[-1].why_not}")
    return replace(min(results, key=lambda r: r.time_s), alternatives=tuple(tried))


def alternatives(
    fabric: Fabric, traffic: Traffic, routing: str | None = None, seed: int = 0
) -> tuple[Alternative, ...]:
    """Run traffic by every algorithm of its pattern; parameters and errors as `simulate`.

    Returns
    -------
    tuple of Alternative
        All that were run, and those that do not apply.
    """
    if not patterns.find(traffic.pattern).interchangeable:
        raise SpecError(
            f"--explain: the algorithms of {traffic.pattern} are not ways to do the same, but "
            "different traffic"
        )
    auto = traffic.parameters.model_copy(update={"algorithm": "auto"})
    result = simulate(fabric, replace(traffic, parameters=auto), routing, seed)
    return result.alternatives or (Alternative.of(result),)


def _run(
    fabric: Fabric,
    traffic: Traffic,
    where: Placement,
    name: str,
    seed: int,
    routed: dict[bytes, Routes],
    certify: bool,
) -> Result:
    """Run traffic that leaves nothing open; `routed` keeps the routes of the run before."""
    strategy = _find_routing(name)
    schedule = patterns.schedule(
        traffic.pattern, traffic.parameters, len(fabric.endpoints), seed, where
    )
    wired = bundle_cables(fabric) if strategy.cables_alike else fabric
    flows = [_flows(step, schedule, wired) for step in schedule.steps]
    pairs = _distinct_pairs(flows, wired)
    if not strategy.by_size and pairs.tobytes() not in routed:
        routed.clear()
        routed[pairs.tobytes()] = strategy.route(
            wired, pairs // wired.nodes, pairs % wired.nodes, seed
        )
    transfer_time = time = 0.0
    carried = np.zeros(wired.links)
    solved: dict[tuple[bytes, ...], _Outcome] = {}
    completion: dict[str, Any] | None = None
    for step, flow in zip(schedule.steps, flows, strict=True):
        if not len(flow.size):
            continue
        key = flow.key()
        if key not in solved and flow.order is not None:
            solved[key] = _solve_ordered(flow, flow.order, wired, strategy, seed, certify)
        elif key not in solved:
            if strategy.by_size:
                own = strategy.route(wired, flow.src, flow.dst, flow.size * flow.count)
            else:
                own = _own_routes(flow, pairs, routed[pairs.tobytes()], wired)
            solved[key] = _solve(flow, own, wired, strategy.by_size, certify)
        outcome = solved[key]
        if flow.start is not None:
            completion = _completion(outcome.flow, wired, outcome)
        transfer_time += step.repeat * outcome.transfer_time_s
        time += step.repeat * outcome.time_s
        carried += step.repeat * outcome.carried
    bound = _bound(wired, schedule)
    algbw = schedule.size / time if time > 0 else 0.0
    return Result(
        time_s=time,
        transfer_time_s=transfer_time,
        algbw_Bps=algbw,
        busbw_Bps=algbw * schedule.busbw_factor,
        endpoints=len(fabric.endpoints),
        ranks=schedule.groups.ranks,
        group_size=schedule.groups.size,
        size_B=schedule.size,
        flows=schedule.transfers,
        steps=sum(step.repeat for step in schedule.steps),
        link_kinds=_link_kinds(wired, carried, transfer_time),
        injection_Bps=_injection(fabric),
        wire_Bps=_busiest(wired, carried) / time if time > 0 else 0.0,
        algorithm=traffic.parameters.algorithm,
        chunks=schedule.chunks,
        completion=completion,
        violation=max(o.violation for o in solved.values()) if certify and solved else None,
        bound_s=bound.time_s,
        bound=bound.name,
        topology=dict(fabric.spec) or {"name": fabric.name},
        traffic=traffic.echo,
        routing=name,
        seed=seed,
    )


def _default_routing() -> str:
    return routing.DEFAULT


_find_routing = routing.find


@dataclass(frozen=True, eq=False)
class _Flows:
    """Transfers of a step that touch the network, equal ones taken together."""

    src: IntArray
    """Nodes."""
    dst: IntArray
    size: FloatArray
    """Bytes of one transfer."""
    count: FloatArray
    """How many transfers are alike: they share a route, and get equal rates."""
    start: FloatArray | None = None
    """Seconds."""
    combine: IntArray | None = None
    """What switches do with transfers on their way: see `Step`."""
    order: Order | None = None

    def key(self) -> tuple[bytes, ...]:
        """Give what tells it from others."""
        parts = [self.src, self.dst, self.size, self.count, self.start, self.combine]
        if self.order is not None:
            parts += [self.order.before, self.order.after, self.order.delay]
        return tuple(b"" if part is None else part.tobytes() for part in parts)


def _flows(step: Step, schedule: Schedule, fabric: Fabric) -> _Flows:
    """Map ranks to nodes; leave out what stays in a chip, and gather equal transfers."""
    src = fabric.endpoints[step.src // schedule.ranks_per_chip]
    dst = fabric.endpoints[step.dst // schedule.ranks_per_chip]
    if step.order is not None:
        return _Flows(src, dst, step.size, np.ones(len(src)), step.start, order=step.order)
    used = np.flatnonzero((src != dst) & (step.size > 0))
    pair = src[used].astype(np.int64) * fabric.nodes + dst[used]
    if (np.diff(pair) < 0).any():  # in order, so that steps that are alike look alike
        used = used[np.argsort(pair, kind="stable")]
    src, dst, size = src[used], dst[used], step.size[used]
    if schedule.ranks_per_chip == 1 or step.start is not None or step.combine is not None:
        start = None if step.start is None else step.start[used]
        combine = None if step.combine is None else step.combine[used]
        return _Flows(src, dst, size, np.ones(len(size)), start, combine)
    order = np.lexsort((size, dst, src))
    src, dst, size = src[order], dst[order], size[order]
    differs = np.ones(len(size), bool)
    differs[1:] = (np.diff(src) != 0) | (np.diff(dst) != 0) | (np.diff(size) != 0)
    first = np.flatnonzero(differs)
    count = np.diff(np.append(first, len(size))).astype(np.float64)
    return _Flows(src[first], dst[first], size[first], count)


def _pair(flow: _Flows, fabric: Fabric) -> NDArray[np.int64]:
    return flow.src.astype(np.int64) * fabric.nodes + flow.dst


def _distinct_pairs(flows: list[_Flows], fabric: Fabric) -> NDArray[np.int64]:
    """Pairs of nodes, each once and in order: they are routed once for all steps."""
    together = [_pair(flow, fabric) for flow in flows if flow.order is None]
    return np.unique(np.concatenate(together)) if together else np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class _Outcome:
    transfer_time_s: float
    time_s: float
    carried: FloatArray
    """Bytes on each link."""
    finish: FloatArray
    """Of each flow, without latency."""
    routes: Routes
    """Of each flow."""
    violation: float
    """Of max-min fairness, the largest of all events; 0 if not asked for."""
    flow: _Flows
    """Those that touched the network, with their starts."""


def _own_routes(flow: _Flows, pairs: NDArray[np.int64], routes: Routes, fabric: Fabric) -> Routes:
    """Pick the routes of the flows of a step from those of all pairs."""
    row = np.searchsorted(pairs, _pair(flow, fabric))
    if len(row) == len(pairs) and (np.diff(row) == 1).all():
        return routes
    return Routes(routes.matrix[row], routes.latency[row])


def _solve(flow: _Flows, routes: Routes, fabric: Fabric, by_size: bool, certify: bool) -> _Outcome:
    matrix, latency = routes.matrix, routes.latency
    size = flow.size * flow.count
    weight = size / size.max() if by_size else flow.count
    if flow.combine is not None:
        # A part is read and added up before it is written: as many trips as there are of these.
        latency = np.full(1, latency.max() * len(np.unique(flow.combine)))
        matrix, size = combined(fabric, flow.src, flow.dst, size, flow.combine, matrix)
        weight = np.ones(len(size))
    violation = 0.0
    if certify:
        finish, violation = certified_times(
            matrix, fabric.capacity, size, start=flow.start, weight=weight
        )
    else:
        finish = fluid_times(matrix, fabric.capacity, size, start=flow.start, weight=weight)
    return _Outcome(
        float(finish.max()),
        float((finish + latency).max()) + fabric.message_latency,
        np.asarray(matrix.T @ size),
        finish,
        routes,
        violation,
        flow,
    )


def _solve_ordered(
    flow: _Flows, order: Order, fabric: Fabric, strategy: Routing, seed: int, certify: bool
) -> _Outcome:
    """Solve transfers that wait for others."""
    if strategy.by_size:
        raise SpecError("optimal routing is for transfers that start together; these have an order")
    start = np.zeros(len(flow.size)) if flow.start is None else flow.start
    found = ordered(
        fabric,
        flow.src,
        flow.dst,
        flow.size,
        start,
        order,
        lambda src, dst: strategy.route(fabric, src, dst, seed),
        certify,
    )
    at = found.moved
    return _Outcome(
        found.transfer_time_s,
        found.time_s,
        np.asarray(found.routes.matrix.T @ flow.size[at]),
        found.times.finish[at],
        found.routes,
        found.times.violation,
        _Flows(
            flow.src[at], flow.dst[at], flow.size[at], flow.count[at], start=found.times.start[at]
        ),
    )


def _completion(flow: _Flows, fabric: Fabric, outcome: _Outcome) -> dict[str, Any]:
    """Tell how long flows took that start at times of their own, and how long each would alone."""
    assert flow.start is not None
    latency = outcome.routes.latency + fabric.message_latency
    per_byte = outcome.routes.matrix.multiply(1 / fabric.capacity).max(axis=1).toarray().ravel()
    alone = flow.size * per_byte + latency
    return completion_times(outcome.finish - flow.start + latency, alone)


def _injection(fabric: Fabric) -> float:
    """The least that an endpoint can send: the sum of its links."""
    out = sum_at(fabric.link_src, fabric.capacity, fabric.nodes)
    return float(out[fabric.endpoints].min()) if len(fabric.endpoints) else 0.0


def _busiest(fabric: Fabric, carried: FloatArray) -> float:
    """The most bytes that an endpoint sends, with what it passes on."""
    return float(sum_at(fabric.link_src, carried, fabric.nodes)[fabric.endpoints].max(initial=0.0))


def _link_kinds(fabric: Fabric, carried: FloatArray, time_s: float) -> tuple[LinkKind, ...]:
    found = []
    busy = carried / (fabric.capacity * time_s) if time_s > 0 else np.zeros(fabric.links)
    for index, kind in enumerate(fabric.link_kinds):
        own = fabric.link_kind == index
        cables = fabric.cables[own]
        capacity = fabric.capacity[own]
        found.append(
            LinkKind(
                kind=kind,
                links=int(cables.sum()),
                capacity_Bps=float(capacity.sum() / cables.sum()),
                bytes=float(carried[own].sum()),
                mean_utilisation=float((busy[own] * cables).sum() / cables.sum()),
                max_utilisation=float(busy[own].max()),
            )
        )
    return tuple(found)


def _bound(fabric: Fabric, schedule: Schedule) -> Bound:
    """The largest of the lower bounds that are known for the traffic."""
    wires = Wires(
        fabric.nodes,
        fabric.link_src,
        fabric.link_dst,
        fabric.capacity,
        fabric.link_kind,
        fabric.link_kinds,
    )
    parts = divisions(wires)
    bounds = []
    if schedule.demand is not None:
        demand = _flows(schedule.demand, schedule, fabric)
        size = demand.size * demand.count
        bounds += cut_bounds(parts, transfers_across(demand.src, demand.dst, size))
        bounds += hop_bounds(wires, demand.src, demand.dst, size)
    if schedule.cut is not None and schedule.steps:
        bounds += cut_bounds(parts, _collective_across(fabric, schedule))
        bounds += _sent(fabric, schedule)
    return max(bounds, key=lambda bound: bound.time_s, default=Bound(0.0, "none"))


def _members(fabric: Fabric, schedule: Schedule) -> tuple[IntArray, IntArray]:
    """Node and group of every rank."""
    rank = np.arange(schedule.groups.ranks)
    return fabric.endpoints[rank // schedule.ranks_per_chip], rank // schedule.groups.size


def _collective_across(fabric: Fabric, schedule: Schedule) -> AcrossCut:
    """Tell what the groups of a collective must bring across any cut."""
    cut = schedule.cut
    assert cut is not None
    node, group = _members(fabric, schedule)
    n, groups = schedule.groups.size, schedule.groups.count

    def across(of_node: IntArray, count: int) -> tuple[FloatArray, FloatArray]:
        key = of_node[node].astype(np.int64) * groups + group
        found, m = np.unique(key, return_counts=True)
        root = np.isin(found, key[::n])
        split = (m > 0) & (m < n)
        part = (found // groups)[split]
        out, into = cut.bytes_across(schedule.size, n, m[split], root[split])
        return sum_at(part, out, count), sum_at(part, into, count)

    return across


def _sent(fabric: Fabric, schedule: Schedule) -> list[Bound]:
    """What all members of all groups must send together, over all that they can send."""
    cut = schedule.cut
    assert cut is not None
    if cut.bytes_sent is None:
        return []
    node, group = _members(fabric, schedule)
    distinct = np.unique(group.astype(np.int64) * fabric.nodes + node)
    endpoints = np.bincount(distinct // fabric.nodes)
    out = sum_at(fabric.link_src, fabric.capacity, fabric.nodes)
    total = float(cut.bytes_sent(schedule.size, endpoints).sum())
    if total == 0:
        return []
    return [Bound(total / float(out[np.unique(node)].sum()), "injection")]
