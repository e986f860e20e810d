"""Order statistics as bounds: exact theory, coverage, one-path references, what changes nothing.

Statistical tests use fixed seeds and fail sound code with a probability of at most 10⁻⁶ each.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom
from traces import play, row, trace_of

from tailproof import MedianUCB, OrderStatisticUCB, Policy
from tailproof.bestarm import QuantileElimination, QuantileLUCB
from tailproof.policies.state.quantile_bounds import ExactBounds, QuantileBounds, SketchedBounds
from tailproof.stats.order_statistics import (
    confidence,
    kl,
    log_binomial,
    log_mixture,
    pulls_bound,
    pulls_rate,
    rank,
)
from tailproof.testing.policies import invariances_hold
from tailproof.typing import Array

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

FALSE_ALARM = 1e-6
LEVELS = [0.1, 0.3, 0.5, 0.8, 0.95]
LAWS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "t₃": lambda rng, size: rng.standard_t(3, size),
    "t₁": lambda rng, size: rng.standard_cauchy(size),
    "t½": lambda rng, size: rng.standard_t(0.5, size),
    "Pareto": lambda rng, size: rng.pareto(0.5, size),
    "log-normal": lambda rng, size: np.exp(2 * rng.standard_normal(size)),
    "rounded": lambda rng, size: np.round(2 * rng.standard_normal(size)) / 2,
    "contaminated": lambda rng, size: np.where(
        rng.random(size) < 0.3, -np.inf, rng.standard_normal(size)
    ),
}


def mixture(n: int, s: int, pi: float) -> float:
    """Return M_n(s) from binomial sums: P(Beta(s + 1, n − s + 1) > π) = P(Bin(n + 1, π) ≤ s)."""
    head = sum(math.comb(n + 1, k) * pi**k * (1 - pi) ** (n + 1 - k) for k in range(s + 1))
    return head / ((n + 1) * math.comb(n, s) * pi**s * (1 - pi) ** (n - s + 1))


def tail(n: int, s: int, pi: float) -> float:
    """Return P(Bin(n, π) ≥ s)."""
    return sum(math.comb(n, k) * pi**k * (1 - pi) ** (n - k) for k in range(s, n + 1))


@pytest.mark.parametrize("pi", LEVELS)
def test_the_mixture_is_the_integral_and_the_sum(pi: float) -> None:
    for n, s in [(0, 0), (1, 1), (10, 3), (10, 10), (60, 40), (200, 190)]:
        integral, _ = quad(
            lambda q, n=n, s=s: (q / pi) ** s * ((1 - q) / (1 - pi)) ** (n - s),
            *(pi, 1),
            epsabs=0,
            limit=500,
            points=[max(s / n, pi)] if n else None,
        )
        found = float(log_mixture(n, s, pi))
        assert found == pytest.approx(math.log(integral / (1 - pi)), abs=1e-7)
        assert found == pytest.approx(math.log(mixture(n, s, pi)), abs=1e-9)


@pytest.mark.parametrize("pi", LEVELS)
def test_the_mixture_is_a_martingale_at_the_level(pi: float) -> None:
    n, s = np.array([(n, s) for n in range(60) for s in range(n + 1)]).T
    here, hit, miss = (np.exp(log_mixture(*at, pi)) for at in ((n, s), (n + 1, s + 1), (n + 1, s)))
    np.testing.assert_allclose(pi * hit + (1 - pi) * miss, here, rtol=1e-11)
    # Both steps in closed form, from the derivative of q^(s+1) (1 − q)^(n−s+1).
    np.testing.assert_allclose(hit, ((s + 1) * here / pi + 1) / (n + 2), rtol=1e-11)
    np.testing.assert_allclose(
        miss, ((n - s + 1) * here - pi) / ((n + 2) * (1 - pi)), rtol=1e-9, atol=1e-300
    )


@pytest.mark.parametrize("pi", LEVELS)
def test_evidence_is_at_least_the_relative_entropy(pi: float) -> None:
    n, s = np.array([(n, s) for n in range(1, 300) for s in range(n + 1) if s >= n * pi]).T
    least = n * kl(s / n, pi) - np.log(n + 1) - (0 if pi == 0.5 else math.log(2))
    assert (log_mixture(n, s, pi) >= least - 1e-9).all()
    n, s = np.array([(n, s) for n in range(300) for s in range(n + 1) if s <= n * pi]).T
    assert (log_mixture(n, s, pi) <= 1e-9).all()  # so that J > πn


@pytest.mark.parametrize("pi", LEVELS)
def test_ranks_are_those_of_a_search(pi: float) -> None:
    for f in (0.7, math.log(20), 9.0):
        for n in range(70):
            first = [s for s in range(n + 1) if mixture(n, s, pi) >= math.exp(f)] + [n + 1]
            assert rank(n, f, pi) == first[0]
            first = [s for s in range(n + 1) if tail(n, s, pi) <= math.exp(-f)] + [n + 1]
            assert rank(n, f, pi, log_binomial) == first[0]


@pytest.mark.parametrize("evidence", [log_mixture, log_binomial])
def test_evidence_that_is_just_enough_is_enough(evidence: Any) -> None:
    for s in (7, 10):
        assert rank(10, float(evidence(10, s, 0.5)), 0.5, evidence) == s


def test_the_bound_on_pulls_is_the_formula() -> None:
    f = float(confidence(10_000))
    for pi, union in ((0.5, 4), (0.3, 8)):
        expected = 4 / 0.04 * (f + math.log(union / 0.04)) + 2 / 0.04 + 3
        assert pulls_bound(0.2, 10_000, pi) == pytest.approx(expected)


@pytest.mark.parametrize("pi", LEVELS)
@pytest.mark.parametrize("f", [math.log(4), math.log(20)])
def test_ville_exactly(pi: float, f: float) -> None:
    """P(S_n ≥ J for some n ≤ 1500), step by step: at most e^−f, and not far below."""
    ranks = rank(np.arange(1501), f, pi)
    alive, crossed = np.ones(1), 0.0
    for n in range(1, 1501):
        alive = np.append(alive * (1 - pi), 0) + np.append(0, alive * pi)
        crossed += alive[ranks[n] :].sum()
        alive[ranks[n] :] = 0
    assert crossed <= math.exp(-f)
    assert crossed >= 0.3 * math.exp(-f)


def test_confidence_sums_to_less_than_two() -> None:
    t = np.arange(1, 10**6)
    assert np.exp(-confidence(t)).sum() + 1 / math.log(10**6) < 1.58  # ∫ 1/(x ln² x) = 1/ln x


def test_the_lower_bound_is_a_law_that_was_reweighted() -> None:
    law, values, pi, best = np.array([0.2, 0.5, 0.2, 0.1]), np.arange(4.0), 0.5, 1.5
    below = values < best
    other = law * np.where(below, pi / law[below].sum(), (1 - pi) / law[~below].sum())
    assert other[below].sum() == pytest.approx(pi)  # so its upper median is 2, beyond the best
    divergence = float((law * np.log(law / other)).sum())
    assert 1 / divergence == pytest.approx(float(pulls_rate(law[below].sum(), pi)))
    rng = np.random.default_rng(0)
    for _ in range(200):  # no other law with such a quantile is nearer
        any_law = rng.dirichlet(np.ones(4))
        if any_law[below].sum() <= pi:
            assert (law * np.log(law / any_law)).sum() >= divergence


@pytest.mark.parametrize("bad", [0.5, 0.2, 1.1, math.nan])
def test_bad_arguments_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=r"below must be above 0\.5 and at most 1"):
        pulls_rate(bad)
    with pytest.raises(ValueError, match="f must be above 0"):
        rank(3, -bad, 0.5)
    with pytest.raises(ValueError, match="gap must be"):
        pulls_bound(bad * 3, 100)


def fed(
    kind: type[QuantileBounds], x: Array, f: float, pi: float, **more: Any
) -> tuple[QuantileBounds, Array]:
    """Feed one arm all columns of x at a constant f; return the state and every bound."""
    state = kind.start(len(x), 1, 1, **more)
    bounds = []
    for column in x.T:
        state.update(
            np.zeros(len(x), dtype=np.int64),
            column,
            np.full(len(x), f),
            lambda n, s: log_mixture(n, s, pi),
        )
        state.decisions += 1
        bounds.append(state.bound[:, 0].copy())
    return state, np.array(bounds).T


WILD: dict[str, Draw] = LAWS | {
    "coin": lambda rng, size: rng.integers(2, size=size) * 1.0,
    "constant": lambda rng, size: np.zeros(size),
    "drifting": lambda rng, size: np.cumsum(rng.standard_normal(size), axis=-1),
    "falling": lambda rng, size: -np.cumsum(np.ones(size), axis=-1),
    "rising": lambda rng, size: np.cumsum(np.ones(size), axis=-1),
}


@pytest.mark.parametrize("law", WILD)
@pytest.mark.parametrize("pi", [0.2, 0.5, 0.9])
def test_the_bound_is_the_order_statistic(law: str, pi: float) -> None:
    x = WILD[law](np.random.default_rng(3), (2, 400))
    _, bounds = fed(ExactBounds, x, 3.0, pi)
    ranks = rank(np.arange(1, 401), 3.0, pi)
    for n in range(1, 401):
        ordered = np.append(np.sort(x[:, :n]), np.full((2, 1), np.inf), axis=1)
        np.testing.assert_array_equal(bounds[:, n - 1], ordered[:, ranks[n - 1] - 1])


@pytest.mark.parametrize("law", WILD)
@pytest.mark.parametrize("size", [16, 64])
def test_a_summary_knows_its_error(law: str, size: int) -> None:
    x = WILD[law](np.random.default_rng(4), (2, 700))
    state, bounds = fed(SketchedBounds, x, 3.0, 0.5, size=size)
    assert isinstance(state, SketchedBounds)
    (value, a, b), held = state.facts[:, 0].transpose(1, 0, 2), state.held[:, 0]
    for path in range(2):
        ordered, v = np.sort(x[path]), value[path, : held[path]]
        assert (a[path, : held[path]] <= np.searchsorted(ordered, v, side="right")).all()
        assert (b[path, : held[path]] >= np.searchsorted(ordered, v, side="left")).all()
        j, error = state.rank[path, 0], state.errors[path, 0]
        assert ordered[j - 1] <= bounds[path, -1] <= ordered[min(j + error, 700) - 1]
        if len(np.unique(ordered)) < size:
            assert error == 0


def test_the_error_of_a_summary_is_small_beside_the_interval() -> None:
    x = np.random.default_rng(5).standard_cauchy((1, 8_000))
    state, _ = fed(SketchedBounds, x, 14.0, 0.5, size=256)
    assert isinstance(state, SketchedBounds)
    assert (state.errors < 0.1 * (state.rank - 4_000)).all()
    assert state.facts.nbytes == 256 * 24


QUANTILES: dict[str, tuple[Draw, float]] = {  # the upper median of each law
    "t₁": (LAWS["t₁"], 0.0),
    "Pareto": (LAWS["Pareto"], 3.0),
    "rounded": (LAWS["rounded"], 0.0),
    "coin": (WILD["coin"], 1.0),
    "three values": (lambda rng, size: np.clip(np.floor(4 * rng.random(size)), 0, 2), 2.0),
}


@pytest.mark.parametrize("law", QUANTILES)
@pytest.mark.parametrize("kind", [ExactBounds, SketchedBounds])
def test_coverage(law: str, kind: type[QuantileBounds]) -> None:
    """P(bound below the quantile at some n ≤ 120) ≤ e^−f, for laws with and without atoms."""
    draw, quantile = QUANTILES[law]
    more = {"size": 32} if kind is SketchedBounds else {}
    paths = 300 if kind is SketchedBounds else 600
    _, bounds = fed(kind, draw(np.random.default_rng(6), (paths, 120)), math.log(10), 0.5, **more)
    misses = int((bounds < quantile).any(axis=1).sum())
    assert misses <= binom.isf(FALSE_ALARM, paths, 0.1)
    if law == "coin" and kind is ExactBounds:  # the worst law: the count below is Bin(n, ½)
        assert misses >= binom.ppf(FALSE_ALARM, paths, 0.04)


@pytest.mark.parametrize(
    "policy",
    [
        OrderStatisticUCB(),
        OrderStatisticUCB(quantile=0.8),
        OrderStatisticUCB(quantile=0.3, index="binomial"),
        OrderStatisticUCB(sketch=200),  # nothing is forgotten yet
        OrderStatisticUCB(bonus=0.4),
        OrderStatisticUCB(quantile=0.3, index="binomial", bonus=0.4),
    ],
    ids=repr,
)
def test_each_choice_is_that_of_the_plain_index(policy: OrderStatisticUCB) -> None:
    rng = np.random.default_rng(7)
    table = np.round(4 * rng.standard_cauchy((150, 3, 3)) + [0, 4, 8]) / 4
    table[rng.random(table.shape) < 0.02] = np.inf
    trace, pi = trace_of(policy, None, table), policy.quantile
    decided = 0
    for path in range(3):
        samples: list[list[float]] = [[], [], []]
        for t, chosen in enumerate(trace[:, path].tolist(), start=1):
            keys = []  # without a bound first, then by the bound
            for xs in samples:
                n = len(xs)
                if policy.index == "proved":
                    f = math.log(t + 1) + 2 * math.log(max(1, math.log(t + 1)))
                    f *= policy.bonus
                    enough = [s for s in range(n + 1) if mixture(n, s, pi) >= math.exp(f)]
                else:
                    enough = [s for s in range(1, n + 1) if t**policy.bonus * tail(n, s, pi) <= 1]
                keys.append((0.0, sorted(xs)[enough[0] - 1]) if enough else (1.0, -n))
            assert keys[chosen] == max(keys), (path, t)
            decided += keys.count(max(keys)) == 1
            samples[chosen].append(float(table[t - 1, path, chosen]))
    assert decided > 100


GOLDEN: dict[str, tuple[Policy[Any], str]] = {
    "proved": (
        OrderStatisticUCB(),
        "10202112021020102101202110221020121000000212222222200002022211111111122222222111",
    ),
    "binomial": (
        OrderStatisticUCB(index="binomial"),
        "10202112021000012011122200012111011111222122222222202222222222221222222222222222",
    ),
    "sketch": (
        OrderStatisticUCB(sketch=16),
        "10202112021020102101202110221020121000000212222222200002022211121111111111111111",
    ),
    "QuantileLUCB": (
        QuantileLUCB(),
        "01221002110201202120102210112121212121212121212121212121212121212121212121212121",
    ),
    "QuantileElimination": (
        QuantileElimination(),
        "01201201201201201201201201201201201201201201201201201201201201201201212121212121",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_trace(name: str) -> None:
    policy, golden = GOLDEN[name]
    rewards = np.random.default_rng(8).standard_cauchy((80, 1, 3)) + np.array([0.0, 1.0, 3.0])
    assert row(trace_of(policy, None, rewards)) == golden


@pytest.mark.parametrize(("pi", "gap"), [(0.5, 0.5), (0.5, 0.35), (0.7, 0.3)])
def test_pulls_stay_below_the_bound(pi: float, gap: float) -> None:
    """E N_a(T) of the second arm, which is below Q* with probability π + gap."""
    horizon, paths = 1500, 40
    u = np.random.default_rng(9).random((horizon, paths, 2))
    rewards = np.where(u < [pi, pi + gap], -1.0, 1.0) * u  # Q* is π for the first arm
    state, _ = play(OrderStatisticUCB(quantile=pi), None, rewards)
    pulls = state.counts[:, 1]
    assert (rewards[..., 1] < pi).mean() == pytest.approx(pi + gap, abs=0.01)
    assert pulls.max() <= pulls_bound(gap, horizon, pi)
    assert pulls.mean() >= 0.5 * float(pulls_rate(min(pi + gap, 1), pi)) * math.log(horizon)


MAPS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "cube": lambda x: x**3,
    "units and offset": lambda x: 3 * x - 1000,
    "bounded": np.arctan,
}


@pytest.mark.parametrize(
    "policy",
    [
        OrderStatisticUCB(),
        OrderStatisticUCB(quantile=0.7, index="binomial"),
        OrderStatisticUCB(sketch=20),
        QuantileLUCB(delta=0.3),
        QuantileElimination(delta=0.3),
    ],
    ids=repr,
)
def test_increasing_maps_change_nothing(policy: Policy[Any]) -> None:
    rng = np.random.default_rng(10)
    rewards = np.round(rng.standard_t(2, (300, 3, 3)).clip(-50, 50) * 8 + [0, 4, 8]) / 8
    rewards[rng.random(rewards.shape) < 0.05] = -np.inf
    trace = trace_of(policy, None, rewards)
    for name, change in MAPS.items():
        np.testing.assert_array_equal(trace_of(policy, None, change(rewards)), trace, name)


@dataclass(frozen=True, kw_only=True)
class Boaster(MedianUCB):
    """Says that units do not matter to it."""

    @property
    def invariances(self) -> frozenset[str]:
        return frozenset({"units"})


def test_a_false_declaration_is_found() -> None:
    with pytest.raises(AssertionError, match="units"):
        invariances_hold(Boaster())


def race(policy: Any, draw: Draw, paths: int, seed: int, gap: float = 1.0) -> Any:
    """Return the answers of all paths, the first of four arms ahead by the gap."""
    rng, own = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    answers, racing = np.full(paths, -1), np.arange(paths)
    state = policy.init(paths, 4, 1)
    while len(racing):
        chosen = policy.choose(state, np.ones((len(racing), 4, 1)), own)
        rewards = draw(rng, (len(racing),)) + gap * (chosen == 0)
        policy.learn(state, np.ones((len(racing), 4, 1)), chosen, rewards[:, None])
        done = policy.stopped(state)
        answers[racing[done]] = policy.recommend(state)[done]
        racing, state = racing[~done], state.take(~done)
    return answers


def assert_wrong_at_most(delta: float, answers: Any) -> None:
    assert (answers != 0).sum() <= binom.isf(FALSE_ALARM, len(answers), delta)


@pytest.mark.parametrize("law", ["t₁", "rounded", "contaminated"])
@pytest.mark.parametrize("recipe", [QuantileLUCB, QuantileElimination])
def test_the_best_arm_is_named_for_any_law(recipe: Any, law: str) -> None:
    assert_wrong_at_most(0.1, race(recipe(delta=0.1), LAWS[law], 40, seed=11, gap=2.0))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("recipe", [QuantileLUCB, QuantileElimination])
def test_errors_over_many_paths(recipe: Any, law: str) -> None:
    assert_wrong_at_most(0.05, race(recipe(delta=0.05), LAWS[law], 400, seed=12))


def test_quantiles_that_are_not_unique_are_not_told_apart() -> None:
    """Every median of a fair coin is between its sides, so neither coin is better."""
    rng, policy = np.random.default_rng(13), QuantileLUCB()
    coins = rng.integers(2, size=(1000, 5, 2)) + np.array([0.0, 0.25])
    state, _ = play(policy, None, coins)
    assert (policy.recommend(state) < 0).all()
