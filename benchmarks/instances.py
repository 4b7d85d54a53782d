"""Instances for the benchmarks of the solvers: made from a seed, the same on every machine."""

import numpy as np
from scipy import sparse

from fabricsim.arrays import FloatArray


def fat_tree(k: int, flows: int, seed: int = 0) -> sparse.csr_array:
    """Random pairs of hosts of a k-ary fat-tree (k^3/4 hosts), each on one random shortest path.

    Returns
    -------
    (flows, 6 k^3 / 4) CSR array of ones
        Host, edge and aggregation links up, then down: k^3/4 of each.
    """
    rng = np.random.default_rng(seed)
    half, hosts = k // 2, k**3 // 4
    src = rng.integers(0, hosts, flows)
    dst = (src + rng.integers(1, hosts, flows)) % hosts
    over, core = rng.integers(0, half, flows), rng.integers(0, half, flows)
    edge, other_edge, pod, other_pod = src // half, dst // half, src // half**2, dst // half**2
    everyone = np.arange(flows)
    leaves = np.flatnonzero(edge != other_edge)
    leaves_pod = np.flatnonzero(pod != other_pod)
    hops = [
        (everyone, src),
        (leaves, hosts + edge * half + over),
        (leaves_pod, 2 * hosts + (pod * half + over) * half + core),
        (leaves_pod, 3 * hosts + (other_pod * half + over) * half + core),
        (leaves, 4 * hosts + other_edge * half + over),
        (everyone, 5 * hosts + dst),
    ]
    row = np.concatenate([who for who, _ in hops])
    col = np.concatenate([link[who] for who, link in hops])
    routes = sparse.csr_array((np.ones(len(row)), (row, col)), shape=(flows, 6 * hosts))
    routes.sort_indices()
    return routes


def skewed_all_to_all(endpoints: int) -> tuple[sparse.csr_array, FloatArray, FloatArray]:
    """All pairs over one ideal switch of 1 GB/s an endpoint, with log-normal sizes.

    Returns
    -------
    routes : (n (n - 1), 2 n) CSR array
        Pairs in row order without the diagonal; links up, then down.
    capacity : (2 n,) floats
    size : (n (n - 1),) floats
        Bytes.
    """
    i, j = np.nonzero(~np.eye(endpoints, dtype=bool))
    flows = len(i)
    links = np.column_stack([i, endpoints + j]).ravel()
    ends = np.arange(0, 2 * flows + 1, 2)
    routes = sparse.csr_array((np.ones(2 * flows), links, ends), shape=(flows, 2 * endpoints))
    size = np.random.default_rng(1).lognormal(0, 1, flows) * 1e9
    return routes, np.full(2 * endpoints, 1e9), size
