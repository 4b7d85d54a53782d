"""Grid: the ranks of a group as a box of axes, and rings through it.

Algorithms that go axis by axis (tray, rack; x, y, z) work on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from fabricsim.arrays import IntArray
from fabricsim.errors import SpecError
from fabricsim.patterns.schedule import CORE, Groups


@dataclass(frozen=True, eq=False)
class Grid:
    """Axes of more than one rank, the one along which ranks are numbered first comes first.

    Attributes
    ----------
    axes : tuple of str
    sizes : tuple of int
    index : (ranks, axes) ints
        Place of each rank of a group.
    rings : tuple of bool
        Whether neighbours along the axis are joined, the last to the first.
    columns : tuple of int
        Which axis of the placement each is.
    halved : tuple of bool
        Whether the two ranks of the axis are neighbours on a longer ring, with one link of two.
    """

    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    index: IntArray
    rings: tuple[bool, ...]
    columns: tuple[int, ...]
    halved: tuple[bool, ...]

    @property
    def strides(self) -> IntArray:
        """What a step along each axis adds to the number of a place."""
        return np.cumprod((1, *self.sizes))[:-1]

    @property
    def rank_at(self) -> IntArray:
        """(places,) ints: the rank at each place; places count along the first axis first."""
        return np.argsort(self.index @ self.strides)

    def moved(self, axis: int, hops: IntArray | int) -> IntArray:
        """(ranks,) ints: the rank so many hops further along an axis, round and round."""
        index = self.index.copy()
        index[:, axis] = (index[:, axis] + hops) % self.sizes[axis]
        moved: IntArray = self.rank_at[index @ self.strides]
        return moved


def grid(groups: Groups) -> Grid | None:
    """Find the box that a group fills; None where it fills none, or groups are not alike."""
    place = groups.placement
    if not len(place.axes):
        return None
    where = place.coordinates.reshape(groups.count, groups.size, len(place.axes))
    moved = where - where[:1]
    if (moved != moved[:, :1]).any():
        return None
    axes = []
    for axis, name in enumerate(place.axes):
        values, index = np.unique(where[0, :, axis], return_inverse=True)
        size, extent = len(values), int(place.coordinates[:, axis].max()) + 1
        if size == 1:
            continue
        # Two neighbours on a longer ring have one cable of the two; more have no way round.
        pair = size == 2 and values[1] - values[0] in (1, extent - 1)
        ring = place.rings[axis] and (size == extent or pair)
        one_on = int(np.flatnonzero(index == 1)[0])
        axes.append((one_on, name, index, ring, axis, pair and extent > 2))
    axes.sort(key=lambda found: found[0])
    sizes = tuple(int(found[2].max()) + 1 for found in axes)
    index = np.array([found[2] for found in axes], np.int64).reshape(len(axes), groups.size).T
    box = Grid(
        tuple(found[1] for found in axes),
        sizes,
        index,
        tuple(found[3] for found in axes),
        tuple(found[4] for found in axes),
        tuple(bool(found[5]) for found in axes),
    )
    places = np.unique(index @ box.strides)
    return box if len(places) == groups.size == prod(sizes) else None


def levels(groups: Groups) -> Grid:
    """Give the levels that the groups span.

    Raises
    ------
    SpecError
        There are not two, or the groups do not fill them.
    """
    box = grid(groups)
    if box is None:
        raise SpecError("the groups do not fill levels of the fabric evenly")
    if len(box.sizes) < 2:
        raise SpecError("the groups lie within one level of the fabric")
    return box


def switched_levels(groups: Groups) -> Grid:
    """Give the levels that the groups span, where they are no dimensions of a torus.

    Raises
    ------
    SpecError
        There are not two, the groups do not fill them, or they are a torus.
    """
    box = levels(groups)
    if any(box.rings):
        raise SpecError("the levels are dimensions of a torus, for which there is 'torus'")
    return box


def whole_torus(groups: Groups) -> Grid:
    """Give the torus that each group is; ranks that share a chip are an axis more.

    Raises
    ------
    SpecError
        The groups are none.
    """
    box = torus_or_none(groups)
    if box is None:
        raise SpecError("the groups are no whole tori")
    return box


def torus_or_none(groups: Groups) -> Grid | None:
    """Give the torus that each group is, or None."""
    box = grid(groups)
    return box if box is not None and _is_torus(box) else None


def even_torus(groups: Groups) -> Grid:
    """Give the torus that each group is, of one rank a chip, and even along every axis.

    Raises
    ------
    SpecError
        The groups are none.
    """
    box = whole_torus(groups)
    if not all(box.rings):
        raise SpecError("it takes one rank a chip (ranks_per_chip = 1)")
    odd = [f"{axis} has {size}" for axis, size in zip(box.axes, box.sizes, strict=True) if size % 2]
    if odd:
        raise SpecError(f"every axis must be even, and {odd[0]}")
    return box


def _is_torus(box: Grid) -> bool:
    ring = [ring or axis == CORE for axis, ring in zip(box.axes, box.rings, strict=True)]
    return any(box.rings) and all(ring)


def ring_order(groups: Groups) -> IntArray:
    """Order the ranks of a group round a ring.

    On a torus the ring goes from neighbour to neighbour (a Hamiltonian cycle), where the group is
    a whole torus; elsewhere ranks follow each other by number. Ranks that share a chip are
    consecutive.

    Returns
    -------
    (ranks,) ints
        Ranks of a group.
    """
    box = torus_or_none(groups)
    if box is None:
        return np.arange(groups.size)
    places: IntArray = np.zeros((1, len(box.sizes)), np.int64)
    rings = [axis for axis in range(len(box.sizes)) if box.rings[axis]]
    for axis in rings:
        places = _wound(places, axis, box.sizes[axis])
    for axis in set(range(len(box.sizes))) - set(rings):
        places = np.repeat(places, box.sizes[axis], axis=0)
        places[:, axis] = np.tile(np.arange(box.sizes[axis]), len(places) // box.sizes[axis])
    order: IntArray = box.rank_at[places @ box.strides]
    return order


def _wound(cycle: IntArray, axis: int, size: int) -> IntArray:
    """Wind a cycle of places and a ring along a further axis into one cycle.

    The product of two rings of m and k, in rows: each row is gone round in one direction or the
    other, which ends one place before, or after, where it began; over all rows these shifts must
    cancel, or sum to once around. Equal numbers of both do if rows are even in number; where all
    is odd, the rows are made the longer way, and as many shifts are left over as a row is long.
    """
    m = len(cycle)
    if m == 1:
        rows, length, swap = 1, size, True
    else:
        swap = size % 2 == 1 and (m % 2 == 0 or m > size)
        rows, length = (m, size) if swap else (size, m)
    left_over = 0 if rows % 2 == 0 else length
    forward = np.arange(rows) < (rows + left_over) // 2
    step = np.where(forward, 1, -1)
    begin = np.concatenate([[0], np.cumsum(-step)[:-1]])
    place = (begin[:, None] + step[:, None] * np.arange(length)) % length
    row = np.repeat(np.arange(rows), length)
    along_cycle, along_axis = (row, place.ravel()) if swap else (place.ravel(), row)
    wound = cycle[along_cycle].copy()
    wound[:, axis] = along_axis
    return wound
