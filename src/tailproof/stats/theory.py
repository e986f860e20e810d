"""What the paper proves, as functions.

The noise is symmetric with P(|η| > y) ≤ 1/y^α for every y > 0. A noise with the bound c/y^α is
brought to this form by dividing it by c^(1/α), see `tailproof.noise.Noise.unit_scale`.

Numbers of samples are whole numbers, or ``math.inf`` where they exceed the largest float.

Source: Zhong, Huang, Yang, Wang, "Breaking the Moments Condition Barrier", NeurIPS 2021.
"""

import math
import sys

from scipy.optimize import brentq

from tailproof.checks import number, require, whole

__all__ = [
    "balancing_exponent",
    "block_size",
    "constant",
    "error_bound",
    "filter_pulls",
    "sample_complexity",
]


def block_size(n: int, block_exponent: float) -> int:
    """Return the block length k of Algorithm 1.

    k = ⌈n^ε⌉

    >>> block_size(53_889, 0.5)
    233

    Source: Algorithm 1, line 2.
    Differences: an n^ε that misses a whole number by rounding alone counts as that number.
    """
    power: float = whole("n", n, at_most=sys.float_info.max) ** number(
        "block_exponent", block_exponent, above=0, below=1
    )
    nearest = round(power)
    return nearest if math.isclose(power, nearest, rel_tol=4e-15) else math.ceil(power)


def constant(block_exponent: float) -> float:
    """Return the constant C of Theorems 1 and 2.

    C is the smallest number such that 2 x^(1−ε) exp(−x^ε/16) ≤ 1 for every x ≥ C.

    >>> round(constant(0.5), 1)
    6642.3

    Source: Theorem 1, where C is any number with that property. Differences: the smallest is taken.
    """
    return _exp(_log_constant(block_exponent))


def filter_pulls(*, horizon: int, delta: float, alpha: float, block_exponent: float = 0.5) -> float:
    """Return the pulls ñ per decision that Theorem 2 asks for.

    ñ = ⌈max{C, (16 ln(2T/δ))^(1/ε), (2·4^(2/α) ln(4/δ))^(1/(1−ε))}⌉

    >>> filter_pulls(horizon=10_000, delta=0.01, alpha=1)
    53889
    >>> filter_pulls(horizon=10_000, delta=0.01, alpha=0.001)
    inf

    Source: Theorem 2. Differences: none.
    """
    return _ceil(
        max(
            _log_constant(block_exponent),
            _log_block(delta, block_exponent, whole("horizon", horizon)),
            _log_count(delta, alpha) / (1 - block_exponent),
        )
    )


def error_bound(*, n: int, delta: float, alpha: float, block_exponent: float = 0.5) -> float:
    """Return the error that the mean of medians of n samples keeps with probability 1 − δ.

    |X_mom| ≤ sqrt(2·4^(2/α) ln(4/δ) / n^(1−ε)) for n ≥ max{C, (16 ln(2/δ))^(1/ε)}

    >>> round(error_bound(n=53_889, delta=0.01, alpha=1), 3)
    0.909

    Source: Theorem 1.
    Differences: an n below the theorem's condition is refused, since nothing is proved there.
    """
    least = _ceil(max(_log_constant(block_exponent), _log_block(delta, block_exponent)))
    require(whole("n", n) >= least, "n", f"at least {least}, the condition of Theorem 1", n)
    return _exp((_log_count(delta, alpha) - (1 - block_exponent) * math.log(n)) / 2)


def sample_complexity(
    *, accuracy: float, delta: float, alpha: float, block_exponent: float = 0.5
) -> float:
    """Return the samples that bring the error below ζ = `accuracy` with probability 1 − δ.

    n ≥ max{C, (16 ln(2/δ))^(1/ε), (2·4^(2/α) ln(4/δ) / ζ²)^(1/(1−ε))}

    >>> sample_complexity(accuracy=0.5, delta=0.01, alpha=1)
    588148

    Source: the remark after Theorem 1. Differences: none.
    """
    number("accuracy", accuracy, above=0)
    return _ceil(
        max(
            _log_constant(block_exponent),
            _log_block(delta, block_exponent),
            (_log_count(delta, alpha) - 2 * math.log(accuracy)) / (1 - block_exponent),
        )
    )


def balancing_exponent(*, horizon: int, delta: float, alpha: float) -> float:
    """Return the ε at which the two growing terms of Theorem 2 are equal.

    (16 ln(2T/δ))^(1/ε) = (2·4^(2/α) ln(4/δ))^(1/(1−ε))

    >>> round(balancing_exponent(horizon=10_000, delta=0.01, alpha=1), 3)
    0.509

    Source: appendix B of the paper. Differences: none.
    """
    block = _log_block(delta, 0.5, whole("horizon", horizon)) / 2
    return block / (block + _log_count(delta, alpha))


def _log_constant(block_exponent: float) -> float:
    # With y = x^ε and a = (1−ε)/ε the condition on C reads ln 2 + a ln y ≤ y/16. The excess is
    # concave in y with its maximum, always positive, at 16a; its larger root is C^ε.
    a = (1 - number("block_exponent", block_exponent, above=0, below=1)) / block_exponent

    def excess(y: float) -> float:
        return math.log(2) + a * math.log(y) - y / 16

    above = 16 * a + 32
    if above == math.inf:
        return math.inf
    while excess(above) > 0:
        above *= 2
    return math.log(brentq(excess, 16 * a, above, xtol=1e-14, rtol=1e-14)) / block_exponent


def _log_block(delta: float, block_exponent: float, horizon: int = 1) -> float:
    """Logarithm of (16 ln(2T/δ))^(1/ε): blocks long enough for every median to be tame."""
    number("delta", delta, above=0, below=1)
    number("block_exponent", block_exponent, above=0, below=1)
    return math.log(16 * (math.log(2) + math.log(horizon) - math.log(delta))) / block_exponent


def _log_count(delta: float, alpha: float) -> float:
    """Logarithm of 2·4^(2/α) ln(4/δ): blocks enough for their mean to concentrate."""
    number("delta", delta, above=0, below=1)
    number("alpha", alpha, above=0)
    return math.log(2) + 2 / alpha * math.log(4) + math.log(math.log(4) - math.log(delta))


def _exp(log: float) -> float:
    return math.exp(log) if log < math.log(sys.float_info.max) else math.inf


def _ceil(log: float) -> float:
    value = _exp(log)
    return math.ceil(value) if value < math.inf else value
