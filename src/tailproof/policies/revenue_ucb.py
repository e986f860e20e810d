"""RevenueUCB: K arms whose rewards are mostly zero and wild otherwise."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array, Index, KArmed
from tailproof.policies.randomised import EXCLUDED, Randomised
from tailproof.policies.state.sales import SalesHistogram
from tailproof.policies.state.silence import silent_looks

__all__ = ["BONUS", "RevenueUCB"]

BONUS = 0.4
"""Chosen on the tuning problems of gauntlet/money.py, on time and 1000 visitors late."""


@dataclass(frozen=True, kw_only=True)
class RevenueUCB(KArmed[SalesHistogram], Randomised[SalesHistogram]):
    """Pull the arm with the largest capped mean plus a random multiple of its standard error.

    a_t = argmax_a X̄_a + 0.4 |Z_t| σ̂_a √(2 ln(1 + t/(K n_a))/n_a),  Z_t ~ N(0, 1), one draw for all
    σ̂_a² = max(q_a − X̄_a², q̄ − X̄²)

    Rewards are clipped to one range for all arms: high = max(Q(share), 0), low = min(Q(1 − share),
    0), Q the quantiles of the rewards that are not zero, each arm weighing the same. So zero means
    that a visitor bought nothing. X̄_a and n_a are the mean and the number of arm a's rewards, q_a
    the mean of their squares after one purchase of the mean square of all purchases was added to
    their sum; q̄ and X̄ are the means of q_a and X̄_a over the arms. The logarithm is small once an
    arm has its fair share t/K of visitors.

    An arm's b purchases count as b + 16 of their kind in Q and in its own q_a, but not in X̄_a and
    q̄. An arm that sells rarely and dear may have sold half as often as expected; its spread would
    then look small, and the cap would fall to the prices of the others and cut its own.

    An arm is not judged before it sold twice: until then one visitor in K, drawn at random, sees
    it, and nobody else does. These looks end when u/n_a times the largest purchase is below
    X̄_b − 2.3 σ_b/√n_b of an arm b, where u = 4.6 (6.6 after one purchase): a Poisson law of mean u
    has no (at most one) event with probability 1 %. The largest purchase is `largest`, or the
    largest that any arm made. The silent arm may sell for more than any other arm did, so without
    `largest` a share 14/√(K t) of the visitors goes on seeing it.

    Why the larger of two variances: an arm that has hardly sold anything does not know its own
    variance, so it takes the variance of all arms and the added purchase; an arm that varies more
    than the others needs its own. Each arm weighs the same, because in the variance of all rewards
    the arm with the most visitors decides: if it is a narrow arm, a wide arm that is better would
    be locked out.

    The range is learned anew when there are 1.1 times as many purchases, from a histogram with bins
    a factor 2^¼ wide, and the sums with it.

    For revenue and other rewards that are mostly zero and wild otherwise: the aim is
    `tailproof.CappedMean`, up to the width of a bin. Multiples of all rewards change no decision; a
    constant added to them does. Choices are random, so that rewards may come late: visitors who
    come meanwhile are not all sent to one arm. `propensities` are exact. For rewards with a law of
    one shape, shifted, `LinStudentUCB` needs fewer rewards.

    Parameters
    ----------
    share : float
        The share of purchases below the cap, above ½.
    largest : float, optional
        No purchase is larger, in the unit of the rewards. Without it, an arm that never sells is
        shown to about 28 √(t/K) of t visitors.

    Examples
    --------
    >>> policy, rng = RevenueUCB(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(5000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     buys = rng.random(1) < [0.06, 0.03][chosen[0]]
    ...     policy.learn(state, arms, chosen, buys[:, None] * [20, 30][chosen[0]])
    >>> int(state.visitors[0].argmax()), state.basket[0].round().tolist()
    (0, [20.0, 30.0])

    A state takes 4 kB an arm, however much it learned, and has `visitors`, `conversion`, `basket`,
    `means` and `variances` of each arm and the `range`.

    Source: our own. RandUCB of Vaswani, Mehrabian, Durand and Kveton 2020, with one draw for all
    arms, and the logarithm of MOSS (Audibert and Bubeck 2009). Differences: a normal law without an
    end; cap and σ̂ are learned; the factor 0.4 and the two purchases were tuned. Only measured, not
    proved. If the first purchase is 2³² times larger than most others, these are not told apart.

    Kind: revenue.
    Needs: nothing; zero means no purchase.
    Learns without a mean: yes, as measured; units do not matter.
    """

    share: Annotated[float, Range(above=0.5, below=1)] = 0.99
    largest: Annotated[float, Range(above=0)] | None = None

    @property
    def invariances(self) -> frozenset[str]:
        """The unit does not matter; an offset does, as zero means no purchase."""
        return frozenset({"units"})

    def _init(self, paths: int, arms: int, dim: int) -> SalesHistogram:
        return SalesHistogram.start(paths, arms, dim)

    def _lines(self, state: SalesHistogram, arms: Array) -> tuple[Array, Array, Array | None]:
        n = np.maximum(state.visitors, 1.0)
        arm_means = state.sums / n
        lent = _sum(state.squares) / np.maximum(_sum(state.bought), 1)
        raw = (state.squares + lent[:, None]) / n
        looks, unjudged = silent_looks(state, self.largest)
        if looks is None:
            even = _sum(raw) / state.arms - np.square(_sum(arm_means) / state.arms)
        else:  # arms that are not judged yet do not judge the others
            k = np.maximum(np.count_nonzero(~unjudged, axis=1), 1)
            even = _sum(raw * ~unjudged) / k - np.square(_sum(arm_means * ~unjudged) / k)
        doubted = (state.squares * state.doubt + lent[:, None]) / n
        spread = np.maximum(doubted - arm_means * arm_means, even[:, None])
        log = np.log1p(_sum(n)[:, None] / (state.arms * n))
        width = np.sqrt(2 * BONUS * BONUS * spread * log / n)
        if looks is not None:
            arm_means[unjudged], width[unjudged] = EXCLUDED, 0.0
        return arm_means, width, looks

    def _learn(self, state: SalesHistogram, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0], self.share)


def _sum(values: Array | Index) -> Array:
    """Return the sum of each row; einsum is faster than sum for few arms."""
    return np.asarray(np.einsum("pa->p", values))
