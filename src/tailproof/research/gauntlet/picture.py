"""A score as a picture."""

import math
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from tailproof.formatting import brief
from tailproof.notebook_figure import NotebookFigure
from tailproof.research.gauntlet.score import Score

__all__ = ["gauntlet_figure"]

_LEAST = 1e-3
"""The colour scale ends here: a thousandth of the regret of random arms."""
_FEW_PROBLEMS = 20
"""Below this a scale of less than the whole height could not be read."""


def gauntlet_figure(score: Score) -> Figure:
    """Draw a heat map of regret relative to random arms, problems by tools, for each block.

    A dot marks problems in which some paths are stuck or lost, with their percentage. Below each
    tool are its median and worst ratio to the best tool of the run.

    >>> from tailproof import OFUL, gauntlet
    >>> score = gauntlet.run({"OFUL": OFUL()}, problems=["k3-ties"], size="smoke", workers=1)
    >>> len(gauntlet_figure(score).axes)
    2
    """
    parts = score.parts()
    rows = [len(part.problems) for part in parts.values()]
    shape = (3.6 + 1.25 * len(score.tools), 0.7 + 1.2 * len(rows) + 0.17 * sum(rows))
    figure = NotebookFigure(figsize=shape, dpi=150, layout="constrained")
    panels = figure.subplots(len(rows), squeeze=False, height_ratios=rows)[:, 0]
    for axes, (block, part) in zip(panels, parts.items(), strict=True):
        image = _draw(axes, part)
        title = f"{block.title}; dot: per cent of paths {block.word}"
        axes.set_title(title, fontsize=8)
    shrink, aspect = (1.0, 10) if sum(rows) < _FEW_PROBLEMS else (0.4, 30)
    colours = figure.colorbar(image, ax=list(panels), shrink=shrink, aspect=aspect)
    colours.set_ticks([-3, -2, -1, 0], labels=["0.1 %", "1 %", "10 %", "100 %"], fontsize=7)
    figure.suptitle(
        f"Mean regret relative to random arms, {score.settings['paths']} paths, "
        f"size {score.settings['size']}\n"
        "×: ratio to the best tool of a problem",
        fontsize=8,
    )
    return figure


def _draw(axes: Axes, score: Score) -> AxesImage:
    """Draw the problems of one block, and return the heat map."""
    problems, tools = score.problems, score.tools
    heat = np.full((len(problems), len(tools)), math.nan)
    for i, problem in enumerate(problems):
        for j, tool in enumerate(tools):
            row = score.row(problem, tool)
            if row is None:
                axes.text(j, i, "–", ha="center", va="center", fontsize=6, color="0.6")
                continue
            heat[i, j] = math.log10(min(max(row.over_chance, _LEAST), 1))
            colour = "white" if heat[i, j] > -0.5 or heat[i, j] < -2.2 else "black"
            percentage = f"{brief(100 * row.over_chance)} %"
            axes.text(j, i, percentage, ha="center", va="center", fontsize=6, color=colour)
            if row.stuck:
                axes.plot(j + 0.33, i, "o", color="#D55E00", markeredgecolor="white", markersize=4)
                text = f"{100 * row.stuck:.0f}"
                axes.text(j + 0.39, i, text, fontsize=5, va="center", color=colour)
    ratios = {
        tool: f"median ×{brief(row['median_over_best'])} worst ×{brief(row['worst_over_best'])}"
        for tool, row in score.summary().items()
    }
    labels = [f"{fill(tool, 24)}\n{ratios.get(tool, '')}" for tool in tools]
    axes.set_xticks(range(len(tools)), labels, fontsize=6, parse_math=False)
    axes.set_yticks(range(len(problems)), problems, fontsize=6, parse_math=False)
    axes.tick_params(length=0, top=True, labeltop=True)
    return axes.imshow(heat, cmap="RdYlBu_r", aspect="auto", vmin=math.log10(_LEAST), vmax=0)
