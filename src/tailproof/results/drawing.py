"""Pictures of results; nothing is simulated here."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tailproof.checks import require
from tailproof.drawing import PALETTE, READING, band, canvas, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tailproof.results.identification import Identification
    from tailproof.results.regret import Result

__all__ = ["pulls_figure", "regret_figure"]


def regret_figure(results: "Mapping[str, Result]") -> "Figure":
    """Draw cumulative regret against pulls, one panel per titled result.

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
            number, crowded = order.index(name), len(order) > 4
            band(axes, result.pulls, curves.regret, number, name, crowded=crowded)
        many = f"{result.settings['paths']} paths"
        heading = f"{title}, {many}" if title else many
        axes.set_title(heading, fontsize=10, parse_math=False)
        axes.set_xlim(0, result.pulls[-1])
    panels[0, 0].set_ylim(bottom=0)
    for axes in panels[:, 0]:
        axes.set_ylabel("cumulative regret", fontsize=9)
    for axes in panels[-1]:
        axes.set_xlabel("pulls", fontsize=9)
    legend = figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=min(len(order), 5),
        fontsize=8,
        frameon=False,
        title=READING,
        title_fontsize=8,
    )
    plain(legend)
    return figure


def pulls_figure(panels: "Mapping[str, Mapping[float, Identification]]") -> "Figure":
    """Draw the pulls until an answer, one panel per titled axis such as δ, the gap or df.

    The line is the mean over the paths, the band goes from 10 to 90 %. An open marker means that
    some paths found no answer, so that the mean is only a lower bound.

    >>> from tailproof import bestarm, environments, identify, noise
    >>> bandit = environments.near_tie(noise.Normal(), angle=1.0)
    >>> found = {
    ...     delta: identify(
    ...         {"LinGapE": bestarm.LinGapE(norm_bound=2)},
    ...         bandit, delta=delta, paths=4, max_pulls=1000,
    ...     )
    ...     for delta in (0.1, 0.01)
    ... }
    >>> len(pulls_figure({"δ": found}).axes)
    1
    """
    require(len(panels) > 0, "panels", "at least one panel", panels)
    for title, points in panels.items():
        require(len(points) > 0, f"panels[{title!r}]", "at least one identification", points)
    figure, (plots,) = canvas(1, len(panels), height=3.0, share=False)
    every = [result for points in panels.values() for result in points.values()]
    order = list(dict.fromkeys(name for result in every for name in result.verdicts))
    for axes, (title, points) in zip(plots, panels.items(), strict=True):
        for number, name in enumerate(order):
            at = [x for x, result in sorted(points.items()) if name in result.verdicts]
            pulls = [points[x].verdicts[name].pulls for x in at]
            colour = PALETTE[number % len(PALETTE)]
            low, high = (np.array([np.quantile(p, q) for p in pulls]) for q in (0.1, 0.9))
            axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
            mean = [p.mean() for p in pulls]
            axes.plot(at, mean, "-", color=colour, label=name)
            for x, y in zip(at, mean, strict=True):
                fill = "white" if points[x].undecided(name) else colour
                axes.plot(x, y, "o", color=colour, markerfacecolor=fill, markersize=4)
        axes.set_xscale("log")
        if max(points) < 100 * min(points):  # too few decades for ticks of their own
            axes.set_xticks(sorted(points), [f"{x:.2g}" for x in sorted(points)])
            axes.set_xticks([], minor=True)
        axes.set_yscale("log")
        axes.set_xlabel(title, fontsize=9, parse_math=False)
    heights = np.array([axes.get_ylim() for axes in plots])
    for axes in plots:
        axes.set_ylim(heights.min(), heights.max())
    plots[0].set_ylabel("pulls until an answer", fontsize=9)
    legend = figure.legend(
        *plots[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=min(len(order), 5),
        fontsize=8,
        frameon=False,
    )
    plain(legend)
    return figure
