"""Transfers that switches add up, or copy, on their way: the links that they then load."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fabricsim.arrays import FloatArray, IntArray
from fabricsim.errors import SpecError
from fabricsim.fabric import Fabric
from fabricsim.patterns.schedule import COPY, SUM


def combined(
    fabric: Fabric,
    src: IntArray,
    dst: IntArray,
    size: FloatArray,
    combine: IntArray,
    routes: sparse.csr_array,
) -> tuple[sparse.csr_array, FloatArray]:
    """Take transfers together that switches add up (all to a node) or copy (all from a node).

    What is added up crosses the last link once, what is copied the first, however many endpoints
    take part; so the load of the whole on a link is the most that one of its transfers puts there.
    The node's own part goes up to the switch, or comes down from it, as well.

    Parameters
    ----------
    fabric : Fabric
    src, dst : (transfers,) ints
        Nodes; every node that sends also gets, and the other way round.
    size : (transfers,) floats
        Bytes, the same for all transfers that are taken together.
    combine : (transfers,) ints
        `SUM` or `COPY`.
    routes : (transfers, links) sparse array

    Returns
    -------
    routes : (wholes, links) sparse array
    size : (wholes,) floats

    Raises
    ------
    SpecError
        Some transfer takes other than two links: no one switch sees all of a whole.
    """
    if not np.allclose(routes.sum(axis=1), 2.0):
        raise SpecError(
            "traffic.algorithm = 'in-network' needs groups whose ranks hang on the same switches; "
            "take a smaller traffic.group_size"
        )
    owner = np.where(combine == SUM, dst, src).astype(np.int64)
    wholes, first, whole = np.unique(owner * 3 + combine, return_index=True, return_inverse=True)
    entry = routes.tocoo()
    up, down = (
        fabric.link_src[entry.col] == src[entry.row],
        fabric.link_dst[entry.col] == dst[entry.row],
    )
    key = np.concatenate(
        [wholes[whole[entry.row]], src[entry.row][up] * 3 + SUM, dst[entry.row][down] * 3 + COPY]
    )
    link = np.concatenate([entry.col, entry.col[up], entry.col[down]])
    share = np.concatenate([entry.data, entry.data[up], entry.data[down]])
    known = np.isin(key, wholes)
    key, link, share = key[known], link[known], share[known]
    order = np.lexsort((link, key))
    key, link, share = key[order], link[order], share[order]
    begins = np.flatnonzero(np.r_[True, (np.diff(key) != 0) | (np.diff(link) != 0)])
    most = np.maximum.reduceat(share, begins)
    row = np.searchsorted(wholes, key[begins])
    shape = (len(wholes), fabric.links)
    return sparse.csr_array((most, (row, link[begins])), shape=shape), size[first]
