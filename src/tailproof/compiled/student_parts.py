"""What the parts of LinStudentUCB's scalar form share: where its numbers are, and sums over pulls.

The state is one array. E is the number of coefficients, the intercept included, and R the number of
pulls in the buffer.
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
EARLIER_INFORMATION = EARLIER_RESPONSE = SIZES = GAP = LOOKED = STATE = 0
"""Placeholders: where the parts of the state begin, and its length."""
RESIDUAL = LEVERAGE = VARIANCE = U = ORDER = MATRIX = NEW = VECTOR = CLIMB = 0
NEXT_SCALES = OLD_SCALES = OLD_LEAN = NEXT_SCORING = SHIFT = 0
FOLDED = FITS = STARTS = WORK = 0
"""Placeholders: where the parts of the room for intermediate results begin, and its length."""

COUNT = len(SHAPES)
NU = tuple(float(nu) for nu in SHAPES)
HEIGHT = tuple(float(x) for x in LOG_HEIGHT)
FISHER = tuple(float(x) for x in INFORMATION_OF_SCALE)
FIRST_LEAN, EQUAL, ALARM = student_fit._FIRST_LEAN, student_fit._EQUAL, student_fit._ALARM


def lean_to_variance(log: float) -> float:
    """Return a² = exp(2 ln a), within bounds."""
    return math.exp(min(max(2.0 * log, -40.0), 40.0)) if log != 0.0 else 1.0


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


def location(s: Array, n: int) -> float:
    """Return b + xᵀθ from the origin for a pull of the buffer."""
    size = int(s[SIZES + 1])
    total = 0.0
    for j in range(size):
        total += s[CONTEXTS + n * size + j] * s[BLOCK + j * (size + 1) + size]
    return total


def fold(s: Array, first: int, last: int, work: Array) -> None:
    """Write rewards of the buffer from the origin, both modes laid on their centre."""
    gap = s[GAP]
    for n in range(first, last):
        y = s[REWARDS + n] - s[ORIGIN]
        if gap > 0.0:
            y = y - gap if y >= location(s, n) else y + gap
        work[FOLDED + n] = y


def measure(s: Array, first: int, last: int, work: Array) -> None:
    """Write residual, leverage, a² and squared standardised residual of folded rewards."""
    size = int(s[SIZES + 1])
    block, row = s[BLOCK : BLOCK + size * (size + 1)], work[VECTOR : VECTOR + size + 1]
    scale = s[SCALES + int(s[SHAPE])]
    for n in range(first, last):
        leverage = project(s, n, block, row)
        residual = work[FOLDED + n] - row[size]
        variance = relative_variance(s, n)
        work[RESIDUAL + n], work[LEVERAGE + n] = residual, leverage
        work[VARIANCE + n] = variance
        share = residual / scale
        work[U + n] = (share * share + leverage) / variance


def discard(s: Array, k: int, work: Array) -> None:
    """Replace the first k pulls of the buffer by their summary."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    fold(s, 0, k, work)
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


def prior_size(s: Array) -> float:
    """Return Σ centre²/spread + d, the denominator of the prior."""
    dim = int(s[SIZES])
    length = float(dim)
    for i in range(dim):
        length += s[CENTRE + i] * s[CENTRE + i] / prior_spread(s, i)
    return length


def prior_spread(s: Array, i: int) -> float:
    """Return the spread of a coordinate, above rounding."""
    return max(s[SPREAD + i], 1e-8 * s[CENTRE + i] * s[CENTRE + i] + 1e-200)


def add_prior(s: Array, factor: float, matrix: Array) -> None:
    """Add a multiple of P to a matrix of shape (E, E)."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    length = prior_size(s)
    for i in range(dim):
        for j in range(dim):
            matrix[i * size + j] -= factor * s[CENTRE + i] * s[CENTRE + j] / length
        matrix[i * size + i] += factor * prior_spread(s, i)


def inverse_root(m: Array, size: int, root: Array, stride: int) -> None:
    """Write S with SSᵀ = M⁻¹ to the first columns of `root`; M is overwritten.

    M is scaled to a unit diagonal, M = D L Lᵀ D, and S = D⁻¹ L⁻ᵀ; pivots are kept above rounding.
    """
    for i in range(size):
        root[i * stride] = 1.0 / math.sqrt(max(m[i * size + i], 1e-300))
    for i in range(size):
        for j in range(i + 1):
            m[i * size + j] *= root[i * stride] * root[j * stride]
    for j in range(size):  # Cholesky's factor, in the lower half
        pivot = m[j * size + j]
        for k in range(j):
            pivot -= m[j * size + k] * m[j * size + k]
        pivot = math.sqrt(max(pivot, 1e-14))
        m[j * size + j] = pivot
        for i in range(j + 1, size):
            total = m[i * size + j]
            for k in range(j):
                total -= m[i * size + k] * m[j * size + k]
            m[i * size + j] = total / pivot
    for i in range(size):  # its inverse, in its place
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total -= m[i * size + k] * m[k * size + j]
            m[i * size + j] = total / m[i * size + i]
        m[i * size + i] = 1.0 / m[i * size + i]
    for i in range(size):
        unit = root[i * stride]
        for j in range(size):
            root[i * stride + j] = m[j * size + i] * unit if j >= i else 0.0


def layout(**lengths: int) -> dict[str, int]:
    """Return where each part begins."""
    ends = np.cumsum([0, *lengths.values()])
    return {name: int(end) for name, end in zip(lengths, ends, strict=False)}
