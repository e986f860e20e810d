"""The formulas of the paper: reference values, defining properties, extremes and refusals."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from tailproof import theory
from tailproof.noise import Cauchy, Noise, StudentT, SymmetricPareto
from tailproof.stats.estimators import MeanOfMedians
from tailproof.stats.medians import NoiseMedian
from tailproof.stats.theory import (
    balancing_exponent,
    block_size,
    constant,
    error_bound,
    filter_pulls,
    filtered_oful_regret,
    filtered_regret,
    median_failure,
    median_radius,
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
    assert float(law.beyond(np.array(radius))) <= median_failure(n) + 1e-12


def test_the_corollary_is_the_theorem_with_ofuls_bound() -> None:
    repeats = filter_pulls(horizon=10**9, delta=0.01, alpha=1)
    inside = oful_regret(10**9 / repeats, dim=5, delta=0.01)
    found = filtered_oful_regret(horizon=10**9, dim=5, delta=0.01, alpha=1)
    assert found == pytest.approx(repeats * inside)
    shapes = [
        filtered_regret(lambda t: t**0.5, horizon=10**6, repeats=repeats) for repeats in (1, 100)
    ]
    assert shapes[1] == pytest.approx(10 * shapes[0])  # √ñ


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
}
NO_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, None, "0.5", True]
WHOLE = ("dim", "horizon", "n", "repeats")
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
    **{name: [0, -1, 2.5, 100.0, math.inf, None, "9", True] for name in WHOLE},
}


def test_every_function_has_its_bad_inputs_tested() -> None:
    assert sorted(GOOD) == sorted(theory.__all__)


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
