"""How θ moves on one path: one step of each motion, with θ of shape (d, 1)."""

import math
from typing import Any

from tailproof.compiled.streams import Words, normal, uniform
from tailproof.compiled.targets import bind
from tailproof.environments import motions
from tailproof.typing import Array

__all__ = ["motion_of", "still"]


def motion_of(motion: motions.Motion) -> tuple[Any, float]:
    """Return the step of a motion and its size, or raise if it has no compiled form."""
    known = type(motion)
    if known not in _STEPS:
        names = ", ".join(kind.__name__ for kind in _STEPS)
        raise ValueError(f"motion {motion!r} has no compiled form; these have one: {names}")
    if isinstance(motion, motions.Rotation):
        angle = 2 * math.pi * motion.every / motion.period
        return bind(rotated, COS=math.cos(angle), SIN=math.sin(angle)), 1.0
    size = getattr(motion, "stride", getattr(motion, "by", 0.0))
    step = walked_and_stretched if getattr(motion, "keeps_length", False) else _STEPS[known]
    return step, size


COS, SIN = 1.0, 0.0
"""Placeholders: cosine and sine of the angle of one step."""


def still(theta: Array, size: float, g: Words) -> None:
    """Leave θ where it is."""
    return


def jumped(theta: Array, size: float, g: Words) -> None:
    length = _length(theta)
    for i in range(theta.shape[0]):
        theta[i, 0] = normal(g)
    _stretch(theta, length)


def shuffled(theta: Array, size: float, g: Words) -> None:
    for i in range(theta.shape[0] - 1, 0, -1):
        j = int(uniform(g) * (i + 1))
        theta[i, 0], theta[j, 0] = theta[j, 0], theta[i, 0]


def swapped(theta: Array, size: float, g: Words) -> None:
    worst, best = _worst(theta), 0
    for i in range(1, theta.shape[0]):
        if theta[i, 0] > theta[best, 0]:
            best = i
    theta[worst, 0], theta[best, 0] = theta[best, 0], theta[worst, 0]


def raised(theta: Array, size: float, g: Words) -> None:
    worst, top = _worst(theta), theta[0, 0]
    for i in range(1, theta.shape[0]):
        top = max(top, theta[i, 0])
    theta[worst, 0] = top + size


def shifted(theta: Array, size: float, g: Words) -> None:
    by = size if uniform(g) < 0.5 else -size
    for i in range(theta.shape[0]):
        theta[i, 0] += by


def passed_on(theta: Array, size: float, g: Words) -> None:
    last, first = theta.shape[0] - 1, theta[0, 0]
    for i in range(last):
        theta[i, 0] = theta[i + 1, 0]
    theta[last, 0] = first


def walked(theta: Array, size: float, g: Words) -> None:
    for i in range(theta.shape[0]):
        theta[i, 0] += size * normal(g)


def walked_and_stretched(theta: Array, size: float, g: Words) -> None:
    length = _length(theta)
    walked(theta, size, g)
    _stretch(theta, length)


def rotated(theta: Array, size: float, g: Words) -> None:
    for i in range(0, theta.shape[0] - 1, 2):
        x, y = theta[i, 0], theta[i + 1, 0]
        theta[i, 0], theta[i + 1, 0] = COS * x - SIN * y, SIN * x + COS * y


def _worst(theta: Array) -> int:
    worst = 0
    for i in range(1, theta.shape[0]):
        if theta[i, 0] < theta[worst, 0]:
            worst = i
    return worst


def _length(theta: Array) -> float:
    square = 0.0
    for i in range(theta.shape[0]):
        square += theta[i, 0] * theta[i, 0]
    return math.sqrt(square)


def _stretch(theta: Array, length: float) -> None:
    """Bring θ to a length."""
    ratio = length / _length(theta)
    for i in range(theta.shape[0]):
        theta[i, 0] *= ratio


_STEPS: dict[type[motions.Motion], Any] = {
    motions.Jump: jumped,
    motions.Shuffle: shuffled,
    motions.Swap: swapped,
    motions.Rise: raised,
    motions.Shift: shifted,
    motions.PassOn: passed_on,
    motions.Walk: walked,
    motions.Rotation: rotated,
}
