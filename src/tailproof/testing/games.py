"""What the checks of a policy play: prepared arms and rewards, on a few paths."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.base import Array, Index, Policy, State

__all__ = [
    "ARMS",
    "DECISIONS",
    "DIM",
    "PATHS",
    "OnePath",
    "arms",
    "play",
    "rewards",
    "wants_context",
]

PATHS, ARMS, DIM, DECISIONS = 3, 4, 3, 200
"""The size of a game: all wrappers pass their pilot phases in it, and buffers double four times."""


def play(
    policy: Policy[Any],
    offers: Array,
    table: Array,
    state: State | None = None,
    rng: Any = None,
) -> tuple[Any, Index]:
    """Play prepared decisions; return the final state and the choices."""
    rng = np.random.default_rng(1) if rng is None else rng
    state = policy.init(*offers[0].shape) if state is None else state
    trace = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for offer, reward in zip(offers, table, strict=True):
            chosen = policy.choose(state, offer, rng)
            policy.learn(state, offer, chosen, reward)
            trace.append(chosen)
    return state, np.array(trace)


def arms(policy: Policy[Any], most: int = ARMS) -> Array:
    """Return unit vectors; the same for all arms if a guest takes one context."""
    x = np.random.default_rng(3).standard_normal((DECISIONS, PATHS, most, DIM))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return x[:, :, :1].repeat(most, axis=2) if wants_context(policy) else x


def wants_context(policy: Policy[Any]) -> bool:
    """Whether one vector is the context of all arms."""
    return policy.view == "context"


def rewards(policy: Policy[Any], seed: int = 4) -> Array:
    """Return standard normal rewards for every decision, path and pull."""
    return np.random.default_rng(seed).standard_normal((DECISIONS, PATHS, policy.pulls))


class OnePath:
    """A generator for one path: draws for a whole batch, and returns the row of that path."""

    def __init__(self, path: int) -> None:
        self._path = path
        self._rng = np.random.default_rng(1)

    def __getattr__(self, method: str) -> Callable[..., NDArray[Any]]:
        def draw(*args: Any, **kwargs: Any) -> NDArray[Any]:
            *first, size = (*args, kwargs.pop("size")) if "size" in kwargs else args
            shape = (PATHS, *np.atleast_1d(size)[1:])
            rows: NDArray[Any] = getattr(self._rng, method)(*first, size=shape, **kwargs)
            return rows[self._path : self._path + 1]

        return draw
