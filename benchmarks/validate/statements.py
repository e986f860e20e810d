"""Check what we say of arms: coverage, false "sure", widths, rewards until sure, and CPU time.

Run with ``make bench-statements``; ``--runs`` sets the runs of each rate and ``--only looks,width``
runs some parts. Seeds are fixed, and nothing was tuned on them. Every rate comes with its
exact 99 % bounds (Clopper and Pearson).
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # for timing.py

from timing import one_core, show, start_table

one_core()

import argparse
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import joblib
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import special  # as a module: a worker could not find its functions by themselves
from scipy.stats import binom

from tailproof import UCB1, LinStudentUCB, Policy, ThompsonSampling, calibrate
from tailproof.stats import intervals
from tailproof.stats.betting import largest_bet
from tailproof.stats.intervals import (
    BoundedSample,
    evidence_needed,
    mean_evidence,
    mean_interval,
    mean_sequence,
    quantile_evidence,
    quantile_interval,
    quantile_sequence,
)
from tailproof.stats.order_statistics import log_mixture, rank
from tailproof.typing import Array, Index

SEED, LEVEL, QUANTILES = 23, 0.95, (0.5, 0.9)
SIZES = 20, 100, 1000, 10_000, 100_000
RECORDS = (5000, 3), (5000, 20), (5000, 100), (300, 300), (100_000, 10_000)
AIMS = "median", "mean", "capped_mean(0.99)", "quantile(0.95)"
LOOKS = 10_000
CHUNK, READ = 250, 50
"""Runs that a worker makes at a time, and runs whose intervals are also read at some looks."""
T = TypeVar("T")


@dataclass(frozen=True)
class Law:
    """A law of rewards, with its true values.

    `mean` is that of rewards cut to [low, high]. Draws take a generator and a shape.
    """

    name: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], Array]
    low: float
    high: float
    mean: float
    quantiles: tuple[float, float]
    up_to: Callable[[float], float] | None = None
    """The mean of rewards cut to [0, c]; at ∞ the mean, or ∞."""


def bought(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    *,
    share: float,
    size: Callable[[np.random.Generator, int], Array],
) -> Array:
    """Return rewards of visitors of whom a share buys; the others are zeros."""
    found = np.zeros(shape)
    buys = rng.random(shape) < share
    found[buys] = size(rng, int(buys.sum()))
    return found


def lognormal(rng: np.random.Generator, n: int, *, sigma: float) -> Array:
    return np.exp(sigma * rng.standard_normal(n))


def pareto(rng: np.random.Generator, n: int, *, alpha: float) -> Array:
    return 1 + rng.pareto(alpha, n)


def lognormal_up_to(cap: float, *, share: float, sigma: float) -> float:
    z = math.log(cap) / sigma
    beyond = cap * float(special.ndtr(-z)) if cap < math.inf else 0.0
    below = math.exp(sigma**2 / 2) * float(special.ndtr(z - sigma))
    return share * (below + beyond)


def pareto_up_to(cap: float, *, share: float, alpha: float) -> float:
    beyond: float = (1 - cap ** (1 - alpha)) / (alpha - 1)
    return share * (1 + beyond)


def cauchy(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_cauchy(shape)


def rounded_cauchy(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.round(rng.standard_cauchy(shape))


def rounded_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.round(rng.standard_normal(shape))


def laws() -> list[Law]:
    """Return shops whose purchases are cut at their 99 % quantile, and symmetric laws."""
    found = []
    for share in (0.03, 0.005):
        for sigma in (1.0, 2.5):
            z = float(special.ndtri(0.99))
            cap = math.exp(sigma * z)
            up_to = partial(lognormal_up_to, share=share, sigma=sigma)
            draw = partial(bought, share=share, size=partial(lognormal, sigma=sigma))
            name = f"{share:.1%} buyers, lognormal {sigma:g}"
            found.append(Law(name, draw, 0, cap, up_to(cap), (0, 0), up_to))
        for alpha in (1.1, 1.5, 3.0):
            cap = 0.01 ** (-1 / alpha)
            up_to = partial(pareto_up_to, share=share, alpha=alpha)
            draw = partial(bought, share=share, size=partial(pareto, alpha=alpha))
            name = f"{share:.1%} buyers, Pareto {alpha:g}"
            found.append(Law(name, draw, 0, cap, up_to(cap), (0, 0), up_to))
    far, upper = math.tan(0.49 * math.pi), math.tan(0.4 * math.pi)
    found.append(Law("Cauchy", cauchy, -far, far, 0, (0, upper)))
    found.append(Law("Cauchy, rounded", rounded_cauchy, -32, 32, 0, (0, 3)))
    found.append(Law("normal, rounded", rounded_normal, -3, 3, 0, (0, 1)))
    return found


# What a table needs


def bounds(wrong: int, runs: int) -> tuple[float, float]:
    """Return exact 99 % bounds on a rate."""
    low = float(special.betaincinv(wrong, runs - wrong + 1, 0.005)) if wrong else 0.0
    return low, float(special.betaincinv(wrong + 1, runs - wrong, 0.995)) if wrong < runs else 1.0


def rate(wrong: int, runs: int) -> str:
    low, high = bounds(wrong, runs)
    return f"{wrong / runs:.1%} ({low:.1%} – {high:.1%})"


def verdict(cells: Iterable[tuple[int, int]], most: float) -> str:
    """Return the worst verdict on cells of (wrong, runs): a rate of at most `most` holds.

    A larger rate is MISSED if its lower bound exceeds 5 %, and open otherwise.
    """
    over = [cell for cell in cells if cell[0] > most * cell[1]]
    clear = any(bounds(*cell)[0] > 1 - LEVEL for cell in over)
    return "MISSED" if clear else "open" if over else "holds"


def false_alarm(cells: int, runs: int, most: float) -> str:
    """Return the sentence on how often the benchmark would be wrong about correct code."""
    over = float(binom.sf(math.floor(most * runs), runs, 1 - LEVEL))
    return (
        f"MISSED: the 99 % bounds exclude {1 - LEVEL:.0%}; correct code gets it in at most 0.5 % "
        f"of cells, of these {cells} at most {0.005 * cells:.1f} on average. Open: more than "
        f"{most:.0%}, which a rate of exactly {1 - LEVEL:.0%} gives with probability {over:.2g}."
    )


def in_parallel(title: str, work: Callable[..., T], jobs: Iterable[tuple[Any, ...]]) -> list[T]:
    """Return what each job gives, from two workers, with a progress bar."""
    todo = list(jobs)
    done: Iterator[T] = joblib.Parallel(n_jobs=2, return_as="generator")(
        joblib.delayed(work)(*job) for job in todo
    )
    bar = track(done, title, len(todo), console=Console(stderr=True), transient=True)
    return list(bar)


def chunks(runs: int) -> list[tuple[int, int]]:
    """Return the number of each chunk of runs, and how many runs it has."""
    return [(i, min(CHUNK, runs - i * CHUNK)) for i in range(math.ceil(runs / CHUNK))]


def stream(*names: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *names])


# One look


def one_look_chunk(law_number: int, n: int, chunk: int, runs: int) -> Index:
    """Return (aims, 2): how many intervals were printed, and how many of them missed."""
    law, rng = laws()[law_number], stream(1, law_number, n, chunk)
    found = np.zeros((3, 2), np.int64)
    ranks = [quantile_interval(np.arange(1.0, n + 1), q, LEVEL) for q in QUANTILES]
    ranks = [(max(low, 0), min(high, n + 1)) for low, high in ranks]  # they depend on n alone
    for _ in range(runs):
        x = np.sort(law.draw(rng, (n,)))
        sample = BoundedSample.of(x, low=law.low, high=law.high)
        ranked = np.concatenate([[-math.inf], x, [math.inf]])
        ends = [(ranked[int(low)], ranked[int(high)]) for low, high in ranks]
        ends.append(mean_interval(sample, LEVEL))
        for i, (end, truth) in enumerate(zip(ends, (*law.quantiles, law.mean), strict=True)):
            if np.isfinite(end).all():
                found[i] += 1, not end[0] <= truth <= end[1]
    return found


def one_look(runs: int) -> Table:
    """Coverage of intervals for one look; the target is 94 %."""
    cells = [(law, n) for law in range(len(laws())) for n in SIZES]
    jobs = [(*cell, *chunk) for cell in cells for chunk in chunks(runs)]
    done = in_parallel("one look", one_look_chunk, jobs)
    counts = {cell: np.zeros((3, 2), np.int64) for cell in cells}
    for job, found in zip(jobs, done, strict=True):
        counts[job[:2]] += found
    aims = "median", "quantile(0.9)", "capped mean"
    title = "95 % intervals for one look: how often they miss"
    table = start_table(title, "what", "n", *aims, "verdict")
    judged = 0
    for (law, n), found in counts.items():
        row = [rate(int(miss), int(all_)) if all_ else "none" for all_, miss in found]
        told = [(int(miss), int(all_)) for all_, miss in found if all_]
        judged += len(told)
        table.add_row(laws()[law].name, f"{n}", *row, verdict(told, 0.06))
    table.caption = "none: no interval is printed. " + false_alarm(judged, runs, 0.06)
    return table


# Records


def records_chunk(law_number: int, sizes: tuple[int, int], chunk: int, runs: int) -> Index:
    """Return how often each aim was falsely sure, and two means' intervals: printed and missed."""
    law, rng = laws()[law_number], stream(7, law_number, *sizes, chunk)
    sure, missed = np.zeros(len(AIMS), np.int64), np.zeros((2, 2), np.int64)
    names = np.repeat(["a", "b"], sizes)
    for _ in range(runs):
        rewards = law.draw(rng, (sum(sizes),))
        try:
            advice = calibrate(reward=rewards, arm=names)
        except ValueError:  # nobody bought: nothing is said
            continue
        sure += [advice.leaders[aim].sure for aim in AIMS]
        if law.up_to is not None:
            for place, aim in enumerate(("mean", "capped_mean(0.99)")):
                found = advice.comparisons[aim]
                cap = getattr(found.statistic, "high", math.inf) if place else math.inf
                ends = [pair for pair in found.intervals if pair is not None]
                truth = law.up_to(cap) if cap > 1 else cap * law.up_to(1.0)
                if ends:
                    missed[place] += 1, any(not low <= truth <= high for low, high in ends)
    return np.concatenate([sure, missed.ravel()])


def records(runs: int) -> Table:
    """What `calibrate` says of two equal arms; the targets are 5 % falsely sure and 6 % missed."""
    cells = [(law, sizes) for law in range(len(laws())) for sizes in RECORDS]
    jobs = [(*cell, *chunk) for cell in cells for chunk in chunks(runs)]
    done = in_parallel("records", records_chunk, jobs)
    counts = {cell: np.zeros(len(AIMS) + 4, np.int64) for cell in cells}
    for job, found in zip(jobs, done, strict=True):
        counts[job[0], job[1]] += found
    columns = [f"{aim}: sure" for aim in AIMS], ["mean: missed", "capped: missed", "verdict"]
    title = "calibrate, two equal arms: falsely sure, and intervals that miss"
    table = start_table(title, "what", "n", *columns[0], *columns[1])
    judged = 0
    for (law, sizes), found in counts.items():
        sure, pairs = found[: len(AIMS)], found[len(AIMS) :].reshape(2, 2)
        told = [
            verdict([(int(count), runs) for count in sure], 0.05),
            verdict([(int(miss), int(all_)) for all_, miss in pairs if all_], 0.06),
        ]
        worst = next((word for word in ("MISSED", "open") if word in told), "holds")
        judged += len(AIMS) + int(np.count_nonzero(pairs[:, 0]))
        shown = [rate(int(miss), int(all_)) if all_ else "none" for all_, miss in pairs]
        row = [f"{sizes[0]}, {sizes[1]}", *(rate(int(count), runs) for count in sure), *shown]
        table.add_row(laws()[law].name, *row, worst)
    table.caption = (
        "The cap is learned from the records, and the interval is for the mean capped there. "
        + false_alarm(judged, runs, 0.05)
        + " Intervals are open above 6 %."
    )
    return table


# Any look


def log_capitals(x: Array, mean: float, rising: bool) -> Array:
    """Return the logarithm of each bet's gain on each reward, for fractions x: x.shape + (bets,).

    The bets of `mean_sequence` on means above (`rising`) or below the true one.
    """
    at, gap = (mean, x - mean) if rising else (1 - mean, mean - x)
    bets = np.minimum(intervals._BETS, largest_bet(at))
    found: Array = np.log1p(gap[..., None] * bets)
    return found


def any_look_run(law_number: int, chunk: int, runs: int) -> Index:
    """Return (aims, 2): paths that ever missed, and intervals read that missed where none should.

    The interval misses the truth at a look if and only if the capital against the truth, or the
    count of rewards beyond it, has reached what is asked: that is checked after every reward. The
    intervals themselves are read at some looks of the first paths, and must agree.
    """
    law, rng = laws()[law_number], stream(2, law_number, chunk)
    asked, seen = math.log(2 / (1 - LEVEL)), np.arange(1, LOOKS + 1)
    ranks = {q: rank(seen, asked, q) for level in QUANTILES for q in (level, 1 - level)}
    looks = np.unique(np.geomspace(10, LOOKS, 12).astype(int))
    found = np.zeros((3, 2), np.int64)
    width = law.high - law.low
    for run in range(runs):
        x = law.draw(rng, (LOOKS,))
        missed = np.zeros((3, LOOKS), bool)
        for i, (level, truth) in enumerate(zip(QUANTILES, law.quantiles, strict=True)):
            missed[i] = np.cumsum(x < truth) >= ranks[level]
            missed[i] |= np.cumsum(x > truth) >= ranks[1 - level]
        fractions, mean = (np.clip(x, law.low, law.high) - law.low) / width, law.mean - law.low
        for rising in (True, False):
            capitals = log_capitals(fractions, mean / width, rising).cumsum(axis=0)
            top = capitals.max(axis=1)
            missed[2] |= top + np.log(np.exp(capitals - top[:, None]) @ intervals._ONE) >= asked
        found[:, 0] += missed.any(axis=1)
        for n in looks if chunk * CHUNK + run < READ else ():
            ends = [quantile_sequence(x[:n], q, LEVEL) for q in QUANTILES]
            sample = BoundedSample.of(x[:n], low=law.low, high=law.high)
            ends.append(mean_sequence(sample, LEVEL))
            for i, truth in enumerate((*law.quantiles, law.mean)):
                misses = not ends[i][0] <= truth <= ends[i][1]
                found[i, 1] += misses > missed[i, n - 1]
    return found


def any_look(runs: int) -> Table:
    """Paths on which the interval ever missed, over all looks; the target is 6 %."""
    jobs = [(law, *chunk) for law in range(len(laws())) for chunk in chunks(runs)]
    done = in_parallel("any look", any_look_run, jobs)
    title = f"95 % intervals for any look: paths that ever missed in {LOOKS} looks"
    table = start_table(title, "what", "median", "quantile(0.9)", "capped mean", "verdict")
    unlike = 0
    for law, shape in enumerate(laws()):
        mine = [found for job, found in zip(jobs, done, strict=True) if job[0] == law]
        missed, extra = np.sum(mine, axis=0).T
        unlike += int(extra.sum())
        told = [(int(wrong), runs) for wrong in missed]
        table.add_row(shape.name, *(rate(*cell) for cell in told), verdict(told, 0.06))
    table.caption = (
        f"At a geometric grid of looks the printed intervals missed {unlike} times where this "
        f"shortcut did not. {false_alarm(3 * len(laws()), runs, 0.06)}"
    )
    return table


# Identical arms that a policy chose

PLAYED = "5.0% clicks", "3.0% buyers, lognormal 1", "Cauchy"
POLICIES: list[Policy[Any]] = [UCB1(), ThompsonSampling(), LinStudentUCB()]


def reward_law(name: str) -> Law:
    if name == PLAYED[0]:
        ones = partial(bought, share=0.05, size=ones_of)
        return Law(name, ones, 0, 1, 0.05, (0, 0))
    (found,) = (law for law in laws() if law.name == name)
    return found


def ones_of(_: np.random.Generator, n: int) -> Array:
    return np.ones(n)


def played(
    policy: Policy[Any], law: Law, runs: int, world: np.random.Generator
) -> tuple[Index, Array]:
    """Return (runs, looks): which of two equal arms was played, and the reward.

    The policy learns from rewards cut to the range, in units of their standard deviation.
    """
    arms = np.broadcast_to(np.eye(2), (runs, 2, 2))
    state = policy.init(runs, 2, 2)
    rewards = law.draw(world, (LOOKS, runs))
    cut = np.clip(rewards, law.low, law.high)
    cut /= cut.std()
    chosen = np.empty((LOOKS, runs), np.int64)
    for t in range(LOOKS):
        chosen[t] = policy.choose(state, arms, world)
        policy.learn(state, arms, chosen[t], cut[t][:, None])
    return chosen.T, rewards.T


def joined(capitals: Array) -> Array:
    """Return the evidence at the true mean: capitals (looks, directions, arms, bets)."""
    tops = capitals.max(axis=-1)
    parts = np.exp(capitals - tops[..., None])
    pairs = np.vecdot(parts[:, :, 0] @ intervals._TWO, parts[:, :, 1])
    found: Array = np.log(pairs) + tops.sum(axis=-1)
    return found


def mean_path(chosen: Index, rewards: Array, law: Law) -> Array:
    """Return the larger evidence, of either arm over the other, at the true mean."""
    width = law.high - law.low
    x, mean = (np.clip(rewards, law.low, law.high) - law.low) / width, (law.mean - law.low) / width
    gains = {rising: log_capitals(x, mean, rising) for rising in (True, False)}
    capitals = np.empty((LOOKS, 2, 2, len(intervals._BETS)))
    for leader in (0, 1):
        for place, arm in enumerate((leader, 1 - leader)):
            mine = (chosen == arm)[:, None]
            capitals[:, leader, place] = np.cumsum(gains[place == 0] * mine, axis=0)
    found: Array = joined(capitals).max(axis=1)
    return found


def median_path(chosen: Index, rewards: Array, law: Law) -> Array:
    """Return the larger evidence, of either arm over the other, at the true median."""
    truth, found = law.quantiles[0], np.full(LOOKS, -math.inf)
    for leader in (0, 1):
        a, b = chosen == leader, chosen != leader
        above = log_mixture(a.cumsum(), (a & (rewards > truth)).cumsum(), 0.5)
        found = np.maximum(
            found, above + log_mixture(b.cumsum(), (b & (rewards < truth)).cumsum(), 0.5)
        )
    return found


def sure_chunk(law_name: str, policy_number: int, chunk: int, runs: int) -> tuple[int, int, int]:
    """Return how many paths were ever sure, at the truth and as read, and how many were read."""
    law = reward_law(law_name)
    world = stream(3, PLAYED.index(law_name), policy_number, chunk)
    chosen, rewards = played(POLICIES[policy_number], law, runs, world)
    needed, heavy = evidence_needed(2, LEVEL), law_name == "Cauchy"
    sure = read = paths = 0
    for arms, x in zip(chosen, rewards, strict=True):
        path = (median_path if heavy else mean_path)(arms, x, law)
        sure += bool((path >= needed).any())
        if chunk or paths == READ:
            continue
        paths += 1
        looks = np.unique(np.geomspace(20, LOOKS, 10).astype(int))
        read += any(is_sure(x[:n][arms[:n] == 0], x[:n][arms[:n] == 1], law, heavy) for n in looks)
    return sure, read, paths


def is_sure(a: Array, b: Array, law: Law, heavy: bool) -> bool:
    needed = evidence_needed(2, LEVEL)
    if heavy:
        return max(quantile_evidence(a, b, 0.5), quantile_evidence(b, a, 0.5)) >= needed
    one, two = (BoundedSample.of(x, low=law.low, high=law.high) for x in (a, b))
    return max(mean_evidence(one, two), mean_evidence(two, one)) >= needed


def identical_arms(runs: int) -> Table:
    """Paths of two equal arms that were ever called different; the target is 5 %."""
    jobs = [(law, p, *chunk) for law in PLAYED for p in range(3) for chunk in chunks(runs)]
    done = in_parallel("identical arms", sure_chunk, jobs)
    title = f'Equal arms that a policy chose: paths ever "sure" in {LOOKS} looks'
    table = start_table(title, "what", "policy", "at the truth", "as read", "verdict")
    for law in PLAYED:
        for p in range(3):
            mine = [row for job, row in zip(jobs, done, strict=True) if job[:2] == (law, p)]
            sure, read, paths = np.sum(mine, axis=0)
            name = type(POLICIES[p]).__name__
            shown = rate(int(sure), runs), rate(int(read), int(paths))
            table.add_row(law, name, *shown, verdict([(int(sure), runs)], 0.05))
    table.caption = (
        "Evidence is a minimum over all common means, or medians. Its value at the true one, taken "
        "after every reward, is at least as large, so the first rate is an upper bound. As read: "
        f"the evidence itself, at ten looks of {READ} paths. "
        + false_alarm(len(PLAYED) * 3, runs, 0.05)
    )
    return table


# Width, rewards until sure, cost


def width_run(seed: int) -> tuple[float, float]:
    x = np.clip(stream(4, seed).standard_normal(10_000), -4, 4)
    sample = BoundedSample.of(x, low=-4, high=4)
    student = 2 * float(special.stdtrit(len(x) - 1, 0.975)) * x.std(ddof=1) / math.sqrt(len(x))
    widths = [high - low for low, high in (mean_interval(sample), mean_sequence(sample))]
    return widths[0] / student, widths[1] / student


def width(runs: int) -> Table:
    """Widths divided by that of Student's interval, normal rewards cut at ±4σ, n = 10⁴."""
    found = in_parallel("width", width_run, [(seed,) for seed in range(min(runs, 200))])
    table = start_table("Width over Student's, normal rewards in ±4σ, n = 10⁴", *COLUMNS)
    for name, ratios, most in zip(
        ("one look", "any look"), np.transpose(found), (1.15, 1.8), strict=True
    ):
        add_ratio(table, name, ratios, most)
    return table


COLUMNS = "what", "median", "5 % – 95 %", "at most", "verdict"


def add_ratio(table: Table, name: str, ratios: Array, most: float) -> None:
    low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    told = "holds" if middle <= most else "MISSED"
    table.add_row(name, f"{middle:.3f}", f"{low:.3f} – {high:.3f}", f"{most:g}", told)


def planned(p: float, q: float) -> int:
    """Return the rewards of both arms in a z-test of two shares, 5 % two-sided, power 80 %."""
    z = float(special.ndtri(0.975) + special.ndtri(0.8))
    return 2 * math.ceil(z**2 * (p * (1 - p) + q * (1 - q)) / (p - q) ** 2)


def until_sure(seed: int, p: float, q: float) -> float:
    """Return the rewards of both arms until the better one is sure, read every 20 rewards.

    The evidence at the pooled share is at least the minimum over all shares. At most looks it is
    too small already, and the minimum is not computed.
    """
    rng, needed, most = stream(5, seed), evidence_needed(2, LEVEL), 200_000
    n = np.arange(10, most, 10)
    counts = [(rng.random(most) < share).cumsum()[n - 1] for share in (p, q)]
    pooled = np.clip((counts[0] + counts[1]) / (2 * n), 1e-9, 1 - 1e-9)[:, None]
    halves = []
    for clicks, sign in zip(counts, (1, -1), strict=True):
        room = pooled if sign > 0 else 1 - pooled
        bets = sign * np.minimum(intervals._BETS, largest_bet(room))
        won, lost = np.log1p(bets * (1 - pooled)), np.log1p(-bets * pooled)
        halves.append(clicks[:, None] * won + (n - clicks)[:, None] * lost)
    at_pooled = joined(np.stack(halves, axis=1)[:, None])[:, 0]
    for i in np.flatnonzero(at_pooled >= needed):
        a, b = (BoundedSample.of([0, 1], counts=[n[i] - k[i], k[i]], low=0, high=1) for k in counts)
        if mean_evidence(a, b) >= needed:
            return 2 * float(n[i])
    return math.inf


def conversion(runs: int) -> Table:
    """Rewards until sure that 6 % exceed 5 %, divided by those of a planned z-test."""
    size = planned(0.06, 0.05)
    jobs = [(seed, 0.06, 0.05) for seed in range(runs)]
    ratios = np.array(in_parallel("conversion", until_sure, jobs)) / size
    title = f"Rewards until sure, 6 % against 5 %, any look, over a z-test planned with {size}"
    table = start_table(title, *COLUMNS)
    add_ratio(table, "arms in turns", ratios, 2)
    table.caption = (
        f"Mean {ratios.mean():.2f}; {np.mean(ratios <= 1):.0%} are sure before the z-test ends, "
        f"{np.mean(ratios <= 2):.0%} before twice its size. The z-test itself finds 80 %."
    )
    return table


def speed(_: int) -> Table:
    """CPU time of the whole advice on 10⁶ rows in five arms."""
    table = start_table("calibrate, 10⁶ rows, 5 arms, 4 aims", "what", "CPU", "target")
    names = np.repeat(list("abcde"), 200_000)
    for name in ("3.0% buyers, lognormal 2.5", "Cauchy"):
        law = reward_law(name)
        rewards = [law.draw(stream(6, i), (200_000,)) * (1 + i / 50) for i in range(5)]
        start = time.process_time()
        str(calibrate(reward=np.concatenate(rewards), arm=names))
        table.add_row(name, f"{time.process_time() - start:.2f} s", "≤ 6 s")
    return table


PARTS: dict[str, Callable[[int], Table]] = {
    "one": one_look,
    "records": records,
    "looks": any_look,
    "sure": identical_arms,
    "width": width,
    "conversion": conversion,
    "speed": speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="runs of each rate")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    asked = parser.parse_args()
    for name in asked.only.split(","):
        show(PARTS[name](asked.runs))


if __name__ == "__main__":
    main()
