"""Costs in place of rewards: the smallest is the best."""

from dataclasses import dataclass

from tailproof.policies.base import Array
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["Negated"]


@dataclass(frozen=True)
class Negated(Wrapper[Wrapped]):
    """Any policy A, given −r in place of r: it minimises where A maximises.

    The q-quantile of −r is minus the (1 − q)-quantile of r. To make the 95 % quantile of latencies
    small, let A make the 5 % quantile of −r large, ``Negated(OrderStatisticUCB(quantile=0.05))``,
    or filter first and then negate, ``Filtered(Negated(A), repeats=…, estimator=Quantile(0.95))``.
    `estimate` is of the costs.

    Parameters
    ----------
    policy : Policy
        The algorithm A.

    Examples
    --------
    >>> import numpy as np
    >>> from tailproof import OrderStatisticUCB
    >>> policy, rng = Negated(OrderStatisticUCB(quantile=0.05)), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(2000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     latency = (1 + chosen[:, None]) * (1 + rng.pareto(1.2, (1, 1)))
    ...     policy.learn(state, arms, chosen, latency)
    >>> int(state.inner.counts[0].argmax())
    0

    Source: elementary. Differences: none.

    Kind: around a policy.
    Needs: nothing.
    Pulls: as its policy.
    Regret: as its policy.
    Learns without a mean: as its policy.
    """

    def estimate(self, state: Wrapped) -> Array | None:
        """Return the estimate of the costs."""
        inside = super().estimate(state)
        return None if inside is None else -inside

    def _rewards(self, state: Wrapped, rewards: Array) -> Array:
        return -rewards
