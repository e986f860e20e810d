"""A policy and its state as one object, for a loop of ask and tell."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, require, whole
from tailproof.policies.base import Array, Policy

__all__ = ["Player"]


class Player:
    """A policy that is asked for one arm and told one reward at a time, on one path.

    If the policy takes several rewards per decision, as a filter does, `ask` returns the same arm
    until all of them are told. The arms on offer must stay the same until all its pulls are made.

    Parameters
    ----------
    policy : Policy
    seed : int
        Random numbers depend on the seed and the number of the decision.

    Examples
    --------
    >>> from tailproof import UCB1, Filtered, Median
    >>> rng = np.random.default_rng(0)
    >>> player = Player(Filtered(UCB1(), repeats=15, estimator=Median()))
    >>> for _ in range(3000):
    ...     arm = player.ask(3)
    ...     player.tell(arm + rng.standard_cauchy())
    >>> player.state.decisions.tolist(), int(player.state.inner.counts.argmax())
    ([200], 2)
    """

    def __init__(self, policy: Policy[Any], *, seed: int = 0) -> None:
        require(isinstance(policy, Policy), "policy", "a Policy such as UCB1()", policy)
        self.policy, self.seed = policy, whole("seed", seed, at_least=0)
        self.state: Any = None
        self.propensity: float | None = None
        self._held: tuple[Array, int] | None = None
        self._rewards: list[float] = []

    def ask(self, arms: int | ArrayLike) -> int:
        """Return the arm to pull, given the number of arms or their vectors of shape (K, d)."""
        offer = self._offer(arms)
        if self._held is not None:
            if not np.array_equal(self._held[0], offer):
                raise ValueError(
                    f"arms must stay the same until all {self.policy.pulls} rewards of a decision "
                    "are told; LinStudentUCB learns from single rewards"
                )
            return self._held[1]
        if self.state is None:
            self.state = self.policy.init(*offer.shape)
        rng = np.random.default_rng([self.seed, int(self.state.decisions[0])])
        arm = int(self.policy.choose(self.state, offer, rng)[0])
        shares = self.policy.propensities(self.state, offer)
        self.propensity = None if shares is None else float(shares[0, arm])
        self._held = offer, arm
        return arm

    def tell(self, reward: float) -> None:
        """Take a reward of the arm that `ask` returned; the policy learns after the last reward."""
        if self._held is None:
            raise ValueError("call ask before tell")
        require(not np.isnan(reward), "reward", "a float (±inf allowed, NaN not)", reward)
        self._rewards.append(float(reward))
        if len(self._rewards) == self.policy.pulls:
            offer, arm = self._held
            self.policy.learn(self.state, offer, [arm], [self._rewards])
            self._held, self._rewards = None, []

    def _offer(self, arms: int | ArrayLike) -> Array:
        """Return vectors of shape (1, K, d), one-hot if only the number of arms is given."""
        if isinstance(arms, int | np.integer):
            return np.eye(int(arms), int(arms) if self.state is None else self.state.dim)[None]
        vectors = array("arms", arms)
        require(vectors.ndim == 2, "arms", "a number, or vectors of shape (K, d)", vectors.shape)
        return vectors[None]
