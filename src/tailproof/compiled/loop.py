"""The loop of one path, and the loops over paths on cores and on a GPU."""

import math
from typing import Any

import numpy as np

from tailproof.compiled.forms import pick_largest
from tailproof.compiled.streams import Words, begin_stream
from tailproof.typing import Array, Index

__all__ = ["on_cores", "on_gpu", "play"]

# Placeholders: sizes and switches that are constants of the compiled loop.
ARMS, DIM, WIDTH, OFFERS, STATE, WORK, PULLS, LATE = 1, 1, 1, (1, 1), 1, 1, 1, 1
FRESH, PAYS_LOCATION, ESTIMATES, MORE_ROWS = False, True, False, False
cuda: Any = None
"""A placeholder: the module of Numba."""


def lend(array: Array) -> Array:
    """Return an array whose slices count no references; a placeholder where they do count them."""
    return array


_HORIZON, _COST, _DELAY = range(3)  # places of plan
_OFFSET = 4  # place in w


def start(s: Array, p: Array) -> None:
    """Write the state before any reward; a placeholder."""
    raise NotImplementedError


def index(s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array) -> None:
    """Write the index of each arm; a placeholder."""
    raise NotImplementedError


def learn(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    """Learn rewards; a placeholder."""
    raise NotImplementedError


def estimate(s: Array, p: Array, values: Array) -> None:
    """Write the estimate of θ; a placeholder."""
    raise NotImplementedError


def begin(
    theta: Array, offers: Array, locations: Array, w: Array, vectors: Array, g: Words
) -> None:
    """Write θ, the vectors and their locations; a placeholder."""
    raise NotImplementedError


def renew(
    theta: Array, offers: Array, locations: Array, w: Array, vectors: Array, g: Words
) -> None:
    """Write the vectors of the next decision; a placeholder."""
    raise NotImplementedError


def move(theta: Array, offers: Array, locations: Array, w: Array, g: Words, before: int) -> None:
    """Write the next θ, given the number of moves before; a placeholder."""
    raise NotImplementedError


def draw(g: Words, laws: Array, row: int, values: Array) -> float:
    """Draw noise; a placeholder."""
    raise NotImplementedError


def largest(locations: Array) -> float:
    top = locations[0]
    for k in range(1, ARMS):
        top = max(top, locations[k])
    return top


def miss(s: Array, p: Array, theta: Array, values: Array) -> float:
    """Return ‖θ̂ − θ‖/‖θ‖, NaN for θ = 0."""
    estimate(s, p, values)
    error, size = 0.0, 0.0
    for i in range(theta.shape[0]):
        error += (values[i] - theta[i, 0]) * (values[i] - theta[i, 0])
        size += theta[i, 0] * theta[i, 0]
    return math.sqrt(error / size) if size > 0.0 else math.nan


def pay(
    y: Array,
    noise: Words,
    base: float,
    k: int,
    pulled: int,
    passed: int,
    laws: Array,
    table: Array,
    rows: Index,
    changes: Index,
) -> int:
    """Write the rewards of arm k, and return how many changes of the noise are over."""
    for i in range(PULLS):
        while passed < changes.shape[0] and changes[passed] <= pulled + i:
            passed += 1
        y[i] = base + draw(noise, laws, rows[passed, k], table)
    return passed


def swap(late: Array, slot: int, k: int, y: Array) -> int:
    """Exchange a decision that waits with the newest, and return its arm."""
    arm, late[slot] = int(late[slot]), float(k)
    for i in range(PULLS):
        y[i], late[slot + 1 + i] = late[slot + 1 + i], y[i]
    return arm


def play(path: int, at: int, shared: Any, results: Any, room: Any) -> None:
    """Play one path, and write its row of results.

    `shared` has the arrays that all paths read, in the order of the parameters of `on_cores`, and
    `room` the arrays that this path writes to. Tuples are opened here alone: it takes longer than a
    decision.
    """
    plan, marks, keys, p, w, vectors, laws, table, rows, changes, moves = shared
    choices, g, noise, s, work, values, theta, estimated, offers, locations, y, late = room
    regret, error = results
    horizon, cost, delay = plan[_HORIZON], plan[_COST], plan[_DELAY]
    begin_stream(g, keys[0], path)
    begin_stream(noise, keys[1], path)
    begin_stream(choices, keys[2], path)
    given = offers[:DIM] if MORE_ROWS else offers
    begin(theta, given, locations, w, vectors, g)
    start(s, p)
    for i in range(late.shape[0]):
        late[i] = 0.0
    best, total = largest(locations), 0.0
    learned, pulled, mark, judged, passed, moved = 0, 0, 0, 0, 0, 0
    for t in range((horizon + cost - 1) // cost):
        if ESTIMATES:
            while judged < marks.shape[0] and marks[judged] < pulled + cost:
                error[at, judged] = miss(s, p, theta, estimated)
                judged += 1
        index(s, p, offers, learned, choices, values, work)
        k = pick_largest(values, choices)
        gap = best - locations[k]
        while mark < marks.shape[0] and marks[mark] <= pulled + cost:
            regret[at, mark] = total + gap * (marks[mark] - pulled)
            mark += 1
        total += gap * cost
        if pulled + cost <= horizon:  # or else the last decision does not fit
            base = w[_OFFSET] + locations[k] if PAYS_LOCATION else w[_OFFSET]
            passed = pay(y, noise, base, k, pulled, passed, laws, table, rows, changes)
            arm = swap(late, (t % delay) * (PULLS + 1), k, y) if delay > 0 else k
            if t >= delay:
                learn(s, p, offers, arm, y, learned, work)
                learned += 1
        pulled += cost
        if FRESH:
            renew(theta, given, locations, w, vectors, g)
            best = largest(locations)
        while moved < moves.shape[0] and moves[moved] <= pulled:
            move(theta, given, locations, w, g, moved)
            best = largest(locations)
            moved += 1
    if ESTIMATES:
        while judged < marks.shape[0]:
            error[at, judged] = miss(s, p, theta, estimated)
            judged += 1


def on_cores(
    first: int,
    plan: Index,
    marks: Index,
    keys: Words,
    p: Array,
    w: Array,
    vectors: Array,
    laws: Array,
    table: Array,
    rows: Index,
    changes: Index,
    moves: Index,
    regret: Array,
    error: Array,
) -> None:
    """Play the paths from `first` on, one after another."""
    shared = (plan, marks, keys, p, w, vectors, laws, table, rows, changes, moves)
    choices, g, noise = np.empty(2, np.uint64), np.empty(2, np.uint64), np.empty(2, np.uint64)
    s, work, values = np.empty(STATE), np.empty(WORK), np.empty(WIDTH)
    theta, estimated = np.empty((DIM, 1)), np.empty(DIM)
    offers, locations = np.zeros(OFFERS), np.empty(WIDTH)  # vectors of no arm are finite, too
    y, late = np.empty(PULLS), np.empty(LATE)
    own = (choices, g, noise, s, work, values, theta, estimated, offers, locations, y, late)
    each_path(first, shared, (regret, error), own)


def each_path(first: int, shared: Any, results: Any, own: Any) -> None:
    """Play the paths from `first` on in the arrays that the caller owns."""
    choices, g, noise, s, work, values, theta, estimated, offers, locations, y, late = own
    room = (
        lend(choices), lend(g), lend(noise), lend(s), lend(work), lend(values), lend(theta),
        lend(estimated), lend(offers), lend(locations), lend(y), lend(late),
    )  # fmt: skip
    for at in range(results[0].shape[0]):
        play(first + at, at, shared, results, room)


def on_gpu(
    first: int,
    plan: Index,
    marks: Index,
    keys: Words,
    p: Array,
    w: Array,
    vectors: Array,
    laws: Array,
    table: Array,
    rows: Index,
    changes: Index,
    moves: Index,
    regret: Array,
    error: Array,
) -> None:
    """Play the paths from `first` on, each on a thread of the GPU; a kernel."""
    at = cuda.grid(1)
    if at < regret.shape[0]:
        shared = (plan, marks, keys, p, w, vectors, laws, table, rows, changes, moves)
        choices = cuda.local.array(2, np.uint64)
        g = cuda.local.array(2, np.uint64)
        noise = cuda.local.array(2, np.uint64)
        s = cuda.local.array(STATE, np.float64)
        work = cuda.local.array(WORK, np.float64)
        values = cuda.local.array(WIDTH, np.float64)
        theta = cuda.local.array((DIM, 1), np.float64)
        estimated = cuda.local.array(DIM, np.float64)
        offers = cuda.local.array(OFFERS, np.float64)
        locations = cuda.local.array(WIDTH, np.float64)
        y = cuda.local.array(PULLS, np.float64)
        late = cuda.local.array(LATE, np.float64)
        room = (choices, g, noise, s, work, values, theta, estimated, offers, locations, y, late)
        play(first + at, at, shared, (regret, error), room)
