"""LinRevenueUCB: arms and visitors' features, with rewards mostly zero and wild otherwise."""

from dataclasses import dataclass
from typing import Annotated

from tailproof.checks import Range
from tailproof.policies.base import Array, Index, View, picked
from tailproof.policies.randomised import EXCLUDED, Randomised
from tailproof.policies.state.revenue_regression import RevenueRegression
from tailproof.policies.state.silence import silent_looks

__all__ = ["LinRevenueUCB"]


@dataclass(frozen=True, kw_only=True)
class LinRevenueUCB(Randomised[RevenueRegression]):
    """Pull the arm with the largest predicted capped reward plus a random multiple of its error.

    a_t = argmax_a xᵀθ̂_a + |Z_t| √(xᵀC_a x),  Z_t ~ N(0, 1), one draw for all arms
    θ̂_a = G⁻¹b,  C_a = G⁻¹MG⁻¹,  G = Σ x xᵀ,  b = Σ y x,  M = Σ y² x xᵀ

    where y are rewards of arm a clipped as in `RevenueUCB`, x the features of its visitors with a
    constant, and G, b and M are lent eight purchases of the pool of all arms. C_a is the sandwich
    estimate of the error: the noise of visitors who may buy is much larger than the noise of the
    others. It is multiplied by 1 + 16/b after b purchases of the arm, since few purchases say
    little.

    An arm is not judged before it sold twice or was silent for long, as in `RevenueUCB`: until then
    one visitor in K, drawn at random, sees it.

    The view is "context": an arm has a number, and a vector of features comes with every offer,
    usually the visitor's, the same for all arms. Each arm has a regression of its own, so that
    nothing has to be crossed with the arms, and arms may come later. Multiples of all rewards or of
    a feature change no decision. `propensities` are exact, and rewards may come late.

    Parameters
    ----------
    share : float
        The share of purchases below the cap, above ½.
    largest : float, optional
        No purchase is larger, in the unit of the rewards. Without it, an arm that never sells is
        shown to about 28 √(t/K) of t visitors.

    Examples
    --------
    >>> import numpy as np
    >>> policy, rng = LinRevenueUCB(), np.random.default_rng(0)
    >>> state = policy.init(paths=1, arms=2, dim=1)
    >>> for _ in range(5000):
    ...     visitor = rng.choice([-1.0, 1.0], (1, 1, 1))
    ...     arms = visitor.repeat(2, axis=1)
    ...     chosen = policy.choose(state, arms, rng)
    ...     buys = rng.random(1) < 0.05 + 0.03 * visitor[0, 0] * [-1, 1][chosen[0]]
    ...     policy.learn(state, arms, chosen, buys[:, None] * rng.lognormal(3, 1))
    >>> policy.propensities(state, np.ones((1, 2, 1))).round(1).tolist()
    [[0.0, 1.0]]

    The 128 largest purchases are kept with their features and clipped anew with each new range; a
    smaller one is clipped when it leaves them. A state takes about 4 kB + 32 (d + 1)² bytes for an
    arm and 1 kB × (d + 3) for all, and has `coefficients`.

    Source: our own. One regression for each arm is LinUCB of Li, Chu, Langford and Schapire 2010,
    algorithm 1; one draw for all arms RandUCB of Vaswani, Mehrabian, Durand and Kveton 2020; the
    sandwich White's of 1980. Differences: rewards are clipped to a learned range; eight purchases
    of all arms are lent to each arm; few purchases widen the error; arms without sales are shown to
    one visitor in K; M has y² in place of squared residuals; regressions are solved when visitors
    are 1 % more. Only measured, not proved.

    Kind: revenue.
    Needs: nothing; one vector of features for all arms.
    Learns without a mean: yes, as measured; units do not matter.
    """

    share: Annotated[float, Range(above=0.5, below=1)] = 0.99
    largest: Annotated[float, Range(above=0)] | None = None

    @property
    def view(self) -> View:
        """The numbers of the arms and one context for all."""
        return "context"

    @property
    def invariances(self) -> frozenset[str]:
        """The unit does not matter; an offset does, as zero means no purchase."""
        return frozenset({"units"})

    def _init(self, paths: int, arms: int, dim: int) -> RevenueRegression:
        return RevenueRegression.start(paths, arms, dim)

    def _lines(self, state: RevenueRegression, arms: Array) -> tuple[Array, Array, Array | None]:
        mean, width = state.predict(arms)
        looks, unjudged = silent_looks(state, self.largest)
        if looks is not None:
            mean[unjudged], width[unjudged] = EXCLUDED, 0.0
        return mean, width, looks

    def _learn(self, state: RevenueRegression, arms: Array, chosen: Index, rewards: Array) -> None:
        state.learn(picked(arms, chosen), chosen, rewards[:, 0], self.share)
