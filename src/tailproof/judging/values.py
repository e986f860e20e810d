"""`judge`: what would other rules have earned, for any aim."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, stdtrit

from tailproof.checks import number, require
from tailproof.judging.bets import Bets
from tailproof.judging.models import CrossFit
from tailproof.judging.propensities import with_propensities
from tailproof.judging.replay import PARTS, replay
from tailproof.judging.result import LOGGED, Difference, Judgement, RuleValue
from tailproof.judging.rules import named, probabilities
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
    UNKNOWN,
    Doubt,
    Overlap,
    about_errors,
    about_mean,
    about_overlap,
)
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim, check_aim
from tailproof.stats.customers import cap_of_totals
from tailproof.tables import Records, records
from tailproof.typing import Array

__all__ = ["judge"]

Ends = tuple[float, float]


def judge(
    log: Any,
    rules: Any,
    aim: Aim,
    *,
    control: str | None = None,
    level: float = 0.95,
    interval: Literal["score", "exact", "anytime"] = "score",
    unknown: Literal["alike", "worst"] = "alike",
    cap: Ends | None = None,
    largest: float | None = None,
    smallest: float | None = None,
    costs: bool = False,
    model: bool = True,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **columns: Any,
) -> Judgement:
    """Return what other rules would have earned on the traffic of a log.

    An aim θ solves E_π ψ(Y; θ) = 0. With the weights w = π(a|x)/p of a rule π,

    z_i(θ) = w_i ψ(y_i; θ) − C_i,  C_i = w_i h(x_i, a_i) − Σ_a π(a|x_i) h(x_i, a)

    has mean zero at the truth, whatever the model h, which is learned from other rows. The estimate
    makes Σz = 0; the interval has all θ at which a test accepts "mean zero".

    Parameters
    ----------
    log : Records, path, data frame or journal
        See `tailproof.records`; ``**columns`` go there: ``reward="revenue"``, ``unit="customer"``.
        Without propensities they are estimated from counts, within each group if there are groups;
        this needs a log in which arms were drawn at random.
    rules : rule, sequence or mapping of names to rules
        A rule is the name of an arm; "even"; a mapping of arms to probabilities; a mapping of
        groups to arms or to such mappings; an array of shape (n, K); a function of the features
        that returns such an array or the name of an arm for each row; ``(policy, state)``, a policy
        as it stands; or a policy, which then learns from scratch on the log (replay).
    aim : Aim or Location
        `Median`, `Quantile`, `CappedMean`, `Mean` or `Location`.
    control : str, optional
        An arm, or the name of a rule, that others are compared with beside what was done.
    level : float
        Confidence of each interval.
    interval : "score", "exact" or "anytime"
        "score" is asymptotic and narrow. "exact" holds at any size, and "anytime" for all looks at
        a growing log at once; both need true propensities and an aim that is a quantile or a capped
        mean with a given ``cap``. Give ``floor=`` for narrow ones.
    unknown : "alike" or "worst"
        Unknown rewards are like the known ones, or the interval holds whatever they are.
    cap : tuple, optional
        The range of a capped mean; default: `CappedMean.range` of the log, or with units that of
        their totals, so that a customer's rows together keep to it.
    largest, smallest : float, optional
        The largest and the smallest reward that is possible, or total of a unit, if you know them:
        then a mean can be trusted without a cap.
    costs : bool
        Whether small is good.
    model : bool
        Whether to use h.
    seed : int
        For folds and replays.
    progress : callable, optional
        Called with the number of rules done and of all.

    Examples
    --------
    >>> import tailproof as tp
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.choice(["A", "B"], size=3000, p=[0.8, 0.2])
    >>> buys = rng.random(3000) < np.where(arm == "A", 0.2, 0.3)
    >>> log = tp.records(
    ...     arm=arm, reward=np.where(buys, rng.lognormal(3, 1, 3000), 0.0),
    ...     propensity=np.where(arm == "A", 0.8, 0.2),
    ... )
    >>> found = judge(log, {"B": "B", "half": {"A": 0.5, "B": 0.5}}, tp.CappedMean(0.99))
    >>> found["B"].verdict, round(found["B"].to_logged.p, 3)
    ('trust', 0.03)

    Source: our own; weights: Horvitz and Thompson 1952; C: Robins, Rotnitzky and Zhao 1994; exact
    intervals: see `tailproof.judging.bets`; weights of adaptive logs: Hadad et al. 2021.
    Differences: one equation for all aims, and a made-up reward at each end.
    """
    table = with_propensities(records(log, rows=True, **columns))
    _check(table, aim, interval, unknown, cap)
    number("level", level, at_least=0.5, below=1)
    asked = named(rules)
    if control is not None and control not in asked:
        own = named(control)
        asked = own | asked
        (control,) = own
    require(LOGGED not in asked, "rules", "named otherwise", LOGGED)
    wanted: dict[str, Any] = {"interval": interval, "level": level, "model": model, "seed": seed}
    table, cap, capped_by = _capped(table, aim, cap, (smallest, largest))
    wanted["of_totals"] = capped_by == "totals" or (
        capped_by == "bounds" and table.unit is not None
    )
    bench = _Bench(table, aim, cap, **wanted)
    fills: list[_Bench] = []
    if unknown == "worst":
        ends = (-math.inf, math.inf) if cap is None else cap
        known = ~np.isnan(table.reward)
        fills = [
            _Bench(table.filled(np.where(known, table.reward, end)), aim, cap, **wanted)
            for end in ends
        ]
    answers: dict[str, _Answer] = {}
    for done, (name, rule) in enumerate([(LOGGED, None), *asked.items()]):
        if progress is not None:
            progress(done, len(asked) + 1)
        found = bench.answer(name, rule)
        if fills and found.value.verdict != "refused":
            low, high = (fill.answer(name, rule).value for fill in fills)
            found = replace(found, value=replace(found.value, low=low.low, high=high.high))
        elif table.unknown > UNKNOWN:
            found = found.doubted(
                Doubt(
                    "beware",
                    f"{table.unknown:.1%} of the rewards are not known and were taken to be like "
                    "the others",
                )
            )
        answers[name] = found
    pairs = {"to_logged": LOGGED} | ({} if control is None else {"to_control": control})
    values = {}
    for name, answer in answers.items():
        differences: dict[str, Any] = {
            key: _difference(answer, answers[other], level, costs, loose=bool(fills))
            for key, other in pairs.items()
            if other != name
        }
        values[name] = replace(answer.value, **differences)
    return Judgement(
        values=values,
        aim=aim.name,
        level=level,
        interval=interval,
        control=control,
        cap=cap,
        capped_by=capped_by,
        rows=table.n,
        unknown=table.unknown,
        costs=costs,
        notes=table.notes,
        settings={
            "adaptive": table.adaptive,
            "units": None if table.unit is None else int(table.unit.max()) + 1,
            "estimated_propensities": table.estimated,
            "unknown_rewards": unknown,
            "seed": seed,
        },
    )


def _capped(
    log: Records, aim: Aim, cap: Ends | None, bounds: tuple[float | None, float | None]
) -> tuple[Records, Ends | None, str]:
    """Return the log, the range of rewards or totals, and who chose it.

    With units, the range is learned from their totals, and the rows of a unit beyond it are scaled.
    """
    smallest, largest = bounds
    known = np.where(np.isnan(log.reward), 0.0, log.reward)
    totals: Array = known
    if log.unit is not None:
        totals = np.bincount(log.unit, known).astype(np.float64)
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
        return log, aim.cap(log.samples), "rewards"
    low, high = cap_of_totals(totals, aim.share)
    if not 0 < high - low < math.inf:
        return log, (low, high), "totals"
    scale = np.divide(
        np.clip(totals, low, high), totals, out=np.ones(len(totals)), where=totals != 0
    )
    return log.filled(log.reward * scale[log.unit]), (low, high), "totals"


def _check(log: Records, aim: Aim, interval: str, unknown: str, cap: Ends | None) -> None:
    check_aim("aim", aim)
    kinds = ("score", "exact", "anytime")
    require(interval in kinds, "interval", f"one of {', '.join(kinds)}", interval)
    require(unknown in ("alike", "worst"), "unknown", "'alike' or 'worst'", unknown)
    if unknown == "worst" and not aim.bounded:
        raise ValueError(
            f"unknown='worst' has no bound for the aim {aim.name}: choose a quantile "
            "or a capped mean"
        )
    if cap is not None:
        low, high = (number("cap", end) for end in cap)
        require(low < high, "cap", "a range (low, high)", cap)
        require(aim.share is not None, "cap", "None unless the aim is a capped mean", cap)
    if interval != "score":
        if not aim.bounded:
            raise ValueError(
                f"interval={interval!r} needs a bounded score, which {aim.name} has "
                "not: choose a quantile or a capped mean"
            )
        if aim.share is not None and cap is None:
            raise ValueError(
                f"interval={interval!r} needs cap=(low, high), chosen before the rewards were seen"
            )
        if log.estimated:
            raise ValueError(
                f"interval={interval!r} needs true propensities, and those of this "
                "log were estimated from counts"
            )


@dataclass(frozen=True, eq=False)
class _Answer:
    """A rule's value, the errors of its units, and its interval for a difference."""

    value: RuleValue
    influence: Array | None = None
    freedom: float = 2.0
    wide: Ends | None = None
    """An exact interval of level (1 + level)/2; two of them make one for a difference."""

    def doubted(self, doubt: Doubt) -> "_Answer":
        """Return the answer with another doubt, unless it has one already."""
        if self.value.verdict != "trust":
            return self
        return replace(self, value=replace(self.value, verdict=doubt.kind, reason=doubt.reason))


class _Bench:
    """A log and an aim, with which rules are judged one by one."""

    def __init__(
        self,
        log: Records,
        aim: Aim,
        cap: Ends | None,
        *,
        interval: str,
        level: float,
        model: bool,
        seed: int,
        of_totals: bool,
    ) -> None:
        self.of_totals = of_totals
        self.all, self.aim, self.cap, self.level, self.seed = log, aim, cap, level, seed
        self.interval = interval
        self.known = ~np.isnan(log.reward)
        self.log = log if self.known.all() else log.take(np.flatnonzero(self.known))
        needed = model or aim.symmetric
        past = log.adaptive is not False and not aim.symmetric  # c corrects q there
        self.model = None
        if needed and self.known.any():
            self.model = CrossFit(self.log, self._rng(), past=past)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def answer(self, name: str, rule: Any) -> _Answer:
        """Return what a rule would have earned; None is what was done."""
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
        doubts = [*about_overlap(self.aim, overlap), *self._about_rewards(raw)]
        for doubt in doubts:
            if doubt.kind == "refused":
                return _refused(doubt.reason, **about)
        given = Weighted(log.reward, raw, steady, pi, log.arm, log.unit, self.model)
        found = self._estimate(given)
        share = largest_share(found.influence)
        if found.errors is not None:
            doubts += about_errors(found.errors[raw > 0])
        if share > DOMINANT and not self.aim.bounded and self.cap is None:
            what = "row" if log.unit is None else "unit"
            doubts.append(Doubt("beware", f"one {what} has {share:.0%} of the variance"))
        value = RuleValue(found.value, found.low, found.high, largest_share=share, **about)
        answer = _Answer(value, found.influence, max(overlap.effective - 1, 2.0))
        for doubt in doubts:
            answer = answer.doubted(doubt)
        return answer if self.interval == "score" else self._exact(answer, raw, pi)

    def _about_rewards(self, raw: Array) -> list[Doubt]:
        """Return what rewards say against the aim."""
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

    def _exact(self, answer: _Answer, raw: Array, pi: Array | None) -> _Answer:
        """Return the answer with an exact interval, and a wider one for differences."""
        log, low, high = self.log, math.nan, math.nan
        wide = (low, high)
        if pi is not None or log.adaptive is False:
            most = 1.0 if pi is None else None
            if pi is not None and log.floor is not None:
                most = float(pi.max()) / log.floor
            found = []
            for level in (self.level, (1 + self.level) / 2):
                bets = Bets(
                    weight=raw,
                    unit=log.unit,
                    level=level,
                    most=most,
                    anytime=self.interval == "anytime",
                )
                if self.cap is None:
                    found.append(bets.quantile(log.reward, _level(self.aim)))
                else:
                    start, width = self.cap[0], self.cap[1] - self.cap[0]
                    ends = bets.mean((np.clip(log.reward, *self.cap) - start) / width)
                    found.append((start + width * ends[0], start + width * ends[1]))
            (low, high), wide = found
        value = replace(answer.value, low=low, high=high)
        return replace(answer, value=value, wide=wide)

    def _replayed(self, policy: Policy[Any]) -> _Answer:
        """Return what a policy earns that learns from scratch."""
        if self.aim.symmetric:
            return _refused(
                "a policy that learns is judged by its rewards: ask for a quantile, "
                "the capped mean or the mean"
            )
        if self.interval != "score":
            return _refused(f"there is no {self.interval} interval for a policy that learns")
        found = replay(policy, self.all, self._rng())
        if found.rewards is None:
            return _refused(found.reason)
        own = found.value(self.aim, self.cap, self.level)
        value = RuleValue(own.value, own.low, own.high, horizon=found.rewards.shape[2])
        answer = _Answer(value, own.influence, PARTS - 1)
        for doubt in (
            about_mean(found.rewards.ravel())
            if self.aim.averages and not self.aim.bounded and self.cap is None
            else ()
        ):
            answer = answer.doubted(doubt)
        return answer


def _level(aim: Aim) -> float:
    assert aim.level is not None
    return aim.level


def _refused(reason: str, **about: Any) -> _Answer:
    return _Answer(RuleValue(verdict="refused", reason=reason, **about))


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


def _difference(a: _Answer, b: _Answer, level: float, costs: bool, *, loose: bool) -> Difference:
    """Return what a earns more than b, row by row, since both are from the same rows.

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
    half = float(stdtrit(min(a.freedom, b.freedom), (1 + cautious(level)) / 2)) * error
    low, high = value - half, value + half
    if a.wide is not None and b.wide is not None:
        low, high = a.wide[0] - b.wide[1], a.wide[1] - b.wide[0]
    elif loose:
        low, high = a.value.low - b.value.high, a.value.high - b.value.low
    worse = float(ndtr(-value / error)) if error > 0 else 0.5 * (1 - np.sign(value))
    return Difference(value, low, high, 1 - worse if costs else float(worse))
