"""SupLinRel: layered elimination that predicts from well-measured directions only."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.checks import Fraction, Horizon, NonNegative
from tailproof.policies.base import Array, Index
from tailproof.policies.layered import LayeredRegression, Layers

__all__ = ["SupLinRel"]


@dataclass(frozen=True, kw_only=True)
class SupLinRel(LayeredRegression):
    """Eliminate arms level by level; predict from directions measured at least once.

    Σ x xᵀ = Uᵀdiag(l)U,  x̃ = Ux, over the directions with l_j ≥ 1:
    r̂_a = Σ_j x̃_{a,j} (UΣ y x)_j / l_j,
    w_a = bonus·(√(ln(2TK/δ)) √(Σ_j x̃²_{a,j}/l_j) + ‖x̃_a over the other directions‖)

    Parameters
    ----------
    horizon, delta : int and float
        T, in pulls, and δ, the probability that the guarantee fails.
    layered : bool
        Whether to eliminate level by level.
    bonus : float
        Multiplies the width: 1 is the published algorithm, for rewards in [0, 1].

    Examples
    --------
    >>> SupLinRel(horizon=10_000).levels
    9

    Source: Auer 2002, algorithms LinRel and SupLinRel, from memory.
    Differences: the multiplier `bonus`; ⌊ln T⌋ levels; the widest arm is explored.

    Kind: linear.
    Needs: T, δ.
    Regret: Õ(√(dT)).
    Learns without a mean: no.
    """

    horizon: Horizon
    delta: Fraction = 0.01
    layered: bool = True
    bonus: NonNegative = 1.0

    def _multiplier(self, state: Layers) -> Array:
        load = math.log(2 * self.horizon * state.arms / self.delta)
        return np.full(state.paths, math.sqrt(load))

    def _predict(self, state: Layers, arms: Array, level: int, paths: Index) -> tuple[Array, Array]:
        # The state holds S with (I + Σ x xᵀ)⁻¹ = SSᵀ, which has the same directions.
        block = state.blocks[paths, level]
        directions, size, _ = np.linalg.svd(block[..., :-1])
        strength = 1 / size**2 - 1
        seen = strength >= 1 - 1e-9
        weight = np.where(seen, 1 / np.where(seen, strength, 1.0), 0.0)
        turned = arms @ directions
        moment = np.vecmat(block[..., -1], directions) / size**2
        value = np.matvec(turned, weight * moment)
        spread = np.sqrt(np.matvec(turned**2, weight))
        unknown = np.sqrt(np.matvec(turned**2, (~seen).astype(np.float64)))
        return value, self.bonus * (self._multiplier(state)[paths, None] * spread + unknown)
