"""PEGE against a plain one-path reference, on the ball, and against chance."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from traces import play, row, trace_of

from tailproof import PEGE, Filtered, MeanOfMedians, Median, environments, noise, simulate
from tailproof.typing import Array


def schedule(dim: int) -> Iterator[tuple[int, int | None]]:
    """Give the cycle of every decision, and which exploring arm it pulls, if any."""
    cycle = 0
    while True:
        cycle += 1
        yield from ((cycle, k) for k in range(dim))
        yield from [(cycle, None)] * cycle


def plain(arms: Array, table: Array, basis: list[int]) -> list[int]:
    """Play one path by the book: least squares on exploring rewards, greedy in between."""
    design: list[Array] = []
    response: list[float] = []
    trace: list[int] = []
    for outcome, (_, k) in zip(table, schedule(arms.shape[1]), strict=False):
        if k is None:
            theta = np.linalg.lstsq(np.array(design), np.array(response))[0]
            trace.append(int(np.argmax(arms @ theta)))
        else:
            trace.append(basis[k])
            design.append(arms[basis[k]])
            response.append(outcome[basis[k]])
    return trace


@pytest.mark.parametrize("length", [1.0, 1e-9, 1e9])
def test_policy_is_the_published_algorithm(length: float) -> None:
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((2, 6, 3))
    table = arms @ [0.2, -0.5, 0.3] + rng.standard_normal((400, 2, 6))
    state, trace = play(PEGE(), np.tile(arms * length, (400, 1, 1, 1)), table)
    for path in range(2):
        basis = trace[:3, path].tolist()
        assert np.linalg.matrix_rank(arms[path, basis]) == 3
        assert basis == state.basis[path].tolist()
        assert trace[:, path].tolist() == plain(arms[path], table[:, path], basis)


def test_golden_trace() -> None:
    rng = np.random.default_rng(5)
    arms, table = rng.standard_normal((1, 5, 3)), rng.standard_normal((40, 1, 5)) + np.arange(5)
    golden = "3404340443404443404444340444443404444443"
    assert row(trace_of(PEGE(), np.tile(arms, (40, 1, 1, 1)), table)) == golden


def test_coordinates_and_the_direction_of_the_estimate_are_played_on_the_ball() -> None:
    """With few decisions and with 10¹² of them, and on a path that saw an infinite reward."""
    policy, rng, theta = PEGE(), np.random.default_rng(3), np.array([0.3, -0.8, 0.1])
    state = policy.init(2, 1, 3)
    rewards: list[list[float]] = [[], [], []]
    for _, (_, k) in zip(range(300), schedule(3), strict=False):
        x = policy.propose(state, rng)
        np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1)
        outcome = x @ theta + rng.standard_normal(2)
        if k is None:
            mean = np.array([np.mean(own) for own in rewards])
            np.testing.assert_allclose(x[0], mean / np.linalg.norm(mean), atol=1e-7)
        else:
            assert x.tolist() == np.eye(3)[[k, k]].tolist()
            rewards[k].append(outcome[0])
            outcome[1] = math.inf if len(rewards[0]) == 3 else outcome[1]
        policy.learn(state, x[:, None], [0, 0], outcome[:, None])


def test_a_cycle_begins_where_the_last_one_ends_however_long_it_was() -> None:
    """Exploring decisions are those of the schedule, also near 10¹⁵ decisions."""
    policy, rng = PEGE(), np.random.default_rng(0)
    for cycles in (1, 2, 1000, 44_000_000):
        start = cycles * 4 + cycles * (cycles + 1) // 2
        state = policy.init(7, 1, 4)
        state.block[..., 4] = [0.0, 0.0, 0.6, 0.8]
        state.decisions[:] = start + np.array([-1, 0, 1, 3, 4, 4 + cycles, 5 + cycles])
        greedy, units = [0.0, 0.0, 0.6, 0.8], np.eye(4).tolist()
        expected = [greedy, units[0], units[1], units[3], greedy, greedy, units[0]]
        np.testing.assert_allclose(policy.propose(state, rng), expected, atol=1e-15)


def test_the_estimate_is_in_the_unit_of_the_arms() -> None:
    policy, arms, theta = PEGE(), 5 * np.eye(2)[None], np.array([0.3, -0.7])
    state = policy.init(1, 2, 2)
    for arm in (0, 1):
        policy.learn(state, arms, [arm], [[arms[0, arm] @ theta]])
    np.testing.assert_allclose(policy.estimate(state)[0], theta)


def test_greedy_rewards_are_not_learned_from() -> None:
    rng = np.random.default_rng(1)
    arms = np.tile(rng.standard_normal((1, 4, 3)), (60, 1, 1, 1))
    table = rng.standard_normal((60, 1, 4))
    state, trace = play(PEGE(), arms, table)
    wild = table.copy()
    for t, (_, k) in zip(range(60), schedule(3), strict=False):
        if k is None:
            wild[t] = math.inf
    other, same = play(PEGE(), arms, wild)
    np.testing.assert_array_equal(trace, same)
    np.testing.assert_array_equal(state.theta, other.theta)


def test_paths_of_different_age_keep_their_own_cycles() -> None:
    rng = np.random.default_rng(1)
    arms, table = rng.standard_normal((1, 5, 3)), rng.standard_normal((80, 1, 5))
    offers = np.tile(arms, (80, 1, 1, 1))
    _, trace = play(PEGE(), offers, table)
    policy = PEGE()
    state, _ = play(policy, offers[:33], table[:33])
    both = policy.init(2, 5, 3)
    both.put(np.array([1]), state)
    for t in range(47):
        chosen = policy.choose(both, np.tile(arms, (2, 1, 1)), np.random.default_rng(0))
        assert chosen.tolist() == [trace[t, 0], trace[t + 33, 0]]
        outcome = np.array([table[t, 0, chosen[0]], table[t + 33, 0, chosen[1]]])
        policy.learn(both, np.tile(arms, (2, 1, 1)), chosen, outcome[:, None])


def test_arms_that_do_not_span_are_refused() -> None:
    policy = PEGE()
    arms = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]])
    with pytest.raises(ValueError, match="the arms span 2 of 3 dimensions; add arms or drop"):
        policy.choose(policy.init(1, 3, 3), arms, np.random.default_rng(0))


def test_regret_on_the_ball_grows_like_the_root() -> None:
    """Of 100 paths: four times the pulls cost about twice the regret, where chance costs 4 times.

    The ratio has a standard error below 0.01; the bounds are 20 of them away.
    """
    bandit = environments.unit_ball(noise.Normal(0.5), dim=4)
    settings: dict[str, Any] = {"horizon": 8000, "paths": 100, "checkpoints": [2000, 8000]}
    result = simulate({"pege": PEGE()}, bandit, **settings)
    early, late = result.curves["pege"].regret.mean(axis=0)
    assert 1.8 < late / early < 2.4
    assert late < 0.2 * 8000


def test_a_filter_goes_around_it_on_the_ball() -> None:
    bandit = environments.unit_ball(noise.Cauchy(), dim=3)
    filtered = Filtered(PEGE(), repeats=9, estimator=MeanOfMedians(block=9))
    result = simulate({"pege": PEGE(), "filtered": filtered}, bandit, horizon=9000, paths=40)
    regret = {name: curves.regret[:, -1].mean() for name, curves in result.curves.items()}
    assert regret["filtered"] < 0.5 * regret["pege"]
    assert Filtered(PEGE(), repeats=3, estimator=Median()).pulls == 3
