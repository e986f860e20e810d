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
_ENVIRONMENT, _NOISE, _POLICY = range(3)  # places of keys
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


def play(
    path: int,
    at: int,
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
    own: Words,
    g: Words,
    noise: Words,
    s: Array,
    work: Array,
    values: Array,
    theta: Array,
    found: Array,
    offers: Array,
    locations: Array,
    y: Array,
    late: Array,
) -> None:
    """Play one path, and write its row of results.

    Numbers after `error` are room of this path. The rewards of a decision are learned `delay`
    decisions later, and wait in `late` until then.
    """
    horizon, cost, delay = plan[_HORIZON], plan[_COST], plan[_DELAY]
    begin_stream(g, keys[_ENVIRONMENT], path)
    begin_stream(noise, keys[_NOISE], path)
    begin_stream(own, keys[_POLICY], path)
    begin(theta, offers, locations, w, vectors, g)
    start(s, p)
    best, total, known, pulled = largest(locations), 0.0, 0, 0
    mark, judged, passed, moved = 0, 0, 0, 0
    full = horizon // cost
    for t in range((horizon + cost - 1) // cost):
        if ESTIMATES:
            while judged < marks.shape[0] and marks[judged] // cost == t:
                error[at, judged] = miss(s, p, theta, found)
                judged += 1
        index(s, p, offers, known, own, values, work)
        k = pick_largest(values, own)
        location = locations[k]
        gap = best - location
        while mark < marks.shape[0] and marks[mark] <= pulled + cost:
            regret[at, mark] = total + gap * (marks[mark] - pulled)
            mark += 1
        total += gap * cost
        if t < full:
            base = w[_OFFSET] + location if PAYS_LOCATION else w[_OFFSET]
            for i in range(PULLS):
                while passed < changes.shape[0] and changes[passed] <= pulled + i:
                    passed += 1
                y[i] = base + draw(noise, laws, rows[passed, k], table)
            if delay == 0:
                learn(s, p, offers, k, y, known, work)
                known += 1
            else:
                slot = (t % delay) * (PULLS + 1)
                if t >= delay:
                    arm, late[slot] = int(late[slot]), float(k)
                    for i in range(PULLS):
                        y[i], late[slot + 1 + i] = late[slot + 1 + i], y[i]
                    learn(s, p, offers, arm, y, known, work)
                    known += 1
                else:
                    late[slot] = float(k)
                    for i in range(PULLS):
                        late[slot + 1 + i] = y[i]
        pulled += cost
        if FRESH:
            renew(theta, offers, locations, w, vectors, g)
            best = largest(locations)
        while moved < moves.shape[0] and moves[moved] <= pulled:
            move(theta, offers, locations, w, g)
            best = largest(locations)
            moved += 1
    if ESTIMATES:
        while judged < marks.shape[0]:
            error[at, judged] = miss(s, p, theta, found)
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
    own, g, noise = np.empty(2, np.uint64), np.empty(2, np.uint64), np.empty(2, np.uint64)
    s, work, values = np.empty(STATE), np.empty(WORK), np.empty(ARMS)
    theta, found, offers, locations = (
        np.empty((1, DIM)),
        np.empty(DIM),
        np.empty(OFFERS),
        np.empty(ARMS),
    )
    y, late = np.empty(PULLS), np.empty(LATE)
    for at in range(regret.shape[0]):
        play(
            first + at, at, plan, marks, keys, p, w, vectors, laws, table, rows, changes, moves,
            regret, error, own, g, noise, s, work, values, theta, found, offers, locations, y, late,
        )  # fmt: skip


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
        play(
            first + at, at, plan, marks, keys, p, w, vectors, laws, table, rows, changes, moves,
            regret, error, own, g, noise, s, work, values, theta, found, offers, locations, y, late,
        )  # fmt: skip
