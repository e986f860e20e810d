"""LinStudentUCB against a plain form of one path, and what it promises."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, t as student_t
from traces import offers, play, row, trace_of

from tailproof import LinStudentUCB, Uniform, environments, noise, simulate
from tailproof.policies.state.arm_clusters import ArmClusters
from tailproof.policies.state.student_fit import SHAPES
from tailproof.testing import check_policy
from tailproof.typing import Array


class Plain:
    """One path: everything is solved afresh, sums are loops, covariances are inverses."""

    def __init__(self, policy: LinStudentUCB, dim: int) -> None:
        self.policy, self.d, self.size = policy, dim, dim + policy.intercept
        self.room = max(policy.room * self.size, 48)
        self.pulls: list[tuple[Array, float]] = []
        self.mean: Array = np.zeros(self.size)
        self.cov: Array = np.zeros((self.size, self.size))
        self.s, self.best, self.rho, self.slope, self.kappa = np.ones(5), 0, 1.0, 1.0, 1.0
        self.middles: list[Array] = []
        self.spreads: list[Array] = []
        self.renewal, self.t, self.due = 0.0, 0, 0
        self.info, self.response = np.zeros_like(self.cov), np.zeros(self.size)
        self.likelihood, self.sums = np.zeros(5), np.zeros(3)
        self.x0, self.gamma, self.tau2, self.floor = np.zeros(dim), np.zeros(dim), 0.25, 0.0
        self.design, self.scoring = np.zeros((dim + 1, dim + 1)), np.zeros((5, dim + 1))
        self.earlier: list[tuple[Array, Array, float]] = []
        self.discarded = 0

    def lift(self, x: Array) -> Array:
        return np.append(x, 1.0) if self.policy.intercept else x

    def a2(self, x: Array) -> Array:
        return np.exp(2 * (x[..., : self.d] - self.x0) @ self.gamma)

    def index(self, arms: Array) -> Array:
        t, found, shares = self.t + 1, [], list[float]()
        spread = np.mean(self.spreads, axis=0) if self.t else np.full(self.d, np.inf)
        mean_a2 = float(np.mean(self.a2(arms)))
        for x in arms:
            z = self.lift(x)
            square = float(z @ self.cov @ z)
            a2 = float(self.a2(x))
            m = a2 / max(self.slope * square, 1e-300)
            shares.append(t * a2 / (self.size * mean_a2 * m))
            log = self.policy.bonus**2 * math.log(1 + shares[-1])
            df = SHAPES[self.best] * (m + 1) / 2
            reach = square * df * math.expm1(min(2 * log / df, 500))
            prior = np.sum((x - arms.mean(axis=0)) ** 2 / spread) / self.rho
            top = self.policy.bonus**2 * math.log(1 + t / self.size)
            reach = max(2 * square * log, min(reach, prior * self.d * math.expm1(2 * top / self.d)))
            found.append((z @ self.mean, self.s[self.best] * math.sqrt(self.kappa * reach)))
        greedy = self.renewal >= 0.5 and max(shares) <= len(arms)
        return np.array([mean + (0 if greedy else width) for mean, width in found])

    def learn(self, arms: Array, chosen: Array, y: float) -> None:
        self.t += 1
        middle = arms.mean(axis=0)
        before = np.mean(self.middles, axis=0) if self.middles else np.zeros(self.d)
        self.middles.append(middle)
        self.spreads.append(np.mean((arms - middle) ** 2, axis=0))
        spread = np.mean(self.spreads, axis=0)
        new = np.mean((middle - before) ** 2 / spread) * (len(arms) - 1) * (self.t - 1) / self.t
        self.renewal += (new - self.renewal) / self.t
        x = self.lift(chosen)
        self.pulls.append((x, y))
        nu, leverage = SHAPES[self.best], x @ self.cov @ x
        r = y - x @ self.mean
        w = (nu + 1) / (nu + (r / self.s[self.best]) ** 2 / (self.a2(x) + leverage)) / self.a2(x)
        gain = self.cov @ x / (1 + self.slope * w * leverage)
        self.mean = self.mean + w * r * gain
        self.cov = self.cov - self.slope * w * np.outer(gain, self.cov @ x)
        if self.t >= self.due or len(self.pulls) == self.room:
            self.watch()
            self.fit()

    def prior(self) -> Array:
        centre, spread = np.mean(self.middles, axis=0), np.mean(self.spreads, axis=0)
        m = centre / spread
        prior = np.zeros((self.size, self.size))
        inverse = np.diag(1 / spread) + np.outer(m, m) / self.d
        prior[: self.d, : self.d] = np.linalg.inv(inverse)
        return prior

    def squares(self, x: Array, y: Array) -> Array:
        """(r² + s²·leverage)/a²."""
        leverage = np.einsum("ni,ij,nj->n", x, self.cov, x)
        squares: Array = (y - x @ self.mean) ** 2 + self.s[self.best] ** 2 * leverage
        return squares / self.a2(x)

    def watch(self) -> None:
        recent = len(self.pulls) - (self.room - self.room // 2)
        nu, found, m = SHAPES[self.best], list[tuple[float, int]](), 8
        while self.discarded > 0 and m <= recent:
            x, y = (np.array(part) for part in zip(*self.pulls[-m:], strict=True))
            u = self.squares(x, y) / self.s[self.best] ** 2
            p, q = nu / (nu + 1), np.mean(nu / (nu + u))
            ratio = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
            if q < p or self.s[self.best] > 2 * self.floor:
                found.append((m * (nu + 3) / 2 * ratio, m))
            m *= 2
        if found and max(found)[0] > 12.5:
            self.begin_epoch(max(found)[1])

    def begin_epoch(self, m: int) -> None:
        self.discard(list(range(len(self.pulls) - m)))
        unit = self.s[self.best] * math.sqrt(self.kappa)
        self.earlier.append((self.info, self.response, unit))
        self.info, self.response = np.zeros_like(self.info), np.zeros_like(self.response)
        # the score and information of γ at the best s
        d, count = self.d, self.design[-1, -1]
        g, cross = self.scoring, self.design[:d, d]
        self.scoring = np.hstack([g[:, :d] - g[:, d:] * cross / count, np.zeros((5, 1))])
        inner = self.design[:d, :d] - np.outer(cross, cross) / count
        self.design = np.zeros_like(self.design)
        self.design[:d, :d] = inner
        self.discarded = 0
        self.likelihood = np.maximum(self.likelihood - self.likelihood.max(), -4)
        self.sums = self.sums * min(1, 8 / self.sums[1])

    def fit(self) -> None:
        x, y = np.array([p[0] for p in self.pulls]), np.array([p[1] for p in self.pulls])
        n, prior = len(y), self.prior()
        if n == self.t:
            self.begin(x, y, prior)
            self.reconsider(x, y, prior)
        start, leant, information = self.s, self.gamma, 2 * SHAPES / (SHAPES + 3)
        if 2 * n >= self.room:
            self.update_gamma(x, y)
        s, a2, half = self.s, self.a2(x), self.half_step(x, y)
        for _ in range(2):
            r, z = y - x @ self.mean, self.squares(x, y)
            least = 1e-3 * self.s[self.best] / math.sqrt(self.rho) + 1e-100
            least += 1e-14 * np.abs(self.mean[self.d :]).sum()
            self.floor = max(least, min(half, math.sqrt(np.mean(r**2))))
            for _ in range(2):
                excess = self.scores(z, s).sum(axis=1) + self.moved(start, leant, s)[1][:, -1]
                step = np.clip(excess / (n + self.discarded) / information, -1, 1)
                s = np.maximum(s * np.exp(step), self.floor)
            delta, scoring = self.moved(start, leant, s)
            shift = np.sum(delta * (self.scoring + scoring), axis=1) / 2
            likelihood = self.log_densities(z, s) + self.likelihood + shift
            self.s, self.best = s, int(np.argmax(likelihood))
            w, sums = self.weights(z)
            slope, total, square = sums + self.sums
            true = min(max(slope / total, 0.25), 1)
            self.slope = max(true, 0.5)
            self.kappa = max(square / total * self.slope / true**2, 0.25)
            known = self.d - self.rho * np.trace(prior @ self.cov)
            size = self.mean / s[self.best]
            self.rho = (max(known, 0) + 1) / (size @ prior @ size + 1 / self.d)
            held, response = self.info + self.rho * prior, self.response
            for info, its_response, unit in self.earlier:
                share = s[self.best] ** 2 * self.kappa / unit**2
                held, response = held + share * info, response + share * its_response
            self.cov = np.linalg.inv(held + self.slope * (x.T * (w / a2)) @ x)
            climb = x.T @ (w / a2 * r) + response - held @ self.mean
            self.mean = self.mean + self.cov @ climb
        self.likelihood, self.scoring = self.likelihood + shift, scoring
        self.due = self.t + max((n + self.discarded) // 8, 1)
        if n == self.room:
            leverage = np.einsum("ni,ij,nj->n", x, self.cov, x)
            self.discard(np.argsort(leverage)[: n // 2].tolist())

    def half_step(self, x: Array, y: Array) -> float:
        arms = {tuple(row): np.unique(y[(x == row).all(axis=1)]) for row in x}
        steps = np.concatenate([np.diff(values) for values in arms.values()])
        if 3 * len(np.unique(y)) > len(y) or len(steps) == 0:
            return 0.0
        return float(np.sort(steps)[len(steps) // 2]) / 2

    def placed(self, x: Array) -> Array:
        return np.column_stack([x[:, : self.d] - self.x0, np.ones(len(x))])

    def scores(self, z: Array, s: Array) -> Array:
        u, nu = z / s[:, None] ** 2, SHAPES[:, None]
        return np.asarray((nu + 1) * u / (nu + u) - 1)

    def moved(self, start: Array, leant: Array, s: Array) -> tuple[Array, Array]:
        """How far (γ, ln s) is from where the score of the discarded pulls was, and theirs now."""
        delta = np.column_stack([np.tile(self.gamma - leant, (5, 1)), np.log(s / start)])
        information = 2 * SHAPES / (SHAPES + 3)
        return delta, self.scoring - information[:, None] * (delta @ self.design)

    def update_gamma(self, x: Array, y: Array) -> None:
        z, nu, spread = self.placed(x), SHAPES[self.best], np.mean(self.spreads, axis=0)
        score = (self.scoring + self.scores(self.squares(x, y), self.s) @ z)[self.best]
        prior = np.diag(np.append(self.d * spread / self.tau2, 0))
        score = score - prior @ np.append(self.gamma, 0)
        cov = np.linalg.inv(2 * nu / (nu + 3) * (self.design + z.T @ z) + prior)
        step = cov @ score
        step = step / max(1, np.abs(z @ step).max()) * (self.s[self.best] > 2 * self.floor)
        self.gamma, self.s = self.gamma + step[:-1], self.s * math.exp(step[-1])
        known = max(self.d - np.trace(cov @ prior), 0)
        self.tau2 = (self.d * spread @ self.gamma**2 + 0.05**2) / (known + 1)

    def begin(self, x: Array, y: Array, prior: Array) -> None:
        middle = np.median(y) if self.policy.intercept else 0.0
        off = np.abs(y - middle)
        left = np.median(np.abs(y - x @ self.mean))
        if self.t <= 3 or left > max(2 * np.median(off), self.s[self.best] / 2):
            s = np.median(off) if np.median(off) > 0 else 1e-3 * off.max()
            self.s = np.full(5, s + 1e-14 * abs(middle) + 1e-100)
            self.rho = self.d
            self.x0, self.gamma, self.tau2 = np.mean(self.middles, axis=0), np.zeros(self.d), 0.25
            self.cov = np.asarray(np.linalg.inv(x.T @ x + self.d * prior), dtype=np.float64)
            self.mean = np.zeros(self.size)
            self.mean[self.d :] = middle

    def reconsider(self, x: Array, y: Array, prior: Array) -> None:
        cov = np.asarray(np.linalg.inv(x.T @ x + self.rho * prior), dtype=np.float64)
        mean = cov @ x.T @ y
        r, leverage = y - x @ mean, np.einsum("ni,ij,nj->n", x, cov, x)
        free = len(y) - leverage.sum()
        s = max(math.sqrt(r @ r / max(free, 1e-9)), 1e-100)
        z = self.squares(x, y)
        old = student_t.logpdf(np.sqrt(z), SHAPES[self.best], scale=self.s[self.best]).sum()
        old -= np.log(self.a2(x)).sum() / 2
        new = student_t.logpdf(np.sqrt(r**2 + s**2 * leverage), SHAPES[-1], scale=s).sum()
        if new > old and free > len(y) / 2:
            self.mean, self.cov, self.best = mean, cov, len(SHAPES) - 1
            self.s, self.gamma = np.append(self.s[:-1], s), np.zeros(self.d)

    def log_densities(self, z: Array, s: Array) -> Array:
        each = [student_t.logpdf(np.sqrt(z), nu, scale=a) for nu, a in zip(SHAPES, s, strict=True)]
        return np.asarray(np.sum(each, axis=1) + len(z) * math.log(s[0]))

    def weights(self, z: Array) -> tuple[Array, Array]:
        nu, u = SHAPES[self.best], z / self.s[self.best] ** 2
        w = (nu + 1) / (nu + u)
        slope = (nu + 1) * (nu - u) / (nu + u) ** 2
        return w, np.array([slope.sum(), w.sum(), (w**2 * u).sum()])

    def discard(self, old: list[int]) -> None:
        x, y = (np.array(part) for part in zip(*(self.pulls[i] for i in old), strict=True))
        self.pulls = [pull for i, pull in enumerate(self.pulls) if i not in old]
        z, a2 = self.squares(x, y), self.a2(x)
        w, sums = self.weights(z)
        new, score = self.slope * (x.T * (w / a2)) @ x, x.T @ (w / a2 * (y - x @ self.mean))
        self.info = self.info + new
        self.response = self.response + score + new @ self.mean
        lifted = self.placed(x)
        self.design = self.design + lifted.T @ lifted
        self.scoring = self.scoring + self.scores(z, self.s) @ lifted
        self.likelihood = self.likelihood + self.log_densities(z, self.s)
        self.sums, self.discarded = self.sums + sums, self.discarded + len(old)


def follow(policy: LinStudentUCB, arms: Array, rewards: Array, trace: Any) -> Plain:
    """Return what the plain form has learned from a path; it would have made the same choices."""
    plain = Plain(policy, arms.shape[-1])
    for t, (offer, table, chosen) in enumerate(zip(arms, rewards, trace, strict=True)):
        index = plain.index(offer)
        assert index.max() - index[chosen] <= 2e-6 * np.ptp(index), t
        plain.learn(offer, offer[chosen], table[chosen])
    return plain


RECIPES = [
    LinStudentUCB(),
    LinStudentUCB(room=4, bonus=0.3),
    LinStudentUCB(intercept=False, room=9, bonus=1.5),
]


@pytest.mark.parametrize("policy", RECIPES, ids=repr)
@pytest.mark.parametrize(
    ("fixed", "growth"),
    [
        *((False, growth) for growth in (1, 30, 1 / 30)),
        (True, 1),
        *(pytest.param(True, growth, marks=pytest.mark.slow) for growth in (30, 1 / 30)),
    ],
)
def test_it_is_its_plain_form(policy: LinStudentUCB, fixed: bool, growth: float) -> None:
    """Noise of one scale; and noise that leans with x and becomes louder or quieter."""
    arms, rng = offers(220, 2, 6, 4), np.random.default_rng(1)
    if fixed:  # but for a little, so that no two pulls have the same leverage
        arms = arms[:1] + 1e-6 * arms
    theta = offers(1, 1, 1, 4, seed=9)[0, 0, 0]
    scale = np.where(np.arange(220) < 130, 0.3, 0.3 * growth)[:, None, None]
    scale = scale * np.exp((growth != 1) * arms @ np.array([1.5, -1, 0, 0.5]))
    rewards = arms @ theta + scale * rng.standard_t(0.8, arms.shape[:3])
    state, trace = play(policy, arms, rewards)
    for path in range(2):
        plain = follow(policy, arms[:, path], rewards[:, path], trace[:, path])
        assert len(plain.earlier) == (state.earlier_information[path].any() if growth == 1 else 1)
        np.testing.assert_allclose(state.lean[path], plain.gamma, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(state.coefficients[path], plain.mean, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(state.root[path] @ state.root[path].T, plain.cov, rtol=1e-4)
        np.testing.assert_allclose(state.scales[path], plain.s, rtol=1e-5)


def test_golden_trace() -> None:
    """The choices of one path; a change here changes results and belongs in the changelog."""
    rewards = np.random.default_rng(5).standard_normal((40, 1, 5)) + np.arange(5)
    trace = row(trace_of(LinStudentUCB(), offers(40, 1, 5, 3, seed=6), rewards))
    assert trace == "3341232303241343342143133412432301230222"


def test_the_unit_of_each_coordinate_decides_nothing() -> None:
    arms = offers(150, 2, 5, 3)
    rewards = arms @ np.array([1.0, -2.0, 0.5]) + np.random.default_rng(1).standard_t(
        1, (150, 2, 5)
    )
    units = 2.0 ** np.array([20, -30, 3])
    same = trace_of(LinStudentUCB(), arms * units, rewards)
    np.testing.assert_array_equal(trace_of(LinStudentUCB(), arms, rewards), same)


@pytest.mark.parametrize("df", [0.5, 1, 3])
@pytest.mark.parametrize("scale", [0.1, 1e6])
def test_deviations_are_those_of_the_best_estimate(df: float, scale: float) -> None:
    """The stated deviation at the middle is √(D/(n I)): I the Fisher information of the law.

    Vectors are chosen at random. On three other seeds the mean of the logarithm over 20 paths was
    0.06 to 0.11 for df = 0.5 and within 0.04 for the others, with standard errors of at most 0.021:
    0.2 is more than five of them away from the average, a false alarm below 1e-6 a case.
    """
    n, d, law = 1500, 3, noise.StudentT(df, scale)
    rng, policy = np.random.default_rng(3), LinStudentUCB()
    state = policy.init(20, 1, d)
    for _ in range(n):
        x = rng.standard_normal((20, 1, d))
        policy.learn(state, x, np.zeros(20, dtype=int), 5 + law.sample(rng, (20, 1)))
    sizes = np.square(rng.standard_normal((20, 200, d)))
    x = np.sqrt(sizes / sizes.mean(axis=1, keepdims=True))
    _, deviation = policy.predict(state, x)
    best = math.sqrt((d + 1) / n / law.fisher_information)
    assert abs(np.log(np.sqrt(np.square(deviation).mean(axis=1)) / best).mean()) < 0.2


def test_a_rejected_reward_narrows_nothing() -> None:
    arms, policy = offers(300, 1, 4, 2), LinStudentUCB()
    rewards = arms @ np.array([3.0, 1.0]) + np.random.default_rng(2).standard_normal((300, 1, 4))
    state, _ = play(policy, arms, rewards)
    probe = np.array([[[0.3, -0.7]]])
    before = policy.predict(state, probe)
    policy.learn(state, probe, [0], [[1e9]])
    for old, new in zip(before, policy.predict(state, probe), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-6)


@pytest.mark.parametrize("policy", [LinStudentUCB(), LinStudentUCB(room=4)], ids=repr)
@pytest.mark.parametrize("wild", [1e300, math.inf, -math.inf])
def test_absurd_rewards_are_harmless(policy: LinStudentUCB, wild: float) -> None:
    """The estimate points within 0.1 of θ; on 400 other paths it was within 0.034."""
    arms, theta = offers(700, 5, 4, 2), np.array([0.6, -0.8])
    rewards = arms @ theta + 0.1 * np.random.default_rng(1).standard_normal(arms.shape[:3])
    rewards[0], rewards[10], rewards[100::10] = wild, wild, wild
    state, _ = play(policy, arms, rewards)
    found = policy.estimate(state)
    assert (found @ theta / np.linalg.norm(found, axis=1) > math.cos(0.1)).all()


def test_rewards_without_noise_are_learned() -> None:
    arms, theta = offers(300, 3, 4, 2), np.array([0.6, -0.8])
    state, _ = play(LinStudentUCB(), arms, arms @ theta + 7)
    np.testing.assert_allclose(state.coefficients, np.tile([*theta, 7], (3, 1)), atol=1e-3)


def test_paths_of_different_age_learn_as_each_alone() -> None:
    policy, arms = LinStudentUCB(room=4), offers(160, 1, 4, 3)
    rewards = np.random.default_rng(4).standard_cauchy((160, 1, 4))
    old, young = play(policy, arms[:70], rewards[:70])[0], play(policy, arms[:5], rewards[:5])[0]
    pair = policy.init(2, 4, 3)
    pair.put(np.array([0]), old)
    pair.put(np.array([1]), young)
    for offer, table in zip(arms[70:], rewards[70:], strict=True):
        both = np.repeat(offer, 2, axis=0)
        for state, x in ((old, offer), (young, offer), (pair, both)):
            chosen = np.zeros(len(x), dtype=np.int64)
            policy.learn(state, x, chosen, table[[0] * len(x), :1])
    np.testing.assert_array_equal(pair.mean, np.concatenate([old.mean, young.mean]))
    np.testing.assert_array_equal(pair.root, np.concatenate([old.root, young.root]))


def test_it_knows_whether_vectors_come_anew() -> None:
    """On 100 other paths the least was 0.91 with new vectors."""
    policy, rewards = LinStudentUCB(), np.zeros((200, 3, 5))
    fresh, _ = play(policy, offers(200, 3, 5, 4), rewards)
    fixed, _ = play(policy, np.repeat(offers(1, 3, 5, 4), 200, axis=0), rewards)
    assert (fresh.renewal > 0.7).all()
    assert (fixed.renewal < 1e-20).all()


@pytest.mark.parametrize("df", [0.5, 1, 4])
def test_noise_of_one_scale_has_one_epoch(df: float) -> None:
    """About 5000 looks of exp(−12.5) each: a false alarm of this test has a probability of 0.02."""
    policy, rng = LinStudentUCB(), np.random.default_rng(7)
    state, arms = policy.init(40, 3, 3), np.tile(np.eye(3), (40, 1, 1))
    for _ in range(600):
        chosen = rng.integers(3, size=40)
        policy.learn(state, arms, chosen, 5 + rng.standard_t(df, (40, 1)))
    assert not state.earlier_information.any()


@pytest.mark.parametrize("growth", [20, 1 / 20])
def test_a_new_scale_is_learned_and_the_estimate_stays(growth: float) -> None:
    """On 200 other paths s was within a factor of 2.7, and the estimate within 0.2."""
    policy, rng = LinStudentUCB(), np.random.default_rng(11)
    state, theta = policy.init(20, 1, 3), np.array([10.0, -20.0, 5.0])
    for t in range(700):
        x = rng.standard_normal((20, 1, 3))
        y = x[:, 0] @ theta + (growth if t >= 600 else 1) * rng.standard_cauchy(20)
        policy.learn(state, x, np.zeros(20, dtype=int), y[:, None])
    assert state.earlier_information.any(axis=(1, 2)).all()
    assert (np.abs(np.log(state.scale / growth)) < math.log(4)).all()
    assert (np.abs(policy.estimate(state) - theta) < 1).all()


def test_it_learns_how_loud_each_arm_is() -> None:
    """Deviations of ln a are about 0.1 at 200 pulls an arm: 0.6 is six of them."""
    policy, rng, scales = LinStudentUCB(), np.random.default_rng(2), np.array([0.1, 1.0, 10.0])
    state, arms = policy.init(10, 3, 3), np.tile(np.eye(3), (10, 1, 1))
    for t in range(600):
        chosen = np.full(10, t % 3)
        policy.learn(state, arms, chosen, scales[t % 3] * rng.standard_cauchy((10, 1)))
    found = np.log(state.scale[:, None] / scales) + np.log(state.relative_variance(arms)) / 2
    assert (np.abs(found) < 0.6).all()


def test_without_noise_no_arm_looks_loud() -> None:
    """Rounding errors leaned ever more with x, and some of these paths left the best arm."""
    rng, policy = np.random.default_rng(13), LinStudentUCB()
    arms, theta = rng.standard_normal((50, 9, 4)), rng.standard_normal((50, 4))
    state, locations = policy.init(50, 9, 4), np.matvec(arms, theta)
    for _ in range(300):
        chosen = policy.choose(state, arms, rng)
        policy.learn(state, arms, chosen, np.take_along_axis(locations, chosen[:, None], axis=1))
    assert (state.lean == 0).all()
    assert (chosen == locations.argmax(axis=1)).all()


def test_coin_flips_are_not_taken_for_outliers() -> None:
    """In some of these paths a fit without floors for s takes one side of the coin for noise."""
    locations, rng, policy = np.arange(5) / 4, np.random.default_rng(8), LinStudentUCB()
    state, arms = policy.init(300, 5, 5), np.tile(np.eye(5), (300, 1, 1))
    for _ in range(300):
        chosen = policy.choose(state, arms, rng)
        rewards = locations[chosen] + rng.choice([-1.0, 1.0], 300)
        policy.learn(state, arms, chosen, rewards[:, None])
    assert (SHAPES[state.shape] == 32).all()


@pytest.mark.parametrize("step", [0.25, 1.0])
def test_rounded_rewards_are_its_plain_form(step: float) -> None:
    arms, rng = offers(150, 2, 4, 3), np.random.default_rng(8)
    arms = np.repeat(arms[:1], 150, axis=0)
    rewards = np.round((arms @ np.ones(3) + rng.standard_normal((150, 2, 4))) / step) * step
    _, trace = play(LinStudentUCB(), arms, rewards)
    for path in range(2):
        follow(LinStudentUCB(), arms[:, path], rewards[:, path], trace[:, path])


BANDITS = {
    "K arms far from zero": environments.k_armed(noise.Cauchy(), locations=(10.0, 10.5, 11.0)),
    "fresh, any unit": environments.neutral(noise.StudentT(0.5, 1e6), arms=10, dim=5, size=1e6),
    "little noise, fixed": environments.neutral(noise.Normal(0.03), dim=5, fresh=False),
    "coin flips": environments.k_armed(
        noise.PerArm(tuple(noise.TwoPoint(1 - p, -p, p) for p in (0.2, 0.3, 0.5))),
        locations=(0.2, 0.3, 0.5),
    ),
    "two values each": environments.k_armed(noise.Rademacher(), locations=(0.0, 0.5, 1.0)),
    "skew": environments.neutral(noise.Pareto(1.5), arms=10, dim=5),
    "the best arm is the loudest": environments.k_armed(
        noise.PerArm(tuple(noise.Cauchy(s) for s in (0.1, 0.3, 1.0))), locations=(0.0, 1.0, 2.0)
    ),
    "noise grows": environments.k_armed(
        noise.Changing((noise.Cauchy(0.1), noise.Cauchy(2.0)), (150,)), locations=(0.0, 0.5, 1.0)
    ),
}


@pytest.mark.parametrize("name", BANDITS)
def test_it_beats_uniform_play(name: str) -> None:
    """Half of uniform's regret: one no better passes with probability below 1e-6.

    On four seeds the difference was at least 7 standard errors.
    """
    result = simulate(
        {"policy": LinStudentUCB(), "uniform": Uniform()},
        BANDITS[name],
        horizon=500,
        paths=40,
        seed=1,
        checkpoints=1,
    )
    mine, uniform = (result.curves[name].regret[:, -1] for name in ("policy", "uniform"))
    gain = uniform / 2 - mine
    assert gain.mean() > 5 * gain.std(ddof=1) / math.sqrt(len(gain))


@pytest.mark.parametrize("fresh", [False, True], ids=["arms", "contexts"])
def test_propensities_of_the_random_form_are_frequencies(fresh: bool) -> None:
    """In eight paths; false-alarm rate 10⁻⁶ over all 32 shares together.

    Some paths hesitate between arms, also where offers are new each time.
    """
    policy, rng, draws = LinStudentUCB(random=True), np.random.default_rng(9), 2000
    arms = rng.standard_normal((10, 8, 4, 3)) if fresh else np.tile(np.eye(4), (10, 8, 1, 1))
    state, _ = play(policy, arms, rng.standard_cauchy((10, 8, 4)))
    share = policy.propensities(state, arms[0])
    assert share is not None
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-9)
    assert np.count_nonzero((share > 0.02) & (share < 0.98)) >= 4
    chosen = np.stack([policy.choose(state, arms[0], rng) for _ in range(draws)])
    seen = (chosen[..., None] == np.arange(4)).sum(axis=0)
    tail = np.minimum(binom.cdf(seen, draws, share), binom.sf(seen - 1, draws, share))
    assert tail.min() > 1e-6 / (2 * share.size)


def test_arms_that_nothing_tells_apart_have_equal_propensities() -> None:
    """Rounding shows two arms apart; the vectors of both are the same."""
    policy, rng = LinStudentUCB(random=True), np.random.default_rng(2)
    arms = np.tile(np.array([[1.0, 0], [1 + 1e-15, 0], [0, 1]]), (40, 1, 1, 1))
    state, _ = play(policy, arms, rng.standard_normal((40, 1, 3)))
    share = policy.propensities(state, arms[0])
    assert share is not None
    assert share[0, 0] == pytest.approx(share[0, 1])


def test_the_random_form_spreads_visitors_who_come_late() -> None:
    """200 choices between two rewards: of one arm in the plain form, of several in the random one.

    The state is the same, so that a policy may go on in the other form.
    """
    rng = np.random.default_rng(4)
    plain, spread = LinStudentUCB(), LinStudentUCB(random=True)
    state, _ = play(plain, np.tile(np.eye(5), (10, 1, 1, 1)), rng.standard_cauchy((10, 1, 5)))
    arms = np.eye(5)[None]
    assert len({int(plain.choose(state, arms, rng)[0]) for _ in range(200)}) == 1
    assert len({int(spread.choose(state, arms, rng)[0]) for _ in range(200)}) >= 2


def two_modes(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return noise ±3 (sd 0.2), and one in ten from a Cauchy law of scale 10."""
    modes = rng.choice([-3.0, 3.0], shape) + 0.2 * rng.standard_normal(shape)
    return np.where(rng.random(shape) < 0.1, 10 * rng.standard_cauchy(shape), modes)


@pytest.mark.parametrize("kind", ["arms", "fixed", "fresh"])
def test_two_modes_are_not_taken_for_a_centre_and_outliers(kind: str) -> None:
    """Of 30 paths. Where one mode was the centre of all, a third was lost with K arms."""
    rng, policy = np.random.default_rng(4), LinStudentUCB()
    eyes = np.tile(np.eye(4), (30, 1, 1))
    theta = np.tile(np.arange(4) / 4, (30, 1)) if kind == "arms" else rng.standard_normal((30, 4))
    fixed, state, right = rng.standard_normal((30, 6, 4)), None, 0
    for t in range(800):
        fixed = rng.standard_normal((30, 6, 4)) if kind == "fresh" else fixed
        arms = eyes if kind == "arms" else fixed
        state = policy.init(*arms.shape) if state is None else state
        means = np.matvec(arms, theta)
        chosen = policy.choose(state, arms, rng)
        rewards = means[np.arange(30), chosen] + two_modes(rng, (30,))
        policy.learn(state, arms, chosen, rewards[:, None])
        right += int(np.count_nonzero(chosen == means.argmax(axis=1))) if t >= 600 else 0
    assert state is not None
    assert np.count_nonzero(state.gap) >= 27
    np.testing.assert_allclose(state.gap[state.gap > 0], 3, atol=0.3)
    assert right > 0.9 * 30 * 200


@pytest.mark.parametrize("features", [False, True], ids=["arms", "features"])
def test_clusters_whose_weights_carry_the_mean_are_not_two_modes(features: bool) -> None:
    """Rewards are near 0 or 1; how often each depends on the arm. The middle says nothing.

    Of 30 paths, at most one may believe in two modes: each decides once or a few times, at a
    likelihood ratio of exp(8).
    """
    rng, policy = np.random.default_rng(6), LinStudentUCB()
    eyes, theta = np.tile(np.eye(5), (30, 1, 1)), np.array([0.3, 0.4, 0.5, 0.6, 0.7])
    state = policy.init(30, 5, 5 if not features else 2)
    for _ in range(600):
        x = rng.uniform(-1, 1, (30, 5, 2))
        arms = x if features else eyes
        share = 0.5 + x @ [0.2, -0.2] if features else np.tile(theta, (30, 1))
        chosen = policy.choose(state, arms, rng)
        one = rng.random(30) < share[np.arange(30), chosen]
        policy.learn(state, arms, chosen, (one + 0.1 * rng.standard_normal(30))[:, None])
    assert np.count_nonzero(state.gap) <= 1


def test_the_best_arm_is_not_lost_where_its_own_rewards_lie_in_two_clusters() -> None:
    """Cauchy arms, and the best at ±1 with a tenth of outliers: a mode is no centre.

    With one location for an arm more than half of 24 paths hardly pull it any more; here at most 7.
    """
    rng, paths, places = np.random.default_rng(12), 24, np.linspace(0, 1, 5)
    policy, late = LinStudentUCB(clusters=True), np.zeros(24)
    state, arms = policy.init(paths, 5, 5), np.tile(np.eye(5), (paths, 1, 1))
    for t in range(1500):
        chosen = policy.choose(state, arms, rng)
        wild = rng.standard_cauchy(paths)
        modes = rng.choice([-1, 1], paths) + 0.3 * rng.standard_normal(paths)
        modes = np.where(rng.random(paths) < 0.1, 3 * wild, modes)
        y = places[chosen] + np.where(chosen == 4, modes, 0.5 * wild)
        policy.learn(state, arms, chosen, y[:, None])
        late += (chosen == 4) * (t >= 1000)
    assert np.count_nonzero(late < 50) <= 7


def test_arms_of_one_cluster_and_arms_with_features_are_not_followed() -> None:
    """The first 32 rewards of an arm are looked at; of normal noise they show one cluster.

    A tenth of normal samples may be taken for two clusters, so 30 of 40 are asked for.
    """
    rng, policy = np.random.default_rng(8), LinStudentUCB(clusters=True)
    state, eyes = policy.init(20, 2, 2), np.tile(np.eye(2), (20, 1, 1))
    for t in range(100):
        policy.learn(state, eyes, np.full(20, t % 2), rng.standard_normal((20, 1)))
    assert isinstance(state, ArmClusters)
    assert np.count_nonzero(state.closed) >= 30
    assert (state.seen[state.closed > 0] >= 32).all()
    features = policy.init(20, 2, 2)
    policy.learn(features, eyes / 2, np.zeros(20, np.int64), rng.standard_normal((20, 1)))
    assert isinstance(features, ArmClusters)
    assert features.closed.all()
    assert not features.seen.any()


def test_a_heavy_tail_is_no_second_cluster() -> None:
    """A tail that was taken for a cluster would make Huber's mean that of the tail.

    Of 400 arms with 150 rewards each, at most 10 pass; were tails allowed, 20 would.
    """
    rng, policy = np.random.default_rng(9), LinStudentUCB(clusters=True)
    state, eyes = policy.init(200, 2, 2), np.tile(np.eye(2), (200, 1, 1))
    for t in range(300):
        policy.learn(state, eyes, np.full(200, t % 2), rng.pareto(0.7, (200, 1)))
    assert isinstance(state, ArmClusters)
    assert np.count_nonzero(state.centres[..., 0]) <= 10


def reconsidered(state: Any, width: float) -> tuple[Array, Array]:
    """Return the means and the widths of arms of two clusters, from the same width for all."""
    arms = np.tile(np.eye(state.dim), (state.paths, 1, 1))
    mean = state.predict(arms)[0]
    widths = np.full(mean.shape, width)
    moved, widths = state.reconsider(mean, widths, arms, state.relative_variance(arms), 1.0)
    return moved - mean, widths


@pytest.mark.parametrize(("lies", "counts"), [(7, False), (12, True)])
def test_hubers_mean_counts_alone_only_between_even_clusters(lies: int, counts: bool) -> None:
    """Seven of 25 rewards near −60 are not half of a symmetric law: the fit is believed."""
    rng, policy = np.random.default_rng(10), LinStudentUCB(clusters=True)
    state, eyes = policy.init(1, 3, 3), np.eye(3)[None]
    noise = rng.standard_normal((25, 3))
    noise[rng.permutation(25)[:lies], 0] -= 60
    for y in noise:
        for arm in range(3):
            policy.learn(state, eyes, np.array([arm]), y[None, arm : arm + 1])
    assert isinstance(state, ArmClusters)
    assert state.centres[0, 0, 0] == 1
    moved, _ = reconsidered(state, 1e9)  # so wide that the larger index is never Huber's
    assert (abs(moved[0, 0]) > 5) == counts


def test_noise_that_became_louder_says_nothing_of_arms_that_were_pulled_before() -> None:
    """Three scales are those of the noise when the few rewards of an arm came."""
    rng, policy = np.random.default_rng(11), LinStudentUCB(clusters=True)
    state, eyes = policy.init(1, 2, 2), np.eye(2)[None]
    for t in range(600):
        arm = np.array([int(t in (1, 3, 5, 7))])
        y = (0.1 if t < 300 else 10.0) * rng.standard_normal((1, 1))
        policy.learn(state, eyes, arm, y)
    assert state.scale[0] > 5
    assert reconsidered(state, 0.0)[1][0, 1] < 1
    assert reconsidered(state, 0.0)[1][0, 1] > 0.1


def test_the_second_mean_of_arms_keeps_the_contract() -> None:
    check_policy(LinStudentUCB(clusters=True))
