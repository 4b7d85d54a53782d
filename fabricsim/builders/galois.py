"""Arithmetic of finite fields GF(p^k), as tables: what MMS graphs are made of.

The elements are numbered 0 to q - 1; the digits of a number in base p are the coefficients of a
polynomial. Only for fields that are small enough for a q x q table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from fabricsim.arrays import IntArray


@dataclass(frozen=True, eq=False)
class Field:
    """A finite field of `order` q.

    Attributes
    ----------
    add, multiply : (q, q) ints
        Sum and product of two elements.
    powers : (q - 1,) ints
        1, x, x^2, ... for a primitive element x: every element but 0, once.
    """

    order: int
    add: IntArray
    multiply: IntArray
    powers: IntArray


def prime_power(q: int) -> tuple[int, int] | None:
    """Give the prime p and the exponent k where q = p^k; None where there are none.

    Examples
    --------
    >>> prime_power(27), prime_power(28)
    ((3, 3), None)
    """
    if q < 2:
        return None
    p = next((d for d in range(2, int(q**0.5) + 1) if q % d == 0), q)
    k = 0
    while q % p == 0:
        q, k = q // p, k + 1
    return (p, k) if q == 1 else None


def field(q: int) -> Field:
    """Build the field of q elements.

    Raises
    ------
    ValueError
        q is no prime power.

    Examples
    --------
    In GF(4), with x^2 = x + 1:

    >>> four = field(4)
    >>> int(four.add[2, 3]), int(four.multiply[2, 2]), four.powers.tolist()
    (1, 3, [1, 2, 3])
    """
    found = prime_power(q)
    if found is None:
        raise ValueError(f"{q} is no prime power")
    p, k = found
    digits = np.arange(q)[:, None] // p ** np.arange(k) % p
    weight = p ** np.arange(k)
    add = (digits[:, None] + digits) % p @ weight
    for tail in product(range(p), repeat=k):
        # x^k = tail: try polynomials until x, or for k = 1 the number itself, is primitive.
        by_x = digits @ _shift(np.array(tail), p, k) % p @ weight if k > 1 else None
        powers = _powers(by_x, q) if by_x is not None else _powers(np.arange(q) * tail[0] % p, q)
        if powers is not None:
            break
    else:
        raise AssertionError("every finite field has a primitive element")
    multiply = np.zeros((q, q), np.int_)
    log = np.zeros(q, np.int_)
    log[powers] = np.arange(q - 1)
    nonzero = np.arange(1, q)
    exponent = (log[nonzero][:, None] + log[nonzero]) % (q - 1)
    multiply[1:, 1:] = powers[exponent]
    return Field(q, add, multiply, powers)


def _shift(tail: IntArray, p: int, k: int) -> IntArray:
    """Matrix that multiplies digits by x, where x^k = tail."""
    matrix = np.zeros((k, k), np.int_)
    matrix[np.arange(k - 1), np.arange(1, k)] = 1
    matrix[k - 1] = tail % p
    return matrix


def _powers(step: IntArray, q: int) -> IntArray | None:
    """Follow 1 -> step[1] -> ... : all q - 1 elements but 0, or None where it comes round early."""
    powers = [1]
    while len(powers) < q and (following := int(step[powers[-1]])) != 1:
        powers.append(following)
    return np.array(powers) if len(powers) == q - 1 and 0 not in powers else None
