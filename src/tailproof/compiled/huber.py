"""SymmetricOFUL on one path.

It follows `tailproof.policies.symmetric_oful` and `tailproof.policies.state.huber_fit`, which
explain each step. Any root S of an inverse serves: here it comes from Cholesky's factor.
"""

import math

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.sorting import sort_up_to
from tailproof.compiled.streams import Words
from tailproof.compiled.student_parts import inverse_root, layout
from tailproof.compiled.targets import bind
from tailproof.policies import SymmetricOFUL
from tailproof.policies.state import huber_fit
from tailproof.policies.symmetric_oful import _LONGER, _TRIES
from tailproof.typing import Array

__all__ = ["symmetric_oful"]

ARMS, DIM, KIND = 1, 1, 0
"""Placeholders: K, d, and which radius."""
ROOT = LOG_DET = TAU = THETA = NORM = RADIUS = FITTED = FITTED_LOG_DET = CONTEXTS = REWARDS = 0
RESIDUAL = ALONG = MATRIX = OTHER = STEP = DESCENT = ROW = STATE = WORK = 0
"""Placeholders: where the parts of the state and of the room for intermediate results begin."""
_GROWTH, _STEPS, _HALVINGS = huber_fit.GROWTH, huber_fit._STEPS, huber_fit._HALVINGS
_TOLERANCE = huber_fit._TOLERANCE
_THEOREM, _OBSERVABLE, _REFINED, _PRACTICAL = range(4)
_KINDS = ("theorem", "observable", "refined", "practical")
_PENALTY, _KAPPA, _LOG, _LENGTH, _TOLD, _LEAST_TAU, _PILOT, _BONUS = range(8)  # places of p
_SWEEPS = 12
"""Sweeps of Jacobi's rotations: they converge quadratically, after about six."""


def symmetric_oful(policy: SymmetricOFUL, sizes: Sizes) -> Form:
    """Return the form of SymmetricOFUL."""
    d, n = sizes.dim, sizes.decisions
    kind = _KINDS.index(policy.radius)
    settings = (
        policy._penalty(d),
        policy._kappa,
        policy._log(1 if kind == _OBSERVABLE else 2),
        math.sqrt(policy._penalty(d)) * policy.norm_bound,
        policy.tau or 0.0,
        policy._least_tau,
        float(policy.pilot),
        policy.bonus,
    )
    state = layout(
        ROOT=d * d, LOG_DET=1, TAU=1, THETA=d, NORM=d * d, RADIUS=1, FITTED=1, FITTED_LOG_DET=1,
        CONTEXTS=n * d, REWARDS=n, STATE=0,
    )  # fmt: skip
    work = layout(
        RESIDUAL=n, ALONG=n, MATRIX=d * d, OTHER=d * d, STEP=d, DESCENT=d, ROW=2 * d, WORK=0
    )
    numbers = {**state, **work, "KIND": kind}
    return Form(
        bind(start, **numbers),
        bind(index, **numbers),
        bind(learn, **numbers),
        settings,
        state=state["STATE"],
        work=work["WORK"],
        vectors=True,
        estimate=bind(estimate, **numbers),
        large=True,
    )


def start(s: Array, p: Array) -> None:
    for i in range(CONTEXTS):
        s[i] = 0.0
    for i in range(DIM):
        s[ROOT + i * (DIM + 1)] = 1.0 / math.sqrt(p[_PENALTY] / p[_KAPPA])
        s[NORM + i * (DIM + 1)] = 1.0
    s[TAU], s[RADIUS] = p[_TOLD], math.inf


def estimate(s: Array, p: Array, values: Array) -> None:
    for i in range(DIM):
        values[i] = s[THETA + i]


def index(s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array) -> None:
    for k in range(ARMS):
        mean, square = 0.0, 0.0
        for j in range(DIM):
            mean += offers[j, k] * s[THETA + j]
            along = 0.0
            for i in range(DIM):
                along += s[NORM + i * DIM + j] * offers[i, k]
            square += along * along
        values[k] = mean + p[_BONUS] * (s[RADIUS] * math.sqrt(square))


def learn(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    tuned = s[TAU] > 0.0
    for i in range(DIM):  # the pilot is left out of the fit
        s[CONTEXTS + t * DIM + i] = offers[i, k] if tuned else 0.0
    s[REWARDS + t] = min(max(y[0], -1e100), 1e100)
    add_pull(s, s[CONTEXTS + t * DIM : CONTEXTS + (t + 1) * DIM], work)
    n = t + 1
    if not tuned:
        if n >= p[_PILOT]:
            s[TAU] = max(typical_size(s, n, work), p[_LEAST_TAU])
        return
    wider = s[LOG_DET] >= s[FITTED_LOG_DET] + math.log1p(_GROWTH)
    if n >= s[FITTED] * (1.0 + _GROWTH) or wider:
        fit(s, p, n, work)


def typical_size(s: Array, n: int, work: Array) -> float:
    zeros = 0
    for i in range(n):
        work[i] = abs(s[REWARDS + i])
        zeros += 1 if work[i] == 0.0 else 0
    sort_up_to(work, n)
    return work[min(zeros + (n - zeros) // 2, n - 1)]


def add_pull(s: Array, x: Array, work: Array) -> None:
    """Update S, with SSᵀ = U⁻¹, and ln det; see `ridge.update_root`."""
    row, growth = work[ROW : ROW + DIM], 1.0
    for j in range(DIM):
        row[j] = 0.0
        for i in range(DIM):
            row[j] += x[i] * s[ROOT + i * DIM + j]
        growth += row[j] * row[j]
    part = 1.0 / (growth + math.sqrt(growth))
    for i in range(DIM):
        gain = 0.0
        for j in range(DIM):
            gain += s[ROOT + i * DIM + j] * row[j]
        for j in range(DIM):
            s[ROOT + i * DIM + j] -= gain * (row[j] * part)
    s[LOG_DET] += math.log(growth)


def fit(s: Array, p: Array, n: int, work: Array) -> None:
    """Fit all n pulls, in units of τ."""
    tau = s[TAU]
    for i in range(DIM):
        s[THETA + i] /= tau
    minimise(s, p[_PENALTY], n, work)
    residuals(s, n, work)
    descend(s, p[_PENALTY], n, work)  # −∇F, not quite zero
    if KIND == _THEOREM:
        s[RADIUS] = tau * of_theorem(s, p, work)
    else:
        s[RADIUS] = tau * measured(s, p, n, work)
    for i in range(DIM):
        s[THETA + i] *= tau
    s[FITTED], s[FITTED_LOG_DET] = float(n), s[LOG_DET]


def residuals(s: Array, n: int, work: Array) -> None:
    for k in range(n):
        r = min(max(s[REWARDS + k] / s[TAU], -1e100), 1e100)
        for i in range(DIM):
            r -= s[CONTEXTS + k * DIM + i] * s[THETA + i]
        work[RESIDUAL + k] = r


def clipped(r: float) -> float:
    return min(max(r, -1.0), 1.0)


def descend(s: Array, penalty: float, n: int, work: Array) -> None:
    for i in range(DIM):
        work[DESCENT + i] = -penalty * s[THETA + i]
    for k in range(n):
        score = clipped(work[RESIDUAL + k])
        for i in range(DIM):
            work[DESCENT + i] += score * s[CONTEXTS + k * DIM + i]


def length_in(root: Array, vector: Array) -> float:
    """Return ‖v‖ in the norm of SSᵀ."""
    square = 0.0
    for j in range(DIM):
        along = 0.0
        for i in range(DIM):
            along += root[i * DIM + j] * vector[i]
        square += along * along
    return math.sqrt(square)


def minimise(s: Array, penalty: float, n: int, work: Array) -> None:
    """Minimise Huber's loss by Newton steps with a line search."""
    root, descent = s[ROOT : ROOT + DIM * DIM], work[DESCENT : DESCENT + DIM]
    for _ in range(_STEPS):
        residuals(s, n, work)
        descend(s, penalty, n, work)
        if not length_in(root, descent) > _TOLERANCE:
            return
        gram_within(s, 1.0, penalty, n, work)
        inner = work[OTHER : OTHER + DIM * DIM]
        inverse_root(work[MATRIX : MATRIX + DIM * DIM], DIM, inner, DIM)
        for j in range(DIM):
            total = 0.0
            for i in range(DIM):
                total += inner[i * DIM + j] * descent[i]
            work[ROW + j] = total
        slope, bend, steepest = 0.0, 0.0, 0.0
        for i in range(DIM):
            step = 0.0
            for j in range(DIM):
                step += inner[i * DIM + j] * work[ROW + j]
            work[STEP + i] = step
            slope -= descent[i] * step
            bend += penalty * step * step
        for k in range(n):
            along = 0.0
            for i in range(DIM):
                along += s[CONTEXTS + k * DIM + i] * work[STEP + i]
            work[ALONG + k] = along
            steepest += along * along
        u = step_length(n, slope, bend, bend + steepest, work)
        for i in range(DIM):
            s[THETA + i] += u * work[STEP + i]


def step_length(n: int, slope: float, bend: float, steepest: float, work: Array) -> float:
    """Return the u ≤ 1 of the least loss."""
    if not rises(n, 1.0, slope, bend, work):
        return 1.0
    low, high = min(-slope / steepest, 1.0), 1.0
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2.0
        if rises(n, middle, slope, bend, work):
            high = middle
        else:
            low = middle
    return low


def rises(n: int, u: float, slope: float, bend: float, work: Array) -> bool:
    total = slope + u * bend
    for k in range(n):
        r, along = work[RESIDUAL + k], work[ALONG + k]
        total += (clipped(r) - clipped(r - u * along)) * along
    return total > 0.0


def gram_within(s: Array, reach: float, penalty: float, n: int, work: Array) -> None:
    """Write λI + Σ x xᵀ over residuals of a size of at most `reach` to MATRIX."""
    for i in range(DIM * DIM):
        work[MATRIX + i] = 0.0
    for k in range(n):
        if abs(work[RESIDUAL + k]) <= reach:
            add_square(s, k, 1.0, work)
    finish_gram(penalty, work)


def gram_of_squares(s: Array, w: float, penalty: float, n: int, work: Array) -> None:
    """Write λI + Σ min(1, |r| + w)² x xᵀ to MATRIX."""
    for i in range(DIM * DIM):
        work[MATRIX + i] = 0.0
    for k in range(n):
        size = min(1.0, abs(work[RESIDUAL + k]) + w)
        add_square(s, k, size * size, work)
    finish_gram(penalty, work)


def add_square(s: Array, k: int, weight: float, work: Array) -> None:
    for i in range(DIM):
        x = weight * s[CONTEXTS + k * DIM + i]
        for j in range(i + 1):
            work[MATRIX + i * DIM + j] += x * s[CONTEXTS + k * DIM + j]


def finish_gram(penalty: float, work: Array) -> None:
    for i in range(DIM):
        work[MATRIX + i * DIM + i] += penalty
        for j in range(i):
            work[MATRIX + j * DIM + i] = work[MATRIX + i * DIM + j]


# The radius


def of_theorem(s: Array, p: Array, work: Array) -> float:
    for i in range(DIM * DIM):
        s[NORM + i] = s[ROOT + i] / math.sqrt(p[_KAPPA])
    noise = math.sqrt((p[_LOG] + s[LOG_DET]) / p[_KAPPA])
    rest = length_in(s[NORM : NORM + DIM * DIM], work[DESCENT : DESCENT + DIM])
    return 2.0 * (noise + p[_LENGTH] / s[TAU] + rest)


def measured(s: Array, p: Array, n: int, work: Array) -> float:
    """Write N, and return β: with the least certified w, or else w = 0."""
    root, rest = s[ROOT : ROOT + DIM * DIM], work[DESCENT : DESCENT + DIM]
    shift, reach = p[_LENGTH] / s[TAU], 0.0
    total = math.sqrt(p[_LOG] + s[LOG_DET]) + shift + length_in(root, rest)
    for k in range(n):
        reach = max(reach, length_in(root, s[CONTEXTS + k * DIM : CONTEXTS + (k + 1) * DIM]))
    w, sure = 0.0, False
    if KIND != _PRACTICAL:
        for _ in range(_TRIES):
            share = share_within(s, p[_PENALTY], w, n, work)
            sure = reach * total < share * w and w < 1.0
            if sure or w >= 1.0:
                break
            w = _LONGER * reach * total / share
    w = w if sure else 0.0
    if KIND == _OBSERVABLE:
        for i in range(DIM * DIM):
            s[NORM + i] = s[ROOT + i]
        return total / share_within(s, p[_PENALTY], w, n, work)
    gram_within(s, 1.0 - w, p[_PENALTY], n, work)
    norm = s[NORM : NORM + DIM * DIM]
    inverse_root(work[MATRIX : MATRIX + DIM * DIM], DIM, norm, DIM)
    gram_of_squares(s, w, p[_PENALTY] / 4.0, n, work)
    turn(norm, work)
    log_det = log_det_of(p[_PENALTY] / 4.0, work)
    _, largest = extreme(work[OTHER : OTHER + DIM * DIM])
    return math.sqrt(largest * (p[_LOG] + log_det)) + shift + length_in(norm, rest)


def share_within(s: Array, penalty: float, w: float, n: int, work: Array) -> float:
    """Return κ̂(w)."""
    gram_within(s, 1.0 - w, penalty, n, work)
    turn(s[ROOT : ROOT + DIM * DIM], work)
    least, _ = extreme(work[OTHER : OTHER + DIM * DIM])
    return max(least, 1e-12)


def turn(root: Array, work: Array) -> None:
    """Write SᵀMS to OTHER, with M in MATRIX."""
    for j in range(DIM):
        for i in range(DIM):
            total = 0.0
            for k in range(DIM):
                total += work[MATRIX + i * DIM + k] * root[k * DIM + j]
            work[ROW + i] = total
        for i in range(DIM):
            total = 0.0
            for k in range(DIM):
                total += root[k * DIM + i] * work[ROW + k]
            work[OTHER + i * DIM + j] = total


def log_det_of(unit: float, work: Array) -> float:
    """Return ln det(M/unit), with M in MATRIX, by Cholesky's factor."""
    log = 0.0
    for j in range(DIM):
        pivot = work[MATRIX + j * DIM + j]
        for k in range(j):
            pivot -= work[MATRIX + j * DIM + k] * work[MATRIX + j * DIM + k]
        log += math.log(pivot / unit)
        pivot = math.sqrt(pivot)
        for i in range(j + 1, DIM):
            total = work[MATRIX + i * DIM + j]
            for k in range(j):
                total -= work[MATRIX + i * DIM + k] * work[MATRIX + j * DIM + k]
            work[MATRIX + i * DIM + j] = total / pivot
        work[MATRIX + j * DIM + j] = pivot
    return log


def extreme(a: Array) -> tuple[float, float]:
    """Return the least and the largest eigenvalue of a symmetric matrix, by Jacobi's rotations."""
    for _ in range(_SWEEPS):
        off, size = 0.0, 0.0
        for i in range(DIM):
            size += a[i * DIM + i] * a[i * DIM + i]
            for j in range(i):
                off += a[i * DIM + j] * a[i * DIM + j]
        if off <= 1e-32 * size:
            break
        for i in range(1, DIM):
            for j in range(i):
                rotate(a, i, j)
    least, largest = a[0], a[0]
    for i in range(1, DIM):
        least, largest = min(least, a[i * DIM + i]), max(largest, a[i * DIM + i])
    return least, largest


def rotate(a: Array, i: int, j: int) -> None:
    """Rotate rows and columns i and j of a symmetric matrix so that their product is zero."""
    off = a[i * DIM + j]
    if off == 0.0:
        return
    half = (a[i * DIM + i] - a[j * DIM + j]) / (2.0 * off)
    t = 1.0 / (abs(half) + math.sqrt(half * half + 1.0))
    t = t if half >= 0.0 else -t
    c = 1.0 / math.sqrt(t * t + 1.0)
    sine = t * c
    for k in range(DIM):
        x, y = a[k * DIM + i], a[k * DIM + j]
        a[k * DIM + i], a[k * DIM + j] = c * x + sine * y, c * y - sine * x
    for k in range(DIM):
        x, y = a[i * DIM + k], a[j * DIM + k]
        a[i * DIM + k], a[j * DIM + k] = c * x + sine * y, c * y - sine * x
