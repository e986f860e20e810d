"""The checks of the contract find what breaks it: each of these breaks one promise."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from rotation import briefly

from tailproof import UCB1, Median, Uniform, noise
from tailproof.policies.base import Array, Index
from tailproof.policies.state.base import ArmCounts
from tailproof.policies.state.counts import Tally
from tailproof.testing import estimators, laws, policies as checks


@dataclass(frozen=True, kw_only=True)
class OtherPathsTell(UCB1):
    def _learn(self, state: Tally, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0] + np.clip(rewards[0, 0], -1, 1))


CALLS = count()


@dataclass(frozen=True, kw_only=True)
class CountsItsCalls(UCB1):
    def _choose(self, state: Tally, arms: Array, rng: np.random.Generator) -> Index:
        return np.full(state.paths, next(CALLS) % arms.shape[1])


@dataclass(eq=False)
class Asked(Tally):
    asked: ArmCounts


@dataclass(frozen=True, kw_only=True)
class ChoosingIsLearning(UCB1):
    def _init(self, paths: int, arms: int, dim: int) -> Asked:
        return Asked.start(paths, arms, dim)

    def _choose(self, state: Any, arms: Array, rng: np.random.Generator) -> Index:
        state.asked += 1
        return super()._choose(state, arms, rng)


@dataclass(frozen=True, kw_only=True)
class WrongShares(Uniform):
    def _propensities(self, state: Any, arms: Array) -> Array:
        return np.tile([0.25, 0.25, 0.45, 0.05], (state.paths, 1))


@dataclass(eq=False)
class Forgetful(Tally):
    def fill(self, arrays: Mapping[str, ArrayLike], paths: int, prefix: str = "") -> None:
        super().fill(arrays, paths, prefix)
        self.sums = np.zeros_like(self.sums)


@dataclass(frozen=True, kw_only=True)
class RestoresHalf(UCB1):
    def _init(self, paths: int, arms: int, dim: int) -> Forgetful:
        return Forgetful.start(paths, arms, dim)


@dataclass(frozen=True, kw_only=True)
class TakesMore(UCB1):
    def restore(self, arrays: Mapping[str, ArrayLike]) -> Tally:  # type: ignore[misc]
        return super().restore({name: array for name, array in arrays.items() if name != "more"})


@dataclass(frozen=True)
class LooseTail(noise.Cauchy):
    _log_tail_limit = 2 * noise.Cauchy._log_tail_limit + 1


@dataclass(frozen=True)
class ShyMedian(Median):
    equivariant = False


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (checks.paths_do_not_mix, OtherPathsTell()),
        (checks.choose_is_pure, CountsItsCalls()),
        (checks.choose_is_pure, ChoosingIsLearning()),
        (checks.propensities_are_frequencies, WrongShares()),
        (checks.state_round_trips, RestoresHalf()),
        (checks.foreign_states_are_refused, TakesMore()),
        (laws.tail_is_as_declared, LooseTail()),
        (estimators.shift_is_as_declared, ShyMedian()),
    ],
    ids=lambda thing: getattr(thing, "__name__", type(thing).__name__),
)
def test_a_broken_promise_is_found(check: Callable[[Any], None], broken: Any) -> None:
    with pytest.raises(AssertionError):
        briefly(check, broken)


@pytest.mark.parametrize(
    ("check", "thing", "words"),
    [
        (checks.check_policy, UCB1, "policy must be a policy, such as UCB1()"),
        (laws.check_noise, "cauchy", "noise must be a noise law, such as Cauchy()"),
        (estimators.check_estimator, Median, "estimator must be an estimator, such as Median()"),
    ],
)
def test_what_is_nothing_to_check_is_refused(check: Any, thing: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        check(thing)
