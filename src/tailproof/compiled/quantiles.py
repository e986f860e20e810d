"""OrderStatisticUCB on one path.

It follows `tailproof.policies.order_statistic_ucb` and its state, which explain each step.
"""

import math
from typing import Any

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.sorting import sort_up_to
from tailproof.compiled.streams import Words
from tailproof.compiled.student_parts import layout
from tailproof.compiled.targets import bind
from tailproof.policies import OrderStatisticUCB
from tailproof.policies.state import quantile_bounds
from tailproof.typing import Array

__all__ = ["order_statistic_ucb"]

ARMS = 1
"""A placeholder: K."""
COUNTS = RANK = LIMIT = BOUND = HELD = BELOW = WINDOW = SAMPLES = PULLED = STATE = 0
"""Placeholders: where the parts of the state begin, and its length."""
WIDTH_OF_WINDOW = quantile_bounds._WIDTH
_TINY = 1e-300
"""What replaces a zero denominator in Lentz's method."""


def order_statistic_ucb(policy: OrderStatisticUCB, sizes: Sizes) -> Form:
    """Return the form of OrderStatisticUCB."""
    if policy.sketch is not None:
        raise ValueError(
            f"{policy!r} has no compiled form; OrderStatisticUCB has one where sketch is None"
        )
    k, n = sizes.arms, sizes.decisions
    state = layout(
        COUNTS=k, RANK=k, LIMIT=k, BOUND=k, HELD=k, BELOW=k, WINDOW=k * WIDTH_OF_WINDOW, SAMPLES=n,
        PULLED=n, STATE=0,
    )  # fmt: skip
    evidence: Any = log_mixture if policy.index == "proved" else log_binomial
    asked = asked_of_mixture if policy.index == "proved" else asked_of_binomial
    return Form(
        bind(start, **state),
        bind(index, **state),
        bind(learn, **state, climb=bind(climb, evidence=evidence), asked=asked),
        (policy.bonus, policy.quantile),
        state=state["STATE"],
        work=n,
        large=True,
    )


def evidence(n: float, s: float, quantile: float) -> float:
    """Return the log evidence of s of n rewards below a value; a placeholder."""
    raise NotImplementedError


def asked(t: float) -> float:
    """Return the evidence that a decision asks for; a placeholder."""
    raise NotImplementedError


def asked_of_mixture(t: float) -> float:
    log = math.log1p(t)
    return log + 2.0 * math.log(max(1.0, log))


def asked_of_binomial(t: float) -> float:
    return math.log(t)


def log_mixture(n: float, s: float, quantile: float) -> float:
    a, b = s + 1.0, n - s + 1.0
    mixed = log_beta(a, b) + log_share_above(a, b, quantile)
    return mixed - s * math.log(quantile) - b * math.log1p(-quantile)


def log_binomial(n: float, s: float, quantile: float) -> float:
    return -log_share_above(n - s + 1.0, s, 1.0 - quantile) if s > 0.0 else 0.0


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def log_share_above(a: float, b: float, x: float) -> float:
    """Return the log of the probability that a beta variable is above x.

    Source: the continued fraction of the incomplete beta function by Lentz's method, from memory.
    """
    front = a * math.log(x) + b * math.log1p(-x) - log_beta(a, b)
    if x > (a + 1.0) / (a + b + 2.0):
        return front + math.log(fraction(b, a, 1.0 - x) / b)
    return math.log1p(-min(math.exp(front) * fraction(a, b, x) / a, 1.0 - 2.0**-53))


def fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    h, m, change = d, 1.0, 0.0
    while abs(change - 1.0) > 1e-16 and m < 100000.0:
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        d, c = 1.0 + even * d, 1.0 + even / c
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = c if abs(c) > _TINY else _TINY
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        d, c = 1.0 + odd * d, 1.0 + odd / c
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = c if abs(c) > _TINY else _TINY
        change = d * c
        h *= change
        m += 1.0
    return h


def start(s: Array, p: Array) -> None:
    for i in range(WINDOW):
        s[i] = 0.0
    for k in range(ARMS):
        s[RANK + k] = 1.0
        s[LIMIT + k] = s[BOUND + k] = math.inf
    for i in range(WINDOW, SAMPLES):
        s[i] = math.inf


def index(s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array) -> None:
    unbounded = False
    for k in range(ARMS):
        values[k] = s[BOUND + k]
        unbounded = unbounded or s[RANK + k] > s[COUNTS + k]
    if unbounded:
        for k in range(ARMS):
            few = s[RANK + k] > s[COUNTS + k]
            values[k] = -s[COUNTS + k] if few else -math.inf


def learn(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    s[SAMPLES + t], s[PULLED + t] = y[0], float(k)
    s[COUNTS + k] += 1.0
    insert(s, k, y[0])
    f = p[0] * asked(t + 2.0)
    climb(s, k, f, p[1])
    s[BOUND + k] = read(s, k, t + 1, work)
    for arm in range(ARMS):
        moved = False
        while s[LIMIT + arm] < f:
            climb(s, arm, f, p[1])
            moved = True
        if moved:
            s[BOUND + arm] = read(s, arm, t + 1, work)


def climb(s: Array, k: int, f: float, quantile: float) -> None:
    """Raise the rank by one where its evidence is too small."""
    n, rank = s[COUNTS + k], s[RANK + k]
    here = evidence(n, rank, quantile) if rank <= n else math.inf
    if here < f:
        s[RANK + k] = rank + 1.0
        here = evidence(n, rank + 1.0, quantile) if rank + 1.0 <= n else math.inf
    s[LIMIT + k] = here


def insert(s: Array, k: int, y: float) -> None:
    """Add a reward to the window of sorted ones around the rank, if it belongs there."""
    first, held, below = WINDOW + k * WIDTH_OF_WINDOW, int(s[HELD + k]), s[BELOW + k]
    place = 0
    while place < WIDTH_OF_WINDOW and s[first + place] < y:
        place += 1
    if y < s[first] and below > 0.0:
        s[BELOW + k] += 1.0
        return
    if place == held and below + held < s[COUNTS + k] - 1.0:
        return
    if held < WIDTH_OF_WINDOW:
        s[HELD + k] += 1.0
        for i in range(held, place, -1):
            s[first + i] = s[first + i - 1]
        s[first + place] = y
    elif s[RANK + k] - below > WIDTH_OF_WINDOW // 2:  # drop the first
        s[BELOW + k] += 1.0
        for i in range(place - 1):
            s[first + i] = s[first + i + 1]
        if place > 0:
            s[first + place - 1] = y
    else:
        for i in range(WIDTH_OF_WINDOW - 1, place, -1):
            s[first + i] = s[first + i - 1]
        if place < WIDTH_OF_WINDOW:
            s[first + place] = y


def read(s: Array, k: int, pulls: int, work: Array) -> float:
    """Return the reward of the rank; the window is filled again where the rank has left it."""
    n, rank, below = s[COUNTS + k], s[RANK + k], s[BELOW + k]
    if rank > n:
        return math.inf
    first = WINDOW + k * WIDTH_OF_WINDOW
    if rank <= below or rank > below + s[HELD + k]:
        count = 0
        for i in range(pulls):
            if s[PULLED + i] == k:
                work[count] = s[SAMPLES + i]
                count += 1
        sort_up_to(work, count)
        below = max(rank - WIDTH_OF_WINDOW // 2, 0.0)
        held = min(count - int(below), WIDTH_OF_WINDOW)
        for i in range(WIDTH_OF_WINDOW):
            s[first + i] = work[int(below) + i] if i < held else math.inf
        s[BELOW + k], s[HELD + k] = below, float(held)
    return s[first + min(int(rank - below), WIDTH_OF_WINDOW) - 1]
