"""The code that bandits with Huber regression share."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

import numpy as np

from tailproof.checks import Count, Fraction, MomentOrder, NonNegative, Penalty, Positive
from tailproof.policies.base import Array, Index, Indexed, picked
from tailproof.policies.state.base import Rule
from tailproof.policies.state.regression import Design

__all__ = ["Huber", "HuberState", "project"]


@dataclass(eq=False)
class HuberState(Design):
    """The design V = λI + Σ x xᵀ/(ασ²) and the estimate θ, of shape (paths, d)."""

    theta: Annotated[Array, Rule(("dim",))]


H = TypeVar("H", bound=HuberState)


@dataclass(frozen=True, kw_only=True)
class Huber(Indexed[H]):
    """Optimism on a Huber regression; a subclass defines the regression and the radius β."""

    decisions: Count
    epsilon: MomentOrder
    moment_bound: NonNegative
    delta: Fraction = 0.01
    norm_bound: Positive = 1.0
    ridge: Penalty | None = None
    bonus: NonNegative = 1.0
    alpha: ClassVar[float] = 1.0

    @abstractmethod
    def radius(self, state: H) -> Array:
        """Return the radius β of the confidence set in each path."""

    def estimate(self, state: H) -> Array:
        """Return the Huber estimate of θ."""
        return state.theta

    @property
    def _log(self) -> float:
        return math.log(2 * self.decisions**2 / self.delta)

    @property
    def _power(self) -> float:
        """g, the exponent of t in the source."""
        return (1 - self.epsilon) / (2 * (1 + self.epsilon))

    def _penalty(self, dim: int) -> float:
        return float(dim) if self.ridge is None else self.ridge

    def _tau0(self, dim: int) -> float:
        # κ = d ln(1 + T/(dλα σ_min²)) with σ_min = 1/√T
        kappa = dim * math.log1p(self.decisions**2 / (dim * self._penalty(dim) * self.alpha))
        stretch = math.pow(math.log(3 * self.decisions), self._power)
        return math.sqrt(2 * kappa) * stretch / math.pow(self._log, 1 / (1 + self.epsilon))

    def _level(self, dim: int, t: Index) -> Array:
        """Return τ₀ t^g in each path."""
        return self._tau0(dim) * np.power(t, self._power, dtype=np.float64)

    def _index(self, state: H, arms: Array) -> Array:
        mean: Array = np.matvec(arms, state.theta)
        return mean + self.bonus * self.radius(state)[:, None] * state.widths(arms)

    def _learn(self, state: H, arms: Array, chosen: Index, rewards: Array) -> None:
        x = picked(arms, chosen)
        width = state.widths(x[:, None])[:, 0]
        nu = self.moment_bound ** (1 / (1 + self.epsilon))
        floor = max(nu, 1 / math.sqrt(self.decisions))
        sigma = np.maximum(self._scale(state, width), floor)
        w = width / (sigma * math.sqrt(self.alpha))
        level = self._level(state.dim, state.decisions + 1)
        tau = np.zeros(state.paths)  # stays 0 for x = 0, which carries no information
        np.divide(level * np.hypot(1, w), w, out=tau, where=w > 0)
        x = x / sigma[:, None]
        state.update(x / math.sqrt(self.alpha), np.empty((state.paths, 0)))
        self._regress(state, x, rewards[:, 0] / sigma, tau)

    @abstractmethod
    def _scale(self, state: H, width: Array) -> Array:
        """Return the σ that an observation of width ‖x‖_{V⁻¹} needs."""

    @abstractmethod
    def _regress(self, state: H, x: Array, y: Array, tau: Array) -> None:
        """Update θ, given x/σ, y/σ and τ of a new observation that is in V already."""


def project(theta: Array, root: Array, radius: float) -> Array:
    """Return the points of the ball ‖θ‖ ≤ `radius` that are nearest in the norm of V.

    V⁻¹ = SSᵀ with S = `root`; θ = (V + μI)⁻¹ V θ̃ with μ ≥ 0 such that ‖θ‖ = `radius`, by Newton's
    method on 1/‖θ‖, which is concave in μ, so that it never overshoots from μ = 0.

    >>> project(np.array([[3.0, 4.0]]), np.eye(2)[None], 1.0).round(12).tolist()
    [[0.6, 0.8]]
    """
    outside = np.flatnonzero(np.linalg.norm(theta, axis=1) > radius)
    if not len(outside):
        return theta
    basis, size, _ = np.linalg.svd(root[outside])
    q = size**2
    c = np.vecmat(theta[outside], basis)
    mu = np.zeros((len(outside), 1))
    for _ in range(100):
        shrunk = c / (1 + mu * q)
        length = np.linalg.norm(shrunk, axis=1, keepdims=True)
        far = length > radius * (1 + 1e-12)
        if not far.any():
            break
        slope = np.sum(shrunk**2 * q / (1 + mu * q), axis=1, keepdims=True)
        mu = np.where(far, mu + (length / radius - 1) * length**2 / slope, mu)
    result = theta.copy()
    result[outside] = np.matvec(basis, shrunk)
    return result
