"""The formulas of the paper: reference values, defining properties, extremes and refusals."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import bdtrc, betainc, betaincinv
from scipy.stats import binom, binomtest

from tailproof import theory
from tailproof.noise import Cauchy, Noise, StudentT, SymmetricPareto
from tailproof.stats.estimators import MeanOfMedians
from tailproof.stats.medians import NoiseMedian
from tailproof.stats.theory import (
    balancing_exponent,
    block_size,
    central_mass,
    constant,
    error_bound,
    filter_pulls,
    filtered_oful_regret,
    filtered_regret,
    huber_radius,
    huber_ridge,
    median_failure,
    median_pulls,
    median_radius,
    median_schedule,
    oful_regret,
    sample_complexity,
)

FALSE_ALARM = 1e-4  # of each statistical test
ROUNDING = 1e-9  # far above what logarithms and exponentials lose, far below any real error

repeatable = settings(derandomize=True, deadline=None)
deltas = st.floats(1e-12, 0.5)
alphas = st.floats(0.25, 4)
epsilons = st.floats(0.2, 0.8)


# The values of the summary of the paper, at T = 10⁴, δ = 0.01, ε = ½.
@pytest.mark.parametrize(("alpha", "pulls"), [(1, 53_889), (2, 53_889), (0.5, 9_410_353)])
def test_filter_pulls_reference(alpha: float, pulls: int) -> None:
    assert filter_pulls(horizon=10_000, delta=0.01, alpha=alpha, block_exponent=0.5) == pulls


@repeatable
@given(st.integers(1, 10**9), deltas, alphas, epsilons)
def test_filter_pulls_is_the_formula(
    horizon: int, delta: float, alpha: float, epsilon: float
) -> None:
    exact = max(
        constant(epsilon),
        (16 * math.log(2 * horizon / delta)) ** (1 / epsilon),
        (2 * 4 ** (2 / alpha) * math.log(4 / delta)) ** (1 / (1 - epsilon)),
    )
    pulls = filter_pulls(horizon=horizon, delta=delta, alpha=alpha, block_exponent=epsilon)
    assert isinstance(pulls, int)
    assert exact * (1 - ROUNDING) <= pulls < exact * (1 + ROUNDING) + 1


def excess(x: float, epsilon: float) -> float:
    """Logarithm of 2 x^(1−ε) exp(−x^ε/16), which C keeps at or below zero."""
    return math.log(2) + (1 - epsilon) * math.log(x) - math.pow(x, epsilon) / 16


@pytest.mark.parametrize(
    "epsilon", [0.02, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.97, 0.999, 1 - 1e-9, 1 - 1e-16]
)
def test_constant_is_the_smallest_that_holds_from_there_on(epsilon: float) -> None:
    c = constant(epsilon)
    assert excess(c, epsilon) == pytest.approx(0, abs=ROUNDING)
    assert excess(c * (1 - ROUNDING), epsilon) > 0
    assert all(excess(c * (1 + step), epsilon) < 0 for step in np.geomspace(ROUNDING, 1e100, 500))


@pytest.mark.parametrize("epsilon", [1e-2, 1e-3, 1e-100, 1e-310, 5e-324])
def test_constant_beyond_the_largest_float(epsilon: float) -> None:
    assert excess(1.7e308, epsilon) > 0
    assert constant(epsilon) == math.inf


@st.composite
def powers(draw: st.DrawFn) -> tuple[int, int, int]:
    """Draw n, p, q with n^p ≤ 10¹⁰, so that n^(p/q) is whole or clearly not."""
    q = draw(st.integers(2, 6))
    p = draw(st.integers(1, q - 1))
    return draw(st.integers(1, int(10 ** (10 / p)))), p, q


@repeatable
@given(powers())
@example((1, 1, 2))
@example((10**10, 1, 2))
def test_block_size_is_the_smallest_whole_number_above_the_power(
    case: tuple[int, int, int],
) -> None:
    n, p, q = case
    k = block_size(n, p / q)
    assert (k - 1) ** q < n**p <= k**q


@repeatable
@given(st.integers(1, 200), st.integers(2, 8), st.data())
def test_block_size_of_perfect_powers(root: int, q: int, data: st.DataObject) -> None:
    p = data.draw(st.integers(1, q - 1))
    assert block_size(root**q, p / q) == root**p


@pytest.mark.parametrize("root", [10, 1000, 10**5, 10**6])
def test_block_size_just_above_a_perfect_power(root: int) -> None:
    assert block_size(root**2 + 1, 0.5) == root + 1


@repeatable
@given(st.floats(1e-3, 10), deltas, alphas, epsilons)
def test_sample_complexity_reaches_the_accuracy(
    accuracy: float, delta: float, alpha: float, epsilon: float
) -> None:
    n = sample_complexity(accuracy=accuracy, delta=delta, alpha=alpha, block_exponent=epsilon)
    assert isinstance(n, int)
    reached = error_bound(n=n, delta=delta, alpha=alpha, block_exponent=epsilon)
    assert reached <= accuracy * (1 + ROUNDING)


@repeatable
@given(st.floats(1, 1e6), deltas, alphas, epsilons)
def test_error_bound_inverts_sample_complexity(
    factor: float, delta: float, alpha: float, epsilon: float
) -> None:
    condition = max(constant(epsilon), (16 * math.log(2 / delta)) ** (1 / epsilon))
    n = math.ceil(condition * factor * (1 + ROUNDING))
    accuracy = error_bound(n=n, delta=delta, alpha=alpha, block_exponent=epsilon)
    assert accuracy == pytest.approx(
        math.sqrt(2 * 4 ** (2 / alpha) * math.log(4 / delta) / n ** (1 - epsilon))
    )
    back = sample_complexity(accuracy=accuracy, delta=delta, alpha=alpha, block_exponent=epsilon)
    assert abs(back - n) <= 1 + ROUNDING * n


@pytest.mark.parametrize(
    ("delta", "epsilon", "least"),
    [
        (0.1, 0.5, math.ceil(constant(0.5))),  # C decides
        (1e-9, 0.5, math.ceil((16 * math.log(2e9)) ** 2)),  # the length of the blocks decides
    ],
)
def test_error_bound_refuses_what_is_not_proved(delta: float, epsilon: float, least: int) -> None:
    assert error_bound(n=least, delta=delta, alpha=1, block_exponent=epsilon) > 0
    with pytest.raises(ValueError, match=rf"^n must be at least {least}, .* got {least - 1}$"):
        error_bound(n=least - 1, delta=delta, alpha=1, block_exponent=epsilon)


@repeatable
@given(st.integers(1, 10**9), deltas, st.floats(0.05, 20))
def test_balancing_exponent_makes_the_terms_equal(horizon: int, delta: float, alpha: float) -> None:
    def log_terms(epsilon: float) -> tuple[float, float]:
        block = math.log(16 * math.log(2 * horizon / delta)) / epsilon
        count = math.log(2 * 4 ** (2 / alpha) * math.log(4 / delta)) / (1 - epsilon)
        return block, count

    epsilon = balancing_exponent(horizon=horizon, delta=delta, alpha=alpha)
    block, count = log_terms(epsilon)
    assert block == pytest.approx(count, rel=ROUNDING)
    assert max(log_terms(epsilon * 0.99)) > block  # and the larger term is smallest there
    assert max(log_terms(1 - (1 - epsilon) * 0.99)) > block


@pytest.mark.parametrize("alpha", [1e-3, 1e-300, 5e-324])
def test_overflow_gives_infinity(alpha: float) -> None:
    assert filter_pulls(horizon=10_000, delta=0.01, alpha=alpha) == math.inf
    assert sample_complexity(accuracy=1, delta=0.01, alpha=alpha) == math.inf
    assert error_bound(n=10**6, delta=0.01, alpha=alpha) > 1e300
    assert 0 <= balancing_exponent(horizon=10_000, delta=0.01, alpha=alpha) < 0.01


@pytest.mark.parametrize(
    ("horizon", "delta"), [(10**400, 0.01), (10_000, 1e-306)], ids=["horizon", "delta"]
)
def test_extreme_horizon_and_delta(horizon: int, delta: float) -> None:
    exact = (16 * (math.log(2) + math.log(horizon) - math.log(delta))) ** 2
    pulls = filter_pulls(horizon=horizon, delta=delta, alpha=2)
    assert exact * (1 - ROUNDING) <= pulls < exact * (1 + ROUNDING) + 1


@pytest.mark.parametrize(
    ("noise", "alpha"),
    [(Cauchy(), 1.0), (Cauchy(7), 0.8), (SymmetricPareto(0.5), 0.5), (StudentT(0.5), 0.4)],
    ids=repr,
)
def test_theorem_1_holds(noise: Noise, alpha: float) -> None:
    delta, epsilon, paths = 0.2, 0.5, 100
    n = math.ceil(constant(epsilon))
    rewards = noise.sample(np.random.default_rng(1), (paths, n)) / noise.unit_scale(alpha)
    misses = np.abs(MeanOfMedians(block_exponent=epsilon)(rewards)) > error_bound(
        n=n, delta=delta, alpha=alpha, block_exponent=epsilon
    )
    test = binomtest(int(misses.sum()), paths, delta, alternative="greater")
    assert test.pvalue > FALSE_ALARM


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_a_tail_constant_is_a_change_of_unit(alpha: float) -> None:
    """Noise of constant c is c^(1/α) times noise of constant 1."""
    c, delta = 3.0, 0.05
    unit = c ** (1 / alpha)
    n = filter_pulls(horizon=1000, delta=delta, alpha=alpha)
    assert median_radius(alpha=alpha, tail_constant=c) == pytest.approx(
        unit * median_radius(alpha=alpha)
    )
    assert error_bound(n=int(n), delta=delta, alpha=alpha, tail_constant=c) == pytest.approx(
        unit * error_bound(n=int(n), delta=delta, alpha=alpha)
    )
    wide, plain = (
        sample_complexity(accuracy=accuracy, delta=delta, alpha=alpha, tail_constant=constant)
        for accuracy, constant in ((0.2 * unit, c), (0.2, 1.0))
    )
    assert wide == pytest.approx(plain, abs=1)
    smaller = filter_pulls(horizon=1000, delta=delta, alpha=alpha, tail_constant=1e-9)
    assert smaller <= n <= filter_pulls(horizon=1000, delta=delta, alpha=alpha, tail_constant=c)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 5, 20, 101])
def test_the_lemma_on_one_median(n: int, alpha: float) -> None:
    """The Pareto law meets the tail bound with equality, so it is the worst case."""
    law = NoiseMedian(SymmetricPareto(alpha), n)
    radius = median_radius(alpha=alpha)
    assert float(law.exceedance(np.array(radius))) <= median_failure(n) + 1e-12


def test_the_corollary_is_the_theorem_with_ofuls_bound() -> None:
    repeats = filter_pulls(horizon=10**9, delta=0.01, alpha=1)
    inside = oful_regret(10**9 / repeats, dim=5, delta=0.01)
    found = filtered_oful_regret(horizon=10**9, dim=5, delta=0.01, alpha=1)
    assert found == pytest.approx(repeats * inside)
    shapes = [
        filtered_regret(lambda t: t**0.5, horizon=10**6, repeats=repeats) for repeats in (1, 100)
    ]
    assert shapes[1] == pytest.approx(10 * shapes[0])  # √ñ


# The values of the bars of theorem 1, at δ = 0.01.
@pytest.mark.parametrize(
    ("horizon", "alpha", "block", "scale"),
    [
        (10**4, 3, 5, 1.18),
        (10**4, 1, 15, 1.33),
        (10**4, 0.5, 37, 1.43),
        (10**6, 1, 21, 1.26),
        (10**6, 0.5, 51, 1.33),
    ],
)
def test_median_pulls_reference(horizon: int, alpha: float, block: int, scale: float) -> None:
    found = median_pulls(horizon=horizon, delta=0.01, alpha=alpha)
    assert found.block == block
    assert found.scale == pytest.approx(scale, abs=0.01)
    assert found.factor == found.scale * math.sqrt(block)


def clipped_square(k: int, alpha: float, y: float) -> float:
    """σ² by adaptive quadrature over z and a fine grid of s, with binomial sums for the tail."""

    def beyond(z: float) -> float:
        return 2 * float(bdtrc((k - 1) // 2, k, z**-alpha / 2))

    def log_mean(s: float) -> float:
        rest, _ = quad(lambda z: s * math.sinh(s * z) * beyond(z), 1, y, epsabs=0, epsrel=1e-11)
        return math.log(math.cosh(s) + rest)

    squares = [2 * log_mean(float(s)) / s**2 for s in np.geomspace(0.02, 60, 60) / y]
    return float(max(squares))


@pytest.mark.parametrize("alpha", [3, 1, 0.5])
@pytest.mark.parametrize("horizon", [10**2, 10**4, 10**6])
def test_median_pulls_agree_with_an_independent_quadrature(horizon: int, alpha: float) -> None:
    found = median_pulls(horizon=horizon, delta=0.01, alpha=alpha)
    k, y = found.block, found.cut
    exits = 2 * (math.ceil(horizon / k) - 1) * binom.sf((k - 1) // 2, k, y**-alpha / 2)
    assert exits == pytest.approx(0.01, rel=1e-9)
    square = clipped_square(k, alpha, y)
    assert found.scale**2 == pytest.approx(square, rel=1e-3)
    assert found.scale**2 >= square * (1 - 1e-9)


def test_sigma_is_a_supremum_away_from_zero_too() -> None:
    """Short blocks with a far cut: there the variance is not enough."""
    found = median_schedule(decision=1, delta=0.9, alpha=1, cut=9)
    square = clipped_square(found.block, 1, 9)
    assert found.block == 1
    variance = 1 + quad(lambda z: 2 * z * z**-1.0, 1, 9)[0]
    assert square > variance * 1.01
    assert found.scale**2 == pytest.approx(square, rel=1e-3)


@settings(repeatable, max_examples=30)
@given(st.integers(1, 150), st.floats(1e-6, 0.5), st.floats(0.2, 5))
@example(1, 0.01, 1.0)
@example(2, 0.5, 0.2)
def test_no_odd_block_has_a_smaller_factor(horizon: int, delta: float, alpha: float) -> None:
    factors = []
    for k in range(1, horizon + 2, 2):
        half, medians = (k + 1) / 2, math.ceil(horizon / k) - 1
        p = betaincinv(half, half, delta / 2 / medians) if medians else 0.5
        factors.append(theory._clipped(k, float(p), alpha)[0] * math.sqrt(k))
    found = median_pulls(horizon=horizon, delta=delta, alpha=alpha)
    assert found.factor == pytest.approx(min(factors), rel=ROUNDING)


@repeatable
@given(st.integers(1, 10**9), deltas, alphas, st.floats(1.1, 100))
def test_the_schedule_takes_the_shortest_block(
    decision: int, delta: float, alpha: float, cut: float
) -> None:
    found = median_schedule(decision=decision, delta=delta, alpha=alpha, cut=cut)
    level = delta / decision / (decision + 1)
    half = (found.block + 1) // 2
    assert found.block % 2 == 1
    assert found.cut == pytest.approx(cut)
    assert 2 * betainc(half, half, cut**-alpha / 2) <= level
    if half > 1:
        assert 2 * betainc(half - 1, half - 1, cut**-alpha / 2) > level


def test_the_huber_ridge_and_radius_are_the_formulas() -> None:
    log = math.log(100)
    net = 2 * (50 * math.log(12 * 10**9) + log + 0.5)
    growth = 64 * (2 * log + 50 * math.log(1 + 10**9 / (128 * 50 * log)))
    ridge = huber_ridge(dim=50, horizon=10**9, delta=0.01, mass=1, length_bound=3)
    assert ridge == pytest.approx(9 * max(net, growth))
    radius = huber_radius(log_det=2, tau=8, ridge=100, delta=0.01, mass=0.5, norm_bound=3)
    assert radius == pytest.approx(2 * (8 * math.sqrt((2 * log + 2) / 0.5) + 30))


@pytest.mark.parametrize("law", [Cauchy(3), StudentT(0.5), StudentT(3), SymmetricPareto(1)])
def test_the_central_mass_is_there(law: Noise) -> None:
    constant = law.tail_constant()
    for tau in np.geomspace(2.1, 100, 9) * constant ** (1 / law.alpha):
        mass = central_mass(tau=tau, alpha=law.alpha, tail_constant=constant)
        assert 0 < mass <= 1 - 2 * law.cdf(-tau / 2) + ROUNDING


LAW = {"delta": 0.01, "alpha": 1, "tail_constant": 1}
GOOD: dict[str, dict[str, Any]] = {
    "balancing_exponent": {"horizon": 10_000, **LAW},
    "block_size": {"n": 100, "block_exponent": 0.5},
    "constant": {"block_exponent": 0.5},
    "error_bound": {"n": 10_000, **LAW, "block_exponent": 0.5},
    "filter_pulls": {"horizon": 10_000, **LAW, "block_exponent": 0.5},
    "filtered_oful_regret": {"horizon": 10_000, "dim": 10, **LAW},
    "filtered_regret": {"regret": math.sqrt, "horizon": 10_000, "repeats": 15},
    "median_failure": {"n": 15},
    "median_radius": {"alpha": 1, "tail_constant": 2},
    "oful_regret": {"decisions": 100, "dim": 10, "delta": 0.01, "noise_scale": 1, "ridge": 2},
    "sample_complexity": {"accuracy": 0.5, **LAW, "block_exponent": 0.5},
    "central_mass": {"tau": 8, "alpha": 1, "tail_constant": 1},
    "huber_radius": {
        "log_det": 1,
        "tau": 8,
        "ridge": 900,
        "delta": 0.01,
        "mass": 0.75,
        "norm_bound": 1,
    },
    "huber_ridge": {"dim": 5, "horizon": 2000, "delta": 0.01, "mass": 0.75, "length_bound": 1},
    "median_pulls": {"horizon": 10_000, "delta": 0.01, "alpha": 1, "tail_constant": 1},
    "median_schedule": {"decision": 3, "delta": 0.01, "alpha": 1, "cut": 4, "tail_constant": 1},
}
NO_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, None, "0.5", True]
WHOLE = ("decision", "dim", "horizon", "n", "repeats")
BAD: dict[str, list[Any]] = {
    "accuracy": [0, -1, *NO_NUMBERS],
    "alpha": [0, -0.5, *NO_NUMBERS],
    "delta": [0, 1, -0.01, 2, *NO_NUMBERS],
    "block_exponent": [0, 1, -0.5, 1.5, *NO_NUMBERS],
    "decisions": [0, -1, *NO_NUMBERS],
    "noise_scale": [0, -1, *NO_NUMBERS],
    "ridge": [0, -1, *NO_NUMBERS],
    "tail_constant": [0, -1, *NO_NUMBERS],
    "regret": [],
    "cut": [1, 0.5, -4, *NO_NUMBERS],
    "length_bound": [0, -1, *NO_NUMBERS],
    "log_det": [-1, *NO_NUMBERS],
    "mass": [0, -0.1, 1.1, *NO_NUMBERS],
    "norm_bound": [0, -1, *NO_NUMBERS],
    "tau": [0, -1, *NO_NUMBERS],
    **{name: [0, -1, 2.5, 100.0, math.inf, None, "9", True] for name in WHOLE},
}


def test_every_function_has_its_bad_inputs_tested() -> None:
    assert {"MedianPulls", *GOOD} == set(theory.__all__)


@pytest.mark.parametrize("name", GOOD)
def test_bad_inputs_are_refused_by_name_and_value(name: str) -> None:
    function: Callable[..., object] = getattr(theory, name)
    function(**GOOD[name])
    for parameter in GOOD[name]:
        for value in BAD[parameter]:
            message = f"^{parameter} must be .* got {re.escape(repr(value))}$"
            with pytest.raises(ValueError, match=message):
                function(**{**GOOD[name], parameter: value})


@pytest.mark.parametrize("parameter", ["accuracy", "delta", "alpha", "block_exponent"])
def test_a_whole_number_beyond_the_floats_is_refused(parameter: str) -> None:
    with pytest.raises(ValueError, match=f"^{parameter} must be"):
        sample_complexity(**{**GOOD["sample_complexity"], parameter: 10**400})
