"""Time: within which periods arms are compared, and whether their shares moved.

A shop grows, has weekends, and gets new arms. If an arm's share changes, its mean is taken over
other days than its rival's. Differences within days are free of all of this.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, xlogy

from tailproof.checks import number
from tailproof.stats.contrasts import Flags
from tailproof.typing import Array, Index

__all__ = ["DAY", "Moved", "days_of", "moved", "seconds_of", "shared_periods"]

DAY = 86_400.0
"""Seconds."""
_MOST_DAYS = 1e6
"""A column of whole numbers below this counts days: as seconds they would all be in early 1970."""
_MILLISECONDS = 1e11
"""Times above this are milliseconds since 1970: as seconds they would be in the year 5138."""
LEAST = 20
"""Customers that the smaller arm of a period should have; shorter periods are joined."""
_UNLIKE = 6.63
"""Shares of two days differ if their χ² exceeds this, as 1 of 100 pairs of alike days does."""
_BLOCKS, _SHORT = 20, 100
"""Parts of a file in which shares are compared if no time is known, and rows of shorter parts."""
_CONFOUNDED = 3.0
"""Beyond so many standard errors rewards count as moving with the shares of arms. The limit is low:
a false alarm only costs power where shares moved."""
_LEAST_ROWS = 200
"""With fewer rows than this no drift of shares is looked for."""
_LEAST_PAST, _LEAST_DAYS = 10, 6
"""Earlier customers of an arm, and days, from which it is told whether shares followed rewards."""
_FOLLOWED = 2.0
"""Beyond so many standard errors shares count as having followed rewards; a false alarm only costs
power."""
SURELY = 1e-4
"""A drift is reported if chance makes so large a drift less often than this."""


def seconds_of(time: Array) -> Array:
    """Return times in seconds: whole numbers below a million are days, large ones milliseconds.

    >>> seconds_of(np.array([0.0, 2.0])).tolist(), seconds_of(np.array([1.7e12])).tolist()
    ([0.0, 172800.0], [1700000000.0])
    """
    most = float(np.abs(time).max(initial=0.0))
    if most < _MOST_DAYS and bool((time == np.floor(time)).all()):
        return np.asarray(time * DAY)
    return np.asarray(time / 1000 if most > _MILLISECONDS else time, dtype=np.float64)


def days_of(time: Array, length: float = DAY) -> Index:
    """Return the number of each time's day, from zero, for times in seconds.

    >>> days_of(np.array([10.0, 20.0, 90_000.0])).tolist()
    [0, 0, 1]
    """
    number("length", length, above=0)
    day = np.floor(time / length).astype(np.int64)
    return np.asarray(day - day.min(initial=0 if not len(day) else int(day[0])))


def shared_periods(day: Index, first: Flags) -> tuple[Index, Flags]:
    """Return the periods in which two arms are compared, and which customers are in them.

    Days on which only one of the arms existed, at the start or at the end, are left out. A day
    whose smaller arm has fewer than 20 customers is joined with the next, if the arms have about
    the same shares there; else it is left out: an arm that is there on weekends only is not
    compared with Mondays.

    >>> day = np.repeat([0, 1, 2], 50)
    >>> period, kept = shared_periods(day, (np.arange(150) % 2 == 0) & (day > 0))
    >>> np.unique(period[kept]).tolist(), int(kept.sum())
    ([0, 1], 100)
    """
    if not first.any() or first.all():
        return np.zeros(len(day), np.int64), np.zeros(len(day), np.bool_)
    ends = [(int(day[side].min()), int(day[side].max())) for side in (first, ~first)]
    start, end = max(low for low, _ in ends), min(high for _, high in ends)
    kept = (day >= start) & (day <= end)
    if not kept.any():
        return np.zeros(len(day), np.int64), kept
    length = end - start + 1
    counts = [np.bincount(day[side & kept] - start, minlength=length) for side in (first, ~first)]
    number_of = _joined_days(np.column_stack(counts))
    period = number_of[np.clip(day - start, 0, length - 1)]
    return np.asarray(np.maximum(period, 0)), kept & (period >= 0)


def _joined_days(counts: NDArray[Any]) -> Index:
    """Return the number of each day's period, given the counts of two arms; −1 if left out."""
    number_of, current, start = np.zeros(len(counts), np.int64), 0, 0
    have, before = np.zeros(2), np.zeros(2)
    for place, today in enumerate(counts.tolist()):
        if _other_shares(have, np.array(today)):
            number_of[start:place] = -1
            start, have = place, np.zeros(2)
        have = have + today
        number_of[place] = current
        if have.min() >= LEAST:
            current, start, before, have = current + 1, place + 1, have, np.zeros(2)
    if current and start < len(counts):  # the rest joins the last period
        number_of[start:] = -1 if _other_shares(before, have) else current - 1
    return number_of


def _other_shares(one: Array, other: Array) -> bool:
    """Return whether two pairs of counts have different shares, by the likelihood ratio."""
    table = np.array([one, other])
    if not table.sum(axis=1).all() or not table.sum(axis=0).all():
        return False
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(2 * xlogy(table, table / expected).sum()) > _UNLIKE


class Moved(NamedTuple):
    """Whether shares of arms, or rewards, changed along a file.

    Attributes
    ----------
    shares, rewards : bool
    within : bool
        Whether shares changed within the periods that are compared, as under a policy.
    sorted : bool
        Whether rows are sorted by arm, so that their order says nothing about time.
    """

    shares: bool = False
    rewards: bool = False
    within: bool = False
    followed: bool = False
    sorted: bool = False
    runs: bool = False


def moved(arm: Index, total: Array, arms: int, day: Index | None = None) -> Moved:
    """Test whether shares of arms and rewards changed with time, or with the row number.

    Shares: a χ² test of arms by blocks, and of arms by the place within the day. Rewards: the share
    of buyers and the rank of a total, each against the row number; both, and the total, against the
    share that the arm had then, within arms. Runs: the number of changes of the arm, and the
    correlation of ranks of neighbouring rows. Each test gives a false alarm in 1 file of 10 000;
    the test of rewards against shares in 1 of 100.

    >>> rng = np.random.default_rng(0)
    >>> arm = (rng.random(4000) < np.linspace(0.1, 0.6, 4000)).astype(int)
    >>> moved(arm, np.zeros(4000), 2)
    Moved(shares=True, rewards=False, within=True, followed=True, sorted=False, runs=False)

    Source: Pearson 1900 for χ². Differences: none.
    """
    n = len(arm)
    if n < _LEAST_ROWS or arms < 2:
        return Moved()
    unclear = Moved(rewards=_drifts(total), runs=_runs(arm, total, arms))
    if day is None or int(day.max(initial=0)) == 0:
        if int(np.count_nonzero(np.diff(arm))) < arms * math.log2(n):
            return unclear._replace(sorted=True)
        parts = [np.arange(n) * count // n for count in (_BLOCKS, max(n // _SHORT, _BLOCKS))]
        changed = any(_shares_differ(arm, part, arms) for part in parts)
        rewards = unclear.rewards or (
            changed and any(_moves_with_share(arm, total, x, arms) for x in parts)
        )
        return unclear._replace(shares=changed, rewards=rewards, within=changed, followed=changed)
    blocks = np.minimum(day * _BLOCKS // (int(day.max()) + 1), _BLOCKS - 1)
    # a third of a day each, by rank within it; compared within days
    size = np.bincount(day)
    start = np.cumsum(size) - size
    part = (np.arange(n) - start[day]) * 3 // size[day]
    came = _arrivals(arm, day)
    old = ~np.isin(day, came)
    within = _shares_differ_within_days(arm[old], part[old], day[old], arms)
    changed = _shares_differ(arm, blocks, arms)
    # that an arm came follows no rewards, so shares are compared between its coming and the next
    stages = np.searchsorted(came, day, side="right") * _BLOCKS + blocks
    moved_on = changed and (not len(came) or _shares_differ(arm[old], stages[old], arms, _BLOCKS))
    followed = within or (moved_on and _followed_rewards(arm, total, day, arms))
    rewards = unclear.rewards
    if changed or within:
        rewards |= any(_moves_with_share(arm, total, x, arms) for x in (day, part, 3 * day + part))
    return unclear._replace(shares=changed, rewards=rewards, within=within, followed=followed)


def _moves_with_share(arm: Index, total: Array, cell: Index, arms: int) -> bool:
    """Return whether the buyers or totals of an arm moved with its share of the rows of a cell.

    Σ (s − s̄)(x − x̄) over the root of the sum of squares, means within arms: zero for arms that
    met the same customers whatever their shares were.
    """
    table = np.bincount(cell * arms + arm, minlength=(int(cell.max()) + 1) * arms)
    shares = table.reshape(-1, arms) / np.maximum(table.reshape(-1, arms).sum(axis=1), 1)[:, None]
    size = np.maximum(np.bincount(arm, minlength=arms), 1)

    def centred(x: Array) -> Array:
        return np.asarray(x - (np.bincount(arm, x, arms) / size)[arm])

    values = [centred((total != 0).astype(np.float64)), centred(total)]
    for mine in range(arms):
        share = centred(shares[cell, mine])
        for x in values:
            error = math.sqrt(float(np.square(share * x).sum()))
            if abs(float(share @ x)) > _CONFOUNDED * error > 0:
                return True
    return False


def _followed_rewards(arm: Index, total: Array, day: Index, arms: int) -> bool:
    """Return whether an arm's share of a day followed its earlier rewards, and not a plan.

    The share is regressed on 1, the day, and Student's t of the arm against all others on earlier
    days. The coefficient of t is tested: a planned ramp goes into the coefficient of the day.
    """
    days = int(day.max()) + 1
    cell = day * arms + arm
    n, sums, squares = (
        np.bincount(cell, weights, days * arms).reshape(days, arms)
        for weights in (None, total, total * total)
    )
    past = [np.cumsum(x, axis=0)[:-1] for x in (n, sums, squares)]
    size = n.sum(axis=1)[1:].astype(np.float64)
    for mine in range(arms):
        k, s, q = (x[:, mine] for x in past)
        rest_k, rest_s, rest_q = (x.sum(axis=1) - x[:, mine] for x in past)
        enough = (np.minimum(k, rest_k) >= _LEAST_PAST) & (size > 0)
        if enough.sum() < _LEAST_DAYS:
            return True  # too few days to exclude it
        k, s, q, rest_k, rest_s, rest_q = (x[enough] for x in (k, s, q, rest_k, rest_s, rest_q))
        variance = (q / k - (s / k) ** 2) / k + (rest_q / rest_k - (rest_s / rest_k) ** 2) / rest_k
        lead = (s / k - rest_s / rest_k) / np.sqrt(np.maximum(variance, 1e-300))
        at = np.flatnonzero(enough).astype(np.float64)
        columns = np.column_stack([np.ones(len(at)), at, np.clip(lead, -9, 9)])
        root = np.sqrt(size[enough])
        share = n[1:][enough, mine] / size[enough]
        inverse = np.linalg.pinv((columns * root[:, None]).T @ (columns * root[:, None]))
        slope = inverse @ ((columns * root[:, None]).T @ (share * root))
        left = float(np.square((share - columns @ slope) * root).sum()) / (len(at) - 3)
        if float(slope[2]) > _FOLLOWED * math.sqrt(max(left * float(inverse[2, 2]), 0.0)):
            return True
    return False


def _runs(arm: Index, total: Array, arms: int) -> bool:
    """Return whether arms come in runs and the rewards of neighbouring rows are alike."""
    n = len(arm)
    share = np.bincount(arm, minlength=arms) / n
    change = 1 - float(share @ share)
    changes = int(np.count_nonzero(np.diff(arm)))
    size = math.sqrt(max(n * change * (1 - change), 1.0))
    if float(ndtr((changes - n * change) / size)) > SURELY:
        return False
    ranks = _ranks(total)
    ranks -= (np.bincount(arm, ranks, arms) / np.maximum(n * share, 1))[arm]
    square = float(ranks @ ranks)
    return (
        square > 0 and float(ndtr(-float(ranks[1:] @ ranks[:-1]) / square * math.sqrt(n))) < SURELY
    )


def _arrivals(arm: Index, day: Index) -> Index:
    """Return the days, after the first, on which an arm came."""
    _, first = np.unique(arm, return_index=True)
    came = np.unique(day[first])
    return came[came > 0]


def _shares_differ(arm: Index, block: Index, arms: int, together: int | None = None) -> bool:
    """Return whether the shares of arms differ between blocks, or so many in a row, by χ²."""
    table = np.bincount(block * arms + arm, minlength=(int(block.max()) + 1) * arms)
    table = table.reshape(-1, arms)
    size = len(table) if together is None else together
    return _chi_square([table[start : start + size] for start in range(0, len(table), size)])


def _shares_differ_within_days(arm: Index, part: Index, day: Index, arms: int) -> bool:
    """Return whether shares differ between parts of a day, summed over days."""
    days = int(day.max()) + 1
    table = np.bincount((day * 3 + part) * arms + arm, minlength=days * 3 * arms)
    return _chi_square(list(table.reshape(days, 3, arms)))


def _chi_square(tables: list[Array] | list[Index]) -> bool:
    statistic, freedom = 0.0, 0
    for table in tables:
        seen = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0].astype(np.float64)
        if min(seen.shape) < 2 or seen.sum() < 5 * seen.size:
            continue
        expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
        statistic += float((np.square(seen - expected) / expected).sum())
        freedom += (seen.shape[0] - 1) * (seen.shape[1] - 1)
    return freedom > 0 and float(chdtrc(freedom, statistic)) < SURELY


def _drifts(total: Array) -> bool:
    """Return whether buyers, or the ranks of totals, drift with the row number."""
    bought = (total != 0).astype(np.float64)
    drifts = False
    for values in (bought, _ranks(total[total != 0])):
        if len(values) < _LEAST_ROWS or not np.ptp(values):
            continue
        at = np.arange(len(values)) - (len(values) - 1) / 2
        centred = values - values.mean()
        z = float(at @ centred) / math.sqrt(float(at @ at) * float(centred @ centred) / len(values))
        drifts |= 2 * float(ndtr(-abs(z))) < SURELY
    return drifts


def _ranks(values: Array) -> Array:
    """Return the rank of each value; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[place], dtype=np.float64)
