"""What a compiled form of a policy is, and the choice of the arm that all share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailproof.compiled.streams import Words, uniform
from tailproof.compiled.targets import Bound
from tailproof.typing import Array

__all__ = ["Form", "Sizes", "none_to_estimate", "pick_largest"]

ARMS = 1
"""A placeholder: K."""
Scalar = Callable[..., Any] | Bound


class Sizes(NamedTuple):
    """What the sizes of a form may depend on.

    `width` is the room of arrays with a number for each arm: K or, for processors that add several
    numbers at a time, a few more.
    """

    arms: int
    dim: int
    decisions: int
    width: int


@dataclass(frozen=True)
class Form:
    """A policy as functions of the numbers of one path.

    `s` is the state of the path, `p` the settings, `offers` the vectors of shape (d,
    K or a few more), `t` the number of decisions learned, `g` the policy's own random stream, and
    `work` room for intermediate results that nobody reads later.
    K and d are the placeholders ARMS and DIM.

    Attributes
    ----------
    start : (s, p) → None
        Writes the state of a path before any reward.
    index : (s, p, offers, t, g, values, work) → None
        Writes the index of each arm into `values`; the largest is pulled, see `pick_largest`.
    learn : (s, p, offers, k, y, t, work) → None
        Learns from the rewards `y` of arm k.
    estimate : (s, p, values) → None, optional
        Writes the estimate of θ.
    settings : tuple of floats
        p.
    state, work : int
        The lengths of `s` and `work`.
    pulls : int
        The length of `y`.
    vectors : bool
        Whether the functions read `offers`.
    rows : int
        How many rows `offers` has below its d, for vectors that the functions write.
    large : bool
        Whether the functions take so long to compile that one compilation should serve all noise.
    """

    start: Scalar
    index: Scalar
    learn: Scalar
    settings: tuple[float, ...]
    state: int
    work: int = 1
    pulls: int = 1
    vectors: bool = False
    estimate: Scalar | None = None
    rows: int = 0
    large: bool = False


def none_to_estimate(s: Array, p: Array, values: Array) -> None:
    """Write nothing: the policy has no estimate of θ."""


def pick_largest(values: Array, g: Words) -> int:
    """Return the place of the largest number, ties broken fairly; NaN loses against any other."""
    best, top, ties = 0, values[0], 1
    if top != top:
        top = -1e400
    for k in range(1, ARMS):
        v = values[k]
        if v > top:
            best, top, ties = k, v, 1
        elif v == top or (v != v and top == -1e400):
            ties += 1
            if uniform(g) * ties < 1.0:
                best = k
    return best
