"""Advice from recorded rewards: which arm leads under each aim, and which policy to run."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, number, require, whole
from tailproof.noise import Empirical, Noise
from tailproof.policies import (
    OFUL,
    UCB1,
    LinRevenueUCB,
    LinStudentUCB,
    OrderStatisticUCB,
    Policy,
    RevenueUCB,
)
from tailproof.stats.aims import Aim, CappedMean, crossing
from tailproof.stats.calibration import Calibration, calibrate_filter
from tailproof.stats.comparison import LEVEL, Comparison, Lead, MeanWithin, Unbounded
from tailproof.stats.diagnostics import ArmRewards, Rewards
from tailproof.stats.estimators import Estimator, Mean, Median, Quantile
from tailproof.stats.intervals import share_of_largest
from tailproof.stats.medians import NoiseQuantile, scale as scale_of
from tailproof.typing import Array
from tailproof.wrappers import Capped, Filtered, Negated

__all__ = ["Advice", "Lead", "calibrate"]

_SAMPLES_BEYOND = 3
"""About how many samples of a block lie beyond the quantile that it estimates."""
_SHORT_BLOCK = 9
"""The block length for a median if the calibration would use a mean."""
_FINITE_VARIANCE = 2
"""The tail index above which a variance exists."""
_FEW = 20
"""The share of the ten largest rewards means something only if there are more than this."""
_NEARLY_ALL = 0.998
"""The share of purchases below the cap where the aim is a mean: one whale must not decide."""


@dataclass(frozen=True, eq=False, kw_only=True)
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
    features, constant : int
        How many features of a visitor are recorded, and how many more are always the same.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> wild = {"a": 10 * np.exp(1.1 * rng.standard_normal(2000)), "b": 13 + rng.random(2000)}
    >>> arms = np.repeat(list(wild), 2000)
    >>> advice = calibrate(rewards=np.concatenate(list(wild.values())), arms=arms)
    >>> {name: lead.arm for name, lead in advice.leaders.items()}
    {'median': 'b', 'mean': 'a', 'capped_mean(0.99)': 'a', 'quantile(0.95)': 'a'}
    >>> advice.policy(Quantile(0.95))
    OrderStatisticUCB(quantile=0.95, index='proved', sketch=None, bonus=1.0)
    >>> advice.policy()
    Traceback (most recent call last):
    ValueError: your rewards are not symmetric, so choose an aim: median (b leads), mean (a leads),
    capped_mean(0.99) (a leads) or quantile(0.95) (a leads)

    Source: our own. Differences: none.
    """

    rewards: Rewards
    aim: Aim | None
    costs: bool
    horizon: int | None
    dim: int | None
    calibration: Calibration | None
    refusal: str
    asked: bool = False
    features: int = 0
    constant: int = 0

    @property
    def pulls(self) -> int:
        """The pulls per decision of the filter of medians."""
        return self._filter.pulls

    @property
    def scale(self) -> float:
        """The scale of the noise that the filter of medians leaves."""
        return self._filter.scale

    @property
    def estimator(self) -> Estimator:
        """The estimator of the filter of medians."""
        return self._filter.estimator

    @property
    def aims(self) -> list[Aim]:
        """The aims that are compared: the usual ones, with the given one in its place."""
        usual: list[Aim] = [Median(), Mean(), CappedMean(0.99), Quantile(0.95)]
        return [self.aim if type(aim) is type(self.aim) else aim for aim in usual]

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The arms compared under each aim, with intervals for one look."""
        names, samples = [arm.name for arm in self.rewards.arms], self.rewards.samples
        found = {}
        for aim in self.aims:
            light = {"light": self._light} if isinstance(aim, Mean) else {}
            by = aim.among(samples, **light)
            found[aim.name] = Comparison.of(by, names, samples, costs=self.costs)
        return found

    @property
    def _light(self) -> bool:
        """Whether a mean can be relied on and the tail index exceeds 2 with 99.9 % confidence.

        If the estimate is about normal, a 99.9 % interval is twice as wide as a 90 % one.
        """
        low = 2 * self.rewards.tail.low - self.rewards.tail.alpha
        return self.rewards.mean_is_safe and low > _FINITE_VARIANCE

    @property
    def estimates(self) -> dict[str, Array]:
        """Estimate and interval of every arm under each aim: (K, 3), NaN where there is none."""
        return {aim: found.table for aim, found in self.comparisons.items()}

    @property
    def leaders(self) -> dict[str, Lead]:
        """The leading arm under each aim."""
        return {aim: found.lead for aim, found in self.comparisons.items()}

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each arm: n, share of zeros, and for every aim estimate and interval.

        Each of the three is None where too little is known.
        """
        tables = {
            aim: [tuple(None if math.isnan(x) else x for x in row) for row in table.tolist()]
            for aim, table in self.estimates.items()
        }
        return [
            {
                "arm": arm.name,
                "n": len(arm.rewards),
                "zeros": float(np.mean(arm.rewards == 0)),
                **{aim: rows[i] for aim, rows in tables.items()},
            }
            for i, arm in enumerate(self.rewards.arms)
        ]

    def policy(self, aim: Aim | None = None) -> Policy[Any]:
        """Return the policy for an aim, by default the aim of this advice.

        Rewards that are not symmetric need an aim, as their mean and median differ.
        """
        chosen = aim if aim is not None else self.aim
        if chosen is None and not self.rewards.symmetric:
            several = len(self.rewards.arms) > 1
            *first, last = [
                f"{name} ({lead.arm or 'no arm'} leads)" if several else name
                for name, lead in self.leaders.items()
            ]
            raise ValueError(
                f"your rewards are not symmetric, so choose an aim: {', '.join(first)} or {last}"
            )
        _check_aim(chosen)
        inner: Aim = chosen or Median()
        if isinstance(inner, CappedMean):
            inner.values(self.rewards.samples)  # an error if the cap hides all differences
        if isinstance(inner, Quantile):
            self._check_differs(inner)
        if self.costs:
            inner = inner.mirrored  # the policy inside maximises −cost
        linear = self.dim is not None or self.features
        found = self._for_vectors(inner) if linear else self._for_arms(inner)
        return Negated(found) if self.costs else found

    def code(self, aim: Aim | None = None) -> str:
        """Return Python code that asks the policy for arms and tells it rewards, ready to paste."""
        text = _written(self.policy(aim))
        names = ", ".join(sorted(set(re.findall(r"\b([A-Z]\w+)\(", text))))
        arms = [arm.name or f"arm {1 + place}" for place, arm in enumerate(self._at_least_two)]
        offer, about = repr(arms), ""
        if self.dim is not None:
            offer = "{" + ", ".join(f"{arm!r}: …" for arm in arms) + "}"
            about = f"  # {_several(self.dim, 'feature')} of each arm"
        elif self.features:
            kind = "share" if "LinRevenueUCB" in text else "cross"
            offer, names = f"features.{kind}({arms!r}, visitor)", f"{names}, features"
            about = f"  # {_several(self.features, 'feature')} of the visitor"
        silence = ", silence=0.0" if self._mostly_zero else ""
        return "\n".join(
            [
                f"from tailproof import {names}",
                "from tailproof.live import Agent",
                "",
                f'agent = Agent({text}, "decisions.db"{silence})',
                f"choice = agent.ask({offer}){about}",
                "agent.tell(choice.id, reward)  # what choice.arm earned",
            ]
        )

    def service(self, aim: Aim | None = None) -> str:
        """Return the configuration of the same policy for ``tailproof serve``."""
        policy = self.policy(aim)
        inner = policy.policy if isinstance(policy, Negated) else policy
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _written(inner)).lower()
        chosen = aim or self.aim or Median()
        arms = ", ".join(f'"{arm.name}"' for arm in self.rewards.arms if arm.name)
        listed = [f"arms = [{arms}]"] if arms and self.dim is None else []
        first = self.rewards.arms[0].name or "ARM"
        small = ["costs = true"] if self.costs else []
        return "\n".join(
            [
                "[experiments.shop]",
                f'recipe = "{words}"',
                f'aim = "{chosen.name}"',
                *small,
                *listed,
                'wait = "1d"  # within which a reward counts',
                f'# control = {{ arm = "{first}", share = 0.1 }}  # to know whether it paid',
                'silence = 0.0  # what a request brought of which nothing is told; "lost": unknown'
                if self._mostly_zero
                else 'silence = "lost"  # a reward that never comes is unknown; 0.0: it was zero',
            ]
        )

    @property
    def _mostly_zero(self) -> bool:
        """Whether zeros are what most requests bring, so that nobody may tell them."""
        return any(np.mean(arm.rewards == 0) > 0.5 for arm in self.rewards.arms)

    @property
    def _at_least_two(self) -> list[ArmRewards]:
        arms = list(self.rewards.arms)
        return arms if len(arms) > 1 else arms * 2

    def explain(self) -> str:
        """Return the verdict, the leading arms and the filter in words, a line for each."""
        parts = [self.rewards.verdict, *self._about_leaders(), *self._about_means()]
        if self.calibration is not None and self.rewards.symmetric:
            parts.append(self.calibration.choice)
        if self.constant:
            parts.append(
                f"{_several(self.constant, 'feature')} with one value for all visitors: leave out "
                "what is always the same."
            )
        if self.rewards.missing:
            parts.append(f"{self.rewards.missing} missing rewards were left out.")
        return "\n".join(part for part in parts if part)

    def cells(self) -> list[list[str]]:
        """Return the table as strings, with a header."""
        rows = [["arm", "n", "zeros", *self.estimates]]
        for row in self.table():
            arm, n, zeros, *found = row.values()
            words = [
                _cell(cell, isinstance(compared.statistic, Unbounded))
                for cell, compared in zip(found, self.comparisons.values(), strict=True)
            ]
            rows.append([arm or "all", str(n), f"{zeros:.1%}", *words])
        return rows

    def __str__(self) -> str:
        rows = self.cells()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, "", self.explain(), "", *self.next_steps()])

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
                text = _written(self.policy(aim))
            except ValueError as error:
                text = str(error).partition(". ")[0]
            lines.append(f"{aim.name}: {text}")
        return lines

    def _about_leaders(self) -> list[str]:
        """Say who leads under each aim, and what would make it sure."""
        if len(self.rewards.arms) < 2:
            return []
        best = "smallest" if self.costs else "largest"
        found = [f"The arm with the {best} value, at {LEVEL:.0%} confidence:"]
        found += [f"  {aim}: {self._about_lead(x)}" for aim, x in self.comparisons.items()]
        if isinstance(self.aim, Mean | CappedMean) and self._location_agrees(self.aim):
            found.append(
                f"The median is sure of the arm that leads under {self.aim.name} too, and it is "
                "often learned from fewer rewards: so the tool below learns it in place of a mean."
            )
        elif self.aim == Mean() and self._is_revenue(self.aim):
            found.append(
                f"The tool below learns the mean of rewards capped at {_NEARLY_ALL:.1%} of "
                "purchases: without a cap a single reward may decide."
            )
        return found

    def _about_lead(self, found: Comparison) -> str:
        lead = found.lead
        if lead.arm is None:
            return f"nothing leads, as {_listed(lead.rivals)} have equal estimates"
        if lead.sure:
            return f"{lead.arm} (sure)"
        if isinstance(found.statistic, Unbounded):
            return f"{lead.arm} (never sure without a bound)"
        few = [
            name for name, ends in zip(found.names, found.intervals, strict=True) if ends is None
        ]
        words = f"not sure against {_listed(lead.rivals)}"
        if few:
            return f"{lead.arm} ({words}; too few rewards of {_listed(few)} to say)"
        needed = found.forecast()
        if needed is None:
            return f"{lead.arm} ({words})"
        cost = f", at a regret of about {_short(_two(needed.regret))}"
        return (
            f"{lead.arm} ({words}; if they differ as they seem to, about "
            f"{_two(needed.rewards):,.0f} more rewards would make it sure{cost})"
        )

    def _about_means(self) -> list[str]:
        """Say what a mean without an interval depends on, and which bounds or caps are used."""
        found = []
        unbounded = isinstance(self.comparisons["mean"].statistic, Unbounded)
        tops = {
            arm.name: share_of_largest(arm.rewards)
            for arm in (self.rewards.arms if unbounded else ())
            if len(arm.rewards) > _FEW and np.isfinite(arm.rewards[[0, -1]]).all()
        }
        if tops:
            name, top = max(tops.items(), key=lambda item: item[1].share)
            of = f" of {name}" if name else ""
            found.append(
                f"No interval holds for a mean without a bound: the ten largest rewards{of} "
                f"make up {top.share:.0%} of their sum, and one more like the largest would "
                f"move the mean from {_short(top.mean)} to {_short(top.one_more)}."
            )
        for aim in self.aims:
            statistic = self.comparisons[aim.name].statistic
            if isinstance(statistic, MeanWithin):
                found.append(f"For {aim.name} {statistic.words}.")
                if isinstance(aim, CappedMean) and len(self.rewards.arms) > 1:
                    names = [arm.name for arm in self.rewards.arms]
                    found.append(
                        crossing(names, self.rewards.samples, statistic.high, costs=self.costs)
                    )
        return found

    @property
    def _filter(self) -> Calibration:
        if self.calibration is None:
            raise ValueError(self.refusal)
        return self.calibration

    def _for_arms(self, aim: Aim) -> Policy[Any]:
        """Return the policy for K arms without features."""
        if isinstance(aim, Quantile):
            return OrderStatisticUCB(quantile=aim.level)
        if self._is_revenue(aim):
            return RevenueUCB(share=self._share(aim))
        if isinstance(aim, Mean | CappedMean) and not self.rewards.symmetric:
            return LinStudentUCB()  # the median agrees
        found = self._filter_for_location()
        if found.block == 1:
            return UCB1(bonus=_rounded(self._deviation))
        if self.rewards.symmetric and not self.asked:
            return LinStudentUCB()
        inner = UCB1(bonus=_rounded(found.scale))
        return Filtered(inner, repeats=found.pulls, estimator=found.estimator)

    def _for_vectors(self, aim: Aim) -> Policy[Any]:
        """Return the policy for arms with feature vectors, or for visitors' features."""
        if self._is_revenue(aim):
            share = self._share(aim)
            return Capped(OFUL(), share=share) if self.dim else LinRevenueUCB(share=share)
        size = _rounded(max(abs(arm.median) for arm in self.rewards.arms) or 1.0)
        if isinstance(aim, Mean | CappedMean) and not self.rewards.symmetric:
            return LinStudentUCB()
        if isinstance(aim, Quantile):
            repeats = math.ceil(_SAMPLES_BEYOND / min(aim.level, 1 - aim.level)) - 1
            errors = self.rewards.errors
            law = Empirical(-errors if self.costs else errors)
            noise = _rounded(scale_of(NoiseQuantile(law, repeats, aim), 1, 0.01))
            inner = OFUL(noise_scale=noise, norm_bound=size)
            return Filtered(inner, repeats=repeats, estimator=aim)
        found = self._filter_for_location()
        if found.block == 1:
            return OFUL(noise_scale=_rounded(self._deviation), norm_bound=size)
        if self.rewards.symmetric and not self.asked:
            return LinStudentUCB()
        inner = OFUL(noise_scale=_rounded(found.scale), norm_bound=size)
        return Filtered(inner, repeats=found.pulls, estimator=found.estimator)

    def _is_revenue(self, aim: Aim) -> bool:
        """Whether the aim is money, and no location is learned in its place."""
        if isinstance(aim, Mean) and self.rewards.symmetric:
            return False
        return isinstance(aim, Mean | CappedMean) and not self._location_agrees(aim)

    def _location_agrees(self, aim: Aim) -> bool:
        """Whether the median is sure of the arm that leads under the aim: it is learned sooner."""
        found = self.comparisons.get(aim.name)
        if found is None or len(found.names) < 2:
            return False
        median = self.leaders["median"]
        return median.sure and found.lead.arm == median.arm

    def _check_differs(self, aim: Quantile) -> None:
        """Raise an error if the quantile is the same for all arms: none could be told apart."""
        values = aim.values(self.rewards.samples)
        if len(values) > 1 and np.all(values == values[0]):
            raise ValueError(
                f"the {aim.name} cannot tell your arms apart: it is {values[0]:g} for all of them. "
                "Next: aim at the capped mean, or at another quantile"
            )

    def _share(self, aim: Aim) -> float:
        """Return the share of purchases below the cap; an error if there is no mean to approach."""
        if isinstance(aim, CappedMean):
            return aim.share
        if self.rewards.tail.high <= 1:
            raise ValueError(
                f"the mean cannot be the aim of these rewards. {self.rewards.verdict} "
                "Next: aim at the median, a quantile or the capped mean"
            )
        return _NEARLY_ALL

    def _filter_for_location(self) -> Calibration:
        """Return the filter for a median, which for skewed rewards must not be a mean."""
        found = self._filter
        if self.rewards.symmetric or self.asked:
            return found
        if self.rewards.mostly_equal:
            raise ValueError(
                "the median cannot tell your arms apart: more than half of the rewards equal the "
                "median of their arm. Next: aim at the mean or the capped mean"
            )
        return found if found.block > 1 else replace(found, pulls=_SHORT_BLOCK, block=_SHORT_BLOCK)

    @property
    def _deviation(self) -> float:
        """The pooled standard deviation of the rewards of an arm."""
        with np.errstate(invalid="ignore", over="ignore"):
            squares = sum(len(sample) * float(sample.var()) for sample in self.rewards.samples)
        return math.sqrt(squares / self.rewards.count)


@overload
def calibrate(*, noise: Noise, **targets: Any) -> Calibration: ...
@overload
def calibrate(
    *,
    rewards: ArrayLike,
    arms: ArrayLike | None = ...,
    features: ArrayLike | None = ...,
    aim: Aim | None = ...,
    costs: bool = ...,
    **targets: Any,
) -> Advice: ...
def calibrate(
    *,
    noise: Noise | None = None,
    rewards: ArrayLike | None = None,
    arms: ArrayLike | None = None,
    features: ArrayLike | None = None,
    aim: Aim | None = None,
    costs: bool = False,
    **targets: Any,
) -> Calibration | Advice:
    """Choose a filter for a noise law, or advise which policy to run from recorded rewards.

    Parameters
    ----------
    noise : Noise
        The law of the noise; or instead
    rewards, arms : arrays
        Recorded rewards, NaN if missing, and the arm of each.
    features : array of shape (n, d), optional
        What was known of the visitor of each reward.
    aim : Aim, optional
        What to maximise: `Median`, `Quantile`, `Mean` or `CappedMean`.
    costs : bool
        Whether smaller rewards are better.
    **targets :
        `pulls`, `block`, `scale`, `efficiency`, `horizon`, `dim`, `delta` of a filter of medians:
        see `tailproof.stats.calibration.calibrate_filter`. Pass `dim` if arms have feature vectors.

    Examples
    --------
    >>> from tailproof import noise
    >>> calibrate(noise=noise.Cauchy(), horizon=10_000, dim=10).pulls
    25
    >>> calibrate(rewards=5 + np.random.default_rng(0).standard_cauchy(1000)).policy()
    LinStudentUCB(bonus=1.0, intercept=True, room=16)
    """
    if noise is not None or rewards is None:
        if rewards is None and aim is not None:
            raise ValueError(f"aim needs recorded rewards, got {aim!r} without them")
        return calibrate_filter(noise=noise, rewards=rewards, arms=arms, **targets)
    _check_aim(aim)
    require(isinstance(costs, bool), "costs", "True or False", costs)
    number("delta", targets.get("delta", 0.01), above=0, below=1)
    horizon, dim = (
        None if targets.get(name) is None else whole(name, targets[name])
        for name in ("horizon", "dim")
    )
    if horizon is None or dim is None:
        targets = {name: x for name, x in targets.items() if name not in ("horizon", "dim")}
    seen = Rewards.of(rewards, arms)
    calibration, refusal = None, ""
    asked = any(targets.get(name) for name in ("pulls", "block", "scale", "efficiency"))
    try:
        calibration = calibrate_filter(rewards=seen, **targets)
    except ValueError as error:
        if asked:
            raise
        refusal = str(error)
    varying, constant = _features(features, rewards)
    return Advice(
        rewards=seen,
        features=varying,
        constant=constant,
        aim=aim,
        costs=costs,
        horizon=horizon,
        dim=dim,
        calibration=calibration,
        refusal=refusal,
        asked=asked,
    )


def _features(features: ArrayLike | None, rewards: ArrayLike) -> tuple[int, int]:
    """Return how many features differ between visitors, and how many do not."""
    if features is None:
        return 0, 0
    x, n = array("features", features), len(np.asarray(rewards))
    ok = x.ndim == 2 and len(x) == n and x.shape[1] > 0 and bool(np.isfinite(x).all())
    require(ok, "features", f"{n} rows of finite numbers", f"an array of shape {x.shape}")
    varying = int(np.count_nonzero(np.ptp(x, axis=0)))
    return varying, x.shape[1] - varying


def _several(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> _several(1, "feature"), _several(3, "feature")
    ('1 feature', '3 features')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _check_aim(aim: object) -> None:
    require(aim is None or isinstance(aim, Aim), "aim", "an aim such as Median()", aim)


def _written(thing: Any) -> str:
    """Return a policy as code, without settings that have their default value."""
    if not is_dataclass(thing):
        return repr(thing)
    given = [
        ("" if field.name == "policy" else f"{field.name}=") + _written(getattr(thing, field.name))
        for field in fields(thing)
        if getattr(thing, field.name) != field.default
    ]
    return f"{type(thing).__name__}({', '.join(given)})"


def _cell(found: tuple[float | None, float | None, float | None], unbounded: bool) -> str:
    """Return an estimate and its interval, or what there is of them."""
    value, low, high = found
    if unbounded and value is not None:
        return _short(value)
    if value is None or low is None or high is None:
        return "too few to say"
    return f"{_short(value)} [{_short(low)}, {_short(high)}]"


def _two(x: float) -> float:
    """Round to two digits, as a forecast deserves."""
    return float(f"{x:.2g}")


def _short(x: float) -> str:
    return f"{x:,.0f}" if 1e4 <= abs(x) < 1e9 else f"{x:.4g}"


def _rounded(x: float) -> float:
    """Round to three digits, for code that is read and typed."""
    return float(f"{min(x, 1e300):.3g}") or 1.0


def _listed(names: Sequence[str]) -> str:
    return (
        ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
    )
