"""K arms known by their number: UCB1, Thompson sampling and chance.

The state of UCB1 and Thompson sampling is the count of each arm, then, from place WIDTH on, the sum
of its rewards.
"""

import math

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.streams import Words, normal_pair
from tailproof.policies import UCB1, ThompsonSampling, Uniform
from tailproof.typing import Array

ARMS, WIDTH = 1, 1
"""Placeholders: K, and the room of an array with a number for each arm."""

__all__ = ["thompson_sampling", "ucb1", "uniform_choice"]


def ucb1(policy: UCB1, sizes: Sizes) -> Form:
    """Return the form of UCB1, or raise if its widths are random."""
    if policy.random:
        raise ValueError(f"{policy!r} has no compiled form; UCB1 has one with random=False")
    settings = (2 * policy.bonus * policy.bonus,)
    return Form(start_tally, ucb1_index, learn_tally, settings, state=2 * sizes.width)


def thompson_sampling(policy: ThompsonSampling, sizes: Sizes) -> Form:
    """Return the form of Thompson sampling."""
    settings = ((policy.noise_scale / policy.prior_scale) ** 2, policy.noise_scale)
    return Form(start_tally, thompson_index, learn_tally, settings, state=2 * sizes.width)


def uniform_choice(policy: Uniform, sizes: Sizes) -> Form:
    """Return the form of a choice by chance."""
    return Form(start_tally, no_index, learn_nothing, (0.0,), state=1)


def start_tally(s: Array, p: Array) -> None:
    for i in range(s.shape[0]):
        s[i] = 0.0


def learn_tally(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    s[k] += 1.0
    s[WIDTH + k] += y[0]


def ucb1_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    spread = p[0] * math.log(t) if t > 0 else 0.0
    for k in range(values.shape[0]):
        share = 1.0 / s[k]  # one division: it takes as long as ten products
        index = math.sqrt(spread * share) + s[WIDTH + k] * share
        values[k] = index if s[k] > 0.0 else math.inf


def thompson_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    z = 0.0
    for k in range(ARMS):
        if k % 2 == 0:
            now, z = normal_pair(g)
        else:
            now = z
        weight = s[k] + p[0]
        values[k] = s[WIDTH + k] / weight + now * p[1] / math.sqrt(weight)


def no_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    for k in range(ARMS):
        values[k] = 0.0


def learn_nothing(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    return
