"""Advice from recorded rewards: which arm leads under each aim, and which policy to run."""

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import number, require, whole
from tailproof.noise import Empirical, Noise
from tailproof.policies import (
    OFUL,
    UCB1,
    AdaRUCB,
    HvtUCB,
    LinStudentUCB,
    OrderStatisticUCB,
    Policy,
    RobustUCB,
)
from tailproof.stats.aims import Aim, CappedMean
from tailproof.stats.calibration import Calibration, calibrate_filter
from tailproof.stats.diagnostics import Rewards
from tailproof.stats.estimators import Estimator, Mean, Median, Quantile
from tailproof.stats.medians import NoiseQuantile
from tailproof.stats.medians import scale as scale_of
from tailproof.typing import Array
from tailproof.wrappers import AutoFiltered, Capped, Filtered, Negated

__all__ = ["Advice", "Lead", "calibrate"]

LEVEL = 0.95
"""The joint confidence level of all intervals of an aim."""
_SAMPLES_BEYOND = 3
"""About how many samples of a block lie beyond the quantile that it estimates."""
_DECISIONS = 10_000
"""The number of decisions for policies that must know it, if no horizon was given."""
_SMALLEST_ORDER = 0.05
"""ε for moments of order 1 + ε if even the mean may not exist."""
_ROBUST_BONUS = 0.1
"""With the published constant 1, robust means explore for the whole of a usual horizon."""
_SHORT_BLOCK = 9
"""The block length for a median if the calibration would use a mean."""
WARNING = (
    "moments are estimated from these records, and more extreme rewards than these can mislead the "
    "policy: no algorithm adapts to an unknown tail for free"
)


class Lead(NamedTuple):
    """The leading arm under an aim; `sure` if no rival's interval overlaps its own."""

    arm: str
    sure: bool
    rivals: tuple[str, ...]


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

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> wild = {"a": 10 * np.exp(1.1 * rng.standard_normal(2000)), "b": 13 + rng.random(2000)}
    >>> arms = np.repeat(list(wild), 2000)
    >>> advice = calibrate(rewards=np.concatenate(list(wild.values())), arms=arms)
    >>> {name: lead.arm for name, lead in advice.leaders.items()}
    {'median': 'b', 'mean': 'a', 'capped_mean(0.99)': 'a', 'quantile(0.95)': 'a'}
    >>> advice.policy(Quantile(0.95))
    OrderStatisticUCB(quantile=0.95, index='proved', sketch=None)
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
        """The aims that are compared: the usual ones and the given one."""
        usual: list[Aim] = [Median(), Mean(), CappedMean(0.99), Quantile(0.95)]
        if isinstance(self.aim, Quantile | CappedMean):
            usual = [aim for aim in usual if type(aim) is not type(self.aim)] + [self.aim]
        return usual

    @cached_property
    def estimates(self) -> dict[str, Array]:
        """The estimate and interval of every arm under each aim, at a joint level of 95 % per aim.

        They are NaN for an arm with too few rewards for a quantile.
        """
        level = 1 - (1 - LEVEL) / len(self.rewards.arms)
        return {aim.name: estimates(aim, self.rewards.samples, level) for aim in self.aims}

    @property
    def leaders(self) -> dict[str, Lead]:
        """The leading arm under each aim."""
        names = [arm.name for arm in self.rewards.arms]
        return {aim: leader(names, x, costs=self.costs) for aim, x in self.estimates.items()}

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each arm: n, share of zeros, and estimate and interval for every aim."""
        return [
            {
                "arm": arm.name,
                "n": len(arm.rewards),
                "zeros": float(np.mean(arm.rewards == 0)),
                **{aim: tuple(table[i].tolist()) for aim, table in self.estimates.items()},
            }
            for i, arm in enumerate(self.rewards.arms)
        ]

    def policy(self, aim: Aim | None = None) -> Policy[Any]:
        """Return the policy for an aim, by default the aim of this advice.

        Rewards that are not symmetric need an aim, as their mean and median differ.
        """
        chosen = aim if aim is not None else self.aim
        if chosen is None and not self.rewards.symmetric:
            *first, last = [f"{name} ({lead.arm} leads)" for name, lead in self.leaders.items()]
            raise ValueError(
                f"your rewards are not symmetric, so choose an aim: {', '.join(first)} or {last}"
            )
        _check_aim(chosen)
        inner: Aim = chosen or Median()
        if self.costs:
            inner = inner.mirrored  # the policy inside maximises −cost
        found = self._for_arms(inner) if self.dim is None else self._for_vectors(inner)
        return Negated(found) if self.costs else found

    def code(self, aim: Aim | None = None) -> str:
        """Return Python code that runs the policy, ready to paste."""
        policy, said = self._policy_and_warnings(aim)
        text = re.sub(r", block_exponent=None|, sketch=None|policy=", "", repr(policy))
        names = ", ".join(sorted(set(re.findall(r"\b([A-Z]\w+)\(", text))))
        arms, dim = max(len(self.rewards.arms), 2), self.dim
        vectors = f"np.eye({arms})[None]" if dim is None else f"…  # of shape (1, K, {dim})"
        repeat = "" if policy.pulls == 1 else f"  # pull it {policy.pulls} times"
        return "\n".join(
            [
                "import numpy as np",
                f"from tailproof import {names}",
                "",
                *said,
                f"policy, rng = {text}, np.random.default_rng()",
                f"state = policy.init(paths=1, arms={arms}, dim={dim or arms})",
                f"arms = {vectors}",
                f"chosen = policy.choose(state, arms, rng){repeat}",
                f"policy.learn(state, arms, chosen, rewards)  # of shape (1, {policy.pulls})",
            ]
        )

    def explain(self) -> str:
        """Return the verdict, the leading arms and the filter in words."""
        parts = [self.rewards.verdict, self._about_leaders()]
        if self.calibration is not None and self.rewards.symmetric:
            parts.append(self.calibration.choice)
        if self.rewards.missing:
            parts.append(f"{self.rewards.missing} missing rewards were left out.")
        return " ".join(part for part in parts if part)

    def cells(self) -> list[list[str]]:
        """Return the table as strings, with a header."""
        rows = [["arm", "n", "zeros", *self.estimates]]
        for row in self.table():
            arm, n, zeros, *found = row.values()
            words = [f"{_short(x)} [{_short(low)}, {_short(high)}]" for x, low, high in found]
            rows.append([arm or "all", str(n), f"{zeros:.0%}", *words])
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
            return [self.code()]
        except ValueError as refused:
            lines = [str(refused)]
        for aim in self.aims:
            try:
                policy, said = self._policy_and_warnings(aim)
                text = "  ".join([repr(policy), *said])
            except ValueError as error:
                text = str(error).partition(". ")[0]
            lines.append(f"{aim.name}: {text}")
        return lines

    def _policy_and_warnings(self, aim: Aim | None) -> tuple[Policy[Any], list[str]]:
        """Return a policy, and the warnings about it as comments."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            policy = self.policy(aim)
        return policy, [f"# warning: {warning.message}" for warning in said]

    def _about_leaders(self) -> str:
        if len(self.rewards.arms) < 2:
            return ""
        best = "smallest" if self.costs else "largest"
        words = [
            f"{aim}: {lead.arm} ({'sure' if lead.sure else 'not sure: ' + _listed(lead.rivals)})"
            for aim, lead in self.leaders.items()
        ]
        found = f"The arm with the {best} value, at {LEVEL:.0%} confidence: {'; '.join(words)}."
        median, means = self.leaders["median"], isinstance(self.aim, Mean | CappedMean)
        if self.aim and means and median.sure and median.arm == self.leaders[self.aim.name].arm:
            found += " The median picks the same arm, and is learned faster."
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
        if isinstance(aim, CappedMean):
            return Capped(UCB1(), share=aim.share)
        if isinstance(aim, Mean) and not self.rewards.symmetric:
            if self.rewards.mean_is_safe:
                return UCB1(bonus=_rounded(self._deviation))
            order = self._moment_order()
            if order is None:
                return AdaRUCB()
            settings = {"epsilon": order, "moment_bound": _rounded(self._moment(order))}
            return RobustUCB(estimator="median_of_means", **settings, bonus=_ROBUST_BONUS)
        found = self._filter_for_location()
        if found.block == 1:
            return UCB1(bonus=_rounded(self._deviation))
        if self.rewards.symmetric and not self.asked:  # LinStudentUCB assumes equal noise
            return AutoFiltered(UCB1()) if self.rewards.differ else LinStudentUCB()
        inner = UCB1(bonus=_rounded(found.scale))
        return Filtered(inner, repeats=found.pulls, estimator=found.estimator)

    def _for_vectors(self, aim: Aim) -> Policy[Any]:
        """Return the policy for arms with feature vectors."""
        size = _rounded(max(abs(arm.median) for arm in self.rewards.arms) or 1.0)
        if isinstance(aim, CappedMean):
            return Capped(OFUL(), share=aim.share)
        if isinstance(aim, Quantile):
            repeats = math.ceil(_SAMPLES_BEYOND / min(aim.level, 1 - aim.level)) - 1
            errors = self.rewards.errors
            law = Empirical(-errors if self.costs else errors)
            noise = _rounded(scale_of(NoiseQuantile(law, repeats, aim), 1, 0.01))
            inner = OFUL(noise_scale=noise, norm_bound=size)
            return Filtered(inner, repeats=repeats, estimator=aim)
        safe = OFUL(noise_scale=_rounded(self._deviation), norm_bound=size)
        if isinstance(aim, Mean) and not self.rewards.symmetric:
            if self.rewards.mean_is_safe:
                return safe
            order = self._moment_order() or _SMALLEST_ORDER
            return HvtUCB(
                decisions=self.horizon or _DECISIONS,
                epsilon=order,
                moment_bound=_rounded(self._moment(order)),
                norm_bound=size,
                bonus=1e-3,
            )
        found = self._filter_for_location()
        if found.block == 1:
            return safe
        if self.rewards.symmetric and not self.asked:
            return LinStudentUCB()
        inner = OFUL(noise_scale=_rounded(found.scale), norm_bound=size)
        return Filtered(inner, repeats=found.pulls, estimator=found.estimator)

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

    def _moment_order(self) -> float | None:
        """Return ε such that the tail clearly has moments of order 1 + ε.

        None if a mean may not exist; raises if it certainly does not.
        """
        tail = self.rewards.tail
        if tail.high <= 1:
            raise ValueError(
                f"the mean cannot be the aim of these rewards. {self.rewards.verdict} "
                "Next: aim at the median, a quantile or the capped mean"
            )
        warnings.warn(WARNING, stacklevel=4)
        return None if tail.low <= 1 else round(min((tail.low - 1) / 2, 1.0), 3)

    def _moment(self, order: float) -> float:
        """Return the largest E|X − median|^{1+ε} of an arm."""
        return max(float((np.abs(arm.errors) ** (1 + order)).mean()) for arm in self.rewards.arms)


@overload
def calibrate(*, noise: Noise, **targets: Any) -> Calibration: ...
@overload
def calibrate(
    *,
    rewards: ArrayLike,
    arms: ArrayLike | None = ...,
    aim: Aim | None = ...,
    costs: bool = ...,
    **targets: Any,
) -> Advice: ...
def calibrate(
    *,
    noise: Noise | None = None,
    rewards: ArrayLike | None = None,
    arms: ArrayLike | None = None,
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
    return Advice(
        rewards=seen,
        aim=aim,
        costs=costs,
        horizon=horizon,
        dim=dim,
        calibration=calibration,
        refusal=refusal,
        asked=asked,
    )


def leader(names: Sequence[str], table: Array, *, costs: bool) -> Lead:
    """Return the leading arm by estimates and intervals, see `estimates`.

    >>> leader(["a", "b"], np.array([[1.0, 0.0, 2.0], [5.0, 4.0, 6.0]]), costs=False)
    Lead(arm='b', sure=True, rivals=())
    """
    value, low, high = (-table[:, [0, 2, 1]] if costs else table).T
    first = int(np.argmax(np.where(np.isnan(value), -np.inf, value)))
    rivals = tuple(
        name
        for i, name in enumerate(names)
        if i != first and not high[i] < low[first]  # NaN is a rival too
    )
    return Lead(names[first], not rivals, rivals)


def estimates(aim: Aim, samples: Sequence[Array], level: float) -> Array:
    """Return estimates and intervals, NaN for an arm with too few rewards for the aim."""
    if isinstance(aim, CappedMean):  # depends on all arms
        return aim.estimates(samples, level)
    found = np.full((len(samples), 3), np.nan)
    for place, sample in enumerate(samples):
        if not isinstance(aim, Quantile) or len(sample) >= aim.least:
            found[place] = aim.estimates([sample], level)[0]
    return found


def _check_aim(aim: object) -> None:
    require(aim is None or isinstance(aim, Aim), "aim", "an aim such as Median()", aim)


def _short(x: float) -> str:
    return f"{x:,.0f}" if 1e4 <= abs(x) < 1e9 else f"{x:.4g}"


def _rounded(x: float) -> float:
    """Round to three digits, for code that is read and typed."""
    return float(f"{min(x, 1e300):.3g}") or 1.0


def _listed(names: Sequence[str]) -> str:
    return (
        ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
    )
