"""Ridge regression by rank-one updates: OFUL and LinTS.

The state is [S | θ] row by row, with V⁻¹ = SSᵀ, then ln(det V / det λI). Sums run along the rows of
this matrix, so that cores add several columns at a time and every sum keeps its order.
"""

import math

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.streams import Words, normal_pair
from tailproof.policies import OFUL, LinTS
from tailproof.typing import Array

DIM = 1
"""A placeholder: d."""

__all__ = ["lin_ts", "oful", "project", "update_root"]


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
        work=2 * (d + 1),
        vectors=True,
        estimate=ridge_estimate,
    )


def start_ridge(s: Array, p: Array) -> None:
    for i in range(s.shape[0]):
        s[i] = 0.0
    size = int(math.sqrt(s.shape[0] - 0.75))  # d of d(d + 1) + 1 numbers
    for i in range(size):
        s[i * (size + 2)] = 1.0 / math.sqrt(p[0])


def project(s: Array, offers: Array, k: int, row: Array) -> float:
    """Write xᵀ[S | θ] into `row`, and return ‖Sᵀx‖²."""
    d = DIM
    for j in range(d + 1):
        row[j] = 0.0
    for i in range(d):
        x = offers[k, i]
        at = i * (d + 1)
        for j in range(d + 1):
            row[j] += x * s[at + j]
    square = 0.0
    for j in range(d):
        square += row[j] * row[j]
    return square


def update_root(s: Array, offers: Array, k: int, y: float, work: Array) -> float:
    """Add the observation y at arm k to [S | θ], and return the factor by which det V grows."""
    d = DIM
    square = project(s, offers, k, work)
    growth = 1.0 + square
    for i in range(d):
        at, gain = i * (d + 1), 0.0
        for j in range(d):
            gain += s[at + j] * work[j]
        work[d + 1 + i] = gain
    part = 1.0 / (growth + math.sqrt(growth))
    for j in range(d):
        work[j] *= part
    work[d] = (work[d] - y) / growth
    for i in range(d):
        at, gain = i * (d + 1), work[d + 1 + i]
        for j in range(d + 1):
            s[at + j] -= gain * work[j]
    return growth


def learn_ridge(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    s[s.shape[0] - 1] += math.log(update_root(s, offers, k, y[0], work))


def oful_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    d = DIM
    radius = p[4] * (p[1] * math.sqrt(s[s.shape[0] - 1] + p[2]) + p[3])
    for k in range(values.shape[0]):
        square = project(s, offers, k, work)
        values[k] = work[d] + radius * math.sqrt(square)


def lin_ts_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    d = DIM
    size = p[1] * p[2] * math.sqrt(9.0 * d * math.log((t + 1) / p[3]))
    z = 0.0
    for i in range(d):
        work[i] = s[i * (d + 1) + d]
    for j in range(d):
        if j % 2 == 0:
            now, z = normal_pair(g)
        else:
            now = z
        for i in range(d):
            work[i] += size * now * s[i * (d + 1) + j]
    for k in range(values.shape[0]):
        mean = 0.0
        for i in range(d):
            mean += offers[k, i] * work[i]
        values[k] = mean


def ridge_estimate(s: Array, p: Array, values: Array) -> None:
    d = values.shape[0]
    for i in range(d):
        values[i] = s[i * (d + 1) + d]
