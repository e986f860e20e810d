"""Intervals and evidence: exact special cases, references, invariances, coverage.

Statistical tests use fixed seeds and fail sound code with a probability of at most 10⁻⁶ each.
"""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import betaincinv, ndtri, stdtrit
from scipy.stats import binom

from tailproof.stats import intervals
from tailproof.stats.intervals import (
    BoundedSample,
    evidence_needed,
    mean_difference,
    mean_evidence,
    mean_interval,
    mean_sequence,
    quantile_difference,
    quantile_evidence,
    quantile_sequence,
    share_of_largest,
)
from tailproof.stats.order_statistics import log_mixture
from tailproof.typing import Array

FALSE_ALARM = 1e-6
MEANS: list[Callable[[BoundedSample, float], tuple[float, float]]] = [mean_interval, mean_sequence]
CLIP = float(ndtri(0.995))

# Ten steps of 1/8: units and offsets that are powers of two or eighths change no bit of them.
eighths = st.lists(st.integers(0, 10).map(lambda k: k / 8), min_size=1, max_size=30)
fractions = st.lists(st.floats(0, 1), max_size=20)


def most_misses(runs: int, rate: float = 0.05) -> int:
    """Return how many misses a sound statement may have."""
    return int(binom.isf(FALSE_ALARM, runs, rate))


def clicks(n: int, k: int) -> BoundedSample:
    return BoundedSample.of([0, 1], counts=[n - k, k], low=0, high=1)


def unit(sample: list[float] | Array) -> BoundedSample:
    return BoundedSample.of(sample, low=0, high=1)


def log_capital(x: Array, m: float, sign: int = 1) -> Array:
    """Return what each bet on means above m (or below it) has won, one reward after the other."""
    room = m if sign > 0 else 1 - m
    bets = [min(2.0**j, 0.99 / room if room else math.inf) for j in range(-11, 9)]
    return np.array([math.fsum(math.log(1 + sign * bet * (v - m)) for v in x) for bet in bets])


def weights() -> Array:
    """Return the share of each bet."""
    shares = [1 / (1 + ((j + 2) / 4) ** 2) for j in range(-11, 9)]
    return np.array(shares) / sum(shares)


def pair_weights() -> Array:
    """Return the share of each pair of bets."""
    shares = np.array(
        [[math.sqrt(p * q) / (1 + (j - k) ** 2) for k, q in enumerate(weights())]
         for j, p in enumerate(weights())]
    )  # fmt: skip
    found: Array = shares / shares.sum()
    return found


# One look


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_one_look_at_two_values_is_clopper_and_pearson(n: int, share: float, level: float) -> None:
    k, tail = round(share * n), (1 - level) / 2
    low, high = mean_interval(clicks(n, k), level)
    assert low == pytest.approx(betaincinv(k, n - k + 1, tail) if k else 0, rel=1e-6, abs=1e-12)
    wanted = 1 - betaincinv(k + 1, n - k, 1 - tail) if k < n else 0
    assert 1 - high == pytest.approx(wanted, rel=1e-6, abs=1e-12)


def test_a_million_clicks_are_no_different() -> None:
    low, high = mean_interval(clicks(10**6, 300))
    assert low == pytest.approx(betaincinv(300, 10**6 - 299, 0.025), rel=1e-8)
    assert high == pytest.approx(betaincinv(301, 10**6 - 300, 0.975), rel=1e-8)


@pytest.mark.parametrize(
    "sample", [[0.3], [0.0, 0.9], [0.1, 0.2, 0.7, 0.8], [0.0] * 40 + [0.01, 0.02, 0.5, 1.0]]
)
def test_one_look_has_the_tails_that_simulated_weights_have(sample: list[float]) -> None:
    draws, tail = 400_000, 0.025
    low, high = mean_interval(unit(sample))
    values, counts = np.unique(sample, return_counts=True)
    rng = np.random.default_rng(1)
    parts = rng.standard_gamma(counts, (draws, len(values)))
    extra = rng.standard_exponential(draws)
    total = parts.sum(1) + extra
    above = np.sum((parts @ values + extra) / total > high)  # one more reward at the upper bound
    below = np.sum((parts @ values) / total < low)  # and at the lower one
    spread = -ndtri(FALSE_ALARM / 4) * math.sqrt(draws * tail * (1 - tail))
    assert abs(above - draws * tail) < spread
    assert abs(below - draws * tail) < spread


# Any look


@pytest.mark.parametrize("law", [{0.0: 0.9, 1.0: 0.1}, {0.0: 0.7, 0.25: 0.2, 1.0: 0.1}])
def test_a_capital_is_a_martingale_at_the_mean(law: dict[float, float]) -> None:
    mean = sum(value * p for value, p in law.items())
    past = [1.0, 0.0, 0.25]
    here = intervals._log_capitals(unit(past), mean)
    np.testing.assert_allclose(here, log_capital(np.array(past), mean), rtol=1e-11)
    after = sum(
        p * np.exp(intervals._log_capitals(unit([*past, value]), mean)) for value, p in law.items()
    )
    np.testing.assert_allclose(after, np.exp(here), rtol=1e-12)


def test_weights_add_up_to_one_and_favour_neither_arm() -> None:
    np.testing.assert_allclose(intervals._ONE, weights(), rtol=1e-12)
    np.testing.assert_allclose(intervals._TWO, pair_weights(), rtol=1e-12)
    np.testing.assert_array_equal(intervals._TWO, intervals._TWO.T)
    assert intervals._ONE.sum() == pytest.approx(1)
    assert intervals._TWO.sum() == pytest.approx(1)


@settings(max_examples=50, deadline=None)
@given(fractions)
def test_a_capital_falls_with_the_mean_that_is_doubted(sample: list[float]) -> None:
    grid = np.linspace(0, 1, 64)
    assert (np.diff(intervals._log_capitals(unit(sample), grid), axis=0) <= 1e-9).all()


@settings(max_examples=50, deadline=None)
@given(fractions, st.sampled_from([0.8, 0.95, 0.99]))
def test_any_look_ends_where_a_capital_reaches_its_share(sample: list[float], level: float) -> None:
    x, asked = np.array(sample), 2 / (1 - level)
    low, high = mean_sequence(unit(sample), level)
    for end, sign, bound in ((low, 1, 0.0), (high, -1, 1.0)):
        at_end = float(weights() @ np.exp(log_capital(x, end, sign)))
        if end == bound:
            assert at_end <= asked * (1 + 1e-9)
        else:
            assert at_end == pytest.approx(asked, rel=1e-6)


# All of them


@pytest.mark.parametrize("interval", MEANS)
@settings(max_examples=25, deadline=None)
@given(sample=eighths)
def test_units_and_offsets_move_an_interval_along(
    interval: Callable[..., tuple[float, float]], sample: list[float]
) -> None:
    plain = interval(BoundedSample.of(sample, low=0.125, high=1))
    moved = interval(BoundedSample.of(4 * np.array(sample) - 3, low=-2.5, high=1))
    np.testing.assert_allclose(moved, 4 * np.array(plain) - 3, rtol=0, atol=1e-9)
    turned = interval(BoundedSample.of(-np.array(sample), low=-1, high=-0.125))
    np.testing.assert_allclose(turned, [-plain[1], -plain[0]], rtol=0, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(eighths, eighths)
def test_units_and_offsets_move_a_difference_along(one: list[float], two: list[float]) -> None:
    a, b = (BoundedSample.of(x, low=0.125, high=1) for x in (one, two))
    c, d = (BoundedSample.of(4 * np.array(x) - 3, low=-2.5, high=1) for x in (one, two))
    np.testing.assert_allclose(mean_difference(c, d), 4 * np.array(mean_difference(a, b)), atol=0.1)
    assert mean_evidence(c, d, 1.0) == pytest.approx(mean_evidence(a, b, 0.25), abs=0.03)
    x, y = np.array(one), np.array(two)
    plain = quantile_difference(x, y, 0.5)
    np.testing.assert_array_equal(
        quantile_difference(4 * x - 3, 4 * y - 3, 0.5), 4 * np.array(plain)
    )
    assert quantile_evidence(4 * x - 3, 4 * y - 3, 0.5) == quantile_evidence(x, y, 0.5)


@pytest.mark.parametrize("size", [30, 2000])
def test_the_order_of_rewards_changes_no_bit(size: int) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.random(size), rng.random(size // 2)
    shuffled, other = rng.permutation(x), rng.permutation(y)
    for interval in MEANS:
        assert interval(unit(x), 0.9) == interval(unit(shuffled), 0.9)
    assert mean_difference(unit(x), unit(y)) == mean_difference(unit(shuffled), unit(other))
    for of_two in (quantile_evidence, quantile_difference):
        assert of_two(x, y, 0.7) == of_two(shuffled, other, 0.7)
    assert quantile_sequence(x, 0.7) == quantile_sequence(shuffled, 0.7)
    assert share_of_largest(x) == share_of_largest(shuffled)


@settings(max_examples=25, deadline=None)
@given(fractions)
def test_levels_are_nested_and_one_look_says_more(sample: list[float]) -> None:
    x = unit(sample)
    for interval in MEANS:
        (low, high), (lower, higher) = interval(x, 0.9), interval(x, 0.99)
        assert lower <= low <= x._mean <= high <= higher
    assert quantile_sequence(sample, 0.5, 0.99)[0] <= quantile_sequence(sample, 0.5, 0.9)[0]
    one, any_ = mean_interval(x), mean_sequence(x)
    assert any_[0] <= one[0] + 1e-9
    assert one[1] <= any_[1] + 1e-9


def test_many_values_are_split_and_say_a_little_less(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    buyers = np.where(rng.random(4000) < 0.3, np.exp(2 * rng.standard_normal(4000)), 0) - 0.1
    thin = BoundedSample.of(buyers, low=-1, high=60)
    monkeypatch.setattr(intervals, "_KNOTS", 10_000)
    whole = BoundedSample.of(buyers, low=-1, high=60)
    assert len(thin.values) <= 300 < len(whole.values)
    assert thin.mean == pytest.approx(whole.mean, rel=1e-12)
    assert thin.n == pytest.approx(whole.n, rel=1e-12)
    zero = thin.values == whole.values[whole.counts.argmax()]
    assert thin.counts[zero][0] >= whole.counts.max()  # a frequent value stays one
    grid = np.linspace(0, 1, 50)
    for one, other in ((thin, whole), (thin.mirrored, whole.mirrored)):
        lost = intervals._log_capitals(other, grid) - intervals._log_capitals(one, grid)
        assert (lost > -1e-9).all()
    for interval in MEANS:
        (low, high), (inner, outer) = interval(thin, 0.95), interval(whole, 0.95)
        assert low <= inner
        assert outer <= high
        assert high - low < (outer - inner) * 1.0005


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_constant_and_missing_rewards_have_an_interval(value: float) -> None:
    for interval, n in product(MEANS, (0, 1, 50)):
        low, high = interval(unit([value] * n), 0.95)
        assert 0 <= low <= value <= high <= 1
        assert high - low > (0.04 if n == 50 else 0.9)
    assert quantile_sequence([value] * 3, 0.5) == (-math.inf, math.inf)


def test_values_that_never_came_change_nothing() -> None:
    a = BoundedSample.of([0.0, 0.4, 0.5, 1.0], counts=[0, 7, 5, 0], low=0, high=1)
    b = BoundedSample.of([0.4, 0.5], counts=[7, 5], low=0, high=1)
    for interval in MEANS:
        assert interval(a, 0.95) == interval(b, 0.95)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1e-300), (-1e307, 1e307), (1e12, 1e12 + 1), (-5e-9, 3.0)]
)
def test_any_range_has_intervals(low: float, high: float) -> None:
    x = np.append(low + (high - low) * np.random.default_rng(14).random(50), [low, high])
    for interval, n in product(MEANS, (1, 3, 52)):
        lower, higher = interval(BoundedSample.of(x[-n:], low=low, high=high), 0.95)
        assert low <= lower <= x[-n:].mean() <= higher <= high
    tiny = unit([1e-200, 1e-320, 0.0])
    for interval in MEANS:
        assert interval(tiny, 0.95) == pytest.approx(interval(unit([0.0] * 3), 0.95))


# Two arms


def lowest_joined(a: Array, b: Array, difference: float = 0.0) -> float:
    """Return ln inf_m of the joined capital on a fine grid, one reward after the other."""
    shares, found = np.log(pair_weights()), math.inf
    for m in np.linspace(max(0, -difference), 1, 301):
        pairs = np.add.outer(log_capital(a, min(m + difference, 1)), log_capital(b, m, -1))
        found = min(found, float(np.logaddexp.reduce(shares + pairs, axis=None)))
    return found


@settings(max_examples=15, deadline=None)
@given(fractions, fractions, st.sampled_from([0.0, 0.2, -0.3]))
def test_evidence_is_the_least_over_all_means(
    one: list[float], two: list[float], difference: float
) -> None:
    a, b = np.array(one), np.array(two)
    found, wanted = mean_evidence(unit(a), unit(b), difference), lowest_joined(a, b, difference)
    slack = 0.01 * max(1, abs(wanted))
    assert found <= wanted + 1e-9
    assert found >= wanted - slack - 0.3  # the grid may miss the least


def test_evidence_for_a_clear_lead_is_found_closely() -> None:
    a, b = np.repeat([0.0, 1.0], [60, 60]), np.repeat([0.0, 1.0], [150, 10])
    found, wanted = mean_evidence(unit(a), unit(b)), lowest_joined(a, b)
    assert wanted - 0.02 * wanted < found < wanted - 0.005 * wanted
    assert found > evidence_needed(2)
    assert mean_evidence(unit(b), unit(a)) < 0
    assert mean_evidence(unit(a), unit(b), -1.5) == math.inf


@pytest.mark.parametrize("sizes", [(400, 400), (5000, 20), (30, 3000)])
def test_a_difference_is_what_the_evidence_leaves(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    a, b = (unit(np.where(rng.random(n) < 0.4, rng.random(n), 0)) for n in sizes)
    low, high = mean_difference(a, b)
    asked, edge = math.log(40), 0.02 * (high - low)
    assert low < a.mean - b.mean < high
    assert mean_evidence(a, b, low) >= asked > mean_evidence(a, b, low + edge)
    assert mean_evidence(b, a, -high) >= asked > mean_evidence(b, a, -high + edge)
    shrunk = mean_difference(a, b, 0.8)
    assert low < shrunk[0] < shrunk[1] < high


def test_arms_in_different_ranges_are_not_compared() -> None:
    with pytest.raises(ValueError, match=r"b must be cut to \[0, 1\] like a"):
        mean_evidence(unit([0.5]), BoundedSample.of([0.5], low=0, high=2))


def test_an_arm_without_rewards_decides_nothing() -> None:
    full, none = unit(np.ones(1000)), unit([])
    assert mean_evidence(full, none) < 0.1
    assert mean_difference(none, none) == (-1, 1)
    assert quantile_evidence([1.0] * 99, [], 0.5) <= 0
    assert quantile_difference([1.0] * 99, [], 0.5) == (-math.inf, math.inf)


# Quantiles


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.8])
@pytest.mark.parametrize("n", [0, 5, 60, 500])
def test_ends_of_a_quantile_are_the_first_that_are_refuted(n: int, quantile: float) -> None:
    x = np.random.default_rng(n).standard_cauchy(n)
    low, high = quantile_sequence(x, quantile, 0.9)
    asked = math.log(20)
    refuted = [q for q in np.sort(x) if log_mixture(n, np.sum(x <= q), quantile) >= asked]
    assert high == min(refuted, default=math.inf)
    refuted = [q for q in np.sort(x) if log_mixture(n, np.sum(x >= q), 1 - quantile) >= asked]
    assert low == max(refuted, default=-math.inf)


def quantile_reference(a: Array, b: Array, quantile: float) -> float:
    """Return the least sum over all rewards and the gaps between them."""
    pooled = np.unique(np.concatenate([a, b]))
    between = np.concatenate([[-1e9], (pooled[1:] + pooled[:-1]) / 2, [1e9]])
    return min(
        float(
            np.maximum(log_mixture(len(a), np.sum(a > q), 1 - quantile), -math.log1p(len(a)))
            + np.maximum(log_mixture(len(b), np.sum(b < q), quantile), -math.log1p(len(b)))
        )
        for q in np.concatenate([pooled, between])
    )


@pytest.mark.parametrize("sizes", [(5, 9), (60, 60), (700, 150)])
@pytest.mark.parametrize("step", [0.001, 0.5])
def test_evidence_of_quantiles_is_the_least_over_all_values(
    sizes: tuple[int, int], step: float
) -> None:
    rng = np.random.default_rng(5)
    for shift, quantile in product((0.0, 2.0), (0.3, 0.5, 0.95)):
        a, b = (np.round(rng.standard_cauchy(n) / step) * step for n in sizes)
        wanted = quantile_reference(a + shift, b, quantile)
        found = quantile_evidence(a + shift, b, quantile)
        assert wanted - 0.01 * max(1, abs(wanted)) - 1e-9 <= found <= wanted
        moved = quantile_evidence(a + shift, b - 8, quantile, difference=8)
        assert moved == pytest.approx(found, abs=0.2)


@pytest.mark.parametrize("sizes", [(300, 300), (2000, 100), (12, 900)])
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_a_difference_of_quantiles_is_what_the_evidence_leaves(
    sizes: tuple[int, int], quantile: float
) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.standard_cauchy(n) for n in sizes)
    low, high = quantile_difference(a, b, quantile)
    asked, slack = math.log(40), 0.04
    assert low < high
    for one, two, end in ((a, b, low), (b, a, -high)):
        if end == -math.inf:
            assert quantile_reference(one, two - 1e6, quantile) < asked
        else:
            size = max(abs(end), 1)
            assert quantile_reference(one, two + end - 1e-9 * size, quantile) >= asked
            assert quantile_evidence(one, two, quantile, end + 1e-9 * size) < asked + slack


def test_evidence_does_not_underflow() -> None:
    a, b = np.arange(50_000.0), np.arange(50_000.0) - 40_000
    assert quantile_evidence(a, b, 0.5) > 1000
    assert quantile_evidence(b, a, 0.5) > -2 * math.log(50_001) * 1.01 - 0.01


def test_rounding_of_a_difference_is_no_evidence() -> None:
    a, b = np.full(500, 0.8), np.full(500, 0.1)
    assert 0.1 + 0.7 < 0.8
    assert quantile_evidence(a, b, 0.5, 0.7) < 0 < 100 < quantile_evidence(a, b, 0.5, 0.6)


def test_equal_medians_lead_nothing() -> None:
    zeros = np.zeros(10_000)
    zeros[:4900] = np.random.default_rng(7).pareto(1.1, 4900)
    assert quantile_evidence(zeros, np.zeros(10_000), 0.5) < 0
    assert quantile_sequence(zeros, 0.5)[0] == 0
    assert quantile_difference(zeros, np.zeros(10_000), 0.5)[0] == 0


# What they promise, measured


def skewed(rng: np.random.Generator, n: int) -> Array:
    """Return rewards of 5 % buyers, cut at 20: lognormal, σ = 2."""
    return np.where(rng.random(n) < 0.05, np.minimum(np.exp(2 * rng.standard_normal(n)), 20), 0)


def skewed_mean() -> float:
    levels = (np.arange(2_000_000) + 0.5) / 2_000_000
    return 0.05 * float(np.minimum(np.exp(2 * ndtri(levels)), 20).mean())


@pytest.mark.parametrize("n", [20, 300])
def test_one_look_covers_skewed_money(n: int) -> None:
    rng, runs, mean = np.random.default_rng(8), 250, skewed_mean()
    misses = 0
    for _ in range(runs):
        low, high = mean_interval(BoundedSample.of(skewed(rng, n), low=0, high=20))
        misses += not low <= mean <= high
    assert misses <= most_misses(runs)


def test_any_look_covers_skewed_money_at_all_looks() -> None:
    rng, runs, mean = np.random.default_rng(9), 200, skewed_mean()
    misses = 0
    for _ in range(runs):
        x = skewed(rng, 2000)
        looks = np.unique(np.geomspace(5, 2000, 15).astype(int))
        ends = [mean_sequence(BoundedSample.of(x[:n], low=0, high=20)) for n in looks]
        misses += not all(low <= mean <= high for low, high in ends)
    assert misses <= most_misses(runs)


def greedy_paths(runs: int, rounds: int, seed: int) -> Array:
    """Return (runs, rounds, 2 arms, 2): plays and clicks of two equal arms, the leader played."""
    rng = np.random.default_rng(seed)
    state = np.ones((runs, 2, 2)) * [2, 1]
    paths = np.empty((runs, rounds, 2, 2))
    for t in range(rounds):
        rate = state[:, :, 1] / state[:, :, 0] + 1e-9 * rng.random((runs, 2))
        arm = np.where(rng.random(runs) < 0.1, rng.integers(0, 2, runs), rate.argmax(1))
        state[np.arange(runs), arm] += np.stack([np.ones(runs), rng.random(runs) < 0.1], axis=1)
        paths[:, t] = state - [2, 1]
    return paths


def test_no_look_at_equal_arms_that_a_policy_chose_is_surely_wrong() -> None:
    runs, needed = 120, evidence_needed(2)
    paths = greedy_paths(runs, 1000, seed=10)[:, 39::80].astype(int)
    wrong = 0
    for path in paths:
        arms = [[clicks(*counts) for counts in look] for look in path]
        wrong += any(
            max(mean_evidence(a, b), mean_evidence(b, a)) >= needed for a, b in arms
        )  # fmt: skip
    assert wrong <= most_misses(runs)


def test_quantiles_are_covered_at_all_looks() -> None:
    rng, runs = np.random.default_rng(11), 400
    misses = 0
    for _ in range(runs):
        x = np.round(rng.standard_cauchy(1000))
        ends = [quantile_sequence(x[:n], 0.5) for n in (5, 10, 20, 40, 80, 160, 320, 640, 1000)]
        misses += not all(low <= 0 <= high for low, high in ends)
    assert misses <= most_misses(runs)


def test_widths_on_normal_rewards_are_near_students() -> None:
    x = np.clip(np.random.default_rng(12).standard_normal(10_000), -CLIP, CLIP)
    sample = BoundedSample.of(x, low=-CLIP, high=CLIP)
    student = 2 * float(stdtrit(9999, 0.975)) * x.std(ddof=1) / 100
    (low, high), (lower, higher) = mean_interval(sample), mean_sequence(sample)
    assert (high - low) / student < 1.03
    assert (higher - lower) / student < 1.78


@pytest.mark.slow
def test_a_fifth_more_conversion_is_sure_within_twice_a_planned_test() -> None:
    rng, planned, needed = np.random.default_rng(13), 16_312, evidence_needed(2)
    stops = []
    for _ in range(100):
        a, b = ((rng.random(60_000) < p).cumsum() for p in (0.06, 0.05))
        stops.append(
            next(
                2 * n
                for n in range(100, 60_000, 100)
                if mean_evidence(clicks(n, int(a[n - 1])), clicks(n, int(b[n - 1]))) >= needed
            )
        )
    assert np.median(stops) < 2 * planned
    assert np.mean(stops) < 2 * planned


# Means without bounds, and refusals


def test_the_largest_rewards_make_up_the_mean() -> None:
    x = np.concatenate([np.ones(90), np.full(10, 100.0)])
    assert share_of_largest(x).share == pytest.approx(1000 / 1090)
    assert share_of_largest(5 * x).share == pytest.approx(1000 / 1090)
    assert share_of_largest(5 * x).one_more == pytest.approx(5 * 1190 / 101)
    assert share_of_largest(-x).one_more == pytest.approx(-1190 / 101)
    assert share_of_largest(np.zeros(3)) == (0, 0, 0)
    assert share_of_largest([-1e308] * 4, count=1) == (0.25, -1e308, -1e308)
    assert share_of_largest([7.0], count=10) == (1, 7, 7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BoundedSample.of([math.nan], low=0, high=1), "sample must be without NaN"),
        (lambda: BoundedSample.of([1], low=1, high=1), "high - low must be a finite number above"),
        (lambda: BoundedSample.of([1], low=0, high=math.inf), "high must be a finite number"),
        (lambda: BoundedSample.of([1], counts=[1, 2], low=0, high=1), "counts must be 1 whole"),
        (lambda: BoundedSample.of([1], counts=[-1], low=0, high=1), "counts must be 1 whole"),
        (
            lambda: BoundedSample.of([1], counts=[0.5], low=0, high=1),
            "counts must be 1 whole numbers",
        ),
        (lambda: BoundedSample.of([1], low=-1e308, high=1e308), "high - low must be a finite"),
        (lambda: mean_evidence(unit([1]), unit([0]), math.nan), "difference must be a finite"),
        (lambda: quantile_evidence([1], [0], 0.5, math.inf), "difference must be a finite"),
        (lambda: mean_interval(unit([0.5]), 0.4), "level must be a number at least 0.5"),
        (lambda: mean_sequence(unit([0.5]), 1.0), "level must be a number above 0 and below 1"),
        (lambda: quantile_sequence([1.0], 1.0), "quantile must be a number above 0 and below 1"),
        (lambda: quantile_evidence([math.nan], [1.0], 0.5), "a must be without NaN"),
        (lambda: evidence_needed(1), "arms must be a whole number of at least 2"),
        (lambda: share_of_largest([math.inf]), "sample must be finite rewards"),
        (lambda: share_of_largest([]), "sample must be finite rewards"),
    ],
)
def test_what_cannot_hold_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_infinite_rewards_are_cut() -> None:
    sample = BoundedSample.of([-math.inf, 0, math.inf], low=-1, high=3)
    assert sample.mean == pytest.approx(2 / 3)
    assert quantile_difference([math.inf] * 30, [-math.inf] * 30, 0.5)[0] in (math.inf, -math.inf)
