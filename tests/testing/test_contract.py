"""Every exported policy, wrapper, noise and estimator keeps the public contract.

Each policy is checked against every promise, on 80 decisions, and on 200 in the slow tests. So is
each wrapper, but not on every policy: which promise is checked on which wrapped policy, rotation.py
says. In every rotation each wrapper goes around each policy and around each other wrapper, and is
checked against each promise.
"""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from instances import ALL, SAMPLED
from rotation import Check, briefly, deal, everything, sample
from rough_laws import ROUGH

import tailproof
from tailproof import (
    Estimator,
    Location,
    Mean,
    MeanOfMedians,
    Median,
    MedianOfMeans,
    Policy,
    Quantile,
    TrimmedMean,
    TruncatedMean,
    WinsorizedMean,
    noise,
    testing,
)

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
    Location(),
]
NOISES: list[noise.Noise] = [
    noise.StudentT(0.5),
    noise.StudentT(1.02),
    noise.StudentT(3, scale=2),
    noise.Cauchy(0.3),
    noise.Stable(0.5),
    noise.Stable(1.0),
    noise.Stable(1.5, scale=2),
    noise.Stable(1.5, skewness=0.5),
    noise.SymmetricPareto(0.5),
    noise.SymmetricPareto(2, scale=3),
    noise.Normal(2),
    noise.Laplace(0.5),
    *ROUGH,
]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cap drops its first decisions early, so that the checks see it before and after."""
    monkeypatch.setattr("tailproof.wrappers.capped._ENOUGH", 7)


@pytest.mark.parametrize("check", testing.POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", ALL, ids=repr)
def test_policy(policy: Policy[Any], check: Check) -> None:
    briefly(check, policy)


@pytest.mark.parametrize(("policy", "check"), sample(SAMPLED))
def test_wrapped_policy(policy: Policy[Any], check: Check) -> None:
    briefly(check, policy)


@pytest.mark.parametrize("policy", everything({"alone": ALL} | SAMPLED))
def test_policy_in_full(policy: Policy[Any]) -> None:
    testing.check_policy(policy)


@pytest.mark.parametrize("size", [1, 2, 5, 6, 11, 12, 13, 41])
def test_the_sample_misses_nothing(size: int) -> None:
    """In one rotation every policy and every promise; in all rotations every pair of them."""
    names, checks = [f"policy {i}" for i in range(size)], testing.POLICY_CHECKS
    dealt = [deal(names, rotation) for rotation in range(len(checks))]
    for pairs in dealt:
        assert {name for name, _ in pairs} == set(names)
        assert {check for _, check in pairs} == set(checks)
        assert len(pairs) == len(set(pairs)) < len(names) + len(checks)
    assert len({pair for pairs in dealt for pair in pairs}) == len(names) * len(checks)


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


@pytest.mark.parametrize("name", tailproof.__all__)
def test_every_public_name_teaches(name: str) -> None:
    thing = getattr(tailproof, name)
    doc = inspect.getdoc(thing) or ""
    assert doc
    if inspect.isclass(thing) and not inspect.isabstract(thing) and thing not in _PLAIN:
        assert ">>>" in doc
        if "Source:" in doc or issubclass(thing, (Policy, Estimator)):
            assert "Source" in doc
            assert "Differences" in doc


_PLAIN = {
    tailproof.Curves,
    tailproof.Difference,
    tailproof.IdentificationPlan,
    tailproof.Plan,
    tailproof.RuleValue,
    tailproof.State,
    tailproof.Verdicts,
    tailproof.Wrapped,
    tailproof.Wrapper,
}
