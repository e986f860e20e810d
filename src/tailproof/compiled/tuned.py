"""AutoFiltered on one path: the units that it learns, and the policy inside.

It follows `tailproof.wrappers.auto`, which explains each step. The state has three parts: the state
of the policy inside, the units, and the first decisions. The policy inside sees the vectors of the
arms in other units, with a 1 for the intercept; these vectors stand in further rows of `offers`.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.sorting import middle_of, nearest_even, sort_up_to
from tailproof.compiled.streams import Words
from tailproof.compiled.student_parts import layout
from tailproof.compiled.targets import bind
from tailproof.policies.base import LONGEST
from tailproof.stats import pitman as arrays
from tailproof.typing import Array
from tailproof.wrappers import auto
from tailproof.wrappers.auto import AutoFiltered

__all__ = ["auto_filtered"]

ARMS, DIM, REPEATS, SETTLE, INSIDE, INTERCEPT, VECTORS = 1, 1, 1, 1, 1, 1, True
"""Placeholders: K, d, ñ, the number of decisions that teach the units, the length of the inner
state, 1 for an intercept and else 0, and whether the inner policy reads vectors."""
CENTRE = SPREAD = UNIT = LENGTH = STRETCH = CHOSEN = RAW = KEPT = THETA = 0
SAMPLE = POINTS = LOGS = SIZES = MIDDLES = ERRORS = INNER = 0
"""Placeholders: where the parts of the state and of the room for intermediate results begin."""
_STEPS = tuple(float(x) for x in arrays._STEPS)
_COUNT, _REACH, _MOST = len(_STEPS), float(arrays._REACH), float(arrays._LARGEST)
_FINEST = auto.FINEST
_LARGE = 1e100
"""The square of a number of this size is finite."""


def auto_filtered(policy: AutoFiltered, sizes: Sizes, form_of: Callable[..., Form]) -> Form:
    """Return the form of AutoFiltered around a policy that has a form."""
    inner, n, k = policy.policy, policy.repeats, sizes.arms
    dim = sizes.dim + policy.intercept
    inside: Form = form_of(inner, sizes._replace(dim=dim))
    twice = policy.intercept and getattr(inner, "intercept", False)
    if inside.pulls > 1 or inside.rows or inner._longest < LONGEST or twice:
        raise ValueError(
            f"{policy!r} has no compiled form; AutoFiltered has one around a policy that learns "
            "one reward a decision, takes vectors of any length and learns no intercept itself"
        )
    first = inside.state
    vectors = k * sizes.dim if inside.vectors else 0
    state = layout(
        CENTRE=1, SPREAD=1, UNIT=1, LENGTH=1, STRETCH=1, CHOSEN=policy.settle,
        RAW=policy.settle * n, KEPT=policy.settle * vectors, THETA=dim, STATE=0,
    )  # fmt: skip
    at = {name: first + place for name, place in state.items()}
    total, points = policy.settle * n, n * _COUNT
    work = layout(
        SAMPLE=n, POINTS=points, LOGS=points, SIZES=total, MIDDLES=policy.settle, ERRORS=total,
        INNER=inside.work, WORK=0,
    )  # fmt: skip
    numbers = {
        **at, **work, "REPEATS": n, "SETTLE": policy.settle, "INSIDE": first,
        "INTERCEPT": int(policy.intercept), "VECTORS": inside.vectors,
    }  # fmt: skip
    part: Any = {"DIM": dim}
    return replace(
        inside,
        start=bind(start_tuned, begin=bind_inside(inside.start, part), **numbers),
        index=bind(tuned_index, choose=bind_inside(inside.index, part), **numbers),
        learn=bind(
            learn_tuned,
            learn_decision=bind(learn_decision, learn_inside=bind_inside(inside.learn, part)),
            learn_again=bind(
                learn_again,
                learn_decision=bind(learn_decision, learn_inside=bind_inside(inside.learn, part)),
                begin=bind_inside(inside.start, part),
            ),
            **numbers,
        ),
        estimate=inside.estimate
        and bind(tuned_estimate, estimate_inside=bind_inside(inside.estimate, part), **numbers),
        state=at["STATE"],
        work=work["WORK"],
        pulls=n,
        rows=dim if inside.vectors else 0,
        large=True,
    )


def bind_inside(function: Any, numbers: Any) -> Any:
    """Return a function of the policy inside, with its own d."""
    tree = bind(function) if not hasattr(function, "names") else function
    return bind(tree.function, **{**numbers, **dict(tree.names)})


def begin(s: Array, p: Array) -> None:
    """Start the policy inside; a placeholder."""
    raise NotImplementedError


def choose(s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array) -> None:
    """Write the index of the policy inside; a placeholder."""
    raise NotImplementedError


def learn_inside(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    """Let the policy inside learn; a placeholder."""
    raise NotImplementedError


def estimate_inside(s: Array, p: Array, values: Array) -> None:
    """Write the estimate of the policy inside; a placeholder."""
    raise NotImplementedError


def start_tuned(s: Array, p: Array) -> None:
    begin(s[:INSIDE], p)
    for i in range(CENTRE, s.shape[0]):
        s[i] = 0.0
    s[LENGTH], s[STRETCH] = 1.0, 1.0


def tuned_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    if VECTORS:
        shown = offers[DIM:]
        in_learned_units(s, offers, shown)
        choose(s[:INSIDE], p, shown, t, g, values, work[INNER:])
    else:
        choose(s[:INSIDE], p, offers, t, g, values, work[INNER:])


def tuned_estimate(s: Array, p: Array, values: Array) -> None:
    estimate_inside(s[:INSIDE], p, s[THETA:])
    size = 4.0 * s[UNIT] * s[STRETCH] / s[LENGTH]
    for i in range(DIM):
        values[i] = s[THETA + i] * size


def in_learned_units(s: Array, offers: Array, seen: Array) -> None:
    """Write the vectors as the policy inside sees them."""
    for i in range(DIM):
        for k in range(offers.shape[1]):
            seen[i, k] = offers[i, k] / s[LENGTH] * s[STRETCH]
    if INTERCEPT:
        for k in range(offers.shape[1]):
            seen[DIM, k] = s[STRETCH]


def learn_tuned(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    if t < SETTLE:
        for i in range(REPEATS):
            s[RAW + t * REPEATS + i] = y[i]
        s[CHOSEN + t] = float(k)
        if VECTORS:
            for i in range(DIM):
                for arm in range(ARMS):
                    s[KEPT + (t * DIM + i) * ARMS + arm] = offers[i, arm]
        learn_again(s, p, offers, t + 1, y, work)
        return
    if s[UNIT] == 0.0:  # all rewards were equal so far
        s[SPREAD], s[UNIT], _ = scales(y, 1, s[CENTRE], work)
    learn_decision(s, p, offers, k, y, t, work)


def learn_decision(
    s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array
) -> None:
    """Let the policy inside learn one decision."""
    y[0] = filtered_reward(s, y, work)
    if VECTORS:
        shown = offers[DIM:]
        in_learned_units(s, offers, shown)
        learn_inside(s[:INSIDE], p, shown, k, y, t, work[INNER:])
    else:
        learn_inside(s[:INSIDE], p, offers, k, y, t, work[INNER:])


def learn_again(s: Array, p: Array, offers: Array, age: int, y: Array, work: Array) -> None:
    """Estimate the units, and let the policy inside learn all decisions again."""
    tune(s, age, work)
    begin(s[:INSIDE], p)
    for t in range(age):
        for i in range(REPEATS):
            y[i] = s[RAW + t * REPEATS + i]
        if VECTORS:
            for i in range(DIM):
                for arm in range(ARMS):
                    offers[i, arm] = s[KEPT + (t * DIM + i) * ARMS + arm]
        learn_decision(s, p, offers, int(s[CHOSEN + t]), y, t, work)


def tune(s: Array, age: int, work: Array) -> None:
    raw, finite, length = s[RAW : RAW + age * REPEATS], 0, 0.0
    for t in range(age):
        middle = middle_of_quarters(raw, t, work)
        if abs(middle) < math.inf:
            work[SIZES + finite] = middle
            finite += 1
        if VECTORS:
            for i in range(DIM):
                x = s[KEPT + (t * DIM + i) * ARMS + int(s[CHOSEN + t])]
                length += x * x
    s[CENTRE] = 0.0
    if INTERCEPT == 1 and finite > 0:
        sort_up_to(work[SIZES : SIZES + finite], finite)
        s[CENTRE] = (work[SIZES + (finite - 1) // 2] + work[SIZES + finite // 2]) / 2.0
    s[SPREAD], s[UNIT], signal = scales(raw, age, s[CENTRE], work)
    s[LENGTH] = or_one(math.sqrt(length / age))
    ratio = max(1.0, signal / or_one(s[UNIT]))
    s[STRETCH] = 2.0 ** float(nearest_even(math.log2(ratio)))


def or_one(x: float) -> float:
    return x if x > 0.0 else 1.0


def middle_of_quarters(raw: Array, t: int, work: Array) -> float:
    """Return the median of a quarter of the rewards of one decision."""
    for i in range(REPEATS):
        work[SAMPLE + i] = raw[t * REPEATS + i] / 4.0
    sort_up_to(work[SAMPLE : SAMPLE + REPEATS], REPEATS)
    middle = middle_of(work[SAMPLE : SAMPLE + REPEATS], REPEATS)
    return middle if middle == middle else 0.0


def write_errors(raw: Array, t: int, errors: Array, work: Array) -> float:
    """Write the distances of the rewards of one decision from their median, and return it."""
    middle = middle_of_quarters(raw, t, work)
    for i in range(REPEATS):
        finite = abs(middle) < math.inf
        errors[i] = raw[t * REPEATS + i] / 4.0 - middle if finite else 0.0
    return middle


def filtered_reward(s: Array, y: Array, work: Array) -> float:
    """Return the reward for the policy inside."""
    errors = work[ERRORS : ERRORS + REPEATS]
    middle = write_errors(y, 0, errors, work)
    return (middle - s[CENTRE] + pitman(errors, or_one(s[SPREAD]), work)) / or_one(s[UNIT])


def scales(raw: Array, age: int, centre: float, work: Array) -> tuple[float, float, float]:
    """Return the spread, the unit, and how far rewards are from the centre."""
    n, top = age * REPEATS, 0.0
    for t in range(age):
        at = ERRORS + t * REPEATS
        middle = write_errors(raw, t, work[at : at + REPEATS], work)
        work[MIDDLES + t] = middle - centre if abs(middle) < math.inf else 0.0
        top = max(top, abs(work[MIDDLES + t]))
    top, signal = or_one(top), 0.0
    for t in range(age):
        signal += (work[MIDDLES + t] / top) * (work[MIDDLES + t] / top)
    signal = top * math.sqrt(signal / age)
    spread = max(typical_size(n, work), _FINEST * signal * math.sqrt(REPEATS / 2.0))
    scale = or_one(spread)
    slope, weights, square = 0.0, 0.0, 0.0
    for t in range(age):
        errors = work[ERRORS + t * REPEATS : ERRORS + (t + 1) * REPEATS]
        middle = pitman(errors, scale, work)
        for i in range(REPEATS):
            z = (errors[i] - middle) / scale
            w = 2.0 / (1.0 + z * z)
            slope += w * (w - 1.0)
            weights += w
            square += w * (2.0 - w)
    slope = max(slope / n, weights / n / 4.0)
    noise = spread * math.sqrt(square / n / (REPEATS - 1.0)) / slope
    return spread, max(noise, _FINEST * signal), signal


def typical_size(n: int, work: Array) -> float:
    """Return the median size of errors, without the zeros if it would be zero."""
    sizes = work[SIZES : SIZES + n]
    for i in range(n):
        sizes[i] = abs(work[ERRORS + i])
    sort_up_to(sizes, n)
    middle = middle_of(sizes, n)
    if 0.0 < middle < math.inf:
        return middle
    first, last = 0, n
    while first < n and sizes[first] == 0.0:
        first += 1
    while last > first and sizes[last - 1] == math.inf:
        last -= 1
    if last == first:
        return 0.0
    return (sizes[first + (last - first - 1) // 2] + sizes[first + (last - first) // 2]) / 2.0


def pitman(x: Array, spread: float, work: Array) -> float:
    """Return Pitman's estimator of the location of Cauchy samples; see `tailproof.stats.pitman`."""
    sample = work[SAMPLE : SAMPLE + REPEATS]
    for i in range(REPEATS):
        sample[i] = x[i]
    sort_up_to(sample, REPEATS)
    middle = middle_of(sample, REPEATS)
    middle = middle if middle == middle else 0.0
    if abs(middle) == math.inf:
        return middle
    for i in range(REPEATS):
        u = 2.0 * ((sample[i] / 2.0 - middle / 2.0) / spread)
        sample[i] = min(max(u, -_LARGE), _LARGE) if u == u else 0.0
    count = REPEATS * _COUNT
    points, logs = work[POINTS : POINTS + count], work[LOGS : LOGS + count]
    for i in range(REPEATS):
        for j in range(_COUNT):
            points[i * _COUNT + j] = sample[i] + _STEPS[j]
    sort_up_to(points, count)
    least = math.inf
    for i in range(count):
        logs[i] = log_distance(points[i], sample)
        least = min(least, logs[i])
    total, first = 0.0, 0.0
    for i in range(1, count - 1):
        weight = math.exp(least - logs[i])
        weight *= min(points[i + 1] - points[i - 1], 2.0 * _REACH) / 2.0
        total += weight
        first += weight * points[i]
    return min(max(middle + spread * (first / total), -_MOST), _MOST)


def log_distance(m: float, sample: Array) -> float:
    """Return Σ ln(1 + (m − x)²), with one logarithm for many factors."""
    total, factor = 0.0, 1.0
    for i in range(REPEATS):
        step = m - sample[i]
        factor *= 1.0 + step * step
        if factor > _LARGE:
            total += math.log(factor)
            factor = 1.0
    return total + math.log(factor)
