"""Is a file sound: planned shares, machines among customers, rows that occur twice.

No test says which arm is better: a file that fails a test should be mended before arms are
compared.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, gammaln, pdtrc

from tailproof.checks import number, require
from tailproof.formatting import odds
from tailproof.stats.contrasts import Flags
from tailproof.stats.customers import Customers
from tailproof.typing import Array, Index

__all__ = [
    "Finding",
    "bursts",
    "crowd",
    "duplicates",
    "machines",
    "planned_shares",
    "twice",
    "unlike_plan",
]

SURELY = 1e-3
"""A split is reported as unplanned if chance makes so large a difference in 1 of 1000 files."""
_EXACT = 200
"""With at most this many customers of two arms, all possible splits are counted."""
_MANY_ROWS = 100
"""A machine is a customer without a purchase and with at least this many rows, and"""
_UNUSUAL = 10
"""with at least this multiple of the 99 % quantile of the rows of customers."""
_CROWD = 0.05
"""A unit with this share of all rows and several arms may stand for all unknown customers."""
_LEAST_ALIKE = 3
"""The fewest identical rows, beyond those by chance, that are reported."""
_CROWDED = 1.5
"""A burst has this many times the usual rows."""
_NEAR = 7
"""The usual count is the median of so many blocks on either side, so that a ramp is no burst."""
_BLOCK = 200
"""Rows in which a burst of one arm is looked for."""


class Finding(NamedTuple):
    """Something about a file that makes statements wrong.

    Attributes
    ----------
    kind : str
        "shares", "days", "machines", "crowd", "duplicates" or "burst".
    words : str
        A sentence.
    """

    kind: str
    words: str


def planned_shares(split: str | Mapping[str, float] | None, names: Sequence[str]) -> Array | None:
    """Return the planned share of each arm: of "even", "A=0.5,B=0.3,C=0.2", or a mapping.

    >>> planned_shares("even", ["A", "B"]).tolist()
    [0.5, 0.5]
    >>> planned_shares("A=1,B=3", ["A", "B"]).tolist()
    [0.25, 0.75]
    """
    if split is None:
        return None
    if split == "even":
        return np.full(len(names), 1 / len(names))
    rule = "'even' or shares such as A=0.5,B=0.5"
    if isinstance(split, str):
        pairs = [part.rpartition("=") for part in split.split(",")]
        require(all(mark for _, mark, _ in pairs), "split", rule, split)
        try:
            split = {name.strip(): float(share) for name, _, share in pairs}
        except ValueError:
            raise ValueError(f"split must be {rule}, got {split!r}") from None
    unknown = sorted(set(names) ^ set(split))
    require(not unknown, "split", f"a share for each arm ({', '.join(names)})", dict(split))
    shares = np.array([number("split", split[name], above=0) for name in names])
    return np.asarray(shares / shares.sum())


def unlike_plan(counts: Index, shares: Array) -> float:
    """Return the p value of counts, if customers fell to arms with these shares.

    Exact for two arms and up to 200 customers, else by χ².

    >>> round(unlike_plan(np.array([520, 480]), np.array([0.5, 0.5])), 3)
    0.206
    >>> unlike_plan(np.array([6000, 5000]), np.array([0.5, 0.5])) < 1e-20
    True

    Source: Pearson 1900; known as the sample ratio mismatch (Fabijan et al. 2019). Differences:
    none.
    """
    n = int(counts.sum())
    if not n:
        return 1.0
    if len(counts) == 2 and n <= _EXACT:
        k = np.arange(n + 1)
        logs = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        logs = logs + k * math.log(shares[0]) + (n - k) * math.log(shares[1])
        return min(1.0, float(np.exp(logs[logs <= logs[counts[0]] + 1e-9]).sum()))
    expected = n * shares
    return float(chdtrc(len(counts) - 1, float((np.square(counts - expected) / expected).sum())))


def about_shares(
    customers: Customers, shares: Array, names: Sequence[str], day: Index | None = None
) -> list[Finding]:
    """Say if arms did not get their planned shares of customers, in the file or on a day.

    An arm that came later, or went, is compared on its days: on other days all customers fell to
    the other arms.
    """
    if day is None or not customers.n:
        day = np.zeros(customers.n, np.int64)
    size = (int(day.max(initial=0)) + 1, customers.arms)
    counts = np.bincount(day * size[1] + customers.arm, minlength=size[0] * size[1]).reshape(size)
    there = _there(counts, shares)
    findings = _came(there, names)
    whole = _whole_days(there)
    planned = np.where(whole, shares, 0.0)
    planned /= np.maximum(planned.sum(axis=1, keepdims=True), 1e-300)
    p = unlike_plan(counts.sum(axis=0), shares) if there.all() else _unlike(counts, whole, shares)
    if p < SURELY:
        expected = (counts.sum(axis=1) @ planned) / max(customers.n, 1)
        listed = ", ".join(
            f"{name} {count:,} (planned {share:.0%})"
            for name, count, share in zip(names, counts.sum(axis=0).tolist(), expected, strict=True)
        )
        words = (
            f"The arms do not have their planned shares: {listed}; chance does this in "
            f"{odds(p)}. Something gave or lost customers of one arm, so nothing here is "
            "sure: find it first."
        )
        return [*findings, Finding("shares", words)]
    days = np.flatnonzero(counts.sum(axis=1)).tolist() if size[0] > 1 else []
    odd = []
    for date in days:
        here = whole[date]
        p = unlike_plan(counts[date][here], planned[date][here])
        if p < SURELY / len(days):
            pairs = zip(names, counts[date].tolist(), strict=True)
            listed = ", ".join(f"{name} {count:,}" for name, count in pairs)
            words = f"On day {date + 1} the arms did not have their planned shares ({listed})."
            odd.append(Finding("shares", words))
    return findings + odd[:3]


def _there(counts: Index, shares: Array) -> Flags:
    """Return on which days each arm was there; a start without it must be too long for chance."""
    there = np.ones(counts.shape, np.bool_)
    before = np.cumsum(counts.sum(axis=1)) - counts.sum(axis=1)
    after = counts.sum() - before - counts.sum(axis=1)
    for arm, share in enumerate(shares.tolist()):
        days = np.flatnonzero(counts[:, arm])
        if not len(days):
            continue
        for missed, outside in (
            (before[days[0]], np.arange(len(counts)) < days[0]),
            (after[days[-1]], np.arange(len(counts)) > days[-1]),
        ):
            if missed * math.log1p(-min(share, 1 - 1e-9)) < math.log(SURELY / len(shares)):
                there[outside, arm] = False
    return there


def _whole_days(there: Flags) -> Flags:
    """Return on which days each arm was there from the first hour to the last.

    An arm that comes or goes in the middle of a day has less than its planned share of that day.
    """
    whole = there.copy()
    whole[1:] &= there[:-1]
    whole[:-1] &= there[1:]
    return whole


def _unlike(counts: Index, there: Flags, shares: Array) -> float:
    """Return the p value of the shares among the arms that were there, all periods together."""
    statistic, freedom = 0.0, 0
    for pattern in np.unique(there, axis=0):
        expected = np.where(pattern, shares, 0.0)
        inside = counts[(there == pattern).all(axis=1)].sum(axis=0)
        if pattern.sum() > 1 and inside[pattern].sum():
            expected = inside[pattern].sum() * expected[pattern] / expected.sum()
            statistic += float((np.square(inside[pattern] - expected) / expected).sum())
            freedom += int(pattern.sum()) - 1
    return float(chdtrc(freedom, statistic)) if freedom else 1.0


def _came(there: Flags, names: Sequence[str]) -> list[Finding]:
    """Say which arms were not there on all days."""
    findings = []
    for name, days in zip(names, there.T, strict=True):
        if not days.all():
            first, last = (int(x) + 1 for x in np.flatnonzero(days)[[0, -1]])
            came = f"came on day {first}" if first > 1 else ""
            went = f"was last seen on day {last}" if last < len(days) else ""
            when = " and ".join(filter(None, [came, went]))
            words = f"{name} {when} of {len(days)}: it is compared on its days."
            findings.append(Finding("days", words))
    return findings


def machines(customers: Customers, names: Sequence[str]) -> list[Finding]:
    """Say if there are customers with hundreds of rows and no purchase."""
    if customers.case == "rows" or not customers.n:
        return []
    usual = float(np.quantile(customers.visits, 0.99))
    many = (customers.visits >= max(_MANY_ROWS, _UNUSUAL * usual)) & (customers.total == 0)
    if not many.any():
        return []
    worst = int(np.argmax(np.where(many, customers.visits, 0)))
    count = int(many.sum())
    who = "One customer has" if count == 1 else f"{count} customers have"
    return [
        Finding(
            "machines",
            f"{who} up to {int(customers.visits[worst]):,} rows and no purchase (the first of "
            f"them under {names[customers.arm[worst]]}): these may be machines. Leave them out.",
        )
    ]


def crowd(unit: Index, arm: Index) -> list[Finding]:
    """Say if one unit has a twentieth of all rows and several arms, as rows without a name would.

    >>> unit = np.append(np.arange(900), np.zeros(300, int))
    >>> crowd(unit, np.arange(1200) % 2)[0].words[:47]
    'One unit, that of row 1, has 25% of all rows an'
    """
    counts = np.bincount(unit)
    mine, count = unit == counts.argmax(), int(counts.max(initial=0))
    if count < max(_MANY_ROWS, _CROWD * len(unit)) or not np.ptp(arm[mine]):
        return []
    return [
        Finding(
            "crowd",
            f"One unit, that of row {int(mine.argmax()) + 1:,}, has {count / len(unit):.0%} of all "
            "rows and several arms: if it stands for customers whom nobody knows, leave its rows "
            "out.",
        )
    ]


def duplicates(arm: Index, reward: Array, unit: Index, time: Array | None) -> list[Finding]:
    """Say if rows with a purchase occur twice: same customer, arm, time and reward.

    Without times, rows of customers without a name are never called duplicates.
    """
    bought = reward != 0
    columns = [unit[bought], arm[bought], reward[bought]]
    if time is None:
        return []
    columns.append(time[bought])
    if not len(columns[0]):
        return []
    order = np.lexsort(columns)
    same = np.ones(len(order) - 1, np.bool_)
    for column in columns:
        same &= np.diff(column[order]) == 0
    return twice(int(same.sum()))


def twice(count: int) -> list[Finding]:
    """Say that rows with a purchase occur twice, if there are more than by chance."""
    if count < _LEAST_ALIKE:
        return []
    return [
        Finding(
            "duplicates",
            f"{count:,} rows with a purchase occur twice: the same customer, arm, time and "
            "reward. If they are one order each, leave the second row out.",
        )
    ]


def bursts(arm: Index, names: Sequence[str], reward: Array) -> list[Finding]:
    """Say if one arm has a run of rows without a purchase that chance does not explain.

    The most crowded 200 rows of each arm against the count that is usual around them.
    """
    n, arms = len(arm), len(names)
    if n < 5 * _BLOCK or arms < 2 or int(np.count_nonzero(np.diff(arm))) < arms * math.log2(n):
        return []
    counts = np.bincount(arm, minlength=arms)
    findings = []
    block = np.arange(n) // _BLOCK
    for which in range(arms):
        inside = np.bincount(block[arm == which], minlength=int(block[-1]) + 1)
        worst = int(inside.argmax())
        near = inside[max(0, worst - _NEAR) : worst + _NEAR + 1]
        middle = float(np.median(near))
        asked = 1e-4 / (len(inside) * arms)
        lone = float(pdtrc(inside[worst] - 1, max(middle, 1.0))) < asked
        rows = (block == worst) & (arm == which)
        usual = float((reward[arm == which] != 0).mean())
        bought = float((reward[rows] != 0).mean())
        if lone and inside[worst] > _CROWDED * middle and bought <= usual / 2:
            findings.append(
                Finding(
                    "burst",
                    f"{int(inside[worst]):,} of {_BLOCK} rows in a burst are of {names[which]}, "
                    f"which usually has {middle:,.0f}, and hardly one of them bought: look at rows "
                    f"{worst * _BLOCK + 1:,} to {min(n, (worst + 1) * _BLOCK):,}.",
                )
            )
    return findings[:1] if counts.all() else findings
