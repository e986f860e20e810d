"""LinStudentUCB on one path: the index, one pull, and the end of an epoch.

It follows `tailproof.policies.lin_student_ucb` and `tailproof.policies.state.student_fit` step by
step; these files explain each step. Any root S of the covariance serves: here it comes from
Cholesky's factor.
"""

import math

from tailproof.compiled.elementary import lean_to_variance, log1p_from_0, squared_reach
from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.streams import Words, uniform
from tailproof.compiled.student_fit import fit
from tailproof.compiled.student_modes import look_for_modes
from tailproof.compiled.student_parts import (
    ALARM,
    ANCHOR,
    ARMS,
    BLOCK,
    CENTRE,
    CLIMB,
    CONTEXTS,
    COUNT,
    DESIGN,
    DIM,
    DUE,
    EARLIER_INFORMATION,
    EARLIER_RESPONSE,
    EARLIER_SCALE,
    FIRST_LEAN,
    FLOOR,
    GAP,
    INFLATION,
    INFORMATION,
    KEPT,
    LEAN,
    LEAN_VARIANCE,
    LEVERAGE,
    LOG_LIKELIHOOD,
    NEW,
    NU,
    ORDER,
    ORIGIN,
    PENALTY,
    RENEWAL,
    RESIDUAL,
    RESPONSE,
    REWARDS,
    ROOM,
    SCALES,
    SCORING,
    SHAPE,
    SIZE,
    SIZES,
    SLOPE,
    SPREAD,
    STATE,
    SUMS,
    VARIANCE,
    VECTOR,
    U,
    discard,
    fold,
    layout,
    measure,
    relative_variance,
)
from tailproof.compiled.targets import apart, bind
from tailproof.policies import LinStudentUCB
from tailproof.policies.randomised import TIE
from tailproof.typing import Array

__all__ = ["lin_student_ucb"]


def lin_student_ucb(policy: LinStudentUCB, sizes: Sizes) -> Form:
    """Return the form of LinStudentUCB, or raise if it looks for clusters of one arm alone."""
    if policy.clusters:
        raise ValueError(
            f"{policy!r} has no compiled form; LinStudentUCB has one with clusters=False"
        )
    d, e = sizes.dim, sizes.dim + policy.intercept
    room = max(policy.room * e, 48)
    z, m = d + 1, max(e, d + 1)
    state = layout(
        BLOCK=e * (e + 1), SCALES=COUNT, SHAPE=1, PENALTY=1, SLOPE=1, INFLATION=1, RENEWAL=1, DUE=1,
        KEPT=1, ORIGIN=1, EARLIER_SCALE=1, LEAN_VARIANCE=1, FLOOR=1, CENTRE=d, SPREAD=d, ANCHOR=d,
        LEAN=d, CONTEXTS=room * e, REWARDS=room, INFORMATION=e * e, RESPONSE=e, DESIGN=z * z,
        SCORING=COUNT * z, LOG_LIKELIHOOD=COUNT, SUMS=3, EARLIER_INFORMATION=e * e,
        EARLIER_RESPONSE=e, SIZES=2, GAP=1, LOOKED=1, STATE=0,
    )  # fmt: skip
    rows = max(room, sizes.width)
    work = layout(
        RESIDUAL=rows, LEVERAGE=rows, VARIANCE=rows, U=rows, ORDER=rows, MATRIX=m * m,
        NEW=m * (m + 1), VECTOR=2 * m, CLIMB=m, NEXT_SCALES=COUNT, OLD_SCALES=COUNT, OLD_LEAN=d,
        NEXT_SCORING=COUNT * z, SHIFT=COUNT, FOLDED=rows, FITS=4 * (e + 4), STARTS=2 * e,
        LINE=rows, WEIGHT=rows, PARTS=rows, CENTRED=z * room, MOVED=z, WORK=0,
    )  # fmt: skip
    numbers = {**state, **work, "SIZE": e, "ROOM": room}
    index = random_index if policy.random else greedy_index
    of_pulls = "void(float64[::1], int64, int64, float64[::1])"
    large_fit = apart(fit, of_pulls, look_for_modes=apart(look_for_modes, of_pulls))
    return Form(
        bind(start, **numbers),
        bind(index, **numbers),
        bind(
            learn,
            **numbers,
            fit=large_fit,
            watch=apart(watch, "void(float64[::1], int64, float64[::1])"),
        ),
        (policy.bonus**2,),
        state=state["STATE"],
        work=work["WORK"],
        vectors=True,
        estimate=bind(estimate, **numbers),
        large=True,
    )


def start(s: Array, p: Array) -> None:
    for i in range(STATE):
        s[i] = 0.0
    for j in range(COUNT):
        s[SCALES + j] = 1.0
    s[PENALTY], s[SLOPE], s[INFLATION], s[EARLIER_SCALE] = 1.0, 1.0, 1.0, 1.0
    s[LEAN_VARIANCE] = FIRST_LEAN * FIRST_LEAN
    s[SIZES], s[SIZES + 1] = float(DIM), float(SIZE)
    for i in range(DIM, SIZE):
        for n in range(ROOM):
            s[CONTEXTS + i * ROOM + n] = 1.0


def estimate(s: Array, p: Array, values: Array) -> None:
    for i in range(DIM):
        values[i] = s[BLOCK + i * (SIZE + 1) + SIZE]


# The index


def predict(s: Array, offers: Array, means: Array, work: Array) -> None:
    """Write the location of every arm into `means`, ‖(x, 1)‖² to LEVERAGE and a² to VARIANCE."""
    width = offers.shape[1]
    for k in range(width):
        work[LEVERAGE + k] = 0.0
        work[VARIANCE + k] = 0.0
    for j in range(SIZE + 1):
        for k in range(width):
            total = s[BLOCK + DIM * (SIZE + 1) + j] if DIM < SIZE else 0.0
            for i in range(DIM):
                total += s[BLOCK + i * (SIZE + 1) + j] * offers[i, k]
            means[k] = total
            if j < SIZE:
                work[LEVERAGE + k] += total * total
    for i in range(DIM):
        for k in range(width):
            work[VARIANCE + k] += (offers[i, k] - s[ANCHOR + i]) * s[LEAN + i]
    for k in range(width):
        work[VARIANCE + k] = lean_to_variance(work[VARIANCE + k])


def middles(offers: Array, out: Array) -> None:
    """Write the mean of the offered vectors; several sums at a time, as each waits for itself."""
    for i in range(DIM):
        out[i] = 0.0
    for k in range(ARMS):
        for i in range(DIM):
            out[i] += offers[i, k]
    for i in range(DIM):
        out[i] /= ARMS


def prior_width(s: Array, offers: Array, out: Array, middle: Array) -> None:
    """Write the squared distance of every arm from the middle of the offer under the prior."""
    middles(offers, middle)
    for k in range(offers.shape[1]):
        out[k] = 0.0
    for i in range(int(s[SIZES])):
        if s[SPREAD + i] > 0.0:
            scale = 1.0 / s[SPREAD + i]
            for k in range(offers.shape[1]):
                off = offers[i, k] - middle[i]
                out[k] += off * off * scale
    for k in range(offers.shape[1]):
        out[k] /= s[PENALTY]


def widths(
    s: Array, p: Array, offers: Array, t: int, values: Array, work: Array, always: bool
) -> bool:
    """Write means to `values` and widths to U; return whether the choice is greedy instead."""
    predict(s, offers, values, work)
    shape = int(s[SHAPE])
    nu, slope, total, most_share = NU[shape], s[SLOPE], 0.0, 0.0
    for k in range(ARMS):
        total += work[VARIANCE + k]
    width = offers.shape[1]
    for k in range(width):
        narrow = max(slope * work[LEVERAGE + k], 1e-300)
        work[RESIDUAL + k] = (t + 1.0) * ARMS / SIZE * narrow / total
    for k in range(ARMS):
        most_share = max(most_share, work[RESIDUAL + k])
    if s[RENEWAL] >= 0.5 and most_share <= ARMS and not always:
        return True
    room = work[ORDER : ORDER + width]
    prior_width(s, offers, room, work[CLIMB : CLIMB + DIM])
    most = squared_reach(p[0] * math.log1p((t + 1.0) / SIZE), float(DIM))
    scale = s[SCALES + shape]
    inflation = s[INFLATION]
    for k in range(width):
        square = work[LEVERAGE + k]
        narrow = max(slope * square, 1e-300)
        log = p[0] * log1p_from_0(work[RESIDUAL + k])
        reach = square * squared_reach(log, nu * (work[VARIANCE + k] / narrow + 1.0) / 2.0)
        reach = max(2.0 * square * log, min(reach, most * work[ORDER + k]))
        work[U + k] = scale * math.sqrt(inflation * reach)
    return False


def tied(values: Array, work: Array, luck: float) -> None:
    """Write the indices; arms within rounding of the largest index get the largest index."""
    best, widest = -math.inf, 0.0
    for k in range(ARMS):
        values[k] += luck * work[U + k]
        best, widest = max(best, values[k]), max(widest, work[U + k])
    for k in range(ARMS):
        if values[k] >= best - TIE * widest:
            values[k] = best


def greedy_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    if not widths(s, p, offers, t, values, work, False):
        tied(values, work, 1.0)


def random_index(
    s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array
) -> None:
    widths(s, p, offers, t, values, work, True)
    tied(values, work, uniform(g))


# One pull


def learn(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    reward = min(max(y[0], -1e100), 1e100)
    track_offers(s, offers, k, t + 1, work)
    kept = int(s[KEPT])
    for i in range(DIM):
        s[CONTEXTS + i * ROOM + kept] = offers[i, k]
    s[REWARDS + kept] = reward
    s[KEPT] = kept + 1.0
    take_step(s, kept, reward - s[ORIGIN], work)
    if t + 1 >= s[DUE] or kept + 1 == ROOM:
        watch(s, kept + 1, work)
        fit(s, int(s[KEPT]), t + 1, work)


def track_offers(s: Array, offers: Array, chosen: int, t: int, work: Array) -> None:
    middle, square = work[CLIMB : CLIMB + DIM], work[VECTOR : VECTOR + DIM]
    middles(offers, middle)
    some, renewed = False, 0.0
    for i in range(DIM):
        square[i] = 0.0
    for k in range(ARMS):
        for i in range(DIM):
            off = offers[i, k] - middle[i]
            square[i] += off * off
    for i in range(DIM):
        some = some or square[i] != 0.0
    for i in range(DIM):
        spread = square[i] / ARMS if some else offers[i, chosen] * offers[i, chosen]
        s[SPREAD + i] += (spread - s[SPREAD + i]) / t
        moved = middle[i] - s[CENTRE + i]
        s[CENTRE + i] += moved / t
        if s[SPREAD + i] > 0.0:
            renewed += moved * moved / s[SPREAD + i]
    renewed = renewed / DIM * (ARMS - 1.0) * (t - 1.0) / t
    s[RENEWAL] += (renewed - s[RENEWAL]) / t


def take_step(s: Array, n: int, y: float, work: Array) -> None:
    block, row = s[BLOCK : BLOCK + SIZE * (SIZE + 1)], work[NEW : NEW + SIZE + 1]
    for j in range(SIZE + 1):
        row[j] = 0.0
    for i in range(SIZE):
        x = s[CONTEXTS + i * ROOM + n]
        for j in range(SIZE + 1):
            row[j] += x * block[i * (SIZE + 1) + j]
    leverage = 0.0
    for j in range(SIZE):
        leverage += row[j] * row[j]
    nu, scale = NU[int(s[SHAPE])], s[SCALES + int(s[SHAPE])]
    residual, variance = y - row[SIZE], relative_variance(s, n)
    if s[GAP] > 0.0:
        residual += -s[GAP] if y >= row[SIZE] else s[GAP]
    share = residual / scale
    weight = (nu + 1.0) / (nu + share * share / (variance + leverage))
    root = math.sqrt(s[SLOPE] * weight / variance)
    growth = 1.0 + root * root * leverage
    missed = -root * residual / s[SLOPE] / growth
    part = root / (growth + math.sqrt(growth))
    for i in range(SIZE):
        gain = 0.0
        for j in range(SIZE):
            gain += block[i * (SIZE + 1) + j] * row[j]
        work[VECTOR + i] = root * gain
    for j in range(SIZE):
        row[j] *= part
    row[SIZE] = missed
    for i in range(SIZE):
        for j in range(SIZE + 1):
            block[i * (SIZE + 1) + j] -= work[VECTOR + i] * row[j]


# Epochs


def watch(s: Array, n: int, work: Array) -> None:
    recent = n - ROOM + ROOM // 2
    if recent < 8 or s[DESIGN + (DIM + 1) * (DIM + 1) - 1] <= 0.0:
        return
    largest = 8
    while 2 * largest <= recent:
        largest *= 2
    fold(s, n, work)
    measure(s, n, work)
    shape = int(s[SHAPE])
    nu, loud = NU[shape], s[SCALES + shape] > 2.0 * s[FLOOR]
    p, total, size, changed, top = nu / (nu + 1.0), 0.0, 8, 0, ALARM
    for m in range(1, largest + 1):
        total += nu / (nu + min(work[U + n - m], 1e200))
        if m == size:
            q = total / m
            if q < p or loud:
                rest = max(1.0 - q, 1e-15)
                kl = p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / rest)
                if m * (nu + 3.0) / 2.0 * kl > top:
                    top, changed = m * (nu + 3.0) / 2.0 * kl, m
            size *= 2
    if changed > 0:
        begin_epoch(s, n - changed, work)


def begin_epoch(s: Array, dropped: int, work: Array) -> None:
    discard(s, dropped, work)
    scale = s[SCALES + int(s[SHAPE])] * math.sqrt(s[INFLATION])
    ratio = min(scale / s[EARLIER_SCALE], 1e6)
    for i in range(SIZE * SIZE):
        earlier = ratio * ratio * s[EARLIER_INFORMATION + i]
        s[EARLIER_INFORMATION + i] = earlier + s[INFORMATION + i]
        s[INFORMATION + i] = 0.0
    for i in range(SIZE):
        s[EARLIER_RESPONSE + i] = ratio * ratio * s[EARLIER_RESPONSE + i] + s[RESPONSE + i]
        s[RESPONSE + i] = 0.0
    s[EARLIER_SCALE] = scale
    z = DIM + 1
    count = s[DESIGN + z * z - 1]
    for i in range(z):
        work[VECTOR + i] = s[DESIGN + i * z + DIM] / count
    best = -math.inf
    for j in range(COUNT):
        last = s[SCORING + j * z + DIM]
        for i in range(z):
            s[SCORING + j * z + i] -= last * work[VECTOR + i]
        s[SCORING + j * z + DIM] = 0.0
        best = max(best, s[LOG_LIKELIHOOD + j])
    for i in range(DIM):
        for j in range(DIM):
            s[DESIGN + i * z + j] -= work[VECTOR + i] * s[DESIGN + DIM * z + j]
    for i in range(z):
        s[DESIGN + i * z + DIM] = 0.0
        s[DESIGN + DIM * z + i] = 0.0
    for j in range(COUNT):
        s[LOG_LIKELIHOOD + j] = max(s[LOG_LIKELIHOOD + j] - best, -4.0)
    factor = 8.0 / max(s[SUMS + 1], 8.0)
    for i in range(3):
        s[SUMS + i] *= factor
