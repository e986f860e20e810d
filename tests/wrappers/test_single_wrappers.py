"""Each wrapper by itself: what it keeps, what it answers and what the policy inside is told."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tailproof import OFUL, UCB1, AutoFiltered, Capped, Filtered, FromRegret, Negated, Scaled
from tailproof.wrappers.compositions import sup_btc_filtered
from tailproof.wrappers.filtered import _location

ARMS = np.eye(2)[None]


@dataclass(frozen=True, kw_only=True)
class Watched(UCB1):
    """Keeps how many arms were on offer, and the propensity of the choice."""

    seen: list[Any] = field(default_factory=list, compare=False)
    _weighs = True

    def _learn_weighted(
        self, state: Any, arms: Any, chosen: Any, rewards: Any, propensity: Any
    ) -> None:
        self.seen.append((arms.shape[1], propensity.tolist()))
        super()._learn_weighted(state, arms, chosen, rewards, propensity)


def test_more_than_half_of_the_rewards_are_enough() -> None:
    assert [Filtered(UCB1(), repeats=n).least for n in (1, 4, 5)] == [1, 3, 3]
    assert Filtered(Filtered(UCB1(), repeats=3), repeats=5).least == 15


def test_where_recorded_rewards_lie() -> None:
    """The centre is the median of all; an arm may be as far below it as above."""
    assert _location([0, 9, 10, 10, 10], ["a", "b", "b", "b", "b"]) == (10, 10)
    assert _location([0, 1, 2, np.inf, np.inf, np.nan], None) == (2, 0)


def test_estimates_have_the_units_of_the_rewards() -> None:
    policy, rng = Capped(OFUL()), np.random.default_rng(0)
    state = policy.init(1, 2, 2)
    for t in range(9):
        policy.learn(state, ARMS, [t % 2], 50 * rng.standard_normal((1, 1)))
    unit = state.unit * state.sales.unit
    assert 10 < unit[0] < 100
    np.testing.assert_array_equal(policy.estimate(state), state.inner.theta * unit)
    costs = Negated(OFUL())
    paid = costs.init(1, 2, 2)
    costs.learn(paid, ARMS, [0], [[3.0]])
    assert np.asarray(costs.estimate(paid))[0, 0] > 0


def test_longer_arms_leave_less_room() -> None:
    assert Scaled(OFUL(), stretch=4)._longest == OFUL()._longest / 4


def test_plays_after_the_last_decision_change_no_answer() -> None:
    policy = FromRegret(UCB1(), decisions=2)
    state = policy.init(1, 2, 2)
    for arm in (0, 0, 1, 1, 1):
        policy.learn(state, ARMS, [arm], [[0.0]])
    assert policy.recommend(state).tolist() == [0]


@pytest.mark.parametrize("wrap", [Capped, AutoFiltered])
def test_decisions_are_learned_again_as_they_were(wrap: Any) -> None:
    inside = Watched()
    policy = wrap(inside)
    state = policy.init(1, 2, 2)
    rewards = np.arange(float(policy.pulls))[None]
    policy.learn(state, ARMS, [0], rewards, propensity=[0.25])
    policy.learn(state, np.eye(3, 2)[None], [2], rewards, propensity=[0.5])
    assert inside.seen[-2:] == [(2, [0.25]), (3, [0.5])]


def test_paths_that_know_their_units_keep_them() -> None:
    """Path 0 saw equal rewards only and learns its unit later; path 1 must not learn its again."""
    policy = AutoFiltered(UCB1(), repeats=3, settle=2)
    state, arms = policy.init(2, 2, 2), np.repeat(ARMS, 2, axis=0)
    for _ in range(2):
        policy.learn(state, arms, [0, 0], [[5, 5, 5], [1, 2, 4]])
    before = state.unit.copy()
    policy.learn(state, arms, [0, 0], [[5, 6, 8], [1, 200, 4000]])
    assert before[0] == 0 < state.unit[0]
    assert state.unit[1] == before[1] > 0


def test_a_pilot_is_restored_with_room_for_the_oldest_path() -> None:
    policy = Capped(UCB1())
    old, young = (policy.init(1, 2, 2) for _ in "ab")
    for state, age in ((old, 3), (young, 1)):
        for _ in range(age):
            policy.learn(state, ARMS, [0], [[1.0]])
    both = old.take([0, 0])
    both.put(np.array([1]), young)
    arrays = both.to_arrays()
    policy.restore(arrays)
    short = {name: a[:, :1] if name.startswith("pilot_") else a for name, a in arrays.items()}
    with pytest.raises(ValueError, match="at least 3"):
        policy.restore(short)


def test_a_composition_takes_an_epsilon() -> None:
    policy: Any = sup_btc_filtered(repeats=9, epsilon=0.5, horizon=100, moment_bound=1).policy
    assert policy.epsilon == 0.5
