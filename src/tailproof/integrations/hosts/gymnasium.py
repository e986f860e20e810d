"""Our bandits as Gymnasium environments."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof import environments
from tailproof.checks import require, whole
from tailproof.environments.linear import LinearBandit
from tailproof.extras import import_extra
from tailproof.noise import Varying
from tailproof.policies.base import Array

if TYPE_CHECKING:
    import gymnasium
else:
    gymnasium = import_extra("gymnasium", "gymnasium")

__all__ = ["BanditEnv", "register"]


class BanditEnv(gymnasium.Env[Array, np.int64]):
    """A bandit on one path; an observation is the vectors of the arms, of shape (K, d).

    ``info`` has `locations`, the true locations of the arms observed, and after a pull `gap`, the
    best location less the location of the arm pulled. Episodes never end by themselves: pass
    ``max_episode_steps`` to `make`.

    Parameters
    ----------
    bandit : LinearBandit
    hold : int
        After how many pulls the vectors are redrawn, if at all: the `pulls` of a filter.

    Examples
    --------
    >>> from tailproof import environments, noise
    >>> register()
    >>> bandit = environments.neutral(noise.Cauchy(), arms=4, dim=2)
    >>> env = gymnasium.make("tailproof/Bandit-v0", bandit=bandit, max_episode_steps=100)
    >>> vectors, info = env.reset(seed=0)
    >>> vectors.shape, info["locations"].shape
    ((4, 2), (4,))
    >>> _, reward, _, _, info = env.step(int(info["locations"].argmax()))
    >>> float(info["gap"])
    0.0

    Source: Gymnasium 1.4. Differences: rewards are unbounded, and may be infinite.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, bandit: LinearBandit, hold: int = 1) -> None:
        require(isinstance(bandit, LinearBandit), "bandit", "a LinearBandit", bandit)
        self.bandit, self.hold = bandit, whole("hold", hold)
        shape = bandit.contexts.arms, bandit.contexts.dim
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = gymnasium.spaces.Discrete(shape[0])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Draw a new problem."""
        super().reset(seed=seed)
        self._world = self.bandit.start(1, self.np_random)
        self._pulls = 0
        return self._seen(), {"locations": self._world.locations[0].copy()}

    def step(self, action: np.int64) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Pull an arm."""
        location = float(self._world.locations[0, action])
        gap = float(self._world.best[0]) - location
        law, chosen = self.bandit.noise, np.array([action])
        if isinstance(law, Varying):
            eta = law.sample(self.np_random, chosen, self._pulls, 1)
        else:
            eta = law.sample(self.np_random, (1, 1))
        reward = location + self.bandit.offset + float(eta[0, 0])
        self._pulls += 1
        if self._pulls % self.hold == 0:
            self._world.advance(self._pulls)
        info = {"locations": self._world.locations[0].copy(), "gap": gap}
        return self._seen(), reward, False, False, info

    def _seen(self) -> Array:
        return np.array(self._world.arms[0])


def register() -> None:
    """Register ``tailproof/Bandit-v0``, for any bandit, and an id for each named environment.

    >>> from tailproof import noise
    >>> register()
    >>> env = gymnasium.make("tailproof/KArmed-v0", noise=noise.Cauchy(), locations=(0.0, 1.0))
    >>> int(env.action_space.n)
    2
    """
    for name, entry in {"Bandit": BanditEnv, **_NAMED}.items():
        if f"tailproof/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"tailproof/{name}-v0", entry_point=entry)


def _named(make: Any) -> Any:
    def entry(hold: int = 1, **settings: Any) -> BanditEnv:
        return BanditEnv(make(**settings), hold)

    return entry


_NAMED = {
    "KArmed": _named(environments.k_armed),
    "Neutral": _named(environments.neutral),
    "Orthant": _named(environments.orthant),
}
