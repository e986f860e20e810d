"""What `judge` is asked: an aim, a kind of interval, and how the log is read."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np

from tailproof.checks import number, require
from tailproof.judging.arrivals import instant
from tailproof.stats.aims import Aim, check_aim
from tailproof.stats.customers import cap_of_totals, owed, totals_of
from tailproof.tables import Reading, Records
from tailproof.tables.moments import check_zone
from tailproof.tables.reading import check_options
from tailproof.typing import Array

__all__ = ["Judging", "Question", "capped", "refunds"]

Ends = tuple[float, float]


class Judging(Reading, total=False):
    """Options of `judge`, beside those of `Reading`.

    Attributes
    ----------
    arm, reward, unit, time, propensity, features :
        Columns of the log, see `tailproof.records`.
    control : str
        An arm, or the name of a rule, that others are compared with beside what was done.
    level : float
        Confidence of each interval; 0.95 unless given.
    interval : "score", "exact" or "anytime"
        "score", the default, is asymptotic and narrow. "exact" holds at any size, and "anytime" for
        all looks at a growing log at once; both need true propensities and an aim that is a
        quantile or a capped mean with a given ``cap``. Give ``floor=`` for narrow intervals.
    unknown : "alike" or "worst"
        Unknown rewards are like the known ones, or the interval holds whatever they are.
    cap : tuple
        The range of a capped mean; default: `CappedMean.range` of the log, or of the totals of
        units, so that a customer's rows together keep to the range.
    largest, smallest : float
        The largest and the smallest reward that is possible, or total of a unit, if you know them:
        then a mean can be trusted without a cap.
    costs : bool
        Whether small is good.
    model : bool
        Whether to use the model h; True unless given.
    seed : int
        For folds and replays.
    since : str or float
        Leave out earlier rows: a date such as "2026-08-15", or seconds since 1970. Rows in which an
        arm that a rule names was not on offer are left out in any case, with a count.

    Examples
    --------
    >>> import tailproof as tp
    >>> how: tp.Judging = {"level": 0.9, "costs": True}
    >>> tp.judge(tp.records(arm=["A", "B"] * 30, reward=range(60)), "A", tp.Median(), **how).level
    0.9
    """

    arm: Any
    reward: Any
    unit: Any
    time: Any
    propensity: Any
    features: Any
    control: str | None
    level: float
    interval: Literal["score", "exact", "anytime"]
    unknown: Literal["alike", "worst"]
    cap: Ends | None
    largest: float | None
    smallest: float | None
    costs: bool
    model: bool
    seed: int
    since: str | float | None


@dataclass(frozen=True, kw_only=True)
class Question:
    """The options of `Judging` that are not about columns, checked."""

    aim: Aim
    control: str | None = None
    level: float = 0.95
    interval: Literal["score", "exact", "anytime"] = "score"
    unknown: Literal["alike", "worst"] = "alike"
    cap: Ends | None = None
    largest: float | None = None
    smallest: float | None = None
    costs: bool = False
    model: bool = True
    seed: int = 0
    since: float | None = None
    """In seconds since 1970."""

    @classmethod
    def of(cls, aim: Aim, options: Judging) -> tuple[Self, dict[str, Any]]:
        """Return the question, and the remaining options, which say how the log is read."""
        check_options(options, [*Judging.__annotations__])
        own_options = {part.name for part in fields(cls)}
        asked: Any = {name: value for name, value in options.items() if name in own_options}
        left = {name: value for name, value in options.items() if name not in own_options}
        if asked.get("since") is not None:
            check_zone(options.get("zone"))
            asked["since"] = instant("since", asked["since"], options.get("zone"))
        return cls(aim=aim, **asked), left

    def __post_init__(self) -> None:
        check_aim("aim", self.aim)
        number("level", self.level, at_least=0.5, below=1)
        kinds = ("score", "exact", "anytime")
        require(self.interval in kinds, "interval", f"one of {', '.join(kinds)}", self.interval)
        alike = self.unknown in ("alike", "worst")
        require(alike, "unknown", "'alike' or 'worst'", self.unknown)
        if self.unknown == "worst" and not self.aim.bounded:
            raise ValueError(
                f"unknown='worst' has no bound for the aim {self.aim.name}: choose a quantile "
                "or a capped mean"
            )
        if self.cap is not None:
            low, high = (number("cap", end) for end in self.cap)
            require(low < high, "cap", "a range (low, high)", self.cap)
            only = "None unless the aim is a capped mean"
            require(self.aim.share is not None, "cap", only, self.cap)

    def check(self, log: Records) -> None:
        """Raise ``ValueError`` if the interval cannot hold for this log."""
        asked = f"interval={self.interval!r} needs"
        if self.interval == "score":
            return
        if not self.aim.bounded:
            raise ValueError(
                f"{asked} a bounded score, which {self.aim.name} has not: choose a quantile or a "
                "capped mean"
            )
        if self.aim.share is not None and self.cap is None:
            raise ValueError(f"{asked} cap=(low, high), chosen before the rewards were seen")
        if log.estimated:
            raise ValueError(
                f"{asked} true propensities; this log has none, so they were estimated from counts"
            )


def capped(log: Records, question: Question) -> tuple[Records, Ends | None, str]:
    """Return the log, the range of rewards or totals, and what determined the range.

    With units, the range is learned from their totals, and the rows of a unit beyond it are scaled.
    """
    aim, cap = question.aim, question.cap
    smallest, largest = question.smallest, question.largest
    rewards = np.where(np.isnan(log.reward), 0.0, log.reward)
    totals: Array = rewards
    if log.unit is not None:
        totals = totals_of(log.unit, rewards, int(log.unit.max(initial=-1)) + 1)
    if largest is not None:
        require(
            aim.averages and aim.share is None, "largest", "None unless the aim is Mean()", largest
        )
        low = min(0.0, float(totals.min())) if smallest is None else number("smallest", smallest)
        high = number("largest", largest, at_least=float(totals.max(initial=low)))
        require(low <= totals.min(initial=high), "smallest", "no larger than any reward", smallest)
        return log, (low, high), "bounds"
    require(smallest is None, "smallest", "None without largest", smallest)
    if cap is not None or not log.samples:
        return log, cap, "given"
    if aim.share is None or log.unit is None:
        ends = aim.cap(log.samples)
        return _with_note(log, rewards, "Rewards", ends), ends, "rewards"
    low, high = cap_of_totals(totals, aim.share)
    log = _with_note(log, totals, "Totals of units", (low, high))
    if not 0 < high - low < math.inf:
        return log, (low, high), "totals"
    scale = np.divide(
        np.clip(totals, low, high), totals, out=np.ones(len(totals)), where=totals != 0
    )
    return log.filled(log.reward * scale[log.unit]), (low, high), "totals"


def refunds(log: Records, ends: Ends | None) -> Array:
    """Return the part of each row in a negative total that counts as 0, with a positive sign."""
    rewards = np.where(np.isnan(log.reward), 0.0, log.reward)
    if ends is None:
        return np.zeros(log.n)
    if log.unit is None:
        return owed(rewards, ends[0])
    totals = totals_of(log.unit, rewards, int(log.unit.max(initial=-1)) + 1)
    of_unit = owed(totals, ends[0])
    return np.where(of_unit[log.unit] > 0, -rewards, 0.0)


def _with_note(log: Records, values: Array, what: str, ends: Ends | None) -> Records:
    """Return the log with a sentence on what counts as 0: refunds that are too rare for the cap."""
    below = 0 if ends is None or ends[0] else int((values < 0).sum())
    if not below:
        return log
    note = f"{what} below 0 count as 0 ({below:,} here): refunds beyond that do not count."
    return replace(log, notes=(*log.notes, note))
