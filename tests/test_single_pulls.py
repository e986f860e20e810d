"""Policies that learn the noise, against plain one-path references, and where they help."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playing import offers, play, row, trace_of
from scipy.stats import t as student_t

from tailproof import (
    LinStudentUCB,
    Policy,
    StudentUCB,
    Uniform,
    environments,
    noise,
    simulate,
)
from tailproof.policies.state import student

Array = NDArray[np.float64]
NUS = (0.5, 1.0, 2.0, 4.0)


class Law:
    """What one path knows of its noise: s, Σψ², Σψ' and the log-likelihood for each ν."""

    def __init__(self) -> None:
        self.s = [1.0] * 4
        self.squares = [(nu + 1) / (nu + 3) for nu in NUS]
        self.slopes = [(nu + 1) / (nu + 3) for nu in NUS]
        self.likelihood = [0.0] * 4

    def add(self, r: Any) -> None:
        for j, nu in enumerate(NUS):
            u = np.atleast_1d(r) / self.s[j]
            self.squares[j] += np.sum(((nu + 1) * u / (nu + u**2)) ** 2)
            self.slopes[j] += np.sum((nu + 1) * (nu - u**2) / (nu + u**2) ** 2)
            # Student's t with scale 1 for x = u; the spread √ν is part of scipy's standard form
            self.likelihood[j] += np.sum(student_t.logpdf(u, nu) - math.log(self.s[j]))

    @property
    def best(self) -> int:
        return int(np.argmax(self.likelihood))

    def slope(self, n: int) -> float:
        nu = NUS[self.best]
        return max(float(self.slopes[self.best]) / (n + 1), (nu + 1) / (nu + 3) / 4)

    def sigma(self, n: int) -> float:
        squares = float(self.squares[self.best]) / (n + 1)
        return self.s[self.best] * math.sqrt(squares) / self.slope(n)


def refit(r: Array) -> tuple[Law, Array]:
    law = Law()
    for j, nu in enumerate(NUS):
        log_s = math.log(max(np.sort(np.abs(r))[(len(r) - 1) // 2], math.exp(-100)))
        for _ in range(3):
            u = r / math.exp(log_s)
            excess = float(np.mean((nu + 1) * u**2 / (nu + u**2))) - 1
            log_s += min(max(excess * (nu + 3) / (2 * nu), -1.0), 1.0)
        law.s[j] = math.exp(log_s)
    law.add(r)
    s, nu = law.s[law.best], NUS[law.best]
    return law, s * (nu + 3) / (nu + 1) * (nu + 1) * (r / s) / (nu + (r / s) ** 2)


def advance(law: Law, n: int, r: float) -> float:
    nu, s = NUS[law.best], law.s[law.best]
    move = s * (nu + 1) * (r / s) / (nu + (r / s) ** 2) / law.slope(n)
    law.add(r)
    for j, nu in enumerate(NUS):
        u = r / law.s[j]
        excess = (nu + 1) * u**2 / (nu + u**2) - 1
        law.s[j] *= math.exp((nu + 3) / (2 * nu) * excess / (n + 1))
    return move


def lin_student(
    policy: LinStudentUCB, arms: Array, rewards: Array, first: int
) -> tuple[list[int], Array]:
    """All pulls are kept and V is inverted afresh; the `first` choice is left to chance."""
    d = arms.shape[-1]
    room, theta, law, chosen = policy.room * d, np.zeros(d), Law(), []
    xs: list[Array] = []
    ys: list[float] = []
    v, extra = policy.ridge * np.eye(d), 0.0
    for n, (x, table) in enumerate(zip(arms, rewards, strict=True)):
        inverse = np.linalg.inv(v)
        w = np.array([math.sqrt(a @ inverse @ a) for a in x])
        if n * max(w) ** 2 <= policy.share * d:
            index = x @ np.linalg.solve(v + extra * np.eye(d), v @ theta)
        else:
            log = math.log(np.linalg.det(v) / policy.ridge**d) + 2 * math.log(1 / policy.delta)
            sigma, size = law.sigma(n), math.sqrt(policy.ridge) * float(np.linalg.norm(theta))
            wide = max(sigma * math.sqrt(log), 7 * size) * w + sigma * log * w**2 / 4
            index = x @ theta + policy.bonus * wide
        k = int(np.argmax(index)) if n else first
        chosen.append(k)
        xs.append(x[k])
        ys.append(table[k])
        h = 1 + x[k] @ inverse @ x[k]
        v = v + np.outer(x[k], x[k])
        inverse, n = np.linalg.inv(v), n + 1
        if n <= room and (n % max(n // 8, 1) == 0 or n == room):
            half = (n - 1) // 2
            residuals = np.array(ys) - np.array(xs) @ theta
            if sorted(np.abs(ys))[half] < sorted(np.abs(residuals))[half]:
                theta = np.zeros(d)
            for _ in range(2):
                law, moves = refit(np.array(ys) - np.array(xs) @ theta)
                theta = theta + inverse @ (moves @ np.array(xs) - policy.ridge * theta)
            extra = policy.shrinkage * n / room * law.sigma(n) ** 2
        else:
            move = advance(law, n - 1, (table[k] - x[k] @ theta) / math.sqrt(h))
            theta = theta + inverse @ x[k] * math.sqrt(h) * move
    return chosen, theta


def k_student(policy: StudentUCB, rewards: Array, opening: list[int]) -> list[int]:
    """One path; the order of the `opening`, three pulls of each arm, is left to chance."""
    arms, law, chosen = rewards.shape[1], Law(), []
    first: list[list[float]] = [[] for _ in range(arms)]
    m, counts = np.zeros(arms), np.zeros(arms, dtype=int)
    for t, table in enumerate(rewards):
        if t < 3 * arms:
            k = opening[t]
        else:
            rate = 2 * math.log(t) / counts
            k = int(np.argmax(m + policy.bonus * law.sigma(t) * (np.sqrt(rate) + rate / 10)))
        stretch = math.sqrt(1 + 1 / max(counts[k], 1))
        m[k] += stretch * advance(law, t, (table[k] - m[k]) / stretch) / (counts[k] + 1)
        counts[k] += 1
        if counts[k] <= policy.room:
            first[k].append(table[k])
            m[k] = np.median(first[k])
        if t + 1 <= arms * policy.room and (t + 1) % max((t + 1) // 8, 1) == 0:
            law = refit(np.concatenate([np.array(y) - m[a] for a, y in enumerate(first)]))[0]
        chosen.append(k)
    return chosen


LINEAR = [LinStudentUCB(), LinStudentUCB(room=3, bonus=1, ridge=2, delta=0.1, share=1, shrinkage=9)]


@pytest.mark.parametrize("policy", LINEAR, ids=repr)
@pytest.mark.parametrize("fixed", [False, True])
def test_lin_student_is_its_plain_form(policy: LinStudentUCB, fixed: bool) -> None:
    arms, rng = offers(200, 2, 6, 4), np.random.default_rng(1)
    arms = np.repeat(arms[:1], 200, axis=0) if fixed else arms
    theta = offers(1, 1, 1, 4, seed=9)[0, 0, 0]
    rewards = arms @ theta + 0.3 * rng.standard_t(0.8, arms.shape[:3])
    state, trace = play(policy, arms, rewards)
    for path in range(2):
        chosen, found = lin_student(policy, arms[:, path], rewards[:, path], trace[0, path])
        assert trace[:, path].tolist() == chosen
        np.testing.assert_allclose(state.theta[path], found, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("policy", [StudentUCB(), StudentUCB(bonus=2, room=3)], ids=repr)
def test_student_is_its_plain_form(policy: StudentUCB) -> None:
    rewards = np.random.default_rng(2).standard_t(0.8, (300, 2, 4)) + np.arange(4) / 2
    trace = trace_of(policy, None, rewards)
    for path in range(2):
        opening = trace[:12, path].tolist()
        assert sorted(opening) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
        assert trace[:, path].tolist() == k_student(policy, rewards[:, path], opening)


GOLDEN: dict[str, tuple[Policy[Any], str]] = {
    "LinStudentUCB": (LinStudentUCB(), "3112441311304004442411424131343131402104"),
    "StudentUCB": (StudentUCB(), "3100443324202114444444444444444443444444"),
}
"""The choices of one path; a change here changes results and belongs in the changelog."""


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_trace(name: str) -> None:
    policy, golden = GOLDEN[name]
    rewards = np.random.default_rng(5).standard_normal((40, 1, 5)) + np.arange(5)
    assert row(trace_of(policy, offers(40, 1, 5, 3, seed=6), rewards)) == golden


@pytest.mark.parametrize("df", [0.5, 1, 3])
@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_the_law_of_the_noise_is_found(df: float, scale: float) -> None:
    """σ² is near the inverse Fisher information, after 160 pulls kept and 3000 seen once.

    With 100 paths the mean of ln σ has a standard error of at most 0.006, and of 400 others it
    was within 0.004: false alarms below 1e-8.
    """
    law = noise.StudentT(df, scale)
    rng = np.random.default_rng(3)
    first = law.sample(rng, (100, 160))
    found, _ = student.refit(first, np.ones(first.shape, dtype=np.bool_))
    n = np.full(100, 160)
    for residual in law.sample(rng, (3000, 100)):
        found, _ = student.advance(found, n, residual)
        n = n + 1
    error = np.log(student.deviation(found, n)) + math.log(law.fisher_information) / 2
    assert abs(error.mean()) < 0.04


@pytest.mark.parametrize("policy", [LinStudentUCB(), LinStudentUCB(room=1)], ids=repr)
@pytest.mark.parametrize("wild", [1e300, math.inf, -math.inf])
def test_absurd_rewards_are_harmless(policy: LinStudentUCB, wild: float) -> None:
    """The estimate points within 0.1 of θ.

    Of 800 other paths the worst was off by an angle of 0.036, about three standard deviations:
    false alarms below 1e-12.
    """
    arms, theta = offers(1500, 5, 4, 2), np.array([0.6, -0.8])
    rewards = arms @ theta + 0.1 * np.random.default_rng(1).standard_normal(arms.shape[:3])
    rewards[0], rewards[10], rewards[100::10] = wild, wild, wild
    state, _ = play(policy, arms, rewards)
    found = policy.estimate(state)
    assert (found @ theta / np.linalg.norm(found, axis=1) > math.cos(0.1)).all()


def test_rewards_without_noise_are_learned() -> None:
    """Chance breaks ties alone: of 200 other paths none was off by more than 0.0012."""
    arms, theta = offers(300, 3, 4, 2), np.array([0.6, -0.8])
    state, _ = play(LinStudentUCB(), arms, arms @ theta)
    np.testing.assert_allclose(state.theta, np.tile(theta, (3, 1)), atol=0.02)
    state, trace = play(StudentUCB(), None, np.tile(np.arange(4.0), (300, 3, 1)))
    assert (trace[50:] == 3).mean() > 0.9
    assert state.locations[:, 3].tolist() == [3.0] * 3


def test_paths_of_different_age_learn_as_each_alone() -> None:
    policy, arms = LinStudentUCB(room=4), offers(60, 1, 4, 3)
    rewards = np.random.default_rng(4).standard_cauchy((60, 1, 4))
    old, young = play(policy, arms[:30], rewards[:30])[0], play(policy, arms[:5], rewards[:5])[0]
    pair = policy.init(2, 4, 3)
    pair.put(np.array([0]), old)
    pair.put(np.array([1]), young)
    for offer, table in zip(arms[30:], rewards[30:], strict=True):
        both = np.repeat(offer, 2, axis=0)
        for state, x in ((old, offer), (young, offer), (pair, both)):
            chosen = np.zeros(len(x), dtype=np.int64)
            policy.learn(state, x, chosen, table[[0] * len(x), :1])
    np.testing.assert_allclose(pair.theta, np.concatenate([old.theta, young.theta]), rtol=1e-9)


@pytest.mark.parametrize("policy", [LinStudentUCB(), StudentUCB()], ids=repr)
@pytest.mark.parametrize("law", [noise.Cauchy(), noise.StudentT(0.5)], ids=repr)
def test_policy_beats_uniform_play(policy: Policy[Any], law: noise.Noise) -> None:
    """Two thirds of uniform's regret: one no better passes with probability below 1e-6."""
    if isinstance(policy, LinStudentUCB):
        bandit = environments.neutral(law, arms=10, dim=5)
    else:
        bandit = environments.k_armed(law, locations=(0.0, 0.5, 1.0, 1.5))
    result = simulate(
        {"policy": policy, "uniform": Uniform()},
        bandit,
        horizon=1500,
        paths=40,
        seed=1,
        checkpoints=1,
    )
    mine, uniform = (result.curves[name].regret[:, -1] for name in ("policy", "uniform"))
    gain = uniform * 2 / 3 - mine
    assert gain.mean() > 5 * gain.std(ddof=1) / math.sqrt(len(gain))
