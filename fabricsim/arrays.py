"""Array types, and the one reduction that NumPy has no well-named function for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]


def sum_at(index: IntArray, values: FloatArray, length: int) -> FloatArray:
    """Sum the values that share an index.

    Parameters
    ----------
    index : (n,) ints
        Where each value goes; at least 0 and below `length`.
    values : (n,) floats
    length : int
        Entries of the result.

    Returns
    -------
    (length,) floats

    Examples
    --------
    >>> sum_at(np.array([0, 2, 0]), np.array([1.0, 5.0, 3.0]), 4)
    array([4., 0., 5., 0.])
    """
    return np.bincount(index, values, minlength=length).astype(np.float64, copy=False)
