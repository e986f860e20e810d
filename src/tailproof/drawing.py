"""What all pictures share: panels, colours, and curves with their band."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "PALETTE",
    "READING",
    "PlotOptions",
    "Show",
    "band",
    "canvas",
    "legend_columns",
    "plain",
    "reading",
]

Show = Literal["spread", "mean"]
"""What a curve and its band are: median and 10–90 % of the paths, or the mean and its interval."""


class PlotOptions(TypedDict, total=False):
    """How curves are drawn, see `tailproof.figures.regret_figure`."""

    show: Show
    level: float
    log: Literal["", "x", "y", "xy"]
    xlim: tuple[float, float]
    ylim: tuple[float, float]
    policies: Sequence[str]
    metric: str


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
"""The colours, distinguishable with any kind of colour vision.

After Okabe and Ito, with wine in place of their yellow.
"""


def canvas(
    rows: int, columns: int, *, height: float = 2.6, share: bool = True
) -> "tuple[Figure, Any]":
    """Return a figure and its panels; two columns are as wide as a printed page."""
    from tailproof.notebook_figure import NotebookFigure

    width = max((3.5 if columns <= 2 else 2.7) * columns, 5.2)
    figure = NotebookFigure(figsize=(width, height * rows), dpi=150)
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
    show: Show = "spread",
    level: float = 0.95,
) -> None:
    """Draw curves of shape (paths, points).

    "spread" is their median, 10–90 % band, and mean as thin dashes; fewer than five paths get no
    band. "mean" is their mean with Student's interval of the mean at each point, from two paths on.
    Later lines are drawn below earlier ones; with `crowded`, lines have gaps through which the
    lines below can be seen.
    """
    colour = PALETTE[number % len(PALETTE)]
    style = _GAPS[number % len(_GAPS)] if crowded else ("-", "-.")[number // len(PALETTE) % 2]
    n, mean = len(sample), sample.mean(axis=0)
    if show == "mean":
        half = stdtrit(n - 1, (1 + level) / 2) * sample.std(axis=0, ddof=1) / n**0.5 if n > 1 else 0
        low, middle, high, banded = mean - half, mean, mean + half, n > 1
    else:
        low, middle, high = np.quantile(sample, (0.1, 0.5, 0.9), axis=0)
        banded = n >= 5
    if banded:
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(x, middle, linestyle=style, color=colour, label=label, zorder=3 - 0.01 * number)
    if show == "spread":
        axes.plot(x, mean, "--", color=colour, linewidth=0.7)


_GAPS: tuple[Any, ...] = ("-", (0, (6, 6)), (0, (4, 2, 1, 2)), (3, (2, 4)))
"""Line styles whose gaps lie in different places, for lines that cover one another."""


READING = "median (line), 10–90 % (band, from five paths on), mean (thin dashes)"
"""How to read what `band` draws."""


def reading(show: Show = "spread", level: float = 0.95) -> str:
    """Return how to read what `band` draws.

    >>> reading("mean")
    'mean (line) with its 95 % interval at each point (band)'
    """
    mean = f"mean (line) with its {100 * level:g} % interval at each point (band)"
    return READING if show == "spread" else mean


_LEGEND_COLUMN = 4.8
"""The line of a legend's entry, and the gaps beside it, in font sizes, as Matplotlib draws them."""


def legend_columns(figure: "Figure", names: Sequence[str], size: float = 8) -> int:
    """Return how many columns of a legend fit into the width of a figure, at most five.

    >>> figure, _ = canvas(1, 1)
    >>> legend_columns(figure, ["UCB1", "OFUL"]), legend_columns(figure, ["a long name " * 5] * 3)
    (2, 1)
    """
    from matplotlib.textpath import TextPath

    widths = [
        TextPath((0, 0), name.replace("$", "S"), size=size).get_extents().width for name in names
    ]
    for columns in range(min(len(names), 5), 1, -1):
        texts = sum(max(part) for part in np.array_split(widths, columns))
        if texts + _LEGEND_COLUMN * size * columns <= 72 * figure.get_figwidth():
            return columns
    return 1


def plain(legend: Any) -> None:
    """Show dollar signs in names as they are."""
    for text in legend.get_texts():
        text.set_parse_math(False)
