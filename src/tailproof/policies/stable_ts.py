"""Thompson sampling for rewards with symmetric stable noise."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np

from tailproof.checks import Positive, Range
from tailproof.noise import Normal, Stable
from tailproof.policies.base import Array, Index, KArmed, pick_largest
from tailproof.policies.state.base import Rule
from tailproof.policies.state.counts import Counted

__all__ = ["StableTS"]

_NODES, _REACH = 513, 5.0
"""The posterior lives on this many points, up to this many prior scales on either side."""


@dataclass(eq=False)
class _Posterior(Counted):
    """The log-likelihood of the location of every arm, at the points of a grid."""

    logs: Annotated[Array, Rule(("arms", _NODES), finite=True)]


@dataclass(frozen=True, kw_only=True)
class StableTS(KArmed[_Posterior]):
    """Draw every arm's location from its posterior under stable noise, and pull the largest.

    μ̃_a ~ p(μ | X_1, …, X_n) ∝ N(μ; prior_mean, prior_scale²) Π_i f((X_i − μ)/noise_scale),
    a_t = argmax_a μ̃_a, where f is the density with characteristic function exp(−|t|^α), α = index

    It knows the law of the noise exactly, which may hold for sums of very many small effects; with
    the wrong α it is still robust, as f has heavy tails for α < 2. The location must lie within 5
    prior scales of the prior mean.

    Parameters
    ----------
    index, noise_scale : float
        α in (0, 2], where 2 is normal noise of scale √2 `noise_scale`; and the scale.
    prior_mean, prior_scale : float
        The normal prior of every arm's location.

    Examples
    --------
    >>> policy, rng = StableTS(index=1.0), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(200):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_cauchy((1, 1)))
    >>> int(state.counts[0].argmax())
    1

    A reward adds its log-density to 513 points; no reward is kept.

    Source: Dubey and Pentland 2019 (α-TS). Differences: the source draws from the posterior by
    Gibbs sampling, with a hidden variance for every reward; here the same posterior is computed on
    a grid and drawn from exactly, up to its steps of 0.02 prior scales. Their second algorithm,
    which truncates rewards for the sake of its proof, is left out.

    Kind: K arms, heavy tails.
    Needs: α, scale, prior.
    Regret: polynomial in T, in Bayes's sense, for α > 1.
    Learns without a mean: yes, by its likelihood; no bound.
    """

    index: Annotated[float, Range(at_least=0.1, at_most=2)] = 1.0
    noise_scale: Positive = 1.0
    prior_mean: Annotated[float, Range()] = 0.0
    prior_scale: Positive = 1.0
    _grid: ClassVar[Array] = np.linspace(-_REACH, _REACH, _NODES)

    def _init(self, paths: int, arms: int, dim: int) -> _Posterior:
        return _Posterior.start(paths, arms, dim)

    def _choose(self, state: _Posterior, arms: Array, rng: np.random.Generator) -> Index:
        logs = state.logs - self._grid**2 / 2
        weight = np.exp(logs - logs.max(axis=2, keepdims=True))
        reached = weight.cumsum(axis=2)
        draw = rng.random((*reached.shape[:2], 1)) * reached[:, :, -1:]
        place = np.minimum((reached < draw).sum(axis=2), _NODES - 1)
        step = self._grid[1] - self._grid[0]
        return pick_largest(self._grid[place] + step * (rng.random(place.shape) - 0.5), rng)

    def _learn(self, state: _Posterior, arms: Array, chosen: Index, rewards: Array) -> None:
        location = self.prior_mean + self.prior_scale * self._grid
        at = np.arange(state.paths), chosen
        state.counts[at] += 1
        away = np.abs(rewards - location) / self.noise_scale
        state.logs[at] += _log_density(self.index, away)


def _log_density(index: float, x: Array) -> Array:
    """Return ln f at x ≥ 0, from a table in asinh(x); beyond it ln f is a line in ln x.

    >>> _log_density(1.0, np.array([0.0, 1.0, 1e9])).round(3).tolist()
    [-1.145, -1.838, -42.591]
    """
    place, values = _table(index)
    where: Array = np.arcsinh(np.minimum(x, 1e100))
    slope = (values[-1] - values[-2]) / (place[-1] - place[-2])
    beyond = values[-1] + slope * (where - place[-1])
    return np.where(where > place[-1], beyond, np.interp(where, place, values))


@lru_cache(maxsize=8)
def _table(index: float) -> tuple[Array, Array]:
    law = Normal(np.sqrt(2.0)) if index == 2 else Stable(index)
    place = np.linspace(0, 6.0 if index == 2 else 20.0, 4001)
    density = law.pdf(np.sinh(place))
    return place, np.log(np.maximum(density, 1e-300))
