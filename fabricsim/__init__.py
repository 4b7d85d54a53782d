"""fabricsim: how long AI traffic takes on a scale-up or scale-out network, and why.

The names below are the public interface. They are imported when first used, so that
``import fabricsim`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fabricsim.version import __version__ as __version__

if TYPE_CHECKING:
    from fabricsim.catalog import load_topology as load_topology
    from fabricsim.catalog import load_traffic as load_traffic
    from fabricsim.errors import FabricError as FabricError
    from fabricsim.errors import FabricsimError as FabricsimError
    from fabricsim.errors import SpecError as SpecError
    from fabricsim.errors import TooLargeError as TooLargeError
    from fabricsim.errors import UnreachableError as UnreachableError
    from fabricsim.fabric import Fabric as Fabric
    from fabricsim.fabric import from_networkx as from_networkx
    from fabricsim.fabric import to_networkx as to_networkx
    from fabricsim.result import Result as Result
    from fabricsim.simulate import simulate as simulate
    from fabricsim.solver.fluid import fluid_times as fluid_times
    from fabricsim.solver.max_min import max_min_rates as max_min_rates

_HOME = {
    "load_topology": "catalog",
    "load_traffic": "catalog",
    "FabricError": "errors",
    "FabricsimError": "errors",
    "SpecError": "errors",
    "TooLargeError": "errors",
    "UnreachableError": "errors",
    "Fabric": "fabric",
    "from_networkx": "fabric",
    "to_networkx": "fabric",
    "Result": "result",
    "simulate": "simulate",
    "fluid_times": "solver.fluid",
    "max_min_rates": "solver.max_min",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fabricsim' has no attribute {name!r}")
    value = getattr(import_module(f"fabricsim.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
