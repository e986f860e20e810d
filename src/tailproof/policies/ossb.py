"""OSSB: as much exploration as the lower bound asks for, in the proportions that it asks for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import NonNegative, Penalty, Positive
from tailproof.policies.base import Array, Index, Policy, pick_largest, picked
from tailproof.policies.spanning import Basis, spanning_basis
from tailproof.policies.state.base import ArmCounts, ArmValues, Counts
from tailproof.policies.state.regression import Ridge
from tailproof.stats.designs import exploration_rates

__all__ = ["OSSB"]

_GROWTH = 16
"""The rates are solved again when t, or the number of explorations, grew by a sixteenth."""


@dataclass(eq=False)
class _Rates(Ridge):
    """A regression, and how often each arm should be pulled.

    Attributes
    ----------
    basis : array of shape (paths, d)
        Arms that span the space, −1 before the first decision.
    counts, rates : arrays of shape (paths, K)
        Pulls N_a, and c_a of the last solution.
    explored, solved, solved_explored : arrays of shape (paths,)
        The number of explorations; t and that number at the last solution.
    """

    fixed_arms = True
    basis: Basis
    counts: ArmCounts
    rates: ArmValues
    explored: Counts
    solved: Counts
    solved_explored: Counts


@dataclass(frozen=True, kw_only=True)
class OSSB(Policy[_Rates]):
    """Explore as the lower bound on regret prescribes if θ̂ were θ, and else pull the best arm.

    With c = argmin Σ_a c_a Δ̂_a so that ‖x_a − x̂*‖²_{A(c)⁻¹} ≤ Δ̂_a²/(2σ²) for every arm a ≠ x̂*,

    - every N_a ≥ (1 + γ) c_a ln t: pull x̂* = argmax xᵀθ̂;
    - else, min_a N_a ≤ ε s after s explorations: pull the arm with the fewest pulls;
    - else: pull argmin_a N_a/c_a.

    Optimism never pulls an arm that it believes to be bad, whatever that arm would tell. OSSB does,
    and as T → ∞ its regret is (1 + γ) times the least that any consistent policy can have, up to
    terms that vanish with ε. It needs a fixed set of arms and one best arm: among arms that are
    equally good it explores for ever, at little cost.

    Parameters
    ----------
    noise_scale, ridge : float
        σ, the scale of normal noise, and λ, the ridge penalty of θ̂.
    gamma, epsilon : float
        γ and ε of the source.

    Examples
    --------
    >>> policy, rng = OSSB(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(100):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> state.counts.tolist()
    [[3, 97]]

    Source: Combes, Magureanu and Proutière 2017, algorithm OSSB, from its abstract, later accounts
    and public code for K arms; the paper itself could not be read. Differences: the rates belong to
    the linear bandit with a known best arm (Lattimore and Szepesvári 2017), solved again only when
    t or s grew by a sixteenth; a gap below σ√(ln t/t) counts as that large, since a smaller one
    cannot be seen by t and would ask for more than t pulls; the first d decisions pull arms that
    span the space. After an infinite reward a path has no estimate and plays at random.

    Kind: linear.
    Needs: σ, fixed arms.
    Regret: least possible as T → ∞.
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    gamma: NonNegative = 0.0
    epsilon: NonNegative = 0.01
    ridge: Penalty = 1e-6

    def estimate(self, state: _Rates) -> Array:
        """Return the ridge estimate of θ."""
        return state.theta

    def explores(self, state: _Rates) -> NDArray[np.bool_]:
        """Return whether the next decision of each path explores."""
        wanted = (1 + self.gamma) * np.log(state.decisions + 1)[:, None] * state.rates
        return np.asarray((state.counts < wanted).any(axis=1) | (state.decisions < state.dim))

    def _init(self, paths: int, arms: int, dim: int) -> _Rates:
        return _Rates.start(paths, arms, dim, self.ridge)

    def _choose(self, state: _Rates, arms: Array, rng: np.random.Generator) -> Index:
        greedy = pick_largest(np.matvec(arms, state.theta), rng)
        positive = state.rates > 0
        behind = np.where(positive, state.counts / np.where(positive, state.rates, 1), np.inf)
        few = state.counts.min(axis=1) <= self.epsilon * state.explored
        told = np.where(few, state.counts.argmin(axis=1), behind.argmin(axis=1))
        first = spanning_basis(state.basis, arms)[
            np.arange(state.paths), state.decisions % state.dim
        ]
        chosen = np.where(self.explores(state), told, greedy)
        return np.where(state.decisions < state.dim, first, chosen)

    def _learn(self, state: _Rates, arms: Array, chosen: Index, rewards: Array) -> None:
        state.basis = spanning_basis(state.basis, arms)
        state.explored += self.explores(state)
        state.counts[np.arange(state.paths), chosen] += 1
        state.update(picked(arms, chosen), rewards)
        t = state.decisions + 1
        due = _grown(t, state.solved) | _grown(state.explored, state.solved_explored)
        (rows,) = np.nonzero(due & (t >= state.dim))
        if len(rows):
            least = self.noise_scale * np.sqrt(np.log(t[rows] + 1) / t[rows])
            state.rates[rows] = exploration_rates(
                arms[rows],
                state.theta[rows],
                noise_scale=self.noise_scale,
                least_gap=least * np.linalg.norm(arms[rows], axis=2).max(axis=1),
            )[0]
            state.solved[rows], state.solved_explored[rows] = t[rows], state.explored[rows]


def _grown(now: Index, then: Index) -> NDArray[np.bool_]:
    return np.asarray((now > then) & (_GROWTH * now >= (_GROWTH + 1) * then))
