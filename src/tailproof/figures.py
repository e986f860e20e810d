"""Pictures of results; nothing is simulated here."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require
from tailproof.results.identification import Identification
from tailproof.results.regret import Result
from tailproof.stats.calibration import Calibration
from tailproof.stats.diagnostics import Rewards

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "PALETTE",
    "READING",
    "band",
    "calibration_figure",
    "canvas",
    "pulls_figure",
    "regret_figure",
    "rewards_figure",
]

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
    place: int,
    label: str | None = None,
    *,
    crowded: bool = False,
) -> None:
    """Draw curves of shape (paths, points): their median, 10–90 % band, and mean as thin dashes.

    Fewer than five paths get no band. Later lines are drawn below earlier ones; with `crowded`,
    lines have gaps through which those below can be seen.
    """
    colour = PALETTE[place % len(PALETTE)]
    style = _GAPS[place % len(_GAPS)] if crowded else ("-", "-.")[place // len(PALETTE) % 2]
    low, middle, high = np.quantile(sample, (0.1, 0.5, 0.9), axis=0)
    if len(sample) >= 5:
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(x, middle, linestyle=style, color=colour, label=label, zorder=3 - 0.01 * place)
    axes.plot(x, sample.mean(axis=0), "--", color=colour, linewidth=0.7)


_GAPS: tuple[Any, ...] = ("-", (0, (6, 6)), (0, (4, 2, 1, 2)), (3, (2, 4)))


READING = "median (line), 10–90 % (band, from five paths on), mean (thin dashes)"
"""How to read what `band` draws."""


def regret_figure(results: Mapping[str, Result]) -> "Figure":
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
            place, crowded = order.index(name), len(order) > 4
            band(axes, result.pulls, curves.regret, place, name, crowded=crowded)
        many = f"{result.settings['paths']} paths"
        words = f"{title}, {many}" if title else many
        axes.set_title(words, fontsize=10, parse_math=False)
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
    _plain(legend)
    return figure


def pulls_figure(panels: Mapping[str, Mapping[float, Identification]]) -> "Figure":
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
    every = [found for points in panels.values() for found in points.values()]
    order = list(dict.fromkeys(name for found in every for name in found.verdicts))
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
    _plain(legend)
    return figure


def calibration_figure(found: Calibration) -> "Figure":
    """Draw the variance under each block length, and the tail of the error with the filter.

    >>> from tailproof import calibrate, noise
    >>> len(calibration_figure(calibrate(noise=noise.Cauchy(), pulls=21)).axes)
    2
    """
    figure, ((cost, tails),) = canvas(1, 2, height=3.0, share=False)
    blocks, costs = list(found.costs), list(found.costs.values())
    cost.semilogx(blocks, costs, "o-", color=PALETTE[0], markersize=3, label="block median")
    label = "best block" if isinstance(found.source, Rewards) else "Cramér–Rao bound"
    bound = found.efficiency * found.pulls * found.variance
    cost.axhline(bound, color="0.5", linestyle="--", label=label)
    here = found.block * found.law.variance
    cost.plot([found.block], [here], "o", color=PALETTE[1], label=f"block {found.block}")
    cost.set(xlabel="block: mean (1) to median", ylabel="variance × pulls")
    cost.set_ylim(0, 1.05 * min(max(*costs, here), 5 * min(*costs, here)))
    cost.set_xticks([1, 3, 7, 15, 31, 101], ["1", "3", "7", "15", "31", "101"])
    cost.set_xticks([], minor=True)
    z = found.scale * np.geomspace(0.05, 20, 40)
    one = replace(found, pulls=1, block=1)
    tails.loglog(z, found.exceedance(z), color=PALETTE[1], label="filtered")
    tails.loglog(z, one.exceedance(z), color="0.5", label="one reward")
    tails.set(xlabel="z", ylabel="P(|error| > z)", ylim=(1e-6, 1.2))
    for axes in (cost, tails):
        axes.legend(fontsize=8, frameon=False)
    return figure


def rewards_figure(rewards: Rewards, estimates: Mapping[str, NDArray[np.float64]]) -> "Figure":
    """Draw the tail of each arm's rewards, and the arms under each aim.

    The first panel shows the share of an arm's rewards further than z from its median: a power
    tail is a straight line, and the dashed one has the estimated tail index. The others show each
    arm's estimate and its interval.

    >>> from tailproof import calibrate
    >>> rng = np.random.default_rng(0)
    >>> advice = calibrate(rewards=rng.standard_cauchy(400), arms=["a", "b"] * 200)
    >>> len(rewards_figure(advice.rewards, advice.estimates).axes)
    5
    """
    figure, ((tails, *panels),) = canvas(1, 1 + len(estimates), height=3.0, share=False)
    figure.set_size_inches(2.6 * (1 + len(estimates)), 3.0)
    crowd = len(rewards.arms)
    for place, arm in enumerate(rewards.arms):
        size = np.sort(np.abs(arm.errors))
        share = np.arange(len(size), 0, -1) / len(size)
        shown = (size > 0) & np.isfinite(size)
        colour = PALETTE[place % len(PALETTE)]
        tails.loglog(size[shown], share[shown], color=colour, linewidth=1, label=arm.name)
    if math.isfinite(rewards.tail.alpha):
        size = np.sort(np.abs(rewards.errors[np.isfinite(rewards.errors)]))
        m = min(int(2 * math.sqrt(len(size))), len(size) - 1)
        z = np.geomspace(max(size[-m], 1e-300), max(size[-1], 2e-300), 20)
        line = m / len(size) * (z / z[0]) ** -rewards.tail.alpha
        tails.loglog(z, line, "--", color="0.3", label=f"index {rewards.tail.alpha:.2f}")
    tails.set_xlabel("z", fontsize=9)
    tails.set_ylabel("share further than z from median", fontsize=8)
    if crowd <= 10:
        _plain(tails.legend(fontsize=7, frameon=False))
    for axes, (aim, table) in zip(panels, estimates.items(), strict=True):
        for place, (value, low, high) in enumerate(np.where(np.isfinite(table), table, np.nan)):
            colour = PALETTE[place % len(PALETTE)]
            axes.plot([low, high], [place, place], "-", color=colour)
            axes.plot([value], [place], "o", color=colour, markersize=4)
        axes.set_title(aim, fontsize=9, parse_math=False)
        axes.set_yticks(range(crowd), [arm.name for arm in rewards.arms], parse_math=False)
        axes.invert_yaxis()
    return figure


def _plain(legend: Any) -> None:
    """Show dollar signs in names as they are."""
    for text in legend.get_texts():
        text.set_parse_math(False)
