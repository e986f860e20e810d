"""LinStudentUCB: linear optimism from single pulls that learns the law of the noise."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import NonNegative, Range
from tailproof.policies.base import Array, Index, Policy, pick_largest, picked, shares_of_largest
from tailproof.policies.randomised import draw_index, shares_by_uniform, tied
from tailproof.policies.state.arm_clusters import ArmClusters
from tailproof.policies.state.counts import clip
from tailproof.policies.state.student_fit import SHAPES, StudentFit

__all__ = ["LinStudentUCB"]


@dataclass(frozen=True, kw_only=True)
class LinStudentUCB(Policy[StudentFit]):
    """Learn the location of rewards, not their mean: optimism on a Student-t regression.

    Noise, coefficients and offset are learned too. Where rewards are skewed, the arm with the
    largest location need not be that with the largest mean.

    y = b + xᵀθ + s·a·t_ν,  ln a = (x − x₀)ᵀγ,  θ ~ N(0, s²/ρ P⁻¹), γ ~ N(0, τ²(dV)⁻¹), b flat;
    s, ν, ρ, γ, τ learned;  SSᵀ = (Σ J w x̃x̃ᵀ/a² + ρP)⁻¹

    x_t = argmax_x b̂ + xᵀθ̂ + s √(κ v),  v = ‖x̃‖² g(L, ν(m + 1)/2),  m = a²/(J ‖x̃‖²),
    L = bonus² ln(1 + t a²/(D ā² m)),  g(L, n) = n (exp(2L/n) − 1)

    with x̃ = (x, 1) in D = d + 1 dimensions, ‖x̃‖ in the norm of SSᵀ, and w = (ν + 1)/(ν + u²) the
    weight that the score gives to a reward: a rejected one narrows nothing. m is the effective
    number of pulls of an arm, and L is near zero once it has its fair share of them (Audibert and
    Bubeck's MOSS): t/D for equal noise, and in proportion to a² for noise that leans with x, where
    ā² is the mean of a² over the arms offered. √g is the distance at which the density of Student's
    t with n degrees of freedom has fallen by exp(−L): √(2L) for many pulls, more for few, where the
    tails are as of a median. v is capped by the same bound under the prior, with n = d.

    γ is zero until the buffer is half full: with fewer pulls, a few zeros or outliers make an arm
    look quiet or loud that is not.

    Noise may become louder or quieter. Where the last 8, 16, 32 … pulls follow another s, by a
    likelihood ratio of exp(12.5), a new epoch begins: s and ν are learned again, while estimates of
    θ, b and γ stay, with the standard deviations they had.

    Noise may have two modes, if all arms share its law: ½t(x − a) + ½t(x + a) is chosen where its
    likelihood exceeds that of one mode by exp(8), and a reward then counts as y − a or y + a,
    whichever is nearer to the prediction. It is not chosen where the clusters stay in place and
    their weights move with x, as with coin flips. Modes of one arm alone can lock it out:
    set `clusters`, or take `OrderStatisticUCB`.

    When every offer has new vectors and every arm offered has at least a K-th of its fair share,
    the offers explore by themselves and the choice is greedy, unless `random` is set. K arms are
    the case of unit vectors. The unit of the rewards, their offset, and the units of the
    coordinates change no decision.

    Parameters
    ----------
    bonus : float
        Multiplies √L; 0 is greedy.
    intercept : bool
        Whether to learn b. Without it an offset of the rewards matters: zero has a meaning, and
        contexts in one orthant get their common direction for free.
    room : int
        Pulls kept per dimension; when full, a normal summary replaces the half of least leverage.
    random : bool
        Multiplies the widths √(κ v) s of all arms by one U ~ Uniform(0, 1), drawn for each
        decision, and is never greedy: x_t = argmax_x b̂ + xᵀθ̂ + U s √(κ v). So visitors who come
        before the next reward are not all sent to one arm, and `propensities` are exact and between
        0 and 1, also where every offer has new vectors. Take it where rewards come late or the log
        is to judge other rules. The state is the same, so that a policy may be continued with the
        other form.
    clusters : bool
        Whether rewards of one of K arms may lie in two clusters. Where they seem to, with next to
        none between them, Huber's mean of the arm counts beside its location: the larger index of
        both, and Huber's alone where both clusters have as many rewards and the means differ by
        three standard errors. An arm with n < log₂(1 + t/K) rewards may be better than they say, by
        three scales of the noise when they came, as all may be from one cluster. Up to one path in
        four still misses such an arm, and a decision takes up to 1.7 times as long.

    Examples
    --------
    >>> policy, rng = LinStudentUCB(), np.random.default_rng(0)
    >>> state, theta = policy.init(paths=1, arms=3, dim=2), np.array([60, -80])
    >>> for _ in range(2000):
    ...     arms = rng.uniform(-1, 1, (1, 3, 2))
    ...     chosen = policy.choose(state, arms, rng)
    ...     reward = 10_000 + arms[0, chosen] @ theta + 10 * rng.standard_cauchy()
    ...     policy.learn(state, arms, chosen, reward[:, None])
    >>> policy.estimate(state).round(-1).tolist()
    [[60.0, -80.0]]

    Source: our own, from known parts: score and Fisher scoring of Student's t (Lange, Little and
    Taylor 1989), the variational treatment of an uncertain location, MacKay's fixed point for the
    size of the coefficients (1992), Huber's sandwich for the variance (κ), MOSS's logarithm (2009),
    RandUCB for `random` (Vaswani, Mehrabian, Durand and Kveton 2020), all from memory. Proved
    elsewhere: for independent pulls of a symmetric unimodal law such estimates are asymptotically
    normal with the variance that κ states. Only measured here, over the gauntlet: regret, coverage,
    and how many paths get stuck: about as many as of OFUL with a known scale and its best bonus
    under normal noise of the same Fisher information. Rewards need not be symmetric if all arms
    share their law: the intercept absorbs the skew. Differences: no algorithm was published under
    this name.

    Kind: single pulls without a mean.
    Needs: nothing; one distribution for all arms, may be skewed, with a scale that may lean with x
    and change over time.
    Learns without a mean: yes, as measured; units, offset and units of contexts do not matter.
    """

    bonus: NonNegative = 1.0
    intercept: bool = True
    room: Annotated[int, Range(at_least=4, at_most=1e15)] = 16
    random: bool = False
    clusters: bool = False

    @property
    def invariances(self) -> frozenset[str]:
        """The unit does not matter, nor an offset if there is an intercept."""
        return frozenset({"units", "offset"} if self.intercept else {"units"})

    def estimate(self, state: StudentFit) -> Array:
        """Return the estimate of θ."""
        return state.mean[:, : state.dim]

    def predict(self, state: StudentFit, arms: Array) -> tuple[Array, Array]:
        """Return the location of every arm and its standard deviation s √κ ‖x̃‖: (paths, K) each."""
        mean, square = state.predict(arms)
        mean = mean + state.origin[:, None]
        return mean, np.sqrt(state.inflation[:, None] * square) * state.scale[:, None]

    def _init(self, paths: int, arms: int, dim: int) -> StudentFit:
        size = dim + self.intercept
        # fewer than 48 say nothing about a tail
        kind = ArmClusters if self.clusters else StudentFit
        return kind.start(paths, arms, dim, size, max(self.room * size, 48))

    def _choose(self, state: StudentFit, arms: Array, rng: np.random.Generator) -> Index:
        mean, width = self._lines(state, arms)
        index = draw_index(mean, width, rng) if self.random else tied(mean + width, width)
        return pick_largest(index, rng)

    def _propensities(self, state: StudentFit, arms: Array) -> Array:
        mean, width = self._lines(state, arms)
        if self.random:
            return shares_by_uniform(mean, width)
        return shares_of_largest(tied(mean + width, width))

    def _lines(self, state: StudentFit, arms: Array) -> tuple[Array, Array]:
        """Return the mean and the width of every arm, of shape (paths, K) each."""
        mean, square = state.predict(arms)
        size, t, k = state.block.shape[1], state.decisions[:, None] + 1, arms.shape[1]
        nu, variance = SHAPES[state.shape][:, None], state.relative_variance(arms)
        narrow = np.maximum(state.slope[:, None] * square, 1e-300)
        share = t * k / size * narrow / variance.sum(axis=1, keepdims=True)
        alone = (state.renewal >= 0.5) & (share.max(axis=1) <= k)
        if alone.all() and not self.random:
            return mean, np.zeros(mean.shape)
        log = self.bonus**2 * np.log1p(share)
        reach = square * _squared_reach(log, nu * (variance / narrow + 1) / 2)
        offset = np.square(arms - arms.sum(axis=1, keepdims=True) / k)
        spread = np.where(state.spread > 0, state.spread, np.inf)
        prior = np.matvec(offset, 1 / spread) / state.penalty[:, None]
        most = prior * _squared_reach(self.bonus**2 * np.log1p(t / size), np.array(state.dim))
        reach = np.maximum(2 * square * log, np.minimum(reach, most))
        width = state.scale[:, None] * np.sqrt(state.inflation[:, None] * reach)
        width = width if self.random else np.where(alone[:, None], 0.0, width)
        if isinstance(state, ArmClusters):
            return state.reconsider(mean, width, arms, variance, self.bonus)
        return mean, width

    def _learn(self, state: StudentFit, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(arms, picked(arms, chosen), clip(rewards[:, 0]))


def _squared_reach(log: Array, df: Array) -> Array:
    """Return n(exp(2L/n) − 1), where the density of Student's t has fallen by exp(−L)."""
    return np.asarray(df * np.expm1(np.minimum(2 * log / df, 500)))
