"""Results to pictures; nothing is simulated here."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from tailproof.checks import require
from tailproof.result import Result

__all__ = ["PALETTE", "regret_figure"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""The colours of Okabe and Ito, told apart with any kind of colour vision."""


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
    rows = -(-len(results) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.1 * rows), dpi=150, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in panels.flat[len(results) :]:
        axes.remove()
    order = list(dict.fromkeys(name for result in results.values() for name in result.curves))
    for axes, (title, result) in zip(panels.flat, results.items(), strict=False):
        for name in result.curves:
            place = order.index(name)
            colour, style = PALETTE[place % len(PALETTE)], ("-", "-.")[place // len(PALETTE) % 2]
            low, high = result.quantile(name, 0.1), result.quantile(name, 0.9)
            axes.fill_between(result.pulls, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(result.pulls, result.median(name), style, color=colour, label=name)
            axes.plot(result.pulls, result.mean(name), "--", color=colour, linewidth=0.9)
        axes.set_title(title, fontsize=10)
        axes.set_xlim(0, result.pulls[-1])
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=8)
    panels[0, 0].set_ylim(bottom=0)
    for axes in panels[:, 0]:
        axes.set_ylabel("cumulative regret", fontsize=9)
    for axes in panels[-1]:
        axes.set_xlabel("pulls", fontsize=9)
    panels[0, 0].legend(fontsize=8, frameon=False, loc="upper left")
    paths = next(iter(results.values())).settings["paths"]
    figure.supxlabel(
        f"median (line), 10–90 % (band) and mean (dashes) of {paths} paths", fontsize=8, color="0.4"
    )
    return figure
