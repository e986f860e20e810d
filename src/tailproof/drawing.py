"""What all pictures share: panels, colours, and curves with their band."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PALETTE", "READING", "band", "canvas", "plain"]

PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#882255",
    "#999999",
)
"""The colours, distinguishable with any kind of colour vision."""
"""After Okabe and Ito: distinct for any kind of colour vision; wine instead of their yellow."""


def canvas(
    rows: int, columns: int, *, height: float = 2.6, share: bool = True
) -> "tuple[Figure, Any]":
    """Return a figure and its panels; two columns are as wide as a printed page."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(3.5 * columns, 5.2), height * rows), dpi=150)
    figure.set_layout_engine("constrained", wspace=0.06)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
    for axes in panels.flat:
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=8, which="both")
    return figure, panels


def band(
    axes: "Axes",
    x: Sequence[float] | NDArray[np.generic],
    sample: NDArray[np.float64],
    number: int,
    label: str | None = None,
    *,
    crowded: bool = False,
) -> None:
    """Draw curves of shape (paths, points): their median, 10–90 % band, and mean as thin dashes.

    Fewer than five paths get no band. Later lines are drawn below earlier ones; with `crowded`,
    lines have gaps through which those below can be seen.
    """
    colour = PALETTE[number % len(PALETTE)]
    style = _GAPS[number % len(_GAPS)] if crowded else ("-", "-.")[number // len(PALETTE) % 2]
    low, middle, high = np.quantile(sample, (0.1, 0.5, 0.9), axis=0)
    if len(sample) >= 5:
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(x, middle, linestyle=style, color=colour, label=label, zorder=3 - 0.01 * number)
    axes.plot(x, sample.mean(axis=0), "--", color=colour, linewidth=0.7)


_GAPS: tuple[Any, ...] = ("-", (0, (6, 6)), (0, (4, 2, 1, 2)), (3, (2, 4)))
"""Line styles whose gaps lie in different places, for lines that cover one another."""


READING = "median (line), 10–90 % (band, from five paths on), mean (thin dashes)"
"""How to read what `band` draws."""


def plain(legend: Any) -> None:
    """Show dollar signs in names as they are."""
    for text in legend.get_texts():
        text.set_parse_math(False)
