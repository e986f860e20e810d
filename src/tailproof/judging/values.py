"""`judge`: what would other rules have earned, for any aim."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from tailproof.checks import require
from tailproof.judging.arrivals import comparable
from tailproof.judging.bench import Answer, Bench, difference
from tailproof.judging.propensities import with_propensities
from tailproof.judging.question import Judging, Question, capped, refunds
from tailproof.judging.result import LOGGED, Judgement, RuleValue
from tailproof.judging.rules import named
from tailproof.judging.verdicts import UNKNOWN, Doubt, about_refunds
from tailproof.stats.aims import Aim
from tailproof.tables import Records, records

__all__ = ["judge"]


def judge(
    log: Any,
    rules: Any,
    aim: Aim,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Unpack[Judging],
) -> Judgement:
    """Return what other rules would have earned on the traffic of a log.

    An aim θ solves E_π ψ(Y; θ) = 0. With the weights w = π(a|x)/p of a rule π,

    z_i(θ) = w_i ψ(y_i; θ) − C_i,  C_i = w_i h(x_i, a_i) − Σ_a π(a|x_i) h(x_i, a)

    has mean zero at the truth, whatever the model h, which is learned from other rows. The estimate
    makes Σz = 0; the interval has all θ at which a test accepts "mean zero".

    Parameters
    ----------
    log : Records, path, data frame or journal
        See `tailproof.records`. Missing propensities are estimated from counts, by group.
    rules : rule, sequence or mapping of names to rules
        An arm; "even"; probabilities by arm; arms or such mappings by group; an array (n, K); a
        function of the features; ``(policy, state)``; a policy, which then learns from scratch.
    aim : Aim
        `Median`, `Quantile`, `CappedMean`, `Mean` or `Location`.
    progress : callable, optional
        Called with the number of rules done and of all.
    **options :
        See `Judging`: ``control=``, ``interval=``, ``unit="customer"``, …

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

    Source: weights: Horvitz and Thompson 1952; C: Robins, Rotnitzky and Zhao 1994; adaptive logs:
    Hadad et al. 2021. Differences: one equation for all aims, a made-up reward at each end.
    """
    question, columns = Question.of(aim, options)
    asked, control = _rules_and_control(rules, question.control)
    table = _judged_rows(records(log, rows=True, **columns), asked, question)
    benches, capped_by = _benches(table, question)
    answers = {}
    for done, (name, rule) in enumerate([(LOGGED, None), *asked.items()]):
        if progress is not None:
            progress(done, len(asked) + 1)
        answers[name] = _answer(benches, name, rule)
    values = _compared(answers, control, question)
    return _judgement(benches[0], question, values, control=control, capped_by=capped_by)


def _judged_rows(log: Records, asked: dict[str, Any], question: Question) -> Records:
    """Return the rows that rules are judged on, with propensities."""
    table = with_propensities(comparable(log, asked.values(), question.since))
    question.check(table)
    return table


def _judgement(
    bench: Bench,
    question: Question,
    values: dict[str, RuleValue],
    *,
    control: str | None,
    capped_by: str,
) -> Judgement:
    log = bench.all
    return Judgement(
        values=values,
        aim=question.aim.name,
        level=question.level,
        interval=question.interval,
        control=control,
        cap=bench.cap,
        capped_by=capped_by,
        rows=log.n,
        unknown=log.unknown,
        costs=question.costs,
        notes=log.notes,
        settings={
            "adaptive": log.adaptive,
            "units": None if log.unit is None else len(np.unique(log.unit)),
            "estimated_propensities": log.estimated,
            "unknown_rewards": question.unknown,
            "smallest": question.smallest,
            "seed": question.seed,
        },
    )


def _benches(table: Records, question: Question) -> tuple[list[Bench], str]:
    """Return benches (as logged, worst and best unknown rewards) and who chose the cap."""
    held, cap, capped_by = capped(table, question)
    totals = capped_by == "totals" or (capped_by == "bounds" and held.unit is not None)
    how: Any = {"of_totals": totals, "refunds": refunds(table, cap)}
    benches = [Bench(held, question, cap, **how)]
    if question.unknown == "worst":
        rewarded = ~np.isnan(held.reward)
        for end in (-math.inf, math.inf) if cap is None else cap:
            filled = held.filled(np.where(rewarded, held.reward, end))
            benches.append(Bench(filled, question, cap, **how))
    return benches, capped_by


def _rules_and_control(rules: Any, control: str | None) -> tuple[dict[str, Any], str | None]:
    """Return the rules by name, with the control among them, and the name of the control."""
    asked = named(rules)
    if control is not None and control not in asked:
        added = named(control)
        asked = added | asked
        (control,) = added
    require(LOGGED not in asked, "rules", "named otherwise", LOGGED)
    return asked, control


def _answer(benches: list[Bench], name: str, rule: Any) -> Answer:
    """Return a rule's value; benches after the first have the worst and best unknown rewards."""
    first, *fills = benches
    answer = first.answer(name, rule)
    if fills and answer.value.verdict != "refused":
        low, high = (fill.answer(name, rule).value for fill in fills)
        return replace(answer, value=replace(answer.value, low=low.low, high=high.high))
    if not fills and first.all.unknown > UNKNOWN:
        return answer.doubted(
            Doubt(
                "beware",
                f"{first.all.unknown:.1%} of the rewards are not known and were taken to be like "
                "the others",
            )
        )
    return answer


def _compared(
    answers: dict[str, Answer], control: str | None, question: Question
) -> dict[str, RuleValue]:
    """Return the values with their differences to the logged choices and to the control."""
    pairs = {"to_logged": LOGGED} | ({} if control is None else {"to_control": control})
    values = {}
    for name, answer in answers.items():
        differences: dict[str, Any] = {
            key: difference(answer, answers[other], question)
            for key, other in pairs.items()
            if other != name
        }
        for key, to in differences.items():
            other = pairs[key]
            called = "what was done" if other == LOGGED else other
            owed_more = math.nan if question.costs else answer.owed - answers[other].owed
            for doubt in about_refunds(to.low, to.high, owed_more, called):
                answer = answer.doubted(doubt)
        values[name] = replace(answer.value, **differences)
    return values
