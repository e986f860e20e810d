"""Aims, the advice from records, and whether obeying it finds the arm that an aim asks for."""

import math
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad
from typer.testing import CliRunner

from tailproof import (
    OFUL,
    UCB1,
    Advice,
    Aim,
    Capped,
    CappedMean,
    Filtered,
    LinRevenueUCB,
    LinStudentUCB,
    Mean,
    Median,
    Negated,
    OrderStatisticUCB,
    Policy,
    Quantile,
    RevenueUCB,
    Uniform,
    calibrate,
    environments,
    judge,
    noise,
    records,
    simulate,
)
from tailproof.advice.claims import about_control
from tailproof.advice.code import explored
from tailproof.cli import app
from tailproof.environments import traffic
from tailproof.live import Agent, read
from tailproof.live.config import Settings
from tailproof.policies.base import Array
from tailproof.stats.comparison import LEVEL, Comparison
from tailproof.stats.diagnostics import Rewards
from tailproof.stats.intervals import quantile_interval
from tailproof.stats.medians import NoiseQuantile, scale as scale_of

FALSE_ALARM = 1e-5  # of each comparison with draws, all with fixed seeds


# Aims of laws and of samples

LAWS = (
    noise.Pareto(1.5),
    noise.LogNormal(1.0),
    noise.Cauchy(2),
    noise.ZeroInflated(noise.Pareto(1.1), 0.9),
)


@pytest.mark.parametrize("aim", [Median(), Quantile(0.9), CappedMean(0.9)], ids=repr)
def test_the_aim_of_a_law_is_that_of_many_samples(aim: Aim) -> None:
    """Within 1.6 times the width of intervals from 200 000 samples, six standard errors."""
    locations = (1.0, -2.0, 3.0, 0.0)
    rng = np.random.default_rng(0)
    samples = [
        np.sort(m + law.sample(rng, (200_000,))) for m, law in zip(locations, LAWS, strict=True)
    ]
    exact = aim.of(LAWS, locations)
    table = Comparison.of(aim.among(samples), "abcd", samples).table
    width = np.maximum(table[:, 2] - table[:, 1], 1e-12)
    assert np.all(np.abs(table[:, 0] - exact) < 1.6 * width)
    np.testing.assert_allclose(aim.values(samples), exact, atol=1.6 * width.max())


def test_means_of_laws() -> None:
    assert Mean().of([noise.Pareto(3.0), noise.Normal()], [1.0, 2.0]).tolist() == pytest.approx(
        [1 + noise.Pareto(3.0).mean, 2.0]
    )
    with pytest.raises(ValueError, match="laws must be laws that have a mean, got Cauchy"):
        Mean().of([noise.Cauchy()], [0.0])


@pytest.mark.parametrize("aim", [Median(), Mean(), Quantile(0.8), CappedMean(0.9)], ids=repr)
def test_to_minimise_is_to_maximise_the_mirrored_aim(aim: Aim) -> None:
    rng = np.random.default_rng(1)
    samples = [rng.exponential(size=999), rng.normal(size=1999)]
    mirrored = -aim.mirrored.values([-sample for sample in samples])
    np.testing.assert_allclose(aim.values(samples), mirrored, rtol=1e-12)


@pytest.mark.parametrize(("q", "n"), [(0.5, 40), (0.95, 200), (0.1, 75)])
def test_intervals_of_quantiles_keep_their_level(q: float, n: int) -> None:
    """2 000 intervals of a skewed law with an atom: misses are at most 10 %, within luck."""
    law = noise.ZeroInflated(noise.Pareto(1.2), 0.3)
    truth, rng = float(law.ppf(q)), np.random.default_rng(2)
    missed = 0
    for sample in law.sample(rng, (2000, n)):
        low, high = quantile_interval(sample, q, 0.9)
        missed += not low <= truth <= high
    assert stats.binomtest(missed, 2000, 0.1, alternative="greater").pvalue > FALSE_ALARM


def test_the_cap_of_atoms_is_one_of_them() -> None:
    """A level that the pooled distribution reaches exactly is reached where it is first reached."""
    aim, places = CappedMean(0.75), (4.0, 1.0, 2.0, 3.0)
    exact = aim.of([noise.Degenerate()] * 4, places)
    np.testing.assert_allclose(exact, [3, 1, 2, 3], atol=1e-9)
    np.testing.assert_allclose(
        aim.values([np.array([place]) for place in places]), exact, atol=1e-9
    )


def test_a_level_that_is_just_reached_is_enough() -> None:
    """P(Bin(5, ½) < 1) = P(Bin(5, ½) ≥ 5) = 1/32."""
    assert quantile_interval(np.arange(1.0, 6.0), 0.5, 1 - 2 / 32) == (1, 5)
    assert quantile_interval(np.arange(1.0, 6.0), 0.5, 1 - 1.9 / 32) == (-np.inf, np.inf)


def test_intervals_that_cannot_end_are_infinite() -> None:
    assert quantile_interval(np.arange(5.0), 0.99, 0.95) == (3.0, np.inf)
    assert quantile_interval(np.arange(5.0), 0.01, 0.95) == (-np.inf, 1.0)


# The cap


def test_neither_zeros_nor_the_sizes_of_arms_move_the_cap() -> None:
    a, b = np.arange(1.0, 101.0), np.arange(201.0, 301.0)
    ends = CappedMean(0.9).range([a, b])
    assert ends == (0.0, 280.0)
    with_zeros = [np.append(np.zeros(900), x) for x in (a, b)]
    assert CappedMean(0.9).range(with_zeros) == ends
    assert CappedMean(0.9).range([with_zeros[0], np.tile(with_zeros[1], 50)]) == ends


def test_refunds_are_cut_and_zero_stays_inside() -> None:
    refunds = np.append(-np.arange(1.0, 101.0), np.zeros(5))
    assert CappedMean(0.9).range([refunds]) == (-91.0, 0.0)
    both = np.append(refunds, np.arange(1.0, 101.0))
    low, high = CappedMean(0.95).range([both])
    assert low == -high - 1 == -91.0
    assert CappedMean().range([np.zeros(9), np.zeros(3)]) == (0.0, 0.0)


def test_a_cap_that_hides_all_differences_is_an_error() -> None:
    rewards = np.append(np.repeat([0.0, 10.0], [900, 100]), np.repeat([0.0, 10.0], [900, 100]))
    rewards[[999, 998]] = 1e6
    arms = np.repeat(["a", "b"], 1000)
    words = r"share=0\.9 caps rewards at 10, and there all arms have the same mean, 1: use a larger"
    with pytest.raises(ValueError, match=words):
        environments.from_records(rewards, arms, aim=CappedMean(0.9))
    advice = calibrate(reward=rewards, arm=arms, aim=CappedMean(0.9))
    assert "capped_mean(0.9): nothing leads" in advice.explain()
    with pytest.raises(ValueError, match=words):
        advice.policy()
    laws = [noise.Empirical(sample) for sample in np.split(rewards, 2)]
    with pytest.raises(ValueError, match=words):
        CappedMean(0.9).of(laws, [0.0, 0.0])


def test_a_cap_that_decides_who_leads_is_named() -> None:
    often, much = np.repeat([0.0, 10.0], [500, 500]), np.repeat([0.0, 60.0], [800, 200])
    arms = np.repeat(["often", "much"], 1000)
    told = calibrate(reward=np.append(often, much), arm=arms).explain()
    assert "Below a cap of 25 often leads, above it much." in told
    costs = calibrate(reward=np.append(often, much), arm=arms, costs=True).explain()
    assert "Below a cap of 25 much leads, above it often." in costs


# The law of a block quantile


@pytest.mark.parametrize(
    ("law", "block", "level"),
    [
        (noise.StudentT(3), 19, 0.9),
        (noise.Normal(2), 21, 0.25),
        (noise.Pareto(1.2), 59, 0.95),
        (noise.LogNormal(1.0), 40, 0.05),
        (noise.Cauchy(), 79, 0.95),
    ],
    ids=repr,
)
def test_the_variance_of_a_block_quantile(law: noise.Noise, block: int, level: float) -> None:
    """∫ (Q(u) − Q(level))² b(u) du, b the density of the beta law, by adaptive quadrature."""
    found = NoiseQuantile(law, block, Quantile(level))
    rank = Quantile(level).rank(block)
    b, centre = stats.beta(rank, block + 1 - rank), float(law.ppf(level))
    edges = [*b.ppf([0, 1e-9, 0.01, 0.5, 0.99, 1 - 1e-9]).tolist(), 1 - 1e-13]
    pieces = [
        quad(lambda u: (float(law.ppf(u)) - centre) ** 2 * b.pdf(u), low, high, limit=200)[0]
        for low, high in pairwise(edges)
    ]
    assert found.variance == pytest.approx(sum(pieces), rel=1e-3)


def test_a_block_quantile_against_draws() -> None:
    law, estimator = noise.Pareto(1.2), Quantile(0.95)
    found = NoiseQuantile(law, 59, estimator)
    centre, rng = float(law.ppf(0.95)), np.random.default_rng(4)
    drawn = estimator.draw(law, rng, (20_000, 59)) - centre
    plain = estimator(law.sample(rng, (20_000, 59))) - centre
    assert stats.ks_2samp(drawn, plain).pvalue > FALSE_ALARM
    for z in np.quantile(np.abs(plain), [0.5, 0.9, 0.99]):
        count = int((np.abs(drawn) > z).sum())
        assert stats.binomtest(count, 20_000, float(found.exceedance(z))).pvalue > FALSE_ALARM
    assert NoiseQuantile(noise.Cauchy(), 39, Quantile(0.95)).variance == np.inf


def test_quantiles_refuse_blocks_that_are_too_short() -> None:
    with pytest.raises(ValueError, match=r"samples must be at least 19 for the quantile 0\.95"):
        Filtered(UCB1(), repeats=18, estimator=Quantile(0.95))
    assert Quantile(0.5).rank(7) == 4
    assert Quantile(0.95).rank(19) == 19


# Tools for aims


def test_a_quantile_behind_ucb1_finds_the_fastest_server() -> None:
    """Pareto latencies of index 1.2: the 95 % quantile, five arms, the next a half slower."""
    laws = tuple(noise.Pareto(1.2, scale=c) for c in (1.0, 1.5, 1.75, 2.0, 2.5))
    latency, repeats = noise.PerArm(laws), 99
    bonus = scale_of(NoiseQuantile(laws[0], repeats, Quantile(0.95)), 1, 0.01)
    policy = Filtered(Negated(UCB1(bonus=bonus)), repeats=repeats, estimator=Quantile(0.95))
    rng, paths, arms = np.random.default_rng(5), 40, np.broadcast_to(np.eye(5), (40, 5, 5))
    state, best = policy.init(paths, 5, 5), []
    for _ in range(600):
        chosen = policy.choose(state, arms, rng)
        best.append(np.mean(chosen == 0))
        policy.learn(state, arms, chosen, latency.sample(rng, chosen, 0, repeats))
    assert np.mean(best[300:]) >= 0.9


def revenue(*zeros: float, seed: int = 6) -> tuple[Array, Array]:
    """Pareto sales of index 1.1, with a share of zeros for each arm."""
    rng = np.random.default_rng(seed)
    laws = [noise.ZeroInflated(noise.Pareto(1.1, scale=20), share) for share in zeros]
    rewards = [law.sample(rng, (20_000,)) for law in laws]
    return np.concatenate(rewards), np.repeat(np.arange(len(zeros)), 20_000)


def test_a_cap_helps_soon() -> None:
    bandit = environments.from_records(*revenue(0.7, 0.8, 0.9), aim=CappedMean(0.99))
    tools: dict[str, Policy[Any]] = {"plain": UCB1(), "capped": Capped(UCB1())}
    result = simulate(tools, bandit, horizon=5000, paths=20)
    assert result.mean("plain")[-1] > 1.5 * result.mean("capped")[-1]


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [(0.7, 0.8, 0.9), (0.9, 0.95, 0.97)])
def test_the_tool_for_revenue_beats_plain_ucb1_in_capped_means(zeros: tuple[float, ...]) -> None:
    bandit = environments.from_records(*revenue(*zeros), aim=CappedMean(0.99))
    tools: dict[str, Policy[Any]] = {"plain": UCB1(), "advised": RevenueUCB()}
    result = simulate(tools, bandit, horizon=20_000, paths=50)
    assert result.mean("plain")[-1] >= 3 * result.mean("advised")[-1]


def test_a_cap_does_not_care_for_units() -> None:
    rewards, arms = revenue(0.7, 0.8, 0.9)
    regrets = []
    for unit in (1.0, 1024.0, 1e-6):
        bandit = environments.from_records(unit * rewards, arms, aim=CappedMean(0.99))
        result = simulate({"": Capped(UCB1())}, bandit, horizon=600, paths=5)
        regrets.append(result.mean("")[-1] / unit)
    assert regrets[1:] == pytest.approx([regrets[0]] * 2)


@pytest.mark.parametrize("seen", [16, 64, 256])
def test_a_cap_is_that_of_the_purchases_so_far(seen: int) -> None:
    """Against plain NumPy, at ages at which the policy inside learns everything again."""
    rng = np.random.default_rng(16)
    rewards, chosen = rng.standard_cauchy((seen, 2, 1)), rng.integers(3, size=(seen, 2))
    rewards[rng.random(rewards.shape) < 0.5] = 0
    policy, known = Capped(UCB1(), share=0.9), np.zeros(2, dtype=int)
    state, arms = policy.init(2, 3, 3), np.broadcast_to(np.eye(3), (2, 3, 3))
    for t, (row, arm) in enumerate(zip(rewards, chosen, strict=True)):
        due = state.sales.due.copy()
        policy.learn(state, arms, arm, row)
        known[due != state.sales.due] = t + 1
    for path, last in enumerate(known):
        x, arm = rewards[:, path, 0], chosen[:, path]
        exact = CappedMean(0.9).range([x[:last][arm[:last] == a] for a in range(3)])
        low, high = (end[path] for end in state.sales.range)
        np.testing.assert_array_less(np.abs(exact), np.abs((low, high)) + 1e-9)
        np.testing.assert_array_less(np.abs((low, high)), np.abs(exact) * 2**0.25 + 1e-9)
        cut = np.clip(x, low, high)
        cut /= cut.std() or 1
        sums = [cut[arm == a].sum() for a in range(3)]
        np.testing.assert_allclose(state.inner.sums[path], sums, rtol=1e-5, atol=1e-9)


def test_a_cap_is_learned_as_long_as_rewards_come() -> None:
    """The unit stays after 256 purchases, and the first decisions are dropped."""
    rng = np.random.default_rng(17)
    policy = Capped(UCB1(), share=0.9)
    state, arms = policy.init(1, 1, 1), np.ones((1, 1, 1))
    for t in range(600):
        unit, before = state.unit.copy(), state.inner.sums.copy()
        reward = rng.exponential() + 1000 * (t > 300)
        policy.learn(state, arms, [0], [[reward]])
        assert (state.pilot_rewards.shape[1] > 0) == (t < 255)  # gone with the 256th
        assert t < 256 or (state.unit == unit).all()
    assert state.sales.range[1][0] > reward  # learned last after more than 300 rewards above 1000
    lesson = (reward / state.sales.unit - state.offset) / state.unit
    np.testing.assert_allclose(state.inner.sums[:, 0] - before[:, 0], lesson, rtol=1e-5)


@pytest.mark.parametrize("age", [50, 64, 100])
def test_a_cap_is_never_zero(age: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first purchase counts, also if it comes after the decisions that are learned again."""
    monkeypatch.setattr("tailproof.wrappers.capped._FIRST", 64)
    policy, arms = Capped(UCB1()), np.eye(2)[None]
    state = policy.init(1, 2, 2)
    for t in range(age):
        policy.learn(state, arms, [t % 2], [[20.0 * (t == age - 1)]])
    assert 20 <= state.sales.range[1][0] < 20 * 2**0.25
    # in units of the deviation of rewards of which one is 20 and the others are zero
    assert state.inner.sums.sum() == pytest.approx(np.sqrt(age), rel=0.02)


def test_a_cap_leaves_what_all_rewards_have_in_common() -> None:
    """A ridge regression would shrink towards zero, and stay with its first arm."""
    rng = np.random.default_rng(18)
    for sign in (1, -1):
        policy, arms = Capped(OFUL()), np.broadcast_to(np.eye(3), (9, 3, 3))
        state, last = policy.init(9, 3, 3), []
        for _ in range(1000):
            chosen = policy.choose(state, arms, rng)
            latency = 5000 + 100 * sign * chosen + 100 * rng.standard_normal(9)
            policy.learn(state, arms, chosen, sign * latency[:, None])
            last.append(chosen)
        assert np.mean(np.array(last[500:]) == 2) > 0.8


# Records as an environment


def test_records_have_their_own_law_and_regret_under_every_aim() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.exponential(size=400), rng.normal(2, 1, 600)
    rewards, arms = np.concatenate([a, b]), ["arm 2"] * 400 + ["arm 10"] * 600
    for aim in (Median(), Mean(), Quantile(0.9), CappedMean(0.9)):
        bandit = environments.from_records(rewards, arms, aim=aim)
        values = aim.values([np.sort(a), np.sort(b)])
        np.testing.assert_allclose(np.array(bandit.theta), values)
        result = simulate({"": Uniform()}, bandit, horizon=100, paths=50)
        mean = result.mean("")[-1]
        assert mean == pytest.approx(50 * np.ptp(values), rel=0.1)  # 7 standard errors
        law = bandit.noise.laws[0]  # type: ignore[union-attr]
        drawn = values[0] + law.sample(rng, (1000,))
        assert np.abs(drawn[:, None] - a).min(axis=1).max() < 1e-12
    costs = environments.from_records(rewards, arms, aim=Quantile(0.9), costs=True)
    expected = np.array([-np.quantile(x, 0.9) for x in (a, b)])
    np.testing.assert_allclose(np.array(costs.theta), expected, rtol=0.02)


# Advice


def two_skewed_arms(n: int = 4000) -> tuple[Array, Array]:
    """Log-normal, with means 18.8 and 14.7 and medians 10.2 and 13.1."""
    rng = np.random.default_rng(8)
    shapes = [(10.2, 18.8), (13.1, 14.7)]
    samples = [
        median * np.exp(np.sqrt(2 * np.log(mean / median)) * rng.standard_normal(n))
        for median, mean in shapes
    ]
    return np.concatenate(samples), np.repeat(["first", "second"], n)


@pytest.mark.parametrize(
    ("aim", "arm"), [(Mean(), "first"), (Median(), "second"), (Quantile(0.9), "first")]
)
def test_every_aim_finds_the_arm_it_names(aim: Aim, arm: str) -> None:
    """In 38 of 40 paths or more, most of the later half of the pulls are of that arm.

    On five seeds they were in all paths, and at most a quarter of them were of the other arm.
    """
    rewards, arms = two_skewed_arms()
    advice = calibrate(reward=rewards, arm=arms, aim=aim)
    assert advice.leaders[aim.name].arm == arm
    assert f"{aim.name}: {arm} ({'never sure' if aim == Mean() else 'sure'}" in str(advice)
    bandit = environments.from_records(rewards, arms, aim=aim)
    half = simulate({"": advice.policy()}, bandit, horizon=4000, paths=40, checkpoints=2)
    regret, gap = half.curves[""].regret, float(np.ptp(np.array(bandit.theta)))
    wrong = (regret[:, 1] - regret[:, 0]) / gap / 2000
    assert np.sum(wrong < 0.5) >= 38


def test_skewed_rewards_lead_to_a_choice() -> None:
    rewards, arms = two_skewed_arms()
    advice = calibrate(reward=rewards, arm=arms)
    with pytest.raises(ValueError, match=r"median \(second leads\), mean \(first leads\)"):
        advice.policy()
    assert isinstance(advice.policy(Median()), Filtered)
    assert "mean: RevenueUCB(share=0.998)" in str(advice)


CASES: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "light": (lambda r: 5 + r.normal(size=2000), {}, UCB1),
    "light, linear": (lambda r: 5 + r.normal(size=2000), {"dim": 3, "horizon": 9000}, OFUL),
    "cauchy": (lambda r: r.standard_cauchy(2000), {}, LinStudentUCB),
    "cauchy, linear": (lambda r: r.standard_cauchy(2000), {"dim": 3}, LinStudentUCB),
    "a quantile": (lambda r: r.pareto(1.2, 2000), {"aim": Quantile(0.9)}, OrderStatisticUCB),
    "a quantile, linear": (
        lambda r: r.pareto(1.2, 2000),
        {"aim": Quantile(0.9), "dim": 3},
        Filtered,
    ),
    "a median": (lambda r: r.pareto(1.2, 2000), {"aim": Median()}, Filtered),
    "a median, linear": (lambda r: r.pareto(1.2, 2000), {"aim": Median(), "dim": 2}, Filtered),
    "a cap": (lambda r: r.pareto(1.2, 2000), {"aim": CappedMean(0.9)}, RevenueUCB),
    "a cap, linear": (lambda r: r.pareto(1.2, 2000), {"aim": CappedMean(0.9), "dim": 2}, Capped),
    "a median of light tails": (lambda r: r.exponential(size=2000), {"aim": Median()}, Filtered),
    "a mean of symmetric ones": (lambda r: r.standard_t(1.5, 2000), {"aim": Mean()}, LinStudentUCB),
    "a mean": (lambda r: r.exponential(size=2000), {"aim": Mean()}, RevenueUCB),
    "a mean, linear": (lambda r: r.exponential(size=2000), {"aim": Mean(), "dim": 2}, Capped),
    "a slow mean": (lambda r: r.pareto(1.35, 20_000), {"aim": Mean()}, RevenueUCB),
    "a slow mean, linear": (lambda r: r.pareto(1.35, 20_000), {"aim": Mean(), "dim": 2}, Capped),
    "visitors": (
        lambda r: np.where(r.random(2000) < 0.1, r.pareto(1.5, 2000), 0),
        {"aim": CappedMean(), "features": np.eye(2000, 3)},
        LinRevenueUCB,
    ),
    "visitors, symmetric": (
        lambda r: r.standard_cauchy(2000),
        {"features": np.eye(2000, 3)},
        LinStudentUCB,
    ),
    "costs": (lambda r: r.pareto(1.2, 2000), {"aim": Quantile(0.95), "costs": True}, Negated),
}


@pytest.mark.parametrize("name", CASES)
def test_the_tool_and_its_code(name: str) -> None:
    """The code to paste makes the policy that is advised."""
    draw, settings, kind = CASES[name]
    advice = calibrate(reward=draw(np.random.default_rng(9)), **settings)
    policy = advice.policy()
    assert type(policy) is kind
    scope: dict[str, Any] = {"visitor": [0.1, 0.2, 0.3]}
    code = advice.code().replace('"decisions.db"', '":memory:"').replace("…", "[0.1, 0.2, 0.3]")
    exec(code.replace("reward)", "1.5)"), scope)
    assert scope["agent"].policy == policy
    assert scope["choice"].propensity is not None
    assert scope["choice"].arm in ("arm 1", "arm 2")
    table = tomllib.loads(advice.service())["experiments"]["shop"]
    found = Settings.of("shop", table)
    assert found.policy == policy
    assert found.recipe.explore == scope["agent"].recipe.explore == explored(policy)


@pytest.mark.parametrize("name", CASES)
def test_what_is_advised_gives_both_arms_a_chance(name: str) -> None:
    """Two arms that are alike: most requests could have got either, and the journal says so.

    With random choices beside the policy all could; a policy that draws its choices leaves an arm
    without a chance while the other has both the larger mean and the wider bound.
    """
    draw, settings, _ = CASES[name]
    rng = np.random.default_rng(9)
    policy = calibrate(reward=draw(rng), **settings).policy()
    offer = {arm: np.eye(2, 3)[i] for i, arm in enumerate(("a", "b"))}
    agent = Agent(policy, ":memory:", explore=explored(policy))
    for reward in rng.pareto(1.5, 200):
        agent.tell(agent.ask(offer).id, reward)
    shares = np.stack(read(agent.journal).frame["shares"])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares > 0).all(axis=1).mean() >= (1 if explored(policy) else 0.5)


def test_clicks_have_no_median_to_speak_of() -> None:
    clicks = np.random.default_rng(18).random(900) < 0.1
    advice = calibrate(reward=clicks, arm=["a", "b", "c"] * 300)
    assert isinstance(advice.policy(Mean()), RevenueUCB)
    with pytest.raises(ValueError, match="the median cannot tell your arms apart"):
        advice.policy(Median())


def test_costs_are_negated_with_the_other_quantile() -> None:
    rng = np.random.default_rng(10)
    rewards, arms = rng.exponential(size=400), ["a", "b"] * 200
    advice = calibrate(reward=rewards, arm=arms, aim=Quantile(0.95), costs=True)
    assert advice.policy() == Negated(OrderStatisticUCB(quantile=0.05))
    table = calibrate(reward=rewards, arm=arms, aim=Quantile(0.95)).estimates
    np.testing.assert_array_equal(advice.estimates["quantile(0.95)"], table["quantile(0.95)"])


def test_of_costs_the_smallest_leads() -> None:
    rng = np.random.default_rng(17)
    costs = np.concatenate(
        [rng.normal(size=300), 5 + rng.normal(size=300), 9 + rng.normal(size=300)]
    )
    arms = np.repeat(["cheap", "dear", "dearest"], 300)
    for sign, arm in ((True, "cheap"), (False, "dearest")):
        leaders = calibrate(reward=costs, arm=arms, costs=sign).leaders
        assert set(leaders.values()) == {(arm, True, ())}
    close = np.concatenate([costs[:300], costs[:300] + 0.01, costs[600:]])
    lead = calibrate(reward=close, arm=arms, costs=True).leaders["median"]
    assert lead == ("cheap", False, ("dear",))


def test_no_mean_no_aim_of_the_mean() -> None:
    advice = calibrate(reward=np.random.default_rng(11).pareto(0.5, 3000), aim=Mean())
    with pytest.raises(
        ValueError, match=r"the mean cannot be the aim .* Your rewards have no mean.*Next: aim at"
    ):
        advice.policy()


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        (
            lambda r: np.where(r.random(5000) < 0.95, 0, r.exponential(size=5000)),
            "95% are 0. A mean",
        ),
        (
            lambda r: np.where(r.random(900) < 0.97, 0, r.pareto(1, 900)),
            "are too few to estimate a tail index",
        ),
        (lambda r: r.integers(1, 6, 500), "can be relied on as long as all lie between 1 and 5"),
        (
            lambda r: r.normal(size=9000) * np.where(r.random(9000) < 0.05, 100, 1),
            "far more extreme than",
        ),
        (lambda r: r.standard_t(1.3, 70), "too few rewards to tell whether a mean"),
        (lambda r: r.poisson(3, 500), "A mean of your rewards can be relied on (tail index"),
    ],
)
def test_the_verdict_names_what_it_sees(rewards: Any, words: str) -> None:
    assert words in calibrate(reward=rewards(np.random.default_rng(12))).rewards.verdict


@pytest.mark.parametrize("unit", [1e-310, 1e300])
def test_units_beyond_floats_are_refused(unit: float) -> None:
    with pytest.raises(ValueError, match=r"rewards must have a spread of 1e-150 to .* change"):
        calibrate(reward=unit * np.random.default_rng(0).random(100))


@pytest.mark.filterwarnings("error")
def test_infinite_rewards_are_legitimate() -> None:
    rng = np.random.default_rng(0)
    few = np.append(rng.normal(size=400), [np.inf, -np.inf])
    many = np.where(rng.random(402) < 0.4, np.inf, rng.random(402))
    for rewards in (few, many):
        for aim in (None, *calibrate(reward=few).aims):
            assert str(calibrate(reward=rewards, arm=["a", "b"] * 201, aim=aim))


def test_no_dead_end() -> None:
    """Mostly zeros and a wild rest: no filter, but a verdict, a table and policies to run."""
    rng = np.random.default_rng(13)
    sales = np.where(rng.random(5000) < 0.95, 0, rng.pareto(0.7, 5000))
    advice = calibrate(reward=sales, arm=["a", "b"] * 2500, horizon=1000, dim=2)
    assert advice.calibration is None
    with pytest.raises(ValueError, match=r"cannot tell arms apart.*96% are 0.*Next: maximise"):
        _ = advice.scale
    assert "capped_mean(0.99): Capped(" in str(advice)
    assert calibrate(reward=sales, aim=CappedMean(0.99)).policy() == RevenueUCB()


def test_arms_that_are_not_alike_are_not_pooled_silently() -> None:
    rng = np.random.default_rng(14)
    narrow, wide = rng.normal(size=500), 1000 * rng.normal(size=500)
    arms = np.repeat(["narrow", "wide"], 500)
    advice = calibrate(reward=np.concatenate([narrow, wide]), arm=arms)
    assert "wide is" in advice.rewards.verdict
    assert advice.rewards.mean_is_safe
    assert advice.scale == pytest.approx(1000, rel=0.2)
    heavy = np.concatenate([narrow, rng.standard_cauchy(500)])
    found = Rewards.of(heavy, np.repeat(["narrow", "heavy"], 500))
    assert "Arm heavy has a heavier tail than the others" in found.verdict
    assert not found.mean_is_safe
    advised = calibrate(reward=np.concatenate([heavy[500:], 9 * heavy[500:]]), arm=arms)
    assert advised.policy() == LinStudentUCB()


def test_block_one_is_not_advised_where_another_is_three_times_better() -> None:
    rng = np.random.default_rng(15)
    wild = rng.standard_t(1.8, 100_000)
    advice = calibrate(reward=wild)
    assert advice.pulls > 1
    assert isinstance(advice.policy(), LinStudentUCB)
    assert calibrate(reward=rng.standard_t(3, 5000)).pulls == 1


# What is said holds


def money(rng: np.random.Generator, n: int, buyers: float = 0.03, tail: float = 1.5) -> Array:
    return np.where(rng.random(n) < buyers, 20 * (1 + rng.pareto(tail, n)), 0.0)


@pytest.mark.parametrize("few", [1, 3, 20, 100])
def test_equal_arms_are_never_surely_different(few: int) -> None:
    """Of 60 runs at most 5 % are wrong, within a false alarm of 1e-5."""
    rng, wrong = np.random.default_rng(18), {"mean": 0, "capped_mean(0.99)": 0, "median": 0}
    for _ in range(60):
        rewards = np.append(money(rng, 5000), money(rng, few))
        advice = calibrate(reward=rewards, arm=["a"] * 5000 + ["b"] * few)
        for aim in wrong:
            wrong[aim] += advice.leaders[aim].sure
    assert max(wrong.values()) <= stats.binom.ppf(1 - FALSE_ALARM, 60, 0.05)


def test_an_arm_with_few_rewards_stays_a_rival_in_plain_words() -> None:
    rng = np.random.default_rng(19)
    rewards = np.concatenate([1 + money(rng, 4000), np.zeros(3)])
    advice = calibrate(reward=rewards, arm=["a"] * 4000 + ["b"] * 3)
    assert advice.leaders["median"] == ("a", False, ("b",))
    told = str(advice)
    assert "too few to say" in told
    assert "too few rewards of b to say" in told
    assert "nan" not in told
    assert "inf" not in told


def test_equal_medians_lead_nothing() -> None:
    rng = np.random.default_rng(20)
    rewards = np.append(money(rng, 3000, 0.4), money(rng, 3000, 0.2))
    advice = calibrate(reward=rewards, arm=np.repeat(["a", "b"], 3000))
    assert advice.leaders["median"] == (None, False, ("a", "b"))
    assert "median: nothing leads, as a and b have equal estimates" in advice.explain()
    assert "median (no arm leads)" in str(advice)


def test_the_intervals_of_all_arms_hold_together() -> None:
    """Each of K intervals has the level 1 − 0.05/K."""
    rewards = np.random.default_rng(21).standard_cauchy(4000)
    advice = calibrate(reward=rewards, arm=np.tile(list("abcd"), 1000))
    for place, (_, low, high) in enumerate(advice.estimates["median"]):
        assert (low, high) == quantile_interval(rewards[place::4], 0.5, 1 - (1 - LEVEL) / 4)


def test_the_same_arms_in_any_order_unit_or_label_give_the_same_page() -> None:
    rng = np.random.default_rng(22)
    rewards = np.append(money(rng, 2000, 0.1, 3.0), money(rng, 3000, 0.05, 3.0))
    arms = np.repeat(["a", "b"], [2000, 3000])
    shuffled = rng.permutation(5000)
    first = calibrate(reward=rewards, arm=arms, aim=CappedMean())
    again = calibrate(reward=rewards[shuffled], arm=arms[shuffled], aim=CappedMean())
    assert again.leaders == first.leaders
    for aim, table in first.estimates.items():
        np.testing.assert_allclose(again.estimates[aim], table, rtol=1e-9)
    pair, other_pair = (found.standing.pair(0, 1) for found in (first, again))
    assert (pair.low, pair.high) == pytest.approx((other_pair.low, other_pair.high))
    other = calibrate(reward=rewards, arm=np.where(arms == "a", "z", "b"), aim=CappedMean())
    assert other.leaders["capped_mean(0.99)"].arm == "z"
    assert other.table()[1] == first.table()[0] | {"arm": "z"}
    unit = calibrate(reward=1024 * rewards, arm=arms, aim=CappedMean())
    assert unit.leaders == first.leaders
    for aim, table in first.estimates.items():
        np.testing.assert_allclose(unit.estimates[aim], 1024 * table, rtol=1e-9)


def test_how_many_more_rewards_would_make_it_sure() -> None:
    """Clicks of 12 and 10 %: it is sure with as many more as forecast, and not with fewer."""
    clicks = [np.repeat([0.0, 1.0], [2000 - k, k]) for k in (240, 200)]
    found = Comparison.of(Mean().among(clicks), "ab", clicks)
    assert found.lead == ("a", False, ("b",))
    needed = found.forecast()
    assert needed is not None
    assert needed.regret == pytest.approx(0.02 * needed.rewards / 2)
    for share, sure in ((1.04, True), (0.92, False)):
        times = 1 + share * needed.rewards / 2 / 2000
        grown = [
            np.repeat([0.0, 1.0], [round(times * (2000 - k)), round(times * k)]) for k in (240, 200)
        ]
        assert Comparison.of(Mean().among(grown), "ab", grown).lead.sure is sure


def test_a_mean_without_bounds_says_what_it_rests_on() -> None:
    rng = np.random.default_rng(23)
    rewards = money(rng, 4000)
    advice = calibrate(reward=rewards, arm=["a", "b"] * 2000)
    mean, low, high = advice.table()[0]["mean"]
    assert mean == pytest.approx(rewards[::2].mean())
    assert low is high is None
    assert "No interval holds for a mean without a bound: the ten largest" in advice.explain()
    light = calibrate(reward=rng.normal(size=4000) + np.tile([0, 9], 2000), arm=["a", "b"] * 2000)
    assert light.leaders["mean"] == ("b", True, ())
    assert "For mean rewards are assumed to lie between" in light.explain()


def test_a_location_is_learned_where_the_median_is_sure_of_the_same_arm() -> None:
    rng = np.random.default_rng(24)
    rewards = np.append(rng.exponential(1, 2000), rng.exponential(3, 2000))
    arms = np.repeat(["a", "b"], 2000)
    advice = calibrate(reward=rewards, arm=arms, aim=CappedMean())
    assert "The median and capped_mean(0.99) are sure of the same arm" in str(advice)
    assert advice.policy() == LinStudentUCB()
    other = np.append(rng.exponential(2, 2000), 1.7 + rng.random(2000) / 100)
    disagree = calibrate(reward=other, arm=arms, aim=CappedMean())
    assert disagree.leaders["median"] == ("b", True, ())
    assert disagree.leaders["capped_mean(0.99)"].arm == "a"
    assert disagree.policy() == RevenueUCB()


def test_features_of_visitors_are_read_and_checked(tmp_path: Path) -> None:
    rng = np.random.default_rng(25)
    rows = [f"{x:.2f},{'ab'[i % 2]},{i % 7},{i % 3}" for i, x in enumerate(money(rng, 400, 0.2))]
    file = tmp_path / "r.csv"
    file.write_text("\n".join(["revenue,variant,age,visits", *rows]))
    start = f"calibrate {file} --reward revenue --arm variant --aim 'capped_mean(0.99)'"
    output = run(f"{start} --features age,visits")
    assert "agent = Agent(LinRevenueUCB()" in output
    assert "features.share(['a', 'b'], visitor)" in output
    assert "reward and features name the same column, revenue" in run(
        f"{start} --features age,revenue", 2
    )
    file.write_text(file.read_text().replace(",0,0\n", ",,0\n", 1))
    assert "column age has no number in line 2: mend it" in run(f"{start} --features age", 2)
    phone = pd.DataFrame({"arm": ["a", "b"] * 30, "reward": 1.0, "móvil": ["sí", "no", "no"] * 20})
    with pytest.raises(
        ValueError, match=r"must contain numbers \(1 and 0 for yes and no\), got 'sí'"
    ):
        calibrate(phone, features=["móvil"])
    with pytest.raises(ValueError, match=r"features must be of shape \(60, d\)"):
        calibrate(reward=np.arange(60.0), features=np.ones((59, 2)))


def test_a_feature_that_never_changes_is_left_out() -> None:
    rng = np.random.default_rng(3)
    rewards, arms = np.where(rng.random(400) < 0.1, 20 + rng.random(400), 0), np.arange(400) % 2
    x = np.column_stack([np.ones(400), rng.random(400)])
    some = calibrate(reward=rewards, arm=arms, features=x, aim=CappedMean())
    assert (some.features, some.constant) == (1, 1)
    assert isinstance(some.policy(), LinRevenueUCB)
    assert "1 feature with one value for all visitors" in some.explain()
    assert "# 1 feature of the visitor" in some.code()
    none = calibrate(reward=rewards, arm=arms, features=x[:, :1], aim=CappedMean())
    assert isinstance(none.policy(), RevenueUCB)


def test_no_tool_is_advised_whose_estimate_is_the_same_for_all_arms() -> None:
    """3 in 1000 visitors buy, so every quantile up to 0.99 is zero."""
    rng = np.random.default_rng(4)
    rewards = np.where(rng.random(6000) < 0.003, rng.lognormal(3, 1, 6000), 0)
    advice = calibrate(reward=rewards, arm=np.arange(6000) % 3)
    assert "more than 99% are 0" in advice.explain()
    for aim in (Median(), Quantile(0.95), Quantile(0.99)):
        with pytest.raises(ValueError, match="cannot tell"):
            advice.policy(aim)
    assert isinstance(advice.policy(CappedMean()), RevenueUCB)
    assert "OrderStatisticUCB(quantile=0.95)" not in str(advice)
    advice.policy(Quantile(0.9995))


def test_records_without_a_purchase_say_nothing() -> None:
    with pytest.raises(ValueError, match=r"^all 60 rewards are 0, .* RevenueUCB\(\), which needs"):
        calibrate(reward=np.zeros(60), arm=np.arange(60) % 2)


# The command


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def write(file: Path, rewards: Any, arms: Any = None) -> Path:
    names = ["a"] * len(rewards) if arms is None else arms
    rows = [f"{reward},{name}" for reward, name in zip(rewards, names, strict=True)]
    file.write_text("\n".join(["revenue,variant", *rows]))
    return file


def test_the_command_reads_judges_and_draws(tmp_path: Path) -> None:
    values: list[Any] = np.random.default_rng(0).standard_cauchy(300).tolist()
    values[3], values[70] = "", "NaN"
    file, picture = write(tmp_path / "r.csv", values, ["a", "b"] * 150), tmp_path / "r.png"
    command = f"calibrate {file} --reward revenue --arm variant --plot {picture}"
    output = run(command)
    assert "2 missing rewards were left out" in output
    assert "from tailproof import LinStudentUCB" in output
    assert "median: " in output
    assert picture.stat().st_size > 5000
    assert "plot must be a file that does not exist yet" in run(command, code=2)
    assert "Pull each chosen arm 9 times" in run(f"calibrate {file} --reward revenue --block 9")


def test_rewards_of_one_arm_have_no_leader(tmp_path: Path) -> None:
    rewards = np.exp(np.random.default_rng(0).standard_normal(300))
    advice = calibrate(reward=rewards)
    with pytest.raises(ValueError, match=r"choose an aim: median, mean, capped_mean\(0\.99\) or q"):
        advice.policy()
    assert "leads" not in str(advice)
    file = tmp_path / "r.csv"
    file.write_text("r\n" + "\n".join(map(str, rewards)))
    done = CliRunner().invoke(app, ["calibrate", str(file), "--reward", "r"])
    assert done.output.endswith("for example --aim 'capped_mean(0.99)'.\n")
    done = CliRunner().invoke(app, ["calibrate", str(file), "--reward", "r", "--aim", "median"])
    assert "--aim" not in done.output


def test_the_command_takes_an_aim_and_costs(tmp_path: Path) -> None:
    file = write(
        tmp_path / "r.csv", np.random.default_rng(1).pareto(1.2, 300), ["a", "b", "c"] * 100
    )
    start = f"calibrate {file} --reward revenue --arm variant"
    assert "Negated(OrderStatisticUCB(quantile=0.05" in run(
        f"{start} --aim 'quantile(0.95)' --costs"
    )
    assert "RevenueUCB(share=0.9)" in run(f"{start} --aim 'capped_mean(0.9)'")
    assert "aim must be one of capped_mean, location, mean, median, quantile" in run(
        f"{start} --aim mode", 2
    )
    assert "dim must be a whole number of at least 1" in run(f"{start} --dim 0", 2)


@pytest.mark.parametrize(
    ("rewards", "options", "words"),
    [
        ([4] * 60, "", "all 60 rewards are 4, so they cannot tell arms apart"),
        ([""] * 60, "", "at least 50 rewards are needed"),
        (range(60), "--block 31", "block must be at most 12, a fifth of the rewards, got 31"),
        (range(20), "", "at least 50 rewards are needed, got 20"),
        (range(60), "--efficiency 2", "efficiency must be a number above 0 and at most 1"),
        (range(60), "--delta 1", "delta must be a number above 0 and below 1"),
    ],
)
def test_bad_records_get_one_sentence(
    tmp_path: Path, rewards: Any, options: str, words: str
) -> None:
    file = write(tmp_path / "r.csv", rewards)
    output = run(f"calibrate {file} --reward revenue {options}", code=2)
    assert output.startswith("tailproof: ")
    assert words in output


def test_an_arm_with_one_reward_is_a_rival(tmp_path: Path) -> None:
    file = write(tmp_path / "r.csv", range(60), ["a"] * 59 + ["b"])
    output = run(f"calibrate {file} --reward revenue --arm variant")
    assert "median: a (not sure against b; too few rewards of b to say)" in output
    assert "a file that exists" in run(f"calibrate {tmp_path}/none.csv --reward x", code=2)


# By hand


def test_a_quantile_needs_rewards_on_both_sides() -> None:
    least = Quantile(0.95).least
    samples = [np.arange(n * 1.0) for n in (200, least, least - 1)]
    found = Comparison.of(Quantile(0.95).among(samples), "abc", samples)
    assert np.isfinite(found.values).tolist() == [True, True, False]
    assert [pair is None for pair in found.intervals] == [False, True, True]
    assert found.lead == ("a", False, ("b", "c"))


def test_rounded_rewards_are_compared_with_care() -> None:
    """What is said of rewards that are known up to rounding holds wherever they are."""
    a, b = np.linspace(1, 2, 500), np.linspace(0, 1, 500)
    exact = Comparison.of(Median().among([a, b]), "ab", [a, b])
    assert exact.lead == ("a", True, ())
    wide = Comparison.of(Median().among([a, b]), "ab", [a - 0.5, b], [a, b + 0.8])
    assert wide.lead == ("a", False, ("b",))
    assert wide.values.tolist() == pytest.approx([1.25, 0.9])
    sizes = [(table[:, 2] - table[:, 1]).tolist() for table in (wide.table, exact.table)]
    assert sizes[0] == pytest.approx([sizes[1][0] + 0.5, sizes[1][1] + 0.8])


def test_zeros_are_a_share() -> None:
    rewards = np.tile([0.0, 1.0, 2.0, 4.0], 50)
    (row,) = calibrate(reward=rewards).table()
    assert (row["n"], row["zeros"]) == (200, 0.25)


def test_a_block_has_rewards_beyond_its_quantile_on_the_shorter_side() -> None:
    """Costs are the same advice as their opposites with the opposite quantile."""
    x = np.random.default_rng(3).pareto(1.2, 900)
    low: Any = calibrate(reward=-x, aim=Quantile(0.1), dim=2).policy()
    assert low.repeats == 29  # about 3 of which are below
    assert calibrate(reward=x, aim=Quantile(0.9), dim=2, costs=True).policy() == Negated(low)


def test_the_deviation_is_pooled() -> None:
    rng = np.random.default_rng(4)
    samples = rng.normal(size=300), 5 + rng.normal(0, 2, size=900)
    arms = np.repeat(["a", "b"], [300, 900])
    policy: Any = calibrate(reward=np.concatenate(samples), arm=arms, aim=Mean()).policy()
    pooled = math.sqrt(sum(len(x) * x.var() for x in samples) / 1200)
    assert policy.bonus == pytest.approx(pooled, rel=0.005)


def shop_of(rows: traffic.Rows, **more: Any) -> Advice:
    names = np.array(["old", "new", "other"])
    return calibrate(arm=names[rows.arm], reward=rows.reward, aim=CappedMean(), **more)


def test_customers_are_told_apart_and_days_compared() -> None:
    """Wholesale customers make rows look sure; their totals do not."""
    rng, naive, told = np.random.default_rng(0), 0, 0
    for _ in range(12):
        world = traffic.Returning(rows=5000, heavy=15, their_share=0.4, buyers=0.3)
        rows = world.draw(rng)
        naive += shop_of(rows).standing.sure
        found = shop_of(rows, unit=rows.unit, time=rows.time)
        told += found.standing.sure
        assert "customers, each with one arm" in found.explain()
        assert found.table()[0]["n"] < 3000
    assert told <= 2 < naive
    assert "Each row is taken to be another customer" in shop_of(rows).explain()


def test_a_control_and_a_plan_are_said() -> None:
    rows = traffic.Returning(rows=30_000, lifts=(1.0, 2.0, 1.0)).draw(np.random.default_rng(1))
    found = shop_of(rows, unit=rows.unit, time=rows.time, control="old", split="even")
    told = found.explain()
    assert "new earns " in told
    assert "That is better, p = 0.00" in told
    assert "better and worse are for all 2 arms at once (Holm's one-sided p)" in told
    assert "The arms have their planned shares, as far as" in told
    assert found.findings == []
    uneven = shop_of(rows, unit=rows.unit, split={"old": 0.4, "new": 0.3, "other": 0.3})
    assert "The arms do not have their planned shares" in uneven.explain()
    assert "The arms have their planned shares" not in uneven.explain()
    assert not uneven.standing.sure
    with pytest.raises(ValueError, match="control must be one of"):
        shop_of(rows, control="nobody")


def test_a_sure_leader_is_better_than_the_control() -> None:
    """Holm's p of one of two arms may exceed 2.5 % where the lead over both others is sure."""
    rng, closely, together = np.random.default_rng(7), 0, 0
    for _ in range(30):
        arm = rng.choice(["old", "same", "new"], 1500)
        spent = rng.exponential(5.0, 1500) * np.where(arm == "new", 1.19, 1.0)
        advice = calibrate(reward=spent, arm=arm, control="old", aim=CappedMean(0.99))
        (line,) = (told for told in about_control(advice.standing, "old") if told[:3] == "new")
        if advice.standing.sure:
            assert "That is better" in line
            closely += "That is better, as its lead is sure." in line
        elif "That is not sure" in line:
            alone = advice.standing.pair(0, 1).low > 0
            assert ("not sure for all 2 arms at once" in line) == alone
            together += alone
    assert closely > 0
    assert together > 0


def test_a_mean_that_one_sale_would_move_is_that_of_the_table() -> None:
    """Customers have a mean of their own, and rows another."""
    rng = np.random.default_rng(3)
    rows: dict[str, Any] = {
        "arm": ["a", "b"] * 2000,
        "reward": money(rng, 4000),
        "unit": np.arange(4000) % 800,
    }
    advice = calibrate(**rows)
    (line,) = (line for line in advice.explain().splitlines() if line.startswith("No interval"))
    assert "the ten largest totals of customers of" in line
    means = [row["mean"][0] for row in advice.table()]
    assert any(f"would move the mean from {mean:.4g} to" in line for mean in means)


def test_the_bound_that_nobody_named_is_that_of_the_records() -> None:
    spent = np.repeat([0.0, 10.0, -5.0], [200, 100, 100])
    rows: dict[str, Any] = {"reward": spent, "arm": ["a", "b"] * 200}
    words = calibrate(**rows, largest=500.0).explain()
    assert "For mean rewards are at most 500, as you said, and at least -5, as here." in words
    words = calibrate(**rows, largest=500.0, smallest=-9.0).explain()
    assert "For mean rewards lie between -9 and 500, as you said." in words


def test_refunds_in_the_records_add_up_in_the_service_and_a_guessed_wait_is_said() -> None:
    spent = np.tile([0.0, 0.0, 0.0, 20.0, 0.0, 0.0, 30.0, -30.0], 100)
    rows: dict[str, Any] = {
        "reward": spent,
        "arm": np.repeat(["a", "b"], 400),
        "unit": np.arange(800) // 4,
    }
    advice = calibrate(**rows, aim=CappedMean(0.99))
    assert tomllib.loads(advice.service())["experiments"]["shop"]["rewards"] == "sum"
    assert "event=order" in advice.code()
    assert 'wait = "1d"  # within which a reward counts: a guess' in advice.service()
    alone = calibrate(reward=np.abs(spent), arm=rows["arm"], aim=CappedMean(0.99)).service()
    assert 'rewards = "sum"' not in alone
    assert "a guess" not in alone


def test_no_location_is_advised_where_the_aim_is_not_sure() -> None:
    """Capped means 2.84 and 2.90, medians the other way round: nothing but the median is sure."""
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(20):
        a = 2.4 + 0.2 * rng.standard_normal(400) + 1.1 * (rng.random(400) < 0.4)
        b = 2.2 + 0.2 * rng.standard_normal(400) + 2.35 * (rng.random(400) < 0.3)
        found = calibrate(reward=np.append(a, b), arm=np.repeat(["a", "b"], 400), aim=CappedMean())
        wrong += isinstance(found.policy(), LinStudentUCB)
    assert wrong <= 1


def test_any_look_takes_more_than_one() -> None:
    rows = traffic.Returning(rows=20_000, lifts=(1.0, 1.4)).draw(np.random.default_rng(4))
    one, any_look = (
        shop_of(rows, unit=rows.unit, looks=looks).standing.pair(1, 0) for looks in ("one", "any")
    )
    assert any_look.low < one.low
    assert "95%, any look" in shop_of(rows, unit=rows.unit, looks="any").explain()
    with pytest.raises(ValueError, match="looks must be 'one' or 'any'"):
        shop_of(rows, looks="two")


def test_one_unit_for_all_whom_nobody_knows_is_said() -> None:
    rng = np.random.default_rng(0)
    unit = np.where(np.arange(900) % 3 == 0, "anonymous", np.arange(900).astype(str))
    advice = calibrate(arm=rng.choice(["a", "b"], 900), reward=rng.exponential(5, 900), unit=unit)
    assert "One unit, that of row 1, has 33% of all rows and several arms" in advice.explain()


def test_a_file_of_one_day_is_not_one_without_times() -> None:
    rng = np.random.default_rng(0)
    time = 1_767_225_600 + np.arange(900)
    advice = calibrate(arm=rng.choice(["a", "b"], 900), reward=rng.exponential(5, 900), time=time)
    assert "All rows are of one day" in advice.explain()
    assert "No times are given" not in advice.explain()


def test_an_arm_whose_customers_were_all_left_out() -> None:
    rng = np.random.default_rng(0)
    arm = rng.choice(["a", "b"], 900)[np.arange(900) // 2]
    arm[7] = "c"
    advice = calibrate(arm=arm, reward=rng.exponential(5, 900), unit=np.arange(900) // 2)
    assert "c has sold nothing" in str(advice)


def test_refunds_below_the_cap_are_counted_and_named_by_arm() -> None:
    """Two customers of new bring less than 0, too few for the cap to have a lower end."""
    spent = np.repeat([0.0, 10.0, 0.0, 9.0, -30.0], [800, 200, 800, 198, 2])
    arm = np.repeat(["old", "new"], 1000)
    words = calibrate(arm=arm, reward=spent, control="old").explain()
    assert "2 rows below 0 (new 2) count as 0, refunds perhaps: 1.6% of the sum." in words
    assert "For capped_mean(0.99) rewards are capped at 0 and 10" in words
    assert "brought beyond it" not in words
    log = records(arm=arm, reward=spent, propensity=np.full(2000, 0.5))
    judged = judge(log, "new", CappedMean(0.99))
    assert "Rewards below 0 count as 0 (2 here)" in " ".join(judged.sentences())


def test_the_file_of_a_service_adds_up_orders_as_the_table_did() -> None:
    user = np.arange(100)
    seen = pd.DataFrame({"arm": ["a", "b"] * 50, "user": user, "at": 0.0})
    orders = pd.DataFrame({"user": [*user, 0, 0], "at": [*[9e5] * 100, 1.0, 2.0], "spent": 5.0})
    columns: dict[str, Any] = {"reward": "spent", "unit": "user", "window": "7d"}
    advice = calibrate(seen, events=orders, aim=CappedMean(0.99), **columns)
    assert 'rewards = "sum"' in advice.service()
    assert 'wait="7d", rewards="sum")' in advice.code()
    assert "agent.tell(choice.id, reward, event=order)" in advice.code()
    plain = calibrate(arm=["a", "b"] * 50, reward=np.arange(100.0), aim=CappedMean(0.99))
    assert "sum" not in plain.service() + plain.code()
