"""The estimators: their definitions bit for bit, wild samples, exact draws and refusals."""

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.integrate import quad
from scipy.special import betaln

from tailproof import UCB1, AutoFiltered
from tailproof.noise import Cauchy, Noise, Stable, StudentT, SymmetricPareto
from tailproof.stats.estimators import (
    Estimator,
    Mean,
    MeanOfMedians,
    Median,
    MedianOfMeans,
    Quantile,
    TrimmedMean,
    TruncatedMean,
    WinsorizedMean,
    mean_of_medians,
    median_of_means,
    truncated_mean,
)
from tailproof.stats.pitman import pitman
from tailproof.typing import Array

FALSE_ALARM = 1e-4  # of each Kolmogorov-Smirnov test
MANY = 501  # blocks of up to 13 samples go through the sorting network from here on


ESTIMATORS: list[Estimator] = [
    Mean(),
    Median(),
    MeanOfMedians(),
    MeanOfMedians(block_exponent=0.3),
    MeanOfMedians(block=4),
    MeanOfMedians(block=5),
    MedianOfMeans(blocks=4),
    MedianOfMeans(blocks=8),
    TruncatedMean(threshold=2.5),
]
repeatable = settings(derandomize=True, deadline=None)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def wild(seed: int, *shape: int) -> Array:
    """Draw heavy-tailed samples with many ties."""
    return np.round(np.random.default_rng(seed).standard_cauchy(shape), 1)


def by_definition(x: Array, k: int) -> Array:
    blocks = x[: k * (len(x) // k)].reshape(-1, k)
    return np.asarray(np.median(blocks, axis=1).mean())


# Definitions


@pytest.mark.parametrize("blocks", [1, 7, MANY])
@pytest.mark.parametrize("k", [*range(1, 41), 101, 1000])
def test_mean_of_medians_is_its_definition(k: int, blocks: int) -> None:
    x = wild(k, k * blocks + k // 2)
    assert mean_of_medians(x, block=k) == by_definition(x, k)


@repeatable
@given(st.integers(1, 400), st.floats(0.01, 0.99), st.integers(0, 1000))
def test_the_exponent_sets_the_block(n: int, exponent: float, seed: int) -> None:
    x = wild(seed, n)
    assert mean_of_medians(x, block_exponent=exponent) == by_definition(x, math.ceil(n**exponent))
    assert mean_of_medians(x) == mean_of_medians(x, block_exponent=0.5)


@pytest.mark.parametrize("k", range(1, 14))
def test_sorting_network_on_every_input_of_zeros_and_ones(k: int) -> None:
    # A comparison network that is right on all of these is right on everything (Knuth 5.3.4).
    inputs = np.array(list(itertools.product([0.0, 1.0], repeat=k)))
    rows = np.tile(inputs, (math.ceil(MANY / len(inputs)), 1))
    assert np.array_equal(Median()(rows), np.median(rows, axis=1))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 11, 64])
def test_other_estimators_are_their_definitions(n: int) -> None:
    x = wild(n, n)
    assert Mean()(x) == np.mean(x)
    assert Median()(x) == np.median(x)
    assert truncated_mean(x, threshold=1) == np.mean(np.where(np.abs(x) <= 1, x, 0))
    for blocks in range(1, n + 1):
        means = x[: n // blocks * blocks].reshape(blocks, -1).mean(axis=1)
        assert median_of_means(x, blocks=blocks) == np.median(means)


def test_truncation_keeps_the_threshold_itself() -> None:
    assert truncated_mean([2.0, -2.0, 2.0, 2.5], threshold=2) == 0.5


# Layout

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda x: x,
    "Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "reversed": lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "transposed": lambda x: x.transpose(2, 0, 1).copy().transpose(1, 2, 0),
}


@every_estimator
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_any_axis_of_any_layout(estimator: Estimator, layout: str, axis: int) -> None:
    # Sums of whole numbers are exact, so that the order of summation does not matter.
    x = np.round(wild(0, 11, 12, 13))
    original = x.copy()
    expected = np.apply_along_axis(estimator, axis, x)
    assert np.array_equal(estimator(LAYOUTS[layout](x), axis), expected)
    assert np.array_equal(x, original)


@pytest.mark.parametrize("paths", [3, MANY])
@pytest.mark.parametrize("k", [1, 4, 5, 14, 17])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_batch_of_paths_is_each_path(k: int, paths: int, axis: int) -> None:
    x = wild(k, paths, 40)
    batch = mean_of_medians(x if axis else np.asfortranarray(x).T, block=k, axis=axis)
    assert np.array_equal(batch, [by_definition(path, k) for path in x])


@every_estimator
@pytest.mark.parametrize("wildest", [1e300, 1.7e308, math.inf])
@pytest.mark.parametrize("turns", [1, 12])
def test_paths_do_not_mix(estimator: Estimator, wildest: float, turns: int) -> None:
    x = np.random.default_rng(1).standard_normal((50, 24))
    alone = estimator(x[1:])
    x[0] = np.tile(np.repeat([wildest, -wildest], 12 // turns), turns)
    assert np.array_equal(estimator(x)[1:], alone)


@pytest.mark.parametrize("x", [[1, 3, 2], (1.0, 3.0, 2.0), np.array([1, 3, 2], dtype=np.float32)])
def test_anything_like_an_array_becomes_float64(x: Any) -> None:
    estimate = mean_of_medians(x, block=3)
    assert estimate == 2
    assert estimate.dtype == np.float64


# Symmetries

whole_numbers = st.integers(-(2**20), 2**20)


@st.composite
def samples(draw: st.DrawFn) -> tuple[Array, int]:
    """Draw 1, 2, 4 or 8 blocks of whole numbers: every sum and quotient is then exact."""
    k, blocks = draw(st.integers(1, 20)), draw(st.sampled_from([1, 2, 4, 8]))
    return draw(arrays(np.float64, k * blocks, elements=whole_numbers)), k


@repeatable
@given(samples(), whole_numbers)
def test_shift(case: tuple[Array, int], shift: int) -> None:
    x, k = case
    assert mean_of_medians(x + shift, block=k) == mean_of_medians(x, block=k) + shift


@repeatable
@given(st.integers(1, 20), st.integers(-300, 300), st.sampled_from([1, -1]), st.integers(0, 1000))
def test_scale_by_powers_of_two(k: int, exponent: int, sign: int, seed: int) -> None:
    x = wild(seed, 100)
    factor = sign * 2.0**exponent
    assert mean_of_medians(factor * x, block=k) == factor * mean_of_medians(x, block=k)


@pytest.mark.parametrize("blocks", [5, MANY])
@repeatable
@given(st.integers(1, 20), st.integers(0, 1000))
def test_permutation_inside_a_block(blocks: int, k: int, seed: int) -> None:
    x = wild(seed, blocks, k)
    shuffled = np.random.default_rng(seed).permuted(x, axis=1)
    assert mean_of_medians(shuffled.ravel(), block=k) == mean_of_medians(x.ravel(), block=k)


@every_estimator
def test_declared_equivariance_is_true(estimator: Estimator) -> None:
    x = np.arange(64.0)
    assert (estimator(x + 1024) == estimator(x) + 1024) == estimator.equivariant


# Wild samples

INF = math.inf


@pytest.mark.parametrize(
    ("estimator", "x", "expected"),
    [
        (Mean(), [INF, 1.0], INF),
        (Mean(), [INF, -INF, 6.0], 2.0),
        (Mean(), [INF, INF, -INF, 6.0], INF),
        (Mean(), [-INF, INF, -INF], -INF),
        (Median(), [-INF, INF, 3.0], 3.0),
        (Median(), [-INF, INF], 0.0),
        (Median(), [-INF, 1.0, 3.0, INF], 2.0),
        (Median(), [1.0, INF, INF], INF),
        (Median(), [-INF, -INF, 1.0, 2.0], -INF),
        (MeanOfMedians(block=1), [INF, -INF, 9.0], 3.0),
        (MeanOfMedians(block=2), [INF, -INF, 3.0, 5.0], 2.0),
        (MeanOfMedians(block=3), [INF, 1.0, -INF, 3.0, INF, INF], INF),
        (MedianOfMeans(blocks=3), [1.0, 2.0, INF], 2.0),
        (MedianOfMeans(blocks=2), [INF, 1.0, -INF, 1.0], 0.0),
        (TruncatedMean(threshold=5), [INF, -INF, 1.0, 3.0], 1.0),
    ],
    ids=str,
)
def test_infinities(estimator: Estimator, x: list[float], expected: float) -> None:
    assert estimator(x) == expected
    assert np.array_equal(estimator(np.tile(x, (MANY, 1))), np.full(MANY, expected))


@every_estimator
@pytest.mark.parametrize("huge", [1e300, 1.7e308])
def test_huge_finite_samples_do_not_warn(estimator: Estimator, huge: float) -> None:
    signs = np.random.default_rng(2).choice([-1.0, 1.0], (MANY, 24))
    assert not np.isnan(estimator(huge * signs)).any()


LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if e.equivariant], ids=repr)
@pytest.mark.parametrize("rows", [1, MANY])
@pytest.mark.parametrize("n", [8, 23, 24, 49])
def test_nothing_finite_becomes_infinite(estimator: Estimator, rows: int, n: int) -> None:
    signs = np.random.default_rng(n).choice([-1.0, 1.0], (rows, n))
    for huge in (1e308, 1.7e308, LARGEST):
        for x in (np.full((rows, n), huge), huge * signs):
            small = np.ldexp(estimator(np.ldexp(x, -100)), 100)
            assert estimator(x) == pytest.approx(small, rel=1e-14, abs=1e294)


def test_huge_samples_cancel_as_small_ones_do() -> None:
    assert Median()([1e308, 1e308]) == 1e308
    assert Mean()([1.7e308, 1.7e308, -1.7e308, 1.7e308]) == 0.85e308
    assert Mean()([LARGEST, LARGEST, math.inf, -math.inf]) == LARGEST / 2
    assert Mean()([LARGEST, math.inf]) == math.inf


def test_pitman_of_huge_samples() -> None:
    x = np.array([[1.7, 1.6, 1.5, 1.7], [1.7, 1.7, 1.7, -1.7], [1.7, -1.7, 1.7, -1.7]])
    for spread in (1e-3, 1.0):
        spreads = np.full(3, spread)
        small = 1e308 * pitman(x, spreads)
        assert pitman(x * 1e308, spreads * 1e308) == pytest.approx(small, rel=1e-12, abs=1e290)
    assert np.isfinite(pitman(np.full((1, 3), LARGEST), np.array([LARGEST]))).all()
    assert pitman(np.array([-np.inf, -np.inf, 0.0]), np.array(1.0)) == -np.inf


def test_a_tuned_filter_takes_huge_batches() -> None:
    policy, arms = AutoFiltered(UCB1(), repeats=4), np.eye(3)[None]
    state = policy.init(1, 3, 3)
    for rewards in ([1e308] * 4, [-1e308] * 4, [1e308, 1e308, -1e308, -1e308]):
        for arm in range(3):
            policy.learn(state, arms, [arm], [rewards])
    assert state.decisions.tolist() == [9]


def test_the_median_of_an_even_number_of_huge_draws_is_finite() -> None:
    drawn = SymmetricPareto(1e3, scale=1e308).sample_median(2, np.random.default_rng(0), (1000,))
    assert np.isfinite(drawn).all()


# Refusals


@every_estimator
@pytest.mark.parametrize("rows", [1, MANY])
def test_nan_is_refused_wherever_it_is(estimator: Estimator, rows: int) -> None:
    for place in range(23):
        x = np.ones((rows, 23))
        x[rows // 2, place] = np.nan
        with pytest.raises(ValueError, match=r"^x must be free of NaN, got nan$"):
            estimator(x)


@pytest.mark.parametrize("k", range(1, 15))
def test_nan_is_refused_at_every_place_of_a_block(k: int) -> None:
    for place in range(k):
        x = np.ones((MANY, k))
        x[-1, place] = np.nan
        with pytest.raises(ValueError, match=r"^x must be free of NaN, got nan$"):
            Median()(x)


@every_estimator
def test_nan_beside_infinities_is_refused(estimator: Estimator) -> None:
    with pytest.raises(ValueError, match=r"^x must be free of NaN"):
        estimator([INF, -INF, np.nan, *range(20)])


@every_estimator
@pytest.mark.parametrize("x", [[], 3.0, np.empty((3, 0)), np.empty((0, 3))], ids=repr)
def test_empty_input_is_refused(estimator: Estimator, x: Any) -> None:
    with pytest.raises(ValueError, match=r"^x must be a non-empty array, got "):
        estimator(x)


@pytest.mark.parametrize(
    ("estimator", "parameter"),
    [(MeanOfMedians(block=4), "block"), (MedianOfMeans(blocks=4), "blocks")],
    ids=repr,
)
def test_too_few_samples_are_refused(estimator: Estimator, parameter: str) -> None:
    with pytest.raises(ValueError, match=f"^{parameter} must be at most .* got 4$"):
        estimator([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=f"^{parameter} must be at most .* got 4$"):
        estimator.draw(Cauchy(), np.random.default_rng(0), (5, 3))


COUNTS: list[Any] = [0, -1, 2.5, 3.0, math.nan, "3", True]
NO_NUMBERS: list[Any] = [math.nan, INF, "0.5", True]


@pytest.mark.parametrize(
    ("make", "parameter", "bad"),
    [
        (MeanOfMedians, "block", COUNTS),
        (MeanOfMedians, "block_exponent", [0, 1, -0.1, 1.1, *NO_NUMBERS]),
        (MedianOfMeans, "blocks", [*COUNTS, None]),
        (TruncatedMean, "threshold", [0, -1, None, *NO_NUMBERS]),
    ],
)
def test_bad_settings_are_refused(
    make: Callable[..., Estimator], parameter: str, bad: list[Any]
) -> None:
    for value in bad:
        message = f"^{parameter} must be .* got {re.escape(repr(value))}$"
        with pytest.raises(ValueError, match=message):
            make(**{parameter: value})


def test_block_and_exponent_together_are_refused() -> None:
    rule = "pass either block or block_exponent, got block=3 and block_exponent=0.5"
    with pytest.raises(ValueError, match=f"^{rule}$"):
        mean_of_medians([1.0, 2.0, 3.0], block=3, block_exponent=0.5)


# Draws: equal in law to the reduction of raw noise


@pytest.mark.parametrize(
    "estimator",
    [Median(), MeanOfMedians(block=1), MeanOfMedians(block=4), MeanOfMedians(block=5)],
    ids=repr,
)
@pytest.mark.parametrize("n", [13, 14])
@pytest.mark.parametrize("noise", [StudentT(0.5), Cauchy(3), Stable(1.5)], ids=repr)
def test_draw_has_the_law_of_the_raw_reduction(estimator: Estimator, n: int, noise: Noise) -> None:
    drawn = estimator.draw(noise, np.random.default_rng(3), (20_000, n))
    raw = estimator(noise.sample(np.random.default_rng(4), (20_000, n)))
    assert stats.ks_2samp(drawn, raw, method="asymp").pvalue > FALSE_ALARM


@every_estimator
@pytest.mark.parametrize("outer", [(), (3,), (2, 3)], ids=str)
def test_draw_keeps_the_shape(estimator: Estimator, outer: tuple[int, ...]) -> None:
    drawn = estimator.draw(SymmetricPareto(0.5), np.random.default_rng(5), (*outer, 20))
    assert np.shape(drawn) == outer


@pytest.mark.parametrize(
    "estimator", [Mean(), MedianOfMeans(blocks=4), TruncatedMean(threshold=1)], ids=repr
)
def test_draw_without_a_shortcut_reduces_raw_noise(estimator: Estimator) -> None:
    drawn = estimator.draw(Cauchy(), np.random.default_rng(6), (3, 20))
    raw = estimator(Cauchy().sample(np.random.default_rng(6), (3, 20)))
    assert np.array_equal(drawn, raw)


# The variance of a block median


def median_moment(law: Any, k: int, power: int) -> float:
    """Return E|M|^power of the median M of an odd number k of samples of a symmetric SciPy law.

    Its density is f F^(m−1) (1−F)^(m−1) / B(m, m) with m = (k+1)/2, here over v = ln x.
    """
    m = (k + 1) / 2

    def integrand(v: float) -> float:
        beyond = law.logsf(math.exp(v))
        logs = law.logpdf(math.exp(v)) + (m - 1) * (beyond + math.log1p(-math.exp(beyond)))
        return math.exp(logs - betaln(m, m) + (power + 1) * v)

    centre = math.log(law.isf(0.3))
    return 2 * sum(quad(integrand, *part)[0] for part in [(-30, centre), (centre, 30)])


KNOWN = [  # noise, the same in SciPy, k, k·Var to four digits
    (Cauchy(), stats.cauchy(), 7, 4.285),
    (Cauchy(), stats.cauchy(), 21, 2.870),
    (Cauchy(), stats.cauchy(), 101, 2.541),
    (StudentT(0.5), stats.t(0.5), 15, 7.341),
    (StudentT(0.5), stats.t(0.5), 31, 4.672),
]


@pytest.mark.parametrize(("noise", "law", "k", "known"), KNOWN)
def test_variance_of_a_block_median(noise: Noise, law: Any, k: int, known: float) -> None:
    variance = median_moment(law, k, 2)
    assert median_moment(law, k, 0) == pytest.approx(1, rel=1e-6)
    assert k * variance == pytest.approx(known, abs=5e-4)
    if noise.alpha * (k + 1) / 2 > 4:  # the fourth moment exists
        draws = 200_000
        drawn = Median().draw(noise, np.random.default_rng(7), (draws, k))
        error = math.sqrt((median_moment(law, k, 4) - variance**2) / draws)
        assert abs(np.mean(drawn**2) - variance) < 5 * error  # false alarm: about 1e-6


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.4])
def test_trimmed_and_winsorized_means_are_those_of_scipy(share: float) -> None:
    x = np.random.default_rng(0).standard_cauchy((5, 37))
    trimmed = stats.trim_mean(x, share, axis=1)
    np.testing.assert_allclose(TrimmedMean(share)(x), trimmed, rtol=1e-12)
    limits = (share, share)
    winsorized = [stats.mstats.winsorize(row, limits=limits).mean() for row in x]
    np.testing.assert_allclose(WinsorizedMean(share)(x), winsorized, rtol=1e-12)


@pytest.mark.parametrize(
    ("level", "n", "rank"),
    [(0.5, 7, 4), (0.95, 19, 19), (0.95, 59, 57), (0.1, 9, 1), (0.25, 20, 5), (0.9, 10, 10)],
)
def test_a_quantile_is_the_sample_of_its_rank(level: float, n: int, rank: int) -> None:
    x = np.random.default_rng(1).permutation(np.arange(1.0, n + 1))
    assert Quantile(level)(x) == rank


def test_a_share_that_is_a_whole_number_of_samples_counts_as_it() -> None:
    """0.29 × 100 is less than 29 in floats, and 1/(1 − 0.9) more than 10."""
    x = np.arange(100.0) ** 2
    assert TrimmedMean(0.29)(x) == pytest.approx(x[29:71].mean())
    assert WinsorizedMean(0.29)(x) == pytest.approx(np.clip(x, x[29], x[70]).mean())
    assert [Quantile(level).least for level in (0.1, 0.5, 0.9, 0.95)] == [9, 1, 9, 19]


class Counting:
    """Noise whose "medians" are 0, 1, 2, …, so that their mean tells how many there are."""

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        raise AssertionError("raw samples are not needed")

    def sample_median(self, k: int, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(np.arange(shape[-1], dtype=np.float64), shape)


def test_a_draw_has_as_many_medians_as_there_are_whole_blocks() -> None:
    drawn = MeanOfMedians(block=7).draw(Counting(), np.random.default_rng(0), (2, 40))
    assert drawn.tolist() == [2, 2]  # of five blocks; five samples are left over
