"""Every exported policy, composition, noise and estimator keeps the public contract."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from rough_laws import ROUGH

import tailproof
from tailproof import (
    CRT,
    MENU,
    OFUL,
    PEGE,
    TOFU,
    UCB1,
    AdaRUCB,
    AutoFiltered,
    Capped,
    ClippedSGDUCB,
    ConfidenceBall,
    Estimator,
    Filtered,
    FixedArm,
    FromRegret,
    HeavyOFUL,
    HvtUCB,
    Intercept,
    LinStudentUCB,
    LinTS,
    Mean,
    MeanOfMedians,
    Median,
    MedianOfMeans,
    MedianUCB,
    MoM,
    Negated,
    OrderStatisticUCB,
    Policy,
    Quantile,
    RobustUCB,
    Scaled,
    SupBMM,
    SupBTC,
    SupLinRel,
    SupLinUCB,
    SymmetricOFUL,
    ThompsonSampling,
    TrimmedMean,
    TruncatedMean,
    Uniform,
    WinsorizedMean,
    Wrapper,
    bestarm,
    noise,
    policies,
    testing,
    wrappers,
)

POLICIES: list[Policy[Any]] = [
    OFUL(),
    OFUL(bonus=0, ridge=3.0, noise_scale=0.2),
    UCB1(),
    Uniform(),
    FixedArm(arm=2),
    CRT(epsilon=1, moment_bound=3),
    MoM(horizon=1000, epsilon=1, moment_bound=1, blocks=11),
    MENU(horizon=1000, epsilon=1, moment_bound=1, replicates=5),
    TOFU(horizon=1000, epsilon=1, moment_bound=1),
    SupBMM(horizon=1000, epsilon=1, moment_bound=1, replicates=3),
    SupBTC(horizon=1000, epsilon=1, moment_bound=1),
    SupLinUCB(horizon=1000),
    SupLinRel(horizon=1000),
    LinTS(),
    LinStudentUCB(),
    LinStudentUCB(room=4, intercept=False),
    ConfidenceBall(),
    HeavyOFUL(decisions=1000, epsilon=1, moment_bound=1),
    HvtUCB(decisions=1000, epsilon=1, moment_bound=1),
    SymmetricOFUL(),
    SymmetricOFUL(tau=2, radius="practical", bonus=0.3),
    SymmetricOFUL(tau=8, radius="theorem", mass=0.5, horizon=1000),
    RobustUCB(epsilon=1, moment_bound=1),
    MedianUCB(),
    ClippedSGDUCB(horizon=1000),
    OrderStatisticUCB(),
    OrderStatisticUCB(quantile=0.8, index="binomial"),
    OrderStatisticUCB(quantile=0.3, sketch=16),
    ThompsonSampling(),
    PEGE(),
    AdaRUCB(),
]
BEST_ARM: list[Policy[Any]] = [
    bestarm.GAllocation(),
    bestarm.LazyTrackAndStop(),
    bestarm.LinGapE(),
    bestarm.QuantileElimination(),
    bestarm.QuantileLUCB(delta=0.5, quantile=0.3),
    bestarm.RAGE(),
    bestarm.SuccessiveElimination(),
    bestarm.TrackAndStop(),
    bestarm.XYAdaptive(),
    bestarm.XYAllocation(),
]


def _spans(policy: Policy[Any]) -> bool:
    """Whether a policy needs as many independent arms as there are dimensions."""
    return isinstance(policy, PEGE | bestarm.LazyTrackAndStop)


WRAPPERS: list[Callable[[Policy[Any]], Policy[Any]]] = [
    lambda policy: Filtered(policy, repeats=5, estimator=MeanOfMedians(block=5)),
    lambda policy: AutoFiltered(policy, repeats=3, settle=4, intercept=not _spans(policy)),
    lambda policy: FromRegret(policy, decisions=50),
    lambda policy: Intercept(policy),
    lambda policy: Scaled(policy, centre=0.3, unit=0.7, stretch=1.5),
]
SOME: list[Policy[Any]] = [OFUL(), UCB1(), SupBTC(horizon=1000, epsilon=1, moment_bound=1)]
ALL = POLICIES + BEST_ARM
WRAPPED: list[Policy[Any]] = [
    *(wrap(policy) for i, wrap in enumerate(WRAPPERS[:3]) for policy in ALL[i::3]),
    *(wrap(policy) for wrap in WRAPPERS[3:] for policy in [*SOME, LinTS(), bestarm.LinGapE()]),
    *(outer(inner(OFUL())) for outer in WRAPPERS[:3] for inner in WRAPPERS[:3]),
    Filtered(OFUL(), repeats=1),
    Filtered(OFUL(), repeats=8, estimator=TruncatedMean(threshold=2)),
    Filtered(OFUL(), repeats=7, estimator=MedianOfMeans(blocks=2)),
    Filtered(Filtered(UCB1(), repeats=3, estimator=Median()), repeats=4, estimator=Mean()),
    AutoFiltered(OFUL()),
    AutoFiltered(OFUL(), repeats=3, settle=30),
    Capped(UCB1()),
    Capped(OFUL(), share=0.9, settle=20),
    Capped(AutoFiltered(AdaRUCB(), repeats=3, settle=4), settle=5),
    Filtered(Capped(LinTS(), settle=7), repeats=21, estimator=Quantile(0.9)),
    Negated(OFUL()),
    Negated(FromRegret(UCB1(), decisions=50)),
    AutoFiltered(OFUL(), intercept=False),
    AutoFiltered(
        SupBMM(horizon=1000, epsilon=1, moment_bound=1, replicates=3), repeats=4, settle=4
    ),
]
SELDOM: list[Policy[Any]] = [
    *(wrap(policy) for i, wrap in enumerate(WRAPPERS[:3]) for policy in ALL[(i + 1) % 3 :: 3]),
    *(wrap(policy) for i, wrap in enumerate(WRAPPERS[:3]) for policy in ALL[(i + 2) % 3 :: 3]),
    *(outer(inner(policy)) for outer in WRAPPERS for inner in WRAPPERS for policy in SOME[::2]),
]
"""The rest of all wrappers around all policies, for the slow tests."""
ESTIMATORS = [
    Mean(),
    Median(),
    MeanOfMedians(),
    MeanOfMedians(block=7),
    MeanOfMedians(block=8),
    MeanOfMedians(block_exponent=0.9),
    MedianOfMeans(blocks=7),
    MedianOfMeans(blocks=8),
    TruncatedMean(threshold=2),
    Quantile(0.5),
    Quantile(0.9),
    TrimmedMean(0.2),
    WinsorizedMean(0.1),
]
NOISES: list[noise.Noise] = [
    noise.StudentT(0.5),
    noise.StudentT(1.02),
    noise.StudentT(3, scale=2),
    noise.Cauchy(0.3),
    noise.Stable(0.5),
    noise.Stable(1.0),
    noise.Stable(1.5, scale=2),
    noise.SymmetricPareto(0.5),
    noise.SymmetricPareto(2, scale=3),
    noise.Normal(2),
    noise.Laplace(0.5),
    *ROUGH,
]


@pytest.mark.parametrize("check", testing.POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "policy",
    [*ALL, *WRAPPED, *(pytest.param(policy, marks=pytest.mark.slow) for policy in SELDOM)],
    ids=repr,
)
def test_policy(policy: Policy[Any], check: Callable[[object], None]) -> None:
    check(policy)


@pytest.mark.parametrize("check", testing.NOISE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("law", NOISES, ids=repr)
def test_noise(law: noise.Noise, check: Callable[[object], None]) -> None:
    check(law)


@pytest.mark.parametrize("check", testing.ESTIMATOR_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_estimator(estimator: Estimator, check: Callable[[object], None]) -> None:
    check(estimator)


@pytest.mark.parametrize(
    ("module", "base", "examples"),
    [
        (policies, Policy, POLICIES),
        (bestarm, Policy, BEST_ARM),
        (tailproof, Estimator, ESTIMATORS),
        (noise, noise.Noise, NOISES),
    ],
)
def test_nothing_exported_is_left_out(module: Any, base: type, examples: list[object]) -> None:
    exported = {getattr(module, name) for name in module.__all__}
    concrete = {
        thing
        for thing in exported
        if inspect.isclass(thing) and issubclass(thing, base) and not inspect.isabstract(thing)
    }
    assert concrete == {type(example) for example in examples}


def test_no_wrapper_is_left_out() -> None:
    exported = {getattr(wrappers, name) for name in wrappers.__all__}
    concrete = {thing for thing in exported if inspect.isclass(thing) and issubclass(thing, Policy)}
    assert concrete - {Wrapper} == {type(policy) for policy in WRAPPED}


@pytest.mark.parametrize("name", tailproof.__all__)
def test_every_public_name_teaches(name: str) -> None:
    thing = getattr(tailproof, name)
    doc = inspect.getdoc(thing) or ""
    assert doc
    if inspect.isclass(thing) and not inspect.isabstract(thing) and thing not in _PLAIN:
        assert ">>>" in doc
        assert thing in _FOUND or "Differences" in doc


_PLAIN = {
    tailproof.Curves,
    tailproof.IdentificationPlan,
    tailproof.Plan,
    tailproof.State,
    tailproof.Verdicts,
    tailproof.Wrapper,
}
_FOUND = {tailproof.Result, tailproof.Identification}
