"""Wrappers that forget: what they keep, when they restart, and how often without a reason."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from tailproof import (
    OFUL,
    UCB1,
    AutoFiltered,
    FixedArm,
    LinRevenueUCB,
    LinStudentUCB,
    Renewed,
    RevenueUCB,
    ThompsonSampling,
    Vigilant,
    noise,
)
from tailproof.typing import Array

ALARM = 1e-6  # the false-alarm rate of each statistical test
RARE = 1e-6  # a level at which nothing is restarted by chance
ARMS = np.eye(2)[None]
STAKES = math.log(2) * (1 / np.log(np.arange(2, 99)) - 1 / np.log(np.arange(3, 100)))


def fed(policy: Any, rewards: Array, chosen: Any = 0, arms: Array | None = None) -> Any:
    """Return the state after rewards of shape (decisions, paths) of the chosen arm."""
    paths = rewards.shape[1]
    offer = np.broadcast_to(ARMS, (paths, 2, 2)) if arms is None else arms
    state = policy.init(paths, *offer.shape[-2:])
    picks = np.broadcast_to(chosen, (len(rewards), paths))
    for t, row in enumerate(rewards):
        shown = offer if offer.ndim == 3 else offer[t]
        policy.learn(state, shown, picks[t], np.repeat(row[:, None], policy.pulls, axis=1))
    return state


def reference(rewards: list[float]) -> Array:
    """Return M of every bet, one arm, one reward at a time: falls in row 0 and rises in row 1."""
    edges, bins, evidence = list[float](), list[int](), np.zeros((2, 5))
    for t, y in enumerate(rewards):
        if len(edges) < 15 and t < 300:
            edges = sorted({*edges, y})
            continue
        bins.append(2 * sum(edge < y for edge in edges) + (y in edges))
        n = len(bins)
        low = sum(other < bins[-1] for other in bins) / n
        high = sum(other <= bins[-1] for other in bins) / n
        u = np.linspace(low, high, 4001)
        u = (u[1:] + u[:-1]) / 2
        for side, rank in enumerate((1 - u, u)):
            x = np.tan(math.pi * (rank - 0.5))
            bets = [b * rank ** (b - 1) for b in (1.5, 6)]
            bets += [(1 + x**2) / (1 + (x - shift) ** 2) for shift in (0.4, 1, 2.5)]
            payout = np.array([bet.mean() for bet in bets])
            evidence[side] = (evidence[side] + STAKES[n - 1]) * payout
    return evidence


def test_memory_is_between_half_and_all_of_it() -> None:
    """After W/2 decisions the younger copy takes over."""
    policy = Renewed(UCB1(), memory=7)
    state, known = policy.init(1, 2, 2), []
    for _ in range(14):
        policy.learn(state, ARMS, [0], [[1.0]])
        known.append(int(state.inner.decisions[0]))
    assert known == [1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6]


def test_a_renewed_policy_is_the_policy_on_the_last_decisions() -> None:
    rng = np.random.default_rng(0)
    rewards, arms = rng.standard_cauchy((49, 3)), rng.standard_normal((49, 3, 2, 2))
    renewed = fed(Renewed(LinStudentUCB(), memory=20), rewards, arms=arms)
    recent = fed(LinStudentUCB(), rewards[30:], arms=arms[30:])
    np.testing.assert_array_equal(renewed.inner.mean, recent.mean)
    np.testing.assert_array_equal(renewed.young.decisions, [9, 9, 9])


def test_stakes_sum_to_one() -> None:
    n = np.arange(1, 10**6)
    total = math.log(2) * (1 / np.log(n + 1) - 1 / np.log(n + 2)).sum()
    assert 0.9 < total < 1


@pytest.mark.parametrize("values", [(1.0, 2.0, 3.0, 4.0), (5.0, 0.0, 0.0, 0.0), (9.0, 9.0, -1, -1)])
@pytest.mark.parametrize("first", [np.arange(-7.0, 8), np.resize([0.0, 1.5, 2.5, -3, 6], 300)])
def test_bets_are_fair(values: tuple[float, ...], first: Array) -> None:
    """Over all orders of the later rewards, with ties, the mean of M is what was staked so far."""
    orders = np.array(list(itertools.permutations(values))).T
    first = np.tile(first[:, None], orders.shape[1])
    state = fed(Vigilant(FixedArm(arm=0), level=1e-12), np.concatenate([first, orders]))
    np.testing.assert_allclose(state.evidence[:, 0].mean(axis=0), STAKES[:4].sum(), rtol=1e-12)
    assert not state.evidence[:, 1].any()


@pytest.mark.parametrize(("zeros", "count"), [(0.0, 60), (0.6, 120), (0.97, 380)])
def test_evidence_is_that_of_the_formula(zeros: float, count: int) -> None:
    rng = np.random.default_rng(5)
    rewards = rng.standard_cauchy(count).round(1)
    rewards[-20:] -= 3
    rewards[rng.random(count) < zeros] = 0
    state = fed(Vigilant(FixedArm(arm=0), level=1e-12), rewards[:, None])
    np.testing.assert_allclose(state.evidence[0, 0], reference(rewards.tolist()), rtol=1e-4)


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_halved_prices_are_seen_where_few_buy(spread: float) -> None:
    """Of 15 rewards hardly one is a purchase: edges are looked for until 15 rewards differ."""
    rng = np.random.default_rng(6)
    prices = 20 * rng.lognormal(0, spread, (30_000, 10))
    prices[10_000:] /= 2
    rewards = np.where(rng.random((30_000, 10)) < 0.05, prices, 0.0)
    watched = Vigilant(FixedArm(arm=0), level=RARE)
    assert not fed(watched, rewards[:10_000]).restarts.any()
    assert fed(watched, rewards).restarts.all()


@pytest.mark.parametrize("shift", [-3.0, 3.0])
@pytest.mark.parametrize(
    "policy", [UCB1(), AutoFiltered(UCB1(), repeats=5), RevenueUCB()], ids=repr
)
def test_a_shift_restarts_once(policy: Any, shift: float) -> None:
    rewards = np.random.default_rng(1).standard_cauchy((700, 20))
    rewards[400:] += shift
    watched = Vigilant(policy, level=RARE)
    before, state = fed(watched, rewards[:400]), fed(watched, rewards)
    assert not before.restarts.any()
    assert state.restarts.tolist() == [1] * 20
    assert 200 < state.since.min() <= state.since.max() < 300
    np.testing.assert_array_equal(state.inner.decisions, state.since)


def test_only_the_arm_that_changed_needs_to_be_pulled() -> None:
    """Arms are ranked among their own rewards: to pull a better arm is no change."""
    rng = np.random.default_rng(2)
    chosen = rng.random((3000, 20)) < np.linspace(0, 1, 3000)[:, None]
    rewards = rng.standard_normal((3000, 20)) + 5 * chosen
    state = fed(Vigilant(UCB1(), level=RARE), rewards, chosen.astype(int))
    assert not state.restarts.any()


def test_where_offers_vary_only_falls_count() -> None:
    rng = np.random.default_rng(3)
    arms = rng.standard_normal((900, 20, 2, 2))
    for policy in (OFUL(), LinStudentUCB(), LinRevenueUCB()):
        offers = arms[:, :, :1].repeat(2, axis=2) if isinstance(policy, LinRevenueUCB) else arms
        rewards = rng.standard_normal((900, 20))
        rewards[500:] += 3
        state = fed(Vigilant(policy, level=RARE), rewards, arms=offers)
        assert not state.restarts.any()
        state = fed(Vigilant(policy, level=RARE), -rewards, arms=offers)
        assert state.restarts.tolist() == [1] * 20


def test_an_offer_that_stays_is_known_by_arm() -> None:
    """A vector policy is watched arm by arm until its offer changes."""
    rng = np.random.default_rng(4)
    rewards = rng.standard_normal((60, 3))
    state = fed(Vigilant(OFUL()), rewards, chosen=1)
    assert state.seen[..., 0].tolist() == [[0, 60]] * 3
    assert not state.varies.any()
    Vigilant(OFUL()).learn(state, 2 * np.broadcast_to(ARMS, (3, 2, 2)), [1, 1, 1], np.ones((3, 1)))
    assert state.seen[..., 0].tolist() == [[1, 0]] * 3
    assert state.varies.tolist() == [1, 1, 1]


def test_zeros_are_no_change_but_fewer_of_them_are() -> None:
    rng = np.random.default_rng(6)
    sales = np.where(rng.random((6000, 20)) < 0.05, rng.pareto(1.1, (6000, 20)), 0.0)
    watched = Vigilant(RevenueUCB(), level=RARE)
    assert not fed(watched, sales).restarts.any()
    more = np.where(rng.random((6000, 20)) < 0.2, rng.pareto(1.1, (6000, 20)), 0.0)
    sales[4000:] = more[4000:]
    assert fed(watched, sales).restarts.tolist() == [1] * 20


@pytest.mark.parametrize(
    "law",
    [noise.Cauchy(), noise.Rademacher(), noise.ZeroInflated(noise.Pareto(1.1), 0.9)],
    ids=repr,
)
@pytest.mark.parametrize("policy", [UCB1(), ThompsonSampling()], ids=repr)
def test_false_restarts_are_as_rare_as_stated(policy: Any, law: noise.Noise) -> None:
    """At a level of 0.3, with arms that are chosen by their rewards."""
    watched, rng, paths = Vigilant(policy, level=0.3), np.random.default_rng(7), 200
    state, arms = watched.init(paths, 3, 1), np.zeros((paths, 3, 1))
    for _ in range(600):
        chosen = watched.choose(state, arms, rng)
        watched.learn(state, arms, chosen, law.sample(rng, (paths, 1)) + 0.1 * chosen[:, None])
    restarted = np.count_nonzero(state.restarts)
    assert binom.sf(restarted - 1, paths, 0.3) > ALARM


def test_settings_are_checked() -> None:
    for level in (0, 1, -0.1, 1e-13):
        with pytest.raises(ValueError, match="level must be a number at least 1e-12 and below 1"):
            Vigilant(UCB1(), level=level)
    with pytest.raises(ValueError, match="memory must be a whole number of at least 2"):
        Renewed(UCB1(), memory=1)


def test_a_common_cycle_restarts_nothing_with_its_period() -> None:
    """Rewards double on two days of seven, for both arms; 20 paths of eight weeks of 700 decisions.

    At a level of 10⁻⁶ nothing restarts by chance. Without a period, or with a wrong one, most do.
    """
    rng, weeks = np.random.default_rng(4), 8
    day = np.arange(700 * weeks) // 100 % 7
    rewards = rng.lognormal(0, 0.5, (len(day), 20)) * np.where(day >= 5, 2, 1)[:, None]
    chosen = rng.integers(2, size=(len(day), 1)).repeat(20, axis=1)
    restarts = {
        period: int(np.count_nonzero(fed(policy, rewards, chosen).restarts))
        for period in (None, 700, 500)
        for policy in (Vigilant(FixedArm(arm=0), level=RARE, period=period),)
    }
    assert restarts[700] == 0
    assert min(restarts[None], restarts[500]) >= 15


def test_a_change_is_found_within_the_phases() -> None:
    """An arm earns half from the fifth week on, in every phase of the cycle."""
    rng, day = np.random.default_rng(5), np.arange(7 * 700) // 100 % 7
    rewards = rng.lognormal(0, 0.5, (len(day), 20)) * np.where(day >= 5, 2, 1)[:, None]
    rewards[2800:] /= 2
    state = fed(Vigilant(FixedArm(arm=0), level=RARE, period=700), rewards)
    assert (state.restarts >= 1).all()


def test_a_clock_tells_the_phase() -> None:
    policy = Vigilant(UCB1(), period=700, phases=7)
    state = policy.init(1, 2, 2)
    policy.tell_phase(state, 3)
    policy.learn(state, ARMS, [1], [[1.0]])
    assert state.seen[0].sum(axis=0).tolist() == [0, 0, 0, 1, 0, 0, 0]
    with pytest.raises(ValueError, match="phase must be a whole number"):
        policy.tell_phase(state, 7)
    counting = policy.init(1, 2, 2)
    for _ in range(101):
        policy.learn(counting, ARMS, [1], [[1.0]])
    assert counting.seen[0, 1].tolist() == [100, 1, 0, 0, 0, 0, 0]
