"""The noise laws: every truth that a law states about itself is measured."""

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rough_laws import ROUGH
from scipy import stats
from scipy.integrate import quad, simpson
from scipy.special import betainc, betaln, expit, fresnel, logit

from tailproof import noise
from tailproof.noise import (
    Cauchy,
    Changing,
    Degenerate,
    Empirical,
    Laplace,
    LogNormal,
    Mixture,
    Noise,
    Normal,
    Pareto,
    PerArm,
    Rademacher,
    Rounded,
    Stable,
    StudentT,
    SymmetricPareto,
    TwoPoint,
    Uniform,
    Varying,
    ZeroInflated,
)
from tailproof.stats.medians import NoiseMedian, median_scale
from tailproof.testing.asserting import recipe_is_frozen
from tailproof.typing import Array

FALSE_ALARM = 1e-4  # of each statistical test, all with fixed seeds

Shape = tuple[int, ...]

LAWS: list[Noise] = [
    StudentT(0.5),
    StudentT(1.02),
    StudentT(3, scale=2),
    Cauchy(),
    Cauchy(0.3),
    Stable(0.5),
    Stable(0.9),
    Stable(1.0),
    Stable(1.5, scale=2),
    SymmetricPareto(0.5),
    SymmetricPareto(2, scale=3),
    Normal(2),
    Laplace(0.5),
]
HEAVY = [law for law in LAWS if law.alpha < math.inf]
LIGHT = [law for law in LAWS if law.alpha == math.inf]
TAMEST = [(law, None) for law in HEAVY] + [(law, 2.0) for law in LIGHT]

every_law = pytest.mark.parametrize("law", LAWS, ids=repr)


def slow(value: float) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


def tail(law: Noise, y: Array) -> Array:
    """Return P(|η| > y)."""
    return 2 * law.cdf(-y)


def test_every_exported_law_has_an_example() -> None:
    exported = {getattr(noise, name) for name in noise.__all__}
    assert {type(law) for law in LAWS + ROUGH} == exported - {
        Noise,
        Varying,
        PerArm,
        Changing,
        noise.PassedOn,
    }


# Density, distribution function and quantiles

LEVELS = np.array([1e-100, 1e-30, 1e-12, 1e-6, 1e-3, 0.05, 0.2, 0.3, 0.45])


@every_law
def test_pdf_is_the_derivative_of_cdf(law: Noise) -> None:
    x = law.ppf(LEVELS)
    h = np.abs(x) * 1e-4
    near, far = (law.cdf(x + step) - law.cdf(x - step) for step in (h, 2 * h))
    assert law.pdf(x) == pytest.approx((8 * near - far) / (12 * h), rel=1e-6)


@every_law
def test_ppf_inverts_cdf_far_into_the_tail(law: Noise) -> None:
    u = np.append(np.geomspace(1e-140, 0.4, 1000), np.linspace(0.4, 0.4999, 100))
    assert law.cdf(law.ppf(u)) == pytest.approx(u, rel=1e-8)


@pytest.mark.parametrize("index", [0.02, 0.3, slow(1.99)])
def test_stable_quantiles_of_extreme_indices(index: float) -> None:
    law = Stable(index)
    u = np.array([0.05, 0.4])
    assert law.cdf(law.ppf(u)) == pytest.approx(u, rel=1e-8)


@every_law
def test_symmetry(law: Noise) -> None:
    x = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 200)])
    assert np.array_equal(law.pdf(x), law.pdf(-x))
    assert law.cdf(x) + law.cdf(-x) == pytest.approx(np.ones_like(x), rel=1e-15)
    assert law.cdf(0.0) == pytest.approx(0.5, rel=1e-15)
    u = 2.0 ** -np.arange(2, 50)  # 1 − u is exact
    assert law.ppf(1 - u) == pytest.approx(-law.ppf(u), rel=1e-12)
    assert law.ppf(0.5) == pytest.approx(0, abs=1e-15)


@every_law
def test_edges(law: Noise) -> None:
    assert law.ppf([0.0, 1.0]).tolist() == [-math.inf, math.inf]
    assert law.cdf([-math.inf, math.inf]).tolist() == [0, 1]
    assert law.pdf([-math.inf, math.inf]).tolist() == [0, 0]
    assert law.ppf([[0.25], [0.5]]).shape == (2, 1)
    assert law.ppf(0.25).shape == law.cdf(1).shape == law.pdf(1).shape == ()


@every_law
@pytest.mark.parametrize("x", [1e-300, 1e30, 1e200, 1.7e308])
def test_values_of_any_size_do_not_warn(law: Noise, x: float) -> None:
    assert 0 <= law.pdf(x) < math.inf
    assert 0 <= law.cdf(-x) <= 0.5 <= law.cdf(x) <= 1


@every_law
def test_nan_stays_nan(law: Noise) -> None:
    assert np.isnan(law.pdf(math.nan))
    assert np.isnan(law.cdf(math.nan))


@pytest.mark.parametrize(
    "law", [StudentT(0.5, 3), Stable(0.5, 3), SymmetricPareto(0.5, 3)], ids=repr
)
def test_quantiles_beyond_the_largest_float_do_not_warn(law: Noise) -> None:
    assert np.all(law.ppf(np.geomspace(1e-160, 1e-150, 300)) < -1e290)


@every_law
@pytest.mark.parametrize("u", [-0.1, 1.1, math.nan, [0.5, 2.0]], ids=str)
def test_ppf_refuses_what_is_no_level(law: Noise, u: Any) -> None:
    with pytest.raises(ValueError, match=f"^u must be between 0 and 1, got {re.escape(repr(u))}$"):
        law.ppf(u)


# References

REFERENCES: list[tuple[Noise, Any]] = [
    (StudentT(0.5), stats.t(0.5)),
    (StudentT(3, scale=2), stats.t(3, scale=2)),
    (StudentT(30), stats.t(30)),
    (Cauchy(0.3), stats.cauchy(scale=0.3)),
    (Stable(1.0, scale=4), stats.cauchy(scale=4)),
    (Normal(2), stats.norm(scale=2)),
    (Laplace(0.5), stats.laplace(scale=0.5)),
]


@pytest.mark.parametrize(("law", "reference"), REFERENCES)
def test_scipy_agrees(law: Noise, reference: Any) -> None:
    x = np.linspace(-20, 20, 101)
    u = np.linspace(0.01, 0.99, 99)
    assert law.pdf(x) == pytest.approx(reference.pdf(x), rel=1e-9)
    assert law.cdf(x) == pytest.approx(reference.cdf(x), rel=1e-9)
    assert law.ppf(u) == pytest.approx(reference.ppf(u), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("df", [0.1, 0.5, 1.02, 3, 30])
def test_student_tail_is_an_incomplete_beta_function(df: float) -> None:
    y = np.geomspace(1e-3, 10.0 ** min(150, 290 / df), 500)
    exact = betainc(df / 2, 0.5, df / (df + y**2))
    assert tail(StudentT(df), y) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("df", [0.1, 0.5, 1])
def test_student_tail_where_squares_overflow(df: float) -> None:
    # The series of the incomplete beta function is its first term to the last digit.
    log_y = np.linspace(200, 280, 5) * math.log(10)
    exact = df / 2 * (math.log(df) - 2 * log_y) - math.log(df / 2) - betaln(df / 2, 0.5)
    assert np.log(tail(StudentT(df), np.exp(log_y))) == pytest.approx(exact, rel=1e-12)


def test_half_stable_density_in_closed_form() -> None:
    x = np.geomspace(0.01, 1e30, 500)
    s, c = fresnel(1 / np.sqrt(2 * math.pi * x))
    waves = np.sin(1 / (4 * x)) * (0.5 - s) + np.cos(1 / (4 * x)) * (0.5 - c)
    exact = waves / np.sqrt(2 * math.pi * x**3)
    assert Stable(0.5).pdf(x) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("index", [0.7, 0.9, 0.999, 1.001, 1.2, 1.5, 1.9])
@pytest.mark.parametrize("x", [0.1, 1.0, 3.0])
def test_stable_inverts_its_characteristic_function(index: float, x: float) -> None:
    def integral(wave: Callable[[float], float]) -> float:
        # Over t = r² the integrand is smoother at zero; exp(−t^α) is below 1e-17 at the end.
        def damped(r: float) -> float:
            return wave(r**2) * math.exp(-(r ** (2 * index))) * r

        end = 40 ** (1 / (2 * index))
        return 2 / math.pi * quad(damped, 0, end, limit=999, epsabs=1e-11, epsrel=1e-11)[0]

    law = Stable(index)
    assert law.pdf(x) == pytest.approx(integral(lambda t: math.cos(x * t)), rel=1e-6)
    assert 1 - tail(law, np.array(x)) == pytest.approx(
        2 * integral(lambda t: x * float(np.sinc(x * t / math.pi))), rel=1e-8
    )


@pytest.mark.parametrize("law", [law for law in LAWS if isinstance(law, Stable)], ids=repr)
def test_a_sum_of_stable_samples_is_stable(law: Stable) -> None:
    x = law.sample(np.random.default_rng(10), (2, 3000))
    mixed = (x[0] + x[1]) / 2 ** (1 / law.index)
    assert stats.kstest(law.cdf(mixed), "uniform").pvalue > FALSE_ALARM


# Samples


@every_law
def test_samples_follow_the_cdf(law: Noise) -> None:
    x = law.sample(np.random.default_rng(11), (50, 80))
    assert x.shape == (50, 80)
    assert stats.kstest(law.cdf(x.ravel()), "uniform").pvalue > FALSE_ALARM


@every_law
def test_extreme_samples_are_as_frequent_as_they_should_be(law: Noise) -> None:
    x = law.sample(np.random.default_rng(12), (500_000,))
    for level in (1e-2, 1e-3, 1e-4):
        for side in (-x, x):
            beyond = int(np.sum(side > -law.ppf(level)))
            assert stats.binomtest(beyond, x.size, level).pvalue > FALSE_ALARM / 6


# Medians of k samples


@every_law
@pytest.mark.parametrize("k", [1, 2, 3, 4, 10, 11])
def test_sample_median_has_the_law_of_raw_medians(law: Noise, k: int) -> None:
    drawn = law.sample_median(k, np.random.default_rng(13), (5000,))
    raw = np.median(law.sample(np.random.default_rng(14), (5000, k)), axis=1)
    assert stats.ks_2samp(drawn, raw, method="asymp").pvalue > FALSE_ALARM


@every_law
@pytest.mark.parametrize("k", [1, 21, 1001])
def test_odd_sample_median_follows_a_beta_law(law: Noise, k: int) -> None:
    shape = (20, 100) if isinstance(law, Stable) else (20, 1000)  # its cdf is an integral
    drawn = law.sample_median(k, np.random.default_rng(15), shape)
    assert drawn.shape == shape
    exact = stats.beta((k + 1) / 2, (k + 1) / 2)
    assert stats.kstest(law.cdf(drawn.ravel()), exact.cdf).pvalue > FALSE_ALARM


@pytest.mark.slow
@every_law
@pytest.mark.parametrize("k", [2, 5, 6, 30, 31, 232, 233])
def test_sample_median_has_the_law_of_many_raw_medians(law: Noise, k: int) -> None:
    drawn = law.sample_median(k, np.random.default_rng(16), (40_000,))
    rng = np.random.default_rng(17)
    raw = np.concatenate([np.median(law.sample(rng, (4000, k)), axis=1) for _ in range(10)])
    assert stats.ks_2samp(drawn, raw, method="asymp").pvalue > FALSE_ALARM


@pytest.mark.slow
@every_law
def test_many_samples_follow_the_cdf(law: Noise) -> None:
    x = law.sample(np.random.default_rng(18), (50_000,))
    assert stats.kstest(law.cdf(x), "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("law", [StudentT(1e-3), SymmetricPareto(1e-3)], ids=repr)
def test_medians_beyond_the_largest_float(law: Noise, k: int) -> None:
    assert not np.isnan(law.sample_median(k, np.random.default_rng(19), (2000,))).any()


@pytest.mark.parametrize("k", [0, -1, 2.5, 3.0, None, "3", True])
def test_sample_median_refuses_bad_counts(k: Any) -> None:
    with pytest.raises(ValueError, match=f"^k must be .* got {re.escape(repr(k))}$"):
        Cauchy().sample_median(k, np.random.default_rng(0), (3,))


# Tails

# Coarse far out, where a power tail is flat against its bound; fine where peaks are.
LOG_Y = np.concatenate([np.arange(-15, 60, 0.25), np.arange(-3, 3, 0.01)])


@pytest.mark.parametrize(("law", "alpha"), TAMEST + [(law, 0.4) for law in LAWS])
def test_tail_constant_holds_and_is_attained(law: Noise, alpha: float | None) -> None:
    c = law.tail_constant(alpha)
    y = law.scale * np.exp(LOG_Y)
    heights = y ** (law.alpha if alpha is None else alpha) * tail(law, y)
    assert np.all(heights <= c * (1 + 1e-8))
    assert np.max(heights) >= c * (1 - 1e-4)  # the grid meets a peak within 0.005 in ln y


@pytest.mark.parametrize(
    ("law", "alpha", "exact"),
    [
        (Cauchy(3), None, 2 / math.pi * 3),
        (SymmetricPareto(0.5, scale=9), None, 3),
        (SymmetricPareto(2, scale=3), 1, 3),
        (StudentT(2), None, 1),
        (Stable(0.5), None, math.sqrt(2 / math.pi)),
        (Laplace(0.5), 2, math.exp(-2)),
    ],
)
def test_tail_constants_known_exactly(law: Noise, alpha: float | None, exact: float) -> None:
    assert law.tail_constant(alpha) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(("law", "alpha"), TAMEST)
def test_unit_scale_brings_to_the_form_of_the_paper(law: Any, alpha: float | None) -> None:
    unit: Noise = dataclasses.replace(law, scale=law.scale / law.unit_scale(alpha))
    y = np.exp(LOG_Y)
    index = law.alpha if alpha is None else alpha
    assert np.all(tail(unit, y) <= y**-index * (1 + 1e-8))
    assert unit.tail_constant(alpha) == pytest.approx(1)
    assert unit.unit_scale(alpha) == pytest.approx(1)


@pytest.mark.parametrize("law", HEAVY, ids=repr)
def test_alpha_is_the_slope_of_the_tail(law: Noise) -> None:
    near, far = np.log(tail(law, law.scale * np.array([1e20, 1e30])))
    assert (near - far) / math.log(1e10) == pytest.approx(law.alpha, rel=1e-8)


@pytest.mark.parametrize("law", LIGHT, ids=repr)
def test_light_tails_fall_ever_faster(law: Noise) -> None:
    y = law.scale * np.exp2(np.arange(6.0))
    slopes = -np.diff(np.log(tail(law, y))) / math.log(2)
    assert np.all(slopes[1:] > 1.9 * slopes[:-1])


@pytest.mark.parametrize(
    ("law", "alpha"),
    [(Normal(), 1e-9), (Laplace(), 1e-9), (StudentT(0.5), 1e-9), (Stable(0.05), 0.0495)],
)
def test_tail_constant_of_small_alpha(law: Noise, alpha: float) -> None:
    y = np.exp(np.arange(-100.0, 700.0))
    heights = y**alpha * tail(law, y)
    assert law.tail_constant(alpha) >= np.max(heights) * (1 - 1e-8)


@pytest.mark.parametrize("df", [50, 100, 300, 1000])
def test_tail_of_many_degrees_of_freedom(df: float) -> None:
    law = StudentT(df)
    exact = math.log(2 / math.sqrt(math.pi)) + (df / 2 - 1) * math.log(df)
    exact += math.lgamma((df + 1) / 2) - math.lgamma(df / 2)
    assert df * math.log(law.unit_scale()) == pytest.approx(exact, rel=1e-8)
    assert law.tail_constant() == pytest.approx(math.exp(exact) if exact < 709 else math.inf)


@every_law
@pytest.mark.parametrize("alpha", [0, -1, math.nan, math.inf, "1", True])
def test_bad_alpha_is_refused(law: Noise, alpha: Any) -> None:
    for method in (law.tail_constant, law.unit_scale):
        with pytest.raises(ValueError, match=f"^alpha must be .* got {re.escape(repr(alpha))}$"):
            method(alpha)


@pytest.mark.parametrize("law", HEAVY, ids=repr)
def test_alpha_above_its_own_is_refused(law: Noise) -> None:
    with pytest.raises(ValueError, match=r"^alpha must be .* at most"):
        law.tail_constant(law.alpha * 1.01)


@pytest.mark.parametrize("law", LIGHT, ids=repr)
def test_light_tails_need_an_alpha(law: Noise) -> None:
    with pytest.raises(ValueError, match=r"^pass alpha: .* has light tails"):
        law.unit_scale()


# Information


def information(law: Noise, width: float) -> float:
    """Integrate (f'/f)² f over v = ln(x/width), with f'/f by differences."""
    v = np.arange(-14, 20, 0.04)
    x = width * np.exp(v)
    lower, pdf, upper = (law.pdf(x * math.exp(step)) for step in (-1e-3, 0, 1e-3))
    seen = upper > 0
    slope = np.log(upper[seen] / lower[seen]) / 2e-3
    return 2 * float(simpson(slope**2 * pdf[seen] / x[seen], x=v[seen]))


@pytest.mark.parametrize(
    "law", [law for law in LAWS if not isinstance(law, SymmetricPareto)], ids=repr
)
def test_fisher_information_is_its_integral(law: Noise) -> None:
    assert law.fisher_information == pytest.approx(information(law, law.scale), rel=1e-5)


@pytest.mark.parametrize("index", [0.3, slow(0.1), slow(0.05)])
def test_fisher_information_of_a_sharp_peak(index: float) -> None:
    law = Stable(index)
    width = math.exp((math.lgamma(1 / index) - math.lgamma(3 / index)) / 2)  # √(−f(0)/f''(0))
    assert law.fisher_information == pytest.approx(information(law, width), rel=1e-5)


@pytest.mark.parametrize("index", [1.2, slow(0.95), slow(1.01)])
def test_fisher_information_does_not_see_the_error_of_the_density(index: float) -> None:
    law = Stable(index)
    assert law.fisher_information == pytest.approx(information(law, law.scale), rel=1e-5)


def test_fisher_information_of_a_jump_is_infinite() -> None:
    assert SymmetricPareto(0.5).fisher_information == math.inf


# Skewed stable laws


@pytest.mark.parametrize(
    ("index", "skewness"), [(1.5, 0.5), (1.5, 1), (1.5, -1), (0.7, 0.4), (0.7, -1), (1.1, 0.9)]
)
def test_skewed_stable_laws_have_their_characteristic_function(
    index: float, skewness: float
) -> None:
    """P(η ≤ x) by the inversion formula of Gil-Pelaez, over u = t^(α/2)."""
    u = np.linspace(1e-9, 7, 100_001)
    t, slope = u ** (2 / index), 2 / index * u ** (2 / index - 1)
    lag = t**index * skewness * math.tan(math.pi * index / 2)
    size = np.exp(-(t**index)) / t * slope
    law = Stable(index, skewness=skewness)
    for x in (-4.0, -1.0, -0.1, 0.0, 0.2, 1.0, 5.0):
        wave = np.trapezoid(np.sin(t * x - lag) * size, u)
        assert law.cdf(x) == pytest.approx(0.5 + wave / math.pi, abs=3e-6)


def test_the_stable_law_of_half_is_levys() -> None:
    x = np.geomspace(1e-3, 1e6, 40)
    law = Stable(0.5, skewness=1.0)
    np.testing.assert_allclose(law.cdf(x), stats.levy.cdf(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(law.pdf(x), stats.levy.pdf(x), rtol=1e-9, atol=1e-12)
    assert law.support == (0.0, math.inf)
    np.testing.assert_allclose(Stable(0.5, skewness=-1.0).cdf(-x), stats.levy.sf(x), rtol=1e-9)
    assert law.sample(np.random.default_rng(0), (1000,)).min() > 0


# Settings


@pytest.mark.parametrize(
    ("make", "parameter", "too_large"),
    [
        (StudentT, "df", [1e-30, 0.99e-4, 1.01e8, 1e210]),
        (Stable, "index", [2, 3]),
        (SymmetricPareto, "index", []),
        *[(make, "scale", []) for make in sorted({type(law) for law in LAWS}, key=repr)],
    ],
)
def test_bad_settings_are_refused(
    make: Callable[..., Noise], parameter: str, too_large: list[float]
) -> None:
    fields = dataclasses.fields(make)  # type: ignore[arg-type]
    good = {field.name: 1.0 for field in fields if field.name != "skewness"}
    make(**good)
    for value in [0, -1, math.nan, math.inf, None, "1", True, *too_large]:
        message = f"^{parameter} must be .* got {re.escape(repr(value))}$"
        with pytest.raises(ValueError, match=message):
            make(**{**good, parameter: value})


# A law of your own


@dataclasses.dataclass(frozen=True)
class Logistic(Noise):
    """The least that a law has to bring."""

    scale: float = 1.0

    @property
    def alpha(self) -> float:
        return math.inf

    def _pdf(self, x: Array) -> Array:
        return expit(x) * expit(-x)

    def _cdf(self, x: Array) -> Array:
        return expit(x)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.logistic(size=shape)


def test_the_rest_of_a_law_follows_from_its_essentials() -> None:
    law = Logistic(scale=2)
    u = np.geomspace(1e-250, 0.5, 500)
    assert law.ppf(u) == pytest.approx(2 * logit(u), rel=1e-9, abs=1e-12)
    assert law.fisher_information == pytest.approx(1 / 3 / 2**2, rel=1e-6)
    medians = law.sample_median(5, np.random.default_rng(20), (5000,))
    assert stats.kstest(law.cdf(medians), stats.beta(3, 3).cdf).pvalue > FALSE_ALARM
    y = np.exp(np.arange(-5, 5, 0.01))
    assert law.tail_constant(2) == pytest.approx(np.max(y**2 * tail(law, y)), rel=1e-4)


@pytest.mark.parametrize("df", [1e-4, 1e8])
def test_student_at_the_ends_of_its_range(df: float) -> None:
    law, u = StudentT(df), np.linspace(0.4, 0.499, 50)
    x = law.ppf(u)
    seen = np.isfinite(x)
    assert law.cdf(x[seen]) == pytest.approx(u[seen], rel=2e-4)
    for k in (1, 3, 4):
        assert not np.isnan(law.sample_median(k, np.random.default_rng(21), (500,))).any()
    assert 0 < law.unit_scale() < math.inf


@dataclasses.dataclass(frozen=True)
class Gumbel(Noise):
    """A law that is not symmetric, with its median at zero."""

    symmetric = False
    scale: float = 1.0

    @property
    def alpha(self) -> float:
        return math.inf

    def _pdf(self, x: Array) -> Array:
        return math.log(2) * np.exp(-x) * self._cdf(x)

    def _cdf(self, x: Array) -> Array:
        return np.exp2(-np.exp(-x))

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.gumbel(math.log(math.log(2)), size=shape)

    def _quantile(self, s: Array) -> Array:
        return math.log(math.log(2)) - np.log(np.logaddexp(0, -s))


@dataclasses.dataclass(frozen=True)
class Shy(Gumbel):
    """The same law without quantiles of its own."""

    _quantile = Noise._quantile


@dataclasses.dataclass(frozen=True)
class Lying(Shy):
    """The same law, declared symmetric."""

    symmetric = True


@pytest.mark.parametrize("k", [1, 2, 3, 4, 11])
def test_medians_of_a_law_that_is_not_symmetric(k: int) -> None:
    law = Gumbel(2.0)
    drawn = law.sample_median(k, np.random.default_rng(22), (20_000,))
    raw = np.median(law.sample(np.random.default_rng(23), (20_000, k)), axis=1)
    assert stats.ks_2samp(drawn, raw, method="asymp").pvalue > FALSE_ALARM
    u = np.linspace(0.001, 0.999, 99)
    assert law.cdf(law.ppf(u)) == pytest.approx(u, rel=1e-12)
    assert Shy(2.0).ppf(u) == pytest.approx(law.ppf(u), rel=1e-12, abs=1e-15)
    assert law.median == pytest.approx(0, abs=1e-15)


@dataclasses.dataclass(frozen=True)
class Cancelled(Noise):
    """A Cauchy law whose distribution function has lost its digits in the lower tail."""

    scale: float = 1.0

    @property
    def alpha(self) -> float:
        return 1.0

    def _pdf(self, x: Array) -> Array:
        return 1 / (math.pi * (1 + x * x))

    def _cdf(self, x: Array) -> Array:
        return 0.5 + np.arctan(x) / math.pi

    def _sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.standard_cauchy(shape)


def test_a_distribution_function_without_digits_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Cancelled.* has a _cdf that is not exact far below 0"):
        Cancelled().ppf(0.1)


def test_what_needs_symmetry_refuses_a_law_without_it() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"^Lying.* is not symmetric .*: set symmetric = False"):
        Lying().sample_median(3, rng, (5,))
    assert Shy().sample(rng, (5,)).shape == (5,)
    with pytest.raises(
        ValueError, match=r"^the Fisher information is not .*which is not symmetric"
    ):
        _ = Gumbel().fisher_information
    with pytest.raises(ValueError, match=r"^the mean is not available .*, which is not symmetric"):
        _ = Gumbel().mean
    with pytest.raises(ValueError, match=r"^the tail constant is not .*, which is not symmetric"):
        Gumbel().tail_constant(2)
    with pytest.raises(ValueError, match=r"^noise must be a symmetric law"):
        NoiseMedian(Gumbel(), 3)
    with pytest.raises(ValueError, match=r"^noise must be a symmetric law"):
        median_scale(Gumbel(), block=3, failure=0.01)


# Jumps, atoms and skew


@pytest.mark.parametrize("k", [1, 2, 3, 4, 11])
@pytest.mark.parametrize("law", ROUGH, ids=repr)
def test_medians_of_rough_laws(law: Noise, k: int) -> None:
    drawn = law.sample_median(k, np.random.default_rng(24), (4000,))
    raw = np.median(law.sample(np.random.default_rng(25), (4000, k)), axis=1)
    assert stats.ks_2samp(drawn, raw, method="asymp").pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("law", "mean", "median"),
    [
        (TwoPoint(9, -1, 0.1, scale=2), 0, -2),
        (TwoPoint(1, 0, 0.7), 0.7, 1),
        (Rademacher(), 0, 0),
        (Pareto(1.5, "mean"), 0, 2 ** (2 / 3) - 3),
        (Pareto(2, "left"), 1, math.sqrt(2) - 1),
        (Pareto(2, "none", 3), 6, 3 * math.sqrt(2)),
        (Pareto(0.5), math.nan, 0),
        (LogNormal(1, "left"), math.exp(0.5), 1),
        (LogNormal(1, "mean"), 0, 1 - math.exp(0.5)),
        (Mixture((Normal(), TwoPoint(5, 3, 0.5)), (0.75, 0.25)), 1, stats.norm.ppf(2 / 3)),
        (Mixture((Cauchy(), Normal()), (0.5, 0.5)), math.nan, 0),
        (ZeroInflated(LogNormal(1, "left"), 0.6), 0.4 * math.exp(0.5), 0),
        (Cauchy(), math.nan, 0),
        (StudentT(1.5), 0, 0),
    ],
)
def test_means_and_medians_known_exactly(law: Noise, mean: float, median: float) -> None:
    assert law.mean == pytest.approx(mean, abs=1e-12, nan_ok=True)
    assert law.median == pytest.approx(median, abs=1e-12)


@pytest.mark.parametrize(
    "law",
    [
        TwoPoint(1, 0, 0.7),
        Pareto(2, "left"),
        LogNormal(1),
        Mixture((Normal(), TwoPoint(5, 3, 0.5)), (0.75, 0.25)),
        ZeroInflated(LogNormal(1, "left"), 0.6),
        Empirical(np.array([1.0, 0.0, 5.0])),
    ],
    ids=repr,
)
def test_means_follow_the_unit(law: Noise) -> None:
    assert law.mean != 0
    assert law.scaled(4).mean == pytest.approx(4 * law.mean)


def test_zeros_belong_to_the_support() -> None:
    for sign, support in ((1, (0, 9)), (-1, (-9, 0))):
        law = ZeroInflated(TwoPoint(max(9 * sign, 5 * sign), min(9 * sign, 5 * sign), 0.5), 0.5)
        assert law.support == support
        assert law.ppf([0.0, 1.0]).tolist() == list(support)


def test_the_median_of_two_equally_likely_points_is_between_them() -> None:
    assert TwoPoint(3, 1, 0.5).median == 2
    assert TwoPoint(3, 1, 0.25).ppf([0.74, 0.75, 0.76]).tolist() == [1, 2, 3]


def test_draws_are_new_for_every_decision_and_every_law() -> None:
    noise_by_arm, rng = PerArm((Normal(), Normal(2))), np.random.default_rng(0)
    first, second = (noise_by_arm.sample(rng, np.zeros(50, np.int64), 0, 1) for _ in "ab")
    assert not np.isin(first, second).any()
    both = (noise_by_arm.sample(np.random.default_rng(0), np.full(50, arm), 0, 1) for arm in (0, 1))
    one, other = both
    assert not np.isin(2 * one, other).any()


def test_multiples_of_a_step_are_reached() -> None:
    law, steps = Rounded(Normal(), 0.1), np.arange(-30, 31)
    x = np.array([k * 0.1 for k in steps])  # 3 × 0.1 divided by 0.1 is less than 3
    np.testing.assert_allclose(law.cdf(x), Normal().cdf(0.1 * (steps + 0.5)))


def test_an_empirical_law_is_its_values_and_its_unit() -> None:
    law = Empirical(np.array([5.0, -1.0, 0.0]))
    assert law == Empirical(np.array([0.0, 5.0, -1.0]))
    assert law.support == (-1, 5)
    assert law.cdf([-2.0, -1.0, 4.0]) == pytest.approx([0, 1 / 3, 2 / 3])
    assert Empirical(np.array([1.0, 2.0, 3.0, 4.0])).ppf(0.5) == 2  # the least x with F(x) ≥ ½
    assert law != law.scaled(2)
    assert law != Empirical(np.array([5.0, -1.0, 1.0]))
    x = PerArm((law, law.scaled(2))).sample(np.random.default_rng(0), np.array([0, 1] * 50), 0, 1)
    assert set(x[1::2, 0]) == {-2.0, 0.0, 10.0}  # equal laws would share their sample
    for values in ([], [1.0, math.nan], [[1.0]]):
        with pytest.raises(ValueError, match="values must be at least one number, none"):
            Empirical(np.array(values))


@pytest.mark.parametrize("law", [law for law in LAWS if law.symmetric], ids=repr)
def test_both_tails_of_the_quantiles_are_equally_exact(law: Noise) -> None:
    s = np.array([1.0, 20.0, 34.0, 50.0, 300.0])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(law._quantile(s), -law._quantile(-s), rtol=1e-12)


@pytest.mark.parametrize("index", [0.5, 1.5])
def test_stable_far_out_is_its_power_tail(index: float) -> None:
    law, x = Stable(index), np.exp(np.array([49.9, 50.1, 60.0]) / index)
    tail = law.cdf(-x)
    np.testing.assert_allclose(tail, tail[-1] * (x[-1] / x) ** index, rtol=1e-7)
    np.testing.assert_allclose(law.pdf(x), index * tail / x, rtol=1e-7)


def test_a_contaminated_normal_law_has_its_information() -> None:
    alone, mixed = Normal(), Mixture((Normal(), Normal(100)), (0.95, 0.05))
    assert Mixture((alone, Normal(2)), (1 - 1e-12, 1e-12)).fisher_information == pytest.approx(1)
    assert mixed.fisher_information == pytest.approx(information(mixed, 1.0), rel=1e-5)
    assert Mixture((alone, Uniform()), (0.5, 0.5)).fisher_information == math.inf


def test_tail_constants_of_mixtures() -> None:
    mixed = Mixture((Cauchy(3), Cauchy(), Normal()), (0.5, 0.25, 0.25), scale=2)
    assert mixed.tail_constant() == pytest.approx(2 / math.pi * 2 * (0.5 * 3 + 0.25), rel=1e-8)
    narrow = Mixture((Cauchy(0.1), Cauchy(0.2)), (0.5, 0.5))
    assert narrow.tail_constant() == pytest.approx(2 / math.pi * 0.15, rel=1e-8)


@pytest.mark.parametrize("law", LAWS + ROUGH, ids=repr)
def test_a_law_in_another_unit(law: Noise) -> None:
    u = np.linspace(0.005, 0.995, 100)
    assert law.scaled(1e6).ppf(u) == pytest.approx(1e6 * law.ppf(u), rel=1e-12, abs=1e-9)
    one, other = (x.sample(np.random.default_rng(0), (100,)) for x in (law, law.scaled(2.0**20)))
    assert np.array_equal(other, one * 2.0**20)
    assert np.array_equal(np.array(law.support) * 4, law.scaled(4).support)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Rounded(Rademacher(), 1), "law must be a law with a density"),
        (lambda: Rounded(Normal(), 0), "step must be a finite number above 0"),
        (lambda: ZeroInflated(Normal(), 1), "share must be a number above 0 and below 1"),
        (lambda: ZeroInflated("normal", 0.5), "law must be a noise law, got 'normal'"),  # type: ignore[arg-type]
        (lambda: Mixture((), ()), "laws must be one or more noise laws"),
        (lambda: Mixture((Normal(),), (0.5,)), "weights must be 1 positive numbers that sum to 1"),
        (lambda: Mixture((Normal(), Cauchy()), (1,)), "weights must be 2 positive numbers"),
        (lambda: Pareto(1, "mean"), "centre must be median, left or none for a law"),
        (lambda: Pareto(1, "mode"), "centre must be one of mean, median, left, none"),  # type: ignore[arg-type]
        (lambda: LogNormal(11), "sigma must be"),
        (lambda: TwoPoint(1, 1, 0.5), "low must be"),
        (lambda: TwoPoint(1, 0, 1), "p must be"),
        (lambda: PerArm(()), "laws must be one or more noise laws"),
        (lambda: Changing((Normal(), Cauchy()), at=()), "at must be a sequence of pull counts"),
        (lambda: Changing((Normal(), Cauchy()), at=5), "at must be a sequence of pull counts"),  # type: ignore[arg-type]
        (lambda: Changing((Normal(),) * 3, at=(5, 2)), "at must be in ascending order"),
        (lambda: Normal().scaled(0), "c must be a finite number above 0, got 0"),
    ],
)
def test_bad_compositions_are_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}"):
        make()


def test_each_arm_has_its_law() -> None:
    noise_by_arm = PerArm([Cauchy(), Normal(), Cauchy(), TwoPoint(9, -1, 0.1)])  # type: ignore[arg-type]
    recipe_is_frozen(noise_by_arm)
    chosen = np.repeat([3, 0, 1, 2], 1000)
    x = noise_by_arm.sample(np.random.default_rng(26), chosen, pulled=7, pulls=3)
    assert x.shape == (4000, 3)
    assert set(x[:1000].ravel()) == {-1.0, 9.0}
    for arm, law in ((0, Cauchy()), (1, Normal()), (2, Cauchy())):
        assert stats.kstest(law.cdf(x[chosen == arm].ravel()), "uniform").pvalue > FALSE_ALARM
    again = noise_by_arm.sample(np.random.default_rng(26), chosen[::-1] * 0 + 1, 7, 3)
    assert np.array_equal(again[2000:3000], x[2000:3000]), "others' choices change no draw"
    assert noise_by_arm.scaled(2).laws[3] == TwoPoint(9, -1, 0.1, scale=2)


def test_a_law_follows_another() -> None:
    changing = Changing((Degenerate(), Rademacher(), Rademacher(10)), at=(4, 6))
    recipe_is_frozen(changing)
    rng, chosen = np.random.default_rng(0), np.array([0, 1])
    x = np.concatenate([changing.sample(rng, chosen, pulled, 3) for pulled in (0, 3, 6)], axis=1)
    assert np.abs(x).tolist() == [[0, 0, 0, 0, 1, 1, 10, 10, 10]] * 2
    assert changing.scaled(3).laws[2] == Rademacher(30)
