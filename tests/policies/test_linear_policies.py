"""Linear policies against plain one-path references, golden traces, and where they help."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rotation import Check, briefly, by_class, everything, sample
from scipy.optimize import NonlinearConstraint, brentq, minimize
from traces import offers, play, row, trace_of

from tailproof import Filtered, Median, Policy, Uniform, environments, noise, simulate, testing
from tailproof.policies.confidence_ball import ConfidenceBall
from tailproof.policies.heavy_oful import HeavyOFUL
from tailproof.policies.huber import Huber, project
from tailproof.policies.hvt_ucb import HvtUCB
from tailproof.policies.lin_ts import LinTS
from tailproof.typing import Array

Lesson = tuple[list[int], Array, float]
"""What a reference did: its choices, its last estimate of θ and its last radius."""
POLICIES: list[Policy[Any]] = [
    LinTS(),
    LinTS(bonus=0.1, noise_scale=0.5, ridge=2.5, delta=0.1),
    ConfidenceBall(),
    ConfidenceBall(bonus=0.02, ridge=2.5, delta=0.1),
    HeavyOFUL(decisions=300, epsilon=1, moment_bound=1),
    HeavyOFUL(
        decisions=300, epsilon=0.5, moment_bound=0, bonus=1e-3, ridge=0.2, norm_bound=0.3, delta=0.1
    ),
    HeavyOFUL(
        decisions=300, epsilon=1, moment_bound=0, bonus=1e-3, ridge=50, norm_bound=50
    ),  # S decides σ
    HvtUCB(decisions=300, epsilon=1, moment_bound=1),
    HvtUCB(
        decisions=300, epsilon=0.5, moment_bound=0, bonus=1e-3, ridge=0.2, norm_bound=0.3, delta=0.1
    ),
]


def lin_ts(policy: LinTS, arms: Array, rewards: Array, path: int) -> Lesson:
    """Agrawal and Goyal 2013 on one path, given the standard normals that its batch drew.

    θ̃ = θ̂ + v S z for a root S of V⁻¹; which root is free, and it changes with each x to
    S (I + Sᵀx xᵀS)^{−½}, here by an eigendecomposition.
    """
    paths, dim = arms.shape[1], arms.shape[-1]
    rng, v, f, chosen = np.random.default_rng(0), policy.ridge * np.eye(dim), np.zeros(dim), []
    root: Array = np.eye(dim) / math.sqrt(policy.ridge)
    for t, (x, y) in enumerate(zip(arms[:, path], rewards[:, path], strict=True), start=1):
        z = rng.standard_normal((paths, dim))[path]
        rng.random(paths)  # the lots for ties
        scale = policy.noise_scale * math.sqrt(9 * dim * math.log(t / policy.delta))
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(v), rtol=1e-9, atol=1e-12)
        theta = np.linalg.solve(v, f) + policy.bonus * scale * root @ z
        best = int(np.argmax([a @ theta for a in x]))
        v, f = v + np.outer(x[best], x[best]), f + y[best] * x[best]
        values, vectors = np.linalg.eigh(np.eye(dim) + root.T @ np.outer(x[best], x[best]) @ root)
        root = root @ (vectors * values**-0.5) @ vectors.T
        chosen.append(best)
    return chosen, np.asarray(np.linalg.solve(v, f), np.float64), scale


def confidence_ball(policy: ConfidenceBall, arms: Array, rewards: Array, path: int) -> Lesson:
    """ConfidenceBall₂ on one path; the best point of the ellipsoid is found for each arm."""
    dim = arms.shape[-1]
    a_matrix, b, chosen = policy.ridge * np.eye(dim), np.zeros(dim), []
    for t, (x, y) in enumerate(zip(arms[:, path], rewards[:, path], strict=True), start=1):
        theta, log = np.linalg.solve(a_matrix, b), math.log(t**2 / policy.delta)
        beta = max(128 * dim * math.log(t) * log, (8 / 3 * log) ** 2)
        index = []
        for a in x:
            direction = np.linalg.solve(a_matrix, a)
            nu = theta + policy.bonus * math.sqrt(beta) * direction / math.sqrt(a @ direction)
            index.append(a @ nu)
        best = int(np.argmax(index))
        a_matrix, b = a_matrix + np.outer(x[best], x[best]), b + y[best] * x[best]
        chosen.append(best)
    return chosen, np.asarray(np.linalg.solve(a_matrix, b), np.float64), math.sqrt(beta)


def huber_ridge(x: Array, y: Array, tau: Array, penalty: float, bound: float) -> Array:
    """Reweighted least squares to the end, with the multiplier of the ball by bisection."""

    def solve(multiplier: float) -> Array:
        theta: Array = np.zeros(x.shape[1])
        shrink = (penalty + multiplier) * np.eye(x.shape[1])
        for _ in range(10_000):
            weight = np.minimum(1, tau / np.maximum(np.abs(y - x @ theta), 1e-300))
            last, matrix = theta, shrink + (x.T * weight) @ x
            theta = np.asarray(np.linalg.solve(matrix, x.T @ (weight * y)), np.float64)
            if np.abs(theta - last).max() < 1e-13:
                break
        return theta

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(solve(multiplier))) - bound

    if excess(0) <= 0:
        return solve(0)
    return solve(brentq(excess, 0, 1e9, xtol=1e-13, rtol=1e-14))


def heavy_oful(policy: HeavyOFUL, arms: Array, rewards: Array, path: int) -> Lesson:
    """HEAVY-OFUL on one path, from the pseudo-code with every constant spelt out."""
    d, horizon, eps, delta = arms.shape[-1], policy.decisions, policy.epsilon, policy.delta
    nu = policy.moment_bound ** (1 / (1 + eps))
    lam = d if policy.ridge is None else policy.ridge
    s_min, log, log3 = (
        1 / math.sqrt(horizon),
        math.log(2 * horizon**2 / delta),
        math.log(3 * horizon),
    )
    kappa = d * math.log(1 + horizon / (d * lam * s_min**2))
    c0 = 1 / math.sqrt(23 * log)
    c1 = log3 ** ((1 - eps) / (1 + eps)) / (48 * log ** (2 / (1 + eps)))
    g = (1 - eps) / (2 * (1 + eps))
    tau0 = math.sqrt(2 * kappa) * log3**g / log ** (1 / (1 + eps))
    h, theta, chosen = lam * np.eye(d), np.zeros(d), []
    xs, ys, taus = [], [], []
    beta = 3 * math.sqrt(lam) * policy.norm_bound
    for t, (x, y) in enumerate(zip(arms[:, path], rewards[:, path], strict=True), start=1):
        width = [math.sqrt(a @ np.linalg.solve(h, a)) for a in x]
        index = [a @ theta + policy.bonus * beta * b for a, b in zip(x, width, strict=True)]
        k = int(np.argmax(index))
        by_bias = math.sqrt(policy.norm_bound * width[k]) / (2 * c1 * kappa) ** 0.25
        sigma = max(nu, s_min, width[k] / c0, by_bias)
        w = width[k] / sigma
        xs.append(x[k] / sigma)
        ys.append(y[k] / sigma)
        taus.append(tau0 * math.sqrt(1 + w**2) / w * t**g)
        h = h + np.outer(xs[-1], xs[-1])
        theta = huber_ridge(np.array(xs), np.array(ys), np.array(taus), lam, policy.norm_bound)
        last, beta = beta, 3 * math.sqrt(lam) * policy.norm_bound
        beta += 24 * t**g * math.sqrt(2 * kappa) * log3**g * log ** (eps / (1 + eps))
        chosen.append(k)
    return chosen, theta, last


def nearest(theta: Array, v: Array, bound: float) -> Array:
    """The point of the ball nearest to θ in the norm of V, from its optimality condition."""

    def shrunk(multiplier: float) -> Array:
        return np.asarray(np.linalg.solve(v + multiplier * np.eye(len(v)), v @ theta), np.float64)

    if np.linalg.norm(theta) <= bound:
        return theta
    return shrunk(brentq(lambda m: np.linalg.norm(shrunk(m)) - bound, 0, 1e15, xtol=1e-13))


def hvt_ucb(policy: HvtUCB, arms: Array, rewards: Array, path: int) -> Lesson:
    """Hvt-UCB on one path, from the pseudo-code with every constant spelt out."""
    d, horizon, eps, alpha = arms.shape[-1], policy.decisions, policy.epsilon, 4
    nu = policy.moment_bound ** (1 / (1 + eps))
    lam = d if policy.ridge is None else policy.ridge
    s_min, log = 1 / math.sqrt(horizon), math.log(2 * horizon**2 / policy.delta)
    kappa = d * math.log(1 + horizon / (d * lam * alpha * s_min**2))
    g = (1 - eps) / (2 * (1 + eps))
    tau0 = math.sqrt(2 * kappa) * math.log(3 * horizon) ** g / log ** (1 / (1 + eps))
    v, theta, chosen = lam * np.eye(d), np.zeros(d), []
    for t, (x, y) in enumerate(zip(arms[:, path], rewards[:, path], strict=True), start=1):
        beta = 107 * log * tau0 * (t - 1) ** g + math.sqrt(lam * (2 + 4 * policy.norm_bound**2))
        radius = policy.bonus * beta
        width = [math.sqrt(a @ np.linalg.solve(v, a)) for a in x]
        k = int(np.argmax([a @ theta + radius * b for a, b in zip(x, width, strict=True)]))
        sigma = math.sqrt(2 * radius / (tau0 * math.sqrt(alpha) * t**g)) * width[k]
        sigma = max(nu, s_min, sigma)
        w = width[k] / sigma / math.sqrt(alpha)
        tau = tau0 * math.sqrt(1 + w**2) / w * t**g
        v = v + np.outer(x[k], x[k]) / (alpha * sigma**2)
        z = (y[k] - x[k] @ theta) / sigma
        gradient = -x[k] / sigma * (z if abs(z) <= tau else math.copysign(tau, z))
        theta = nearest(theta - np.linalg.solve(v, gradient), v, policy.norm_bound)
        chosen.append(k)
    return chosen, theta, beta


REFERENCES: dict[type, Callable[..., Lesson]] = {
    LinTS: lin_ts,
    ConfidenceBall: confidence_ball,
    HeavyOFUL: heavy_oful,
    HvtUCB: hvt_ucb,
}


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_policy_is_the_published_algorithm(policy: Any) -> None:
    arms, rng = offers(200, 2, 6, 4), np.random.default_rng(1)
    theta = offers(1, 1, 1, 4, seed=9)[0, 0, 0]
    shocks = np.where(rng.random(arms.shape[:3]) < 0.05, 1e5, 0.3)
    rewards = arms @ theta + shocks * rng.standard_normal(arms.shape[:3])
    if isinstance(policy, LinTS | ConfidenceBall):  # they assume light tails
        rewards = np.clip(rewards, -1, 1)
    state, trace = play(policy, arms, rewards)
    before = state.take([0, 1])
    before.decisions -= 1
    radius = policy.spread(before) if isinstance(policy, LinTS) else policy.radius(before)
    for path in range(2):
        chosen, theta, beta = REFERENCES[type(policy)](policy, arms, rewards, path)
        assert trace[:, path].tolist() == chosen
        np.testing.assert_allclose(state.theta[path], theta, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(radius[path], beta, rtol=1e-9)


def test_confidence_ball_starts_from_the_second_term() -> None:
    policy = ConfidenceBall(delta=0.1)
    assert policy.radius(policy.init(1, 2, 3)).tolist() == [pytest.approx(8 / 3 * math.log(10))]


GOLDEN: dict[str, tuple[Policy[Any], str]] = {
    "LinTS": (LinTS(), "1443224424124112043234443333444434432444"),
    "ConfidenceBall": (ConfidenceBall(bonus=0.1), "4443234423132312034244344344243443341441"),
    "HeavyOFUL": (
        HeavyOFUL(decisions=40, epsilon=1, moment_bound=1, bonus=1e-4),
        "4443232423132312034244343013120443141340",
    ),
    "HvtUCB": (
        HvtUCB(decisions=40, epsilon=1, moment_bound=1, bonus=1e-3),
        "4443232423243232443323133432343131402403",
    ),
}
"""The choices of one path; a change here changes results and belongs in the changelog."""


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_trace(name: str) -> None:
    policy, golden = GOLDEN[name]
    rewards = np.random.default_rng(5).standard_normal((40, 1, 5)) + np.arange(5)
    assert row(trace_of(policy, offers(40, 1, 5, 3, seed=6), rewards)) == golden


@pytest.mark.parametrize(("policy", "check"), sample(by_class(POLICIES)))
def test_contract(policy: Policy[Any], check: Check) -> None:
    briefly(check, policy)


@pytest.mark.parametrize("policy", everything(by_class(POLICIES)))
def test_contract_in_full(policy: Policy[Any]) -> None:
    testing.check_policy(policy)
    testing.check_policy(Filtered(policy, repeats=5, estimator=Median()))


@pytest.mark.parametrize(
    ("policy", "law"),
    [
        # the published radii explore for most of so short a horizon, hence the multipliers
        (LinTS(bonus=0.1), noise.Normal()),
        (ConfidenceBall(bonus=0.02), noise.Normal(0.3)),
        (
            HeavyOFUL(decisions=500, epsilon=1, moment_bound=math.sqrt(3), bonus=1e-3),
            noise.StudentT(3),
        ),
        (
            HvtUCB(decisions=500, epsilon=1, moment_bound=math.sqrt(3), bonus=1e-3),
            noise.StudentT(3),
        ),
    ],
    ids=repr,
)
def test_policy_beats_uniform_play(policy: Policy[Any], law: noise.Noise) -> None:
    """Half of uniform's regret: one that is no better passes with probability below 1e-6."""
    result = simulate(
        {"policy": policy, "uniform": Uniform()},
        environments.neutral(law, arms=10, dim=5),
        horizon=500,
        paths=40,
        seed=1,
        checkpoints=1,
    )
    mine, uniform = (result.curves[name].regret[:, -1] for name in ("policy", "uniform"))
    gain = uniform / 2 - mine
    assert gain.mean() > 5 * gain.std(ddof=1) / math.sqrt(len(gain))


@pytest.mark.parametrize("policy_class", [HeavyOFUL, HvtUCB])
def test_huber_policies_survive_an_infinite_reward(policy_class: type) -> None:
    """Of 60 other paths the worst cosine was 0.975, an angle of 0.22 where 0.9 is one of 0.45.

    The angle has a standard deviation of 0.07: false alarms below 1e-4 for five paths.
    """
    policy = policy_class(decisions=2000, epsilon=1, moment_bound=1, bonus=1e-4)
    arms, theta = offers(2000, 5, 4, 2), np.array([0.6, -0.8])
    rewards = arms @ theta + 0.1 * np.random.default_rng(1).standard_normal(arms.shape[:3])
    rewards[10] = math.inf
    state, _ = play(policy, arms, rewards)
    found = policy.estimate(state)
    length = np.linalg.norm(found, axis=1)
    assert (length <= 1 + 1e-9).all()
    assert (found @ theta / length > 0.9).all()


@pytest.mark.parametrize("bound", [0.3, 5.0])
def test_heavy_oful_finds_the_minimum(bound: float) -> None:
    """Against a general solver, with rewards beyond τ, the ball binding or not, room doubled."""
    policy = HeavyOFUL(decisions=100, epsilon=0.5, moment_bound=0.1, ridge=0.1, norm_bound=bound)
    arms, rng = offers(50, 2, 4, 3), np.random.default_rng(2)
    rewards = arms @ np.array([1.0, -1.0, 0.5]) + 0.1 * rng.standard_normal(arms.shape[:3])
    rewards[::7] = 1e6
    state, _ = play(policy, arms, rewards)
    assert state.rewards.shape == (2, 64)
    for path in range(2):
        x, y, tau = state.contexts[path], state.rewards[path], state.thresholds[path]

        def loss(theta: Array, x: Array = x, y: Array = y, tau: Array = tau) -> float:
            r = np.abs(y - x @ theta)
            huber = np.where(r <= tau, r**2 / 2, tau * r - tau**2 / 2)
            return float(0.05 * theta @ theta + huber.sum())

        theta = state.theta[path]
        assert (np.abs(y - x @ theta) > tau).any()
        ball = NonlinearConstraint(lambda theta: theta @ theta, 0, bound**2)
        best = minimize(loss, np.zeros(3), constraints=[ball], method="SLSQP", tol=1e-12)
        assert loss(theta) <= best.fun * (1 + 1e-9)
        np.testing.assert_allclose(theta, huber_ridge(x, y, tau, 0.1, bound), atol=1e-7)
        assert np.linalg.norm(theta) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("radius", [0.1, 1.0, 10.0])
def test_projection_is_onto_the_ball_of_any_radius(radius: float) -> None:
    root = np.diag([1.0, 0.1])[None]
    found = project(np.array([[30.0, 40.0]]), root, radius)
    assert np.linalg.norm(found) == pytest.approx(radius, rel=1e-9)


def test_projection_is_the_nearest_point() -> None:
    rng = np.random.default_rng(0)
    theta, spread = 3 * rng.standard_normal((50, 4)), rng.standard_normal((50, 4, 4))
    v: Array = spread @ spread.mT + 1e-3 * np.eye(4)
    found = project(theta, np.asarray(np.linalg.cholesky(np.linalg.inv(v)), np.float64), 2.0)
    expected = [nearest(*pair, 2.0) for pair in zip(theta, v, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("policy_class", [HeavyOFUL, HvtUCB])
def test_an_arm_without_length_teaches_nothing(policy_class: type) -> None:
    policy = policy_class(decisions=10, epsilon=1, moment_bound=1)
    state = policy.init(1, 2, 2)
    policy.learn(state, np.zeros((1, 2, 2)), [0], [[math.inf]])
    assert state.theta.tolist() == [[0, 0]]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200])
def test_vectors_without_a_length_are_refused(policy: Policy[Any], bad: float) -> None:
    state = policy.init(1, 2, 2)
    before = state.to_arrays()
    arms = np.array([[[1.0, 0.0], [0.0, bad]]])
    with pytest.raises(ValueError, match="arms must be finite"):
        policy.choose(state, arms, np.random.default_rng(0))
    with pytest.raises(ValueError, match="arms must be finite"):
        policy.learn(state, arms, [1], [[1.0]])
    for name, value in state.to_arrays().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_very_long_vector_is_no_trouble(policy: Policy[Any]) -> None:
    """Rounding leaves no positive definite V⁻¹ after it."""
    arms = offers(5, 3, 4, 3)
    arms[0] *= 1e9
    state, _ = play(policy, arms, np.zeros(arms.shape[:3]))
    assert np.isfinite(state.theta).all()


@pytest.mark.parametrize(
    ("policy_class", "name", "value"),
    [
        (LinTS, "noise_scale", 0),
        (LinTS, "ridge", -1),
        (LinTS, "delta", 1.0),
        (LinTS, "bonus", -0.1),
        (ConfidenceBall, "delta", 0),
        (ConfidenceBall, "ridge", 0),
        (ConfidenceBall, "bonus", math.inf),
        *(
            (policy_class, name, value)
            for policy_class in (HeavyOFUL, HvtUCB)
            for name, value in [
                ("decisions", 0),
                ("epsilon", 0),
                ("epsilon", 1.5),
                ("moment_bound", -1),
                ("delta", 1),
                ("norm_bound", 0),
                ("ridge", 0),
                ("bonus", math.nan),
            ]
        ),
    ],
)
def test_bad_settings_are_named(policy_class: type, name: str, value: float) -> None:
    huber = {"decisions": 10, "epsilon": 1, "moment_bound": 1}
    needed = huber if issubclass(policy_class, Huber) else {}
    policy_class(**needed)
    with pytest.raises(ValueError, match=f"^{name} must be a .*, got {value}$"):
        policy_class(**(needed | {name: value}))
