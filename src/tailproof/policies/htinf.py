"""HTINF: Tsallis entropy for heavy-tailed losses, chosen by chance or by an adversary."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import MomentOrder, Positive
from tailproof.policies.base import Array, Index, KArmed
from tailproof.policies.state.base import Rule, State

__all__ = ["HTINF"]


@dataclass(eq=False)
class _Losses(State):
    """The estimated sum of losses of each arm, of shape (paths, K)."""

    losses: Annotated[Array, Rule(("arms",), finite=True)]


@dataclass(frozen=True, kw_only=True)
class HTINF(KArmed[_Losses]):
    """Draw the arm from weights that follow the regularised leader, and skip large losses.

    With α = 1 + ε, σ = `moment_bound`^{1/α} and 1/η_t = σ t^{1/α}

    x_t = argmin_x η_t ⟨L̂, x⟩ − α Σ_a x_a^{1/α} over the weights of K arms, a_t ~ x_t,
    L̂_{a_t} += ℓ/x_{t,a_t} if |ℓ| ≤ Θ x_{t,a_t}^{1/α}/η_t, else the loss ℓ = −reward is skipped,
    Θ = min{1 − 2^{−(α−1)/(2α−1)}, (2 − 2/α)^{1/(2−α)}}

    Arms need not have a law: the losses may be set in advance by an adversary. For arms with a law
    the regret is logarithmic at the same time ("best of both worlds"). With ε = 1 and σ = 1, the
    default, it is OptTINF, which has a sublinear but larger regret for any ε and σ. The guarantee
    needs a best arm with E[ℓ 1{|ℓ| > M}] ≥ 0 for every M. Infinite rewards are skipped, so that an
    arm that always fails would never be punished: give a finite loss.

    Parameters
    ----------
    epsilon, moment_bound : float
        ε in (0, 1], and a bound on E|reward|^{1+ε}.

    Examples
    --------
    >>> policy, rng = HTINF(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(2000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] - 1 + rng.standard_t(2, (1, 1)))
    >>> bool(policy.propensities(state, arms)[0, 1] > 0.8)
    True

    Source: Huang, Dai and Huang 2022, algorithm 1, from memory and public code, which agree.
    Differences: none known; x_t is solved to rounding. AdaTINF of the same paper is left out, see
    the page on algorithms.

    Kind: K arms, heavy tails.
    Needs: ε, raw moment of the losses; K arms, also chosen by an adversary.
    Regret: Õ(K^{ε/(1+ε)} T^{1/(1+ε)}) against an adversary, logarithmic with a law.
    Learns without a mean: no.
    """

    epsilon: MomentOrder = 1.0
    moment_bound: Positive = 1.0

    @property
    def _weighs(self) -> bool:
        return True

    def _init(self, paths: int, arms: int, dim: int) -> _Losses:
        return _Losses.start(paths, arms, dim)

    def _inverse_rate(self, state: _Losses) -> Array:
        """Return 1/η_t, of shape (paths,)."""
        return np.asarray((self.moment_bound * (state.decisions + 1)) ** (1 / (1 + self.epsilon)))

    def _propensities(self, state: _Losses, arms: Array) -> Array:
        scaled = state.losses / self._inverse_rate(state)[:, None]
        return _weights(scaled, 1 + self.epsilon)

    def _choose(self, state: _Losses, arms: Array, rng: np.random.Generator) -> Index:
        draw = rng.random((state.paths, 1))
        reached = self._propensities(state, arms).cumsum(axis=1)
        return np.asarray((reached[:, :-1] <= draw * reached[:, -1:]).sum(axis=1))

    def _learn_weighted(
        self, state: _Losses, arms: Array, chosen: Index, rewards: Array, propensity: Array | None
    ) -> None:
        x, loss, alpha = np.asarray(propensity), -rewards[:, 0], 1 + self.epsilon
        kept = np.abs(loss) <= _share(alpha) * x ** (1 / alpha) * self._inverse_rate(state)
        state.losses[np.arange(state.paths), chosen] += np.where(kept, loss, 0.0) / x

    def _learn(self, state: _Losses, arms: Array, chosen: Index, rewards: Array) -> None:
        self._learn_weighted(
            state, arms, chosen, rewards, self._own_propensity(state, arms, chosen)
        )


def _share(alpha: float) -> float:
    """Return Θ; the second term tends to e^{−½} at α = 2, where the first is smaller."""
    first = 1 - 2 ** (-(alpha - 1) / (2 * alpha - 1))
    return first if alpha == 2 else min(first, (2 - 2 / alpha) ** (1 / (2 - alpha)))


def _weights(scaled: Array, alpha: float) -> Array:
    """Return argmin_x ⟨scaled, x⟩ − α Σ_a x_a^{1/α} over weights x, of shape (paths, K).

    x_a = (d_a + y)^{−p}, p = α/(α − 1), d_a the distance to the smallest. y ≥ 1 is the root of
    h(y) = (Σ x_a)^{−1/p} = 1, a concave function, to which Newton's method climbs from 1.

    >>> _weights(np.array([[0.0, 3.0]]), 2.0).round(4).tolist()
    [[0.9385, 0.0615]]
    """
    p = alpha / (alpha - 1)
    distance = scaled - scaled.min(axis=1, keepdims=True)
    y = np.ones((len(scaled), 1))
    for _ in range(60):  # about five are needed
        x = (distance + y) ** -p
        total = x.sum(axis=1, keepdims=True)
        h = total ** (-1 / p)
        slope = (x / (distance + y)).sum(axis=1, keepdims=True) * h / total
        step = np.maximum((1 - h) / slope, 0.0)
        y = y + step
        if np.all(step <= 1e-15 * y):
            break
    x = (distance + y) ** -p
    return np.asarray(x / x.sum(axis=1, keepdims=True))
