"""The outlier rules of experiment platforms, applied to the same rewards and shown beside our cap.

Sources, read in 2026:

growthbook
    Caps the totals of users at a percentile of all variations together, where a metric asks for it;
    zeros count unless "ignore zeros" is on, and the default is off:
    github.com/growthbook/growthbook/pull/1371, issues 1912 and 6331.
statsig
    Winsorises the totals of users at the 99.9 % percentile of totals that are not zero:
    docs.statsig.com/experiments/statistical-methods/methodologies/winsorization.
optimizely
    Replaces revenue beyond mean + 3 standard deviations by the mean:
    support.optimizely.com/hc/en-us/articles/4410289414413.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailproof.checks import require
from tailproof.formatting import short
from tailproof.typing import Array

if TYPE_CHECKING:
    from tailproof.advice.advice import Advice

__all__ = ["PLATFORMS", "Capped", "platform_lines", "platform_rules"]


@dataclass(frozen=True)
class _Rule:
    name: str
    words: str
    source: str
    limit: Callable[[Array], float]
    """The cap, from the totals of all customers."""
    to_mean: bool = False
    """Whether a total beyond the cap is replaced by the mean, not by the cap."""


def _percentile(share: float, *, zeros: bool) -> Callable[[Array], float]:
    def limit(totals: Array) -> float:
        kept = totals if zeros else totals[totals != 0]
        return float(np.quantile(kept, share)) if len(kept) else 0.0

    return limit


def _three_sigma(totals: Array) -> float:
    bought = totals[totals != 0]
    return float(bought.mean() + 3 * bought.std()) if len(bought) else 0.0


PLATFORMS: dict[str, tuple[_Rule, ...]] = {
    "growthbook": (
        _Rule(
            "GrowthBook, 99 %",
            "percentile capping at 99 % of all users, zeros among them (its default; capping "
            "itself is off unless a metric asks for it)",
            "github.com/growthbook/growthbook/pull/1371",
            _percentile(0.99, zeros=True),
        ),
        _Rule(
            "GrowthBook, 99 %, no zeros",
            'the same with "ignore zeros"',
            "github.com/growthbook/growthbook/issues/1912",
            _percentile(0.99, zeros=False),
        ),
    ),
    "statsig": (
        _Rule(
            "Statsig, 99.9 %",
            "winsorisation at the 99.9 % percentile of totals that are not zero (its default)",
            "docs.statsig.com/experiments/statistical-methods/methodologies/winsorization",
            _percentile(0.999, zeros=False),
        ),
    ),
    "optimizely": (
        _Rule(
            "Optimizely, 3 s.d.",
            "outlier smoothing: what exceeds mean + 3 standard deviations of purchases becomes "
            "their mean (it does so day by day, here for the whole file)",
            "support.optimizely.com/hc/en-us/articles/4410289414413",
            _three_sigma,
            to_mean=True,
        ),
    ),
}


@dataclass(frozen=True)
class Capped:
    """What a rule for outliers makes of the arms.

    Attributes
    ----------
    rule : str
    cap : float
    cut : int
        Customers beyond the cap.
    means : dict
        Of each arm, per customer.
    picks : str or None
        The arm with the best mean; None if several have it.
    words, source : str
    """

    rule: str
    cap: float
    cut: int
    means: dict[str, float]
    picks: str | None
    words: str
    source: str


def check_platform(platform: str) -> None:
    """Raise ``ValueError`` unless the platform's rule for outliers is known.

    >>> check_platform("vwo")
    Traceback (most recent call last):
    ValueError: like must be one of growthbook, statsig, optimizely, got 'vwo'
    """
    require(platform in PLATFORMS, "like", f"one of {', '.join(PLATFORMS)}", platform)


def platform_rules(advice: Advice, platform: str) -> list[Capped]:
    """Return which arm a platform's rule for outliers would pick and at which cap; ours first.

    Our rule caps totals of customers at the quantile of the aim, by default the 0.99-quantile of
    totals that are not zero. Only the caps are compared here, not the statistical tests of
    platforms.

    >>> from tailproof import calibrate
    >>> spent = [*[0.0] * 960, *[10.0] * 40, *[0.0] * 980, *[10.0] * 19, 900.0]
    >>> advice = calibrate(arm=["old"] * 1000 + ["new"] * 1000, reward=spent)
    >>> [(row.rule, round(row.cap), row.picks) for row in platform_rules(advice, "statsig")]
    [('ours, capped_mean(0.99)', 900, 'new'), ('Statsig, 99.9 %', 847, 'new')]
    """
    check_platform(platform)
    standing, totals = advice.standing, advice.customers.total
    share = "" if standing.bounded else f", capped_mean({standing.share:g})"
    means = dict(zip(standing.names, standing.means.tolist(), strict=True))
    words = "totals of customers capped at a quantile of totals that are not zero"
    ours = Capped(
        f"ours{share}",
        standing.range[1],
        standing.above,
        means,
        standing.leader,
        "as you said" if standing.bounded else words,
        "",
    )
    return [ours, *(_capped(advice, rule, totals) for rule in PLATFORMS[platform])]


def _capped(advice: Advice, rule: _Rule, totals: Array) -> Capped:
    cap, arm = rule.limit(totals), advice.customers.arm
    beyond = totals > cap
    mean = float(totals[totals != 0].mean()) if rule.to_mean and totals.any() else cap
    held = np.where(beyond, mean, totals)
    names = [rewards.name for rewards in advice.rewards.arms]
    means = {name: float(held[arm == place].mean()) for place, name in enumerate(names)}
    best = (min if advice.costs else max)(means.values())
    first = [name for name, value in means.items() if value == best]
    picks = first[0] if len(first) == 1 else None
    return Capped(rule.name, cap, int(beyond.sum()), means, picks, rule.words, rule.source)


def platform_lines(rows: list[Capped]) -> tuple[list[list[str]], list[str]]:
    """Return a table with a header, and sentences about the rules and whether they agree."""
    cells = [["rule", "cap", "customers cut", *rows[0].means, "best"]]
    for row in rows:
        values = [short(value) for value in row.means.values()]
        cells.append([row.rule, short(row.cap), f"{row.cut:,}", *values, row.picks or "none"])
    sentences = [f"{row.rule}: {row.words}. Source: {row.source}." for row in rows[1:]]
    others = [row.rule for row in rows[1:] if row.picks != rows[0].picks]
    if others:
        sentences.append(
            f"The cap decides: {', '.join(others)} would pick another arm than ours. Which cap is "
            "right depends on which customers you want to count in full."
        )
    else:
        sentences.append(f"All of these pick {rows[0].picks or 'no arm'}: the cap does not decide.")
    return cells, sentences
