"""A hundred thousand calls with whatever comes to hand: refused in a sentence, or learned whole."""

import copy
import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from instances import ALL, OTHER_SETTINGS, SAMPLED, VARIANTS
from numpy.typing import NDArray

from tailproof import Policy, State

GARBAGE: list[Any] = [
    None,
    "",
    "one",
    math.nan,
    math.inf,
    -1,
    0,
    10**400,
    2.5,
    1j,
    True,
    b"x",
    object(),
    [],
    [[1], [1, 2]],
    {},
    np.array("a"),
    np.zeros((2, 0)),
    np.full((2, 4, 3), math.nan),
    np.ones((2, 4, 3), dtype=complex),
]
SEVERAL = [
    *(*ALL, *VARIANTS, *OTHER_SETTINGS),
    *(policy for group in SAMPLED.values() for policy in group[3::10]),
]
"""Every policy, and every wrapper around a few of them."""
CALLS_EACH = 1250  # times 80 policies: 10⁵


def same(first: State, second: State) -> bool:
    one, two = first.to_arrays(), second.to_arrays()
    return one.keys() == two.keys() and all(
        np.array_equal(a, two[name], equal_nan=a.dtype.kind == "f") for name, a in one.items()
    )


def refused(call: Callable[..., object], *args: Any) -> bool:
    """Whether the call raised ``ValueError``; any other error fails the test."""
    try:
        call(*args)
    except ValueError:
        return True
    return False


def a_lesson(policy: Policy[Any], rng: np.random.Generator) -> list[NDArray[Any]]:
    """Return arms, choices and rewards for two paths: wild ones on path 0, tame ones on path 1."""
    arms = rng.standard_normal((2, 4, 3))
    arms[0] *= 10.0 ** rng.choice([0, 0, 9, -9, 40])
    rewards = rng.standard_normal((2, policy.pulls))
    rewards[0] *= rng.choice([1.0, 1e-300, 1e150, 1e300, math.inf])
    rewards[np.isnan(rewards)] = 0.0
    return [arms, rng.integers(4, size=2), rewards]


def fuzz(policy: Policy[Any], calls: int, rng: np.random.Generator) -> None:
    state, alone = policy.init(2, 4, 3), policy.init(1, 4, 3)
    for _ in range(calls):
        arms, chosen, rewards = lesson = a_lesson(policy, rng)
        kind = rng.integers(6)
        if kind < 3:  # a good lesson, wild on path 0
            if not refused(policy.learn, state, arms, chosen, rewards):
                policy.learn(alone, arms[1:], chosen[1:], rewards[1:])
            refused(policy.choose, state, arms, rng)
        elif kind == 3:  # a lesson with something wrong
            before = state.copy()
            lesson[rng.integers(3)] = GARBAGE[rng.integers(len(GARBAGE))]
            if refused(policy.learn, state, *lesson):
                assert same(before, state)
            else:  # it was good enough for both paths
                state = before
        elif kind == 4:  # a choice among something wrong
            before = state.copy()
            wrong: list[Any] = [state, arms, rng]
            wrong[rng.integers(3)] = GARBAGE[rng.integers(len(GARBAGE))]
            refused(policy.choose, *wrong)
            assert same(before, state)
        else:  # a state with something wrong
            arrays: dict[str, Any] = state.to_arrays()
            name = list(arrays)[rng.integers(len(arrays))]
            arrays[name] = GARBAGE[rng.integers(len(GARBAGE))]
            refused(policy.restore, arrays)
    assert same(state.take([1]), alone)


@pytest.mark.parametrize("policy", ALL + VARIANTS, ids=repr)
def test_a_little_of_everything(policy: Policy[Any]) -> None:
    fuzz(policy, 60, np.random.default_rng(7))


@pytest.mark.slow
@pytest.mark.parametrize("policy", SEVERAL[:80], ids=repr)
def test_a_hundred_thousand_calls(policy: Policy[Any]) -> None:
    fuzz(policy, CALLS_EACH, np.random.default_rng(2021))


@pytest.mark.parametrize("policy", SEVERAL, ids=repr)
def test_recipes_refuse_garbage_or_work(policy: Any) -> None:
    rng = np.random.default_rng(11)
    for part in fields(policy):
        for garbage in GARBAGE:
            try:
                other = replace(copy.copy(policy), **{part.name: garbage})
                other.init(2, 4, 3)
            except ValueError:
                continue
            if other.pulls < 10_000:
                fuzz(other, 3, rng)
