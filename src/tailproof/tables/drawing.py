"""A picture of records."""

from typing import TYPE_CHECKING

import numpy as np

from tailproof.drawing import PALETTE, canvas, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tailproof.tables.checked import Records

__all__ = ["records_figure"]

_MOST_NAMED = 10
"""The most arms with a legend."""


def records_figure(records: "Records") -> "Figure":
    """Draw, for each arm, the share of rewards that are further from zero than z.

    A power tail is a straight line; where a line starts is the share of rewards that are not zero.

    >>> import tailproof as tp
    >>> len(records_figure(tp.records(arm=list("abab"), reward=[1, 2, 3, 4])).axes)
    1
    """
    figure, ((axes,),) = canvas(1, 1, height=3.0)
    for number, name in enumerate(records.arms):
        rewards = records.reward[(records.arm == number) & ~np.isnan(records.reward)]
        size = np.sort(np.abs(rewards))
        share = np.arange(len(size), 0, -1) / max(1, len(size))
        shown = (size > 0) & np.isfinite(size)
        colour = PALETTE[number % len(PALETTE)]
        axes.loglog(size[shown], share[shown], color=colour, linewidth=1, label=name or "all")
    axes.set_xlabel("z", fontsize=9)
    axes.set_ylabel("share of rewards further from zero than z", fontsize=8)
    if len(records.arms) <= _MOST_NAMED:
        plain(axes.legend(fontsize=7, frameon=False))
    return figure
