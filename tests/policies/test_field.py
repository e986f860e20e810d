"""Algorithms of the paper's field against plain references, and what each promises."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from traces import play, row, trace_of

from tailproof import Policy, Uniform, environments, noise, policies, simulate
from tailproof.environments.arm_sets import GivenArms
from tailproof.environments.linear import LinearBandit
from tailproof.policies.state.moment_bets import MomentClass, overhead
from tailproof.typing import Array

END = ((1.0, 0.0), (0.0, 1.0), (0.95, 0.1))
"""An uninformative optimum: the second arm is bad, and tells most of the third."""


def test_ossb_pulls_what_the_lower_bound_asks_for() -> None:
    """Noise-free rewards: c₂ ln T pulls of the bad arm that tells, and hardly any of the other."""
    policy, arms = policies.OSSB(epsilon=0), np.array([END])
    state, rng = policy.init(1, 3, 2), np.random.default_rng(0)
    for _ in range(6000):
        chosen = policy.choose(state, arms, rng)
        policy.learn(state, arms, chosen, arms[0, chosen] @ [[1.0], [0.0]])
    wanted = 8 * math.log(6000)  # 2γ² ln T, γ = 2
    assert wanted <= state.counts[0, 1] <= 1.3 * wanted
    assert state.counts[0, 2] < 0.25 * state.counts[0, 1]


def test_ossb_pulls_the_least_pulled_arm_now_and_then() -> None:
    policy, arms = policies.OSSB(epsilon=0.3), np.array([END])
    state, rng = policy.init(1, 3, 2), np.random.default_rng(0)
    for _ in range(500):
        chosen = policy.choose(state, arms, rng)
        policy.learn(state, arms, chosen, arms[0, chosen] @ [[1.0], [0.0]])
    assert state.counts[0, 2] >= 0.3 * (state.explored[0] - 1)


def test_the_end_of_optimism_warms_up_plans_and_recovers() -> None:
    policy, arms = policies.EndOfOptimism(horizon=10**4, noise_scale=0.1), np.eye(2)[None]
    state, rng, means = policy.init(1, 2, 2), np.random.default_rng(0), np.array([0.0, 1.0])
    chosen = []
    for t in range(400):
        if t == 100:
            means = means[::-1] * 5  # the world turns: what was believed is refuted
        arm = policy.choose(state, arms, rng)
        policy.learn(state, arms, arm, means[arm][:, None])
        chosen.append(int(arm[0]))
        assert t > 100 or not state.recovering[0]
    assert chosen[: 2 * policy.rounds] == [0, 1] * policy.rounds
    f = 2 * (1 + 1 / math.log(10**4)) * math.log(10**4) + 2 * math.log(2 * math.log(10**4))
    assert chosen[:100].count(0) == max(policy.rounds, math.ceil(f * 0.1**2))
    assert state.recovering[0]
    assert chosen[-50:].count(0) > 40


def test_abe_long_draws_by_gaps_and_follows_widrow_and_hoff() -> None:
    policy, rng = policies.AbeLong(horizon=10**4, rate=0.2, unit=2.0), np.random.default_rng(1)
    state, theta = policy.init(1, 3, 2), np.zeros(2)
    for _ in range(50):
        arms = rng.standard_normal((1, 3, 2))
        value = arms[0] @ theta
        gamma = math.sqrt(3) * 10 / 2
        wanted = 1 / (3 + gamma * (value.max() - value))
        wanted[value.argmax()] += 1 - wanted.sum()
        found = policy.propensities(state, arms)
        assert found is not None
        np.testing.assert_allclose(found[0], wanted, rtol=1e-9)
        chosen, reward = policy.choose(state, arms, rng), float(rng.standard_normal())
        policy.learn(state, arms, chosen, [[reward]])
        x = arms[0, chosen[0]]
        longest = max(float(np.linalg.norm(arm)) for arm in arms[0])
        theta = theta + 0.2 / longest**2 * (reward - x @ theta) * x
        np.testing.assert_allclose(state.theta[0], theta)


def test_robust_moss_is_the_published_index() -> None:
    policy, rng = policies.RobustMOSS(horizon=500, epsilon=0.5, moment_bound=2.0), np.random
    draws = rng.default_rng(3)
    state, arms, seen = policy.init(1, 2, 1), np.zeros((1, 2, 1)), []
    for n in range(1, 60):
        seen.append(float(draws.standard_t(1.6) * 3))
        policy.learn(state, arms, [1], [[seen[-1]]])
        h = 1.1 ** (math.floor(math.log(n) / math.log(1.1) + 1e-9) + 1)
        phi = max(math.log(500 / (2 * h)), 1)
        u = 2 ** (1 / 1.5)
        level = u * (h / phi) ** (1 / 1.5)
        mean = np.clip(seen, -level, level).mean()
        wanted = mean + 3.2 * u * (phi / h) ** (1 / 3)
        assert policy._index(state, arms)[0, 1] == pytest.approx(wanted, rel=1e-9)


def kl_inf(x: Array, mean: float, bound: float, p: float) -> float:
    """The published dual, by a search over λ from several starts."""

    def loss(scaled: Array) -> float:
        first, second = np.exp(scaled)
        z = (first / (p * second)) ** (1 / (p - 1))  # where the constraint is tight
        if 1 + first * (mean - z) - second * (bound - z**p) < 0:
            return 1e3
        growth = 1 + first * (mean - x) - second * (bound - np.abs(x) ** p)
        return 1e3 if growth.min() <= 0 else -float(np.log(growth).mean())

    starts = [(a, a + b) for a in (-5.0, -3.0, -1.0) for b in (-6.0, -4.0, -2.0)]
    settings: Any = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    least: Any = minimize
    return max(
        -float(least(loss, start, method="Nelder-Mead", options=settings).fun) for start in starts
    )


@pytest.mark.parametrize(("p", "bound", "n", "level"), [(2.0, 3.5, 60, 0.1), (1.5, 4.0, 300, 0.03)])
def test_the_grid_of_bets_is_close_to_kl_inf(p: float, bound: float, n: int, level: float) -> None:
    x, law = np.random.default_rng(2).standard_t(3, n), MomentClass(p)
    unit = bound ** (1 / p)
    logs = law.growth(x / unit).sum(axis=0)[None, None]
    counts = np.array([[n]])
    largest = law.largest_mean(logs, counts, np.array([[n * level]]))
    mean = unit * float(largest[0, 0])
    exact = kl_inf(x, mean, bound, p)
    assert level * (1 - 1e-6) <= exact <= 1.03 * level  # the grid can only widen the index
    back = law.evidence(logs, counts, largest)
    assert back[0, 0] == pytest.approx(n * level, rel=1e-9)


def test_kl_inf_covers_the_mean_at_all_times() -> None:
    """False alarms of the test with probability 1e-6: the bound is missed by e^{−f} at most."""
    law, paths, n, f = MomentClass(2.0), 400, 200, math.log(20)
    x = noise.StudentT(2.5).sample(np.random.default_rng(4), (paths, n)) / math.sqrt(5.0)
    logs = law.growth(x).cumsum(axis=1)
    counts = np.broadcast_to(np.arange(1, n + 1), (paths, n))
    upper = law.largest_mean(logs, counts, f + overhead(counts))
    assert (upper < 0).any(axis=1).mean() < 0.11


@pytest.mark.parametrize("epsilon", [1.0, 0.4])
def test_ape2_is_the_published_estimator(epsilon: float) -> None:
    policy, p = policies.APE2(epsilon=epsilon, scale=0.7), 1 + epsilon
    draws = np.random.default_rng(3).standard_t(1.5, 40)
    state, arms = policy.init(1, 2, 1), np.zeros((1, 2, 1))
    odds = (2 - p) / (p - 1)
    b = 0.5 if p == 2 else (2 * odds ** (1 - 2 / p) + odds ** (2 - 2 / p)) ** (-p / 2)
    for n, _ in enumerate(draws, start=1):
        policy.learn(state, arms, [1], [[draws[n - 1]]])
        x = draws[:n] / (0.7 * n ** (1 / p))
        psi = np.sign(x) * np.log(1 + np.abs(x) + b * np.abs(x) ** p)
        assert state.means[0, 1] == pytest.approx(0.7 * n ** (1 / p - 1) * psi.sum(), rel=1e-9)


def test_stable_ts_has_the_exact_posterior() -> None:
    """α = 2 is a normal law, whose posterior is known."""
    policy = policies.StableTS(index=2.0, noise_scale=1.5, prior_mean=1.0, prior_scale=2.0)
    paths, rewards = 4000, np.array([0.3, -1.0, 2.0, 0.7, 1.1])
    state, arms = policy.init(paths, 1, 1), np.zeros((paths, 1, 1))
    for reward in rewards:
        zeros = np.zeros(paths, dtype=np.int64)
        policy.learn(state, arms, zeros, np.full((paths, 1), reward))
    weight = np.exp(state.logs[0, 0] - policy._grid**2 / 2)
    place = policy.prior_mean + policy.prior_scale * policy._grid
    mean = (weight * place).sum() / weight.sum()
    spread = math.sqrt((weight * (place - mean) ** 2).sum() / weight.sum())
    precision = 1 / 4 + len(rewards) / (2 * 1.5**2)
    assert mean == pytest.approx((1 / 4 + rewards.sum() / (2 * 1.5**2)) / precision, rel=1e-3)
    assert spread == pytest.approx(precision**-0.5, rel=1e-3)


def test_huber_bandit_is_a_huber_regression() -> None:
    policy, rng = policies.HuberBandit(explore=0.2, moment_bound=3.0), np.random.default_rng(1)
    state, xs, ys = policy.init(1, 4, 3), [], []
    for _ in range(40):
        arms = rng.standard_normal((1, 4, 3))
        chosen, reward = policy.choose(state, arms, rng), float(rng.standard_t(1.5) * 3)
        policy.learn(state, arms, chosen, [[reward]])
        xs.append(arms[0, chosen[0]])
        ys.append(reward)
    n = int(state.fitted[0])
    x, y, tau = np.array(xs[:n]), np.array(ys[:n]), policy.threshold(n, 3)

    def loss(theta: Array) -> float:
        r = np.abs(y - x @ theta)
        huber = np.where(r <= tau, r**2 / 2, tau * (r - tau / 2))
        return float(huber.sum() + theta @ theta / 2)

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(state.theta[0], best.x, atol=1e-5)
    assert (np.abs(y - x @ best.x) > tau).any()


GOLDEN: dict[str, tuple[Policy[Any], str]] = {
    "OSSB": (policies.OSSB(), "3322222222222222222222222022222222222222"),
    "EndOfOptimism": (
        policies.EndOfOptimism(horizon=120),
        "3333333333333333333333333333333333333333",
    ),
    "AbeLong": (policies.AbeLong(horizon=120), "3333333323330333233333333333133030333131"),
    "RobustMOSS": (policies.RobustMOSS(horizon=120), "3333333333333333333333333333333333333333"),
    "KLInfUCB": (policies.KLInfUCB(moment_bound=10.0), "3333333333332322133333333333333333323333"),
    "APE2": (policies.APE2(), "3133333333333333333333333323333333333233"),
    "MR-APE": (
        policies.APE2(perturbation="bounded", horizon=120),
        "3333333333333333333333333333333333333333",
    ),
    "StableTS": (policies.StableTS(), "3333333333233333333333333333333333333333"),
    "HuberBandit": (policies.HuberBandit(), "2222222222222222222222222222222222222222"),
}
"""The last 40 choices of one path; a change here changes results and belongs in the changelog."""


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_trace(name: str) -> None:
    policy, golden = GOLDEN[name]
    table = np.random.default_rng(5).standard_normal((120, 1, 4, 1)) + np.arange(4)[:, None]
    arms = np.broadcast_to(np.eye(4), (120, 1, 4, 4))
    assert row(trace_of(policy, arms, table)[-40:]) == golden


@pytest.mark.parametrize(
    "policy",
    [
        policies.RobustMOSS(horizon=1500, bonus=0.3),
        policies.KLInfUCB(moment_bound=0.6),
        policies.APE2(scale=0.3),
        policies.APE2(scale=0.3, perturbation="none", horizon=1500),
        policies.StableTS(noise_scale=0.3),
    ],
    ids=lambda policy: f"{type(policy).__name__}-{getattr(policy, 'perturbation', '')}",
)
def test_policy_beats_uniform_play(policy: Policy[Any]) -> None:
    """A sign test as in test_k_armed, with the same false-alarm rate of 1e-6."""
    law = noise.StudentT(2.5, scale=0.3)
    bandit = environments.k_armed(law, locations=(-0.5, 0.0, 0.5))
    settings: Any = {"horizon": 1500, "paths": 40, "checkpoints": 1}
    result = simulate({"policy": policy, "uniform": Uniform()}, bandit, seed=1, **settings)
    ours, theirs = (result.curves[which].regret[:, -1] for which in ("policy", "uniform"))
    assert (ours < theirs).sum() >= 35


@pytest.mark.slow
def test_ossb_beats_optimism_where_the_optimum_tells_nothing() -> None:
    """T = 10⁵, as theory says; the ratio of 40 paths measured 0.4, with a standard error of .05."""
    bandit = LinearBandit(contexts=GivenArms(END), theta=(1.0, 0.0), noise=noise.Normal())
    tools: dict[str, Policy[Any]] = {"OSSB": policies.OSSB(), "OFUL": policies.OFUL()}
    result = simulate(tools, bandit, horizon=10**5, paths=20, checkpoints=1, seed=8)
    ours, theirs = (result.curves[name].regret[:, -1].mean() for name in tools)
    assert ours < 0.75 * theirs


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: policies.RobustMOSS(horizon=9, zeta=1.0), "zeta must be larger"),
        (lambda: policies.APE2(perturbation="bounded"), "horizon is required"),
        (lambda: noise.Stable(1.0, skewness=0.5), "index must differ from 1"),
    ],
)
def test_settings_are_checked(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_a_state_survives_a_huge_reward() -> None:
    for policy in (policies.KLInfUCB(), policies.StableTS(), policies.APE2()):
        rewards = np.random.default_rng(0).standard_normal((20, 1, 3))
        rewards[5] = np.inf
        state, _ = play(policy, None, rewards)
        assert state.decisions.tolist() == [20]
