"""Whether the rewards in the buffer of LinStudentUCB scatter around one centre or around two.

It follows `tailproof.policies.state.two_modes`, which explains each step. A fit of the
clusters is a slot of the room for intermediate results: E coefficients, then gap, scale, degrees of
freedom and log likelihood.
"""

import math

from scipy.special import betaln

from tailproof.compiled.sorting import middle_of, nearest_even, sort_up_to
from tailproof.compiled.student_parts import (
    BLOCK,
    CLIMB,
    CONTEXTS,
    COUNT,
    DESIGN,
    EARLIER_INFORMATION,
    EARLIER_RESPONSE,
    FITS,
    FOLDED,
    GAP,
    INFORMATION,
    LEAN,
    LEVERAGE,
    LINE,
    LOG_LIKELIHOOD,
    LOOKED,
    MATRIX,
    NEW,
    ORDER,
    ORIGIN,
    PENALTY,
    RESIDUAL,
    RESPONSE,
    REWARDS,
    ROOM,
    SCALES,
    SCORING,
    SHAPE,
    SIZES,
    STARTS,
    SUMS,
    VARIANCE,
    VECTOR,
    WEIGHT,
    U,
    add_moments,
    add_prior,
    inverse_root,
    location,
    product_of,
    sum_of,
)
from tailproof.policies.state import student_fit, two_modes
from tailproof.typing import Array

__all__ = ["look_for_modes"]

_LEAST, _SEPARATED, _RESOLVED, _UNEQUAL = (
    two_modes.LEAST,
    two_modes.SEPARATED,
    two_modes._RESOLVED,
    two_modes._UNEQUAL,
)
_CUTS, _ROUNDS, _FLOOR = two_modes._CUTS, two_modes._ROUNDS, two_modes._FLOOR
_TWO, _ONE = (tuple(map(float, fits)) for fits in (two_modes._TWO, two_modes._ONE))
_LOOK, _SURE, _FOUR_AT = student_fit._LOOK, student_fit._SURE, student_fit._FOUR
_HEIGHTS = {nu: float(-betaln(0.5, nu / 2) - math.log(nu) / 2) for nu in _ONE}
_HALF, _CAUCHY, _FOUR, _NORMAL = (_HEIGHTS[nu] for nu in (0.5, 1.0, 4.0, 32.0))
_NOW, _PAIR, _SINGLE, _STILL = range(4)  # the slots
_LOG_2 = math.log(2)


def look_for_modes(s: Array, n: int, t: int, work: Array) -> None:
    """Choose between one mode and two by their likelihood."""
    size = int(s[SIZES + 1])
    if s[GAP] > 0.0:
        refine_gap(s, n)
    if t < _LOOK * s[LOOKED] or n < _LEAST * size:
        return
    s[LOOKED] = float(t)
    for i in range(n):
        y = s[REWARDS + i] - s[ORIGIN]
        work[U + i] = y
        work[ORDER + i] = y - location(s, i)
    strength, low, high = split(work[U : U + n], n)
    left, left_low, left_high = split(work[ORDER : ORDER + n], n)
    on = s[GAP] > 0.0
    if not (max(strength, left) > _SEPARATED or on):
        return
    set_starts(s, (low + high) / 2.0, 0.0 if on else (left_low + left_high) / 2.0, work)
    if on:
        low, high = -s[GAP], s[GAP]
    elif strength < left:
        low, high = left_low, left_high
    gain = compare(s, n, low, high, work)
    decide(s, n, gain, on, work)


def refine_gap(s: Array, n: int) -> None:
    """Learn anew how far two modes are apart, with the weights of a Cauchy law."""
    scale, total, mean = s[SCALES + int(s[SHAPE])], 0.0, 0.0
    for i in range(n):
        off = abs(s[REWARDS + i] - s[ORIGIN] - location(s, i))
        share = (off - s[GAP]) / scale
        w = 1.0 / (1.0 + share * share)
        total += w
        mean += w * off
    s[GAP] = mean / total


def set_starts(s: Array, middle: float, moved: float, work: Array) -> None:
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    for i in range(size):
        work[STARTS + i] = middle if i >= dim else 0.0
        mean = coefficient(s, i)
        work[STARTS + size + i] = mean + moved if i >= dim else mean


def coefficient(s: Array, i: int) -> float:
    size = int(s[SIZES + 1])
    return s[BLOCK + i * (size + 1) + size]


def decide(s: Array, n: int, gain: float, on: bool, work: Array) -> None:
    """Begin again from the better fit where it wins clearly."""
    size = int(s[SIZES + 1])
    pair = FITS + _PAIR * (size + 4)
    moved = 0.0
    for i in range(n):
        along = 0.0
        for j in range(size):
            along += s[CONTEXTS + j * ROOM + i] * (work[pair + j] - coefficient(s, j))
        moved += abs(along)
    begins = gain > _SURE and (not on or moved / n > work[pair + size] / 2.0)
    if begins or (on and gain < -_SURE / 2.0):
        slot = pair if begins else FITS + _SINGLE * (size + 4)
        s[GAP] = work[slot + size] if begins else 0.0
        begin_with(s, n, slot, work)


def begin_with(s: Array, n: int, slot: int, work: Array) -> None:
    """Begin again from a fit of the buffer, since the earlier fit took a mode for the centre."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    z = dim + 1
    forget(s, INFORMATION, size * size)
    forget(s, RESPONSE, size)
    forget(s, EARLIER_INFORMATION, size * size)
    forget(s, EARLIER_RESPONSE, size)
    forget(s, DESIGN, z * z)
    forget(s, SCORING, COUNT * z)
    forget(s, LOG_LIKELIHOOD, COUNT)
    forget(s, SUMS, 3)
    forget(s, LEAN, dim)
    for j in range(COUNT):
        s[SCALES + j] = work[slot + size + 1]
    s[SHAPE], s[PENALTY] = float(_FOUR_AT), float(dim)
    matrix, block = work[MATRIX : MATRIX + size * size], s[BLOCK : BLOCK + size * (size + 1)]
    for i in range(size * size):
        matrix[i] = 0.0
    for k in range(n):
        work[WEIGHT + k] = 1.0
    add_moments(s[CONTEXTS : CONTEXTS + size * ROOM], size, n, matrix, work)
    add_prior(s, float(dim), matrix)
    inverse_root(matrix, size, block, size + 1)
    for i in range(size):
        block[i * (size + 1) + size] = work[slot + i]


def forget(s: Array, first: int, count: int) -> None:
    for i in range(first, first + count):
        s[i] = 0.0


# The split of a sample


def split(x: Array, n: int) -> tuple[float, float, float]:
    """Sort a sample, and return how far apart its two parts are, and their medians."""
    sort_up_to(x, n)
    best, low, high = 0.0, 0.0, 0.0
    for c in range(len(_CUTS)):
        size = nearest_even(_CUTS[c] * n)
        if min(size, n - size) >= 2:
            a, b = quantile(x, 0, size, 0.5), quantile(x, size, n - size, 0.5)
            first = quantile(x, 0, size, 0.75) - quantile(x, 0, size, 0.25)
            second = quantile(x, size, n - size, 0.75) - quantile(x, size, n - size, 0.25)
            width = max(first, second) / 2.0
            strength = (b - a) / 2.0 / max(width, 1e-300) if b > a else 0.0
            if strength > best:
                best, low, high = strength, a, b
    values = 1
    for i in range(1, n):
        values += 1 if x[i] != x[i - 1] else 0
    return (0.0 if 3 * values <= n else best), low, high


def quantile(x: Array, first: int, n: int, share: float) -> float:
    at = (n - 1) * share
    low = int(at)
    high = low if low == at else low + 1
    return (x[first + low] + x[first + high]) / 2.0


# The comparison


def compare(s: Array, n: int, low: float, high: float, work: Array) -> float:
    """Fit two clusters and one cluster, and return by how much two are likelier."""
    size = int(s[SIZES + 1])
    slot = size + 4
    set_weights(s, n, work)
    prior = work[NEW : NEW + size * size]
    for i in range(size * size):
        prior[i] = 0.0
    add_prior(s, 1.0, prior)
    middle, half = centre_and_half(s, n, work)
    floor = _FLOOR * half + 1e-300
    gap, width = (high - low) / 2.0, max((high - low) / 4.0, floor)
    for which in range(_PAIR, _STILL + 1):
        work[FITS + which * slot + size + 3] = -math.inf
    for m in range(len(_TWO)):
        for start in range(3):
            flat = start == 2
            for i in range(size):
                work[FITS + i] = 0.0 if flat else work[STARTS + start * size + i]
            if flat:
                work[FITS + size - 1] = (low + high) / 2.0
            expect(s, n, size - 1 if flat else 0, gap, width, floor, _TWO[m], work)
            keep_likelier(work, _STILL if flat else _PAIR, size)
    for m in range(len(_ONE)):
        for start in range(5):
            for i in range(size):
                work[FITS + i] = work[STARTS + (start - 1) * size + i] if 0 < start < 3 else 0.0
            if start == 0 or start > 2:
                end = low if start == 3 else high
                work[FITS + size - 1] = middle if start == 0 else end
            spread = max(half, floor) if start == 0 else width
            expect(s, n, 0, 0.0, spread, floor, _ONE[m], work)
            keep_likelier(work, _SINGLE, size)
    return gain_of_two(s, n, work)


def centre_and_half(s: Array, n: int, work: Array) -> tuple[float, float]:
    """Return the median of the rewards, and the median of their distances from it."""
    middle = middle_of(work[U : U + n], n)  # sorted by `split`
    for i in range(n):
        work[ORDER + i] = abs(work[U + i] - middle)
    sort_up_to(work[ORDER : ORDER + n], n)
    return middle, middle_of(work[ORDER : ORDER + n], n)


def set_weights(s: Array, n: int, work: Array) -> None:
    """Write the weights of the pulls to LEVERAGE: no arm of unit vectors outweighs the median."""
    dim = int(s[SIZES])
    counts, units = work[CLIMB : CLIMB + dim], True
    for j in range(dim):
        counts[j] = 0.0
    for i in range(n):
        total = 0.0
        for j in range(dim):
            x = s[CONTEXTS + j * ROOM + i]
            units = units and (x == 0.0 or x == 1.0)
            total += x
            counts[j] += x
        units = units and total == 1.0
    for i in range(n):
        work[LEVERAGE + i] = 1.0
    if not units:
        return
    ordered = work[VECTOR : VECTOR + dim]
    for j in range(dim):
        ordered[j] = counts[j]
    sort_up_to(ordered, dim)
    most = max(middle_of(ordered, dim), 1.0)
    for i in range(n):
        share = 0.0
        for j in range(dim):
            share += s[CONTEXTS + j * ROOM + i] * (most / max(counts[j], 1.0))
        work[LEVERAGE + i] = min(share, 1.0)


def expect(
    s: Array,
    n: int,
    first: int,
    gap: float,
    scale: float,
    floor: float,
    nu: float,
    work: Array,
) -> None:
    """Fit from the start in the first slot, by rounds of expectation and maximisation.

    Coefficients before the `first` stay zero.
    """
    size = int(s[SIZES + 1])
    two, count = gap > 0.0, 0.0
    for i in range(n):
        count += work[LEVERAGE + i]
    free = max(count - (size - first) / 2.0, 1.0)
    off_centre(s, n, first, work)
    for _ in range(_ROUNDS):
        total = weigh_clusters(s, n, gap, scale, nu, work)
        solve(work[MATRIX : MATRIX + size * size], work[CLIMB : CLIMB + size], first, size)
        for i in range(first, size):
            work[FITS + i] = work[CLIMB + i]
        off_centre(s, n, first, work)
        if two:
            lead = 0.0
            for i in range(n):
                lead += work[FOLDED + i] * work[RESIDUAL + i]
            gap = abs(lead) / max(total, 1e-12)
        square = 0.0
        for i in range(n):
            up = (work[VARIANCE + i] + work[FOLDED + i]) / 2.0
            down = (work[VARIANCE + i] - work[FOLDED + i]) / 2.0
            above, below = work[RESIDUAL + i] - gap, work[RESIDUAL + i] + gap
            square += up * (above * above) + down * (below * below)
        scale = max(math.sqrt(square / max(total, 1e-12) * count / free), floor)
    likelihood = count * (height(nu) - math.log(scale))
    for i in range(n):
        log = log_of_two(work[RESIDUAL + i], gap, scale, nu, two)
        likelihood += log * work[LEVERAGE + i]
    for i in range(first, size):
        for j in range(first, size):
            likelihood -= work[FITS + i] * work[NEW + i * size + j] * work[FITS + j] / 2.0
    work[FITS + size], work[FITS + size + 1] = gap, scale
    work[FITS + size + 2], work[FITS + size + 3] = nu, likelihood


def height(nu: float) -> float:
    if nu == 0.5:
        return _HALF
    if nu == 1.0:
        return _CAUCHY
    return _FOUR if nu == 4.0 else _NORMAL


def off_centre(s: Array, n: int, first: int, work: Array) -> None:
    """Write y − xᵀθ to RESIDUAL for the coefficients of the first slot, from the `first` on."""
    size = int(s[SIZES + 1])
    for k in range(n):
        work[RESIDUAL + k] = s[REWARDS + k] - s[ORIGIN]
    for j in range(size):
        if j >= first:
            coefficient = work[FITS + j]
            for k in range(n):
                work[RESIDUAL + k] -= s[CONTEXTS + j * ROOM + k] * coefficient


def log_of_two(residual: float, gap: float, scale: float, nu: float, two: bool) -> float:
    """Return the log density without its height."""
    up, down = (residual - gap) / scale, (residual + gap) / scale
    log_up = -(nu + 1.0) / 2.0 * math.log1p(up * up / nu)
    if not two:
        return log_up
    log_down = -(nu + 1.0) / 2.0 * math.log1p(down * down / nu)
    top, least = max(log_up, log_down), min(log_up, log_down)
    return top + math.log1p(math.exp(least - top)) - _LOG_2


def weigh_clusters(s: Array, n: int, gap: float, scale: float, nu: float, work: Array) -> float:
    """Write the equations for `solve`, and the weights of both clusters: their sum and difference.

    Return the sum of all weights.
    """
    size = int(s[SIZES + 1])
    matrix, contexts = work[MATRIX : MATRIX + size * size], s[CONTEXTS : CONTEXTS + size * ROOM]
    for k in range(n):
        up, down = (work[RESIDUAL + k] - gap) / scale, (work[RESIDUAL + k] + gap) / scale
        up, down, upper = up * up, down * down, 0.5
        if gap > 0.0:
            ratio = (nu + 1.0) / 2.0 * (math.log1p(up / nu) - math.log1p(down / nu))
            upper = 1.0 / (1.0 + math.exp(min(max(ratio, -500.0), 500.0)))
        above = (nu + 1.0) / (nu + up) * upper * work[LEVERAGE + k]
        below = (nu + 1.0) / (nu + down) * (1.0 - upper) * work[LEVERAGE + k]
        work[VARIANCE + k], work[FOLDED + k] = above + below, above - below
    for k in range(n):
        work[WEIGHT + k] = work[VARIANCE + k]
    for i in range(size):
        for j in range(size):
            matrix[i * size + j] = work[NEW + i * size + j] + (1e-9 if i == j else 0.0)
    add_moments(contexts, size, n, matrix, work)
    for k in range(n):
        y = s[REWARDS + k] - s[ORIGIN]
        work[LINE + k] = work[VARIANCE + k] * y - work[FOLDED + k] * gap
    for i in range(size):
        work[CLIMB + i] = product_of(work, LINE, contexts, i * ROOM, n, work)
    return sum_of(work, VARIANCE, n)


def solve(m: Array, right: Array, first: int, size: int) -> None:
    """Solve M x = y by Cholesky's factor of the lower half, from row `first` on, in place."""
    for j in range(first, size):
        for k in range(first, j):
            m[j * size + j] -= m[j * size + k] * m[j * size + k]
        pivot = math.sqrt(max(m[j * size + j], 1e-300))
        m[j * size + j] = pivot
        for i in range(j + 1, size):
            for k in range(first, j):
                m[i * size + j] -= m[i * size + k] * m[j * size + k]
            m[i * size + j] /= pivot
    for i in range(first, size):
        for k in range(first, i):
            right[i] -= m[i * size + k] * right[k]
        right[i] /= m[i * size + i]
    for back in range(size - first):
        i = size - 1 - back
        for k in range(i + 1, size):
            right[i] -= m[k * size + i] * right[k]
        right[i] /= m[i * size + i]


def keep_likelier(work: Array, which: int, size: int) -> None:
    """Copy the first slot to another if its likelihood is larger."""
    there = FITS + which * (size + 4)
    if work[FITS + size + 3] > work[there + size + 3]:
        for i in range(size + 4):
            work[there + i] = work[FITS + i]


def gain_of_two(s: Array, n: int, work: Array) -> float:
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    slot = size + 4
    pair, single, still = FITS + _PAIR * slot, FITS + _SINGLE * slot, FITS + _STILL * slot
    scales, weights = asymmetry(s, n, pair, work)
    gain = work[pair + size + 3] - work[single + size + 3] - scales - weights
    if not (work[pair + size] > _RESOLVED * work[pair + size + 1] and weights < _UNEQUAL):
        gain = -math.inf
    moves = work[pair + size + 3] - work[still + size + 3] - leaning(s, n, still, work)
    return min(gain, moves - dim)


def asymmetry(s: Array, n: int, slot: int, work: Array) -> tuple[float, float]:
    """Return the approximate gain in likelihood of free scales and weights of both clusters."""
    size = int(s[SIZES + 1])
    gap, scale, nu = work[slot + size], work[slot + size + 1], work[slot + size + 2]
    for i in range(size):
        work[FITS + i] = work[slot + i]
    above, below, ups, downs, signs, total = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    off_centre(s, n, 0, work)
    for k in range(n):
        residual = work[RESIDUAL + k]
        u = (abs(residual) - gap) / scale
        score = (nu + 1.0) / (nu + u * u) * (u * u) - 1.0
        if residual >= 0.0:
            above += 1.0
            ups += score
            signs += work[LEVERAGE + k]
        else:
            below += 1.0
            downs += score
            signs -= work[LEVERAGE + k]
        total += work[LEVERAGE + k]
    above, below = max(above, 1.0), max(below, 1.0)
    apart = math.log(max(1.0 + ups / above, 0.02)) - math.log(max(1.0 + downs / below, 0.02))
    information = 2.0 * nu / (nu + 3.0)
    scales = apart * apart * information / (1.0 / above + 1.0 / below)
    return scales / 2.0, signs * signs / max(total, 1.0) / 2.0


def leaning(s: Array, n: int, slot: int, work: Array) -> float:
    """Return the approximate gain of clusters in fixed places whose weights depend on x."""
    size = int(s[SIZES + 1])
    matrix, score = work[MATRIX : MATRIX + size * size], work[CLIMB : CLIMB + size]
    for i in range(size):
        work[FITS + i] = work[slot + i]
        for j in range(size):
            matrix[i * size + j] = 0.0
    off_centre(s, n, size - 1, work)
    for k in range(n):
        w = work[LEVERAGE + k]
        work[WEIGHT + k] = w * w
    contexts = s[CONTEXTS : CONTEXTS + size * ROOM]
    add_moments(contexts, size, n, matrix, work)
    for k in range(n):
        work[LINE + k] = work[WEIGHT + k] if work[RESIDUAL + k] >= 0.0 else -work[WEIGHT + k]
    for i in range(size):
        score[i] = product_of(work, LINE, contexts, i * ROOM, n, work)
    trace = 0.0
    for i in range(size):
        trace += matrix[i * size + i]
        work[VECTOR + i] = score[i]
    for i in range(size):
        matrix[i * size + i] += 1e-9 * trace
    solve(matrix, score, 0, size)
    gain = 0.0
    for i in range(size):
        gain += work[VECTOR + i] * score[i]
    return gain / 2.0
