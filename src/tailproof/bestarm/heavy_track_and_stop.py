"""The best arm of heavy-tailed laws with a known moment bound, by evidence alone."""

from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.base import Answer, BestArm, lead
from tailproof.checks import MomentOrder, Positive
from tailproof.policies.base import Array, Index, KArmed
from tailproof.policies.state.base import ArmValues
from tailproof.policies.state.moment_bets import BetLogs, MomentBets, MomentClass, overhead

__all__ = ["HeavyTrackAndStop"]

_STEPS, _GOLDEN = 10, (5**0.5 - 1) / 2
"""A golden-section search whose last bracket is a hundredth of the first."""


@dataclass(eq=False)
class _Evidence(Answer, MomentBets):
    """Bets against possible means of every arm, and the evidence that they make.

    Attributes
    ----------
    logs, losses : arrays of shape (paths, K, bets)
        The bets against larger means, and the bets against smaller means.
    sums, total, share : arrays of shape (paths, K)
        Sums of rewards; Z_b, ∞ for the leader; and the share of Z_b that the leader's pulls bring.
    """

    losses: BetLogs
    sums: ArmValues
    total: ArmValues
    share: ArmValues


@dataclass(frozen=True, kw_only=True)
class HeavyTrackAndStop(KArmed[_Evidence], BestArm[_Evidence]):
    """Stop when the rewards contradict every law under which another arm is the best.

    Z_b = min_x n_â KL_inf⁻(F̂_â, x) + n_b KL_inf⁺(F̂_b, x) for the leader â and each other arm b;
    recommend â when min_b Z_b > ln((K − 1)/δ) + c_â + c_b, with c_n as in `KLInfUCB`;
    else pull â or the b of the least Z_b, â with the share of Z_b that its evidence makes up;
    if some n_a < √t − K/2, pull the arm pulled least

    KL_inf⁺(F, x) is the least KL(F, G) over the laws G of mean at least x with E|X|^{1+ε} ≤ B, and
    KL_inf⁻ that over the means at most x. Some bound on a moment is needed: without one, every
    δ-correct rule needs infinitely many pulls on average. As δ → 0 the pulls approach the least
    that any δ-correct rule needs, up to the 1 % of the grid.

    Parameters
    ----------
    delta : float
        δ, the largest probability of a wrong answer.
    epsilon, moment_bound : float
        ε in (0, 1] and B, a bound on E|X|^{1+ε} of the rewards.

    Examples
    --------
    >>> policy, rng = HeavyTrackAndStop(moment_bound=2.0), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist()
    [1]

    Source: Agrawal, Juneja and Glynn 2020, from its abstract and from memory; its text could not be
    read. The threshold was derived again: two products of test martingales and a union over K − 1
    arms. Differences: KL_inf on the grid of `KLInfUCB`, which only delays the answer, so that no
    reward is kept and there are no batches; the pulls follow the balance of evidence (top-two
    sampling with the shares of You, Qin, Wang and Yang 2023) in place of an optimal allocation
    solved again and again; the vectors of the arms are ignored.

    Kind: best arm, K arms.
    Needs: ε, raw moment B, δ.
    Accepts a near-best arm: no.
    Learns without a mean: no.
    """

    epsilon: MomentOrder = 1.0
    moment_bound: Positive = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> _Evidence:
        return _Evidence.start(paths, arms, dim)

    def _choose(self, state: _Evidence, arms: Array, rng: np.random.Generator) -> Index:
        rows, draw = np.arange(state.paths), rng.random(state.paths)
        rival = state.total.argmin(axis=1)
        chosen = np.where(draw < state.share[rows, rival], state.total.argmax(axis=1), rival)
        fewest = state.counts.min(axis=1)
        few = fewest < np.maximum(np.sqrt(state.decisions) - state.arms / 2, 1)
        return np.asarray(np.where(few, state.counts.argmin(axis=1), chosen))

    def _learn(self, state: _Evidence, arms: Array, chosen: Index, rewards: Array) -> None:
        at, law = (np.arange(state.paths), chosen), MomentClass(1 + self.epsilon)
        y = np.clip(rewards[:, 0] / self._unit, -1e30, 1e30)
        state.add(chosen, law.growth(y))
        state.losses[at] += law.growth(-y)
        state.sums[at] += y
        leader, state.total, state.share = self._balance(state)
        spare = overhead(state.counts)
        most = np.log((state.arms - 1) / self.delta) + spare
        most += spare[np.arange(state.paths), leader][:, None]
        beaten = state.total > most
        beaten[np.arange(state.paths), leader] = True
        state.settle(beaten.all(axis=1) & (state.counts.min(axis=1) > 0), leader)

    @property
    def _unit(self) -> float:
        return float(self.moment_bound ** (1 / (1 + self.epsilon)))

    def _balance(self, state: _Evidence) -> tuple[Index, Array, Array]:
        """Return the leader, Z of every arm (∞ for the leader), and the leader's share of each."""
        means = np.clip(state.sums / np.maximum(state.counts, 1), -1, 1)
        rows, leader = np.arange(state.paths), lead(means)
        law, leading = MomentClass(1 + self.epsilon), (rows, leader)
        losses, count = state.losses[leading][:, None], state.counts[leading][:, None]

        def parts(x: Array) -> tuple[Array, Array]:
            against = law.evidence(losses, np.broadcast_to(count, x.shape), -x)
            return against, law.evidence(state.logs, state.counts, x)

        low = means
        high = np.broadcast_to(means[leading][:, None], means.shape)
        for _ in range(_STEPS):
            gap = _GOLDEN * (high - low)
            first, second = (sum(parts(x)) for x in (high - gap, low + gap))
            left = np.asarray(first <= second)
            low, high = np.where(left, low, high - gap), np.where(left, low + gap, high)
        mine, theirs = parts((low + high) / 2)
        total = mine + theirs
        share = np.where(total > 0, mine / np.where(total > 0, total, 1), 0.5)
        total[leading] = np.inf
        return leader, total, share
