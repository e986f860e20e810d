"""A step of a simulation, the same for regret and for best arms: choose, draw noise, learn."""

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.environments.arm_sets import UnitBall
from tailproof.environments.streams import drawn_together
from tailproof.noise import Varying
from tailproof.policies.base import Policy, proposing
from tailproof.simulation.cells import Cell
from tailproof.simulation.code import own_code
from tailproof.stats.estimators import Estimator, Median, Shape, Source
from tailproof.typing import Array, Index
from tailproof.wrappers.filtered import Filtered

__all__ = ["Rollout"]


class Rollout:
    """The policy of a cell in its environment.

    Filters are moved from the policy into the noise. Arms are checked when they change, noise when
    it is drawn, and all arguments of the first decision that the policy learns; later ones have the
    same shapes and types and are not checked again.

    `noise` names the random stream of the noise. With `ahead` it is drawn for several decisions at
    a time, if all have the same law. The rewards of a decision are learned `delay` decisions later.
    """

    def __init__(self, cell: Cell[Any], noise: str, *, ahead: bool, delay: int = 0) -> None:
        bandit, paths, self._cost = cell.environment, cell.paths, cell.policy.pulls
        contexts = bandit.contexts
        self.world = bandit.start(paths, cell.stream("environment"))
        self.policy, law = _unfiltered(cell.policy, self.world.noise)
        self.state = self.policy.init(paths, contexts.arms, contexts.dim)
        block = (drawn_together(paths * self._cost), paths) if ahead else None
        self._draw = _drawing(law, cell.stream(noise), self.policy.pulls, block)
        self._rng, self._offset = cell.stream(f"policy {cell.name}"), bandit.offset
        self._changes, self._ball = self.world.changes, isinstance(contexts, UnitBall)
        self._rows, self._pulled = np.arange(paths) * contexts.arms, 0
        self._arms = self._known = np.empty(0)  # the arms that are checked, and their locations
        self._delay, self._waiting = delay, deque[tuple[Any, ...]]()
        self._checked = False
        self._name = cell.name if own_code(cell.policy) else None  # which a user may have written

    def choose(self) -> tuple[Index, Array]:
        """Return the chosen arms, and their locations as a column."""
        world, policy = self.world, self.policy
        if self._ball:
            world.offer(proposing(policy).propose(self.state, self._rng))
        if world.locations is not self._known:
            if world.arms is not self._arms:
                self._arms = policy.check_arms(self.state, world.arms)
            self._known = world.locations
            self._locations, self.best = world.locations.reshape(-1, 1), world.best[:, None]
        if self._ball:
            chosen = self._rows * 0
        else:
            chosen = policy.choose_unchecked(self.state, self._arms, self._rng)
            if self._name is not None:
                _check_choice(chosen, world.locations.shape, self._name)
        return chosen, self._locations.take(self._rows + chosen, axis=0)

    def learn(self, chosen: Index, location: Array) -> None:
        """Draw rewards of the chosen arms, let the policy learn rewards that came, and move on."""
        noise = self._draw(chosen, self._pulled)
        rewards = location + self._offset + noise if self._offset else location + noise
        self._waiting.append((self._arms, chosen, rewards))
        if len(self._waiting) > self._delay:
            learn = self.policy.learn_unchecked if self._checked else self.policy.learn
            learn(self.state, *self._waiting.popleft())
            self._checked = True
        self._pulled += self._cost
        if self._changes:
            self.world.advance(self._pulled)

    def warn_of_nan(self) -> None:
        """Warn of a user's policy that learned NaN: such an index loses without a word."""
        arrays = {} if self._name is None else self.state.to_arrays()
        floats = {name: array for name, array in arrays.items() if array.dtype.kind == "f"}
        undefined = [name for name, array in floats.items() if np.isnan(array).any()]
        if undefined:
            warnings.warn(
                f"policy {self._name!r} has NaN in its state at the end ({', '.join(undefined)}); "
                "an index that is NaN loses against any other",
                UserWarning,
                stacklevel=2,
            )

    def keep(self, paths: NDArray[np.bool_]) -> None:
        """Continue with these paths only."""
        self.state = self.state.take(paths)
        self.world.keep(paths)
        self._rows = self._rows[: len(self.world.arms)]


def _check_choice(chosen: Any, shape: Shape, name: str) -> None:
    """Refuse an index that is no arm of its path: it would silently be an arm of the next path."""
    paths, arms = shape
    index = np.asarray(chosen)
    ok = index.shape == (paths,) and index.dtype.kind in "iu"
    if not (ok and index.min() >= 0 and index.max() < arms):
        raise ValueError(
            f"chosen must be whole numbers from 0 to {arms - 1}, one for each of {paths} paths; "
            f"policy {name!r} chose {chosen!r:.200}"
        )


def _drawing(
    noise: Source | Varying, rng: np.random.Generator, pulls: int, ahead: Shape | None
) -> Callable[[Index, int], Array]:
    """Return a function that draws the noise of a decision, given its arms and the pulls before.

    `ahead` is the number of decisions and of paths to draw at a time; None if laws differ.
    """

    def checked(drawn: Array, shape: Shape) -> Array:
        if np.shape(drawn) != shape:  # fewer numbers would be broadcast: one for all paths
            raise ValueError(
                f"noise must draw samples of the shape it is asked for, {shape}; {noise!r} drew "
                f"{np.shape(drawn)}"
            )
        if math.isnan(drawn.min()):
            raise ValueError(f"noise must not draw NaN, as {noise!r} did")
        return drawn

    if isinstance(noise, Varying):
        return lambda chosen, pulled: checked(
            noise.sample(rng, chosen, pulled, pulls), (len(chosen), pulls)
        )
    if ahead is None:
        return lambda chosen, pulled: checked(
            noise.sample(rng, (len(chosen), pulls)), (len(chosen), pulls)
        )

    def rows() -> Iterator[Array]:
        while True:
            yield from checked(noise.sample(rng, (*ahead, pulls)), (*ahead, pulls))

    coming = rows()
    return lambda chosen, pulled: next(coming)


@dataclass(frozen=True)
class _Reduced:
    """The error of an estimate from `repeats` samples, as a noise."""

    noise: Source
    estimator: Estimator
    repeats: int

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.estimator.draw(self.noise, rng, (*shape, self.repeats))

    def sample_median(self, k: int, rng: np.random.Generator, shape: Shape) -> Array:
        return Median()(self.sample(rng, (*shape, k)))


def _unfiltered(
    policy: Policy[Any], noise: Source | Varying
) -> tuple[Policy[Any], Source | Varying]:
    """Move filters from the policy into the noise.

    If the filter follows shifts, the policy behind it has the same law as the policy alone under
    the noise of the filter's output, which can be drawn directly. Noise that varies with the arm or
    the pull is left as it is.
    """
    if isinstance(noise, Varying):
        return policy, noise
    while isinstance(policy, Filtered) and policy.estimator.equivariant:
        noise = _Reduced(noise, policy.estimator, policy.repeats)
        policy = policy.policy
    return policy, noise
