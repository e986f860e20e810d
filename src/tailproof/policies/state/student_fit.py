"""The Student-t regression of LinStudentUCB, which learns the law of its noise in any unit."""

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from scipy.special import betaln

from tailproof.policies.state.base import Array, Counts, Finite, Index, Rule, State
from tailproof.policies.state.regression import rank_one_update

__all__ = ["SHAPES", "StudentFit"]

SHAPES = np.array([0.5, 1.0, 2.0, 4.0, 32.0])
"""The degrees of freedom ν to choose from."""
_LOG_HEIGHT: Array = -betaln(0.5, SHAPES / 2) - np.log(SHAPES) / 2
_INFORMATION: Array = 2 * SHAPES / (SHAPES + 3)  # Fisher information about ln s in one pull


One = Annotated[Array, Rule(finite=True, blank=1)]
Features = Annotated[Array, Rule(("dim",), finite=True)]


@dataclass(eq=False)
class StudentFit(State):
    """The fit, the pulls in its buffer, and a summary of the discarded pulls.

    The score ψ(u) = (ν + 1)u/(ν + u²) of Student's t is bounded and returns to zero, so an extreme
    reward has no influence and adds no information. D = d + 1 with an intercept, and D = d without.

    Attributes
    ----------
    block : array of shape (paths, D, D + 1)
        [S | (θ, b)]: the estimate has the covariance s²·SSᵀ, SSᵀ = (H + ρP)⁻¹.
    scales : array of shape (paths, shapes)
        The scale s under each ν.
    shape, penalty : arrays of shape (paths,)
        The position of the likeliest ν; ρ, small where coefficients are large in units of noise.
    slope, inflation : arrays of shape (paths,)
        J = E ψ'/E w with the weights w = ψ(u)/u, and κ, by which other laws inflate s²·SSᵀ.
    centre, spread : arrays of shape (paths, d)
        The mean of the vectors offered, and their mean square around the middle of each offer.
    renewal, due, kept : arrays of shape (paths,)
        The variation of the middles, relative to that of new vectors each time; the
        decision after which to fit next; the number of pulls in the buffer.
    contexts, rewards : arrays of shape (paths, room, D) and (paths, room)
        The buffer: the vectors, with a one for the intercept, and the rewards, within ±1e100.
    information, response : arrays of shape (paths, D, D) and (paths, D)
        H₀ and H₀(θ, b) + the score, of the discarded pulls.
    scoring, log_likelihood : arrays of shape (paths, shapes)
        Their score of ln s, and their log likelihood without a term that all ν have in common.
    sums : array of shape (paths, 3)
        Their Σψ', Σw and Σψ².
    """

    block: Finite
    scales: Annotated[Array, Rule((len(SHAPES),), finite=True, blank=1)]
    shape: Annotated[Index, Rule(least=0)]
    penalty: One
    slope: One
    inflation: One
    centre: Features
    spread: Features
    renewal: Finite
    due: Counts
    kept: Counts
    contexts: Finite
    rewards: Finite
    information: Finite
    response: Finite
    scoring: Annotated[Array, Rule((len(SHAPES),), finite=True)]
    log_likelihood: Annotated[Array, Rule((len(SHAPES),), finite=True)]
    sums: Annotated[Array, Rule((3,), finite=True)]

    @classmethod
    def start(
        cls, paths: int, arms: int, dim: int, size: int = 1, room: int = 1, **arrays: Any
    ) -> Self:
        """Return the state before any pull, for D = `size` and a buffer of `room` pulls."""
        return super().start(
            paths,
            arms,
            dim,
            block=np.zeros((paths, size, size + 1)),
            contexts=np.zeros((paths, room, size)) + (np.arange(size) >= dim),
            rewards=np.zeros((paths, room)),
            information=np.zeros((paths, size, size)),
            response=np.zeros((paths, size)),
            **arrays,
        )

    @property
    def root(self) -> Array:
        """S, of shape (paths, D, D)."""
        return self.block[..., :-1]

    @property
    def mean(self) -> Array:
        """The estimate of (θ, b), of shape (paths, D)."""
        return self.block[..., -1]

    @property
    def scale(self) -> Array:
        """The scale s under the likeliest ν, of shape (paths,)."""
        return self.scales[np.arange(self.paths), self.shape]

    def predict(self, arms: Array) -> tuple[Array, Array]:
        """Return b + xᵀθ and ‖(x, 1)‖² in the norm of SSᵀ for every arm, of shape (paths, K)."""
        product = arms @ self.block[:, : self.dim]
        if self.block.shape[1] > self.dim:
            product += self.block[:, -1:]
        return product[..., -1], _squares(product[..., :-1])

    def update(self, arms: Array, chosen: Array, y: Array) -> None:
        """Learn from one pull in each path: `chosen` are the vectors, of shape (paths, d)."""
        t, rows = self.decisions + 1, np.arange(self.paths)
        self._track_offers(arms, chosen, t)
        self.contexts[rows, self.kept, : self.dim] = chosen
        self.rewards[rows, self.kept] = y
        x = self.contexts[rows, self.kept]
        self.kept = self.kept + 1
        self._step(x, y)
        late = (t >= self.due) | (self.kept == self.rewards.shape[1])
        if late.any():
            for kept in np.unique(self.kept[late]):
                young = np.flatnonzero(late & (self.kept == kept))
                part = self if len(young) == self.paths else self.take(young)
                part._fit(t[young], int(kept))
                if part is not self:
                    self.put(young, part)

    def _track_offers(self, arms: Array, chosen: Array, t: Index) -> None:
        """Update where offered vectors lie, how far apart, and whether they are new each time."""
        middle = arms.mean(axis=1)
        square = np.square(arms - middle[:, None]).mean(axis=1)
        square = np.where(square.any(axis=1, keepdims=True), square, np.square(chosen))
        self.spread += (square - self.spread) / t[:, None]
        moved = middle - self.centre
        self.centre += moved / t[:, None]
        share = np.square(moved) / np.where(self.spread > 0, self.spread, np.inf)
        renewed = share.mean(axis=1) * (arms.shape[1] - 1) * (t - 1) / t
        self.renewal += (renewed - self.renewal) / t

    def _step(self, x: Array, y: Array) -> None:
        """Learn one pull by a rank-one update."""
        row = np.vecmat(x, self.block)
        leverage, nu = _squares(row[:, :-1]), SHAPES[self.shape]
        residual = y - row[:, -1]
        # before the pull its location was uncertain by ± s√leverage, on top of the noise
        weight = (nu + 1) / (nu + np.square(residual / self.scale) / (1 + leverage))
        root = np.sqrt(self.slope * weight)
        y = root * (row[:, -1] + residual / self.slope)
        rank_one_update(self.block, root[:, None] * x, y[:, None])

    def _fit(self, t: Index, n: int) -> None:
        """Fit all paths, which have the same number n of pulls in the buffer, in two rounds.

        Each adds the uncertainty of the location to the residual: r² + s²·leverage.
        """
        x, y, prior = self.contexts[:, :n], self.rewards[:, :n], self._prior()
        if (t == n).any():  # paths that have discarded nothing yet
            self._try_median(x, y, prior, t)
            self._try_least_squares(x, y, prior, np.flatnonzero(t == n))
        gone, before, scales = (t - n)[:, None] * _INFORMATION, self.scales, self.scales
        known = _half_resolution(y)
        for _ in range(2):
            residual, leverage = y - np.matvec(x, self.mean), _squares(x @ self.root)
            offset = np.abs(self.mean[:, self.dim :]).sum(axis=1)
            least = 1e-3 * self.scale / np.sqrt(self.penalty) + 1e-14 * offset + 1e-100
            typical = np.sqrt(np.square(residual).mean(axis=1))
            least = np.maximum(least, np.minimum(known, typical))
            for _ in range(2):  # Fisher scoring for ln s, by at most a factor e per step
                u = self._standardised(residual, leverage, scales)
                moved = np.log(scales / before)
                excess = _scoring(u) + self.scoring - gone * moved
                step = np.clip(excess / (t[:, None] * _INFORMATION), -1, 1)
                scales = np.maximum(scales * np.exp(step), least[:, None])
            u, moved = self._standardised(residual, leverage, scales), np.log(scales / before)
            shift = self.scoring * moved - gone * moved**2 / 2
            likelihood = _log_likelihood(u, scales) + self.log_likelihood + shift
            self.scales, self.shape = scales, likelihood.argmax(axis=1)
            weights, sums = self._weights(u)
            slope, total, square = (sums + self.sums).T
            slope = np.clip(slope / total, 0.25, 1)
            # a step of up to twice the right length still climbs, and understates nothing
            self.slope = np.maximum(slope, 0.5)
            self.inflation = np.maximum(square / total * self.slope / slope**2, 0.25)
            self._update_penalty(prior)
            self._newton_step(x, weights, residual, self.penalty[:, None, None] * prior)
        self.log_likelihood = self.log_likelihood + shift
        self.scoring = self.scoring - gone * moved
        self.due = t + np.maximum(t // 8, 1)
        if n == self.rewards.shape[1]:
            self._summarise(n // 2)

    def _prior(self) -> Array:
        """Return P: P⁻¹ = V⁻¹ + mmᵀ/d with V = diag(spread) and m = V⁻¹ centre; b is free.

        In units of spread all coordinates, and the mean offer, are expected to matter equally.
        """
        prior = np.zeros(self.information.shape)
        # a coordinate that is the same everywhere is another intercept, almost flat
        spread = np.maximum(self.spread, 1e-8 * np.square(self.centre) + 1e-200)
        length = np.sum(np.square(self.centre) / spread, axis=1)
        inner = prior[:, : self.dim, : self.dim]
        inner -= self.centre[:, :, None] * self.centre[:, None] / (length + self.dim)[:, None, None]
        inner[:, np.arange(self.dim), np.arange(self.dim)] += spread
        return prior

    def _try_median(self, x: Array, y: Array, prior: Array, t: Index) -> None:
        """Start from the median, with the rest as noise: at first, and where this fits better."""
        flat = self.block.shape[1] > self.dim
        middle = np.median(y, axis=1) * flat
        off = np.abs(y - middle[:, None])
        half = np.median(off, axis=1)
        left = np.median(np.abs(y - np.matvec(x, self.mean)), axis=1)
        astray = left > np.maximum(2 * half, self.scale / 2)
        rows = np.flatnonzero((t == y.shape[1]) & ((t <= 3) | astray))
        if len(rows):
            middle, half, off, x = middle[rows], half[rows], off[rows], x[rows]
            scale = np.where(half > 0, half, 1e-3 * off.max(axis=1))
            self.scales[rows] = (scale + 1e-14 * np.abs(middle) + 1e-100)[:, None]
            self.penalty[rows] = self.dim
            self.block[rows, :, :-1] = _inverse_root(x.mT @ x + self.dim * prior[rows])
            self.block[rows, : self.dim, -1] = 0
            self.block[rows, self.dim :, -1] = middle[:, None]

    def _try_least_squares(self, x: Array, y: Array, prior: Array, rows: Index) -> None:
        """Start from least squares where normal noise around it is likelier than the fit.

        A score that returns to zero can mistake one half of the rewards for noise around the other.
        """
        x, y, last = x[rows], y[rows], np.full(len(rows), len(SHAPES) - 1)
        root = _inverse_root(x.mT @ x + self.penalty[rows, None, None] * prior[rows])
        mean, leverage = _covariance_times(root, np.vecmat(y, x)), _squares(x @ root)
        residual, free = y - np.matvec(x, mean), y.shape[1] - leverage.sum(axis=1)
        scale = np.sqrt(np.square(residual).sum(axis=1) / np.maximum(free, 1e-9))
        scale, now = np.maximum(scale, 1e-100), self.scale[rows]
        left = y - np.matvec(x, self.mean[rows])
        gain = _log_density(residual / scale[:, None], leverage, last)
        gain -= _log_density(left / now[:, None], _squares(x @ self.root[rows]), self.shape[rows])
        better = (gain > y.shape[1] * np.log(scale / now)) & (free > y.shape[1] / 2)
        rows = rows[better]
        self.block[rows] = np.concatenate([root, mean[..., None]], axis=2)[better]
        self.scales[rows, -1], self.shape[rows] = scale[better], last[better]

    def _update_penalty(self, prior: Array) -> None:
        """Update ρ by MacKay's fixed point, with one more coordinate of size s²/d."""
        root, size = self.root, self.mean / self.scale[:, None]
        unknown = self.penalty * np.sum(root * (prior @ root), axis=(1, 2))
        square = np.vecdot(size, np.matvec(prior, size))
        ratio = (np.maximum(self.dim - unknown, 0) + 1) / (square + 1 / self.dim)
        self.penalty = np.clip(ratio, 1e-8, 1e8)

    def _newton_step(self, x: Array, weights: Array, residual: Array, prior: Array) -> None:
        """Take a Newton step, with the information that the score accepted."""
        new, score = self._information(x, weights, residual)
        root = _inverse_root(self.information + new + prior)
        climb = score + self.response - np.matvec(self.information + prior, self.mean)
        self.block[..., -1] += _covariance_times(root, climb)
        self.block[..., :-1] = root

    def _information(self, x: Array, weights: Array, residual: Array) -> tuple[Array, Array]:
        """Return the information of some pulls that the score accepted, and their score."""
        information = self.slope[:, None, None] * ((x * weights[..., None]).mT @ x)
        return information, np.asarray(np.vecmat(weights * residual, x))

    def _summarise(self, k: int) -> None:
        """Discard the k pulls of least leverage; their information and scores stay as of this fit.

        Where much is known, a normal summary is exact; the few pulls of a rare direction are kept.
        """
        leverage = _squares(self.contexts @ self.root)
        order = np.argpartition(leverage, k, axis=1)
        self.contexts = np.take_along_axis(self.contexts, order[..., None], axis=1)
        self.rewards = np.take_along_axis(self.rewards, order, axis=1)
        x, leverage = self.contexts[:, :k], np.take_along_axis(leverage, order[:, :k], axis=1)
        residual = self.rewards[:, :k] - np.matvec(x, self.mean)
        u = self._standardised(residual, leverage, self.scales)
        weights, sums = self._weights(u)
        new, score = self._information(x, weights, residual)
        self.information = self.information + new
        self.response = self.response + score + np.matvec(new, self.mean)
        self.scoring = self.scoring + _scoring(u)
        self.log_likelihood = self.log_likelihood + _log_likelihood(u, self.scales)
        self.sums = self.sums + sums
        self.contexts[:, :-k], self.rewards[:, :-k] = self.contexts[:, k:], self.rewards[:, k:]
        self.kept = self.kept - k

    def _standardised(self, residual: Array, leverage: Array, scales: Array) -> Array:
        """Return (r² + s²·leverage)/scales² for every shape: (paths, shapes, pulls)."""
        u = residual[:, None] / scales[..., None]
        known = np.square(self.scale[:, None] / scales)[..., None] * leverage[:, None]
        return np.minimum(np.square(u) + known, 1e200)

    def _weights(self, u: Array) -> tuple[Array, Array]:
        """Return the weights under the likeliest shape, and Σψ', Σw, Σψ²."""
        nu, u = SHAPES[self.shape][:, None], u[np.arange(self.paths), self.shape]
        w = (nu + 1) / (nu + u)
        parts = (w * (nu - u) / (nu + u), w, np.square(w) * u)
        return w, np.stack([part.sum(axis=1) for part in parts], axis=1)


def _half_resolution(y: Array) -> Array:
    """Return half the smallest difference of rewards that take at most √n values, else zero.

    Rounded rewards are known no better. So the location of coin flips is their mean, not 0 or 1.
    """
    steps = np.diff(np.sort(y, axis=1), axis=1)
    values = 1 + np.count_nonzero(steps, axis=1)
    least = np.where(steps > 0, steps, np.inf).min(axis=1, initial=np.inf)
    return np.where((values > 1) & (values**2 <= y.shape[1]), least, 0.0) / 2


def _scoring(u: Array) -> Array:
    """Return Σ(uψ(u) − 1), the score of ln s, for every shape, from squares of shape (…, pulls)."""
    return np.asarray(((SHAPES[:, None] + 1) * u / (SHAPES[:, None] + u) - 1).sum(axis=2))


def _log_likelihood(u: Array, scales: Array) -> Array:
    """Return the log likelihood of every shape, without the terms that all share."""
    top = u.shape[2] * (_LOG_HEIGHT - np.log(scales / scales[:, :1]))
    return np.asarray(top - (SHAPES + 1) / 2 * np.log1p(u / SHAPES[:, None]).sum(axis=2))


def _log_density(u: Array, leverage: Array, shape: Index) -> Array:
    """Return Σ of the log density of residuals over their scale, under one shape in each path."""
    nu, square = SHAPES[shape][:, None], np.minimum(np.square(u) + leverage, 1e200)
    tails = (nu[:, 0] + 1) / 2 * np.log1p(square / nu).sum(axis=1)
    return np.asarray(u.shape[1] * _LOG_HEIGHT[shape] - tails)


def _covariance_times(root: Array, vector: Array) -> Array:
    """Return SSᵀv in each path."""
    return np.asarray(np.matvec(root, np.vecmat(vector, root)))


def _squares(rows: Array) -> Array:
    return np.asarray(np.vecdot(rows, rows))


def _inverse_root(matrix: Array) -> Array:
    """Return S with SSᵀ = M⁻¹ for M scaled to a unit diagonal, with eigenvalues above rounding."""
    unit = np.sqrt(np.maximum(np.diagonal(matrix, axis1=1, axis2=2), 1e-300))
    strength, basis = np.linalg.eigh(matrix / unit[:, :, None] / unit[:, None])
    scaled: Array = basis / np.sqrt(np.maximum(strength, 1e-14))[:, None]
    return scaled / unit[..., None]
