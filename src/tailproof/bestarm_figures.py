"""Identifications to pictures; nothing is simulated here."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from tailproof.checks import require
from tailproof.figures import PALETTE
from tailproof.verdicts import Identification

__all__ = ["pulls_figure"]


def pulls_figure(panels: Mapping[str, Mapping[float, Identification]]) -> Figure:
    """Draw the pulls until an answer, one panel for each titled axis such as δ, the gap or df.

    The line is the mean over the paths, the band goes from 10 to 90 %. An open marker means that
    some paths were left undecided, so that the mean is only a lower bound.

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
    figure = Figure(figsize=(4.2 * len(panels), 3.3), dpi=150, layout="constrained")
    every = [found for points in panels.values() for found in points.values()]
    order = list(dict.fromkeys(name for found in every for name in found.verdicts))
    plots = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (title, points) in zip(plots, panels.items(), strict=True):
        for place, name in enumerate(order):
            at = [x for x, found in sorted(points.items()) if name in found.verdicts]
            pulls = [points[x].verdicts[name].pulls for x in at]
            colour = PALETTE[place % len(PALETTE)]
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
            axes.minorticks_off()
        axes.set_yscale("log")
        axes.set_xlabel(title, fontsize=9)
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=8)
    plots[0].set_ylabel("pulls until an answer", fontsize=9)
    plots[0].legend(fontsize=8, frameon=False)
    return figure
