"""OrderStatisticUCB: an index that is one of the arm's own rewards, valid for any law."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from tailproof.checks import Fraction, NonNegative, Range
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.quantile_bounds import ExactBounds, QuantileBounds, SketchedBounds
from tailproof.stats.order_statistics import confidence, log_binomial, log_mixture

__all__ = ["OrderStatisticUCB"]


@dataclass(frozen=True, kw_only=True)
class OrderStatisticUCB(KArmed[QuantileBounds], Indexed[QuantileBounds]):
    """Pull the arm with the largest order statistic, of a rank that bounds its quantile.

    a_t = argmax_a X_(J), J = min{s : ln M_n(s) ≥ f(t)}, f(t) = ln(t + 1) + 2 ln max(1, ln(t + 1)),
    M_n(s) = ∫_π^1 (q/π)^s ((1 − q)/(1 − π))^(n−s) dq/(1 − π), for n sorted rewards X_(1), … of
    the arm; an arm with J > n comes first, and among several the arm with the fewest pulls

    Rewards may have any law, with or without a mean, continuous or not, a different one for each
    arm. With Q_a the upper π-quantile of an arm, P(X_(J) < Q_a for some n) ≤ e^−f. With
    q_a = P(X_a < Q*) for the largest of them and T → ∞, the arm is pulled at most ln T/kl(q_a, π)
    times on average, which no policy that is consistent for all laws can improve where X_a has no
    atom at Q*; see `tailproof.stats.order_statistics` for the bound at finite T. Only comparisons
    of rewards matter: changing units, adding an offset or taking logarithms changes nothing.

    Parameters
    ----------
    quantile : float
        π, the quantile to maximise: ½ is the median.
    index : "proved" or "binomial"
        "binomial" is the smaller J = min{s : P(Bin(n, π) ≥ s) ≤ 1/t}, exact for one n fixed in
        advance. It has no proof: about half the regret, but some paths lose the best arm for long.
    sketch : int, optional
        How many rewards of an arm to keep, at 24 bytes each; by default all, at 16 bytes per
        decision. The index is then a reward between X_(J) and X_(J+e), at least X_(J), so that it
        still bounds Q_a; e (`errors` of the state) is about √n ln n/sketch, as measured, and J − πn
        about √(n ln t).

    bonus : float
        Multiplies f(t), or ln t for "binomial". 1 is proved; a smaller bonus explores less, for
        horizons at which the proved exploration costs more than it saves.

    Examples
    --------
    >>> policy, rng = OrderStatisticUCB(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, np.exp(chosen[:, None] + rng.standard_cauchy((1, 1))))
    >>> int(state.counts[0].argmax())
    1

    Source: our own. It follows KL-UCB (Garivier and Cappé 2011), with quantile confidence sequences
    (Howard and Ramdas 2022) in place of sequences for means; the sketch is in the manner of
    Greenwald and Khanna 2001. Differences: no published algorithm.

    Kind: single pulls without a mean.
    Needs: nothing, any distribution.
    Regret: ln T/kl for quantiles, asymptotically optimal.
    Learns without a mean: yes, proved.
    """

    quantile: Fraction = 0.5
    index: Literal["proved", "binomial"] = "proved"
    sketch: Annotated[int, Range(at_least=16, at_most=1e7)] | None = None
    bonus: NonNegative = 1.0

    @property
    def invariances(self) -> frozenset[str]:
        """Nothing but the order of rewards matters."""
        return frozenset({"increasing"})

    def evidence(self, n: Index, s: Index) -> Array:
        """Return the log evidence of s of n rewards below a value against it as the quantile."""
        kind = log_mixture if self.index == "proved" else log_binomial
        return kind(n, s, self.quantile)

    def _init(self, paths: int, arms: int, dim: int) -> QuantileBounds:
        if self.sketch is None:
            return ExactBounds.start(paths, arms, dim)
        return SketchedBounds.start(paths, arms, dim, size=self.sketch)

    def _index(self, state: QuantileBounds, arms: Array) -> Array:
        index, first = state.bound, state.unbounded
        if np.count_nonzero(first):
            fewest = np.where(first, -state.counts, -np.inf)
            index = np.where(first.any(axis=1, keepdims=True), fewest, index)
        return index

    def _learn(self, state: QuantileBounds, arms: Array, chosen: Index, rewards: Array) -> None:
        t = state.decisions + 2  # the number of the next decision
        f = confidence(t) if self.index == "proved" else np.log(t)
        state.update(chosen, rewards[:, 0], self.bonus * f, self.evidence)
