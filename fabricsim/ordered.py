"""Transfers that wait for others, on a fabric: routed, and followed with and without latencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fabricsim.arrays import FloatArray, IntArray
from fabricsim.fabric import Fabric
from fabricsim.patterns.schedule import Order
from fabricsim.routing import Routes
from fabricsim.solver.dag import Times, dag_times


@dataclass(frozen=True, eq=False)
class Ordered:
    """How transfers that wait for others went.

    Attributes
    ----------
    times : Times
        With all latencies.
    time_s, transfer_time_s : float
        When the last has arrived, and when it would have without latencies.
    moved : (moved,) ints
        The transfers that touched the network.
    routes : Routes
        Of these.
    """

    times: Times
    time_s: float
    transfer_time_s: float
    moved: IntArray
    routes: Routes


def ordered(
    fabric: Fabric,
    src: IntArray,
    dst: IntArray,
    size: FloatArray,
    start: FloatArray,
    order: Order,
    route: Callable[[IntArray, IntArray], Routes],
    certify: bool,
) -> Ordered:
    """Run transfers, each of which starts as soon as what it waits for has arrived.

    Parameters
    ----------
    fabric : Fabric
    src, dst : (transfers,) ints
        Nodes; where they are the same, nothing moves.
    size : (transfers,) floats
        Bytes.
    start : (transfers,) floats
        Seconds before which the transfer does not start.
    order : Order
    route : callable
        Nodes of pairs -> their routes.
    certify : bool
        Whether to check the rates at every event.
    """
    moved = np.flatnonzero(src != dst)
    pair = src[moved].astype(np.int64) * fabric.nodes + dst[moved]
    pairs, row = np.unique(pair, return_inverse=True)
    of_pairs = route(pairs // fabric.nodes, pairs % fabric.nodes)
    routes = Routes(of_pairs.matrix[row], of_pairs.latency[row])
    latency = np.zeros(len(src))
    latency[moved] = routes.latency + fabric.message_latency
    length = np.zeros(len(src), np.int64)
    length[moved] = np.diff(routes.matrix.indptr)
    matrix = sparse.csr_array(
        (routes.matrix.data, routes.matrix.indices, np.append(0, np.cumsum(length))),
        shape=(len(src), fabric.links),
    )

    def follow(delays: FloatArray | None, checked: bool) -> Times:
        return dag_times(
            matrix,
            fabric.capacity,
            size,
            order.before,
            order.after,
            start=start,
            delay=order.delay,
            latency=delays,
            certify=checked,
        )

    times = follow(latency, certify)
    bare = follow(None, False) if latency.any() else times
    return Ordered(
        times,
        float((times.finish + latency).max(initial=0.0)),
        float(bare.finish.max(initial=0.0)),
        moved,
        routes,
    )
