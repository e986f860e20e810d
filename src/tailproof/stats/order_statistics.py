"""Order statistics that bound a quantile of any law, at all sample sizes simultaneously.

Q is the upper π-quantile of the law, the largest x with P(X < x) ≤ π. The number S of n samples
below Q is binomial with a probability of at most π, whatever the law. A large S is evidence against
a proposed Q; an `Evidence` function of (n, s) measures it on a logarithmic scale.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, betaln, rel_entr

from tailproof.bisection import first_integer
from tailproof.checks import array, number, require, whole
from tailproof.typing import Array, Index

__all__ = [
    "Evidence",
    "confidence",
    "kl",
    "log_binomial",
    "log_mixture",
    "pulls_bound",
    "pulls_rate",
    "rank",
]

Evidence = Callable[[ArrayLike, ArrayLike, float], Array]
"""A function of n samples, s of them below Q, and π; it increases in s and decreases in n."""


def log_mixture(n: ArrayLike, s: ArrayLike, quantile: float) -> Array:
    """Return ln M_n(s): the evidence of s of n samples below the quantile, valid at all n at once.

    M_n(s) = ∫_π^1 (q/π)^s ((1 − q)/(1 − π))^(n−s) dq/(1 − π)

    M_n(S) is a supermartingale with mean at most 1, so P(M_n(S) ≥ e^f for some n) ≤ e^−f. It
    increases in s, and is at most 1 for s ≤ πn.

    >>> log_mixture(10, [5, 8, 10], 0.5).round(3).tolist()
    [-0.996, 1.387, 5.226]

    Source: Ville 1939 for the inequality, Robbins 1970 for mixing. Differences: the mixture is
    uniform over the alternatives above π only.
    """
    count, below = np.asarray(n), np.asarray(s, dtype=np.float64)
    a, b = below + 1, count - below + 1
    with np.errstate(divide="ignore"):  # −inf far below πn
        mixed: Array = betaln(a, b) + np.log(betaincc(a, b, quantile))
    return mixed - below * math.log(quantile) - b * math.log1p(-quantile)


def log_binomial(n: ArrayLike, s: ArrayLike, quantile: float) -> Array:
    """Return −ln P(Bin(n, π) ≥ s): the evidence at one n that is fixed in advance.

    >>> log_binomial(10, [5, 8, 10], 0.5).round(3).tolist()
    [0.473, 2.906, 6.931]

    Source: the exact test of a binomial probability. Differences: none.
    """
    count, below = np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64)
    tail = betainc(np.maximum(below, 0.5), count - below + 1, quantile)
    return np.where(below > 0, -np.log(tail), 0.0)


def confidence(t: ArrayLike) -> Array:
    """Return f(t), the evidence required at decision t ≥ 1.

    f(t) = ln(t + 1) + 2 ln max(1, ln(t + 1)),  Σ_t e^−f(t) < 2

    >>> confidence([1, 100]).round(2).tolist()
    [0.69, 7.67]

    Source: KL-UCB of Garivier and Cappé 2011, with its ln t + c ln ln t. Differences: c = 2, so
    that the sum is finite.
    """
    log = np.log1p(np.asarray(t))
    f: Array = log + 2 * np.log(np.maximum(1, log))
    return f


def rank(n: ArrayLike, f: ArrayLike, quantile: float, evidence: Evidence = log_mixture) -> Index:
    """Return the smallest rank J whose evidence reaches f > 0, or n + 1 if none does.

    J = min{s : ln M_n(s) ≥ f};  P(X_(J) < Q for some n) ≤ e^−f, for any law

    >>> rank([5, 10, 100, 10_000], math.log(20), 0.5).tolist()
    [6, 10, 65, 5183]

    Source: our own, from the confidence sequences of Howard and Ramdas 2022.
    Differences: the mixture itself in place of a bound on it.
    """
    number("quantile", quantile, above=0, below=1)
    count, asked = np.broadcast_arrays(array("n", n, np.int64), array("f", f))
    require(bool((count >= 0).all()), "n", "at least 0", n)
    require(bool((asked > 0).all()), "f", "above 0", f)

    def enough(s: Index) -> NDArray[np.bool_]:
        return (evidence(count, np.clip(s, 0, count), quantile) >= asked) | (s > count)

    return first_integer(enough, np.full_like(count, -1), count + 1)


def kl(p: ArrayLike, q: ArrayLike) -> Array:
    """Return the KL divergence of Bernoulli laws, p ln(p/q) + (1 − p) ln((1 − p)/(1 − q)).

    >>> kl([0.5, 0.75, 1.0], 0.5).round(3).tolist()
    [0.0, 0.131, 0.693]

    Source: the definition. Differences: none.
    """
    x, y = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    divergence: Array = rel_entr(x, y) + rel_entr(1 - x, 1 - y)
    return divergence


def pulls_rate(below: ArrayLike, quantile: float = 0.5) -> Array:
    """Return the pulls of a suboptimal arm per unit of ln T that are necessary and sufficient.

    1/kl(q_a, π),  q_a = P(X_a < Q*), Q* the quantile of the best arm

    `OrderStatisticUCB` makes no more as T grows. Every policy that is consistent for all laws makes
    at least as many, with q_a = P(X_a ≤ Q*), which is the same unless X_a has an atom at Q*.

    >>> pulls_rate([0.55, 0.6]).round(1).tolist()
    [199.7, 49.7]

    Source: our own; the lower bound follows Lai and Robbins 1985 and Burnetas and Katehakis
    1996. Differences: none.
    """
    q = array("below", below)
    number("quantile", quantile, above=0, below=1)
    ok = bool(((q > quantile) & (q <= 1)).all())
    require(ok, "below", f"above {quantile:g} and at most 1", below)
    return 1 / kl(q, quantile)


def pulls_bound(gap: float, horizon: int, quantile: float = 0.5) -> float:
    """Return a bound on the expected pulls of a suboptimal arm by `OrderStatisticUCB`.

    E N_a(T) ≤ (4/g²)(f(T) + ln(8/g²)) + 2/g² + 3,  g = P(X_a < Q*) − π,
    for any law and any π; at π = ½ with ln(4/g²) in place of ln(8/g²)

    >>> round(pulls_bound(0.1, 10_000))
    8060

    Source: our own, theorem 3 of docs/theory.md. Differences: none.
    """
    number("gap", gap, above=0, at_most=1 - number("quantile", quantile, above=0, below=1))
    f = float(confidence(whole("horizon", horizon)))
    return 4 / gap**2 * (f + math.log((4 if quantile == 0.5 else 8) / gap**2)) + 2 / gap**2 + 3
