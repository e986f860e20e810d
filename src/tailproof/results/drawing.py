"""Pictures of results; nothing is simulated here."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.checks import number, require
from tailproof.drawing import PALETTE, Show, band, canvas, legend_columns, plain, reading
from tailproof.formatting import several

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tailproof.results.identification import Identification
    from tailproof.results.regret import Result

__all__ = ["pulls_figure", "regret_figure"]


def regret_figure(
    results: "Mapping[str, Result]",
    *,
    show: Show = "spread",
    level: float = 0.95,
    log: str = "",
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    policies: Sequence[str] | None = None,
    metric: str = "regret",
) -> "Figure":
    """Draw cumulative regret against pulls, one panel per titled result.

    Parameters
    ----------
    results : mapping from titles to results
    show : "spread" or "mean"
        The median of the paths, their 10–90 % band and their mean as dashes; or the mean and its
        Student interval of confidence `level` at each point.
    log : "", "x", "y" or "xy"
        The axes that are logarithmic.
    xlim, ylim : pairs of numbers, optional
        What to show of each axis: zoom in where curves that fail would flatten the rest.
    policies : sequence of str, optional
        The curves to draw, and their order, by default all; colours stay.
    metric : str
        "regret", "error", or a metric that was asked of `simulate`.

    >>> from tailproof import Uniform, environments, noise, simulate
    >>> bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3)
    >>> result = simulate({"uniform": Uniform()}, bandit, horizon=50, paths=4)
    >>> len(regret_figure({"Cauchy": result}, log="xy").axes)
    1
    """
    require(len(results) > 0, "results", "at least one result", results)
    _check_options(show, log, level, {"xlim": xlim, "ylim": ylim}, policies)
    order = list(dict.fromkeys(name for result in results.values() for name in result.curves))
    shown = order if policies is None else list(policies)
    for name in shown:
        require(name in order, "policies", f"some of {', '.join(order)}", name)
    figure, panels = _panels(len(results))
    for axes, (title, result) in zip(panels, results.items(), strict=True):
        for name in (name for name in shown if name in result.curves):
            sample, crowded = result.metric(name, metric), len(shown) > 4
            require(sample.ndim == 2, "metric", "a metric with a number for each path", metric)
            place = order.index(name)
            band(axes, result.pulls, sample, place, name, crowded=crowded, show=show, level=level)
        many = several(result.settings["paths"], "path")
        axes.set_title(f"{title}, {many}" if title else many, fontsize=10, parse_math=False)
        axes.set_xlim(result.pulls[0] if "x" in log else 0, result.pulls[-1])
    _scale(panels, log, xlim, ylim)
    label = {"regret": "cumulative regret", "error": "error of the estimate"}
    for axes in panels[:: _columns(len(panels))]:
        axes.set_ylabel(label.get(metric, metric.replace("_", " ")), fontsize=9)
    handles = {text: line for axes in panels for line, text in zip(*_labelled(axes), strict=True)}
    _legend(figure, [handles[name] for name in shown], shown, reading(show, level), len(panels))
    return figure


def _check_options(
    show: str,
    log: str,
    level: float,
    limits: Mapping[str, tuple[float, float] | None],
    policies: Sequence[str] | None,
) -> None:
    """Refuse options that nothing can be drawn with."""
    require(show in ("spread", "mean"), "show", "spread or mean", show)
    require(log in ("", "x", "y", "xy"), "log", "x, y or xy, or empty", log)
    number("level", level, above=0, below=1)
    for axis, ends in limits.items():
        pair = ends is None or (np.shape(ends) == (2,) and bool(np.all(np.isfinite(ends))))
        require(pair, axis, "two numbers, such as (1, 100)", ends)
    listed = not isinstance(policies, str) and (policies is None or len(policies) > 0)
    require(listed, "policies", "a list of names, such as ['UCB1']", policies)


def _columns(panels: int) -> int:
    """Return how many panels stand side by side."""
    return panels if panels <= 3 else 2 if panels == 4 else 3


def _panels(count: int) -> "tuple[Figure, list[Axes]]":
    """Return that many panels; the legend goes where a row would have a hole."""
    columns = _columns(count)
    figure, grid = canvas(-(-count // columns), columns, height=2.9)
    panels = list(grid.flat)
    for axes in panels[count:]:
        axes.remove()
    for place, axes in enumerate(panels[:count]):
        if place + columns >= count:  # the lowest panel of its column
            axes.tick_params(labelbottom=True)
            axes.set_xlabel("pulls", fontsize=9)
    return figure, panels[:count]


def _scale(
    panels: "Sequence[Axes]",
    log: str,
    xlim: tuple[float, float] | None,
    ylim: tuple[float, float] | None,
) -> None:
    """Set the axes of all panels, which they share."""
    first = panels[0]
    if "x" in log:
        first.set_xscale("log")
    if "y" in log:
        lines = [line.get_ydata() for axes in panels for line in axes.lines]
        positive = [y[y > 0].min() for y in map(np.asarray, lines) if (y > 0).any()]
        first.set_yscale("log")
        first.set_ylim(bottom=min(positive, default=0.1) / 1.5)
    elif all(np.min(line.get_ydata()) >= 0 for axes in panels for line in axes.lines):
        first.set_ylim(bottom=0)
    if xlim is not None:
        first.set_xlim(*xlim)
    if ylim is not None:
        first.set_ylim(*ylim)


def _labelled(axes: "Axes") -> "tuple[list[Artist], list[str]]":
    handles, labels = axes.get_legend_handles_labels()
    return handles, labels


def _legend(
    figure: "Figure", handles: "list[Artist]", names: list[str], title: str, panels: int
) -> None:
    """Put the legend into the hole of the last row, or below the panels."""
    columns = _columns(panels)
    hole = panels % columns
    settings: dict[str, Any] = {"fontsize": 8, "frameon": False, "title_fontsize": 8}
    if hole:
        rows = -(-panels // columns)
        place = (hole / columns + 0.02, 0.02 / rows, 1 - hole / columns - 0.04, 0.96 / rows)
        wrapped = title.replace(", ", ",\n").replace(" with ", "\nwith ")
        settings |= {"loc": "center", "bbox_to_anchor": place, "title": wrapped}
        legend = figure.legend(handles, names, **settings)
        legend.set_in_layout(False)
    else:
        settings |= {"ncols": legend_columns(figure, names), "title": title}
        legend = figure.legend(handles, names, loc="outside lower center", **settings)
    plain(legend)


def pulls_figure(panels: "Mapping[str, Mapping[float, Identification]]") -> "Figure":
    """Draw the pulls until an answer, one panel per titled axis such as δ, the gap or df.

    The line is the mean over the paths, the band goes from 10 to 90 %. An open marker means that
    some paths found no answer, so that the mean is only a lower bound.

    >>> from tailproof import bestarm, environments, identify, noise
    >>> bandit = environments.near_tie(noise.Normal(), angle=1.0)
    >>> identified = {
    ...     delta: identify(
    ...         {"LinGapE": bestarm.LinGapE(norm_bound=2)},
    ...         bandit, delta=delta, paths=4, max_pulls=1000,
    ...     )
    ...     for delta in (0.1, 0.01)
    ... }
    >>> len(pulls_figure({"δ": identified}).axes)
    1
    """
    require(len(panels) > 0, "panels", "at least one panel", panels)
    for title, points in panels.items():
        require(len(points) > 0, f"panels[{title!r}]", "at least one identification", points)
    figure, (plots,) = canvas(1, len(panels), height=3.0, share=False)
    every = [result for points in panels.values() for result in points.values()]
    order = list(dict.fromkeys(name for result in every for name in result.verdicts))
    for axes, (title, points) in zip(plots, panels.items(), strict=True):
        for place, name in enumerate(order):
            at = [x for x, result in sorted(points.items()) if name in result.verdicts]
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
        ncols=legend_columns(figure, order),
        fontsize=8,
        frameon=False,
    )
    plain(legend)
    return figure
