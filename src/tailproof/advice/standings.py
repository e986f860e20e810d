"""From `Records` to `Standing`: the arms of a table, compared customer by customer."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tailproof.stats import soundness
from tailproof.stats.aims import Aim
from tailproof.stats.customers import Customers, cap_of_totals
from tailproof.stats.periods import days_of, seconds_of
from tailproof.stats.soundness import Finding
from tailproof.stats.standing import Standing
from tailproof.tables import Records
from tailproof.typing import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailproof.advice.advice import Advice

__all__ = ["customers_of", "findings_of", "samples_of", "standing_of", "unsound"]


def customers_of(log: Records, names: Sequence[str]) -> Customers:
    """Gather the rows with a reward by unit; arms are numbered as in `names`.

    Propensities that are the same in all rows of an arm change no comparison, and are left out.
    """
    there = ~np.isnan(log.reward)
    place = np.array([list(names).index(name) if name in names else -1 for name in log.arms])
    arm, p = place[log.arm[there]], None
    if log.propensity is not None and not log.estimated:
        p = log.propensity[there]
        if all(
            np.ptp(p[arm == number]) == 0 for number in range(len(names)) if (arm == number).any()
        ):
            p = None
    return Customers.of(
        arm=arm,
        reward=log.reward[there],
        unit=None if log.unit is None else log.unit[there],
        time=None if log.time is None else seconds_of(log.time[there]),
        propensity=p,
        count=None if log.weight is None else log.weight[there],
        arms=len(names),
    )


def samples_of(customers: Customers) -> list[Array]:
    """Return the totals of each arm's customers, sorted; its rows if arms were drawn by visit."""
    if customers.case == "visits":
        arm, values = customers.row_arm, customers.row_reward
    else:
        arm, values = customers.arm, customers.total
    return [np.sort(values[arm == number]) for number in range(customers.arms)]


def standing_of(advice: Advice, aim: Aim) -> Standing | None:
    """Return the standing under an aim that is a mean; None without bounds or a cap."""
    if not aim.averages:
        return None
    standing = partial(
        Standing,
        customers=advice.customers,
        names=[arm.name for arm in advice.rewards.arms],
        looks=advice.looks,
        costs=advice.costs,
        unsound=unsound(advice),
    )
    if aim.share is not None:
        capped = standing(share=aim.share)
        low, high = cap_of_totals(advice.customers.total, aim.share)
        return capped if 0 < high - low < math.inf else None
    if advice.largest is not None:
        return standing(largest=advice.largest, smallest=advice.smallest)
    statistic = aim.among(advice.samples, light=advice.light)
    if statistic.range is None:
        return None
    smallest, largest = statistic.range
    return standing(largest=largest, smallest=smallest, assumed=True)


def unsound(advice: Advice) -> tuple[str, ...]:
    """Return why no lead is sure in this file; a machine is one customer, hence no reason."""
    kinds = {"shares": "the arms do not have their planned shares"}
    kinds |= {"duplicates": "orders occur twice", "burst": "one arm has a burst of rows"}
    return tuple(kinds[finding.kind] for finding in advice.findings if finding.kind in kinds)


def findings_of(advice: Advice) -> list[Finding]:
    """Return the reasons for which statements about this file may be wrong."""
    who, names = advice.customers, [arm.name for arm in advice.rewards.arms]
    if len(names) < 2:
        return []
    shares = soundness.planned_shares(advice.split, names)
    findings = soundness.machines(who, names)
    if shares is not None:
        findings += soundness.about_shares(
            who, shares, names, None if who.time is None else days_of(who.time)
        )
    log = advice.records
    there = ~np.isnan(log.reward)
    if log.unit is not None and log.weight is None:
        findings += soundness.crowd(log.unit, log.arm)
    if log.weight is not None:
        findings += soundness.twice(log.twice)
    elif log.time is not None and log.unit is not None:
        columns = log.arm[there], log.reward[there], log.unit[there]
        findings += soundness.duplicates(*columns, log.time[there])
    return findings + soundness.bursts(who.row_arm, names, who.row_reward)
