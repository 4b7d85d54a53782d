"""The base of all parameter models, and the types of their fields.

A builder's or a pattern's parameters are a pydantic model derived from `Parameters`. Quantities
are given as text with a unit and are SI floats once validated; a number without a unit is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from fabricsim import units


class Parameters(BaseModel):
    """Parameters of a builder or a pattern: frozen, and no field that is not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _quantity(unit: str) -> BeforeValidator:
    return BeforeValidator(lambda text: units.parse(text, unit))


Bandwidth = Annotated[float, _quantity("B/s"), Field(gt=0)]
"""Bytes per second, in one direction, above zero."""

Size = Annotated[float, _quantity("B"), Field(ge=0)]
"""Bytes."""

Duration = Annotated[float, _quantity("s"), Field(ge=0)]
"""Seconds."""

Count = Annotated[int, Field(ge=1, strict=True)]
"""How many there are of something: at least one."""


def _from_folder(path: object, info: ValidationInfo) -> object:
    """Let a relative path start at the folder of the file that gives it."""
    if not isinstance(path, str | Path):
        raise ValueError(f"a path must be text, not {path!r}")
    return info.context["folder"] / path if info.context else path


FilePath = Annotated[Path, BeforeValidator(_from_folder)]
"""The path of a file; a relative one starts at the file that gives it."""


def as_list(value: object) -> object:
    """Let one figure stand for a list of one, before validation."""
    return value if isinstance(value, list | tuple) else [value]
