"""What the parts of LinStudentUCB's scalar form share: where its numbers are, and sums over pulls.

The state is one array. E is the number of coefficients, the intercept included, and R the number of
pulls in the buffer.
"""

import math

import numpy as np

from tailproof.compiled.elementary import lean_to_variance
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
FOLDED = FITS = STARTS = LINE = WEIGHT = PARTS = CENTRED = MOVED = WORK = 0
"""Placeholders: where the parts of the room for intermediate results begin, and its length."""

COUNT = len(SHAPES)
NU = tuple(float(nu) for nu in SHAPES)
HEIGHT = tuple(float(x) for x in LOG_HEIGHT)
FISHER = tuple(float(x) for x in INFORMATION_OF_SCALE)
FIRST_LEAN, EQUAL, ALARM = student_fit._FIRST_LEAN, student_fit._EQUAL, student_fit._ALARM


def relative_variance(s: Array, n: int) -> float:
    """Return a² at a pull of the buffer."""
    dim = int(s[SIZES])
    log = 0.0
    for i in range(dim):
        log += (s[CONTEXTS + i * ROOM + n] - s[ANCHOR + i]) * s[LEAN + i]
    return lean_to_variance(log)


def project(s: Array, n: int, block: Array, work: Array) -> None:
    """Write xᵀθ to LINE and ‖Sᵀx‖² to LEVERAGE for the first pulls of the buffer."""
    size = int(s[SIZES + 1])
    for m in range(n):
        work[LEVERAGE + m] = 0.0
    for j in range(size + 1):
        along(s, n, block, j, work)
        if j < size:
            for m in range(n):
                work[LEVERAGE + m] += work[LINE + m] * work[LINE + m]


def along(s: Array, n: int, block: Array, column: int, work: Array) -> None:
    """Write the product of pulls with a column of [S | θ] to LINE."""
    size = int(s[SIZES + 1])
    for m in range(n):
        work[LINE + m] = 0.0
    for i in range(size):
        factor = block[i * (size + 1) + column]
        if factor != 0.0:  # a root is triangular at first
            for m in range(n):
                work[LINE + m] += factor * s[CONTEXTS + i * ROOM + m]


def add_moments(x: Array, size: int, n: int, matrix: Array, work: Array) -> None:
    """Add Σ w x xᵀ over n pulls to a matrix, with w in WEIGHT and a coordinate in ROOM places."""
    for i in range(size):
        for m in range(n):
            work[LINE + m] = work[WEIGHT + m] * x[i * ROOM + m]
        for j in range(i + 1):
            total = product_of(work, LINE, x, j * ROOM, n, work)
            matrix[i * size + j] += total
            if j < i:
                matrix[j * size + i] += total


def product_of(a: Array, at: int, b: Array, start: int, n: int, work: Array) -> float:
    """Return Σ ab of n numbers of two arrays; cores multiply several at a time.

    They do so where no place can be negative, which would count from the end of an array.
    """
    at, start, half = max(at, 0), max(start, 0), n // 2
    for m in range(half):
        work[PARTS + m] = a[at + m] * b[start + m] + a[at + half + m] * b[start + half + m]
    last = a[at + n - 1] * b[start + n - 1] if n % 2 == 1 else 0.0
    return last + sum_of(work, PARTS, half)


def sum_of(x: Array, at: int, n: int) -> float:
    """Return the sum of n numbers: eight at a time, as each sum waits for the one before."""
    at, part, total = max(at, 0), n // 8, 0.0
    for m in range(8 * part, n):
        total += x[at + m]
    for m in range(at, at + part):
        total += ((x[m] + x[m + part]) + (x[m + 2 * part] + x[m + 3 * part])) + (
            (x[m + 4 * part] + x[m + 5 * part]) + (x[m + 6 * part] + x[m + 7 * part])
        )
    return total


def location(s: Array, n: int) -> float:
    """Return b + xᵀθ from the origin for a pull of the buffer."""
    size = int(s[SIZES + 1])
    total = 0.0
    for j in range(size):
        total += s[CONTEXTS + j * ROOM + n] * s[BLOCK + j * (size + 1) + size]
    return total


def fold(s: Array, n: int, work: Array) -> None:
    """Write the first rewards of the buffer from the origin, both modes laid on their centre."""
    gap = s[GAP]
    for m in range(n):
        work[FOLDED + m] = s[REWARDS + m] - s[ORIGIN]
    if gap > 0.0:
        for m in range(n):
            work[FOLDED + m] += -gap if work[FOLDED + m] >= location(s, m) else gap


def measure(s: Array, n: int, work: Array) -> None:
    """Write residual, leverage, a² and squared standardised residual of folded rewards."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    scale, lean = s[SCALES + int(s[SHAPE])], False
    project(s, n, s[BLOCK : BLOCK + size * (size + 1)], work)
    for m in range(n):
        work[RESIDUAL + m] = work[FOLDED + m] - work[LINE + m]
        work[LINE + m] = 0.0
    for i in range(dim):
        factor, anchor = s[LEAN + i], s[ANCHOR + i]
        if factor != 0.0:
            lean = True
            for m in range(n):
                work[LINE + m] += factor * (s[CONTEXTS + i * ROOM + m] - anchor)
    for m in range(n):
        work[VARIANCE + m] = lean_to_variance(work[LINE + m]) if lean else 1.0
    for m in range(n):
        share = work[RESIDUAL + m] / scale
        work[U + m] = (share * share + work[LEVERAGE + m]) / work[VARIANCE + m]


def discard(s: Array, k: int, work: Array) -> None:
    """Replace the first k pulls of the buffer by their summary."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    fold(s, k, work)
    measure(s, k, work)
    shape, z = int(s[SHAPE]), dim + 1
    scale, nu = s[SCALES + shape], NU[shape]
    for j in range(COUNT):
        s[LOG_LIKELIHOOD + j] += log_likelihood(s, work, k, j, s[SCALES + j], scale)
    centred = work[CENTRED : CENTRED + z * ROOM]
    place(s, k, work)
    for j in range(COUNT):
        ratio = scale / s[SCALES + j]
        score(work, k, ratio * ratio, NU[j])
        for i in range(z):
            s[SCORING + j * z + i] += product_of(work, LINE, centred, i * ROOM, k, work)
    for n in range(k):
        work[WEIGHT + n] = 1.0
    add_moments(centred, z, k, s[DESIGN : DESIGN + z * z], work)
    for n in range(k):
        u = min(work[U + n], 1e200)
        w = (nu + 1.0) / (nu + u)
        s[SUMS] += w * (nu - u) / (nu + u)
        s[SUMS + 1] += w
        s[SUMS + 2] += w * w * u
        work[WEIGHT + n] = w / work[VARIANCE + n]
    gather(s, k, work)
    for i in range(size):
        total = work[VECTOR + i]
        for j in range(size):
            new = work[MATRIX + i * size + j]
            s[INFORMATION + i * size + j] += new
            total += new * s[BLOCK + j * (size + 1) + size]
        s[RESPONSE + i] += total
    kept = int(s[KEPT])
    for i in range(size):
        for n in range(k, kept):
            s[CONTEXTS + i * ROOM + n - k] = s[CONTEXTS + i * ROOM + n]
    for n in range(k, kept):
        s[REWARDS + n - k] = s[REWARDS + n]
    s[KEPT] = float(kept - k)


def place(s: Array, n: int, work: Array) -> None:
    """Write (x − x₀, 1) of the first pulls to CENTRED."""
    dim = int(s[SIZES])
    for i in range(dim):
        for m in range(n):
            work[CENTRED + i * ROOM + m] = s[CONTEXTS + i * ROOM + m] - s[ANCHOR + i]
    for m in range(n):
        work[CENTRED + dim * ROOM + m] = 1.0


def score(work: Array, n: int, factor: float, nu: float) -> None:
    """Write uψ(u) − 1, the scores of ln s, to LINE, from multiples of the squares in U."""
    for m in range(n):
        u = min(factor * work[U + m], 1e200)
        work[LINE + m] = (nu + 1.0) * u / (nu + u) - 1.0


def gather(s: Array, n: int, work: Array) -> None:
    """Write J Σ w x xᵀ to MATRIX and Σ w r x to VECTOR for the first pulls, with w in WEIGHT."""
    size = int(s[SIZES + 1])
    matrix = work[MATRIX : MATRIX + size * size]
    contexts = s[CONTEXTS : CONTEXTS + size * ROOM]
    for i in range(size * size):
        matrix[i] = 0.0
    add_moments(contexts, size, n, matrix, work)
    for i in range(size * size):
        matrix[i] *= s[SLOPE]
    for m in range(n):
        work[LINE + m] = work[WEIGHT + m] * work[RESIDUAL + m]
    for i in range(size):
        work[VECTOR + i] = product_of(work, LINE, contexts, i * ROOM, n, work)


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
