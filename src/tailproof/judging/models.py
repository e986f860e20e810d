"""Predictions of each arm's score or location, learned from other rows than those predicted."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from tailproof.tables import Records
from tailproof.typing import Array, Index

__all__ = ["CrossFit"]

_FOLDS = 5
"""Parts of the units, as usual for cross-fitting: four of five are learned from."""
_CUTS = 0.8 ** np.arange(18, 0, -1)
"""Where an adaptive log is cut, as shares of its rows: each part is predicted from the parts
before."""
_FARTHEST = 5.0
"""Standard deviations at which a feature is cut."""
_FAR = 1e6
"""Spreads from the middle at which rewards are cut before a location is fitted."""
_SHAPES = (0.5, 1.0, 2.0, 4.0, 32.0)
"""The degrees of freedom of Student's t to choose from."""
_MOST = 20_000
"""The most rewards from which its degrees of freedom are chosen."""


class CrossFit:
    """A linear model for each arm, that predicts a row from rows of other units.

    h(x, a) = (1, x)ᵀβ_a, learned on the other fifths of the units; with `past`, on earlier rows
    alone, which an adaptive log needs. Every β_a is shrunk towards the coefficients of all arms
    together, by as much as noise explains the differences between arms (empirical Bayes).

    Source: cross-fitting: Chernozhukov et al. 2018; shrinkage: Morris 1983. Differences: one
    strength of shrinkage for all coefficients.
    """

    def __init__(self, log: Records, rng: np.random.Generator, *, past: bool) -> None:
        self.log, self.k, self.past, self.rng = log, len(log.arms), past, rng
        self.part = _parts(log, rng, past=past)
        self.folds = int(self.part.max()) + 1
        key = self.part * self.k + log.arm
        self.order: Index = np.argsort(key, kind="stable")
        self.ends = np.searchsorted(key[self.order], np.arange(self.folds * self.k + 1))
        self.design = _design(log.contexts[1], log.n)[self.order]

    @cached_property
    def _grams(self) -> Array:
        """Σ x xᵀ of the rows to learn from, of shape (folds, K, D, D)."""
        return self._elsewhere(np.stack([z.T @ z for z in self._slices(self.design)]))

    @cached_property
    def counts(self) -> Array:
        """The number of rows to learn from, of shape (folds, K)."""
        return self._elsewhere(np.diff(self.ends).astype(np.float64))

    def predict(self, score: Array, low: float, high: float) -> Array:
        """Return the prediction of a score, within bounds, of every arm in every row."""
        v = score[self.order]
        pairs = list(zip(self._slices(self.design), self._slices(v), strict=True))
        responses = self._elsewhere(np.stack([z.T @ part for z, part in pairs]))
        squares = self._elsewhere(np.array([part @ part for _, part in pairs]))
        predicted = np.zeros((self.log.n, self.k))
        for fold in range(self.folds):
            counts = self.counts[fold]
            if counts.sum() >= 4 * self.design.shape[1]:
                sums = self._grams[fold], responses[fold], squares[fold], counts
                rows = slice(self.ends[fold * self.k], self.ends[(fold + 1) * self.k])
                predicted[self.order[rows]] = self.design[rows] @ _shrunk(*sums).T
        return np.clip(predicted, low, high, out=predicted)

    @cached_property
    def locations(self) -> "Locations":
        """Where the noise of every arm is centred in every row, see `Locations`."""
        rewards = self.log.reward
        middle = float(np.median(rewards))
        spread = float(np.median(np.abs(rewards - middle)))
        scaled = np.clip((rewards - middle) / spread, -_FAR, _FAR)
        y, arm, part = scaled[self.order], self.log.arm[self.order], self.part[self.order]
        shape = StudentShape.of(self.design, y, arm, self.k, self.rng)
        centres, scales = np.empty((self.log.n, self.k)), np.empty(self.log.n)
        for fold in range(self.folds):
            rows, learn = part == fold, part != fold
            fit = shape.improved(self.design[learn], y[learn], arm[learn], rounds=8)
            centres[self.order[rows]] = self.design[rows] @ fit.coefficients.T
            scales[self.order[rows]] = fit.scales[arm[rows]]
        return Locations(scaled, centres, scales, shape.df, middle, spread)

    def _slices(self, ordered: Array) -> list[Array]:
        """Split ordered rows by fold and arm."""
        return np.split(ordered, self.ends[1:-1])

    def _elsewhere(self, per_cell: Array) -> Array:
        """Return sums over all other folds, or over earlier folds, of an array by fold and arm."""
        cells = per_cell.reshape(self.folds, self.k, *per_cell.shape[1:])
        total = np.cumsum(cells, axis=0) if self.past else cells.sum(axis=0)
        return np.asarray(total - cells)


class Locations(NamedTuple):
    """Rewards, and where the noise of each arm is centred, learned from other rows.

    Attributes
    ----------
    rewards : array of shape (n,)
        In units of `spread` around `middle`, and cut far away, where their scores are nil.
    centres : array of shape (n, K)
    scales : array of shape (n,)
        Of the noise of each row's arm.
    df : float
        The degrees of freedom of the noise.
    """

    rewards: Array
    centres: Array
    scales: Array
    df: float
    middle: float
    spread: float


def _parts(log: Records, rng: np.random.Generator, *, past: bool) -> Index:
    """Return the fold of each row; a unit is in one fold."""
    unit = np.arange(log.n) if log.unit is None else log.unit
    units = int(unit.max()) + 1
    if not past:
        return np.asarray((rng.permutation(units) % _FOLDS)[unit])
    return np.searchsorted(np.unique((units * _CUTS).astype(np.int64)), unit, side="right")


def _design(features: Array | None, n: int) -> Array:
    """Return a constant and the features, standardised and cut."""
    if features is None:
        return np.ones((n, 1))
    centre, spread = np.median(features, axis=0), features.std(axis=0)
    scaled = (features - centre) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([np.ones(n), np.clip(scaled, -_FARTHEST, _FARTHEST)])


def _shrunk(grams: Array, responses: Array, squares: Array, counts: Array) -> Array:
    """Return coefficients of shape (K, D), shrunk towards the coefficients of all arms together."""
    k, d = responses.shape
    eye = np.eye(d)
    common = np.linalg.solve(grams.sum(axis=0) + 1e-9 * counts.sum() * eye, responses.sum(axis=0))
    rest = responses - grams @ common
    deviation = np.linalg.solve(
        grams + 1e-6 * np.maximum(counts, 1)[:, None, None] * eye, rest[..., None]
    )[..., 0]
    around = squares - 2 * responses @ common + np.einsum("i,kij,j->k", common, grams, common)
    errors = (
        around
        - 2 * (deviation * rest).sum(axis=1)
        + np.einsum("ki,kij,kj->k", deviation, grams, deviation)
    )
    noise = max(float(errors.sum()), 0.0) / max(float(np.maximum(counts - d, 0).sum()), 1.0)
    many = counts > 2 * d
    if not many.any() or noise == 0:
        return np.tile(common, (k, 1)) + (deviation if noise == 0 else 0.0)
    # the variance of the arms' coefficients, less the part that is noise
    seen = float(np.square(deviation[many]).mean())
    inverse = np.linalg.inv(grams[many] + 1e-6 * counts[many][:, None, None] * eye)
    explained = noise * float(np.trace(inverse, axis1=1, axis2=2).mean()) / d
    spread = max(seen - explained, 0.01 * seen)
    if spread <= 0:
        return np.tile(common, (k, 1))
    shrunk = np.linalg.solve(grams + noise / spread * eye, rest[..., None])[..., 0]
    return np.asarray(common + shrunk)


@dataclass(frozen=True, eq=False)
class StudentShape:
    """Linear models with noise of Student's t law, a model and a scale for each arm.

    y = (1, x)ᵀβ_a + s_a t_ν, the likeliest β, s and ν; each arm is shrunk towards the mean of all
    arms with the weight of one reward.
    """

    coefficients: Array
    scales: Array
    df: float

    @classmethod
    def of(
        cls, design: Array, y: Array, arm: Index, k: int, rng: np.random.Generator
    ) -> "StudentShape":
        """Return the likeliest ν, with a first fit to some of the rows."""
        if len(y) > _MOST:
            some = rng.choice(len(y), _MOST, replace=False)
            design, y, arm = design[some], y[some], arm[some]
        middle = float(np.median(y))
        start = np.zeros((k, design.shape[1]))
        start[:, 0] = middle
        scales = np.full(k, max(float(np.median(np.abs(y - middle))), 1e-300))
        fits = [cls(start, scales, df).improved(design, y, arm, rounds=15) for df in _SHAPES]
        return max(fits, key=lambda fit: fit._likelihood(design, y, arm))

    def improved(self, design: Array, y: Array, arm: Index, rounds: int) -> "StudentShape":
        """Return the fit after some rounds of reweighted least squares (EM)."""
        coefficients, scales = self.coefficients.copy(), self.scales.copy()
        k, d = coefficients.shape
        parts = [(design[arm == a], y[arm == a]) for a in range(k)]
        for _ in range(rounds):
            pull = coefficients.mean(axis=0)
            for a, (z, rewards) in enumerate(parts):
                if not len(rewards):
                    coefficients[a] = pull
                    continue
                weights = self._weights(rewards - z @ coefficients[a], scales[a])
                lifted = z * weights[:, None]
                gram, response = lifted.T @ z + np.eye(d), lifted.T @ (rewards - z @ pull)
                coefficients[a] = pull + np.linalg.solve(gram, response)
                error = rewards - z @ coefficients[a]
                free = max(len(rewards) - min(d, len(rewards) / 2), 1)
                square = float((self._weights(error, scales[a]) * np.square(error)).sum()) / free
                scales[a] = max(math.sqrt(square), 1e-12 * scales[a])
        return StudentShape(coefficients, scales, self.df)

    def _weights(self, error: Array, scale: float) -> Array:
        return np.asarray((self.df + 1) / (self.df + np.square(error / scale)))

    def _likelihood(self, design: Array, y: Array, arm: Index) -> float:
        df = self.df
        u = (y - (design * self.coefficients[arm]).sum(axis=1)) / self.scales[arm]
        height = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * math.log(df * math.pi)
        tail = (df + 1) / 2 * np.log1p(np.square(u) / df)
        return float((height - np.log(self.scales[arm]) - tail).sum())
