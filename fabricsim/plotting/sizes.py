"""Bandwidth against message size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from fabricsim.plotting.style import in_units, marks, styled
from fabricsim.result import Result


def busbw_against_size(series: Mapping[str, Sequence[Result]], title: str = "") -> Figure:
    """Draw bus bandwidth against message size, with the bound of each series at its right.

    Parameters
    ----------
    series : mapping of label to results
        Runs that differ in size alone.
    title : str
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        One line a series; a tick at the right edge marks the bus bandwidth that the wires allow.
    """
    with styled():
        figure, axes = plt.subplots()
        for (label, results), (line, marker) in zip(series.items(), marks(), strict=False):
            ordered = sorted(results, key=lambda result: result.size_B)
            sizes = [result.size_B for result in ordered]
            drawn = axes.plot(
                sizes, [r.busbw_Bps for r in ordered], line, marker=marker, label=label
            )
            last = ordered[-1]
            best = last.busbw_Bps * last.time_s / last.bound_s
            axes.plot(
                [1.0],
                [best],
                "_",
                color=drawn[0].get_color(),
                markersize=14,
                markeredgewidth=2,
                transform=axes.get_yaxis_transform(),
                clip_on=False,
            )
        axes.set_xscale("log", base=2)
        in_units(axes.xaxis, "B")
        in_units(axes.yaxis, "B/s")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("size")
        axes.set_ylabel("bus bandwidth of a rank")
        axes.set_title(title)
        axes.legend(title="mark at the right: what the wires allow", title_fontsize=8.5)
        plt.close(figure)
        return figure
