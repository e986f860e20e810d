"""The bounds proved in the paper, and our own under the same assumptions, as functions.

The noise is symmetric with P(|η| > y) ≤ c/y^α for every y > 0. The paper has c = 1; noise with
another `tail_constant` c is reduced to that case by dividing it by c^(1/α), which every function
here does (see also `tailproof.noise.Noise.tail_constant` and `unit_scale`).

Sample sizes are whole numbers, or ``math.inf`` if they exceed the largest float.

Source: Zhong, Huang, Yang, Wang, "Breaking the Moments Condition Barrier", NeurIPS 2021;
`median_pulls`, `median_schedule`, `central_mass`, `huber_ridge` and `huber_radius` are from our own
theorems, proved in docs/theory.md.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, betaln, log_expit, logit

from tailproof.bisection import first_integer
from tailproof.checks import number, require, whole
from tailproof.typing import Array

__all__ = [
    "MedianPulls",
    "balancing_exponent",
    "block_size",
    "central_mass",
    "constant",
    "error_bound",
    "filter_pulls",
    "filtered_oful_regret",
    "filtered_regret",
    "huber_radius",
    "huber_ridge",
    "median_failure",
    "median_pulls",
    "median_radius",
    "median_schedule",
    "oful_regret",
    "sample_complexity",
]


def block_size(n: int, block_exponent: float) -> int:
    """Return the block length k of Algorithm 1.

    k = ⌈n^ε⌉

    >>> block_size(53_889, 0.5)
    233

    Source: Algorithm 1, line 2.
    Differences: an n^ε that misses a whole number only by rounding counts as that number.
    """
    exponent = number("block_exponent", block_exponent, above=0, below=1)
    power: float = whole("n", n, at_most=sys.float_info.max) ** exponent
    nearest = round(power)
    return nearest if math.isclose(power, nearest, rel_tol=4e-15) else math.ceil(power)


def constant(block_exponent: float) -> float:
    """Return the constant C of Theorems 1 and 2.

    C is the smallest number such that 2 x^(1−ε) exp(−x^ε/16) ≤ 1 for every x ≥ C.

    >>> round(constant(0.5), 1)
    6642.3

    Source: Theorem 1, where C is any number with that property. Differences: the smallest one.
    """
    return _exp(_log_constant(block_exponent))


def median_radius(*, alpha: float, tail_constant: float = 1.0) -> float:
    """Return a bound on |median of n samples| that holds with probability 1 − `median_failure`.

    P(|median| ≤ (4c)^(1/α)) ≥ 1 − 2 exp(−n/8)

    >>> round(median_radius(alpha=0.5), 9)
    16.0

    Source: the lemma on one median, section 3.2. Differences: the constant c. By symmetry
    (2c)^(1/α) is enough, as each sample is above it with probability at most ¼.
    """
    number("alpha", alpha, above=0)
    return _exp((math.log(4) + math.log(number("tail_constant", tail_constant, above=0))) / alpha)


def median_failure(n: int) -> float:
    """Return a bound on the probability that |median of n samples| exceeds `median_radius`.

    min{1, 2 exp(−n/8)}

    >>> round(median_failure(100), 8)
    7.45e-06

    Source: the lemma on one median, section 3.2. Differences: none.
    """
    return min(1.0, 2 * math.exp(-whole("n", n) / 8))


def filtered_regret(regret: Callable[[float], float], *, horizon: int, repeats: int) -> float:
    """Return the regret bound of a filtered algorithm, counted in pulls.

    ñ·R(T/ñ), where R(t) bounds the algorithm's regret over t decisions

    >>> filtered_regret(lambda t: 10 * t**0.5, horizon=10_000, repeats=100)
    10000.0

    Source: Theorem 2, with probability 1 − 2δ for the ñ of `filter_pulls`. Differences: none.
    """
    whole("horizon", horizon)
    return repeats * regret(horizon / whole("repeats", repeats))


def oful_regret(
    decisions: float,
    *,
    dim: int,
    delta: float,
    noise_scale: float = 1.0,
    norm_bound: float = 1.0,
    ridge: float = 1.0,
) -> float:
    """Return the regret bound of `tailproof.OFUL` under sub-Gaussian noise and ‖x‖ ≤ 1.

    4 √(t d ln(λ + t/d)) (√λ S + R √(2 ln(1/δ) + d ln(1 + t/(λd))))

    >>> round(oful_regret(10_000, dim=10, delta=0.01))
    32744

    Source: Abbasi-Yadkori, Pál and Szepesvári 2011, theorem 3, from memory. Differences: none.
    """
    t, d = number("decisions", decisions, above=0), whole("dim", dim)
    number("ridge", ridge, above=0)
    radius = math.sqrt(ridge) * number("norm_bound", norm_bound, at_least=0)
    confidence = 2 * math.log(1 / number("delta", delta, above=0, below=1))
    spread = math.sqrt(confidence + d * math.log1p(t / (ridge * d)))
    radius += number("noise_scale", noise_scale, above=0) * spread
    return 4 * math.sqrt(t * d * max(math.log(ridge + t / d), 0)) * radius


def filtered_oful_regret(
    *, horizon: int, dim: int, delta: float, alpha: float, tail_constant: float = 1.0
) -> float:
    """Return the regret bound of OFUL behind the filter of Theorem 2 with ε = ½.

    ñ·R(T/ñ) = Õ(d √(ñT)), R the bound of OFUL for noise of scale 1

    >>> bound = filtered_oful_regret(horizon=10**9, dim=10, delta=0.01, alpha=1)
    >>> f"{bound:.2g}"
    '4e+09'

    Source: the corollary after Theorem 2, where the constants are not written out; with
    probability 1 − 2δ as in the theorem. Differences: OFUL's own bound in place of Õ; it exceeds
    the largest possible regret, T, unless T is astronomically large.
    """
    repeats = filter_pulls(horizon=horizon, delta=delta, alpha=alpha, tail_constant=tail_constant)
    require(repeats < math.inf, "alpha", "large enough for a finite number of pulls", alpha)
    regret = partial(oful_regret, dim=dim, delta=delta)
    return filtered_regret(regret, horizon=horizon, repeats=int(repeats))


def filter_pulls(
    *,
    horizon: int,
    delta: float,
    alpha: float,
    block_exponent: float = 0.5,
    tail_constant: float = 1.0,
) -> float:
    """Return the pulls ñ per decision that Theorem 2 requires.

    ñ = ⌈max{C, (16 ln(2T/δ))^(1/ε), (2·(4c)^(2/α) ln(4/δ))^(1/(1−ε))}⌉

    >>> filter_pulls(horizon=10_000, delta=0.01, alpha=1)
    53889
    >>> filter_pulls(horizon=10_000, delta=0.01, alpha=0.001)
    inf

    Source: Theorem 2. Differences: the constant c. To hold at all decisions simultaneously, the
    last term needs ln(4T/δ), see docs/paper.md.
    """
    block = _log_block(delta, block_exponent, whole("horizon", horizon))
    return _samples(block, _log_count(delta, alpha, tail_constant), block_exponent)


def error_bound(
    *, n: int, delta: float, alpha: float, block_exponent: float = 0.5, tail_constant: float = 1.0
) -> float:
    """Return a bound on the error of the mean of medians that holds with probability 1 − δ.

    |X_mom| ≤ sqrt(2·(4c)^(2/α) ln(4/δ) / n^(1−ε)) for n ≥ max{C, (16 ln(2/δ))^(1/ε)}

    >>> round(error_bound(n=53_889, delta=0.01, alpha=1), 3)
    0.909

    Source: Theorem 1, which writes n^(1−ε) for the number k' of blocks, slightly smaller because
    of rounding. Differences: the constant c; an n below the theorem's condition raises an error,
    since nothing is proved there.
    """
    least = _ceil(max(_log_constant(block_exponent), _log_block(delta, block_exponent)))
    require(whole("n", n) >= least, "n", f"at least {least}, the condition of Theorem 1", n)
    count = _log_count(delta, alpha, tail_constant)
    return _exp((count - (1 - block_exponent) * math.log(n)) / 2)


def sample_complexity(
    *,
    accuracy: float,
    delta: float,
    alpha: float,
    block_exponent: float = 0.5,
    tail_constant: float = 1.0,
) -> float:
    """Return the sample size for an error below ζ = `accuracy` with probability 1 − δ.

    n ≥ max{C, (16 ln(2/δ))^(1/ε), (2·(4c)^(2/α) ln(4/δ) / ζ²)^(1/(1−ε))}

    >>> sample_complexity(accuracy=0.5, delta=0.01, alpha=1)
    588148

    Source: the remark after Theorem 1. Differences: the constant c.
    """
    log_accuracy = math.log(number("accuracy", accuracy, above=0))
    count = _log_count(delta, alpha, tail_constant) - 2 * log_accuracy
    return _samples(_log_block(delta, block_exponent), count, block_exponent)


def balancing_exponent(
    *, horizon: int, delta: float, alpha: float, tail_constant: float = 1.0
) -> float:
    """Return the ε at which the two growing terms of Theorem 2 are equal.

    (16 ln(2T/δ))^(1/ε) = (2·(4c)^(2/α) ln(4/δ))^(1/(1−ε))

    >>> round(balancing_exponent(horizon=10_000, delta=0.01, alpha=1), 3)
    0.509

    Source: appendix B of the paper. Differences: the constant c.
    """
    block = _log_block(delta, 0.5, whole("horizon", horizon)) / 2
    return block / (block + _log_count(delta, alpha, tail_constant))


@dataclass(frozen=True)
class MedianPulls:
    """A median of `block` pulls, which a policy may treat as one reward with noise of scale σ.

    Clipped at ±y = ±`cut`, it is σ-sub-Gaussian: E exp(sY) ≤ exp(σ²s²/2) for every s. The medians
    exceed ±y only with the failure probability that was chosen.

    >>> MedianPulls(block=9, scale=1.5, cut=2.0).factor
    4.5
    """

    block: int  # k, odd
    scale: float  # σ
    cut: float  # y

    @property
    def factor(self) -> float:
        """σ√k: a regret bound that is linear in σ√decisions grows by this factor."""
        return self.scale * math.sqrt(self.block)


def median_pulls(
    *, horizon: int, delta: float, alpha: float, tail_constant: float = 1.0
) -> MedianPulls:
    """Return the median with the smallest σ√k among those that stay below y at every decision.

    2(⌈T/k⌉ − 1) q(k, 1/(2y^α)) ≤ δ,  q(k, p) = P(Bin(k, p) ≥ (k+1)/2),
    σ² = sup_s (2/s²) ln E cosh(s min(Z, y)),  P(Z > z) = 2 q(k, 1/(2z^α)) for z ≥ 1

    >>> found = median_pulls(horizon=10_000, delta=0.01, alpha=1)
    >>> found.block, round(found.scale, 2), round(found.factor, 1)
    (15, 1.33, 5.2)

    Parameters
    ----------
    horizon : int
        T, in pulls.
    delta : float
        δ, a bound on the probability that some median exceeds y.

    Source: our own, theorem 1 of docs/theory.md. Differences: none.
    """
    whole("horizon", horizon, at_most=1e15)
    number("delta", delta, above=0, below=1)
    unit = _unit(tail_constant, alpha)

    def at(block: int) -> MedianPulls:
        medians = -(-horizon // block) - 1  # no decision depends on the last median
        half = (block + 1) / 2
        p = float(betaincinv(half, half, delta / 2 / medians)) if medians else 0.5
        return MedianPulls(block, *_clipped(block, p, alpha))

    # σ falls as k grows and is at least 1, so between two blocks k₁ < k₂ no factor is below
    # σ₂ √(k₁ + 2): branch and bound.
    last = horizon + 1 - horizon % 2
    low, best = at(1), at(last)
    open_ends = [(low, best)]
    best = min(low, best, key=lambda choice: choice.factor)
    while open_ends:
        low, high = open_ends.pop()
        gap = high.block - low.block
        if gap > 2 and high.scale * math.sqrt(low.block + 2) < best.factor:
            middle = at(low.block + 2 * max(1, min(gap // 4, low.block)))
            best = min(best, middle, key=lambda choice: choice.factor)
            open_ends += [(middle, high), (low, middle)]
    return MedianPulls(best.block, best.scale * unit, best.cut * unit)


def median_schedule(
    *, decision: int, delta: float, alpha: float, cut: float, tail_constant: float = 1.0
) -> MedianPulls:
    """Return the shortest median for one decision of a bandit without a horizon.

    the least odd k with 2 q(k, c/(2y^α)) ≤ δ/(i(i+1)), for decision i = 1, 2, … and y = `cut`

    The failure probabilities of all decisions add up to δ. Blocks grow like ln i and σ falls with
    them, so the σ of the first decision is valid for all.

    >>> [median_schedule(decision=i, delta=0.01, alpha=1, cut=4).block for i in (1, 10, 100, 1000)]
    [9, 19, 29, 41]

    Source: our own, theorem 1 of docs/theory.md. Differences: none.
    """
    whole("decision", decision, at_most=1e15)
    level = number("delta", delta, above=0, below=1) / decision / (decision + 1) / 2
    unit = _unit(tail_constant, alpha)
    number("cut", cut, above=unit)
    p = 0.5 * math.exp(-alpha * math.log(cut / unit))

    def too_short(half: int) -> bool:
        return bool(betainc(half, half, p) > level)

    low, high = 0, 1  # k = 2·half − 1
    while too_short(high):
        low, high = high, 2 * high
        require(high < 1e15, "cut", "large enough for a finite block", cut)
    least = int(first_integer(lambda half: np.asarray(not too_short(int(half))), low, high))
    scale, y = _clipped(2 * least - 1, p, alpha)
    return MedianPulls(2 * least - 1, scale * unit, y * unit)


def central_mass(*, tau: float, alpha: float, tail_constant: float = 1.0) -> float:
    """Return a κ with P(|η| ≤ τ/2) ≥ κ.

    κ = 1 − c (2/τ)^α, from P(|η| > z) ≤ c/z^α at z = τ/2

    >>> central_mass(tau=8, alpha=1)
    0.75

    Source: our own, theorem 2 of docs/theory.md. Differences: none.
    """
    unit = _unit(tail_constant, alpha)
    number("tau", tau, above=2 * unit)
    return -math.expm1(-alpha * math.log(tau / unit / 2))


def huber_ridge(
    *, dim: int, horizon: int, delta: float, mass: float, length_bound: float = 1.0
) -> float:
    """Return the ridge penalty λ that our theorem 2 requires.

    λ = L² max{2(d ln(12T) + ln(1/δ) + ½), (64/κ)(2 ln(1/δ) + d ln(1 + κ²T/(128 d ln(1/δ))))}

    >>> round(huber_ridge(dim=5, horizon=2000, delta=0.01, mass=0.75))
    924

    Source: our own, theorem 2 of docs/theory.md. Differences: none.
    """
    whole("dim", dim)
    whole("horizon", horizon, at_most=1e15)
    log = -math.log(number("delta", delta, above=0, below=1))
    number("mass", mass, above=0, at_most=1)
    number("length_bound", length_bound, above=0)
    net = 2 * (dim * math.log(12 * horizon) + log + 0.5)
    growth = dim * math.log1p(mass**2 * horizon / (128 * dim * log))
    return length_bound**2 * max(net, 64 / mass * (2 * log + growth))


def huber_radius(
    *, log_det: float, tau: float, ridge: float, delta: float, mass: float, norm_bound: float = 1.0
) -> float:
    """Return the confidence radius β of our theorem 2, in the norm of V = λI + κX.

    β = 2((τ/√κ) √(2 ln(1/δ) + ln det(I + κX/λ)) + √λ S)

    >>> round(huber_radius(log_det=0, tau=8, ridge=924, delta=0.01, mass=0.75), 1)
    116.9

    Source: our own, theorem 2 of docs/theory.md. Differences: none.
    """
    number("log_det", log_det, at_least=0)
    number("tau", tau, above=0)
    number("ridge", ridge, above=0)
    number("mass", mass, above=0, at_most=1)
    number("norm_bound", norm_bound, above=0)
    log = -math.log(number("delta", delta, above=0, below=1))
    noise = tau * math.sqrt((2 * log + log_det) / mass)
    return 2 * (noise + math.sqrt(ridge) * norm_bound)


_gauss = cache(np.polynomial.legendre.leggauss)


def _unit(tail_constant: float, alpha: float) -> float:
    """Return c^(1/α)."""
    number("alpha", alpha, above=0)
    return _exp(math.log(number("tail_constant", tail_constant, above=0)) / alpha)


def _clipped(block: int, p: float, alpha: float) -> tuple[float, float]:
    """Return σ and y of the median of k symmetric Pareto variables, clipped at y = (2p)^(−1/α)."""
    from scipy.optimize import minimize_scalar

    reach, y = float(-logit(p)), _exp(-math.log(2 * p) / alpha)
    if reach <= 0 or y > 1e100:
        return (1.0, 1.0) if reach <= 0 else (math.inf, y)
    half = (block + 1) / 2
    # Z = (2U)^(−1/α) for U ~ Beta(m, m) below ½; over u = −logit U its density is smooth
    node, weight = _gauss(128)
    u = np.append(reach * (1 + node) / 2, reach)
    log_mass = half * (log_expit(u) + log_expit(-u)) - betaln(half, half)
    log_mass[:-1] += np.log(weight * reach)  # half the length, and both signs
    log_mass[-1] = math.log(2 * betainc(half, half, p))
    size = np.exp(-(math.log(2) + log_expit(-u)) / alpha)

    def square(log_s: ArrayLike) -> Array:
        h = np.exp(np.asarray(log_s)[..., None]) * size
        log_mean = log_mass + np.logaddexp(h, -h) - math.log(2)
        top = log_mean.max(axis=-1)
        log_mean = top + np.log(np.exp(log_mean - top[..., None]).sum(axis=-1))
        return np.asarray(2 * log_mean * np.exp(-2 * np.asarray(log_s)))

    grid = np.linspace(-4, 8, 61) - math.log(y)
    at = int(np.argmax(square(grid)))
    ends = grid[max(at - 1, 0)], grid[min(at + 1, 60)]
    optimum = minimize_scalar(
        lambda x: -float(square(x)), bounds=ends, method="bounded", options={"xatol": 1e-6}
    )
    variance = float(np.exp(log_mass) @ size**2)  # the limit s → 0
    return math.sqrt(max(variance, -float(optimum.fun))), y


def _log_constant(block_exponent: float) -> float:
    from scipy.optimize import brentq

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


def _samples(log_block: float, log_count: float, block_exponent: float) -> float:
    """Return ⌈max{C, block, count^(1/(1−ε))}⌉."""
    return _ceil(max(_log_constant(block_exponent), log_block, log_count / (1 - block_exponent)))


def _log_block(delta: float, block_exponent: float, horizon: int = 1) -> float:
    """Logarithm of (16 ln(2T/δ))^(1/ε): blocks long enough for `median_radius` to hold."""
    number("delta", delta, above=0, below=1)
    number("block_exponent", block_exponent, above=0, below=1)
    return math.log(16 * (math.log(2) + math.log(horizon) - math.log(delta))) / block_exponent


def _log_count(delta: float, alpha: float, tail_constant: float) -> float:
    """Logarithm of 2·(4c)^(2/α) ln(4/δ): enough blocks for their mean to concentrate."""
    number("delta", delta, above=0, below=1)
    number("alpha", alpha, above=0)
    size = math.log(4) + math.log(number("tail_constant", tail_constant, above=0))
    return math.log(2) + 2 / alpha * size + math.log(math.log(4) - math.log(delta))


def _exp(log: float) -> float:
    return math.exp(log) if log < math.log(sys.float_info.max) else math.inf


def _ceil(log: float) -> float:
    value = _exp(log)
    return math.ceil(value) if value < math.inf else value
