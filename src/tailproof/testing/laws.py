"""The checks of a noise law."""

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import beta, kstest

from tailproof.checks import require
from tailproof.noise import Noise
from tailproof.testing.asserting import FALSE_ALARM, assert_raises, recipe_is_frozen
from tailproof.typing import Array

__all__ = ["NOISE_CHECKS", "check_noise"]


def check_noise(noise: Noise) -> None:
    """Raise ``AssertionError`` unless the law passes all `NOISE_CHECKS`."""
    require(isinstance(noise, Noise), "noise", "a noise law, such as Cauchy()", noise)
    for check in NOISE_CHECKS:
        check(noise)


def law_is_symmetric(noise: Noise) -> None:
    """A law declared as symmetric is so: density, distribution function and quantiles."""
    u = np.linspace(0.01, 0.49, 25)
    x = noise.ppf(u)
    if not noise.symmetric:
        assert not np.allclose(noise.ppf(1 - u), -x), "it is symmetric, but not declared so"
        return
    np.testing.assert_allclose(noise.ppf(1 - u), -x, rtol=1e-6)
    if noise.continuous:
        np.testing.assert_allclose(noise.cdf(-x), 1 - noise.cdf(x), rtol=1e-9)
        np.testing.assert_allclose(noise.pdf(-x), noise.pdf(x), rtol=1e-9)


def quantiles_invert_the_distribution(noise: Noise) -> None:
    """P(η ≤ Q(u)) = u, far into the tail; with atoms P(η < Q(u)) ≤ u ≤ P(η ≤ Q(u))."""
    u = np.concatenate([np.geomspace(1e-15, 0.1, 30), np.linspace(0.1, 0.49, 14)])
    if noise.continuous and math.isinf(noise.support[0]):
        np.testing.assert_allclose(noise.cdf(noise.ppf(u)), u, rtol=1e-6)
    else:  # near a left end floats are not dense enough for more
        u = np.concatenate([u, 1 - u])
        low, high = _around(noise, noise.ppf(u))
        assert (low <= u * (1 + 1e-12)).all()
        assert (high >= u * (1 - 1e-12)).all()
    assert noise.ppf([0, 1]).tolist() == list(noise.support)


def centre_is_as_declared(noise: Noise) -> None:
    """The median splits the law in half, and the mean is the integral of ppf."""
    below, up_to = _around(noise, np.array(noise.median))
    assert below <= 0.5 + 1e-12
    assert up_to >= 0.5 - 1e-12
    try:
        mean = noise.mean
    except ValueError:  # not available for this law
        return
    assert math.isnan(mean) == (noise.alpha <= 1)
    if noise.alpha > 2:
        u = (np.arange(10**5) + 0.5) / 10**5
        x = noise.ppf(u)
        # The outermost cell may hold about as much as 3 deviations divided by √(number of cells).
        assert abs(x.mean() - mean) <= 3 * x.std() / math.sqrt(len(u)) + 1e-9 * noise.scale


def density_is_the_slope(noise: Noise) -> None:
    """The density is the derivative of the distribution function; a law with atoms has none."""
    if not noise.continuous:
        assert_raises(noise.pdf, 0.0)
        return
    x = noise.ppf(np.linspace(0.03, 0.47, 12))
    h = 1e-4 * np.abs(x)
    slope = (noise.cdf(x + h) - noise.cdf(x - h)) / (2 * h)
    np.testing.assert_allclose(noise.pdf(x), slope, rtol=1e-5)


def samples_follow_the_law(noise: Noise) -> None:
    """Samples, and medians of odd and even blocks, have the declared distribution."""
    rng = np.random.default_rng(2021)
    assert noise.sample(rng, (2, 3)).shape == (2, 3)
    single = _levels(noise, noise.sample(rng, (4000,)), lambda u: u)
    assert kstest(single, "uniform").pvalue > FALSE_ALARM
    medians = _levels(noise, noise.sample_median(9, rng, (4000,)), beta(5, 5).cdf)
    assert kstest(medians, "uniform").pvalue > FALSE_ALARM
    raw = np.median(noise.sample(rng, (4000, 4)), axis=1)
    assert kstest(noise.sample_median(4, rng, (4000,)), raw).pvalue > FALSE_ALARM


def tail_is_as_declared(noise: Noise) -> None:
    """P(|η| > y) ≤ c/y^α everywhere, and no smaller c would do; or no c is declared."""
    alpha = min(noise.alpha, 2.0)
    if not (noise.symmetric and noise.continuous):
        assert_raises(noise.tail_constant, alpha)
        assert_raises(lambda: noise.fisher_information)
        return
    y = noise.scale * np.geomspace(1e-6, 1e6 ** max(1, 1 / alpha), 2000)
    product = y**alpha * 2 * noise.cdf(-y)
    assert product.max() <= noise.tail_constant(alpha) * (1 + 1e-9)
    assert product.max() >= noise.tail_constant(alpha) * (1 - 1e-3)
    np.testing.assert_allclose(noise.unit_scale(alpha) ** alpha, noise.tail_constant(alpha))


def _around(noise: Noise, x: Array) -> tuple[Array, Array]:
    """Return the distribution function a little below and a little above each x."""
    h = 1e-9 * (np.abs(x) + noise.scale)
    with np.errstate(invalid="ignore"):
        return noise.cdf(x - h), noise.cdf(x + h)


def _levels(noise: Noise, x: Array, law: Callable[[Array], Array]) -> Array:
    """Return levels of draws X, uniform if P(X ≤ x) = law(P(η ≤ x)); an atom is spread evenly."""
    if noise.continuous:
        return law(noise.cdf(x))
    low, high = (law(level) for level in _around(noise, x))
    return low + np.random.default_rng(0).random(x.shape) * (high - low)


NOISE_CHECKS: tuple[Callable[[Noise], None], ...] = (
    recipe_is_frozen,
    law_is_symmetric,
    quantiles_invert_the_distribution,
    centre_is_as_declared,
    density_is_the_slope,
    samples_follow_the_law,
    tail_is_as_declared,
)
"""The checks of a noise law, one function each."""
