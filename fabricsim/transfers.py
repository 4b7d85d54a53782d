"""Transfers: who sends how much to whom, when, and after what. Only data.

A transfer from a rank to itself, or of no bytes, takes no time on the network: it stands for a
computation, which takes its `delay`, or for a point where others meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabricsim.arrays import FloatArray, IntArray


def _none() -> IntArray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Transfers:
    """Transfers among ranks, each of which may wait for others.

    Attributes
    ----------
    ranks : int
    src, dst : (transfers,) ints
        Ranks, 0 to `ranks` - 1.
    size : (transfers,) floats
        Bytes.
    start : (transfers,) floats
        Seconds before which the transfer does not start.
    delay : (transfers,) floats
        Seconds between the moment when nothing holds the transfer back and its start.
    before, after : (pairs,) ints
        Transfer `after[i]` waits until transfer `before[i]` has arrived.
    """

    ranks: int
    src: IntArray
    dst: IntArray
    size: FloatArray
    start: FloatArray
    delay: FloatArray
    before: IntArray
    after: IntArray

    @property
    def ordered(self) -> bool:
        """Whether any transfer waits for another, or for itself."""
        return len(self.before) > 0 or bool((self.delay > 0).any())


def transfers(
    ranks: int,
    src: IntArray,
    dst: IntArray,
    size: FloatArray,
    *,
    start: FloatArray | None = None,
    delay: FloatArray | None = None,
    before: IntArray | None = None,
    after: IntArray | None = None,
) -> Transfers:
    """Make `Transfers` of what is known; starts and delays of 0, and no order, if left out."""
    return Transfers(
        ranks,
        src.astype(np.int32),
        dst.astype(np.int32),
        size.astype(np.float64),
        np.zeros(len(src)) if start is None else start,
        np.zeros(len(src)) if delay is None else delay,
        _none() if before is None else before,
        _none() if after is None else after,
    )
