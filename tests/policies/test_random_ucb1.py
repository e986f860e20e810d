"""The random form of UCB1: one uniform amount of optimism that all arms share, and its shares."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from traces import trace_of

from tailproof import UCB1, AutoFiltered, Filtered, Median, Policy, Vigilant, environments, noise
from tailproof.policies.state.counts import Tally
from tailproof.simulation import simulate
from tailproof.typing import Array

ARMS = np.zeros((1, 4, 1))


def state_of(counts: list[int], sums: list[float]) -> Tally:
    """Return the state of one path that learned these."""
    state = UCB1().init(paths=1, arms=len(counts), dim=1)
    state.counts[0], state.sums[0], state.decisions[0] = counts, sums, sum(counts)
    return state


def shares_of(counts: list[int], sums: list[float], bonus: float = 1.0) -> Array:
    """Return the shares of one path."""
    state = state_of(counts, sums)
    share = UCB1(bonus=bonus, random=True).propensities(state, np.zeros((1, len(counts), 1)))
    assert share is not None
    assert share.sum() == pytest.approx(1)
    first: Array = share[0]
    return first


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_those_of_the_equation(seed: int) -> None:
    """Counted on a grid of 10⁵ values of U, each of K shares misses by at most its two ends."""
    rng, k, grid = np.random.default_rng(seed), 6, (np.arange(100_000) + 0.5) / 100_000
    n, bonus = rng.integers(1, 30, k), 0.7
    sums = n * (rng.random(k) / 4 - 1 / np.sqrt(n))  # better arms were chosen more often
    width = bonus * np.sqrt(2 * math.log(n.sum()) / n)
    best = (sums / n + grid[:, None] * width).argmax(axis=1)
    counted = np.bincount(best, minlength=k) / len(grid)
    found = shares_of(n.tolist(), sums.tolist(), bonus)
    assert np.count_nonzero((found > 0.01) & (found < 0.99)) >= 2
    np.testing.assert_allclose(found, counted, rtol=0, atol=3e-5)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda policy: policy,
        lambda policy: Filtered(policy, repeats=3, estimator=Median()),
        lambda policy: AutoFiltered(policy, repeats=3, settle=4),
        lambda policy: Vigilant(AutoFiltered(policy, repeats=3, settle=4)),
    ],
    ids=["alone", "Filtered", "AutoFiltered", "Vigilant"],
)
def test_propensities_are_frequencies(wrap: Callable[[Policy[Any]], Policy[Any]]) -> None:
    """In eight paths; false-alarm rate 10⁻⁶ over all 32 shares together."""
    policy, rng, draws = wrap(UCB1(random=True)), np.random.default_rng(9), 2000
    state, arms = policy.init(8, 4, 1), np.zeros((8, 4, 1))
    for _ in range(12):
        chosen = policy.choose(state, arms, rng)
        rewards = chosen[:, None] / 4 + 0.3 * rng.standard_cauchy((8, policy.pulls))
        policy.learn(state, arms, chosen, rewards)
    share = policy.propensities(state, arms)
    assert share is not None
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-9)
    assert np.count_nonzero((share > 0.02) & (share < 0.98)) >= 4
    drawn = np.stack([policy.choose(state, arms, rng) for _ in range(draws)])
    seen = (drawn[..., None] == np.arange(4)).sum(axis=0)
    tail = np.minimum(binom.cdf(seen, draws, share), binom.sf(seen - 1, draws, share))
    assert tail.min() > 1e-6 / (2 * share.size)


def test_arms_without_a_reward_come_first_and_evenly() -> None:
    assert shares_of([0, 0, 0], [0, 0, 0]).tolist() == pytest.approx([1 / 3] * 3)
    assert shares_of([5, 0, 0], [1e300, 0, 0]).tolist() == [0, 0.5, 0.5]
    trace = trace_of(UCB1(random=True), None, np.random.default_rng(3).random((9, 20, 5)))
    assert all(sorted(path[:5]) == [0, 1, 2, 3, 4] for path in trace.T)


def test_infinite_rewards_are_the_best_and_the_worst() -> None:
    """As in the plain form, whose shares are these; +∞ and −∞ of one arm have no mean."""
    inf = math.inf
    for sums, expected in (
        ([1, inf, 2, 2], [0, 1, 0, 0]),
        ([inf, inf, 2, -inf], [0.5, 0.5, 0, 0]),
        ([-inf, math.nan, -inf, 0], [0, 0, 0, 1]),
        ([-inf, math.nan, -inf, -inf], [0.25] * 4),
        ([1e308, -1e308, 0, 0], [1, 0, 0, 0]),
    ):
        assert shares_of([3, 3, 3, 3], sums).tolist() == expected
        plain = UCB1().propensities(state_of([3, 3, 3, 3], sums), ARMS)
        assert plain is not None
        assert plain.tolist() == [expected]
        chosen = UCB1(random=True).choose(
            state_of([3] * 4, sums).take(np.zeros(100, dtype=np.int64)),
            np.zeros((100, 4, 1)),
            np.random.default_rng(0),
        )
        assert {int(arm) for arm in chosen} == set(np.flatnonzero(expected))
    found = shares_of([3, 3, 3, 3], [-inf, 2.9, 3, 2])
    assert found[0] == 0
    assert np.count_nonzero(found) >= 1


def test_one_arm_is_always_chosen() -> None:
    for counts in ([0], [1], [7]):
        assert shares_of(counts, [0.5 * counts[0]]).tolist() == [1]


def test_arms_that_rounding_tells_apart_have_equal_propensities() -> None:
    """The same three rewards in another order: the sums differ in the last bit."""
    first, second = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1
    assert first != second
    np.testing.assert_allclose(shares_of([3, 3, 3], [first, second, 0.2])[:2], [0.5, 0.5])


def test_an_offset_changes_no_share_and_a_unit_none_if_the_bonus_has_it_too() -> None:
    n = np.array([4, 9, 20, 31])
    sums = n * np.array([0.3, 0.5, 0.6, 0.65])
    share = shares_of(n.tolist(), sums.tolist())
    assert np.count_nonzero(share > 0.05) >= 2
    offset = shares_of(n.tolist(), (sums + 1000 * n).tolist())
    np.testing.assert_allclose(offset, share, rtol=0, atol=1e-9)
    unit = shares_of(n.tolist(), (1e-6 * sums).tolist(), bonus=1e-6)
    np.testing.assert_allclose(unit, share, rtol=0, atol=1e-9)


def test_requests_between_two_rewards_go_to_several_arms() -> None:
    """200 choices from one state, which the plain form can continue too: it gives all one arm."""
    state, rng = state_of([4, 9, 20, 31], [1.2, 4.5, 12, 20.15]), np.random.default_rng(4)
    for policy, most in ((UCB1(), 1), (UCB1(random=True), 4)):
        seen = {int(policy.choose(state, ARMS, rng)[0]) for _ in range(200)}
        assert min(most, 2) <= len(seen) <= most


def test_where_rewards_come_late_the_regret_is_smaller() -> None:
    """100 decisions late, 60 paths: by more than four standard errors of the difference."""
    bandit = environments.k_armed(noise.Normal(0.5), locations=[0.0, 0.25, 0.5, 0.75, 1.0])
    policies = {"plain": UCB1(), "random": UCB1(random=True)}
    run = simulate(policies, bandit, horizon=2000, paths=60, delay=100, seed=3)
    plain, spread = (run.curves[name].regret[:, -1] for name in policies)
    gain = plain - spread
    assert gain.mean() > 4 * gain.std(ddof=1) / math.sqrt(60)
