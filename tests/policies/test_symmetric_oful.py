"""SymmetricOFUL against a plain one-path reference, and what its fit promises."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from traces import offers, play, row, trace_of

from tailproof import SymmetricOFUL, environments, noise, simulate, theory
from tailproof.policies.state.huber_fit import gram, minimise, root_of
from tailproof.typing import Array

FORMS = [
    SymmetricOFUL(tau=8, radius="theorem", mass=0.6, horizon=1000),
    SymmetricOFUL(tau=8, radius="observable"),
    SymmetricOFUL(tau=3, ridge=200),
    SymmetricOFUL(tau=2, radius="practical", bonus=0.3),
    SymmetricOFUL(radius="practical", bonus=0.3, pilot=5),
]


class Reference:
    """One path, from the formulas: lists, inverses and determinants anew at each fit."""

    def __init__(self, policy: SymmetricOFUL, dim: int) -> None:
        self.policy, self.dim, self.tau = policy, dim, policy.tau
        self.kappa = float(policy.mass or 1)
        self.events = 1 if policy.radius == "observable" else 2
        self.x: list[Array] = []
        self.y: list[float] = []
        self.pilot: list[float] = []
        self.theta: Array = np.zeros(dim)
        self.inverse: Any = np.eye(dim)
        self.beta = math.inf
        self.seen, self.seen_det = 0, 1.0
        if policy.ridge is not None:
            self.ridge = policy.ridge
        elif policy.radius == "theorem":
            self.ridge = theory.huber_ridge(
                dim=dim, horizon=policy.horizon or 0, delta=policy.delta / 2, mass=self.kappa
            )
        else:
            self.ridge = 1 if policy.radius == "practical" else 64 * math.log(2 / policy.delta)

    def choose(self, arms: Array) -> int:
        index = [
            float(x @ self.theta) + self.policy.bonus * self.beta * math.sqrt(x @ self.inverse @ x)
            for x in arms
        ]
        return int(np.argmax(index))

    def learn(self, x: Array, y: float) -> None:
        if self.tau is None:
            self.pilot.append(abs(y))
            if len(self.pilot) == self.policy.pilot:
                self.tau = sorted(self.pilot)[len(self.pilot) // 2]
            return
        self.x.append(x)
        self.y.append(y)
        matrix = np.array(self.x)
        ridge, eye = self.ridge, np.eye(self.dim)
        det = float(np.linalg.det(eye + self.kappa / ridge * matrix.T @ matrix))
        pulls = len(self.x) + len(self.pilot)
        if pulls >= self.seen * 9 / 8 or det >= self.seen_det * 9 / 8:
            self.seen, self.seen_det = pulls, det
            self.fit(matrix, np.array(self.y), det)

    def fit(self, x: Array, y: Array, det: float) -> None:
        tau, ridge, eye = float(self.tau or 0), self.ridge, np.eye(self.dim)
        log = 2 * math.log(self.events / self.policy.delta)
        shift = math.sqrt(ridge) * self.policy.norm_bound
        for _ in range(10_000):  # the majorising step of Huber's own algorithm
            score = np.clip(y - x @ self.theta, -tau, tau)
            step = np.linalg.solve(ridge * eye + x.T @ x, x.T @ score - ridge * self.theta)
            self.theta = self.theta + step
            if np.linalg.norm(step) < 1e-13:
                break
        if self.policy.radius == "theorem":
            self.inverse = np.linalg.inv(ridge * eye + self.kappa * x.T @ x)
            self.beta = 2 * (tau * math.sqrt((log + math.log(det)) / self.kappa) + shift)
            return
        u, r = ridge * eye + x.T @ x, np.abs(y - x @ self.theta)
        total = tau * math.sqrt(log + math.log(det)) + shift
        reach = max(math.sqrt(row @ np.linalg.solve(u, row)) for row in x)

        def inside(w: float) -> tuple[Array, float]:
            kept = x[r <= tau - w]
            matrix = ridge * eye + kept.T @ kept
            return matrix, float(np.linalg.eigvals(np.linalg.solve(u, matrix)).real.min())

        w = 0.0
        if self.policy.radius != "practical":
            for _ in range(6):
                if w < tau and reach * total / inside(w)[1] < w:
                    break
                w = 1.25 * reach * total / inside(w)[1]
            else:
                w = 0.0
            w = w if w < tau else 0.0
        matrix, share = inside(w)
        if self.policy.radius == "observable":
            self.inverse, self.beta = np.linalg.inv(u), total / share
            return
        rho = ridge * tau**2 / 4
        squares = (x * np.minimum(tau, r + w)[:, None] ** 2).T @ x
        v = np.linalg.eigvals(np.linalg.solve(matrix, rho * eye + squares)).real.max()
        growth = math.log(np.linalg.det(eye + squares / rho))
        self.inverse = np.linalg.inv(matrix)
        self.beta = math.sqrt(v * (log + growth)) + shift


@pytest.mark.parametrize("policy", FORMS, ids=repr)
@pytest.mark.parametrize("df", [0.7, 30])
def test_decisions_are_those_of_the_reference(policy: SymmetricOFUL, df: float) -> None:
    arms = offers(150, 1, 4, 3, seed=1)
    rng = np.random.default_rng(2)
    rewards = arms @ np.array([0.5, -0.6, 0.3]) + rng.standard_t(df, (150, 1, 4))
    plain, state = Reference(policy, 3), policy.init(1, 4, 3)
    for offer, table in zip(arms[:, 0], rewards[:, 0], strict=True):
        chosen = int(policy.choose(state, offer[None], rng)[0])
        if math.isfinite(plain.beta):  # before the first fit the choice is random
            assert chosen == plain.choose(offer)
        policy.learn(state, offer[None], [chosen], [[table[chosen]]])
        plain.learn(offer[chosen], float(table[chosen]))
        np.testing.assert_allclose(state.theta[0], plain.theta, atol=1e-7)
        np.testing.assert_allclose(state.radius[0], plain.beta, rtol=1e-6)


@pytest.mark.parametrize(
    ("policy", "golden"),
    [
        (FORMS[3], "122220020012202110222112111111000200121212222010202210111202"),
        (SymmetricOFUL(), "100022121220202022222222222222222222222222222222222222222222"),
    ],
    ids=repr,
)
def test_golden_traces(policy: SymmetricOFUL, golden: str) -> None:
    arms = offers(60, 1, 3, 2, seed=4)
    rewards = arms @ np.array([0.6, -0.8]) + np.random.default_rng(5).standard_cauchy((60, 1, 3))
    assert row(trace_of(policy, arms, rewards)) == golden


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.3, 5), st.sampled_from([0.0, 1.0, 1e3, -1e9]))
def test_the_argmin_is_found_from_any_start(seed: int, df: float, start: float) -> None:
    rng = np.random.default_rng(seed)
    n, penalty = int(rng.integers(1, 60)), float(rng.choice([0.1, 1, 100]))
    x, y = rng.standard_normal((2, 3, n)), 3 * rng.standard_t(df, (2, n))
    root = root_of(gram(x, np.ones((2, n)), penalty), penalty)
    found = minimise(x, y, np.full((2, 3), start), root, penalty)

    def loss(theta: Array) -> tuple[float, Array]:
        r = y[1] - theta @ x[1]
        psi = np.clip(r, -1, 1)
        value = penalty / 2 * theta @ theta + np.sum(psi * (r - psi / 2))
        return float(value), penalty * theta - x[1] @ psi

    best = minimize(loss, np.zeros(3), jac=True, options={"gtol": 1e-10})
    assert loss(found[1])[0] <= best.fun + 1e-9 * (1 + abs(best.fun))
    assert np.linalg.norm(loss(found[1])[1]) < 1e-7


def test_paths_of_different_age_learn_as_each_alone() -> None:
    """To the last bit."""
    policy = SymmetricOFUL(tau=2, radius="practical")
    arms, rewards = offers(90, 1, 4, 3), np.random.default_rng(4).standard_cauchy((90, 1, 4))
    old, young = play(policy, arms[:50], rewards[:50])[0], play(policy, arms[:5], rewards[:5])[0]
    pair = policy.init(2, 4, 3)
    pair.put(np.array([0]), old)
    pair.put(np.array([1]), young)
    for offer, table in zip(arms[50:], rewards[50:], strict=True):
        both = np.repeat(offer, 2, axis=0)
        for state, x in ((old, offer), (young, offer), (pair, both)):
            policy.learn(state, x, [0] * len(x), table[[0] * len(x), :1])
    for path, alone in enumerate((old, young)):
        for name in ("theta", "norm", "radius", "log_det", "certified", "fitted"):
            np.testing.assert_array_equal(getattr(pair, name)[path], getattr(alone, name)[0])


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**30])
def test_a_pilot_makes_the_unit_of_the_rewards_disappear(unit: float) -> None:
    policy = SymmetricOFUL(radius="practical", bonus=0.3)
    arms, rewards = offers(200, 2, 4, 3), np.random.default_rng(4).standard_cauchy((200, 2, 4))
    other = replace(policy, norm_bound=unit)
    np.testing.assert_array_equal(
        trace_of(policy, arms, rewards), trace_of(other, arms, unit * rewards)
    )


def test_a_pilot_is_left_out_and_waits_for_rewards_other_than_zero() -> None:
    policy, rng = SymmetricOFUL(pilot=5, norm_bound=0.01), np.random.default_rng(0)
    state = policy.init(1, 2, 2)
    arms = np.eye(2)[None]
    for reward in (0.0, 0.0, 7.0, 0.0, -3.0):
        assert state.tau.tolist() == [0]
        policy.learn(state, arms, policy.choose(state, arms, rng), [[reward]])
    assert state.tau.tolist() == [7]
    assert not state.contexts.any()
    policy.learn(state, arms, [1], [[3.0]])
    assert state.contexts[0, :, 5].tolist() == [0, 1]
    policy = SymmetricOFUL(pilot=5, radius="practical")
    silent = policy.init(1, 2, 2)
    for _ in range(20):
        policy.learn(silent, arms, [0], [[0.0]])
    assert silent.tau.tolist() == [0]


def test_infinite_rewards_are_as_large_as_tau() -> None:
    policy = SymmetricOFUL(tau=2, radius="practical")
    arms, rewards = offers(40, 1, 3, 2), np.random.default_rng(1).standard_normal((40, 1, 3))
    rewards[::5] = np.inf
    wild, _ = play(policy, arms, rewards)
    clip, _ = play(policy, arms, np.where(np.isinf(rewards), 1e50, rewards))
    np.testing.assert_array_equal(wild.theta, clip.theta)
    assert np.isfinite(wild.theta).all()


@pytest.mark.parametrize("name", ["tau", "mass", "horizon"])
def test_the_theorem_has_to_be_told_its_constants(name: str) -> None:
    told: dict[str, Any] = {"radius": "theorem", "tau": 8, "mass": 0.5, "horizon": 100}
    with pytest.raises(ValueError, match=f"^{name} is required for radius="):
        SymmetricOFUL(**told | {name: None})


def test_the_past_is_looked_at_rarely() -> None:
    policy = SymmetricOFUL(tau=2, radius="practical", bonus=0.3)
    arms, rewards = offers(1000, 1, 4, 3), np.random.default_rng(4).standard_cauchy((1000, 1, 4))
    state, fits = policy.init(1, 4, 3), set()
    rng = np.random.default_rng(0)
    for offer, table in zip(arms, rewards, strict=True):
        chosen = policy.choose(state, offer, rng)
        policy.learn(state, offer, chosen, table[:, chosen])
        fits.add(int(state.fitted[0]))
    assert len(fits) <= 8.5 * (math.log(1000) + 3 * math.log1p(1000 / 3))
    assert state.contexts.shape == (1, 3, 1024)


@pytest.mark.slow
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("place", range(4))
def test_the_practical_form_has_the_regret_it_is_said_to_have(place: int, fresh: bool) -> None:
    """At most 1.3 times the figures of the prototype; the standard error is below a tenth."""
    law = [noise.Normal(), noise.StudentT(3), noise.StudentT(1), noise.StudentT(0.5)][place]
    figure = (65, 89, 152, 244)[place] if fresh else (80, 118, 199, 293)[place]
    result = simulate(
        {"practical": SymmetricOFUL(tau=2, radius="practical", bonus=0.3)},
        environments.neutral(law, arms=20, dim=5, fresh=fresh),
        horizon=2000,
        paths=100,
        seed=31,
        checkpoints=1,
    )
    assert result.mean("practical")[-1] <= 1.3 * figure
