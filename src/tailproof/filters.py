"""The filter: Algorithm 2 of the paper around any policy."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tailproof.calibration import calibrate
from tailproof.checks import require, whole
from tailproof.estimators import Estimator, MeanOfMedians
from tailproof.policies.base import Array, Index, M, Policy
from tailproof.theory import filter_pulls

__all__ = ["Filtered"]


@dataclass(frozen=True, init=False, repr=False)
class Filtered(Policy[M]):
    """Any policy A, given one tame number in place of ñ wild rewards.

    for t = 1, 2, …:  A chooses x_t;  x_t is pulled ñ times;  A learns r_t = estimator(r_1, …, r_ñ)

    The filter has nothing to remember: its memory is the memory of A. Filters nest. Where A wants
    several rewards for a decision, each of them is filtered, so that `pulls` is ``A.pulls × ñ``.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    pulls : int
        ñ, the rewards behind each reward that A is given.
    estimator : Estimator
        What reduces them; by default the mean of medians with ε = ½.

    Examples
    --------
    >>> from tailproof import OFUL, Median
    >>> policy, rng = Filtered(OFUL(), pulls=15, estimator=Median()), np.random.default_rng(0)
    >>> memory = policy.init(paths=1, arms=2, dim=2)
    >>> arms = np.eye(2)[None]
    >>> chosen = policy.choose(memory, arms, rng)
    >>> policy.learn(memory, arms, chosen, rng.standard_cauchy((1, 15)))
    >>> policy.pulls, memory.decisions.tolist()
    (15, [1])

    Source: Algorithm 2 of Zhong et al. 2021. Differences: any estimator may take the place of the
    mean of medians.
    """

    policy: Policy[M]
    each: int
    estimator: Estimator

    def __init__(
        self, policy: Policy[M], *, pulls: int, estimator: Estimator | None = None
    ) -> None:
        require(isinstance(policy, Policy), "policy", "a policy", policy)
        chosen = MeanOfMedians() if estimator is None else estimator
        require(isinstance(chosen, Estimator), "estimator", "an estimator", estimator)
        chosen.check(whole("pulls", pulls))
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "each", pulls)
        object.__setattr__(self, "estimator", chosen)

    def __repr__(self) -> str:
        return f"Filtered({self.policy!r}, pulls={self.each}, estimator={self.estimator!r})"

    @classmethod
    def from_theory(
        cls, policy: Policy[M], *, horizon: int, delta: float, alpha: float, epsilon: float = 0.5
    ) -> Self:
        """Return the filter with the ñ of Theorem 2, for noise with P(|η| > y) ≤ 1/y^α.

        >>> from tailproof import OFUL
        >>> Filtered.from_theory(OFUL(), horizon=10**6, delta=0.01, alpha=1).pulls
        93527

        Warns when not even one decision fits into the horizon.
        """
        pulls = filter_pulls(horizon=horizon, delta=delta, alpha=alpha, epsilon=epsilon)
        require(pulls < math.inf, "alpha", "large enough for a finite number of pulls", alpha)
        if pulls * policy.pulls > horizon:
            warnings.warn(
                f"the theorem asks for {pulls * policy.pulls} pulls for one decision, "
                f"more than the horizon of {horizon}",
                stacklevel=2,
            )
        return cls(policy, pulls=int(pulls), estimator=MeanOfMedians(epsilon=epsilon))

    @classmethod
    def calibrated(cls, policy: Policy[M], **settings: Any) -> Self:
        """Return the filter that `tailproof.calibrate` chooses, and tell A the scale it leaves.

        A policy that declares no `scale_field` is left as it is.

        >>> from tailproof import OFUL, noise
        >>> policy = Filtered.calibrated(OFUL(), noise=noise.Cauchy(), horizon=10_000, dim=10)
        >>> policy.pulls, policy.estimator, round(policy.policy.noise_scale, 3)
        (25, MeanOfMedians(block=25, epsilon=None), 0.363)
        """
        require(isinstance(policy, Policy), "policy", "a policy", policy)
        found = calibrate(**settings)
        if policy.scale_field is not None:
            policy = replace(policy, **{policy.scale_field: found.scale})  # type: ignore[type-var]
        return cls(policy, pulls=found.pulls, estimator=found.estimator)

    @property
    def pulls(self) -> int:
        """The raw rewards wanted for one decision."""
        return self.policy.pulls * self.each

    def propose(self, memory: M, rng: np.random.Generator) -> Array:
        """Return the proposal of the policy inside."""
        return self.policy.propose(memory, rng)

    def estimate(self, memory: M) -> Array | None:
        """Return the estimate of the policy inside."""
        return self.policy.estimate(memory)

    def recommend(self, memory: M) -> Index:
        """Return the arm that the policy inside names."""
        return self.policy.recommend(memory)

    def _init(self, paths: int, arms: int, dim: int) -> M:
        return self.policy._init(paths, arms, dim)

    def _choose(self, memory: M, arms: Array, rng: np.random.Generator) -> Index:
        return self.policy._choose(memory, arms, rng)  # line 3: A chooses the arm

    def _learn(self, memory: M, arms: Array, chosen: Index, rewards: Array) -> None:
        raw = rewards.reshape(memory.paths, self.policy.pulls, self.each)
        self.policy._learn(memory, arms, chosen, self.estimator(raw))  # line 4: A receives r_t
