"""`Advice`: which arm leads in recorded rewards, under each aim, and how sure that is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.advice.claims import bounds_words
from tailproof.advice.code import code, written
from tailproof.advice.sentences import cells, sentences
from tailproof.advice.settings import settings
from tailproof.advice.standings import (
    customers_of,
    findings_of,
    samples_of,
    standing_of,
    unsound,
)
from tailproof.advice.tools import recommend
from tailproof.notebooks import html
from tailproof.policies import Policy
from tailproof.stats.aims import Aim, CappedMean
from tailproof.stats.calibration import Calibration
from tailproof.stats.comparison import Comparison, Lead, MeanWithin, Unbounded
from tailproof.stats.customers import Customers
from tailproof.stats.diagnostics import Rewards
from tailproof.stats.estimators import Estimator, Mean, Median, Quantile
from tailproof.stats.soundness import Finding
from tailproof.stats.standing import Looks, Standing
from tailproof.tables import Records
from tailproof.typing import Array

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Advice"]

_FINITE_VARIANCE = 2
"""The tail index above which a variance exists."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Advice:
    """What recorded rewards say about their arms, and the policy to run next.

    Attributes
    ----------
    rewards : Rewards
        By arm.
    aim : Aim, optional
        What to maximise, or to minimise if the rewards are costs.
    costs : bool
    horizon, dim : int, optional
    calibration : Calibration, optional
        A suitable filter of medians; None if there is none, and `refusal` says why.
    refusal : str
    asked : bool
        Whether pulls, block, scale or efficiency were given: then the filter is advised.
    records : Records
        The rows themselves, with their times, customers and features.
    features, constant : int
        How many features of a visitor are recorded, and how many more are always the same.
    looks, control, split, largest, smallest, window :
        As in `calibrate`.
    events : bool
        Whether rewards are sums of orders.

    Examples
    --------
    >>> from tailproof import Quantile, calibrate
    >>> rng = np.random.default_rng(0)
    >>> wild = {"a": 10 * np.exp(1.1 * rng.standard_normal(2000)), "b": 13 + rng.random(2000)}
    >>> arms = np.repeat(list(wild), 2000)
    >>> advice = calibrate(reward=np.concatenate(list(wild.values())), arm=arms)
    >>> {name: lead.arm for name, lead in advice.leaders.items()}
    {'median': 'b', 'mean': 'a', 'capped_mean(0.99)': 'a', 'quantile(0.95)': 'a'}
    >>> advice.policy(Quantile(0.95))
    OrderStatisticUCB(quantile=0.95, index='proved', sketch=None, bonus=1.0)
    >>> advice.policy()
    Traceback (most recent call last):
    ValueError: your rewards are not symmetric, so choose an aim: median (b leads), mean (a leads),
    capped_mean(0.99) (a leads) or quantile(0.95) (a leads)
    """

    rewards: Rewards
    aim: Aim | None
    costs: bool
    horizon: int | None
    dim: int | None
    calibration: Calibration | None
    refusal: str
    records: Records
    asked: bool = False
    features: int = 0
    constant: int = 0
    looks: Looks = "one"
    control: str | None = None
    split: str | Mapping[str, float] | None = None
    largest: float | None = None
    smallest: float | None = None
    window: Any = None
    events: bool = False

    @property
    def pulls(self) -> int:
        """The pulls per decision of the filter of medians."""
        return self.filter.pulls

    @property
    def scale(self) -> float:
        """The scale of the noise that the filter of medians leaves."""
        return self.filter.scale

    @property
    def estimator(self) -> Estimator:
        """The estimator of the filter of medians."""
        return self.filter.estimator

    @property
    def aims(self) -> list[Aim]:
        """The aims that are compared: the usual aims, one of which the given aim may replace."""
        usual: list[Aim] = [Median(), Mean(), CappedMean(0.99), Quantile(0.95)]
        given = self.aim
        return [
            given
            if given and (type(aim) is type(given) or (aim.central and given.central))
            else aim
            for aim in usual
        ]

    @cached_property
    def customers(self) -> Customers:
        """The rows by customer; without units each row counts as a customer."""
        return customers_of(self.records, [arm.name for arm in self.rewards.arms])

    @cached_property
    def samples(self) -> list[Array]:
        """What is compared: the totals of each arm's customers, sorted."""
        return samples_of(self.customers)

    @cached_property
    def findings(self) -> list[Finding]:
        """What makes statements about this file wrong: unplanned shares, machines, duplicates."""
        return findings_of(self)

    @cached_property
    def standing(self) -> Standing:
        """Who leads by customer: by the aim if it is a bounded or capped mean, else capped.

        >>> from tailproof import calibrate
        >>> rng = np.random.default_rng(1)
        >>> arm = rng.choice(["old", "new"], 20_000)
        >>> spent = np.where(rng.random(20_000) < np.where(arm == "new", 0.08, 0.04), 30.0, 0.0)
        >>> standing = calibrate(arm=arm, reward=spent, unit=np.arange(20_000)).standing
        >>> standing.leader, standing.sure
        ('new', True)
        """
        under_aim = None if self.aim is None else standing_of(self, self.aim)
        return under_aim or Standing(
            customers=self.customers,
            names=[arm.name for arm in self.rewards.arms],
            looks=self.looks,
            costs=self.costs,
            unsound=unsound(self),
        )

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The arms compared under each aim, with intervals for one look."""
        names = [arm.name for arm in self.rewards.arms]
        comparisons = {}
        for aim in self.aims:
            standing = standing_of(self, aim)
            by = aim.among(self.samples, light=self.light)
            if standing is not None:
                low, high = standing.range
                by = MeanWithin(low, high, bounds_words(standing))
            elif by.range is not None:
                by = Unbounded()
            comparisons[aim.name] = Comparison.of(
                by,
                names,
                self.samples,
                costs=self.costs,
                any_look=self.looks == "any",
                standing=standing,
                doubts=self._doubts,
            )
        return comparisons

    @property
    def _doubts(self) -> tuple[str, ...]:
        """Why no lead by a quantile is sure: it is compared neither within days nor by visit."""
        if self.customers.case == "visits":
            return ("arms were drawn for each visit, and visits of a customer are alike",)
        moved = self.standing.moved
        if self.standing.unsound:
            return self.standing.unsound
        if moved.runs or ((moved.shares or moved.within) and moved.rewards):
            return ("the shares of the arms and the rewards moved with time",)
        if self.customers.weight is not None:
            return ("propensities differ from row to row; `tailproof judge` weighs rewards",)
        return ()

    @property
    def light(self) -> bool:
        """Whether a mean can be relied on and the tail index exceeds 2 with 99.9 % confidence.

        If the estimate is about normal, a 99.9 % interval is twice as wide as a 90 % one.
        """
        low = 2 * self.rewards.tail.low - self.rewards.tail.alpha
        return self.rewards.mean_is_safe and low > _FINITE_VARIANCE

    @property
    def estimates(self) -> dict[str, Array]:
        """Estimate and interval of every arm under each aim: (K, 3), NaN where there is none."""
        return {aim: comparison.table for aim, comparison in self.comparisons.items()}

    @property
    def leaders(self) -> dict[str, Lead]:
        """The leading arm under each aim."""
        return {aim: comparison.lead for aim, comparison in self.comparisons.items()}

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each arm: n, share of zeros, and for every aim estimate and interval.

        n counts customers where units are known. Estimates and ends of intervals are None where too
        little is known.
        """
        tables = {
            aim: [_without_nan(row) for row in table.tolist()]
            for aim, table in self.estimates.items()
        }
        return [
            {
                "arm": arm.name,
                "n": len(sample),
                "zeros": float(np.mean(sample == 0)) if len(sample) else math.nan,
                **{aim: rows[i] for aim, rows in tables.items()},
            }
            for i, (arm, sample) in enumerate(zip(self.rewards.arms, self.samples, strict=True))
        ]

    def policy(self, aim: Aim | None = None) -> Policy[Any]:
        """Return the policy for an aim, by default the aim of this advice.

        Rewards that are not symmetric need an aim, as their mean and median differ.
        """
        return recommend(self, aim)

    def code(self, aim: Aim | None = None) -> str:
        """Return Python code that asks the policy for arms and tells it rewards, ready to paste."""
        return code(self, aim)

    def service(self, aim: Aim | None = None) -> str:
        """Return the configuration of the same policy for ``tailproof serve``."""
        return settings(self, aim)

    def explain(self) -> str:
        """Return the verdict, the leading arms and the filter in words, a line for each."""
        return sentences(self)

    def cells(self) -> list[list[str]]:
        """Return the table as strings, with a header."""
        return cells(self)

    def __str__(self) -> str:
        rows = self.cells()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, "", self.explain(), "", *self.next_steps()])

    def plot(self) -> "Figure":
        """Return a picture: the tail of each arm's rewards, and the arms under each aim."""
        from tailproof.advice.drawing import rewards_figure

        return rewards_figure(self.rewards, self.estimates)

    def to_frame(self) -> "pandas.DataFrame":
        """Return estimate and interval of every arm under each aim, a row for each."""
        import pandas

        rows = [
            {"arm": arm.name, "aim": aim, "estimate": value, "low": low, "high": high}
            for aim, table in self.estimates.items()
            for arm, (value, low, high) in zip(self.rewards.arms, table.tolist(), strict=True)
        ]
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        return f"<Advice on {self.rewards.count:,} rewards of {len(self.rewards.arms)} arms>"

    def _repr_html_(self) -> str:
        return html(self.cells(), self.explain().split("\n"))

    def next_steps(self) -> list[str]:
        """Return the code to run, or the policy for each aim if one has to be chosen."""
        try:
            return [
                self.code(),
                "",
                "or, in a file shop.toml for tailproof serve shop.toml:",
                "",
                self.service(),
            ]
        except ValueError as refused:
            lines = [str(refused)]
        for aim in self.aims:
            try:
                text = written(self.policy(aim))
            except ValueError as error:
                text = str(error).partition(". ")[0]
            lines.append(f"{aim.name}: {text}")
        return lines

    @property
    def filter(self) -> Calibration:
        """The filter of medians; a ``ValueError`` with the reason if there is none."""
        if self.calibration is None:
            raise ValueError(self.refusal)
        return self.calibration


def _without_nan(row: list[float]) -> tuple[float | None, ...]:
    """Return the row with None in place of NaN."""
    return tuple(None if math.isnan(x) else x for x in row)
