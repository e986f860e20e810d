"""Two arms at one look: false as seldom as stated, and sure nearly as often as a planned test."""

import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom, ttest_ind

from tailproof.stats.contrasts import contrast, holm, of_scores
from tailproof.typing import Array

RUNS = 100
MOST_WRONG = int(binom.ppf(1 - 1e-4, RUNS, 0.05))


def sales(rng: np.random.Generator, n: int, share: float = 0.06) -> Array:
    x = np.where(rng.random(n) < share, rng.lognormal(3, 1.2, n), 0.0)
    return np.minimum(x, 200.0)


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_equal_arms_are_seldom_called_different(share: float) -> None:
    """If 5 % are wrong, this fails with a probability of at most 10⁻⁴."""
    wrong = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([1, seed])
        found = contrast(sales(rng, 2000), rng.random(2000) < share, seed=seed)
        assert (found.low > 0) == (found.better <= 0.025)
        wrong += found.low > 0 or found.high < 0
    assert wrong <= MOST_WRONG


@pytest.mark.parametrize("moved", [False, True])
def test_growth_does_not_make_equal_arms_differ(moved: bool) -> None:
    """If 5 % are wrong, this fails with a probability of at most 10⁻⁴; pooled, it is over 30 %."""
    wrong = pooled = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([2, seed])
        day = rng.integers(0, 10, 4000)
        x = sales(rng, 4000, 0.3) * (1.0 + day)
        first = rng.random(4000) < 0.05 + 0.05 * day
        found = contrast(x, first, period=day, moved=moved, seed=seed)
        wrong += found.low > 0 or found.high < 0
        pooled += contrast(x, first, seed=seed).low > 0
    assert wrong <= MOST_WRONG
    assert pooled > 0.3 * RUNS


def test_it_agrees_with_student_where_student_is_right() -> None:
    rng = np.random.default_rng(0)
    x = np.append(rng.normal(1, 1, 4000), rng.normal(1.08, 2, 3000))
    first = np.arange(7000) < 4000
    found = contrast(x, first)
    welch = ttest_ind(x[first], x[~first], equal_var=False)
    low, high = welch.confidence_interval()
    assert found.low <= low + 1e-3
    assert high - 1e-3 <= found.high
    assert found.high - found.low < 1.06 * (high - low)


def test_two_valued_rewards_are_as_in_fishers_test() -> None:
    x = np.repeat([0.0, 1.0, 0.0, 1.0], [480, 20, 490, 10])
    first = np.arange(1000) < 500
    exact = float(hypergeom(1000, 30, 500).sf(19))  # Fisher's exact test
    drawn = contrast(x, first, draws=9999).better
    assert drawn == pytest.approx(exact, abs=0.01)


def test_totals_drawn_together_have_the_law_of_totals_drawn_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    x, first = sales(rng, 20_000, 0.2), rng.random(20_000) < 0.3
    together = contrast(x, first, draws=1999)
    monkeypatch.setattr("tailproof.stats.contrasts._ONE_BY_ONE", 10**9)
    alone = contrast(x, first, draws=1999)
    assert together.better == pytest.approx(alone.better, abs=0.03)
    assert together.low == pytest.approx(alone.low, abs=0.05 * alone.error)


def test_nothing_is_known_of_nothing() -> None:
    none = contrast(np.zeros(10), np.arange(10) < 5)
    assert (none.low, none.high, none.better, none.known) == (-math.inf, math.inf, 1.0, False)
    assert contrast(np.ones(3), np.array([True, False, False])).customers == 0
    assert of_scores(np.zeros(1)).better == 1.0


def test_a_lift_is_in_per_cent_with_its_interval() -> None:
    rng = np.random.default_rng(1)
    x = np.append(rng.normal(12, 1, 2000), rng.normal(10, 1, 2000))
    lift, low, high = contrast(x, np.arange(4000) < 2000).lift()
    assert low < 0.2 < high
    assert high - low < 0.03
    assert lift == pytest.approx(0.2, abs=0.01)


def test_a_forecast_is_near_what_it_takes() -> None:
    """After the forecast number of customers, 80 % are sure: between 65 and 92 % of 100."""
    rng = np.random.default_rng(5)
    x = np.append(rng.normal(1.05, 1, 2000), rng.normal(1, 1, 2000))
    x += np.where(np.arange(4000) < 2000, 1.05 - x[:2000].mean(), 1 - x[2000:].mean())
    n = int(contrast(x, np.arange(4000) < 2000).more_customers() + 4000) // 2
    sure = 0
    for _ in range(100):
        y = np.append(rng.normal(1.05, 1, n), rng.normal(1, 1, n))
        sure += contrast(y, np.arange(2 * n) < n, draws=99).low > 0
    assert 65 <= sure <= 92


def test_holm_is_between_bonferroni_and_nothing() -> None:
    p = np.array([0.03, 0.001, 0.02])
    assert holm(p).tolist() == pytest.approx([0.04, 0.003, 0.04])
    assert holm(np.array([0.5])).tolist() == [0.5]
