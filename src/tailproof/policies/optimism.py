"""Optimism on a ridge estimate: the code that OFUL and its relatives share."""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from tailproof.bisection import bisect
from tailproof.policies.base import Array, Index, Indexed, picked
from tailproof.policies.state.regression import Ridge

__all__ = ["Optimism", "optimistic_direction"]


class Optimism(Indexed[Ridge]):
    """Pull argmax_x xᵀθ̂ + bonus·β ‖x‖_{V⁻¹}; a subclass defines the radius β."""

    ridge: float = 1.0
    bonus: float = 1.0

    @abstractmethod
    def radius(self, state: Ridge) -> Array:
        """Return the radius β of the confidence set in each path."""

    def estimate(self, state: Ridge) -> Array:
        """Return the ridge estimate of θ."""
        return state.theta

    def propose(self, state: Ridge, rng: np.random.Generator) -> Array:
        """Return the vector of the unit ball with the largest upper confidence bound."""
        fallback = rng.standard_normal((state.paths, state.dim))
        radius = self.bonus * self.radius(state)
        return optimistic_direction(state.theta, state.root, radius, fallback)

    def _init(self, paths: int, arms: int, dim: int) -> Ridge:
        return Ridge.start(paths, arms, dim, self.ridge)

    def _index(self, state: Ridge, arms: Array) -> Array:
        mean, width = state.predict(arms)
        return mean + self.bonus * self.radius(state)[:, None] * width

    def _learn(self, state: Ridge, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(picked(arms, chosen), rewards)


def optimistic_direction(theta: Array, root: Array, radius: Array, fallback: Array) -> Array:
    """Return the unit vectors x that maximise xᵀθ̂ + β ‖x‖_{V⁻¹}, for all paths at once.

    V⁻¹ = SSᵀ with S = `root`. The maximum is the norm of the longest θ with ‖θ − θ̂‖_V ≤ β, and x is
    its direction. In the eigenbasis of V, with eigenvalues v, θ_i − θ̂_i = θ̂_i/(μ v_i − 1), where
    μ > 1/min v is the only root of Σ v_i (θ_i − θ̂_i)² = β². If θ̂ is orthogonal to the eigenvector
    of min v and there is no root, θ also moves along it until the sum is β², towards `fallback`.

    >>> theta, root, fallback = np.array([[0.3, 0.4]]), np.eye(2)[None], np.array([[1.0, 0.0]])
    >>> optimistic_direction(theta, root, np.array([2.0]), fallback).round(9).tolist()
    [[0.6, 0.8]]

    Source: the maximisation of OFUL (Abbasi-Yadkori et al. 2011, figure 1) over the unit ball, a
    trust-region problem. Differences: a path whose estimate is not finite plays `fallback`.
    """
    basis, size, _ = np.linalg.svd(root)
    q, basis = size[:, ::-1] ** 2, basis[:, :, ::-1]  # q = 1/v, the least known direction last
    ratio = q[:, -1:] / np.maximum(q, 1e-300)
    lost = np.flatnonzero(~np.isfinite(theta).all(axis=1))
    sound = theta.copy()
    sound[lost] = 0.0
    turned: Array = np.asarray(np.vecmat(sound, basis))
    beta = radius[:, None]

    def step(log_s: Array) -> Array:  # μ = (1 + s) max q
        s = np.exp(log_s)
        return np.asarray(turned / ((ratio - 1) + s * ratio))

    def short(log_s: Array) -> NDArray[np.bool_]:
        return np.asarray(~(np.sum(step(log_s) ** 2 / q, axis=1, keepdims=True) > beta**2))

    start = np.full_like(beta, -32.0), np.full_like(beta, 700.0)
    _, high = bisect(short, *start, halvings=64)
    move = step(high)
    missing = beta**2 - np.sum(move**2 / q, axis=1, keepdims=True)
    side = np.copysign(1.0, np.vecdot(basis[:, :, -1], fallback))
    fill = side * np.sqrt(np.maximum(missing, 0) * q[:, -1:])[:, 0]
    move[:, -1] += np.where(high[:, 0] < -31, fill, 0.0)
    target = np.matvec(basis, turned + move)
    target[lost] = fallback[lost]
    length = np.linalg.norm(target, axis=1, keepdims=True)
    target = np.where(length > 0, target, fallback)
    return np.asarray(target / np.linalg.norm(target, axis=1, keepdims=True))
