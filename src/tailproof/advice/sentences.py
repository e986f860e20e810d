"""What advice says: the rewards, who leads and how sure that is, in words and in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailproof.advice.claims import (
    about_assumptions,
    about_cap,
    about_control,
    about_lead,
    about_visits,
    noun,
)
from tailproof.advice.tools import NEARLY_ALL, is_revenue, location_agrees
from tailproof.formatting import listed, several, short, two_digits
from tailproof.stats.aims import crossing
from tailproof.stats.comparison import LEVEL, Comparison, Unbounded
from tailproof.stats.intervals import share_of_largest

if TYPE_CHECKING:
    from tailproof.advice.advice import Advice

__all__ = ["cells", "sentences"]

_FEW = 20
"""With fewer rewards than this the share of the ten largest says nothing about the tail."""


def sentences(advice: Advice) -> str:
    """Return the verdict, the leading arms and the filter in words, a line for each."""
    parts = [finding.words for finding in advice.findings]
    planned = advice.split is not None and len(advice.rewards.arms) > 1
    if planned and not any(finding.kind == "shares" for finding in advice.findings):
        people = f"{advice.customers.n:,} {noun(advice.standing)}s"
        parts.append(f"The arms have their planned shares, as far as {people} can tell.")
    parts += [advice.rewards.verdict, *_about_leaders(advice), *_about_means(advice)]
    if advice.calibration is not None and advice.rewards.symmetric:
        parts.append(advice.calibration.choice)
    if advice.constant:
        parts.append(
            f"{several(advice.constant, 'feature')} with one value for all visitors: leave out "
            "what is always the same."
        )
    parts += advice.records.notes
    if advice.rewards.missing:
        parts.append(f"{advice.rewards.missing} missing rewards were left out.")
    return "\n".join(part for part in parts if part)


def _about_leaders(advice: Advice) -> list[str]:
    """Say which arm leads under each aim, and how many more rewards would make that sure."""
    if len(advice.rewards.arms) < 2:
        return []
    best = "smallest" if advice.costs else "largest"
    sentences = [f"The arm with the {best} value, at {LEVEL:.0%} confidence:"]
    sentences += [f"  {aim}: {_about_lead(x)}" for aim, x in advice.comparisons.items()]
    standing = advice.standing
    sentences += [*about_assumptions(standing), about_visits(standing), about_cap(standing)]
    if advice.control is not None:
        sentences.append(f"Against {advice.control}:")
        sentences += [f"  {line}" for line in about_control(standing, advice.control)]
    if advice.aim is not None and advice.aim.averages and location_agrees(advice, advice.aim):
        sentences.append(
            f"The median and {advice.aim.name} are sure of the same arm, and the median is often "
            "learned from fewer rewards: so the tool below learns it in place of a mean."
        )
    elif advice.aim is not None and not advice.aim.bounded and is_revenue(advice, advice.aim):
        sentences.append(
            f"The tool below learns the mean of rewards capped at {NEARLY_ALL:.1%} of "
            "purchases: without a cap a single reward may decide."
        )
    return sentences


def _about_lead(comparison: Comparison) -> str:
    lead = comparison.lead
    if comparison.standing is not None:
        return about_lead(comparison.standing)
    if lead.arm is None:
        return f"nothing leads, as {listed(lead.rivals)} have equal estimates"
    if lead.sure:
        return f"{lead.arm} (sure, at any look)"
    if isinstance(comparison.statistic, Unbounded):
        return f"{lead.arm} (never sure without a bound: give largest=, if you know it)"
    if comparison.doubts:
        return f"{lead.arm} (not sure: {'; '.join(comparison.doubts)})"
    few = [
        name
        for name, ends in zip(comparison.names, comparison.intervals, strict=True)
        if ends is None
    ]
    words = f"not sure against {listed(lead.rivals)}"
    if few:
        return f"{lead.arm} ({words}; too few rewards of {listed(few)} to say)"
    needed = comparison.forecast()
    if needed is None:
        return f"{lead.arm} ({words})"
    cost = f", at a regret of about {short(two_digits(needed.regret))}"
    return (
        f"{lead.arm} ({words}; if they differ as they seem to, about "
        f"{two_digits(needed.rewards):,.0f} more rewards would make it sure{cost})"
    )


def _about_means(advice: Advice) -> list[str]:
    """Say that a mean without bounds has no interval, or which bounds or caps it uses."""
    sentences = []
    unbounded = isinstance(advice.comparisons["mean"].statistic, Unbounded)
    samples = zip(advice.rewards.arms, advice.samples, strict=True) if unbounded else ()
    tops = {
        arm.name: share_of_largest(sample)
        for arm, sample in samples
        if len(sample) > _FEW and np.isfinite(sample[[0, -1]]).all()
    }
    if tops:
        name, top = max(tops.items(), key=lambda item: item[1].share)
        of = f" of {name}" if name else ""
        what = "totals of customers" if advice.customers.case == "customers" else "rewards"
        sentences.append(
            f"No interval holds for a mean without a bound: the ten largest {what}{of} "
            f"make up {top.share:.0%} of their sum, and one more like the largest would "
            f"move the mean from {short(top.mean)} to {short(top.one_more)}."
        )
    for aim in advice.aims:
        statistic = advice.comparisons[aim.name].statistic
        if statistic.range is not None:
            sentences.append(f"For {aim.name} {statistic.words}.")
            if aim.share is not None and len(advice.rewards.arms) > 1:
                names = [arm.name for arm in advice.rewards.arms]
                cap = statistic.range[1]
                sentences.append(crossing(names, advice.samples, cap, costs=advice.costs))
    return sentences


def cells(advice: Advice) -> list[list[str]]:
    """Return the table as strings, with a header."""
    rows = [["arm", "n", "zeros", *advice.estimates]]
    for row in advice.table():
        arm, n, zeros, *estimates = row.values()
        words = [
            _cell(cell, isinstance(compared.statistic, Unbounded))
            for cell, compared in zip(estimates, advice.comparisons.values(), strict=True)
        ]
        rows.append([arm or "all", str(n), f"{zeros:.1%}", *words])
    return rows


def _cell(estimate: tuple[float | None, float | None, float | None], unbounded: bool) -> str:
    """Return an estimate with its interval; a mean without bounds has none."""
    value, low, high = estimate
    if unbounded and value is not None:
        return short(value)
    if value is None or low is None or high is None:
        return "too few to say"
    return f"{short(value)} [{short(low)}, {short(high)}]"
