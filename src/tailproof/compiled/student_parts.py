"""What the parts of LinStudentUCB's scalar form share: where its numbers are, and sums over pulls.

The state is one array. E counts the coefficients, those of the vector and the intercept if there is
one, and R the pulls in the buffer.
"""

import math

import numpy as np

from tailproof.policies.state import student_fit
from tailproof.policies.state.student_fit import SHAPES
from tailproof.typing import Array

ARMS, DIM, SIZE, ROOM = 1, 1, 1, 1
"""Placeholders: K, d, E and R."""
BLOCK = SCALES = SHAPE = PENALTY = SLOPE = INFLATION = RENEWAL = DUE = KEPT = ORIGIN = 0
EARLIER_SCALE = LEAN_VARIANCE = FLOOR = CENTRE = SPREAD = ANCHOR = LEAN = CONTEXTS = REWARDS = 0
INFORMATION = RESPONSE = DESIGN = SCORING = LOG_LIKELIHOOD = SUMS = 0
EARLIER_INFORMATION = EARLIER_RESPONSE = STATE = 0
"""Placeholders: where the parts of the state begin, and its length."""
RESIDUAL = LEVERAGE = VARIANCE = U = ORDER = MATRIX = NEW = VECTOR = CLIMB = 0
NEXT_SCALES = OLD_SCALES = OLD_LEAN = NEXT_SCORING = SHIFT = WORK = 0
"""Placeholders: where the parts of the room for intermediate results begin, and its length."""

COUNT = len(SHAPES)
NU = tuple(float(nu) for nu in SHAPES)
HEIGHT = tuple(float(x) for x in student_fit._LOG_HEIGHT)
FISHER = tuple(float(x) for x in student_fit._INFORMATION)
FIRST_LEAN, EQUAL, ALARM = student_fit._FIRST_LEAN, student_fit._EQUAL, student_fit._ALARM


def lean_to_variance(log: float) -> float:
    return math.exp(min(max(2.0 * log, -40.0), 40.0))


def relative_variance(s: Array, n: int) -> float:
    """Return a² at a pull of the buffer."""
    log = 0.0
    for i in range(DIM):
        log += (s[CONTEXTS + n * SIZE + i] - s[ANCHOR + i]) * s[LEAN + i]
    return lean_to_variance(log)


def project(s: Array, n: int, block: Array, row: Array) -> float:
    """Write xᵀ[S | θ] for a pull of the buffer, and return ‖Sᵀx‖²."""
    for j in range(SIZE + 1):
        row[j] = 0.0
    for i in range(SIZE):
        x = s[CONTEXTS + n * SIZE + i]
        for j in range(SIZE + 1):
            row[j] += x * block[i * (SIZE + 1) + j]
    square = 0.0
    for j in range(SIZE):
        square += row[j] * row[j]
    return square


def measure(s: Array, first: int, last: int, work: Array) -> None:
    """Write residual, leverage, a² and squared standardised residual of pulls of the buffer."""
    block, row = s[BLOCK : BLOCK + SIZE * (SIZE + 1)], work[VECTOR : VECTOR + SIZE + 1]
    scale = s[SCALES + int(s[SHAPE])]
    for n in range(first, last):
        leverage = project(s, n, block, row)
        residual = s[REWARDS + n] - s[ORIGIN] - row[SIZE]
        variance = relative_variance(s, n)
        work[RESIDUAL + n], work[LEVERAGE + n] = residual, leverage
        work[VARIANCE + n] = variance
        share = residual / scale
        work[U + n] = (share * share + leverage) / variance


def discard(s: Array, k: int, work: Array) -> None:
    measure(s, 0, k, work)
    shape, z = int(s[SHAPE]), DIM + 1
    scale, nu = s[SCALES + shape], NU[shape]
    for j in range(COUNT):
        s[LOG_LIKELIHOOD + j] += log_likelihood(s, work, k, j, s[SCALES + j], scale)
        ratio = scale / s[SCALES + j]
        for n in range(k):
            u = min(ratio * ratio * work[U + n], 1e200)
            add_scores(s, n, s[SCORING + j * z : SCORING + (j + 1) * z], scored(u, NU[j]))
    for n in range(k):
        u = min(work[U + n], 1e200)
        w = (nu + 1.0) / (nu + u)
        s[SUMS] += w * (nu - u) / (nu + u)
        s[SUMS + 1] += w
        s[SUMS + 2] += w * w * u
        work[ORDER + n] = w / work[VARIANCE + n]
        for i in range(z):
            x = placed(s, n, i)
            for j in range(z):
                s[DESIGN + i * z + j] += x * placed(s, n, j)
    gather(s, k, work)
    for i in range(SIZE):
        total = work[VECTOR + i]
        for j in range(SIZE):
            new = work[MATRIX + i * SIZE + j]
            s[INFORMATION + i * SIZE + j] += new
            total += new * s[BLOCK + j * (SIZE + 1) + SIZE]
        s[RESPONSE + i] += total
    kept = int(s[KEPT])
    for n in range(k, kept):
        copy_pull(s, n, n - k)
    s[KEPT] = float(kept - k)


def copy_pull(s: Array, here: int, there: int) -> None:
    for i in range(SIZE):
        s[CONTEXTS + there * SIZE + i] = s[CONTEXTS + here * SIZE + i]
    s[REWARDS + there] = s[REWARDS + here]


def placed(s: Array, n: int, i: int) -> float:
    """Return coordinate i of (x − x₀, 1) at a pull."""
    return s[CONTEXTS + n * SIZE + i] - s[ANCHOR + i] if i < DIM else 1.0


def add_scores(s: Array, n: int, total: Array, score: float) -> None:
    for i in range(DIM + 1):
        total[i] += score * placed(s, n, i)


def scored(u: float, nu: float) -> float:
    return (nu + 1.0) * u / (nu + u) - 1.0


def gather(s: Array, k: int, work: Array) -> None:
    """Write J Σ w x xᵀ to MATRIX and Σ w r x to VECTOR for the first k pulls, with w in ORDER."""
    for i in range(SIZE * SIZE):
        work[MATRIX + i] = 0.0
    for i in range(SIZE):
        work[VECTOR + i] = 0.0
    for n in range(k):
        w, at = work[ORDER + n], CONTEXTS + n * SIZE
        for i in range(SIZE):
            x = w * s[at + i]
            work[VECTOR + i] += x * work[RESIDUAL + n]
            for j in range(SIZE):
                work[MATRIX + i * SIZE + j] += s[SLOPE] * x * s[at + j]


def log_likelihood(
    s: Array, work: Array, n: int, shape: int, scale: float, now: float
) -> float:
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
