"""The loop of one path, and the loops over paths on cores and on a GPU."""

import math
from typing import Any

import numpy as np

from tailproof.compiled.forms import pick_largest
from tailproof.compiled.streams import Words, begin_stream
from tailproof.typing import Array, Index

__all__ = ["on_cores", "on_gpu", "play"]

# Placeholders: sizes and switches that are constants of the compiled loop.
ARMS, DIM, OFFERS, STATE, WORK, PULLS, LATE = 1, 1, (1, 1), 1, 1, 1, 1
FRESH, PAYS_LOCATION, ESTIMATES = False, True, False
cuda: Any = None
"""A placeholder: the module of Numba."""
_HORIZON, _COST, _DELAY = range(3)  # places of plan
_OFFSET = 4  # place in w


def start(s: Array, p: Array) -> None:
    """Write what the policy knows at first; a placeholder."""
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


def move(theta: Array, offers: Array, locations: Array, w: Array, g: Words) -> None:
    """Write the next θ; a placeholder."""
    raise NotImplementedError


def draw(g: Words, laws: Array, row: int, values: Array) -> float:
    """Draw noise; a placeholder."""
    raise NotImplementedError


def largest(locations: Array) -> float:
    top = locations[0]
    for k in range(1, locations.shape[0]):
        top = max(top, locations[k])
    return top


def miss(s: Array, p: Array, theta: Array, values: Array) -> float:
    """Return ‖θ̂ − θ‖/‖θ‖, NaN for θ = 0."""
    estimate(s, p, values)
    error, size = 0.0, 0.0
    for i in range(theta.shape[1]):
        error += (values[i] - theta[0, i]) * (values[i] - theta[0, i])
        size += theta[0, i] * theta[0, i]
    return math.sqrt(error / size) if size > 0.0 else math.nan


def judge(at: int, judged: int, t: int, shared: Any, error: Array, room: Any) -> int:
    """Write the error of the estimate at marks that decision t comes first after."""
    plan, marks = shared[0], shared[1]
    while judged < marks.shape[0] and marks[judged] // plan[_COST] <= t:
        error[at, judged] = miss(room[3], shared[3], room[6], room[7])
        judged += 1
    return judged


def pay(k: int, location: float, pulled: int, passed: int, shared: Any, room: Any) -> int:
    """Write the rewards of arm k, and return how many changes of the noise are over."""
    w, laws, table, rows, changes = shared[4], shared[6], shared[7], shared[8], shared[9]
    noise, y = room[2], room[10]
    base = w[_OFFSET] + location if PAYS_LOCATION else w[_OFFSET]
    for i in range(PULLS):
        while passed < changes.shape[0] and changes[passed] <= pulled + i:
            passed += 1
        y[i] = base + draw(noise, laws, rows[passed, k], table)
    return passed


def learn_in_time(k: int, t: int, known: int, shared: Any, room: Any) -> int:
    """Learn the rewards that are known by now, and return how many decisions are learned."""
    plan, p = shared[0], shared[3]
    s, work, offers, y, late = room[3], room[4], room[8], room[10], room[11]
    arm, delay = k, plan[_DELAY]
    if delay > 0:
        slot = (t % delay) * (PULLS + 1)
        arm, late[slot] = int(late[slot]), float(k)
        for i in range(PULLS):
            y[i], late[slot + 1 + i] = late[slot + 1 + i], y[i]
    if t < delay:
        return known
    learn(s, p, offers, arm, y, known, work)
    return known + 1


def play(path: int, at: int, shared: Any, results: Any, room: Any) -> None:
    """Play one path, and write its row of results.

    `shared` is what all paths share, in the order of the parameters of `on_cores`, and `room` what
    this path writes to.
    """
    plan, marks, keys, p, w, vectors, _, _, _, _, moves = shared
    own, g, noise, s, work, values, theta, _, offers, locations, _, late = room
    regret, error = results
    horizon, cost = plan[_HORIZON], plan[_COST]
    begin_stream(g, keys[0], path)
    begin_stream(noise, keys[1], path)
    begin_stream(own, keys[2], path)
    begin(theta, offers, locations, w, vectors, g)
    start(s, p)
    for i in range(late.shape[0]):
        late[i] = 0.0
    best, total = largest(locations), 0.0
    known, pulled, mark, judged, passed, moved = 0, 0, 0, 0, 0, 0
    for t in range((horizon + cost - 1) // cost):
        if ESTIMATES:
            judged = judge(at, judged, t, shared, error, room)
        index(s, p, offers, known, own, values, work)
        k = pick_largest(values, own)
        location = locations[k]
        gap = best - location
        while mark < marks.shape[0] and marks[mark] <= pulled + cost:
            regret[at, mark] = total + gap * (marks[mark] - pulled)
            mark += 1
        total += gap * cost
        if pulled + cost <= horizon:  # or else the last decision does not fit
            passed = pay(k, location, pulled, passed, shared, room)
            known = learn_in_time(k, t, known, shared, room)
        pulled += cost
        if FRESH:
            renew(theta, offers, locations, w, vectors, g)
            best = largest(locations)
        while moved < moves.shape[0] and moves[moved] <= pulled:
            move(theta, offers, locations, w, g)
            best = largest(locations)
            moved += 1
    if ESTIMATES:
        judge(at, judged, horizon, shared, error, room)


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
    own, g, noise = np.empty(2, np.uint64), np.empty(2, np.uint64), np.empty(2, np.uint64)
    s, work, values = np.empty(STATE), np.empty(WORK), np.empty(ARMS)
    theta, found = np.empty((1, DIM)), np.empty(DIM)
    offers, locations = np.empty(OFFERS), np.empty(ARMS)
    y, late = np.empty(PULLS), np.empty(LATE)
    room = (own, g, noise, s, work, values, theta, found, offers, locations, y, late)
    for at in range(regret.shape[0]):
        play(first + at, at, shared, (regret, error), room)


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
        own = cuda.local.array(2, np.uint64)
        g = cuda.local.array(2, np.uint64)
        noise = cuda.local.array(2, np.uint64)
        s = cuda.local.array(STATE, np.float64)
        work = cuda.local.array(WORK, np.float64)
        values = cuda.local.array(ARMS, np.float64)
        theta = cuda.local.array((1, DIM), np.float64)
        found = cuda.local.array(DIM, np.float64)
        offers = cuda.local.array(OFFERS, np.float64)
        locations = cuda.local.array(ARMS, np.float64)
        y = cuda.local.array(PULLS, np.float64)
        late = cuda.local.array(LATE, np.float64)
        room = (own, g, noise, s, work, values, theta, found, offers, locations, y, late)
        play(first + at, at, shared, (regret, error), room)
