"""Track-and-Stop for K unstructured arms."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tailproof.bestarm.base import BestArm, TallyRace, lead
from tailproof.checks import Positive
from tailproof.policies.base import Array, Index, KArmed

__all__ = ["TrackAndStop", "optimal_proportions"]


@dataclass(frozen=True, kw_only=True)
class TrackAndStop(KArmed[TallyRace], BestArm[TallyRace]):
    """Pull in the proportions that would be optimal if the estimated means were the true ones.

    If some N_a < √t − K/2 pull the arm pulled least, else argmax_a t w_a(μ̂) − N_a; recommend â when
    min_{b ≠ â} N_â N_b/(N_â + N_b) (μ̂_â − μ̂_b)²/(2σ²) > β(t),
    β(t) = ln(2t(K − 1)/δ) ("proved") or ln((ln t + 1)/δ) ("experiments")

    Parameters
    ----------
    threshold : "proved" or "experiments"
        Which β to stop at.
    delta, noise_scale : float
        δ, the error probability, and σ, the sub-Gaussian scale of the noise.

    Examples
    --------
    >>> policy, rng = TrackAndStop(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [13])

    Source: Garivier and Kaufmann 2016, D-tracking and Chernoff's stopping rule; both thresholds
    from memory. Differences: for normal rewards, for which the source proves its threshold only up
    to a constant factor in t; each arm once first, in order. The vectors of the arms are ignored.

    Kind: best arm, K arms.
    Needs: σ, δ, K arms.
    Accepts a near-best arm: no.
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    threshold: Literal["proved", "experiments"] = "proved"

    def _init(self, paths: int, arms: int, dim: int) -> TallyRace:
        return TallyRace.start(paths, arms, dim)

    def _choose(self, state: TallyRace, arms: Array, rng: np.random.Generator) -> Index:
        least: Index = state.counts.argmin(axis=1)
        means = state.sums / np.maximum(state.counts, 1)
        t = state.decisions[:, None]
        behind = (t * optimal_proportions(means) - state.counts).argmax(axis=1)
        few = state.counts.min(axis=1) < np.maximum(np.sqrt(t[:, 0]) - state.arms / 2, 1)
        return np.where(few, least, behind)

    def _learn(self, state: TallyRace, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0])
        n = np.maximum(state.counts, 1)
        means = state.sums / n
        rows, leader = np.arange(state.paths), lead(means)
        first = n[rows, leader][:, None]
        gaps = means[rows, leader][:, None] - means
        evidence = first * n / (first + n) * gaps * gaps / (2 * self.noise_scale**2)
        evidence[rows, leader] = np.inf
        t = state.decisions + 1
        if self.threshold == "proved":
            beta = np.log(2 * t * (state.arms - 1) / self.delta)
        else:
            beta = np.log((np.log(t) + 1) / self.delta)
        tried = state.counts.min(axis=1) > 0
        state.settle(tried & (evidence.min(axis=1) > beta), leader)


def optimal_proportions(means: Array) -> Array:
    """Return the proportions of pulls that identify the best of K normal means soonest.

    With x_best = 1 and x_a = y/(gap_a² − y), where y makes Σ_{a ≠ best} x_a² = 1: w ∝ x

    >>> optimal_proportions(np.array([[1.0, 0.0, 0.0], [3.0, 3.0, 0.0]])).round(3).tolist()
    [[0.414, 0.293, 0.293], [0.5, 0.5, 0.0]]

    Source: Garivier and Kaufmann 2016, theorem 5 for normal rewards.
    Differences: where the best mean is tied, its arms are pulled equally often.
    """
    rows, best = np.arange(len(means)), lead(means)
    squares = (means[rows, best][:, None] - means) ** 2
    squares[rows, best] = np.inf
    squares = np.where(np.isfinite(squares), squares, np.inf)
    nearest = squares.min(axis=1, keepdims=True)
    clear = (nearest > 0) & np.isfinite(nearest)
    near = np.where(clear, nearest, 1.0) / np.where(clear, squares, 1.0)
    share = np.full_like(nearest, 0.5)  # y/nearest; from here Newton descends to the root
    for _ in range(8):  # right to the last digit for 20 arms, to eight digits for 100
        x = share * near / (1 - share * near)
        rise = 2 * (x * near / (1 - share * near) ** 2).sum(axis=1, keepdims=True)
        share = share - ((x * x).sum(axis=1, keepdims=True) - 1) / rise
    x = np.where(clear, share * near / (1 - share * near), squares == nearest)
    x[rows, best] = 1.0
    shares: Array = x / x.sum(axis=1, keepdims=True)
    return shares
