"""Pieces that the pictures of several studies share."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailproof.drawing import PALETTE
from tailproof.typing import Array

__all__ = ["legend_below", "mark_rows"]


def legend_below(figure: Figure, axes: Axes, columns: int, title: str | None = None) -> None:
    """Put the legend of a panel below the whole figure."""
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=columns,
        fontsize=8,
        frameon=False,
        title=title,
        title_fontsize=8,
    )


def mark_rows(axes: Axes, labels: Sequence[str], samples: Mapping[str, Sequence[Array]]) -> None:
    """Draw one row for each label: the median and 10–90 % range of each of two samples."""
    rows = np.arange(len(labels))[::-1]
    for i, (name, regrets) in enumerate(samples.items()):
        low, middle, high = np.transpose(
            [np.quantile(sample, (0.1, 0.5, 0.9)) for sample in regrets]
        )
        axes.errorbar(
            middle,
            rows + (0.12, -0.12)[i],
            xerr=(middle - low, high - middle),
            fmt="os"[i],
            color=PALETTE[i],
            markersize=4,
            label=name,
        )
    axes.set_yticks(rows, labels, fontsize=7)
