"""What guests are told, and what our policies tell other libraries, decision by decision."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tailproof import FixedArm, Uniform, environments, guests, hosts, noise
from tailproof.integrations.guests import base


def test_a_player_draws_anew_for_each_decision() -> None:
    player = hosts.Player(Uniform())
    arms = []
    for _ in range(30):
        arms.append(player.ask(4))
        player.tell(0.0)
    assert len(set(arms)) == 4


def test_a_player_tells_the_propensity_of_its_arm() -> None:
    player = hosts.Player(FixedArm(arm=1))
    assert (player.ask(3), player.propensity) == (1, 1.0)


def test_an_environment_adds_its_offset_and_counts_its_pulls() -> None:
    law = noise.Changing((noise.Degenerate(), noise.Rademacher(7.0)), at=(2,))
    bandit = replace(environments.k_armed(law, locations=(0.5, 1.0)), offset=-30.0)
    env = hosts.BanditEnv(bandit)
    env.reset(seed=1)
    rewards = [env.step(np.int64(0))[1] for _ in range(5)]
    assert rewards[:2] == [-29.5, -29.5]
    assert set(rewards[2:]) <= {-36.5, -22.5}


def test_a_context_of_coba_has_a_block_for_each_action() -> None:
    in_coba = pytest.importorskip("tailproof.integrations.hosts.coba", reason="not tested: coba")
    found = in_coba._arms((2.0, 3.0), ["a", "b"])
    assert found.tolist() == [[2, 3, 0, 0], [0, 0, 2, 3]]


def test_settings_go_before_those_of_an_object() -> None:
    assert guests.made(noise.Cauchy, scale=2)().scale == 2
    changed = base.Made.of(noise.Cauchy(scale=3), {"scale": 5}.items())
    assert changed().scale == 5


class Told:
    """Keeps what a guest is told."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def learn(self, *lesson: Any) -> None:
        self.lines.append(lesson[0] if len(lesson) == 1 else lesson)


def test_vw_is_told_a_cost_at_the_place_of_its_arm() -> None:
    pytest.importorskip("vowpalwabbit", reason="VW not tested")
    views: dict[Any, int] = {"arms": 2, "context": 3}  # a context has a line of its own
    for view, place in views.items():
        told, policy = Told(), guests.vw("--cb_explore_adf", view=view)
        policy._tell(told, 4, np.array([0.5]), 2, 3.0, 0.25)
        (lines,) = told.lines
        assert [i for i, line in enumerate(lines) if line.startswith("0:")] == [place]
        assert lines[place].startswith("0:-3.0:0.25 |a")


def test_vw_has_shares_that_add_up() -> None:
    pytest.importorskip("vowpalwabbit", reason="VW not tested")
    guest: Any = SimpleNamespace(predict=lambda lines: [0.5, 0.1, 0.2])
    share = guests.vw("--cb_explore_adf", view="arms")._shares(guest, 3, np.empty(0))
    assert share == pytest.approx([0.625, 0.125, 0.25])


def test_coba_is_told_the_propensity() -> None:
    learners = pytest.importorskip("coba.learners", reason="not tested: coba")
    told, policy = Told(), guests.coba(learners.BanditUCBLearner, view="arms")
    policy._tell(told, 3, np.empty(0), 1, 2.0, 0.25)
    assert told.lines == [(None, 1, 2.0, 0.25)]


def test_mabwiser_tries_every_arm_first() -> None:
    mab = pytest.importorskip("mabwiser.mab", reason="not tested: mabwiser")
    policy, rng = guests.mabwiser(mab.LearningPolicy.UCB1(1.25)), np.random.default_rng(0)
    state, arms, seen = policy.init(1, 4, 1), np.ones((1, 4, 1)), set()
    for reward in (9.0, 0.0, 0.0, 0.0):
        chosen = policy.choose(state, arms, rng)
        seen.add(int(chosen[0]))
        policy.learn(state, arms, chosen, [[reward]])
    assert seen == {0, 1, 2, 3}


@dataclass(frozen=True)
class Listening(base.Guest):
    """A guest that keeps what it is told, and with which seed."""

    told: list[Any] = field(default_factory=list, compare=False)
    view = "vectors"

    def _make(self, arms: int) -> Any:
        return []

    def _reseed(self, guest: Any, seed: int) -> None:
        guest.append(seed)

    def _ask(self, guest: Any, arms: int, seen: Any, seed: int) -> int:
        return 0

    def _tell(
        self, guest: Any, arms: int, seen: Any, chosen: int, reward: float, propensity: float
    ) -> None:
        self.told.append((guest[-1], seen.shape, chosen, reward, propensity))


def test_a_guest_is_told_each_decision_as_it_was() -> None:
    """In order, with its number as the seed, its own arms, and no more of them."""
    policy = Listening()
    state = policy.init(1, 2, 2)
    policy.learn(state, np.eye(2)[None], [1], [[5.0]], propensity=[0.25])
    policy.learn(state, np.eye(3, 2)[None], [2], [[6.0]], propensity=[0.5])
    policy.choose(state, np.eye(3, 2)[None], np.random.default_rng(0))
    assert policy.told == [(0, (2, 2), 1, 5.0, 0.25), (1, (3, 2), 2, 6.0, 0.5)]


def test_a_guest_whose_history_was_replaced_is_made_anew() -> None:
    policy = Listening()
    one, two = (policy.init(1, 2, 2) for _ in "ab")
    for state, reward in ((one, 5.0), (two, 6.0)):
        policy.learn(state, np.eye(2)[None], [1], [[reward]], propensity=[0.5])
        policy.choose(state, np.eye(2)[None], np.random.default_rng(0))
    one.put(np.array([0]), two)
    policy.choose(one, np.eye(2)[None], np.random.default_rng(0))
    assert [reward for _, _, _, reward, _ in policy.told] == [5, 6, 6]
