"""Regressions of capped rewards on features, one for each arm."""

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from tailproof.chunking import chunks
from tailproof.policies.state.base import Array, Index, Rule
from tailproof.policies.state.sales import SalesHistogram

__all__ = ["KEPT", "LENT", "RevenueRegression"]

KEPT = 128
"""The largest purchases that are kept with their features, so that they can be cut anew. Of 12 800
purchases they are the hundredth that a cap at 99 % cuts, and by then the cap hardly changes."""
LENT = 8
"""The purchases of the pool that each regression is lent, so that it can be solved."""
_RIDGE = 1e-6
"""What is added to the correlations of features, so that they can be inverted."""
_GROWTH = 1.01
"""Regressions are solved when there are this many times the visitors."""


@dataclass(eq=False)
class RevenueRegression(SalesHistogram):
    """The sums of a regression for each arm, and its solution with a sandwich error.

    θ_a = G⁻¹b, C_a = G⁻¹MG⁻¹, G = Σ x xᵀ, b = Σ y x, M = Σ y² x xᵀ, y the reward within the range,
    where G, b and M are lent the share LENT/(all purchases) of their sums over all arms. Only
    visitors who may buy have noise, and theirs is heavy-tailed, so its variance is not one number;
    M sees y² instead of squared residuals, which differ little when few buy.

    Attributes
    ----------
    gram, pay, meat : arrays of shape (paths, K, D, D), (paths, K, D), (paths, K, D, D)
        Σ x xᵀ of all visitors, b and M of the purchases that are not kept.
    kept_x, kept_y, kept_arm : arrays of shape (paths, KEPT, D), (paths, KEPT), (paths, KEPT)
        The largest purchases, in units of the first; 0 and −1 where unused.
    theta, cover, pooled_theta, pooled_cover : arrays
        θ_a and C_a, and the same for an arm that nobody visited.
    solve_at : array of shape (paths,)
        The number of visitors at which the regressions are solved.
    """

    gram: Annotated[Array, Rule(("arms", "dim", "dim"), finite=True)]
    pay: Annotated[Array, Rule(("arms", "dim"), finite=True)]
    meat: Annotated[Array, Rule(("arms", "dim", "dim"), finite=True)]
    kept_x: Annotated[Array, Rule((KEPT, "dim"), finite=True)]
    kept_y: Annotated[Array, Rule((KEPT,), finite=True)]
    kept_arm: Annotated[Index, Rule((KEPT,), least=-1, names_arms=True, blank=-1)]
    theta: Annotated[Array, Rule(("arms", "dim"), finite=True)]
    cover: Annotated[Array, Rule(("arms", "dim", "dim"), finite=True)]
    pooled_theta: Annotated[Array, Rule(("dim",), finite=True)]
    pooled_cover: Annotated[Array, Rule(("dim", "dim"), finite=True)]
    solve_at: Annotated[Index, Rule(least=1, blank=1)]

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **arrays: Any) -> Self:
        """Return the regressions before any visitor; features get one more coordinate, 1."""
        d = dim + 1
        shapes = {
            "gram": (arms, d, d),
            "pay": (arms, d),
            "meat": (arms, d, d),
            "kept_x": (KEPT, d),
            "theta": (arms, d),
            "cover": (arms, d, d),
            "pooled_theta": (d,),
            "pooled_cover": (d, d),
        }
        blank = {name: np.zeros((paths, *shape)) for name, shape in shapes.items()}
        return super().start(paths, arms, dim, **blank, **arrays)

    @property
    def coefficients(self) -> Array:
        """θ_a in the unit of the rewards, the constant last, of shape (paths, K, d + 1)."""
        theta = np.where(self.visitors[..., None] > 0, self.theta, self.pooled_theta[:, None])
        return theta * self.unit[:, None, None]

    def predict(self, arms: Array) -> tuple[Array, Array]:
        """Return xᵀθ_a and √(xᵀC_a x) in units of the first purchase: (paths, K) each."""
        x, theta, cover = lifted(arms), self.theta, self.cover
        new = self.visitors == 0
        if np.count_nonzero(new):
            theta = np.where(new[..., None], self.pooled_theta[:, None], theta)
            cover = np.where(new[..., None, None], self.pooled_cover[:, None], cover)
        mean = np.vecdot(theta, x)
        squared = np.vecdot(np.matvec(cover, x), x)
        return mean, np.sqrt(np.maximum(squared, 0))

    def learn(self, x: Array, chosen: Index, rewards: Array, share: float) -> None:
        """Add a visitor with features x, of shape (paths, d), for the chosen arm of each path."""
        path, x = np.arange(self.paths), lifted(x)
        again = self.update(chosen, rewards, share)
        self.gram[path, chosen] += x[:, :, None] * x[:, None, :]
        rows = np.flatnonzero(rewards)
        if len(rows):
            self._keep(rows, x[rows], chosen[rows], self.relative(rows, rewards[rows]))
        late = self.visitors.sum(axis=1) >= self.solve_at
        late[again] = True
        late |= self.visitors[path, chosen] == 1
        due = np.flatnonzero(late & self.bought.any(axis=1))
        d = x.shape[1]
        for part in chunks(len(due), KEPT * (d * d + self.arms) + 6 * self.arms * d * d):
            self._solve(due[part])

    def _keep(self, rows: Index, x: Array, arm: Index, y: Array) -> None:
        """Keep the larger of the smallest kept and the new purchase; add the other to sums."""
        place = np.abs(self.kept_y[rows]).argmin(axis=1)
        old_x, old_y, old_arm = (
            kept[rows, place] for kept in (self.kept_x, self.kept_y, self.kept_arm)
        )
        larger = np.abs(y) > np.abs(old_y)
        at = rows[larger], place[larger]
        self.kept_x[at], self.kept_y[at], self.kept_arm[at] = x[larger], y[larger], arm[larger]
        x, y = np.where(larger[:, None], old_x, x), np.where(larger, old_y, y)
        y, arm = np.clip(y, self.low[rows], self.high[rows]), np.where(larger, old_arm, arm)
        self.pay[rows, arm] += y[:, None] * x
        self.meat[rows, arm] += np.square(y)[:, None, None] * x[:, :, None] * x[:, None, :]

    def _solve(self, rows: Index) -> None:
        """Solve the regressions of some paths, also for an arm that nobody visited."""
        visitors, bought = self.visitors[rows].sum(axis=1), self.bought[rows].sum(axis=1)
        self.solve_at[rows] = np.maximum((_GROWTH * visitors).astype(np.int64), visitors + 1)
        x, arm = self.kept_x[rows], self.kept_arm[rows]
        y = np.clip(self.kept_y[rows], self.low[rows, None], self.high[rows, None])
        by_arm = (arm[:, None, :] == np.arange(self.arms)[:, None]) * y[:, None, :]
        d = x.shape[2]
        pay = self.pay[rows] + by_arm @ x
        squares = (x[..., :, None] * x[..., None, :]).reshape(len(rows), KEPT, d * d)
        meat = self.meat[rows] + ((by_arm * by_arm) @ squares).reshape(*by_arm.shape[:2], d, d)
        lent = LENT / bought
        gram, pay, meat = (_lend(sums, lent) for sums in (self.gram[rows], pay, meat))
        size = np.sqrt(np.einsum("pkii->pki", gram))
        size = np.where(size > 0, size, 1.0)
        gram = gram / size[..., :, None] / size[..., None, :] + _RIDGE * np.eye(d)
        inverse = np.linalg.inv(gram) / size[..., :, None] / size[..., None, :]
        theta = np.matvec(inverse, pay)
        cover = inverse @ meat @ inverse
        self.theta[rows], self.pooled_theta[rows] = theta[:, :-1], theta[:, -1]
        doubt = self.doubt[rows][..., None, None]
        self.cover[rows], self.pooled_cover[rows] = doubt * cover[:, :-1], cover[:, -1]


def lifted(x: Array) -> Array:
    """Return vectors with the constant 1 after them."""
    return np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)


def _lend(sums: Array, share: Array) -> Array:
    """Return the sums of each arm, and of a new arm, plus a share of the sum over all arms."""
    pool = sums.sum(axis=1, keepdims=True) * share.reshape(-1, *(1,) * (sums.ndim - 1))
    return np.concatenate([sums + pool, pool], axis=1)
