"""MENU and SupBMM on one path: a regression for each replicate of a decision's rewards.

A block is [S | θ¹ … θʳ] row by row, with V⁻¹ = SSᵀ. MENU keeps V behind it.
"""

import math

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.sorting import middle_of, sort_up_to
from tailproof.compiled.streams import Words
from tailproof.compiled.student_parts import layout
from tailproof.compiled.targets import bind
from tailproof.policies import MENU, SupBMM
from tailproof.typing import Array

__all__ = ["menu", "sup_bmm"]

ARMS, DIM, REPLICATES, LEVELS, LAYERED = 1, 1, 1, 1, True
"""Placeholders: K, d, r, and the levels of SupBMM."""
SHAPE = BEST = UNITS = OTHERS = ROW = GAIN = KEPT = UPPER = WIDTHS = VALUES = WORK = 0
"""Placeholders: where the parts of the state and of the room for intermediate results begin."""


def menu(policy: MENU, sizes: Sizes) -> Form:
    """Return the form of MENU."""
    d, r, power = sizes.dim, policy.pulls, 1 / (1 + policy.epsilon)
    start = math.sqrt(policy.ridge) * policy.norm_bound
    growth = (1 - policy.epsilon) * power / 2
    scale = (9 * d * policy.moment_bound) ** power
    shift = d * (d + r)
    room = layout(
        UNITS=max(d * r, d * d), OTHERS=max(r, d * d), ROW=d + r, GAIN=d, WORK=0,
    )  # fmt: skip
    names = {"SHAPE": shift, "BEST": shift + d * d, "REPLICATES": r, **room}
    return Form(
        bind(start_menu, **names),
        bind(menu_index, **names),
        bind(learn_menu, **names),
        (policy.ridge, policy.bonus, start, scale, growth),
        state=shift + d * d + 1,
        work=room["WORK"],
        pulls=r,
        vectors=True,
        estimate=bind(menu_estimate, **names),
    )


def sup_bmm(policy: SupBMM, sizes: Sizes) -> Form:
    """Return the form of SupBMM."""
    d, k, r, power = sizes.dim, sizes.width, policy.pulls, 1 / (1 + policy.epsilon)
    scripts = policy.width == "experiments"
    room = layout(
        OTHERS=r, ROW=max(d + r, k), GAIN=d, KEPT=k, UPPER=k, WIDTHS=k, VALUES=k, WORK=0,
    )  # fmt: skip
    names = {"REPLICATES": r, "LEVELS": policy.levels, "LAYERED": policy.layered, **room}
    settings = (
        1.0,
        policy.bonus,
        (12 * policy.moment_bound) ** power,
        (1 - policy.epsilon) * power / 2,
        float(scripts),
        1 / math.sqrt(policy.horizon),
    )
    return Form(
        bind(start_layers, **names),
        bind(sup_bmm_index, **names),
        bind(learn_layer, **names),
        settings,
        state=policy.levels * d * (d + r),
        work=room["WORK"],
        pulls=r,
        vectors=True,
    )


def start_block(s: Array, first: int, ridge: float) -> None:
    for i in range(DIM * (DIM + REPLICATES)):
        s[first + i] = 0.0
    for i in range(DIM):
        s[first + i * (DIM + REPLICATES) + i] = 1.0 / math.sqrt(ridge)


def update_block(
    s: Array, first: int, offers: Array, k: int, y: Array, row: Array, gain: Array
) -> None:
    """Add the rewards of all replicates at arm k; see `ridge.update_root`."""
    columns = DIM + REPLICATES
    for j in range(columns):
        row[j] = 0.0
    for i in range(DIM):
        x = offers[i, k]
        for j in range(columns):
            row[j] += x * s[first + i * columns + j]
    growth = 1.0
    for j in range(DIM):
        growth += row[j] * row[j]
    for i in range(DIM):
        total = 0.0
        for j in range(DIM):
            total += s[first + i * columns + j] * row[j]
        gain[i] = total
    part = 1.0 / (growth + math.sqrt(growth))
    for j in range(DIM):
        row[j] *= part
    for j in range(REPLICATES):
        row[DIM + j] = (row[DIM + j] - y[j]) / growth
    for i in range(DIM):
        for j in range(columns):
            s[first + i * columns + j] -= gain[i] * row[j]


def squared_width(s: Array, first: int, offers: Array, k: int) -> float:
    columns, square = DIM + REPLICATES, 0.0
    for j in range(DIM):
        total = 0.0
        for i in range(DIM):
            total += s[first + i * columns + j] * offers[i, k]
        square += total * total
    return square


# MENU


def start_menu(s: Array, p: Array) -> None:
    start_block(s, 0, p[0])
    for i in range(DIM):
        for j in range(DIM):
            s[SHAPE + i * DIM + j] = p[0] if i == j else 0.0
    s[BEST] = 0.0


def learn_menu(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    update_block(s, 0, offers, k, y, work[ROW : ROW + DIM + REPLICATES], work[GAIN : GAIN + DIM])
    for i in range(DIM):
        for j in range(DIM):
            s[SHAPE + i * DIM + j] += offers[i, k] * offers[j, k]
    s[BEST] = float(nearest(s, work))


def menu_estimate(s: Array, p: Array, values: Array) -> None:
    for i in range(DIM):
        values[i] = s[i * (DIM + REPLICATES) + DIM + int(s[BEST])]


def menu_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    best = int(s[BEST])
    beta = p[2] if t == 0 else 3.0 * (p[3] * float(t) ** p[4] + p[2])
    for k in range(ARMS):
        mean = 0.0
        for i in range(DIM):
            mean += offers[i, k] * s[i * (DIM + REPLICATES) + DIM + best]
        values[k] = mean + p[1] * beta * math.sqrt(squared_width(s, 0, offers, k))


def nearest(s: Array, work: Array) -> int:
    """Return the replicate with the smallest median distance to the others, in the norm of V."""
    if REPLICATES == 1:
        return 0
    root_to(s, work)
    units, others = work[UNITS : UNITS + DIM * REPLICATES], work[OTHERS : OTHERS + REPLICATES]
    best, least = 0, math.inf
    for k in range(REPLICATES):
        count = 0
        for other in range(REPLICATES):
            if other != k:
                square = 0.0
                for i in range(DIM):
                    step = units[i * REPLICATES + k] - units[i * REPLICATES + other]
                    square += step * step
                others[count] = math.sqrt(square) if square == square else math.inf
                count += 1
        sort_up_to(others, count)
        middle = middle_of(others, count)
        if middle < least:
            best, least = k, middle
    return best


def root_to(s: Array, work: Array) -> None:
    """Write Lᵀθ of every replicate to UNITS, with V = LLᵀ."""
    root = work[OTHERS : OTHERS + DIM * DIM]
    for j in range(DIM):
        for i in range(j, DIM):
            total = s[SHAPE + i * DIM + j]
            for k in range(j):
                total -= root[i * DIM + k] * root[j * DIM + k]
            root[i * DIM + j] = math.sqrt(total) if i == j else total / root[j * DIM + j]
    for j in range(DIM):
        for r in range(REPLICATES):
            total = 0.0
            for i in range(j, DIM):
                total += root[i * DIM + j] * s[i * (DIM + REPLICATES) + DIM + r]
            work[UNITS + j * REPLICATES + r] = total


# SupBMM


def start_layers(s: Array, p: Array) -> None:
    for level in range(LEVELS):
        start_block(s, level * DIM * (DIM + REPLICATES), 1.0)


def predict_level(s: Array, p: Array, level: int, offers: Array, t: int, work: Array) -> None:
    """Write medians of predictions to VALUES, and widths to WIDTHS."""
    first, columns = level * DIM * (DIM + REPLICATES), DIM + REPLICATES
    time = max(t, 1) if p[4] > 0.0 else t + 1
    scale = p[1] * (p[2] * float(time) ** p[3] + (0.0 if p[4] > 0.0 else 1.0))
    for k in range(ARMS):
        for r in range(REPLICATES):
            total = 0.0
            for i in range(DIM):
                total += offers[i, k] * s[first + i * columns + DIM + r]
            work[OTHERS + r] = total if total == total else math.inf
        sort_up_to(work[OTHERS : OTHERS + REPLICATES], REPLICATES)
        middle = middle_of(work[OTHERS : OTHERS + REPLICATES], REPLICATES)
        work[VALUES + k] = middle
        work[WIDTHS + k] = scale * math.sqrt(squared_width(s, first, offers, k))


def eliminate(s: Array, p: Array, offers: Array, t: int, values: Array, work: Array) -> int:
    """Write the index to maximise, and return the level that the reward goes to, −1 for none."""
    for k in range(ARMS):
        work[KEPT + k] = 1.0
    for level in range(LEVELS):
        predict_level(s, p, level, offers, t, work)
        if not LAYERED:
            for k in range(ARMS):
                values[k] = work[VALUES + k] + work[WIDTHS + k]
            return 0
        step, widest, top = 2.0 ** -(level + 1.0), 0.0, -math.inf
        for k in range(ARMS):
            work[UPPER + k] = -math.inf
            if work[KEPT + k] > 0.0:
                work[UPPER + k] = work[VALUES + k] + work[WIDTHS + k]
                widest, top = max(widest, work[WIDTHS + k]), max(top, work[UPPER + k])
        if widest <= max(p[5], step if level == LEVELS - 1 else 0.0):
            for k in range(ARMS):
                values[k] = work[UPPER + k]
            return -1
        if widest > step:
            for k in range(ARMS):
                wide = work[KEPT + k] > 0.0 and work[WIDTHS + k] > step
                values[k] = work[WIDTHS + k] if wide else -math.inf
            return level
        for k in range(ARMS):
            if not work[UPPER + k] >= top - 2.0 * step:
                work[KEPT + k] = 0.0
    return -1


def sup_bmm_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    eliminate(s, p, offers, t, values, work)


def learn_layer(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    level = eliminate(s, p, offers, t, work[ROW : ROW + ARMS], work)
    if level >= 0:
        first = level * DIM * (DIM + REPLICATES)
        row = work[ROW : ROW + DIM + REPLICATES]
        update_block(s, first, offers, k, y, row, work[GAIN : GAIN + DIM])
