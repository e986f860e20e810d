"""How the tests let policies play."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof import Policy
from tailproof.typing import Array

Trace = NDArray[np.int64]


def offers(decisions: int, paths: int, arms: int, dim: int, seed: int = 0) -> Array:
    """Return unit vectors shrunk to a different length for each arm: rounding decides nothing."""
    x = np.random.default_rng(seed).standard_normal((decisions, paths, arms, dim))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x * np.linspace(0.5, 1, arms)[:, None])


def play(
    policy: Policy[Any], arms: Array | None, rewards: Array, rng: Any = None, state: Any = None
) -> tuple[Any, Trace]:
    """Play a table of rewards; return the state and the choices, of shape (decisions, paths).

    Arms have the shape (decisions, paths, K, d), None for arms without vectors; rewards the shape
    (decisions, paths, K), or (decisions, paths, K, pulls) where several are wanted.
    """
    table = rewards if rewards.ndim == 4 else rewards[..., None]
    vectors = np.ones((*table.shape[:3], 1)) if arms is None else arms
    rng = np.random.default_rng(0) if rng is None else rng
    state = policy.init(*vectors.shape[1:]) if state is None else state
    trace = []
    for offer, outcome in zip(vectors, table, strict=True):
        chosen = policy.choose(state, offer, rng)
        policy.learn(state, offer, chosen, outcome[np.arange(len(chosen)), chosen])
        trace.append(chosen)
    return state, np.array(trace)


def trace_of(policy: Policy[Any], arms: Array | None, rewards: Array, rng: Any = None) -> Trace:
    """Return the choices alone, see `play`."""
    return play(policy, arms, rewards, rng)[1]


def race(
    policy: Any, arms: Array, rewards: Callable[[int, int], float], decisions: int
) -> tuple[Any, list[int]]:
    """Play one path until an arm is named; rewards are a function of arm and decision."""
    rng, state = np.random.default_rng(0), policy.init(1, *arms.shape)
    trace = []
    for t in range(decisions):
        chosen = policy.choose(state, arms[None], rng)
        reward = [[rewards(int(chosen[0]), t)] * policy.pulls]
        policy.learn(state, arms[None], chosen, reward)
        trace.append(int(chosen[0]))
        if policy.stopped(state).all():
            break
    return state, trace


def row(trace: Trace) -> str:
    """Return the choices of the only path as one readable row."""
    return "".join(map(str, trace[:, 0]))
