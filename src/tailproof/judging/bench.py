"""One rule after the other, judged on one log: estimate, interval, doubts."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from tailproof.judging.bets import Bets
from tailproof.judging.models import CrossFit
from tailproof.judging.question import Question
from tailproof.judging.replay import PARTS, replay
from tailproof.judging.result import Difference, RuleValue
from tailproof.judging.rules import probabilities
from tailproof.judging.scores import (
    Estimate,
    Weighted,
    cautious,
    largest_share,
    location,
    mean,
    norm,
    quantile,
)
from tailproof.judging.verdicts import (
    DOMINANT,
    Doubt,
    Overlap,
    about_drift,
    about_errors,
    about_mean,
    about_overlap,
)
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim
from tailproof.tables import Records
from tailproof.typing import Array

__all__ = ["Answer", "Bench", "difference"]

Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Answer:
    """A rule's value, the errors of its units, and its interval for a difference.

    `owed` is what its refunds take from a row beyond the range of the cap; NaN if nobody knows.
    """

    value: RuleValue
    influence: Array | None = None
    freedom: float = 2.0
    owed: float = math.nan
    wide: Ends | None = None
    """An exact interval of level (1 + level)/2; two such intervals bound a difference."""

    def doubted(self, doubt: Doubt) -> "Answer":
        """Return the answer with this doubt, unless it has a doubt already."""
        if self.value.verdict != "trust":
            return self
        return replace(self, value=replace(self.value, verdict=doubt.kind, reason=doubt.reason))


class Bench:
    """A log and an aim, with which rules are judged one by one."""

    def __init__(
        self,
        log: Records,
        question: Question,
        cap: Ends | None,
        *,
        of_totals: bool,
        refunds: Array,
    ) -> None:
        self.all, self.aim, self.cap, self.of_totals = log, question.aim, cap, of_totals
        self.level, self.interval, self.seed = question.level, question.interval, question.seed
        aim, model = question.aim, question.model
        self.known = ~np.isnan(log.reward)
        self.log = log if self.known.all() else log.take(np.flatnonzero(self.known))
        self.refunds = refunds[self.known]
        self.drift = list(about_drift(self.log))
        needed = model or aim.symmetric
        past = log.adaptive is not False and not aim.symmetric  # c corrects q there
        self.model = None
        if needed and self.known.any():
            self.model = CrossFit(self.log, self._rng(), past=past)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def answer(self, name: str, rule: Any) -> Answer:
        """Return what a rule would have earned; None stands for the logged choices."""
        if isinstance(rule, Policy):
            return self._replayed(rule)
        pi = None if rule is None else probabilities(name, rule, self.all, self._rng())[self.known]
        log = self.log
        if not log.n:
            return _refused("no reward of the log is known")
        raw = np.ones(log.n) if pi is None else pi[np.arange(log.n), log.arm] / log.known_propensity
        if not raw.any():
            return _refused("the log has no reward of this rule: no overlap")
        steady = _steady(log, pi)
        overlap = Overlap.of(log, raw, steady, pi)
        about: dict[str, Any] = {
            "effective_size": overlap.effective,
            "mean_weight": overlap.mean_weight,
        }
        doubts = [*about_overlap(self.aim, overlap), *self._about_rewards(raw), *self.drift]
        for doubt in doubts:
            if doubt.kind == "refused":
                return _refused(doubt.reason, **about)
        given = Weighted(log.reward, raw, steady, pi, log.arm, log.unit, self.model)
        estimate = self._estimate(given)
        share = largest_share(estimate.influence)
        if estimate.errors is not None:
            doubts += about_errors(estimate.errors[raw > 0])
        if share > DOMINANT and not self.aim.bounded and self.cap is None:
            unit = "row" if log.unit is None else "unit"
            doubts.append(Doubt("beware", f"one {unit} has {share:.0%} of the variance"))
        value = RuleValue(estimate.value, estimate.low, estimate.high, largest_share=share, **about)
        weight = raw * steady
        owed = float(weight @ self.refunds / weight.sum())
        answer = Answer(value, estimate.influence, max(overlap.effective - 1, 2.0), owed)
        for doubt in doubts:
            answer = answer.doubted(doubt)
        return answer if self.interval == "score" else self._exact(answer, raw, pi)

    def _about_rewards(self, raw: Array) -> list[Doubt]:
        """Return the reasons in the rewards to doubt a value of this aim."""
        reward = self.log.reward[raw > 0]
        if self.aim.averages and not self.aim.bounded and self.cap is None:
            if not np.isfinite(reward).all():
                return [Doubt("refused", "infinite rewards have no mean: ask for a quantile")]
            return list(about_mean(reward))
        if self.cap is not None:
            if not np.isfinite(self.cap).all():
                return [Doubt("refused", "infinite rewards leave no cap: ask for a quantile")]
            if self.cap[0] == self.cap[1]:
                return [Doubt("refused", "all rewards are zero, so nothing is known about others")]
        if self.aim.symmetric:
            with np.errstate(over="ignore", invalid="ignore"):
                every = self.log.reward
                spread = float(np.median(np.abs(every - np.median(every))))
            if not 0 < spread < math.inf:
                return [
                    Doubt(
                        "refused",
                        "half of the rewards or more are one value, or infinite: ask for the "
                        "capped mean or a high quantile",
                    )
                ]
        return []

    def _estimate(self, given: Weighted) -> Estimate:
        if self.aim.symmetric:
            return location(given, self.level)
        if self.aim.averages:
            return mean(given, self.level, self.cap, of_totals=self.of_totals)
        return quantile(given, _level(self.aim), self.level)

    def _exact(self, answer: Answer, raw: Array, pi: Array | None) -> Answer:
        """Return the answer with an exact interval, and with a wider interval for differences."""
        log, low, high = self.log, math.nan, math.nan
        wide = (low, high)
        if pi is not None or log.adaptive is False:
            most = 1.0 if pi is None else None
            if pi is not None and log.floor is not None:
                most = float(pi.max()) / log.floor
            intervals = []
            for level in (self.level, (1 + self.level) / 2):
                bets = Bets(
                    weight=raw,
                    unit=log.unit,
                    level=level,
                    most=most,
                    anytime=self.interval == "anytime",
                )
                if self.cap is None:
                    intervals.append(bets.quantile(log.reward, _level(self.aim)))
                else:
                    start, width = self.cap[0], self.cap[1] - self.cap[0]
                    ends = bets.mean((np.clip(log.reward, *self.cap) - start) / width)
                    intervals.append((start + width * ends[0], start + width * ends[1]))
            (low, high), wide = intervals
        value = replace(answer.value, low=low, high=high)
        return replace(answer, value=value, wide=wide)

    def _replayed(self, policy: Policy[Any]) -> Answer:
        """Return the value of a policy that learns from scratch."""
        if self.aim.symmetric:
            return _refused(
                "a policy that learns is judged by its rewards: ask for a quantile, "
                "the capped mean or the mean"
            )
        if self.interval != "score":
            return _refused(f"there is no {self.interval} interval for a policy that learns")
        replayed = replay(policy, self.all, self._rng())
        if replayed.rewards is None:
            return _refused(replayed.reason)
        estimate = replayed.value(self.aim, self.cap, self.level)
        value = RuleValue(
            estimate.value, estimate.low, estimate.high, horizon=replayed.rewards.shape[2]
        )
        answer = Answer(value, estimate.influence, PARTS - 1)
        for doubt in (
            about_mean(replayed.rewards.ravel())
            if self.aim.averages and not self.aim.bounded and self.cap is None
            else ()
        ):
            answer = answer.doubted(doubt)
        return answer


def _level(aim: Aim) -> float:
    assert aim.level is not None
    return aim.level


def _refused(reason: str, **about: Any) -> Answer:
    return Answer(RuleValue(verdict="refused", reason=reason, **about))


def _steady(log: Records, pi: Array | None) -> Array | float:
    """Return 1/√E[w_t² | past], with which every row of an adaptive log has the same variance.

    It may depend on the past but not on the visitor: only if neither the log nor the rule looks at
    visitors, and all arms are always offered.

    Source: Hadad, Hirshberg, Zhan, Wager and Athey 2021. Differences: none.
    """
    plain = log.features is None and log.group is None and log.offered is None
    if not (log.adaptive and plain) or pi is None or (pi != pi[0]).any():
        return 1.0
    if log.propensities is not None:
        possible = np.where(pi > 0, log.propensities, 1.0)
        return np.asarray(1 / np.sqrt((np.square(pi) / np.maximum(possible, 1e-300)).sum(axis=1)))
    return np.sqrt(log.known_propensity) if pi[0].max() == 1 else 1.0


def difference(a: Answer, b: Answer, question: Question) -> Difference:
    """Return how much more a earns than b, from the differences of their rows.

    Replays share their parts; a replay and another rule are taken to be independent.
    """
    if a.influence is None or b.influence is None:
        return Difference(*[math.nan] * 4)
    value = a.value.estimate - b.value.estimate
    together = len(a.influence) == len(b.influence)
    parts = a.influence - b.influence if together else np.append(a.influence, b.influence)
    error = norm(parts)
    if math.isnan(error):
        return Difference(value, *[math.nan] * 3)
    half = float(stdtrit(min(a.freedom, b.freedom), (1 + cautious(question.level)) / 2)) * error
    low, high = value - half, value + half
    if a.wide is not None and b.wide is not None:
        low, high = a.wide[0] - b.wide[1], a.wide[1] - b.wide[0]
    elif question.unknown == "worst":
        low, high = a.value.low - b.value.high, a.value.high - b.value.low
    worse = float(ndtr(-value / error)) if error > 0 else 0.5 * (1 - np.sign(value))
    return Difference(value, low, high, 1 - worse if question.costs else float(worse))
