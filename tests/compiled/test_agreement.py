"""Each compiled form computes the same indices as the policy on arrays."""

from typing import Any

import numpy as np
import pytest
from scalar import compared

from tailproof import (
    CRT,
    MENU,
    OFUL,
    UCB1,
    AutoFiltered,
    Filtered,
    LinStudentUCB,
    LinTS,
    MeanOfMedians,
    Median,
    MoM,
    OrderStatisticUCB,
    Policy,
    RevenueUCB,
    SupBMM,
    SymmetricOFUL,
    ThompsonSampling,
)
from tailproof.typing import Array

POLICIES: list[Policy[Any]] = [
    UCB1(bonus=0.7),
    Filtered(UCB1(), repeats=8, estimator=Median()),
    Filtered(OFUL(), repeats=11, estimator=MeanOfMedians(block=3)),
    ThompsonSampling(noise_scale=0.5, prior_scale=2.0),
    OFUL(noise_scale=0.4, norm_bound=2.0, ridge=0.3, bonus=0.6),
    LinStudentUCB(room=6),
    LinTS(noise_scale=0.5, ridge=2.0, bonus=0.2),
    OrderStatisticUCB(),
    OrderStatisticUCB(index="binomial", quantile=0.8, bonus=0.5),
    SymmetricOFUL(radius="practical", bonus=0.3),
    SymmetricOFUL(radius="refined", pilot=5),
    SymmetricOFUL(radius="theorem", tau=9.0, mass=0.3, horizon=150),
    AutoFiltered(UCB1(bonus=0.7), repeats=5, settle=4),
    AutoFiltered(OFUL(bonus=0.4), repeats=5, settle=4),
    CRT(epsilon=0.5, moment_bound=2.0),
    MoM(horizon=1000, epsilon=1, moment_bound=3, blocks=5, decisions=100),
    MENU(horizon=1000, epsilon=0.5, moment_bound=3, replicates=6),
    SupBMM(horizon=1000, epsilon=0.5, moment_bound=3, replicates=5, bonus=0.02),
]
SLOW = (AutoFiltered, SymmetricOFUL)
"""Of these a step takes long in Python, so that fewer are taken."""


def _history(
    arms: int, dim: int, decisions: int, pulls: int, seed: int
) -> tuple[Array, Any, Array]:
    rng = np.random.default_rng(seed)
    offers = rng.standard_normal((decisions, arms, dim))
    rewards = rng.standard_t(1.5, (decisions, pulls)) + 3
    return offers, rng.integers(0, arms, decisions), rewards


def _close(numpy: Array, scalar: Array, tolerance: float) -> bool:
    """Whether indices agree relative to the largest finite one; infinities and NaN are equal."""
    size = np.abs(numpy[np.isfinite(numpy)]).max(initial=1.0)
    return np.allclose(numpy / size, scalar / size, rtol=0, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize(("arms", "dim"), [(5, 3), (1, 1)])
def test_indices_agree_with_the_policy_on_arrays(policy: Policy[Any], arms: int, dim: int) -> None:
    decisions = 25 if isinstance(policy, SLOW) else 120
    history = _history(arms, dim, decisions, policy.pulls, seed=1)
    for t, (numpy, scalar, _) in enumerate(compared(policy, *history)):
        assert _close(numpy, scalar, 1e-9), (t, numpy, scalar)


@pytest.mark.parametrize("world", ["leaning", "louder", "rounded"])
@pytest.mark.parametrize("intercept", [True, False])
def test_student_fits_agree_through_summaries_and_epochs(world: str, intercept: bool) -> None:
    # vectors differ at each decision: pulls of the same vector have the same leverage, and which
    # of them a full buffer discards is not defined
    offers, chosen, rewards = _history(4, 2, 160, 1, seed=3)
    x = offers[np.arange(160), chosen]
    if world == "leaning":
        rewards *= np.exp(x[:, 1:])
    elif world == "louder":
        rewards[100:] *= 30
    else:
        rewards = np.round(rewards)
    policy = LinStudentUCB(room=4, intercept=intercept, random=world == "rounded")
    for t, (numpy, scalar, _) in enumerate(compared(policy, offers, chosen, rewards)):
        assert _close(numpy, scalar, 1e-9), (t, numpy, scalar)


@pytest.mark.parametrize("world", ["features", "arms", "given up"])
def test_two_modes_are_found_and_given_up_alike(world: str) -> None:
    decisions, arms = 70, 3
    offers, chosen, _ = _history(arms, 2, decisions, 1, seed=5)
    rng = np.random.default_rng(6)
    if world == "arms":
        offers = np.tile(np.eye(arms), (decisions, 1, 1))
    theta = np.linspace(0, 0.5, offers.shape[2])
    rewards = offers[np.arange(decisions), chosen] @ theta
    rewards += rng.choice([-2, 2], decisions) + 0.1 * rng.standard_normal(decisions)
    if world == "given up":
        rewards[20:] = rng.standard_normal(50)
    # K arms have pulls of the same leverage, so that their buffer must discard none
    policy = LinStudentUCB(room=60 if world == "arms" else 12)
    gaps: list[float] = []
    steps = compared(
        policy, offers, chosen, rewards[:, None], lambda state: gaps.append(state.gap[0])
    )
    for t, (numpy, scalar, _) in enumerate(steps):
        assert _close(numpy, scalar, 1e-9), (t, numpy, scalar)
    assert max(gaps) > 1
    assert world != "given up" or gaps[-1] == 0


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("wild", [np.inf, -np.inf, 1e300])
def test_infinite_and_huge_rewards_lead_to_the_same_indices(
    policy: Policy[Any], wild: float
) -> None:
    decisions = 16 if isinstance(policy, SLOW) else 60
    offers, chosen, rewards = _history(3, 2, decisions, policy.pulls, seed=2)
    rewards[decisions // 3] = wild
    for t, (numpy, scalar, _) in enumerate(compared(policy, offers, chosen, rewards)):
        assert _close(numpy, scalar, 1e-9), (t, numpy, scalar)


@pytest.mark.parametrize("largest", [None, 500.0])
@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_money_agrees_with_looks_refunds_and_whales(largest: float | None, unit: float) -> None:
    policy = RevenueUCB(share=0.9, largest=None if largest is None else largest * unit)
    rng = np.random.default_rng(4)
    offers, chosen, _ = _history(4, 4, 600, 1, seed=4)
    sales = rng.lognormal(3, 1.5, 600) * rng.choice([1.0, -0.3], 600, p=[0.95, 0.05])
    rewards = np.where(rng.random(600) < 0.15, sales, 0.0)
    rewards[chosen == 3] = 0  # an arm that never sells
    rewards[300], rewards[400] = np.inf, -np.inf
    looks = 0
    for t, (numpy, scalar, choice) in enumerate(
        compared(policy, offers, chosen, unit * rewards[:, None])
    ):
        looked = scalar == np.inf
        assert _close(numpy[~looked], scalar[~looked], 1e-9), (t, numpy, scalar)
        assert int(scalar.argmax()) == choice
        looks += int(looked.sum())
    assert looks > 20
