"""Pictures of recorded rewards and of the filter chosen for them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tailproof.drawing import PALETTE, canvas, plain
from tailproof.stats.calibration import Calibration
from tailproof.stats.diagnostics import Rewards

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["calibration_figure", "rewards_figure"]


def calibration_figure(calibration: Calibration) -> "Figure":
    """Draw the variance under each block length, and the tail of the error with the filter.

    >>> from tailproof import calibrate_filter, noise
    >>> len(calibration_figure(calibrate_filter(noise=noise.Cauchy(), pulls=21)).axes)
    2
    """
    figure, ((cost, tails),) = canvas(1, 2, height=3.0, share=False)
    blocks, costs = list(calibration.costs), list(calibration.costs.values())
    cost.semilogx(blocks, costs, "o-", color=PALETTE[0], markersize=3, label="block median")
    label = "best block" if isinstance(calibration.source, Rewards) else "Cramér–Rao bound"
    bound = calibration.efficiency * calibration.pulls * calibration.variance
    cost.axhline(bound, color="0.5", linestyle="--", label=label)
    here = calibration.block * calibration.law.variance
    cost.plot(
        [calibration.block], [here], "o", color=PALETTE[1], label=f"block {calibration.block}"
    )
    cost.set(xlabel="block: mean (1) to median", ylabel="variance × pulls")
    cost.set_ylim(0, 1.05 * min(max(*costs, here), 5 * min(*costs, here)))
    cost.set_xticks([1, 3, 7, 15, 31, 101], ["1", "3", "7", "15", "31", "101"])
    cost.set_xticks([], minor=True)
    z = calibration.scale * np.geomspace(0.05, 20, 40)
    unfiltered = replace(calibration, pulls=1, block=1)
    tails.loglog(z, calibration.exceedance(z), color=PALETTE[1], label="filtered")
    tails.loglog(z, unfiltered.exceedance(z), color="0.5", label="one reward")
    tails.set(xlabel="z", ylabel="P(|error| > z)", ylim=(1e-6, 1.2))
    for axes in (cost, tails):
        axes.legend(fontsize=8, frameon=False)
    return figure


def rewards_figure(rewards: Rewards, estimates: Mapping[str, NDArray[np.float64]]) -> "Figure":
    """Draw the tail of each arm's rewards, and the arms under each aim.

    The first panel shows the share of an arm's rewards further than z from its median: a power tail
    is a straight line, and the dashed line has the estimated tail index. The other panels show each
    arm's estimate and its interval.

    >>> from tailproof import calibrate
    >>> rng = np.random.default_rng(0)
    >>> advice = calibrate(reward=rng.standard_cauchy(400), arm=["a", "b"] * 200)
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
        plain(tails.legend(fontsize=7, frameon=False))
    for axes, (aim, table) in zip(panels, estimates.items(), strict=True):
        for place, (value, low, high) in enumerate(np.where(np.isfinite(table), table, np.nan)):
            colour = PALETTE[place % len(PALETTE)]
            axes.plot([low, high], [place, place], "-", color=colour)
            axes.plot([value], [place], "o", color=colour, markersize=4)
        axes.set_title(aim, fontsize=9, parse_math=False)
        axes.set_yticks(range(crowd), [arm.name for arm in rewards.arms], parse_math=False)
        axes.invert_yaxis()
    return figure
