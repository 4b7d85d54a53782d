"""Steps of rings, which several collectives share."""

from __future__ import annotations

import numpy as np

from fabricsim.patterns.schedule import Groups, Step, tiled


def ring_steps(groups: Groups, size_B: float, rounds: int) -> tuple[Step, ...]:
    """Let every rank send to the next, the same amount in each of some rounds.

    Parameters
    ----------
    groups : Groups
    size_B : float
        Bytes that each rank sends in a round.
    rounds : int
        How many rounds there are.
    """
    n = groups.size
    if n == 1:
        return ()
    rank = np.arange(n)
    return (tiled(groups, rank, (rank + 1) % n, size_B, repeat=rounds),)
