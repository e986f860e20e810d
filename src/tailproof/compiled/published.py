"""CRT and MoM on one path. `replicated` has MENU and SupBMM.

TOFU and SupBTC have no compiled form: they truncate all rewards again at every decision, so that a
decision costs the more the later it comes.
"""

import math
from typing import Any

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.ridge import learn_ridge, predict, ridge_estimate, start_ridge
from tailproof.compiled.sorting import middle_of, sort_up_to
from tailproof.compiled.streams import Words
from tailproof.compiled.targets import bind
from tailproof.policies import CRT, MoM
from tailproof.typing import Array

__all__ = ["crt", "mom"]

ARMS, DIM, BLOCKS = 1, 1, 1
"""Placeholders: K, d, and the blocks of MoM."""


def crt(policy: CRT, sizes: Sizes) -> Form:
    """Return the form of CRT."""
    power = 1 / (1 + policy.epsilon)
    settings = (
        policy.ridge,
        power,
        8 * math.log(1 / policy.delta),
        2 * policy.moment_bound**2,
        policy.bonus,
    )
    return _ridge(bind(optimistic_index, radius=crt_radius), learn_truncated, settings, sizes, 1)


def mom(policy: MoM, sizes: Sizes) -> Form:
    """Return the form of MoM."""
    power = 1 / (1 + policy.epsilon)
    scale = (8 * math.log(2 * policy._m / policy.delta) / policy.pulls) ** (policy.epsilon * power)
    scale *= (12 * policy.moment_bound) ** power
    settings = (policy.ridge, scale, 2 * math.log(policy._m), policy.bonus, policy.bonus)
    learn = bind(learn_median_of_means, BLOCKS=policy._blocks)
    return _ridge(bind(optimistic_index, radius=mom_radius), learn, settings, sizes, policy.pulls)


def _ridge(index: Any, learn: Any, settings: tuple[float, ...], sizes: Sizes, pulls: int) -> Form:
    d = sizes.dim
    return Form(
        start_ridge, index, learn, settings, state=d * (d + 1) + 1, pulls=pulls,
        work=max(2 * (d + 1), sizes.width, pulls), vectors=True, estimate=ridge_estimate,
    )  # fmt: skip


def radius(s: Array, p: Array, t: int) -> float:
    """Return β; a placeholder."""
    raise NotImplementedError


def crt_radius(s: Array, p: Array, t: int) -> float:
    if t == 0:
        return 1.0
    spread = 4.0 * s[DIM * (DIM + 1)] + p[2]
    return math.sqrt(float(t) ** p[1] * spread) + math.sqrt(p[3] * math.log(t)) + 1.0


def mom_radius(s: Array, p: Array, t: int) -> float:
    if t == 0:
        return 1.0
    return p[1] * (math.sqrt(p[2] + s[DIM * (DIM + 1)]) + math.sqrt(t + 1.0)) + 1.0


def optimistic_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    wide = p[4] * radius(s, p, t)
    predict(s, offers, values, work)
    for k in range(ARMS):
        values[k] += wide * math.sqrt(work[k])


def learn_truncated(
    s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array
) -> None:
    if abs(y[0]) > (t + 1.0) ** (p[1] / 2.0):
        y[0] = 0.0
    learn_ridge(s, p, offers, k, y, t, work)


def learn_median_of_means(
    s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array
) -> None:
    length = y.shape[0] // BLOCKS
    for block in range(BLOCKS):
        total = 0.0
        for i in range(length):
            total += y[block * length + i]
        work[block] = mean_of(total, length)
    sort_up_to(work, BLOCKS)
    middle = middle_of(work, BLOCKS)
    y[0] = middle if middle == middle else 0.0
    learn_ridge(s, p, offers, k, y, t, work)


def mean_of(total: float, count: int) -> float:
    """Return the mean; opposite infinities cancel."""
    return total / count if total == total else 0.0
