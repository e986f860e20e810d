"""The fit of LinStudentUCB on one path, to all pulls in its buffer."""

import math

from tailproof.compiled.sorting import median_of, select, sort_pairs, sort_up_to
from tailproof.compiled.student_modes import look_for_modes
from tailproof.compiled.student_parts import (
    ANCHOR,
    BLOCK,
    CENTRE,
    CENTRED,
    CLIMB,
    CONTEXTS,
    COUNT,
    DESIGN,
    DUE,
    EARLIER_INFORMATION,
    EARLIER_RESPONSE,
    EARLIER_SCALE,
    EQUAL,
    FIRST_LEAN,
    FISHER,
    FLOOR,
    FOLDED,
    HEIGHT,
    INFLATION,
    INFORMATION,
    LEAN,
    LEAN_VARIANCE,
    LEVERAGE,
    LINE,
    LOG_LIKELIHOOD,
    MATRIX,
    MOVED,
    NEW,
    NEXT_SCALES,
    NEXT_SCORING,
    NU,
    OLD_LEAN,
    OLD_SCALES,
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
    SHIFT,
    SIZES,
    SLOPE,
    SPREAD,
    SUMS,
    VARIANCE,
    VECTOR,
    WEIGHT,
    U,
    add_moments,
    add_prior,
    discard,
    fold,
    gather,
    inverse_root,
    location,
    log_likelihood,
    measure,
    place,
    prior_size,
    prior_spread,
    product_of,
    project,
    score,
    sum_of,
)
from tailproof.typing import Array

__all__ = ["fit"]


def fit(s: Array, n: int, t: int, work: Array) -> None:
    """Fit the n pulls in the buffer after t pulls in all, in two rounds."""
    dim = int(s[SIZES])
    young = t == n
    if young:  # nothing is discarded yet
        move_origin(s, n, work)
    look_for_modes(s, n, t, work)
    fold(s, n, work)
    if young:
        try_median(s, n, work)
        try_least_squares(s, n, work)
        fold(s, n, work)
    for j in range(COUNT):
        work[OLD_SCALES + j] = s[SCALES + j]
    for i in range(dim):
        work[OLD_LEAN + i] = s[LEAN + i]
    if 2 * n >= ROOM:
        update_lean(s, n, work)
    for j in range(COUNT):
        work[NEXT_SCALES + j] = s[SCALES + j]
    resolution = half_resolution(s, n, work)
    move_lean(s, work)
    for _ in range(2):
        measure(s, n, work)
        set_floor(s, n, resolution, work)
        fit_scales(s, n, work)
        weigh(s, n, work)
        update_penalty(s, work)
        newton_step(s, n, work)
    for j in range(COUNT):
        s[LOG_LIKELIHOOD + j] += work[SHIFT + j]
    for i in range(COUNT * (dim + 1)):
        s[SCORING + i] = work[NEXT_SCORING + i]
    count = n + s[DESIGN + (dim + 1) * (dim + 1) - 1]
    s[DUE] = float(t + max(int(count) // 8, 1))
    if n == ROOM:
        summarise(s, n // 2, work)


def set_floor(s: Array, n: int, resolution: float, work: Array) -> None:
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    scale, square = s[SCALES + int(s[SHAPE])], 0.0
    offset = abs(s[ORIGIN])
    for i in range(dim, size):
        offset += abs(s[BLOCK + i * (size + 1) + size])
    least = 1e-3 * scale / math.sqrt(s[PENALTY]) + 1e-14 * offset + 1e-100
    for i in range(n):
        square += work[RESIDUAL + i] * work[RESIDUAL + i]
    s[FLOOR] = max(least, min(resolution, math.sqrt(square / n)))


def fit_scales(s: Array, n: int, work: Array) -> None:
    """Fit s under every shape, and choose the likeliest shape."""
    dim = int(s[SIZES])
    now, z, best, likeliest = s[SCALES + int(s[SHAPE])], dim + 1, -math.inf, 0
    count = n + s[DESIGN + z * z - 1]
    for j in range(COUNT):
        scale = work[NEXT_SCALES + j]
        for _ in range(2):  # Fisher scoring for ln s, by at most a factor e per step
            ratio = now / scale
            score(work, n, ratio * ratio, NU[j])
            excess = move_scoring(s, j, scale, work) + sum_of(work, LINE, n)
            step = min(max(excess / (count * FISHER[j]), -1.0), 1.0)
            scale = max(scale * math.exp(step), s[FLOOR])
        work[NEXT_SCALES + j] = scale
        move_scoring(s, j, scale, work)
        likelihood = log_likelihood(s, work, n, j, scale, now) + s[LOG_LIKELIHOOD + j]
        likelihood += work[SHIFT + j]
        if likelihood > best:
            best, likeliest = likelihood, j
    ratio = now / work[NEXT_SCALES + likeliest]
    for i in range(n):
        work[U + i] = min(ratio * ratio * work[U + i], 1e200)
    for j in range(COUNT):
        s[SCALES + j] = work[NEXT_SCALES + j]
    s[SHAPE] = float(likeliest)


def move_lean(s: Array, work: Array) -> None:
    """Write by how much the step in γ moves the score of the discarded pulls to MOVED."""
    z = int(s[SIZES]) + 1
    for i in range(z):
        work[MOVED + i] = 0.0
    for k in range(z - 1):
        step = s[LEAN + k] - work[OLD_LEAN + k]
        for i in range(z):
            work[MOVED + i] += step * s[DESIGN + k * z + i]


def move_scoring(s: Array, j: int, scale: float, work: Array) -> float:
    """Write the score of the discarded pulls at the present (γ, ln s); return the score of ln s."""
    dim = int(s[SIZES])
    z, shift, log = dim + 1, 0.0, math.log(scale / work[OLD_SCALES + j])
    for i in range(z):
        moved = work[MOVED + i] + log * s[DESIGN + dim * z + i]
        now = s[SCORING + j * z + i] - FISHER[j] * moved
        work[NEXT_SCORING + j * z + i] = now
        step = s[LEAN + i] - work[OLD_LEAN + i] if i < dim else log
        shift += step * (s[SCORING + j * z + i] + now)
    work[SHIFT + j] = shift / 2.0
    return work[NEXT_SCORING + j * z + dim]


def weigh(s: Array, n: int, work: Array) -> None:
    """Write the weights over a² to WEIGHT, and update J and κ."""
    nu = NU[int(s[SHAPE])]
    slope, total, square = s[SUMS], s[SUMS + 1], s[SUMS + 2]
    for i in range(n):
        u = work[U + i]
        w = (nu + 1.0) / (nu + u)
        slope += w * (nu - u) / (nu + u)
        total += w
        square += w * w * u
        work[WEIGHT + i] = w / work[VARIANCE + i]
    slope = min(max(slope / total, 0.25), 1.0)
    s[SLOPE] = max(slope, 0.5)
    s[INFLATION] = max(square / total * s[SLOPE] / (slope * slope), 0.25)


def update_penalty(s: Array, work: Array) -> None:
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    scale, length, d = s[SCALES + int(s[SHAPE])], prior_size(s), float(dim)
    unknown, square = 0.0, 0.0
    for j in range(size + 1):
        along, total = 0.0, 0.0
        for i in range(dim):
            x = s[BLOCK + i * (size + 1) + j]
            total += prior_spread(s, i) * x * x
            along += s[CENTRE + i] * x
        total -= along * along / length
        if j < size:
            unknown += s[PENALTY] * total
        else:
            square = total / scale / scale
    ratio = (max(d - unknown, 0.0) + 1.0) / (square + 1.0 / d)
    s[PENALTY] = min(max(ratio, 1e-8), 1e8)


def newton_step(s: Array, n: int, work: Array) -> None:
    """Take a Newton step, with the information that the score accepted."""
    size = int(s[SIZES + 1])
    gather(s, n, work)
    ratio = min(s[SCALES + int(s[SHAPE])] / s[EARLIER_SCALE], 1e6)
    share = ratio * ratio * s[INFLATION]
    matrix, block = work[MATRIX : MATRIX + size * size], s[BLOCK : BLOCK + size * (size + 1)]
    information = work[NEW : NEW + size * size]
    for i in range(size * size):
        information[i] = s[INFORMATION + i] + share * s[EARLIER_INFORMATION + i]
    add_prior(s, s[PENALTY], information)
    for i in range(size):
        climb = work[VECTOR + i] + s[RESPONSE + i] + share * s[EARLIER_RESPONSE + i]
        for j in range(size):
            climb -= information[i * size + j] * block[j * (size + 1) + size]
        work[CLIMB + i] = climb
    for i in range(size * size):
        matrix[i] += information[i]
    inverse_root(matrix, size, block, size + 1)
    add_covariance_times(block, size, size + 1, work)


def add_covariance_times(block: Array, size: int, stride: int, work: Array) -> None:
    """Add SSᵀv to the last column of [S | θ], with v in CLIMB."""
    for j in range(size):
        total = 0.0
        for i in range(size):
            total += block[i * stride + j] * work[CLIMB + i]
        work[VECTOR + j] = total
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += block[i * stride + j] * work[VECTOR + j]
        block[i * stride + size] += total


def move_origin(s: Array, n: int, work: Array) -> None:
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    if dim < size:
        sample = work[ORDER : ORDER + n]
        for i in range(n):
            sample[i] = s[REWARDS + i]
        moved = select(sample, n, (n - 1) // 2) - s[ORIGIN]
        s[ORIGIN] += moved
        s[BLOCK + size * (size + 1) - 1] -= moved


def try_median(s: Array, n: int, work: Array) -> None:
    """Start from the median, with the rest as noise: at first, and where this fits better."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    sample, off = work[ORDER : ORDER + n], work[U : U + n]
    for i in range(n):
        sample[i] = work[FOLDED + i]
    middle, most = median_of(sample, n) if dim < size else 0.0, 0.0
    for i in range(n):
        off[i] = abs(work[FOLDED + i] - middle)
        most = max(most, off[i])
    half = median_of(off, n)
    if n > 3:
        for i in range(n):
            sample[i] = abs(work[FOLDED + i] - location(s, i))
        if not median_of(sample, n) > max(2.0 * half, s[SCALES + int(s[SHAPE])] / 2.0):
            return
    scale = half if half > 0.0 else 1e-3 * most
    scale = max(scale, max(1e-14 * abs(s[ORIGIN] + middle), 1e-100))
    for j in range(COUNT):
        s[SCALES + j] = scale
    s[PENALTY], s[LEAN_VARIANCE] = float(dim), FIRST_LEAN * FIRST_LEAN
    for i in range(dim):
        s[ANCHOR + i], s[LEAN + i] = s[CENTRE + i], 0.0
    block = s[BLOCK : BLOCK + size * (size + 1)]
    gram(s, n, float(dim), work)
    inverse_root(work[MATRIX : MATRIX + size * size], size, block, size + 1)
    for i in range(size):
        block[i * (size + 1) + size] = middle if i >= dim else 0.0


def gram(s: Array, n: int, penalty: float, work: Array) -> None:
    """Write Σ x xᵀ + ρP to MATRIX, and Σ y x to CLIMB."""
    size = int(s[SIZES + 1])
    for i in range(size * size):
        work[MATRIX + i] = 0.0
    contexts = s[CONTEXTS : CONTEXTS + size * ROOM]
    for k in range(n):
        work[WEIGHT + k] = 1.0
    add_moments(contexts, size, n, work[MATRIX : MATRIX + size * size], work)
    for i in range(size):
        work[CLIMB + i] = product_of(work, FOLDED, contexts, i * ROOM, n, work)
    add_prior(s, penalty, work[MATRIX : MATRIX + size * size])


def try_least_squares(s: Array, n: int, work: Array) -> None:
    """Start from least squares where normal noise around it is likelier than the fit."""
    dim, size = int(s[SIZES]), int(s[SIZES + 1])
    measure(s, n, work)
    shape, last = int(s[SHAPE]), COUNT - 1
    now, gain, logs = s[SCALES + shape], 0.0, 0.0
    for i in range(n):
        gain += math.log1p(min(work[U + i], 1e200) / NU[shape])
        logs += math.log(work[VARIANCE + i])
    gain = (NU[shape] + 1.0) / 2.0 * gain - n * HEIGHT[shape] + logs / 2.0
    gram(s, n, s[PENALTY], work)
    block = work[NEW : NEW + size * (size + 1)]
    inverse_root(work[MATRIX : MATRIX + size * size], size, block, size + 1)
    for i in range(size):
        block[i * (size + 1) + size] = 0.0
    add_covariance_times(block, size, size + 1, work)
    project(s, n, block, work)
    free, square = float(n), 0.0
    for i in range(n):
        work[RESIDUAL + i] = work[FOLDED + i] - work[LINE + i]
        free -= work[LEVERAGE + i]
        square += work[RESIDUAL + i] * work[RESIDUAL + i]
    scale = max(math.sqrt(square / max(free, 1e-9)), 1e-100)
    tails = 0.0
    for i in range(n):
        u = work[RESIDUAL + i] / scale
        tails += math.log1p(min(u * u + work[LEVERAGE + i], 1e200) / NU[last])
    gain += n * HEIGHT[last] - (NU[last] + 1.0) / 2.0 * tails
    if gain > n * math.log(scale / now) and free > n / 2.0:
        for i in range(size * (size + 1)):
            s[BLOCK + i] = block[i]
        s[SCALES + last], s[SHAPE] = scale, float(last)
        for i in range(dim):
            s[LEAN + i] = 0.0


def update_lean(s: Array, n: int, work: Array) -> None:
    """Update γ and ln s by a step of Fisher scoring, and τ² by MacKay's fixed point."""
    dim = int(s[SIZES])
    measure(s, n, work)
    z, shape = dim + 1, int(s[SHAPE])
    matrix = work[MATRIX : MATRIX + z * z]
    for i in range(z):
        work[CLIMB + i] = s[SCORING + shape * z + i]
        for j in range(z):
            matrix[i * z + j] = s[DESIGN + i * z + j]
    centred = work[CENTRED : CENTRED + z * ROOM]
    place(s, n, work)
    score(work, n, 1.0, NU[shape])
    for i in range(z):
        work[CLIMB + i] += product_of(work, LINE, centred, i * ROOM, n, work)
    for k in range(n):
        work[WEIGHT + k] = 1.0
    add_moments(centred, z, n, matrix, work)
    for i in range(z * z):
        matrix[i] *= FISHER[shape]
    for i in range(dim):
        prior = lean_unit(s, i) / s[LEAN_VARIANCE]
        work[CLIMB + i] -= prior * s[LEAN + i]
        matrix[i * z + i] += prior
    root = work[NEW : NEW + z * (z + 1)]
    inverse_root(matrix, z, root, z + 1)
    for i in range(z):
        root[i * (z + 1) + z] = 0.0
    add_covariance_times(root, z, z + 1, work)
    take_lean(s, n, root, work)


def lean_unit(s: Array, i: int) -> float:
    dim = int(s[SIZES])
    return dim * max(s[SPREAD + i], 1e-8 * s[ANCHOR + i] * s[ANCHOR + i] + 1e-200)


def take_lean(s: Array, n: int, root: Array, work: Array) -> None:
    """Take a step in (γ, ln s), which is the last column of `root`, and update τ²."""
    dim = int(s[SIZES])
    z, longest = dim + 1, 1.0
    for k in range(n):
        work[LINE + k] = root[dim * (z + 1) + z]
    for i in range(dim):
        step = root[i * (z + 1) + z]
        for k in range(n):
            work[LINE + k] += step * work[CENTRED + i * ROOM + k]
    for k in range(n):
        longest = max(longest, abs(work[LINE + k]))
    if s[SCALES + int(s[SHAPE])] <= 2.0 * s[FLOOR]:
        longest = math.inf
    freedom, size, factor = float(dim), EQUAL * EQUAL, math.exp(root[dim * (z + 1) + z] / longest)
    for j in range(COUNT):
        s[SCALES + j] *= factor
    for i in range(dim):
        s[LEAN + i] += root[i * (z + 1) + z] / longest
        square = 0.0
        for j in range(z):
            square += root[i * (z + 1) + j] * root[i * (z + 1) + j]
        freedom -= square * lean_unit(s, i) / s[LEAN_VARIANCE]
        size += s[LEAN + i] * s[LEAN + i] * lean_unit(s, i)
    s[LEAN_VARIANCE] = min(size / (max(freedom, 0.0) + 1.0), 9.0)


def half_resolution(s: Array, n: int, work: Array) -> float:
    """Return half the median step between rewards of one arm, if they take few values, else 0."""
    size = int(s[SIZES + 1])
    y, arm = work[U : U + n], work[ORDER : ORDER + n]
    if 3 * values_of(n // 3 + 1, y, work) > n or 3 * values_of(n, y, work) > n:
        return 0.0
    for i in range(n):
        y[i], arm[i] = work[FOLDED + i], 0.0
        for j in range(size):
            arm[i] += s[CONTEXTS + j * ROOM + i] * math.sqrt(j + 1.0)
    sort_pairs(arm, y, n)
    positive = 0
    for i in range(n - 1):
        step = y[i + 1] - y[i] if arm[i + 1] == arm[i] else 0.0
        positive += 1 if step != 0.0 else 0
        y[i] = step
    sort_up_to(y, n - 1)
    return y[n - 1 - (max(positive, 1) + 1) // 2] / 2.0


def values_of(n: int, y: Array, work: Array) -> int:
    """Return how many values the first n folded rewards take."""
    for i in range(n):
        y[i] = work[FOLDED + i]
    sort_up_to(y, n)
    values = 1
    for i in range(1, n):
        values += 1 if y[i] != y[i - 1] else 0
    return values


def summarise(s: Array, k: int, work: Array) -> None:
    """Discard the k pulls of least leverage."""
    measure(s, ROOM, work)
    ordered = work[ORDER : ORDER + ROOM]
    for n in range(ROOM):
        ordered[n] = work[LEVERAGE + n]
    limit, left = select(ordered, ROOM, k - 1), k
    for n in range(ROOM):
        left -= 1 if ordered[n] < limit else 0
    place = 0
    for n in range(ROOM):
        leverage = work[LEVERAGE + n]
        if leverage < limit or (leverage == limit and left > 0):
            left -= 1 if leverage == limit else 0
            swap_pulls(s, n, place)
            work[LEVERAGE + n] = work[LEVERAGE + place]
            place += 1
    discard(s, k, work)


def swap_pulls(s: Array, one: int, other: int) -> None:
    size = int(s[SIZES + 1])
    for i in range(size):
        a, b = CONTEXTS + i * ROOM + one, CONTEXTS + i * ROOM + other
        s[a], s[b] = s[b], s[a]
    s[REWARDS + one], s[REWARDS + other] = s[REWARDS + other], s[REWARDS + one]
