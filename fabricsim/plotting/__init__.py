"""Plotting: results -> Matplotlib figures, all in one style. Nothing is computed here.

Each function returns a figure; `save` writes it, as PNG, SVG or PDF by the ending of the name.
"""

from fabricsim.plotting.sizes import busbw_against_size
from fabricsim.plotting.style import save

__all__ = ["busbw_against_size", "save"]
