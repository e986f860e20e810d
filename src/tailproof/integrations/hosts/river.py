"""Our policies in River, for `bandit.evaluate` and anything else that takes its policies."""

from typing import TYPE_CHECKING, Any

from tailproof.extras import import_extra
from tailproof.integrations.hosts.player import Player

if TYPE_CHECKING:
    from river import bandit
else:
    bandit = import_extra("river.bandit", "river")

__all__ = ["RiverPolicy"]


class RiverPolicy(bandit.base.Policy):
    """One of our policies as a `river.bandit` policy.

    >>> import gymnasium
    >>> from tailproof import UCB1, Filtered, Median
    >>> env = gymnasium.make("river_bandits/CandyCaneContest-v0", max_episode_steps=30)
    >>> ours = RiverPolicy(Filtered(UCB1(), repeats=3, estimator=Median()))
    >>> steps = list(bandit.evaluate([ours, bandit.UCB(delta=1)], env, n_episodes=2, seed=1))
    >>> len(steps)
    120

    Source: River 0.26, its extension point. Differences: its default `burn_in` and `reward_obj`.
    """

    def __init__(self, policy: Any, seed: int = 0) -> None:
        super().__init__()
        self.policy, self.seed = policy, seed
        self._player = Player(policy, seed=seed)

    def _pull(self, arm_ids: Any) -> Any:
        return arm_ids[self._player.ask(len(arm_ids))]

    def update(self, arm_id: Any, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn the reward of the arm pulled last."""
        super().update(arm_id, *reward_args, **reward_kwargs)  # type: ignore[no-untyped-call]
        self._player.tell(reward_args[0])
