"""Huber regression over all pulls, refitted as their number grows."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.bisection import bisect
from tailproof.policies.state.base import ROOM, Array, Counts, Finite, FiniteBuffer, Rule
from tailproof.policies.state.regression import Design

__all__ = ["HuberFit", "gram", "minimise", "root_of"]

GROWTH = 1 / 8
"""Refit when the number of pulls, or det V, has grown by this fraction."""
_STEPS, _HALVINGS, _TOLERANCE = 25, 30, 1e-9


@dataclass(eq=False)
class HuberFit(Design):
    """All pulls, and the result of the last fit.

    Attributes
    ----------
    contexts, rewards : arrays of shape (paths, d, room) and (paths, room)
        Buffers padded with zeros; a pull that is left out has x = 0.
    tau, certified : arrays of shape (paths,)
        Where the score is clipped, 0 during the pilot; whether the confidence set is proved.
    theta, norm, radius : arrays of shape (paths, d), (paths, d, d) and (paths,)
        θ̂, S with N⁻¹ = SSᵀ, and β: ‖θ − θ̂‖_N ≤ β is the confidence set, β = inf before a fit.
    fitted, fitted_log_det : arrays of shape (paths,)
        The number of pulls in the last fit, and their ln det.
    """

    contexts: Annotated[Array, Rule(("dim", ROOM), finite=True, buffer=2)]
    rewards: FiniteBuffer
    tau: Finite
    theta: Annotated[Array, Rule(("dim",), finite=True)]
    norm: Finite
    radius: Annotated[Array, Rule(blank=math.inf)]
    certified: NDArray[np.bool_]
    fitted: Counts
    fitted_log_det: Finite

    def append(self, x: Array, y: Array) -> NDArray[np.bool_]:
        """Store one pull of each path, and return which paths are due for a new fit."""
        self.make_room()
        path = np.arange(self.paths)
        self.contexts[path, :, self.decisions], self.rewards[path, self.decisions] = x, y
        self.update(x, np.empty((self.paths, 0)))
        longer = self.decisions + 1 >= self.fitted * (1 + GROWTH)
        wider = self.log_det >= self.fitted_log_det + math.log1p(GROWTH)
        return np.asarray(longer | wider)


def gram(x: Array, weights: NDArray[Any], penalty: float = 0.0) -> Array:
    """Return λI + Σ w_s x_s x_sᵀ, of shape (paths, d, d), for x of shape (paths, d, n)."""
    weighted: Array = np.einsum("pin,pjn->pij", x * weights[:, None], x)
    return weighted + penalty * np.eye(x.shape[1])


def root_of(matrix: Array, least: float) -> Array:
    """Return S with SSᵀ = M⁻¹, for symmetric M with M ⪰ `least`·I."""
    strength, basis = np.linalg.eigh(matrix)
    return np.asarray(basis / np.sqrt(np.maximum(strength, least))[:, None, :])


def minimise(x: Array, y: Array, theta: Array, root: Array, penalty: float) -> Array:
    """Return θ̂ = argmin λ/2 ‖θ‖² + Σ_s h(y_s − x_sᵀθ), h' = ψ the identity clipped at ±1.

    x has shape (paths, d, n), y (paths, n), and θ is the start. Newton steps θ ← θ + up, with
    p = Ŵ⁻¹(Σ ψ(r_s) x_s − λθ) and Ŵ = λI + Σ_{|r_s|≤1} x_s x_sᵀ, have u = 1 unless the loss rises
    before it; then a bisection of its slope finds the u of the least loss. The loss falls at least
    as in a gradient step, so the argmin is found from any start. A path is done when ‖∇‖ ≤ 1e-9 in
    the norm of SSᵀ, S = `root`, or after 25 steps.

    Source: Newton's method for Huber's loss with a line search, after Madsen and Nielsen 1990, from
    memory. Differences: the penalty λ, and u ≤ 1.
    """
    theta, todo = theta.copy(), np.arange(len(theta))
    for _ in range(_STEPS):
        at, now = x[todo], theta[todo]
        r = y[todo] - np.einsum("pdn,pd->pn", at, now)
        descent = np.einsum("pdn,pn->pd", at, np.clip(r, -1, 1)) - penalty * now
        far = np.linalg.norm(np.vecmat(descent, root[todo]), axis=1) > _TOLERANCE
        if not far.any():
            break
        todo, at, now, r, descent = todo[far], at[far], now[far], r[far], descent[far]
        inner = root_of(gram(at, np.abs(r) <= 1, penalty), penalty)
        step = np.matvec(inner, np.vecmat(descent, inner))
        along = np.einsum("pdn,pd->pn", at, step)
        slope, bend = -np.vecdot(descent, step), penalty * np.vecdot(step, step)
        theta[todo] = now + _length(r, along, slope, bend)[:, None] * step
    return theta


def _length(r: Array, along: Array, slope: Array, bend: Array) -> Array:
    """Return the u ≤ 1 of the least loss, whose slope at u = 0 is `slope`.

    slope(u) = slope + u·bend + Σ (ψ(r) − ψ(r − u·along))·along
    """

    def rises(u: Array) -> NDArray[np.bool_]:
        change = np.clip(r, -1, 1) - np.clip(r - u[:, None] * along, -1, 1)
        return np.asarray(slope + u * bend + np.einsum("pn,pn->p", change, along) > 0)

    high = np.ones(len(r))
    beyond = rises(high)
    if not beyond.any():
        return high
    steepest = bend + np.einsum("pn,pn->p", along, along)
    low = np.minimum(-slope / steepest, 1)  # the slope cannot change faster
    low, _ = bisect(rises, low, high, halvings=_HALVINGS)
    return np.where(beyond, low, 1.0)
