"""Thompson sampling: pull each arm with the probability that it is the best."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import Positive
from tailproof.policies.base import Array, Index, KArmed, pick_largest
from tailproof.policies.state.counts import Tally

__all__ = ["ThompsonSampling"]


@dataclass(frozen=True, kw_only=True)
class ThompsonSampling(KArmed[Tally]):
    """Draw the mean of every arm from its posterior, and pull the arm with the largest draw.

    a_t = argmax_a μ̂_a + z_a √variance_a, z_a ~ N(0, 1), where N(μ̂, variance) is the posterior
    of a mean with prior N(0, prior_scale²) after n rewards N(mean, noise_scale²):
    variance = 1/(1/prior_scale² + n/noise_scale²), μ̂ = variance Σ reward/noise_scale²

    Parameters
    ----------
    noise_scale, prior_scale : float
        The standard deviations of the rewards, taken as known, and of the prior of each mean.

    Examples
    --------
    >>> policy, rng = ThompsonSampling(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(500):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_normal((1, 1)))
    >>> int(state.counts[0].argmax())
    1

    Source: Thompson 1933 in idea; Agrawal and Goyal 2013, algorithm 2 (Gaussian priors), which
    is ``noise_scale=1, prior_scale=1``: N(Σ reward/(n + 1), 1/(n + 1)). Differences: both scales
    can be set. Noise is assumed Gaussian: an infinite reward leaves no finite average of its arm.

    Kind: K arms.
    Needs: noise and prior scale.
    Regret: Õ(√(KT)).
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    prior_scale: Positive = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> Tally:
        return Tally.start(paths, arms, dim)

    def _choose(self, state: Tally, arms: Array, rng: np.random.Generator) -> Index:
        z = rng.standard_normal(state.sums.shape)
        ratio = (self.noise_scale / self.prior_scale) ** 2  # how many rewards the prior counts for
        weight = state.counts + ratio
        drawn = state.sums / weight + z * self.noise_scale / np.sqrt(weight)
        return pick_largest(drawn, rng)

    def _learn(self, state: Tally, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0])
