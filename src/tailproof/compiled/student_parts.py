"""What the parts of LinStudentUCB's scalar form share: where its numbers are, and sums over pulls.

The state is one array. E counts the coefficients, those of the vector and the intercept if there is
one, and R the pulls in the buffer.
"""

import math

import numpy as np

from tailproof.policies.state import student_fit
from tailproof.policies.state.student_law import (
    INFORMATION as INFORMATION_OF_SCALE,
    LOG_HEIGHT,
    SHAPES,
)
from tailproof.typing import Array

ARMS, DIM, SIZE, ROOM = 1, 1, 1, 1
"""Placeholders: K, d, E and R. Fits read d and E from the state, at SIZES: compilers
unroll loops of constant length."""
BLOCK = SCALES = SHAPE = PENALTY = SLOPE = INFLATION = RENEWAL = DUE = KEPT = ORIGIN = 0
EARLIER_SCALE = LEAN_VARIANCE = FLOOR = CENTRE = SPREAD = ANCHOR = LEAN = CONTEXTS = REWARDS = 0
INFORMATION = RESPONSE = DESIGN = SCORING = LOG_LIKELIHOOD = SUMS = 0
EARLIER_INFORMATION = EARLIER_RESPONSE = SIZES = STATE = 0
"""Placeholders: where the parts of the state begin, and its length."""
RESIDUAL = LEVERAGE = VARIANCE = U = ORDER = MATRIX = NEW = VECTOR = CLIMB = 0
NEXT_SCALES = OLD_SCALES = OLD_LEAN = NEXT_SCORING = SHIFT = WORK = 0
"""Placeholders: where the parts of the room for intermediate results begin, and its length."""

COUNT = len(SHAPES)
NU = tuple(float(nu) for nu in SHAPES)
HEIGHT = tuple(float(x) for x in LOG_HEIGHT)
FISHER = tuple(float(x) for x in INFORMATION_OF_SCALE)
FIRST_LEAN, EQUAL, ALARM = student_fit._FIRST_LEAN, student_fit._EQUAL, student_fit._ALARM


def lean_to_variance(log: float) -> float:
    """Return a² = exp(2 ln a), within bounds."""
    return math.exp(min(max(2.0 * log, -40.0), 40.0))


def relative_variance(s: Array, n: int) -> float:
    """Return a² at a pull of the buffer."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    log = 0.0
    for i in range(dim):
        log += (s[CONTEXTS + n * size + i] - s[ANCHOR + i]) * s[LEAN + i]
    return lean_to_variance(log)


def project(s: Array, n: int, block: Array, row: Array) -> float:
    """Write xᵀ[S | θ] for a pull of the buffer, and return ‖Sᵀx‖²."""
    size = int(s[SIZES + 1])
    for j in range(size + 1):
        row[j] = 0.0
    for i in range(size):
        x = s[CONTEXTS + n * size + i]
        for j in range(size + 1):
            row[j] += x * block[i * (size + 1) + j]
    square = 0.0
    for j in range(size):
        square += row[j] * row[j]
    return square


def measure(s: Array, first: int, last: int, work: Array) -> None:
    """Write residual, leverage, a² and squared standardised residual of pulls of the buffer."""
    size = int(s[SIZES + 1])
    block, row = s[BLOCK : BLOCK + size * (size + 1)], work[VECTOR : VECTOR + size + 1]
    scale = s[SCALES + int(s[SHAPE])]
    for n in range(first, last):
        leverage = project(s, n, block, row)
        residual = s[REWARDS + n] - s[ORIGIN] - row[size]
        variance = relative_variance(s, n)
        work[RESIDUAL + n], work[LEVERAGE + n] = residual, leverage
        work[VARIANCE + n] = variance
        share = residual / scale
        work[U + n] = (share * share + leverage) / variance


def discard(s: Array, k: int, work: Array) -> None:
    """Replace the first k pulls of the buffer by their summary."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    measure(s, 0, k, work)
    shape, z = int(s[SHAPE]), dim + 1
    scale, nu = s[SCALES + shape], NU[shape]
    for j in range(COUNT):
        s[LOG_LIKELIHOOD + j] += log_likelihood(s, work, k, j, s[SCALES + j], scale)
    row = work[VECTOR : VECTOR + z]
    for n in range(k):
        place(s, n, row)
        for j in range(COUNT):
            ratio = scale / s[SCALES + j]
            score = scored(min(ratio * ratio * work[U + n], 1e200), NU[j])
            for i in range(z):
                s[SCORING + j * z + i] += score * row[i]
        u = min(work[U + n], 1e200)
        w = (nu + 1.0) / (nu + u)
        s[SUMS] += w * (nu - u) / (nu + u)
        s[SUMS + 1] += w
        s[SUMS + 2] += w * w * u
        work[ORDER + n] = w / work[VARIANCE + n]
        for i in range(z):
            for j in range(z):
                s[DESIGN + i * z + j] += row[i] * row[j]
    gather(s, k, work)
    for i in range(size):
        total = work[VECTOR + i]
        for j in range(size):
            new = work[MATRIX + i * size + j]
            s[INFORMATION + i * size + j] += new
            total += new * s[BLOCK + j * (size + 1) + size]
        s[RESPONSE + i] += total
    kept = int(s[KEPT])
    for n in range(k, kept):
        copy_pull(s, n, n - k)
    s[KEPT] = float(kept - k)


def copy_pull(s: Array, here: int, there: int) -> None:
    """Copy a pull to another place of the buffer."""
    size = int(s[SIZES + 1])
    for i in range(size):
        s[CONTEXTS + there * size + i] = s[CONTEXTS + here * size + i]
    s[REWARDS + there] = s[REWARDS + here]


def place(s: Array, n: int, row: Array) -> None:
    """Write (x − x₀, 1) of a pull."""
    dim = int(s[SIZES])
    for i in range(dim):
        row[i] = s[CONTEXTS + n * int(s[SIZES + 1]) + i] - s[ANCHOR + i]
    row[dim] = 1.0


def scored(u: float, nu: float) -> float:
    """Return uψ(u) − 1, the score of ln s, from a square."""
    return (nu + 1.0) * u / (nu + u) - 1.0


def gather(s: Array, k: int, work: Array) -> None:
    """Write J Σ w x xᵀ to MATRIX and Σ w r x to VECTOR for the first k pulls, with w in ORDER."""
    size = int(s[SIZES + 1])
    for i in range(size * size):
        work[MATRIX + i] = 0.0
    for i in range(size):
        work[VECTOR + i] = 0.0
    for n in range(k):
        w, at = work[ORDER + n], CONTEXTS + n * size
        for i in range(size):
            x = w * s[at + i]
            work[VECTOR + i] += x * work[RESIDUAL + n]
            for j in range(size):
                work[MATRIX + i * size + j] += s[SLOPE] * x * s[at + j]


def log_likelihood(s: Array, work: Array, n: int, shape: int, scale: float, now: float) -> float:
    """Return the log likelihood of n pulls under a shape, without the terms that all share."""
    nu, total, factor, ratio = NU[shape], 0.0, 1.0, now / scale
    for i in range(n):
        factor *= 1.0 + min(ratio * ratio * work[U + i], 1e200) / nu
        if factor > 1e60:  # one logarithm for many factors
            total += math.log(factor)
            factor = 1.0
    total += math.log(factor)
    return n * (HEIGHT[shape] - math.log(scale)) - (nu + 1.0) / 2.0 * total


def layout(**lengths: int) -> dict[str, int]:
    """Return where each part begins."""
    ends = np.cumsum([0, *lengths.values()])
    return {name: int(end) for name, end in zip(lengths, ends, strict=False)}
