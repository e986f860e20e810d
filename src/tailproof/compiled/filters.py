"""Filters on one path: medians and means of medians of the rewards of a decision."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tailproof.compiled.forms import Form
from tailproof.compiled.sorting import middle_of, sort_up_to
from tailproof.compiled.targets import bind
from tailproof.policies import Policy
from tailproof.stats.estimators import MeanOfMedians, Median
from tailproof.typing import Array
from tailproof.wrappers.filtered import Filtered

__all__ = ["filtered"]

REPEATS, LENGTH = 1, 1
"""Placeholders: ñ, and the length of a block."""


def filtered(policy: Filtered, form_of: Callable[[Policy[Any]], Form]) -> Form:
    """Return the form of a filter around a policy that has a form."""
    inside = form_of(policy.policy)
    kind = policy.estimator
    if inside.pulls > 1 or type(kind) not in (Median, MeanOfMedians):
        raise ValueError(
            f"{policy!r} has no compiled form; Filtered with Median or MeanOfMedians has one, "
            "around a policy that learns one reward a decision"
        )
    length = kind.length(policy.repeats) if isinstance(kind, MeanOfMedians) else policy.repeats
    learned = bind(learn_filtered, learn=inside.learn, REPEATS=policy.repeats, LENGTH=length)
    return replace(inside, learn=learned, pulls=policy.repeats)


def learn(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    """Learn one reward; a placeholder."""
    raise NotImplementedError


def learn_filtered(
    s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array
) -> None:
    total, blocks = 0.0, REPEATS // LENGTH
    for block in range(blocks):
        part = y[block * LENGTH : (block + 1) * LENGTH]
        sort_up_to(part, LENGTH)
        middle = middle_of(part, LENGTH)
        total += middle if middle == middle else 0.0  # opposite infinities cancel
    y[0] = total / blocks if total == total else 0.0
    learn(s, p, offers, k, y, t, work)
