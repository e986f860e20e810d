"""ALBA and the best arm of heavy tails: wrong with probability at most δ, and as derived."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from traces import race

from tailproof import Policy, bestarm, environments, identify, noise
from tailproof.environments.arm_sets import GivenArms
from tailproof.environments.linear import LinearBandit
from tailproof.policies.state.moment_bets import MomentClass, overhead


def test_alba_is_right_where_arms_span_less_than_the_space_when_halved() -> None:
    arms = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0], [0, 0.6, 0.8]])
    theta = np.array([0.9, 0.1, -0.4])
    policy = bestarm.ALBA(noise_scale=0.1)
    state, trace = race(policy, arms, lambda arm, t: float(arms[arm] @ theta), 200_000)
    assert state.answer.tolist() == [0]
    assert len(trace) == state.decisions[0]


def test_alba_pulls_as_derived() -> None:
    """The first phase: n = ⌈8 ρ (1.2 S² + 1.8 σ²) ln(2K/δ_1)/ε_1²⌉ with ρ = d."""
    policy, arms = bestarm.ALBA(delta=0.1, value_bound=2.0), np.eye(3)[None]
    state = policy.init(1, 3, 3)
    policy.learn(state, arms, [0], [[0.0]])
    delta = 36 * 0.1 / math.pi**4
    wanted = 8 * 3 * (1.2 * 4 + 1.8) * math.log(6 / delta) / 2.4**2
    assert state.total[0] == math.ceil(wanted)
    assert state.left[0] == state.total[0] - 1


@pytest.mark.parametrize("tails", [noise.StudentT(2.5), noise.Normal()])
def test_heavy_track_and_stop_errs_rarely(tails: noise.Noise) -> None:
    """δ = 0.2 on 40 paths; a recipe that errs as often as allowed fails one test in a thousand."""
    bandit = environments.k_armed(tails, locations=(0.0, 1.0, -0.5))
    policy = bestarm.HeavyTrackAndStop(delta=0.2, moment_bound=5.5)
    result = identify({"ours": policy}, bandit, paths=40, max_pulls=20_000, seed=2)
    found = result.verdicts["ours"]
    assert (found.recommended >= 0).all()
    assert (~found.correct).sum() <= binom(40, 0.2).ppf(1 - 1e-3)


def test_heavy_track_and_stop_stops_by_the_evidence() -> None:
    """Z at the stop, found by a plain search over x, passes the threshold; before, it does not."""
    policy, arms = bestarm.HeavyTrackAndStop(delta=0.1, moment_bound=4.0), np.zeros((1, 2, 1))
    rng, state, law = np.random.default_rng(0), policy.init(1, 2, 1), MomentClass(2.0)
    while not policy.stopped(state).any():
        arm = policy.choose(state, arms, rng)
        policy.learn(state, arms, arm, arm[:, None] + rng.standard_t(3, (1, 1)) / 2)
        x = np.linspace(-1, 1, 4001)[:, None]
        ones = np.ones_like(x, dtype=np.int64)
        mine = law.evidence(state.losses[:, [1]], state.counts[:, [1]] * ones, -x)
        theirs = law.evidence(state.logs[:, [0]], state.counts[:, [0]] * ones, x)
        least = float((mine + theirs).min())
        passed = least > math.log(1 / 0.1) + overhead(state.counts).sum()
        assert passed == policy.stopped(state)[0] or abs(least - math.log(10)) < 1
    assert policy.recommend(state).tolist() == [1]


@pytest.mark.slow
def test_alba_pays_for_near_arms_only() -> None:
    """One near rival among d: each further far dimension adds less than for G-allocation."""
    pulls = []
    for d in (4, 12):
        theta = (0.9, 0.6, *(d - 2) * (-0.5,))
        bandit = LinearBandit(contexts=GivenArms(np.eye(d)), theta=theta, noise=noise.Normal())
        tools: dict[str, Policy[Any]] = {"alba": bestarm.ALBA(), "g": bestarm.GAllocation()}
        result = identify(tools, bandit, paths=10, max_pulls=200_000, seed=1)
        assert all(result.verdicts[name].correct.all() for name in tools)
        pulls.append([result.verdicts[name].pulls.mean() for name in tools])
    alba, g = (pulls[1][i] / pulls[0][i] for i in range(2))
    assert alba < 0.7 * g
