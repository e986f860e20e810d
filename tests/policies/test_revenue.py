"""RevenueUCB and LinRevenueUCB against plain forms of one path, and what they promise."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm, poisson
from traces import play, row, trace_of

from tailproof import LinRevenueUCB, Policy, RevenueUCB, noise, testing
from tailproof.policies.randomised import shares_of_luck
from tailproof.policies.revenue_ucb import BONUS
from tailproof.policies.state.revenue_regression import KEPT, LENT
from tailproof.policies.state.sales import DOUBT, SalesHistogram
from tailproof.policies.state.silence import ERROR, FIRST, PACE
from tailproof.testing import games
from tailproof.typing import Array

BIN = 2**0.25


def shop(rng: np.random.Generator, shape: tuple[int, ...], buyers: float, sigma: float) -> Array:
    """Return what visitors spend; 2 % of those who buy return more than they bought."""
    sold = rng.lognormal(3, sigma, shape) * np.where(rng.random(shape) < 0.02, -1.5, 1)
    return np.where(rng.random(shape) < buyers, sold, 0.0)


def definition(samples: list[Array], share: float, doubt: float = 0.0) -> tuple[float, float]:
    """Return quantiles of purchases, each arm weighing the same, with `doubt` more of its kind.

    Without doubt, they are the range of the aim.
    """
    weights = [(1 + doubt / max(int(np.count_nonzero(own)), 1)) / len(own) for own in samples]
    pairs = sorted((y, w) for own, w in zip(samples, weights, strict=True) for y in own if y != 0)
    total, found = sum(weight for _, weight in pairs), []
    for level in (1 - share, share):
        reached = 0.0
        for y, weight in pairs:
            reached += weight
            if reached >= level * total * (1 - 1e-12):
                found.append(y)
                break
    return min(found[0], 0.0), max(found[1], 0.0)


def start_of(plain: "Plain", state: SalesHistogram, path: int) -> tuple[list[float], list[int]]:
    """Return the probability of a look at every arm, and the arms that only a look may choose."""
    n, k = [max(len(own), 1) for own in plain.rewards], len(plain.rewards)
    sold = [sum(y != 0 for y in own) for own in plain.rewards]
    x, q = state.sums[path] / n, state.squares[path] / n
    surely = max(x - norm.isf(ERROR) * np.sqrt(np.maximum(q - x * x, 0) / n))
    largest = max([0.0, *(y for own in plain.rewards for y in own)])
    looks, unjudged = [0.0] * k, []
    for arm in range(k):
        if sold[arm] >= FIRST:
            continue
        most_sales = brentq(lambda m, b=sold[arm]: poisson.cdf(b, m) - ERROR, 0, 50)
        if most_sales / n[arm] * largest < surely:
            looks[arm] = min(PACE / math.sqrt(k * sum(n)), 1 / k)
        else:
            looks[arm] = 1 / k
            unjudged.append(arm)
    return looks, unjudged


class Plain:
    """One path that keeps every reward; a loop stands in for each sum."""

    def __init__(self, arms: int, share: float) -> None:
        self.share, self.rewards = share, [list[float]() for _ in range(arms)]
        self.unit, self.due, self.low, self.high = 0.0, 1, 0.0, 0.0
        self.binned = [list[float]() for _ in range(arms)]

    def bin_of(self, y: float) -> tuple[bool, int]:
        return y > 0, math.floor(4 * math.log2(abs(y)) + 0.5)

    def edge(self, y: float) -> float:
        """Return the end of the bin of y that is farther from zero."""
        return math.copysign(2 ** ((self.bin_of(y)[1] + 0.5) / 4), y) if y else 0.0

    def learn(self, arm: int, reward: float) -> None:
        if reward and not self.unit:
            self.unit = abs(reward)
        y = reward / self.unit if reward else 0.0
        self.rewards[arm].append(y)
        if y:
            self.binned[arm].append(y)
        bought = sum(y != 0 for own in self.rewards for y in own)
        if y and bought >= self.due:
            self.due = max(int(1.1 * bought), bought + 1)
            samples = [np.array(own) for own in self.rewards if own]
            low, high = definition(samples, self.share, DOUBT)
            self.low, self.high = self.edge(low), self.edge(high)
            for own, kept in zip(self.rewards, self.binned, strict=True):
                bins: dict[tuple[bool, int], list[float]] = {}
                for y in own:
                    if y:
                        bins.setdefault(self.bin_of(y), []).append(y)
                kept[:] = [float(np.mean(inside)) for inside in bins.values() for _ in inside]

    def sums(self) -> tuple[list[float], list[float]]:
        """Return Σ y and Σ y² within the range; purchases before it was learned count as binned."""
        cut = [[min(max(y, self.low), self.high) for y in own] for own in self.binned]
        return [sum(own) for own in cut], [sum(y * y for y in own) for own in cut]


@pytest.mark.parametrize("share", [0.99, 0.8])
def test_revenue_ucb_follows_its_plain_form(share: float) -> None:
    policy, rng = RevenueUCB(share=share), np.random.default_rng(3)
    table = shop(rng, (1500, 3, 4), 0.15, 1.5) * [1, 1.1, 1.3, 0.8]
    luck, vectors = np.random.default_rng(0), np.zeros((3, 4, 1))
    plain = [Plain(4, share) for _ in range(3)]
    drawn, state, drew = np.random.default_rng(0), policy.init(3, 4, 1), 0
    for outcome in table:
        chosen = policy.choose(state, vectors, luck)
        z, place = np.abs(drawn.standard_normal(3)), drawn.random(3)
        drawn.random(3)
        for path, own in enumerate(plain):
            looks, unjudged = start_of(own, state, path)
            if place[path] < sum(looks):
                assert np.cumsum(looks)[chosen[path]] > place[path] - 1e-9
                assert looks[chosen[path]] > 0
                continue
            index = revenue_index(own, z[path], unjudged)
            assert index[chosen[path]] >= max(index) - 1e-6 * abs(max(index))
            drew += 1
        policy.learn(state, vectors, chosen, outcome[np.arange(3), chosen][:, None])
        for path, own in enumerate(plain):
            own.learn(int(chosen[path]), outcome[path, chosen[path]])
    assert drew > 4000
    for path, own in enumerate(plain):
        np.testing.assert_allclose(state.sums[path], own.sums()[0], rtol=1e-5)
        np.testing.assert_allclose(state.squares[path], own.sums()[1], rtol=1e-5)
        np.testing.assert_allclose((state.low[path], state.high[path]), (own.low, own.high))
        assert state.visitors[path].tolist() == [len(rewards) for rewards in own.rewards]


def revenue_index(plain: Plain, luck: float, unjudged: list[int]) -> list[float]:
    """Return the index of the docstring."""
    sums, squares = plain.sums()
    n = [len(own) for own in plain.rewards]
    t, index = sum(n), []
    mean = [s / k for s, k in zip(sums, n, strict=True)]
    lent = sum(squares) / sum(y != 0 for own in plain.rewards for y in own)
    raw = [(q + lent) / k for q, k in zip(squares, n, strict=True)]
    judged = [arm for arm in range(len(n)) if arm not in unjudged]
    even = sum(raw[arm] for arm in judged) / len(judged)
    even -= (sum(mean[arm] for arm in judged) / len(judged)) ** 2
    for arm, (x, q, k) in enumerate(zip(mean, raw, n, strict=True)):
        log = math.log(1 + t / (len(n) * k))
        q += squares[arm] / k * DOUBT / max(sum(y != 0 for y in plain.rewards[arm]), 1)
        width = BONUS * luck * math.sqrt(2 * log * max(q - x * x, even) / k)
        index.append(x + width if arm in judged else -math.inf)
    return index


def test_a_wide_arm_that_is_better_is_not_locked_out() -> None:
    """Log-normal rewards without zeros, medians 10.2 and 13.1, means 18.8 and 14.7; 40 paths.

    With one variance of all rewards 6 of 40 paths stayed with the worse arm.
    """
    policy, rng = RevenueUCB(share=0.998), np.random.default_rng(3)
    median, mean = np.array([10.2, 13.1]), np.array([18.8, 14.7])
    sigma = np.sqrt(2 * np.log(mean / median))
    state, arms, late = policy.init(40, 2, 1), np.zeros((40, 2, 1)), np.zeros(40)
    for t in range(4000):
        chosen = policy.choose(state, arms, rng)
        rewards = median[chosen] * np.exp(sigma[chosen] * rng.standard_normal(40))
        policy.learn(state, arms, chosen, rewards[:, None])
        late += (chosen == 0) & (t >= 2000)
    assert np.count_nonzero(late < 1000) <= 1


@pytest.mark.parametrize("share", [0.99, 0.75])
def test_the_cap_is_that_of_the_aim_up_to_a_bin(share: float) -> None:
    """Though one arm has ten times the visitors, which the definition does not weigh."""
    rng, state = np.random.default_rng(5), SalesHistogram.start(1, 2, 1)
    arms = rng.permutation(np.repeat([0, 1], [4000, 400]))
    rewards = shop(rng, arms.shape, 0.3, 1.2) * np.where(arms == 0, 1, 5)
    rewards[::50] = -np.abs(rewards[::50])
    for arm, reward in zip(arms, rewards, strict=True):
        state.update(np.array([arm]), np.array([reward]), share)
    state.due[:] = 1
    state.update(np.array([0]), np.array([rewards[rewards > 0][0]]), share)
    samples = [rewards[arms == arm] for arm in (0, 1)]
    for mine, exact in zip(state.range, definition(samples, share), strict=True):
        assert exact == mine[0] == 0 or 1 <= mine[0] / exact <= BIN * 1.01
    low, high = state.range
    means = [np.clip(own, low, high).mean() for own in samples]
    np.testing.assert_allclose(state.means[0], means, rtol=3e-3)  # of the one visitor more
    variances = [np.clip(own, low, high).var() for own in samples]
    np.testing.assert_allclose(state.variances[0], variances, rtol=2e-2)  # of bins
    bought = [np.count_nonzero(own) / len(own) for own in samples]
    np.testing.assert_allclose(state.conversion[0], bought, rtol=1e-2)
    np.testing.assert_allclose(state.conversion * state.basket, state.means)


def test_a_cap_over_purchases_is_not_zero() -> None:
    """With 99.5 % zeros the 99 % quantile of all rewards is zero; that of purchases is not."""
    state = SalesHistogram.start(1, 1, 1)
    for t in range(2000):
        state.update(np.zeros(1, dtype=np.int64), np.array([40.0 if t % 200 == 0 else 0.0]), 0.99)
    assert 40 <= state.range[1][0] <= 40 * BIN
    assert state.range[0][0] == 0
    assert state.means[0, 0] == pytest.approx(0.2)


@pytest.mark.parametrize("policy", [RevenueUCB(), LinRevenueUCB()])
@pytest.mark.parametrize("unit", [1e-6, 1e6, 1 / 3, 1e-200, 1e200])
def test_units_change_no_decision(policy: Policy[Any], unit: float) -> None:
    rng = np.random.default_rng(8)
    table = np.round(shop(rng, (1200, 3, 3), 0.2, 1), 2)
    arms = rng.standard_normal((1200, 3, 1, 2)).repeat(3, axis=2)
    first, second = (trace_of(policy, arms, rewards) for rewards in (table, unit * table))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("policy", [RevenueUCB(share=0.9), LinRevenueUCB(share=0.9)])
def test_infinite_rewards_are_capped(policy: Policy[Any]) -> None:
    """Also where they are the first purchases; less than a tenth of all are infinite."""
    rng = np.random.default_rng(2)
    table = shop(rng, (800, 2, 2), 0.3, 1)
    table[:3], table[::97, :, 0] = math.inf, math.inf
    table[5::97, :, 1] = -math.inf
    state, _ = play(policy, None, table)
    assert np.isfinite(state.means).all()
    assert (state.range[1] < 1e4).all()


def test_shares_of_luck_are_an_integral() -> None:
    """By midpoints of 20 000 equal shares of luck; equal lines and dominated ones included."""
    rng = np.random.default_rng(4)
    mean, width = rng.standard_normal((6, 5)), rng.random((6, 5))
    mean[1, 2], width[1, 2] = mean[1, 3], width[1, 3]
    width[2], mean[3] = 0.5, 0.0
    luck = norm.ppf(0.5 + (np.arange(20_000) + 0.5) / 40_000)
    index = mean[:, None] + luck[:, None] * width[:, None]
    best = index == index.max(axis=2, keepdims=True)
    seen = (best / best.sum(axis=2, keepdims=True)).mean(axis=1)
    share = shares_of_luck(mean, width)
    np.testing.assert_allclose(share, seen, atol=2e-4)
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("policy", [RevenueUCB(), LinRevenueUCB()])
def test_propensities_are_frequencies(policy: Policy[Any]) -> None:
    """In eight paths and offers; false-alarm rate 10⁻⁶ over all 32 shares together."""
    rng, draws = np.random.default_rng(9), 2000
    arms = rng.standard_normal((60, 8, 1, 2)).repeat(4, axis=2)
    state, _ = play(policy, arms, shop(rng, (60, 8, 4), 0.2, 1))
    share = policy.propensities(state, arms[0])
    assert share is not None
    assert np.count_nonzero((share > 0.05) & (share < 0.95)) >= 8
    chosen = np.stack([policy.choose(state, arms[0], rng) for _ in range(draws)])
    seen = (chosen[..., None] == np.arange(4)).sum(axis=0)
    tail = np.minimum(binom.cdf(seen, draws, share), binom.sf(seen - 1, draws, share))
    assert tail.min() > 1e-6 / (2 * share.size)


@pytest.mark.parametrize(
    ("policy", "most"), [(RevenueUCB(), 5000), (LinRevenueUCB(), 9000)], ids=["arms", "features"]
)
def test_memory_is_bounded(policy: Policy[Any], most: int) -> None:
    """By 5 kB an arm; with five features and four arms by 9 kB."""
    rng, sizes = np.random.default_rng(1), []
    state = policy.init(1, 4, 5)
    for decisions in (10, 1000):
        arms = rng.standard_normal((decisions, 1, 1, 5)).repeat(4, axis=2)
        play(policy, arms, shop(rng, (decisions, 1, 4), 0.5, 2), state=state)
        sizes.append(sum(array.nbytes for array in state.to_arrays().values()))
    assert sizes[0] == sizes[1] <= 4 * most


@pytest.mark.parametrize("policy", [RevenueUCB(), LinRevenueUCB()])
def test_rewards_may_come_late_and_in_any_order(policy: Policy[Any]) -> None:
    """The order decides the unit and when the cap is learned, and nothing once both agree."""
    rng = np.random.default_rng(6)
    rewards = shop(rng, (600,), 0.3, 0.7)
    rewards[0] = 20.0
    arms, chosen = rng.standard_normal((600, 1, 1, 2)).repeat(3, axis=2), rng.integers(3, size=600)
    states = []
    for order in (np.arange(600), np.append(0, 1 + rng.permutation(599))):
        state = policy.init(1, 3, 2)
        for t in order:
            state.due[:] = 1
            if isinstance(policy, LinRevenueUCB):
                state.solve_at[:] = 1
            policy.learn(state, arms[t], chosen[[t]], rewards[[t]][:, None])
        states.append(state)
    first, second = (np.asarray(policy.propensities(state, arms[0])) for state in states)
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-9)
    np.testing.assert_array_equal(states[0].counts, states[1].counts)


@pytest.mark.parametrize("policy", [RevenueUCB(), LinRevenueUCB()])
def test_an_arm_that_sells_rarely_and_dear_is_not_locked_out(policy: Policy[Any]) -> None:
    """0.3 % × 499 against 5 % × 9.99, 60 paths of 8000 visitors, each with a feature without use.

    When arms were judged after four purchases of both together, most paths never saw it again. One
    path in 40 is slow (9 of 360 with other seeds), so that more than 6 of 60 have probability 10⁻³.
    """
    rng, right = np.random.default_rng(3), np.zeros(60)
    state, price, buyers = policy.init(60, 2, 1), np.array([9.99, 499]), np.array([0.05, 0.003])
    for t in range(8000):
        x = rng.standard_normal((60, 1, 1)).repeat(2, axis=1)
        chosen = policy.choose(state, x, rng)
        rewards = np.where(rng.random(60) < buyers[chosen], price[chosen], 0)
        policy.learn(state, x, chosen, rewards[:, None])
        right += (chosen == 1) & (t >= 6000)
    assert np.count_nonzero(right < 1000) <= 6


@pytest.mark.parametrize("policy", [RevenueUCB(), LinRevenueUCB()])
def test_two_purchases_of_a_dear_arm_are_doubted(policy: Policy[Any]) -> None:
    """Two at 500 of 5000 visitors, against 250 at 10: .8 % of purchases, and .2 a visitor for .5.

    Taken at their word, they would be capped at 10, and no visitor would see the arm again.
    """
    state, x = policy.init(1, 2, 1), np.ones((1, 2, 1))
    for t in range(10_000):
        arm, sold = t % 2, (500.0 if t in (301, 6001) else 0.0) if t % 2 else 10.0 * (t % 40 == 0)
        policy.learn(state, x, [arm], [[sold]])
    assert state.bought.tolist() == [[250, 2]]
    assert state.range[1][0] >= 500
    share = policy.propensities(state, x)
    assert share is not None
    assert share[0, 1] > 0.03


@pytest.mark.parametrize("policy", [RevenueUCB, LinRevenueUCB])
def test_an_arm_without_a_purchase_is_looked_at(policy: type[Any]) -> None:
    """By one visitor in K until its silence counts, then by 14/√(K t) of them, or by none.

    One arm of two sells for 10 to a tenth of 2000 visitors, the other never in 1000. So it sells
    to less than 0.46 % with probability 99 %, and earns less than the leader unless for 200 each.
    """
    for largest, share in ((None, PACE / math.sqrt(2 * 3000)), (20, 0.0), (1000, 0.5)):
        recipe = policy(largest=largest)
        state, x = recipe.init(1, 2, 1), np.ones((1, 2, 1))
        assert recipe.propensities(state, x).tolist() == [[0.5, 0.5]]
        for t in range(3000):
            arm = int(t % 3 == 0)
            recipe.learn(state, x, [arm], [[10.0 * (arm == 0 and t % 10 == 1)]])
        assert recipe.propensities(state, x)[0, 1] == pytest.approx(share, abs=1e-6)


def test_delay_does_not_stop_learning() -> None:
    """Rewards come 500 visitors late; 40 paths, each of which has 10 standard errors to tell."""
    policy, rng, late = RevenueUCB(), np.random.default_rng(7), 500
    law = noise.ZeroInflated(noise.LogNormal(0.5, "left", 20.0), 0.9)
    state, arms, waiting, right = policy.init(40, 3, 1), np.zeros((40, 3, 1)), [], 0
    for t in range(4000):
        chosen = policy.choose(state, arms, rng)
        waiting.append((chosen, law.sample(rng, (40,)) * np.array([1, 1, 2])[chosen]))
        if len(waiting) > late:
            pulled, rewards = waiting.pop(0)
            policy.learn(state, arms, pulled, rewards[:, None])
        right += int(np.count_nonzero(chosen == 2)) if t >= 2000 else 0
    assert right > 0.9 * 40 * 2000


class PlainLinear(Plain):
    """One path of LinRevenueUCB that keeps every visitor and solves by inverses."""

    def __init__(self, arms: int, dim: int, share: float) -> None:
        super().__init__(arms, share)
        self.x = [list[Array]() for _ in range(arms)]
        self.dim, self.t, self.solve_at = dim, 0, 1
        self.solved: list[tuple[Array, Array]] = []

    def visit(self, x: Array, arm: int, reward: float) -> None:
        due = self.due
        self.x[arm].append(np.append(x, 1.0))
        self.learn(arm, reward)
        self.t += 1
        if self.unit and (self.t >= self.solve_at or self.due != due or len(self.x[arm]) == 1):
            self.solve_at = max(int(1.01 * self.t), self.t + 1)
            self.solve()

    def solve(self) -> None:
        d, sums = self.dim + 1, []
        for xs, ys in zip(self.x, self.rewards, strict=True):
            design = np.array(xs).reshape(-1, d)
            y = np.clip(ys, self.low, self.high)
            meat = (design * np.square(y)[:, None]).T @ design
            sums.append((design.T @ design, design.T @ y, meat))
        bought = sum(y != 0 for own in self.rewards for y in own)
        pool = [sum(parts) * LENT / bought for parts in zip(*sums, strict=True)]
        self.solved = []
        for own, rewards in zip(sums, self.rewards, strict=True):
            gram, pay, meat = (mine + lent for mine, lent in zip(own, pool, strict=True))
            inverse = np.linalg.inv(gram + 1e-6 * np.diag(np.diag(gram)))
            doubt = 1 + DOUBT / max(sum(y != 0 for y in rewards), 1)
            self.solved.append((inverse @ pay, doubt * inverse @ meat @ inverse))


def test_lin_revenue_ucb_follows_its_plain_form() -> None:
    """Fewer purchases than are kept, so that all are cut anew with each cap."""
    policy, rng = LinRevenueUCB(share=0.9), np.random.default_rng(3)
    arms = rng.standard_normal((500, 2, 1, 2)).repeat(3, axis=2)
    table = shop(rng, (500, 2, 3), 0.2, 1)
    luck, drawn = np.random.default_rng(0), np.random.default_rng(0)
    plain, state, drew = [PlainLinear(3, 2, 0.9) for _ in range(2)], policy.init(2, 3, 2), 0
    for vectors, outcome in zip(arms, table, strict=True):
        chosen = policy.choose(state, vectors, luck)
        z, place = np.abs(drawn.standard_normal(2)), drawn.random(2)
        drawn.random(2)
        for path, own in enumerate(plain):
            looks, unjudged = start_of(own, state, path)
            if place[path] < sum(looks):
                assert looks[chosen[path]] > 0
                continue
            x = np.append(vectors[path, 0], 1.0)
            index = [
                -math.inf if arm in unjudged else x @ theta + z[path] * math.sqrt(x @ cover @ x)
                for arm, (theta, cover) in enumerate(own.solved)
            ]
            assert index[chosen[path]] >= max(index) - 1e-6 * abs(max(index))
            drew += 1
        policy.learn(state, vectors, chosen, outcome[np.arange(2), chosen][:, None])
        for path, own in enumerate(plain):
            arm = int(chosen[path])
            own.visit(vectors[path, arm], arm, outcome[path, arm])
    assert drew > 900
    assert (state.bought.sum(axis=1) < KEPT).all()
    for path, own in enumerate(plain):
        for arm, (theta, cover) in enumerate(own.solved):
            np.testing.assert_allclose(state.theta[path, arm], theta, rtol=1e-5, atol=1e-8)
            np.testing.assert_allclose(state.cover[path, arm], cover, rtol=1e-5, atol=1e-8)


def test_more_purchases_than_are_kept_count_too() -> None:
    """All purchases are alike, so that the cap never moves: the regression is the exact one."""
    policy, rng = LinRevenueUCB(), np.random.default_rng(3)
    x, bought = rng.standard_normal((3000, 2)), rng.random(3000) < 0.3
    state, y = policy.init(1, 1, 2), 25.0 * bought
    for vector, reward in zip(x, y, strict=True):
        policy.learn(state, vector[None, None], np.zeros(1, dtype=np.int64), [[reward]])
    state.solve_at[:] = 1
    policy.learn(state, np.zeros((1, 1, 2)), np.zeros(1, dtype=np.int64), [[0.0]])
    assert bought.sum() > 5 * KEPT
    design = np.vstack([np.column_stack([x, np.ones(3000)]), [0, 0, 1]])
    exact = np.linalg.lstsq(design, np.append(y, 0))[0]
    np.testing.assert_allclose(state.coefficients[0, 0], exact, rtol=1e-4, atol=1e-4)


def test_features_tell_visitors_apart() -> None:
    """Half of the visitors buy from one arm, half from the other; 20 paths, the last 1000 of 4000.

    The best rule is right always, a fair coin in half of the cases.
    """
    policy, rng = LinRevenueUCB(), np.random.default_rng(5)
    state, right = policy.init(20, 2, 1), 0
    for t in range(4000):
        x = rng.choice([-1.0, 1.0], 20)
        arms = np.repeat(x[:, None, None], 2, axis=1)
        chosen = policy.choose(state, arms, rng)
        fits = chosen == (x > 0)
        bought = rng.random(20) < np.where(fits, 0.08, 0.02)
        policy.learn(state, arms, chosen, np.where(bought, rng.lognormal(3, 1, 20), 0)[:, None])
        right += int(np.count_nonzero(fits)) if t >= 3000 else 0
    assert right > 0.9 * 20_000


def test_an_arm_that_appears_later_is_tried() -> None:
    """The new arm is judged by the pool until it has visitors of its own."""
    policy, rng = LinRevenueUCB(), np.random.default_rng(5)
    state = policy.init(1, 2, 1)
    play(policy, np.ones((400, 1, 2, 1)), shop(rng, (400, 1, 2), 0.3, 1), state=state)
    share = policy.propensities(state, np.ones((1, 3, 1)))
    assert share is not None
    assert share[0, 2] > 0.2
    assert state.coefficients.shape == (1, 2, 2)


def test_edges_of_bins_are_no_ratio_of_prices() -> None:
    """Doubling a price moves it by exactly four bins, in any unit."""
    for unit in (1.0, 1e-6, 0.1, 3e7):
        state = SalesHistogram.start(1, 1, 1)
        for price in (1, 2, 4, 8, 0.5):
            state.update(np.zeros(1, dtype=np.int64), np.array([unit * price]), 0.99)
        assert [int(b - a) for a, b in pairwise(np.flatnonzero(state.counts[0, 0]))] == [4] * 4


@pytest.mark.parametrize(
    ("policy", "golden"),
    [
        (RevenueUCB(), "132303121212321033000132321220333131333322033323322203333333"),
        (LinRevenueUCB(), "132303121212321033000132321220333131333322031321122202233323"),
    ],
)
def test_golden_trace(policy: Policy[Any], golden: str) -> None:
    rng = np.random.default_rng(11)
    arms = rng.standard_normal((60, 1, 1, 2)).repeat(4, axis=2)
    assert row(trace_of(policy, arms, shop(rng, (60, 1, 4), 0.3, 1))) == golden


@pytest.mark.parametrize("policy", [RevenueUCB(share=0.9), LinRevenueUCB(share=0.9)])
def test_contract_with_zeros(policy: Policy[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the contract once more, on rewards of which 80 % are zero."""
    dense = games.rewards

    def sparse(policy: Policy[Any], seed: int = 4) -> Array:
        rewards = dense(policy, seed)
        return np.where(np.abs(rewards) > 1.28, rewards, 0.0)

    monkeypatch.setattr(games, "rewards", sparse)
    testing.check_policy(policy)
