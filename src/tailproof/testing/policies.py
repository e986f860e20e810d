"""The checks of a policy."""

import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom

from tailproof.checks import require
from tailproof.policies.base import Policy, State
from tailproof.testing import games
from tailproof.testing.asserting import FALSE_ALARM, assert_raises, assert_same, recipe_is_frozen
from tailproof.testing.changes import CHANGES

__all__ = ["POLICY_CHECKS", "check_policy"]


def check_policy(policy: Policy[Any]) -> None:
    """Raise ``AssertionError`` unless the policy passes all `POLICY_CHECKS`."""
    require(isinstance(policy, Policy), "policy", "a policy, such as UCB1()", policy)
    for check in POLICY_CHECKS:
        check(policy)


def choices_are_arms(policy: Policy[Any]) -> None:
    """Each path gets the index of one of its arms, and decisions are counted."""
    state, trace = games.play(policy, games.arms(policy), games.rewards(policy))
    assert trace.shape == (games.DECISIONS, games.PATHS)
    assert trace.dtype.kind == "i"
    assert trace.min() >= 0
    assert trace.max() < games.ARMS
    assert state.decisions.tolist() == [games.DECISIONS] * games.PATHS


def choose_is_pure(policy: Policy[Any]) -> None:
    """Choosing changes nothing in the state; the same random numbers give the same choice."""
    state, _ = games.play(policy, games.arms(policy), games.rewards(policy))
    before = state.to_arrays()
    first, second = (
        policy.choose(state, games.arms(policy)[0], np.random.default_rng(5)) for _ in "ab"
    )
    assert_same(before, state.to_arrays())
    np.testing.assert_array_equal(first, second)


def paths_do_not_mix(policy: Policy[Any]) -> None:
    """What happens on one path changes no bit on the others.

    Path 0 gets absurd rewards, or arms 10⁹ times as long or short as the others', less if the
    policy refuses such lengths.
    """
    arms, rewards = games.arms(policy), games.rewards(policy)
    calm = games.play(policy, arms, rewards)
    wild = []
    for shock in ([1e300, -1e300], [math.inf], [math.inf, -math.inf]):
        shocked = rewards.copy()
        third = shocked[2 : 9 * games.DECISIONS // 20 : 3, 0]
        third[:] = np.resize(shock, len(third))[:, None]
        wild.append(games.play(policy, arms, shocked))
    long = min(1e9, policy._longest / 2)
    for lengths in ([long], [1 / long, long, 1.0]):
        stretched = arms.copy()
        shape = (games.DECISIONS, 1, 1) if games.wants_context(policy) else (games.ARMS, 1)
        stretched[:, 0] *= np.resize(lengths, shape)
        wild.append(games.play(policy, stretched, rewards))
    for state, trace in wild:
        np.testing.assert_array_equal(calm[1][:, 1:], trace[:, 1:])
        assert_same(calm[0].take([1, 2]).to_arrays(), state.take([1, 2]).to_arrays())


def batch_equals_singles(policy: Policy[Any]) -> None:
    """A path in a batch does the same as alone; random draws have the paths axis first."""
    arms, rewards = games.arms(policy), games.rewards(policy)
    state, trace = games.play(policy, arms, rewards)
    for path in range(games.PATHS):
        rows = slice(path, path + 1)
        alone, expected = games.play(
            policy, arms[:, rows], rewards[:, rows], rng=games.OnePath(path)
        )
        np.testing.assert_array_equal(trace[:, rows], expected)
        assert_same(state.take([path]).to_arrays(), alone.to_arrays())


def state_round_trips(policy: Policy[Any]) -> None:
    """A state that is saved as plain arrays halfway and restored continues bit for bit.

    So does a pickled or copied state, and a state that is split into paths and joined again.
    """
    arms, rewards, half = games.arms(policy), games.rewards(policy), games.DECISIONS // 2
    state, _ = games.play(policy, arms[:half], rewards[:half])
    arrays = state.to_arrays()
    paths_first = (a.shape[0] == games.PATHS for a in arrays.values() if a.ndim)
    assert all(paths_first), "paths come first"
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as saved:
        restored = policy.restore(saved)
    again = state.take([0] * games.PATHS)
    for path in range(games.PATHS):
        again.put(np.array([path]), state.take([path]))
    others = [restored, pickle.loads(pickle.dumps(state)), state.copy(), again]
    for other in others:
        assert_same(arrays, other.to_arrays())
    first, *rest = (games.play(policy, arms[half:], rewards[half:], s) for s in (state, *others))
    for other in rest:
        np.testing.assert_array_equal(first[1], other[1])
        assert_same(first[0].to_arrays(), other[0].to_arrays())


def arms_come_and_go(policy: Policy[Any]) -> None:
    """K may change from call to call, unless the state has `fixed_arms`.

    A state that starts with fewer arms equals a state that started with all arms, once it sees all
    arms. A policy that has seen more arms than are offered chooses among the offered arms.
    """
    more, rewards, rng = (
        games.arms(policy, 2 * games.ARMS),
        games.rewards(policy),
        np.random.default_rng(6),
    )
    arms = more[:, :, : games.ARMS]
    state, _ = games.play(policy, arms[:9], rewards[:9])
    if state.fixed_arms:
        before = state.to_arrays()
        for offer in (arms[9, :, :-1], more[9]):
            assert_raises(policy.choose, state, offer, rng)
            assert_raises(policy.learn, state, offer, np.zeros(games.PATHS, np.int64), rewards[9])
        assert_same(before, state.to_arrays())
        return
    few = policy.init(games.PATHS, games.ARMS - 1, games.DIM)
    grown = games.play(policy, arms[:9], rewards[:9], few)[0]
    assert_same(state.to_arrays(), grown.to_arrays())
    times = min(40, games.DECISIONS - 9)
    offered = np.random.default_rng(7).integers(
        games.ARMS - 1, 2 * games.ARMS, times, endpoint=True
    )
    for t, most in enumerate(offered.tolist(), 9):
        offer = more[t, :, :most]
        before = state.to_arrays()
        chosen = policy.choose(state, offer, rng)
        assert chosen.max() < most
        assert_same(before, state.to_arrays())
        policy.learn(state, offer, chosen, rewards[t])
    assert state.arms == offered.max()
    restored = policy.restore(before)
    policy.learn(restored, offer, chosen, rewards[t])
    assert_same(state.to_arrays(), restored.to_arrays())


def propensities_are_frequencies(policy: Policy[Any]) -> None:
    """If a policy reports its propensities, its choices are as frequent as the propensities say.

    Each share is tested at its part of a false-alarm rate of 10⁻⁶.
    """
    draws, arms, rng = 300, games.arms(policy)[0], np.random.default_rng(2021)
    for state in (
        policy.init(games.PATHS, games.ARMS, games.DIM),
        games.play(policy, games.arms(policy), games.rewards(policy))[0],
    ):
        before = state.to_arrays()
        share = policy.propensities(state, arms)
        assert_same(before, state.to_arrays())
        if share is None:
            return
        assert share.shape == (games.PATHS, games.ARMS)
        assert share.min() >= 0
        np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-6)
        chosen = np.stack([policy.choose(state, arms, rng) for _ in range(draws)])
        seen = (chosen[..., None] == np.arange(games.ARMS)).sum(axis=0)
        share = np.clip(share, 0, 1)
        tail = np.minimum(binom.cdf(seen, draws, share), binom.sf(seen - 1, draws, share))
        assert tail.min() > FALSE_ALARM / (4 * share.size)


def foreign_states_are_refused(policy: Policy[Any]) -> None:
    """Arrays of another policy or shape, and damaged arrays, are not restored."""
    arrays = policy.init(games.PATHS, games.ARMS, games.DIM).to_arrays()
    policy.restore(arrays)
    for spoiled in (
        arrays | {"policy": np.array("SomeoneElse")},
        arrays | {"format": np.array(0)},
        arrays | {"arms": np.array(games.ARMS + 0.5)},
        arrays | {"decisions": arrays["decisions"][:0]},
        arrays | {"decisions": arrays["decisions"] - 1},
        arrays | {"more": np.zeros(games.PATHS)},
        {name: a for name, a in arrays.items() if name != "format"},
        {},
    ):
        assert_raises(policy.restore, spoiled)
    for name, array in arrays.items():
        if array.ndim:
            assert_raises(policy.restore, arrays | {name: array[:, None]})
            if name != "decisions":  # which says how many paths there are
                assert_raises(policy.restore, arrays | {name: array[:-1]})
            assert_raises(policy.restore, arrays | {name: array.astype(str)})
    stranger = policy.init(1, games.ARMS, games.DIM)
    stranger.policy = "SomeoneElse"
    assert_raises(policy.choose, stranger, games.arms(policy)[0, :1], np.random.default_rng(0))


def lost_rewards_are_made_up_for(policy: Policy[Any]) -> None:
    """If rewards are lost, the rewards that came are repeated in turn."""
    assert 1 <= policy.least <= policy.pulls
    few, full = (policy.init(games.PATHS, games.ARMS, games.DIM) for _ in range(2))
    arms, chosen = games.arms(policy)[0], np.zeros(games.PATHS, dtype=np.int64)
    came = games.rewards(policy)[0][:, : policy.least]
    policy.learn(few, arms, chosen, came)
    policy.learn(full, arms, chosen, came[:, np.arange(policy.pulls) % policy.least])
    assert_same(few.to_arrays(), full.to_arrays())


def bad_input_is_refused(policy: Policy[Any]) -> None:
    """A NaN, a wrong shape or an impossible choice raises, and nothing is half learned.

    An arm that is not finite is refused even if it was not chosen.
    """
    state, trace = games.play(policy, games.arms(policy), games.rewards(policy))
    arms, chosen, rewards = games.arms(policy)[0], trace[0], games.rewards(policy)[0]
    before, rng = state.to_arrays(), np.random.default_rng(0)
    with_nan = rewards.copy()
    with_nan[-1, -1] = np.nan
    lessons: list[tuple[Any, ...]] = [
        (arms, chosen, with_nan),
        (arms, chosen, rewards[:-1]),
        (arms, chosen, rewards[:, : policy.least - 1]),
        (arms, chosen, np.hstack([rewards, rewards])),
        (arms, chosen + games.ARMS, rewards),
        (arms, chosen - games.ARMS, rewards),
        (arms, chosen * 1.0, rewards),
        (arms, chosen[:-1], rewards),
        *((arms, chosen, rewards, np.full(games.PATHS, p)) for p in (0, -0.5, 1.5, math.nan)),
        (arms, chosen, rewards, np.full(games.PATHS - 1, 0.5)),
    ]
    offers = [arms[0], arms[:-1], arms[:, :0], arms[..., :-1]]
    for value in (math.nan, math.inf, -math.inf, 1e80):
        for place in (0, (chosen[0] + 1) % games.ARMS - chosen[0]):  # the chosen arm, and another
            spoiled = arms.copy()
            spoiled[0, chosen[0] + place, 1] = value
            offers.append(spoiled)
    for offer in offers:
        lessons.append((offer, chosen, rewards))
        assert_raises(policy.choose, state, offer, rng)
    for lesson in lessons:
        assert_raises(policy.learn, state, *lesson)
        assert_same(before, state.to_arrays())
    for size in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1.5, 1, 1)):
        assert_raises(policy.init, *size)


def view_is_as_declared(policy: Policy[Any]) -> None:
    """A policy that knows arms by number ignores vectors; states declare their axes of arms."""
    if policy.view == "arms":
        first, second = (
            games.play(policy, arms, games.rewards(policy))[1]
            for arms in (games.arms(policy), np.ones_like(games.arms(policy)))
        )
        np.testing.assert_array_equal(first, second)
    _assert_axes(policy.init(1, games.ARMS, games.DIM), policy.init(1, games.ARMS + 1, games.DIM))


def _assert_axes(state: State, wider: State) -> None:
    """With one more arm, only the declared axis of each array is longer."""
    for name, array in vars(state).items():
        other = getattr(wider, name)
        if isinstance(array, State):
            _assert_axes(array, other)
        elif isinstance(array, np.ndarray):
            pairs = zip(array.shape, other.shape, strict=True)
            longer = [axis for axis, (a, b) in enumerate(pairs) if a != b]
            axis = state.arm_axis(name)
            assert longer == ([] if axis is None else [axis]), name


def invariances_hold(policy: Policy[Any]) -> None:
    """Changes of all rewards that are declared to be harmless change no decision.

    The rewards are multiples of 1/64, so that every change is exact or at least strictly
    increasing; in the second half some are infinite. Other units, even if they cause rounding,
    change no decision of the first half. Checked for arms with features, and for K arms known by
    number, where untried arms are equal.
    """
    declared, half = policy.invariances, games.DECISIONS // 2
    rewards = np.round(games.rewards(policy) * 64) / 64
    rewards[half::10] = np.copysign(math.inf, rewards[half::10])
    numbered = np.broadcast_to(
        np.eye(games.ARMS), (games.DECISIONS, games.PATHS, games.ARMS, games.ARMS)
    )
    offers = [games.arms(policy)] if games.wants_context(policy) else [games.arms(policy), numbered]
    for arms in offers if declared else []:
        _, trace = games.play(policy, arms, rewards)
        for kind in declared:
            for change in CHANGES[kind]:
                _, other = games.play(policy, arms, change(rewards))
                np.testing.assert_array_equal(trace, other, err_msg=kind)
        if "units" in declared:
            _, other = games.play(policy, arms[:half], 1e-6 * rewards[:half])
            np.testing.assert_array_equal(trace[:half], other, err_msg="units")


POLICY_CHECKS: tuple[Callable[[Policy[Any]], None], ...] = (
    recipe_is_frozen,
    choices_are_arms,
    choose_is_pure,
    paths_do_not_mix,
    batch_equals_singles,
    state_round_trips,
    arms_come_and_go,
    propensities_are_frequencies,
    foreign_states_are_refused,
    lost_rewards_are_made_up_for,
    bad_input_is_refused,
    view_is_as_declared,
    invariances_hold,
)
"""The checks of a policy, one function each."""
