"""The Student-t regression of LinStudentUCB, which learns the law of its noise in any unit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.state.base import Array, Counts, Finite, Index, Rule, State
from tailproof.policies.state.regression import rank_one_update
from tailproof.policies.state.student_law import (
    INFORMATION,
    SHAPES,
    covariance_times,
    half_resolution,
    inverse_root,
    log_density,
    log_likelihood,
    scores,
    squares,
)
from tailproof.policies.state.two_modes import LEAST, SEPARATED, compare, even_weights, split

__all__ = ["SHAPES", "StudentFit"]

_FIRST_LEAN = 0.5
"""τ at first: scales that differ by a factor of e^½ between typical vectors are no surprise."""
_EQUAL = 0.05
"""The size of one more coordinate of γ, so that arms with equal noise are fitted equal noise."""
_ALARM = 12.5
"""The log likelihood ratio at which an epoch ends, as of five standard deviations."""
_ROUNDS = 2
"""Of law and location in each fit: fits come often, and each starts from the last."""
_OFTEN = 8
"""A fit comes when there are an eighth more pulls, so fitting reads each pull about eight times."""
_LOOK = 1.25
"""Two modes are looked for when there are as many times the pulls: half as often as fits come."""
_SURE = 8.0
"""The log likelihood by which two modes must win, as of four standard deviations; half of it
against them ends them."""
_SIGNAL, _ROUNDING, _TINY = 1e-3, 1e-14, 1e-100
"""The least scale: of the spread of the coefficients, of the offset (100 roundings), of all."""
_LEAST_SLOPE = 0.25
"""J is at least this: 0.5 for Cauchy noise, less where few pulls mislead; the same holds for κ."""
_FOUR = 3  # the position of ν = 4, from which a fit that begins again finds any other soonest
_FLAT = 1e-8
"""The part of a squared mean below which a spread is rounding."""
_REJECTED = 1e200
"""Squares are at most this, so that sums of them are finite."""
_LEARNED = (
    *("information", "response", "earlier_information", "earlier_response"),
    *("design", "scoring", "log_likelihood", "sums", "lean"),
)
"""What was summed up of discarded pulls, and γ."""


One = Annotated[Array, Rule(finite=True, blank=1)]
Features = Annotated[Array, Rule(("dim",), finite=True)]


@dataclass(eq=False)
class StudentFit(State):
    """The fit, the pulls in its buffer, and a summary of the discarded pulls.

    y = b + xᵀθ + s·a(x)·t_ν,  ln a(x) = (x − x₀)ᵀγ,  γ ~ N(0, τ² (dV)⁻¹),  u = (y − b − xᵀθ)/(s·a)

    Where two modes ±a around the centre are likelier, y ∓ a takes the place of y, with the sign of
    its residual. The score ψ(u) = (ν + 1)u/(ν + u²) of Student's t is bounded and returns to zero,
    so an extreme reward has no influence and adds no information. D = d + 1 with an intercept, and
    D = d without.

    Where the last pulls follow another s, a new epoch begins: s and ν are learned again, from these
    pulls alone, and the estimates of θ, b and γ stay.

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
    origin : array of shape (paths,)
        Where b = 0: a median of the first rewards, so that a large offset costs no digits.
    contexts, rewards : arrays of shape (paths, room, D) and (paths, room)
        The buffer: the vectors, with a one for the intercept, and the rewards, within ±1e100.
    information, response : arrays of shape (paths, D, D) and (paths, D)
        H₀ and H₀(θ, b) + the score, of the discarded pulls.
    design, scoring : arrays of shape (paths, d + 1, d + 1) and (paths, shapes, d + 1)
        Their Σzzᵀ with z = (x − x₀, 1), and their score of (γ, ln s) under each ν.
    log_likelihood : array of shape (paths, shapes)
        Their log likelihood without a term that all ν have in common.
    sums : array of shape (paths, 3)
        Their Σψ', Σw and Σψ².
    earlier_information, earlier_response : arrays of shape (paths, D, D) and (paths, D)
        As `information` and `response`, of the pulls of earlier epochs.
    earlier_scale, lean_variance, floor : arrays of shape (paths,)
        s√κ at the end of the last epoch; τ²; the least scale that the rewards can tell.
    anchor, lean : arrays of shape (paths, d)
        x₀, the mean of the first offers; γ.
    gap, looked : arrays of shape (paths,)
        The distance a of two modes from their centre, 0 for one mode; the decision at which two
        modes were last looked for.
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
    origin: Finite
    contexts: Finite
    rewards: Finite
    information: Finite
    response: Finite
    design: Finite
    scoring: Finite
    log_likelihood: Annotated[Array, Rule((len(SHAPES),), finite=True)]
    sums: Annotated[Array, Rule((3,), finite=True)]
    earlier_information: Finite
    earlier_response: Finite
    earlier_scale: One
    anchor: Features
    lean: Features
    lean_variance: Annotated[Array, Rule(finite=True, blank=_FIRST_LEAN**2)]
    floor: Finite
    gap: Finite
    looked: Counts

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
            design=np.zeros((paths, dim + 1, dim + 1)),
            scoring=np.zeros((paths, len(SHAPES), dim + 1)),
            earlier_information=np.zeros((paths, size, size)),
            earlier_response=np.zeros((paths, size)),
            **arrays,
        )

    @property
    def root(self) -> Array:
        """S, of shape (paths, D, D)."""
        return self.block[..., :-1]

    @property
    def mean(self) -> Array:
        """The estimate of (θ, b), with b from the origin, of shape (paths, D)."""
        return self.block[..., -1]

    @property
    def coefficients(self) -> Array:
        """The estimate of (θ, b), of shape (paths, D)."""
        coefficients = self.mean.copy()
        coefficients[:, self.dim :] += self.origin[:, None]
        return coefficients

    def responses(self, pulls: slice) -> Array:
        """Return some rewards of the buffer, from the origin, both modes laid on their centre."""
        return self._folded(self.contexts[:, pulls], self.rewards[:, pulls] - self.origin[:, None])

    def _folded(self, x: Array, y: Array) -> Array:
        """Return rewards, of shape (paths, n), moved by a towards the prediction where a > 0."""
        if not self.gap.any():
            return y
        above = y >= np.matvec(x, self.mean)
        return np.asarray(y - np.where(above, 1, -1) * self.gap[:, None])

    @property
    def scale(self) -> Array:
        """The scale s under the likeliest ν, of shape (paths,)."""
        return self.scales[np.arange(self.paths), self.shape]

    def predict(self, arms: Array) -> tuple[Array, Array]:
        """Return b + xᵀθ from the origin and ‖(x, 1)‖² in the norm of SSᵀ for every arm."""
        product = arms @ self.block[:, : self.dim]
        if self.block.shape[1] > self.dim:
            product += self.block[:, -1:]
        return product[..., -1], squares(product[..., :-1])

    def relative_variance(self, x: Array) -> Array:
        """Return a², the squared scale of the noise relative to s, at x of shape (paths, n, d)."""
        log = np.matvec(x - self.anchor[:, None], self.lean)
        return np.asarray(np.exp(np.minimum(np.maximum(2 * log, -40), 40)))

    def update(self, arms: Array, chosen: Array, y: Array) -> None:
        """Learn from one pull in each path: `chosen` are the vectors, of shape (paths, d)."""
        t, rows = self.decisions + 1, np.arange(self.paths)
        self._track_offers(arms, chosen, t)
        self.contexts[rows, self.kept, : self.dim] = chosen
        self.rewards[rows, self.kept] = y
        x = self.contexts[rows, self.kept]
        self.kept = self.kept + 1
        self._step(x, self._folded(x[:, None], (y - self.origin)[:, None])[:, 0])
        late = (t >= self.due) | (self.kept == self.rewards.shape[1])
        if late.any():
            rows = np.flatnonzero(late)
            self._in_groups(rows, self.kept, StudentFit._watch)
            self._in_groups(rows, self.kept, StudentFit._fit)

    def _in_groups(
        self, rows: Index, sizes: Index, learn: Callable[["StudentFit", int], None]
    ) -> None:
        """Call `learn(part, size)` on the given paths, together where they have the same size."""
        for size in np.unique(sizes[rows]):
            group = rows[sizes[rows] == size]
            part = self if len(group) == self.paths else self.take(group)
            learn(part, int(size))
            if part is not self:
                self.put(group, part)

    def _track_offers(self, arms: Array, chosen: Array, t: Index) -> None:
        """Update where offered vectors lie, how far apart, and whether they are new each time."""
        # sums of small arrays are quicker than their means
        k, middle = arms.shape[1], arms.sum(axis=1) / arms.shape[1]
        square = np.square(arms - middle[:, None]).sum(axis=1) / k
        square = np.where(square.any(axis=1, keepdims=True), square, np.square(chosen))
        self.spread += (square - self.spread) / t[:, None]
        moved = middle - self.centre
        self.centre += moved / t[:, None]
        share = np.square(moved) / np.where(self.spread > 0, self.spread, np.inf)
        renewed = share.sum(axis=1) / self.dim * (k - 1) * (t - 1) / t
        self.renewal += (renewed - self.renewal) / t

    def _step(self, x: Array, y: Array) -> None:
        """Learn one pull by a rank-one update."""
        row = np.vecmat(x, self.block)
        leverage, nu = squares(row[:, :-1]), SHAPES[self.shape]
        residual = y - row[:, -1]
        # before the pull its location was uncertain by ± s√leverage, on top of the noise
        variance = self.relative_variance(x[:, None, : self.dim])[:, 0]
        weight = (nu + 1) / (nu + np.square(residual / self.scale) / (variance + leverage))
        root = np.sqrt(self.slope * weight / variance)
        y = root * (row[:, -1] + residual / self.slope)
        rank_one_update(self.block, root[:, None] * x, y[:, None])

    def _watch(self, n: int) -> None:
        """Begin a new epoch where the last 8, 16, 32 … pulls follow another scale than the law.

        Under the law q = ν/(ν + u²) is Beta(ν/2, ½), with the mean p = ν/(ν + 1). If m pulls have
        the mean q̄, another scale is likelier by a factor of about exp(m (ν + 3)/2 kl(p, q̄)).
        """
        recent = n - self.rewards.shape[1] + self.rewards.shape[1] // 2
        watched = self.design[:, -1, -1] > 0  # paths that have discarded pulls of this epoch
        if recent < 8 or not watched.any():
            return
        sizes = 8 * 2 ** np.arange((recent // 8).bit_length())
        last, nu = slice(n - sizes[-1], n), SHAPES[self.shape][:, None]
        q = nu / (nu + self._squared_residuals(self.contexts[:, last], self.responses(last)))
        q = np.stack([q[:, -m:].mean(axis=1) for m in sizes], axis=1)
        p, rest = nu / (nu + 1), np.maximum(1 - q, 1e-15)
        ratio = sizes * (nu + 3) / 2 * (p * np.log(p / q) + (1 - p) * np.log((1 - p) / rest))
        # noise below the floor is no news
        watched = watched[:, None] & ((q < p) | (self.scale > 2 * self.floor)[:, None])
        ratio = np.where(watched, ratio, 0)
        changed = np.where(ratio.max(axis=1) > _ALARM, sizes[ratio.argmax(axis=1)], 0)
        rows = np.flatnonzero(changed)
        self._in_groups(rows, changed, lambda part, m: part._begin_epoch(n, m))

    def _begin_epoch(self, n: int, m: int) -> None:
        """Discard all but the last m of n pulls, and the others' information about s and ν.

        Their information about (θ, b) stays in absolute units, and about γ whatever s is.
        """
        self._discard(n - m)
        scale = self.scale * np.sqrt(self.inflation)
        share = np.square(np.minimum(scale / self.earlier_scale, 1e6))
        self.earlier_information = share[:, None, None] * self.earlier_information
        self.earlier_information += self.information
        self.earlier_response = share[:, None] * self.earlier_response + self.response
        self.earlier_scale = scale
        self.information, self.response = 0 * self.information, 0 * self.response
        part = self.design[..., -1] / self.design[:, -1:, -1]
        self.scoring = self.scoring - self.scoring[..., -1:] * part[:, None]
        self.design = self.design - part[:, :, None] * self.design[:, -1:]
        self.scoring[..., -1] = self.design[..., -1] = self.design[:, -1] = 0
        # a few pulls say little about ν and κ, which are likely to be the same
        likelihood = self.log_likelihood - self.log_likelihood.max(axis=1, keepdims=True)
        self.log_likelihood = np.maximum(likelihood, -4)
        self.sums = self.sums * (8 / np.maximum(self.sums[:, 1:2], 8))

    def _fit(self, n: int) -> None:
        """Fit all paths, which have the same number n of pulls in the buffer: start, law, location.

        Law and location are learned in two rounds. Each adds the uncertainty of the location to the
        residual: r² + s²·leverage.
        """
        t, prior = self.decisions + 1, self._prior()
        self._learn_start(n, t, prior)
        x, y = self.contexts[:, :n], self.responses(slice(n))
        before, count = (self.scales, self.lean), n + self.design[:, -1, -1]
        if 2 * n >= self.rewards.shape[1]:  # fewer pulls say more about s than about γ
            self._update_lean(x, y)
        variance, resolution = self.relative_variance(x[..., : self.dim]), half_resolution(x, y)
        for _ in range(_ROUNDS):
            residual, leverage = y - np.matvec(x, self.mean), squares(x @ self.root)
            self._learn_floor(residual, resolution)
            weights, shift, scoring = self._learn_law(residual, leverage, variance, before, count)
            self._update_penalty(prior)
            self._newton_step(x, weights / variance, residual, self.penalty[:, None, None] * prior)
        self.log_likelihood, self.scoring = self.log_likelihood + shift, scoring
        self.due = t + np.maximum(count.astype(np.int64) // _OFTEN, 1)
        if n == self.rewards.shape[1]:
            self._summarise(n // 2)

    def _learn_start(self, n: int, t: Index, prior: Array) -> None:
        """Find where to start from: one mode or two, the median, or least squares."""
        if (fresh := t == n).any():  # paths that have discarded nothing yet
            self._move_origin(n, fresh)
        self._look_for_modes(n, t, prior)
        if fresh.any():
            x, y = self.contexts[:, :n], self.responses(slice(n))
            self._try_median(x, y, prior, t)
            self._try_least_squares(x, y, prior, np.flatnonzero(fresh))

    def _learn_floor(self, residual: Array, resolution: Array) -> None:
        """Learn the least scale: of rounding, of the resolution of rewards, and of the signal."""
        offset = np.abs(self.origin) + np.abs(self.mean[:, self.dim :]).sum(axis=1)
        least = _SIGNAL * self.scale / np.sqrt(self.penalty) + _ROUNDING * offset + _TINY
        typical = np.sqrt(np.square(residual).mean(axis=1))
        self.floor = np.maximum(least, np.minimum(resolution, typical))

    def _learn_law(
        self,
        residual: Array,
        leverage: Array,
        variance: Array,
        before: tuple[Array, Array],
        count: Array,
    ) -> tuple[Array, Array, Array]:
        """Learn s under every ν, the likeliest ν, J and κ.

        Return the weights of the pulls, and by how much the likelihood and the score of the
        discarded ones have moved.
        """
        scales = self.scales
        for _ in range(_ROUNDS):  # Fisher scoring for ln s, by at most a factor e per step
            u = self._standardised(residual, leverage, variance, scales)
            excess = scores(u).sum(axis=2) + self._moved(*before, scales)[1][..., -1]
            step = np.clip(excess / (count[:, None] * INFORMATION), -1, 1)
            scales = np.maximum(scales * np.exp(step), self.floor[:, None])
        u = self._standardised(residual, leverage, variance, scales)
        moved, scoring = self._moved(*before, scales)
        shift = np.vecdot(moved, self.scoring + scoring) / 2
        likelihood = log_likelihood(u, scales) + self.log_likelihood + shift
        self.scales, self.shape = scales, likelihood.argmax(axis=1)
        weights, sums = self._weights(u)
        slope, total, square = (sums + self.sums).T
        slope = np.clip(slope / total, _LEAST_SLOPE, 1)
        # a step of up to twice the right length still climbs, and understates nothing
        self.slope = np.maximum(slope, 0.5)
        self.inflation = np.maximum(square / total * self.slope / slope**2, _LEAST_SLOPE)
        return weights, shift, scoring

    def _look_for_modes(self, n: int, t: Index, prior: Array) -> None:
        """Choose the shape ½t(x − a) + ½t(x + a) where it is likelier than t, and t where not."""
        self._refine_gap(n)
        rows = np.flatnonzero((t >= _LOOK * self.looked) & (n >= LEAST * self.block.shape[1]))
        if not len(rows):
            return
        self.looked[rows] = t[rows]
        y = self.rewards[rows, :n] - self.origin[rows, None]
        off = y - np.matvec(self.contexts[rows, :n], self.mean[rows])
        raw, left, gap = split(y), split(off), self.gap[rows]
        apart = np.flatnonzero((np.maximum(raw.strength, left.strength) > SEPARATED) | (gap > 0))
        if not len(apart):
            return
        rows, y, gap = rows[apart], y[apart], gap[apart]
        raw, left = raw.take(apart), left.take(apart)
        x, on, first = self.contexts[rows, :n], gap > 0, raw.strength >= left.strength
        low, high = np.where(first, raw.low, left.low), np.where(first, raw.high, left.high)
        low, high = np.where(on, -gap, low), np.where(on, gap, high)
        starts = np.stack([np.zeros(self.mean[rows].shape), self.mean[rows]], axis=1)
        starts[:, 0, self.dim :] = ((raw.low + raw.high) / 2)[:, None]
        starts[:, 1, self.dim :] += np.where(on, 0, (left.low + left.high) / 2)[:, None]
        comparison = compare(x, y, even_weights(x[..., : self.dim]), prior[rows], starts, low, high)
        gain = np.minimum(comparison.gain, comparison.moves - self.dim)
        moved = np.abs(np.matvec(x, comparison.two.theta - self.mean[rows])).mean(axis=1)
        begins = (gain > _SURE) & (~on | (moved > comparison.two.gap / 2))
        ends = on & (gain < -_SURE / 2)
        for which, fit in ((begins, comparison.two), (ends, comparison.one)):
            part = np.flatnonzero(which)
            if len(part):
                self.gap[rows[part]] = fit.gap[part]
                self._begin_with(rows[part], fit.theta[part], fit.scale[part], x[part])

    def _refine_gap(self, n: int) -> None:
        """Learn anew how far two modes are apart, with the weights of a Cauchy law."""
        if len(rows := np.flatnonzero(self.gap)):
            x, y = self.contexts[rows, :n], self.rewards[rows, :n] - self.origin[rows, None]
            off = np.abs(y - np.matvec(x, self.mean[rows]))
            w = 1 / (1 + np.square((off - self.gap[rows, None]) / self.scale[rows, None]))
            self.gap[rows] = (w * off).sum(axis=1) / w.sum(axis=1)

    def _begin_with(self, rows: Index, theta: Array, scale: Array, x: Array) -> None:
        """Begin some paths again from a fit of the buffer, as they took a mode for the centre."""
        for name in _LEARNED:
            getattr(self, name)[rows] = 0
        self.scales[rows], self.shape[rows] = scale[:, None], _FOUR
        self.penalty[rows] = self.dim
        self.block[rows, :, :-1] = inverse_root(x.mT @ x + self.dim * self._prior()[rows])
        self.block[rows, :, -1] = theta

    def _moved(self, scales: Array, lean: Array, now: Array) -> tuple[Array, Array]:
        """Return how far (γ, ln s) has moved, and the score of the discarded pulls there."""
        moved = np.empty(self.scoring.shape)
        moved[..., :-1], moved[..., -1] = (self.lean - lean)[:, None], np.log(now / scales)
        return moved, self.scoring - INFORMATION[:, None] * (moved @ self.design)

    def _placed(self, x: Array) -> Array:
        """Return z = (x − x₀, 1), of shape (paths, n, d + 1)."""
        z = np.ones((*x.shape[:2], self.dim + 1))
        np.subtract(x[..., : self.dim], self.anchor[:, None], out=z[..., :-1])
        return z

    def _update_lean(self, x: Array, y: Array) -> None:
        """Update γ and ln s by a step of Fisher scoring, and τ² by MacKay's fixed point.

        One more coordinate of size 0.05 keeps equal noise equal. Noise near the floor is as good as
        none, and has no lean.
        """
        rows, inner = np.arange(self.paths), np.arange(self.dim)
        z, nu = self._placed(x), SHAPES[self.shape][:, None]
        u = self._squared_residuals(x, y)
        score = self.scoring[rows, self.shape] + np.vecmat((nu + 1) * u / (nu + u) - 1, z)
        unit = self.dim * np.maximum(self.spread, _FLAT * np.square(self.anchor) + 1e-200)
        prior = unit / self.lean_variance[:, None]
        score[:, :-1] -= prior * self.lean
        matrix = INFORMATION[self.shape][:, None, None] * (self.design + z.mT @ z)
        matrix[:, inner, inner] += prior
        root = inverse_root(matrix)
        step = covariance_times(root, score)
        step /= np.maximum(np.abs(np.matvec(z, step)).max(axis=1), 1)[:, None]
        step[self.scale <= 2 * self.floor] = 0
        self.lean = self.lean + step[:, :-1]
        self.scales = self.scales * np.exp(step[:, -1:])
        freedom = np.maximum(self.dim - np.vecdot(squares(root[:, :-1]), prior), 0)
        size = np.vecdot(np.square(self.lean), unit) + _EQUAL**2
        self.lean_variance = np.minimum(size / (freedom + 1), 9)

    def _prior(self) -> Array:
        """Return P: P⁻¹ = V⁻¹ + mmᵀ/d with V = diag(spread) and m = V⁻¹ centre; b is free.

        In units of spread all coordinates, and the mean offer, are expected to matter equally.
        """
        prior = np.zeros(self.information.shape)
        # a coordinate that is the same everywhere is another intercept, almost flat
        spread = np.maximum(self.spread, _FLAT * np.square(self.centre) + 1e-200)
        length = np.sum(np.square(self.centre) / spread, axis=1)
        inner = prior[:, : self.dim, : self.dim]
        inner -= self.centre[:, :, None] * self.centre[:, None] / (length + self.dim)[:, None, None]
        inner[:, np.arange(self.dim), np.arange(self.dim)] += spread
        return prior

    def _move_origin(self, n: int, rows: NDArray[np.bool_]) -> None:
        """Measure the rewards of some paths from their median, the lower of two."""
        if self.block.shape[1] > self.dim:
            middle = np.partition(self.rewards[:, :n], (n - 1) // 2, axis=1)[:, (n - 1) // 2]
            moved = np.where(rows, middle - self.origin, 0)
            self.origin = self.origin + moved
            self.block[:, -1, -1] -= moved

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
            middle, half, off, x = (part[rows] for part in (middle, half, off, x))
            scale = np.where(half > 0, half, 1e-3 * off.max(axis=1))
            least = np.maximum(1e-14 * np.abs(self.origin[rows] + middle), 1e-100)
            self.scales[rows] = np.maximum(scale, least)[:, None]
            self.penalty[rows] = self.dim
            self.anchor[rows], self.lean[rows] = self.centre[rows], 0
            self.lean_variance[rows] = _FIRST_LEAN**2
            self.block[rows, :, :-1] = inverse_root(x.mT @ x + self.dim * prior[rows])
            self.block[rows, : self.dim, -1] = 0
            self.block[rows, self.dim :, -1] = middle[:, None]

    def _try_least_squares(self, x: Array, y: Array, prior: Array, rows: Index) -> None:
        """Start from least squares where normal noise around it is likelier than the fit.

        A score that returns to zero can mistake one half of the rewards for noise around the other.
        """
        x, y, last = x[rows], y[rows], np.full(len(rows), len(SHAPES) - 1)
        root = inverse_root(x.mT @ x + self.penalty[rows, None, None] * prior[rows])
        mean, leverage = covariance_times(root, np.vecmat(y, x)), squares(x @ root)
        residual, free = y - np.matvec(x, mean), y.shape[1] - leverage.sum(axis=1)
        scale = np.sqrt(np.square(residual).sum(axis=1) / np.maximum(free, 1e-9))
        scale, now = np.maximum(scale, 1e-100), self.scale[rows]
        variance = self.relative_variance(self.contexts[:, : y.shape[1], : self.dim])[rows]
        left = (y - np.matvec(x, self.mean[rows])) / np.sqrt(variance) / now[:, None]
        gain = log_density(residual / scale[:, None], leverage, last)
        gain -= log_density(left, squares(x @ self.root[rows]) / variance, self.shape[rows])
        gain += np.log(variance).sum(axis=1) / 2
        better = (gain > y.shape[1] * np.log(scale / now)) & (free > y.shape[1] / 2)
        rows = rows[better]
        self.block[rows] = np.concatenate([root, mean[..., None]], axis=2)[better]
        self.scales[rows, -1], self.shape[rows] = scale[better], last[better]
        self.lean[rows] = 0

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
        share = np.minimum(self.scale / self.earlier_scale, 1e6) ** 2 * self.inflation
        past = self.information + share[:, None, None] * self.earlier_information + prior
        response = self.response + share[:, None] * self.earlier_response
        root, climb = inverse_root(past + new), score + response - np.matvec(past, self.mean)
        self.block[..., -1] += covariance_times(root, climb)
        self.block[..., :-1] = root

    def _information(self, x: Array, weights: Array, residual: Array) -> tuple[Array, Array]:
        """Return the information of some pulls that the score accepted, and their score."""
        information = self.slope[:, None, None] * ((x * weights[..., None]).mT @ x)
        return information, np.asarray(np.vecmat(weights * residual, x))

    def _summarise(self, k: int) -> None:
        """Discard the k pulls of least leverage; their information and scores stay as of this fit.

        Where much is known, a normal summary is exact; the few pulls of a rare direction are kept.
        """
        leverage = squares(self.contexts @ self.root)
        order = np.argpartition(leverage, k, axis=1)
        self.contexts = np.take_along_axis(self.contexts, order[..., None], axis=1)
        self.rewards = np.take_along_axis(self.rewards, order, axis=1)
        self._discard(k)

    def _discard(self, k: int) -> None:
        """Replace the first k pulls of the buffer by their summary."""
        x, y = self.contexts[:, :k], self.responses(slice(k))
        residual, leverage = y - np.matvec(x, self.mean), squares(x @ self.root)
        variance, z = self.relative_variance(x[..., : self.dim]), self._placed(x)
        u = self._standardised(residual, leverage, variance, self.scales)
        weights, sums = self._weights(u)
        new, score = self._information(x, weights / variance, residual)
        self.information = self.information + new
        self.response = self.response + score + np.matvec(new, self.mean)
        self.design, self.scoring = self.design + z.mT @ z, self.scoring + scores(u) @ z
        self.log_likelihood = self.log_likelihood + log_likelihood(u, self.scales)
        self.sums = self.sums + sums
        self.contexts[:, :-k], self.rewards[:, :-k] = self.contexts[:, k:], self.rewards[:, k:]
        self.kept = self.kept - k

    def _squared_residuals(self, x: Array, y: Array) -> Array:
        """Return (r² + s²·leverage)/(a·s)² under the likeliest law, of shape (paths, pulls)."""
        residual, leverage = y - np.matvec(x, self.mean), squares(x @ self.root)
        u = np.square(residual / self.scale[:, None]) + leverage
        return np.asarray(np.minimum(u / self.relative_variance(x[..., : self.dim]), _REJECTED))

    def _standardised(
        self, residual: Array, leverage: Array, variance: Array, scales: Array
    ) -> Array:
        """Return (r² + s²·leverage)/(a·scales)² for every shape: (paths, shapes, pulls)."""
        u = (np.square(residual / self.scale[:, None]) + leverage) / variance
        return np.minimum(
            np.square(self.scale[:, None] / scales)[..., None] * u[:, None], _REJECTED
        )

    def _weights(self, u: Array) -> tuple[Array, Array]:
        """Return the weights under the likeliest shape, and Σψ', Σw, Σψ²."""
        nu, u = SHAPES[self.shape][:, None], u[np.arange(self.paths), self.shape]
        w = (nu + 1) / (nu + u)
        parts = (w * (nu - u) / (nu + u), w, np.square(w) * u)
        return w, np.stack([part.sum(axis=1) for part in parts], axis=1)
