"""Ridge regression by rank-one updates: OFUL and LinTS.

The state is [S | θ] row by row, with V⁻¹ = SSᵀ, then ln(det V / det λI). Sums run along the rows of
this matrix, so that cores add several columns at a time and every sum keeps its order.
"""

import math

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.streams import Words, normal_pair
from tailproof.policies import OFUL, LinTS
from tailproof.typing import Array

ARMS, DIM, LANES = 1, 1, 0
"""Placeholders: K, d, and how many arms a core computes at a time, 1 on a GPU."""
ONE_BY_ONE = 1
"""The value of LANES for a GPU."""

__all__ = ["lin_ts", "oful", "predict", "update_root"]


def oful(policy: OFUL, sizes: Sizes) -> Form:
    """Return the form of OFUL."""
    settings = (
        policy.ridge,
        policy.noise_scale,
        2 * math.log(1 / policy.delta),
        math.sqrt(policy.ridge) * policy.norm_bound,
        policy.bonus,
    )
    return _form(oful_index, settings, sizes)


def lin_ts(policy: LinTS, sizes: Sizes) -> Form:
    """Return the form of linear Thompson sampling."""
    settings = (policy.ridge, policy.bonus, policy.noise_scale, policy.delta)
    return _form(lin_ts_index, settings, sizes)


def _form(index: object, settings: tuple[float, ...], sizes: Sizes) -> Form:
    d = sizes.dim
    return Form(
        start_ridge,
        index,  # type: ignore[arg-type]
        learn_ridge,
        settings,
        state=d * (d + 1) + 1,
        work=max(2 * (d + 1), sizes.width),
        vectors=True,
        estimate=ridge_estimate,
    )


def start_ridge(s: Array, p: Array) -> None:
    for i in range(s.shape[0]):
        s[i] = 0.0
    for i in range(DIM):
        s[i * (DIM + 2)] = 1.0 / math.sqrt(p[0])


def predict(s: Array, offers: Array, means: Array, squares: Array) -> None:
    """Write xᵀθ and ‖Sᵀx‖² of every arm.

    Compilers add several arms at a time where the length of their loop is not a constant.
    """
    width = offers.shape[1]
    if LANES == ONE_BY_ONE:
        for k in range(0, width, 4):
            predict_four(s, offers, means, squares, k, width - 1)
        return
    for k in range(width):
        squares[k] = 0.0
    for j in range(DIM + 1):
        for k in range(width):
            total = 0.0
            for i in range(DIM):
                total += s[i * (DIM + 1) + j] * offers[i, k]
            means[k] = total
            if j < DIM:
                squares[k] += total * total


def predict_four(s: Array, offers: Array, means: Array, squares: Array, k: int, last: int) -> None:
    """Write xᵀθ and ‖Sᵀx‖² of four arms, so that a thread of a GPU reads S less often."""
    k1, k2, k3 = min(k + 1, last), min(k + 2, last), min(k + 3, last)
    square, square1, square2, square3 = 0.0, 0.0, 0.0, 0.0
    mean, mean1, mean2, mean3 = 0.0, 0.0, 0.0, 0.0
    for j in range(DIM + 1):
        mean, mean1, mean2, mean3 = 0.0, 0.0, 0.0, 0.0
        for i in range(DIM):
            x = s[i * (DIM + 1) + j]
            mean += x * offers[i, k]
            mean1 += x * offers[i, k1]
            mean2 += x * offers[i, k2]
            mean3 += x * offers[i, k3]
        if j < DIM:
            square += mean * mean
            square1 += mean1 * mean1
            square2 += mean2 * mean2
            square3 += mean3 * mean3
    means[k], means[k1], means[k2], means[k3] = mean, mean1, mean2, mean3
    squares[k], squares[k1], squares[k2], squares[k3] = square, square1, square2, square3


def update_root(s: Array, offers: Array, k: int, y: float, row: Array, gain: Array) -> float:
    """Add the observation y at arm k to [S | θ], and return the factor by which det V grows."""
    for j in range(DIM + 1):
        row[j] = 0.0
    for i in range(DIM):
        x = offers[i, k]
        for j in range(DIM + 1):
            row[j] += x * s[i * (DIM + 1) + j]
    growth = 1.0
    for j in range(DIM):
        growth += row[j] * row[j]
    for i in range(DIM):
        total = 0.0
        for j in range(DIM):
            total += s[i * (DIM + 1) + j] * row[j]
        gain[i] = total
    part = 1.0 / (growth + math.sqrt(growth))
    for j in range(DIM):
        row[j] *= part
    row[DIM] = (row[DIM] - y) / growth
    for i in range(DIM):
        for j in range(DIM + 1):
            s[i * (DIM + 1) + j] -= gain[i] * row[j]
    return growth


def learn_ridge(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    growth = update_root(s, offers, k, y[0], work[: DIM + 1], work[DIM + 1 :])
    s[DIM * (DIM + 1)] += math.log(growth)


def oful_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    radius = p[4] * (p[1] * math.sqrt(s[DIM * (DIM + 1)] + p[2]) + p[3])
    predict(s, offers, values, work)
    for k in range(ARMS):
        values[k] += radius * math.sqrt(work[k])


def lin_ts_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    size = p[1] * p[2] * math.sqrt(9.0 * DIM * math.log((t + 1) / p[3]))
    z = 0.0
    for i in range(DIM):
        work[i] = s[i * (DIM + 1) + DIM]
    for j in range(DIM):
        if j % 2 == 0:
            now, z = normal_pair(g)
        else:
            now = z
        for i in range(DIM):
            work[i] += size * now * s[i * (DIM + 1) + j]
    for k in range(offers.shape[1]):
        values[k] = 0.0
    for i in range(DIM):
        for k in range(offers.shape[1]):
            values[k] += work[i] * offers[i, k]


def ridge_estimate(s: Array, p: Array, values: Array) -> None:
    for i in range(DIM):
        values[i] = s[i * (DIM + 1) + DIM]
