"""What can go wrong, in words for people. Every error of fabricsim descends from FabricsimError."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FabricsimError(Exception):
    """Base of all errors that fabricsim raises on purpose: one line, fit to be shown to a user."""


class SpecError(FabricsimError, ValueError):
    """A topology, a traffic or a parameter is not as it should be.

    The message says where (file and field), what was wrong and what would be right.
    """


class FabricError(FabricsimError, ValueError):
    """A fabric's arrays do not describe a network: the message names the node or the link."""


class UnreachableError(FabricsimError, ValueError):
    """Some pair of endpoints has no path, or none that the routing may take."""


class TooLargeError(FabricsimError, ValueError):
    """The run would not fit: the message says how large it is and what to do."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> SpecError:
    """Return the error for a name that is not one of `known`, with the nearest one if any.

    Parameters
    ----------
    what : str
        What the name stands for, such as ``"topology"``.
    name : str
        The name as it was given.
    known : iterable of str
        The names that would be right.
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif names:
        hint = "known: " + ", ".join(names)
    else:
        hint = "there is none to choose from"
    return SpecError(f"unknown {what} {name!r}: {hint}")
