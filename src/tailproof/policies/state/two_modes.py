"""Whether rewards scatter around one centre, or around two that lie as far on either side of it."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import betaln

from tailproof.policies.state.base import Array, Index

__all__ = ["LEAST", "SEPARATED", "Clusters", "Split", "compare", "even_weights", "split"]

LEAST = 5
"""Rewards a coefficient below which two clusters are not believed: fewer can be interpolated."""
SEPARATED = 2.5
"""The least distance of a cluster from the centre, in half ranges of its middle half, that is worth
a fit: the two halves of a normal sample have 1.6, the halves of a uniform one 2."""
_RESOLVED = 2.0
"""The least distance of a cluster from the centre in units of its scale s, below which two modes
and a flat top are the same."""
_UNEQUAL = 4.5
"""What free weights of both clusters may add to the log likelihood, as of three deviations."""
_CUTS = (0.25, 0.33, 0.42, 0.5, 0.58, 0.67, 0.75)
"""Where a sorted sample is split: clusters of equal weight have this share in eight rewards."""
_TWO, _ONE = np.array([1.0, 4.0, 32.0]), np.array([0.5, 1.0, 4.0, 32.0])
"""The degrees of freedom tried for two clusters and for one."""
_ROUNDS = 12
"""Of expectation and maximisation, each of which gains less than a tenth of the one before."""
_FLOOR = 0.01
"""The least scale, in medians of the distances from the median: equal rewards are no cluster."""


class Split(NamedTuple):
    """The best split of each sample into a lower and an upper part, of shape (samples,)."""

    strength: Array
    low: Array
    high: Array

    def take(self, samples: Index) -> "Split":
        """Return some of the samples."""
        return Split(*(part[samples] for part in self))


def split(y: Array) -> Split:
    """Split samples of shape (samples, n) where both parts are farthest apart for their widths.

    The strength is half the distance of the medians of both parts, in units of the larger half
    range of their middle halves; zero where few values are different, which rounding explains.
    """
    y, n = np.sort(y, axis=1), y.shape[1]
    best, low, high = np.zeros((3, len(y)))
    for cut in _CUTS:
        size = round(cut * n)
        if min(size, n - size) < 2:
            continue
        parts = [_quartiles(part) for part in (y[:, :size], y[:, size:])]
        a, b = (quartiles[1] for quartiles in parts)
        width = np.maximum(*(quartiles[2] - quartiles[0] for quartiles in parts)) / 2
        strength = np.where(b > a, (b - a) / 2 / np.maximum(width, 1e-300), 0)
        better = strength > best
        best, low, high = (
            np.where(better, new, old) for new, old in ((strength, best), (a, low), (b, high))
        )
    values = 1 + np.count_nonzero(np.diff(y, axis=1), axis=1)
    return Split(np.where(3 * values <= n, 0, best), low, high)


def _quartiles(y: Array) -> tuple[Array, Array, Array]:
    """Return the quartiles of sorted samples, each the mean of the values on either side of it."""
    places = ((y.shape[1] - 1) * quarter for quarter in (0.25, 0.5, 0.75))
    low, middle, high = ((y[:, math.floor(at)] + y[:, math.ceil(at)]) / 2 for at in places)
    return low, middle, high


@dataclass
class Clusters:
    """Samples y = xᵀθ ± a + s·t_ν with equal weights of both signs, or a = 0, fitted by EM."""

    theta: Array
    gap: Array
    scale: Array
    nu: Array
    likelihood: Array

    def better(self, other: Self) -> Self:
        """Return the likelier of two fits of each sample."""
        wins = other.likelihood > self.likelihood
        return type(self)(
            *(
                np.where(wins.reshape(-1, *(1,) * (mine.ndim - 1)), theirs, mine)
                for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
            )
        )


class Sample(NamedTuple):
    """Rewards y at x, weights 1 or 0, a prior precision, and the least scale."""

    x: Array
    y: Array
    weight: Array
    prior: Array
    floor: Array


def _fit(data: Sample, theta: Array, gap: Array, scale: Array, nu: float) -> Clusters:
    """Return the fit after some rounds from a start; a gap of zero stays zero."""
    x, y, weight, prior, floor = data
    two = bool(gap.any())
    size, count = x.shape[2], weight.sum(axis=1)
    ridge = prior + 1e-9 * np.eye(size)
    for _ in range(_ROUNDS):
        up, down, _ = _densities(data, theta, gap, scale, nu, two)
        total, lead = up + down, up - down
        matrix = (x * total[..., None]).mT @ x + ridge
        right = np.vecmat(total * y - lead * gap[:, None], x)
        theta = np.linalg.solve(matrix, right[..., None])[..., 0]
        residual = y - np.matvec(x, theta)
        if two:
            gap = np.abs((lead * residual).sum(axis=1)) / np.maximum(total.sum(axis=1), 1e-12)
        square = up * np.square(residual - gap[:, None])
        square += down * np.square(residual + gap[:, None])
        free = np.maximum(count - size / 2, 1)
        scale = np.sqrt(square.sum(axis=1) / np.maximum(total.sum(axis=1), 1e-12) * count / free)
        scale = np.maximum(scale, floor)
    *_, log = _densities(data, theta, gap, scale, nu, two)
    likelihood = log.sum(axis=1) + count * (_height(nu) - np.log(scale))
    likelihood -= np.vecdot(theta, np.matvec(prior, theta)) / 2
    return Clusters(theta, gap, scale, np.full(len(y), nu), likelihood)


def _densities(
    data: Sample, theta: Array, gap: Array, scale: Array, nu: float, two: bool
) -> tuple[Array, Array, Array]:
    """Return the weights of both clusters in the score, and the log density without its height."""
    residual = data.y - np.matvec(data.x, theta)
    s, a = scale[:, None], gap[:, None]
    up, down = np.square((residual - a) / s), np.square((residual + a) / s)
    log_up = -(nu + 1) / 2 * np.log1p(up / nu)
    if two:
        log_down = -(nu + 1) / 2 * np.log1p(down / nu)
        upper = 1 / (1 + np.exp(np.clip(log_down - log_up, -500, 500)))
        log = np.logaddexp(log_up, log_down) - np.log(2)
    else:
        upper, log = 0.5, log_up
    weights = (nu + 1) / (nu + up) * upper, (nu + 1) / (nu + down) * (1 - upper)
    return weights[0] * data.weight, weights[1] * data.weight, log * data.weight


def _height(nu: float) -> float:
    return float(-betaln(0.5, nu / 2) - np.log(nu) / 2)


class Comparison(NamedTuple):
    """How much likelier two clusters are than one in each sample, and both fits."""

    gain: Array
    moves: Array
    two: Clusters
    one: Clusters


def compare(
    x: Array, y: Array, weight: Array, prior: Array, starts: Array, low: Array, high: Array
) -> Comparison:
    """Compare two clusters with one in every sample.

    `x` has the shape (samples, n, D), with a one in its last column, `y` and `weight` (samples, n),
    `starts` (samples, starts, D). The gain is the log likelihood of two clusters over one, less the
    gain of free weights and scales for each cluster: clusters that differ are no noise around one
    centre. `moves` is the gain in likelihood when both clusters move with x, less the gain when
    only their weights do: clusters that stay while their weights move with x are no noise either.
    """
    median = np.median(y, axis=1)
    half = np.median(np.abs(y - median[:, None]), axis=1)
    data = Sample(x, y, weight, prior, _FLOOR * half + 1e-300)
    gap, width = (high - low) / 2, np.maximum((high - low) / 4, data.floor)
    double_fits, single_fits, fixed_fits = ([] for _ in range(3))
    flat = data._replace(x=x[..., -1:], prior=prior[:, -1:, -1:])
    centre = (low + high)[:, None] / 2
    for nu in _TWO:
        double_fits += [_fit(data, start, gap, width, nu) for start in np.moveaxis(starts, 1, 0)]
        fixed_fits.append(_fit(flat, centre, gap, width, nu))
    median_start = np.zeros((len(y), x.shape[2]))
    median_start[:, -1] = median
    for nu in _ONE:
        none = np.zeros(len(y))
        single_fits += [_fit(data, median_start, none, np.maximum(half, data.floor), nu)]
        single_fits += [_fit(data, start, none, width, nu) for start in np.moveaxis(starts, 1, 0)]
        for end in (low, high):
            from_end = median_start.copy()
            from_end[:, -1] = end
            single_fits.append(_fit(data, from_end, none, width, nu))
    best, single, fixed = (_likeliest(fits) for fits in (double_fits, single_fits, fixed_fits))
    scales, weights = _asymmetry(data, best)
    gain = best.likelihood - single.likelihood - scales - weights
    moves = best.likelihood - fixed.likelihood - _leaning(flat, data, fixed)
    apart = (best.gap > _RESOLVED * best.scale) & (weights < _UNEQUAL)
    return Comparison(np.where(apart, gain, -np.inf), moves, best, single)


def _likeliest(fits: list[Clusters]) -> Clusters:
    best = fits[0]
    for other in fits[1:]:
        best = best.better(other)
    return best


def _signs(data: Sample, fit: Clusters) -> tuple[Array, Array]:
    """Return the residuals, and on which side of the centre each is, 0 where it does not count."""
    residual = data.y - np.matvec(data.x, fit.theta)
    return residual, np.where(residual >= 0, 1.0, -1.0) * data.weight


def _asymmetry(data: Sample, fit: Clusters) -> tuple[Array, Array]:
    """Return the approximate gain in likelihood of free scales and weights of both clusters."""
    residual, sign = _signs(data, fit)
    up, down = sign > 0, sign < 0
    square = np.square((np.abs(residual) - fit.gap[:, None]) / fit.scale[:, None])
    nu = fit.nu[:, None]
    score = (nu + 1) / (nu + square) * square - 1  # of ln s
    counts = [np.maximum(part.sum(axis=1), 1) for part in (up, down)]
    log_scales = [
        np.log(np.maximum(1 + (score * part).sum(axis=1) / count, 0.02))
        for part, count in zip((up, down), counts, strict=True)
    ]
    information = 2 * fit.nu / (fit.nu + 3)
    scales = (
        np.square(log_scales[0] - log_scales[1]) * information / (1 / counts[0] + 1 / counts[1])
    )
    weights = np.square(sign.sum(axis=1)) / np.maximum(data.weight.sum(axis=1), 1)
    return scales / 2, weights / 2


def _leaning(flat: Sample, data: Sample, fit: Clusters) -> Array:
    """Return about the gain in likelihood if the weights of fixed clusters depend on x."""
    _, sign = _signs(flat, fit)
    x = data.x * data.weight[..., None]
    score = np.vecmat(sign, x)
    matrix = x.mT @ x
    matrix += 1e-9 * np.trace(matrix, axis1=1, axis2=2)[:, None, None] * np.eye(x.shape[2])
    return np.asarray(np.vecdot(score, np.linalg.solve(matrix, score[..., None])[..., 0]) / 2)


def even_weights(arms: Array) -> Array:
    """Return weights that give no arm of unit vectors more pulls than the median arm has, else one.

    Or else the arm that is pulled most would decide the shape of all.

    >>> even_weights(np.array([[[1.0, 0], [1, 0], [1, 0], [0, 1]]])).round(2).tolist()
    [[0.67, 0.67, 0.67, 1.0]]
    """
    units = ((arms == 0) | (arms == 1)).all(axis=(1, 2)) & (arms.sum(axis=2) == 1).all(axis=1)
    counts = arms.sum(axis=1)
    most = np.maximum(np.median(counts, axis=1), 1)
    weights = np.matvec(arms, most[:, None] / np.maximum(counts, 1))
    return np.where(units[:, None], np.minimum(weights, 1), 1.0)
