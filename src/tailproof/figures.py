"""Results to pictures; nothing is simulated here."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tailproof.checks import require
from tailproof.result import Result

__all__ = ["PALETTE", "band", "canvas", "regret_figure"]

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
"""After Okabe and Ito, told apart with any kind of colour vision; wine in place of their yellow."""


def canvas(
    rows: int, columns: int, *, height: float = 2.6, share: bool = True
) -> tuple[Figure, Any]:
    """Return a figure of panels, two columns of a printed page wide, and the panels."""
    figure = Figure(figsize=(max(3.5 * columns, 5.2), height * rows), dpi=150)
    figure.set_layout_engine("constrained", wspace=0.06)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
    for axes in panels.flat:
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=8)
    return figure, panels


def band(
    axes: Axes,
    x: Sequence[float] | NDArray[np.generic],
    sample: NDArray[np.float64],
    place: int,
    label: str | None = None,
) -> None:
    """Draw a sample of curves, of shape (paths, points): median, 10–90 % band, dashed mean."""
    colour, style = PALETTE[place % len(PALETTE)], ("-", "-.")[place // len(PALETTE) % 2]
    low, middle, high = np.quantile(sample, (0.1, 0.5, 0.9), axis=0)
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(x, middle, style, color=colour, label=label)
    axes.plot(x, sample.mean(axis=0), "--", color=colour, linewidth=0.9)


def regret_figure(results: Mapping[str, Result]) -> Figure:
    """Draw cumulative regret against pulls, one panel for each titled result.

    The line is the median over the paths, the band goes from 10 to 90 %, the dashes are the mean.

    >>> from tailproof import Uniform, environments, noise, simulate
    >>> bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3)
    >>> result = simulate({"uniform": Uniform()}, bandit, horizon=50, paths=4)
    >>> len(regret_figure({"Cauchy": result}).axes)
    1
    """
    require(len(results) > 0, "results", "at least one result", results)
    columns = min(len(results), 2)
    figure, panels = canvas(-(-len(results) // columns), columns, height=2.9)
    for axes in panels.flat[len(results) :]:
        axes.remove()
    order = list(dict.fromkeys(name for result in results.values() for name in result.curves))
    for axes, (title, result) in zip(panels.flat, results.items(), strict=False):
        for name, curves in result.curves.items():
            band(axes, result.pulls, curves.regret, order.index(name), name)
        axes.set_title(title, fontsize=10)
        axes.set_xlim(0, result.pulls[-1])
    panels[0, 0].set_ylim(bottom=0)
    for axes in panels[:, 0]:
        axes.set_ylabel("cumulative regret", fontsize=9)
    for axes in panels[-1]:
        axes.set_xlabel("pulls", fontsize=9)
    counts = sorted({result.settings["paths"] for result in results.values()})
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=min(len(order), 5),
        fontsize=8,
        frameon=False,
        title=f"median (line), 10–90 % (band), mean (dashes); paths: {', '.join(map(str, counts))}",
        title_fontsize=8,
    )
    return figure
