"""SymmetricOFUL: linear optimism from single pulls, with a guarantee that needs no moment."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import Count, Fraction, Horizon, NonNegative, Penalty, Positive
from tailproof.chunking import chunks
from tailproof.policies.base import Array, Index, Indexed, picked
from tailproof.policies.state.counts import clip
from tailproof.policies.state.huber_fit import HuberFit, gram, minimise, root_of
from tailproof.policies.state.regression import squared_norms
from tailproof.stats.theory import huber_ridge

__all__ = ["SymmetricOFUL"]

_TRIES, _LONGER = 6, 1.25  # attempts at w, and the factor by which each exceeds the need


class _Past(NamedTuple):
    """The data of a fit in units of τ: x, |r_s|, ∇F(θ̂), S with SSᵀ = U⁻¹, ln det(I + X/λ), √λ S.

    ∇F(θ̂) is not quite zero after rounding and a bounded number of steps.
    """

    x: Array
    size: Array
    rest: Array
    root: Array
    log_det: Array
    shift: Array


Ball = tuple[Array, Array, NDArray[np.bool_]]
"""A root of N⁻¹, the radius in the norm of N in units of τ, and whether the set is proved."""


@dataclass(frozen=True, kw_only=True)
class SymmetricOFUL(Indexed[HuberFit]):
    """Optimism on a Huber regression of single rewards, for symmetric noise of any tail.

    x_t = argmax_x xᵀθ̂ + bonus·β ‖x‖_{N⁻¹},
    θ̂ = argmin λ/2 ‖θ‖² + Σ_s h(y_s − x_sᵀθ),  h' = ψ, the identity clipped at ±τ;
    with X = Σ x xᵀ, r_s = y_s − x_sᵀθ̂, Ŵ(w) = λI + Σ_{|r_s|≤τ−w} x_s x_sᵀ, and ℓ = 2 ln(1/δ):

    theorem:     N = λI + κX,  β = 2((τ/√κ) √(ℓ + ln det(I + κX/λ)) + √λ S)
    observable:  N = U = λI + X,  β = G/κ̂,  G = τ √(ℓ + ln det(I + X/λ)) + √λ S,
                 κ̂ the least eigenvalue of Ŵ in the norm of U;  certified if max_s ‖x_s‖_{U⁻¹} β < w
    refined:     N = Ŵ,  β = √(v̂ (ℓ + ln det(I + Q̂/ρ))) + √λ S,  Q̂ = Σ min(τ, |r_s| + w)² x_s x_sᵀ,
                 v̂ the largest eigenvalue of ρI + Q̂ in the norm of Ŵ,  ρ = λτ²/4
    practical:   refined with w = 0, never certified; `bonus` of about 0.3 works well

    w is close to the least value that is certified, or 0 if none below τ is. "theorem" and
    "refined" rely on two events and give δ/2 to each.

    Parameters
    ----------
    tau : float, optional
        τ, in the unit of the rewards. By default τ is the median of |y| over a pilot, so that no
        unit has to be known; the pilot's arms are random and its pulls are left out of the fit.
        Except for the "practical" radius τ is then at least 8S: smaller ones are certified late.
    norm_bound, delta : float
        S, a bound on ‖θ‖, and δ, the probability that a certified set ever misses θ.
    radius : str
        "theorem", "observable", "refined" or "practical".
    bonus : float
        Multiplies β: with 1 the regret is proved where the set is certified.
    ridge : float, optional
        λ, by default `tailproof.theory.huber_ridge` for "theorem", 1 for "practical", and
        otherwise 64 ln(2/δ), which certifies from the first pull if τ ≥ 8S, ‖x‖ ≤ 1 and most noise
        is well below τ.
    mass, horizon : float and int, optional
        κ ≤ P(|η| ≤ τ/2), see `tailproof.theory.central_mass`, and T, in pulls; for "theorem" only.
    pilot : int
        The number of pulls of the pilot; its median leaves out rewards of 0.

    Examples
    --------
    >>> policy, rng = SymmetricOFUL(), np.random.default_rng(0)
    >>> state, theta = policy.init(paths=1, arms=3, dim=2), np.array([0.6, -0.8])
    >>> for _ in range(300):
    ...     arms = rng.uniform(-0.7, 0.7, (1, 3, 2))
    ...     chosen = policy.choose(state, arms, rng)
    ...     reward = arms[0, chosen] @ theta + rng.standard_cauchy()
    ...     policy.learn(state, arms, chosen, reward[:, None])
    >>> policy.certified(state).tolist(), policy.covers(state, theta).tolist()
    ([True], [True])

    It refits when the number of pulls, or det(I + X/λ), has grown by an eighth: at most 8.5 (ln T +
    d ln(1 + T/(dλ))) times, at O(T d²) for each of a few Newton steps. In between a decision costs
    O(K d²). All pulls are kept: 8 to 16 (d + 1) bytes for each.

    Source: our own, theorems 2 and 2′ of docs/theory.md; parts are known: Huber 1964, the
    self-normalised bound of Abbasi-Yadkori, Pál and Szepesvári 2011 and their rare switching, and
    de la Peña 1999 for symmetric variables.
    Differences: no algorithm was published under this name.

    Kind: single pulls without a mean.
    Needs: symmetry, S; τ or a pilot.
    Regret: Õ((τ/κ) d √T), proved there.
    Learns without a mean: yes, proved.
    """

    tau: Positive | None = None
    norm_bound: Positive = 1.0
    radius: Literal["theorem", "observable", "refined", "practical"] = "refined"
    bonus: NonNegative = 1.0
    ridge: Penalty | None = None
    delta: Fraction = 0.01
    mass: Fraction | None = None
    horizon: Horizon | None = None
    pilot: Count = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tau", "mass", "horizon") if self.radius == "theorem" else ():
            if getattr(self, name) is None:
                raise ValueError(f'{name} is required for radius="theorem"; or use "refined"')

    def estimate(self, state: HuberFit) -> Array:
        """Return θ̂ as of the last fit."""
        return state.theta

    def certified(self, state: HuberFit) -> NDArray[np.bool_]:
        """Return whether the confidence set of each path is proved, which the data alone decide.

        For symmetric noise, ‖θ‖ ≤ S, and κ for "theorem", P(a certified set ever misses θ) ≤ δ.
        """
        return state.certified.copy()

    def position(self, state: HuberFit, theta: ArrayLike) -> Array:
        """Return ‖θ̂ − θ‖_N/β in each path, at most 1 where θ lies in the confidence set."""
        error = np.asarray(theta, dtype=np.float64) - state.theta
        inside = np.linalg.solve(state.norm, error[..., None])[..., 0]
        return np.asarray(np.linalg.norm(inside, axis=1) / state.radius)

    def covers(self, state: HuberFit, theta: ArrayLike) -> NDArray[np.bool_]:
        """Return whether θ lies in the confidence set of each path."""
        return self.position(state, theta) <= 1

    def _init(self, paths: int, arms: int, dim: int) -> HuberFit:
        norm = np.tile(np.eye(dim), (paths, 1, 1))
        state = HuberFit.start(paths, arms, dim, self._penalty(dim) / self._kappa, norm=norm)
        state.tau[:] = self.tau or 0
        return state

    def _index(self, state: HuberFit, arms: Array) -> Array:
        mean: Array = np.matvec(arms, state.theta)
        width = state.radius[:, None] * np.sqrt(squared_norms(state.norm, arms))
        return mean + self.bonus * width

    def _learn(self, state: HuberFit, arms: Array, chosen: Index, rewards: Array) -> None:
        tuned = state.tau > 0
        x = np.where(tuned[:, None], picked(arms, chosen), 0.0)  # the pilot is left out of the fit
        due = state.append(x, clip(rewards[:, 0])) & tuned
        length = state.decisions + 1
        for n in np.unique(length).tolist():  # no path depends on the length of others
            (piloted,) = np.nonzero((length == n) & ~tuned & (n >= self.pilot))
            size = np.sort(np.abs(state.rewards[piloted, :n]), axis=1)
            zeros = np.count_nonzero(size == 0, axis=1)
            middle = np.minimum(zeros + (n - zeros) // 2, n - 1)
            state.tau[piloted] = np.maximum(size[np.arange(len(size)), middle], self._least_tau)
            (rows,) = np.nonzero((length == n) & due)
            for part in chunks(len(rows), 4 * n * state.dim):
                self._fit(state, rows[part], n)

    def _fit(self, state: HuberFit, rows: Index, n: int) -> None:
        """Refit the given paths, which have n pulls each."""
        tau, root, penalty = state.tau[rows], state.root[rows], self._penalty(state.dim)
        x, y = state.contexts[rows, :, :n], clip(state.rewards[rows, :n] / tau[:, None])
        theta = minimise(x, y, state.theta[rows] / tau[:, None], root, penalty)
        residual = y - np.einsum("pdn,pd->pn", x, theta)
        rest = penalty * theta - np.einsum("pdn,pn->pd", x, np.clip(residual, -1, 1))
        shift = math.sqrt(penalty) * self.norm_bound / tau
        past = _Past(x, np.abs(residual), rest, root, state.log_det[rows], shift)
        ball = self._theorem(past) if self.radius == "theorem" else self._measured(past)
        state.norm[rows], radius, state.certified[rows] = ball
        state.theta[rows], state.radius[rows] = tau[:, None] * theta, tau * radius
        state.fitted[rows], state.fitted_log_det[rows] = n, past.log_det

    def _theorem(self, past: _Past) -> Ball:
        """Return the confidence set of theorem 2; V = κU."""
        _, dim, n = past.x.shape
        norm = past.root / math.sqrt(self._kappa)
        noise = np.sqrt((self._log(2) + past.log_det) / self._kappa)
        radius = 2 * (noise + past.shift + _length(past.rest, norm))
        kept = (self.tau or 0) >= self._least_tau and n <= (self.horizon or 0)
        kept &= self._penalty(dim) >= self._proved_penalty(dim)
        longest = np.linalg.norm(past.x, axis=1).max(axis=1)
        return norm, radius, kept & (longest <= 1 + 1e-9)

    def _measured(self, past: _Past) -> Ball:
        """Return the confidence set of theorem 2′, with the least certified w, or else w = 0."""
        paths, dim, _ = past.x.shape
        penalty, events = self._penalty(dim), 1 if self.radius == "observable" else 2
        total = np.sqrt(self._log(events) + past.log_det) + past.shift
        total += _length(past.rest, past.root)
        reach = np.linalg.norm(np.einsum("pij,pin->pjn", past.root, past.x), axis=1).max(axis=1)
        w, sure = np.zeros(paths), np.zeros(paths, dtype=bool)
        for _ in range(_TRIES if self.radius != "practical" else 0):
            share = self._share(past, w)
            sure = (reach * total < share * w) & (w < 1)
            w = np.where(sure | (w >= 1), w, _LONGER * reach * total / share)
            if np.all(sure | (w >= 1)):
                break
        w = np.where(sure, w, 0.0)
        if self.radius == "observable":
            return past.root, total / self._share(past, w), sure
        norm = root_of(gram(past.x, past.size <= 1 - w[:, None], penalty), penalty)
        squares = gram(past.x, np.minimum(1, past.size + w[:, None]) ** 2, penalty / 4)
        spread = norm.mT @ squares @ norm
        largest = np.linalg.eigvalsh(spread)[:, -1]
        log_det = np.linalg.slogdet(squares * (4 / penalty))[1]
        noise = np.sqrt(largest * (self._log(events) + log_det))
        return norm, noise + past.shift + _length(past.rest, norm), sure

    def _share(self, past: _Past, w: Array) -> Array:
        """Return κ̂(w)."""
        penalty = self._penalty(past.x.shape[1])
        inside = gram(past.x, past.size <= 1 - w[:, None], penalty)
        least = np.linalg.eigvalsh(past.root.mT @ inside @ past.root)[:, 0]
        return np.asarray(np.maximum(least, 1e-12))

    def _log(self, events: int) -> float:
        return 2 * math.log(events / self.delta)

    @property
    def _kappa(self) -> float:
        return self.mass if self.radius == "theorem" and self.mass else 1.0

    @property
    def _least_tau(self) -> float:
        return 0.0 if self.radius == "practical" else 8 * self.norm_bound

    def _penalty(self, dim: int) -> float:
        if self.ridge is not None:
            return self.ridge
        if self.radius == "theorem":
            return self._proved_penalty(dim)
        return 1.0 if self.radius == "practical" else 64 * math.log(2 / self.delta)

    def _proved_penalty(self, dim: int) -> float:
        horizon = self.horizon or 1
        return huber_ridge(dim=dim, horizon=horizon, delta=self.delta / 2, mass=self._kappa)


def _length(vector: Array, root: Array) -> Array:
    """Return ‖v‖ in the norm of SSᵀ."""
    return np.asarray(np.linalg.norm(np.vecmat(vector, root), axis=1))
