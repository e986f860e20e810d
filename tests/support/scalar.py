"""Drive a policy and its compiled form with the same arms, rewards and random numbers."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from tailproof.compiled.engine import form_of
from tailproof.compiled.forms import Sizes
from tailproof.compiled.streams import Words, begin_stream, normal_pair, stream_keys, uniform
from tailproof.compiled.targets import Bound, bind, compile_for
from tailproof.policies.base import Policy, unwarned
from tailproof.typing import Array, Index
from tailproof.wrappers.base import innermost


def bound(part: Any, **numbers: int) -> Bound:
    """Return a part of a form with the sizes that the loop over paths passes on."""
    if isinstance(part, Bound):
        return bind(part.function, **numbers, **dict(part.names))
    return bind(part, **numbers)


class Repeated:
    """A random generator that hands out what the compiled form draws from its stream."""

    def __init__(self, g: Words) -> None:
        self.g = g.copy()

    def standard_normal(self, shape: Any) -> Array:
        count = int(np.prod(shape))
        pairs = [normal_pair(self.g) for _ in range(-(-count // 2))]
        return np.array([z for pair in pairs for z in pair][:count]).reshape(shape)

    def random(self, shape: Any) -> Array:
        return np.array([uniform(self.g) for _ in range(int(np.prod(shape)))]).reshape(shape)


@contextmanager
def indices_of(policy: Policy[Any]) -> Iterator[list[Array]]:
    """Collect the indices among which a policy picks the largest."""
    seen: list[Array] = []

    def pick(index: Array, rng: Any) -> Index:
        seen.append(index.copy())
        largest: Index = np.argmax(index, axis=1)
        return largest

    modules = {cls.__module__ for cls in type(innermost(policy)).__mro__}
    with patch.multiple("tailproof.policies.base", pick_largest=pick):
        patched = [
            patch.object(sys.modules[name], "pick_largest", pick)
            for name in modules
            if hasattr(sys.modules[name], "pick_largest")
        ]
        for each in patched:
            each.start()
        try:
            yield seen
        finally:
            for each in patched:
                each.stop()


def compared(
    policy: Policy[Any],
    offers: Array,
    chosen: Index,
    rewards: Array,
    watch: Callable[[Any], object] = type,
) -> Iterator[tuple[Array, Array, int]]:
    """Return the indices of both forms and the choice on arrays, before each decision.

    Parameters
    ----------
    offers : array of shape (decisions, K, d)
    chosen : array of shape (decisions,)
        The arm pulled at each decision.
    rewards : array of shape (decisions, pulls)
    watch : callable
        Called with the state on arrays after each decision.
    """
    decisions, arms, dim = offers.shape
    form = form_of(policy, Sizes(arms, dim, decisions, arms))
    start, index, learn = (
        compile_for("python", bound(part, ARMS=arms, DIM=dim, WIDTH=arms))
        for part in (form.start, form.index, form.learn)
    )
    s, work, values = np.empty(form.state), np.empty(form.work), np.empty(arms)
    p, g = np.array(form.settings), np.empty(2, np.uint64)
    state = policy.init(1, arms, dim)
    with np.errstate(all="ignore"):
        begin_stream(g, stream_keys(0, "policy"), 0)
        start(s, p)
    for t in range(decisions):
        rng: Any = Repeated(g)
        shown = np.vstack([offers[t].T, np.empty((form.rows, arms))])
        with indices_of(policy) as seen, unwarned():
            choice = int(policy._choose(state, offers[t : t + 1], rng)[0])
        with np.errstate(all="ignore"):
            index(s, p, shown, t, g, values, work)
        yield seen[0][0], values.copy(), choice
        policy.learn(state, offers[t : t + 1], chosen[t : t + 1], rewards[t : t + 1])
        watch(state)
        with np.errstate(all="ignore"):
            learn(s, p, shown, int(chosen[t]), rewards[t], t, work)
