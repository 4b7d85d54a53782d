"""Routing: Fabric and pairs of nodes -> Routes. This module holds the names; see `find`.

`shortest` finds the links that lie on shortest paths; `split` divides traffic over all of them,
`single_path` picks one path for each flow; `optimal` splits as a linear program says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fabricsim.arrays import IntArray
from fabricsim.errors import unknown_name
from fabricsim.fabric import Fabric


@dataclass(frozen=True, eq=False)
class Routes:
    """Where flows go.

    Attributes
    ----------
    matrix : (flows, links) CSR array
        Fraction of the flow's rate that the link carries.
    latency : (flows,) floats
        Seconds from end to end: links and the nodes passed through; the longest of the paths used.
    """

    matrix: sparse.csr_array
    latency: NDArray[np.float64]


@dataclass(frozen=True)
class Routing:
    """One way to route.

    `route` takes the fabric, the nodes that flows start and end at, and a seed; where `by_size`
    says so, the flows' bytes in place of the seed: then rates are to be shared in proportion to
    sizes. `cables_alike` says that parallel cables carry the same load, so that they may be
    bundled beforehand.
    """

    route: Callable[[Fabric, IntArray, IntArray, Any], Routes]
    cables_alike: bool
    by_size: bool = False


DEFAULT = "spray"


def names() -> list[str]:
    """Names of all routings."""
    return list(_registry())


def find(name: str) -> Routing:
    """Find a routing by name.

    Raises
    ------
    SpecError
        No routing of that name.
    """
    registry = _registry()
    if name not in registry:
        raise unknown_name("routing", name, registry)
    return registry[name]


def _registry() -> dict[str, Routing]:
    from fabricsim.routing import optimal, single_path, split

    return {
        "spray": Routing(split.spray, cables_alike=True),
        "spray-uniform": Routing(split.spray_uniform, cables_alike=True),
        "ecmp": Routing(single_path.ecmp, cables_alike=False),
        "single": Routing(single_path.single, cables_alike=False),
        "dimension-order": Routing(split.dimension_order, cables_alike=True),
        "optimal": Routing(optimal.optimal, cables_alike=True, by_size=True),
    }
