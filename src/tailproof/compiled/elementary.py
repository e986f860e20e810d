"""Logarithms and exponentials as plain sums, so that a loop over arms computes several at a time.

Calls would end such a loop, so cores have these functions inside it. Results are within a few
roundings of the exact ones.
"""

import math

__all__ = ["exp_within_40", "expm1_to_500", "lean_to_variance", "log1p_from_0", "squared_reach"]

_LOG_2 = math.log(2)
_PER_LOG_2 = 1 / _LOG_2
# ln 2 as a sum, whose first part times a whole number below 2²⁰ is exact
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Taylor's series of eˣ − 1, to 10⁻¹⁷ at ½ ln 2
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (
    1 / math.factorial(n) for n in range(2, 14)
)
_SHIFT = 64  # makes exponents down to −58 positive
_SMALL = 2.0**-_SHIFT
_ROOT_2 = math.sqrt(2)
_2_512, _2_256, _2_128, _2_64, _2_32, _2_16 = (2.0**n for n in (512, 256, 128, 64, 32, 16))


def power_of_two(k: int) -> float:
    """Return 2ᵏ for 0 ≤ k < 1024."""
    x = 2.0 if k & 1 else 1.0
    x *= 4.0 if k & 2 else 1.0
    x *= 16.0 if k & 4 else 1.0
    x *= 256.0 if k & 8 else 1.0
    x *= _2_16 if k & 16 else 1.0
    x *= _2_32 if k & 32 else 1.0
    x *= _2_64 if k & 64 else 1.0
    x *= _2_128 if k & 128 else 1.0
    x *= _2_256 if k & 256 else 1.0
    return x * (_2_512 if k & 512 else 1.0)


def expm1_series(x: float) -> float:
    """Return eˣ − 1 for |x| ≤ ½ ln 2."""
    high = _E8 + x * (_E9 + x * (_E10 + x * (_E11 + x * (_E12 + x * _E13))))
    return x + x * x * (_E2 + x * (_E3 + x * (_E4 + x * (_E5 + x * (_E6 + x * (_E7 + x * high))))))


def expm1_to_500(x: float) -> float:
    """Return eˣ − 1 for 0 ≤ x ≤ 500.

    >>> max(abs(expm1_to_500(x) / math.expm1(x) - 1) for x in (1e-20, 0.3, 5.0, 500.0)) < 1e-15
    True
    """
    k = int(x * _PER_LOG_2 + 0.5)
    power = power_of_two(k)
    return power * expm1_series((x - k * _HIGH) - k * _LOW) + (power - 1.0)


def exp_within_40(x: float) -> float:
    """Return eˣ for −40 ≤ x ≤ 40.

    >>> max(abs(exp_within_40(x) / math.exp(x) - 1) for x in (-40.0, -0.3, 0.0, 1e-9, 40.0)) < 1e-15
    True
    """
    k = int(x * _PER_LOG_2 + (_SHIFT + 0.5))
    n = k - _SHIFT
    return power_of_two(k) * _SMALL * (1.0 + expm1_series((x - n * _HIGH) - n * _LOW))


def log1p_from_0(x: float) -> float:
    """Return ln(1 + x) for a finite x ≥ 0.

    With 1 + x = 2ⁿ(1 + f)/(1 − f) this is n ln 2 + 2(f + f³/3 + f⁵/5 + …).

    >>> max(abs(log1p_from_0(x) / math.log1p(x) - 1) for x in (1e-20, 0.3, 7.0, 1e300)) < 1e-15
    True
    """
    whole = 1.0 + x
    lost = (x - (whole - 1.0)) / whole
    n, m = 0.0, whole
    n += 512.0 if m >= _2_512 else 0.0
    m *= 1 / _2_512 if m >= _2_512 else 1.0
    n += 256.0 if m >= _2_256 else 0.0
    m *= 1 / _2_256 if m >= _2_256 else 1.0
    n += 128.0 if m >= _2_128 else 0.0
    m *= 1 / _2_128 if m >= _2_128 else 1.0
    n += 64.0 if m >= _2_64 else 0.0
    m *= 1 / _2_64 if m >= _2_64 else 1.0
    n += 32.0 if m >= _2_32 else 0.0
    m *= 1 / _2_32 if m >= _2_32 else 1.0
    n += 16.0 if m >= _2_16 else 0.0
    m *= 1 / _2_16 if m >= _2_16 else 1.0
    n += 8.0 if m >= 256.0 else 0.0
    m *= 1 / 256.0 if m >= 256.0 else 1.0
    n += 4.0 if m >= 16.0 else 0.0
    m *= 1 / 16.0 if m >= 16.0 else 1.0
    n += 2.0 if m >= 4.0 else 0.0
    m *= 1 / 4.0 if m >= 4.0 else 1.0
    n += 1.0 if m >= _ROOT_2 else 0.0
    m *= 0.5 if m >= _ROOT_2 else 1.0
    n += 1.0 if m >= _ROOT_2 else 0.0
    m *= 0.5 if m >= _ROOT_2 else 1.0
    f = (m - 1.0) / (m + 1.0)
    z = f * f
    high = 1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21 + z / 23))))
    series = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * high))))
    return n * _LOG_2 + (2.0 * f * (1.0 + z * series) + lost)


def lean_to_variance(log: float) -> float:
    """Return a² = exp(2 ln a) of LinStudentUCB, within bounds."""
    return exp_within_40(min(max(2.0 * log, -40.0), 40.0))


def squared_reach(log: float, df: float) -> float:
    """Return n (exp(2L/n) − 1), where Student's t has fallen by exp(−L)."""
    return df * expm1_to_500(min(2.0 * log / df, 500.0))
