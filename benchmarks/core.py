"""Speed and results of the core against their targets and against a plain reference.

Run with ``make bench``. Machines are noisy: every time is the best of several, taken in turns
with its reference, and the ratio says more than the time.
"""

from timing import one_core, race, show, start_table

one_core()

import math
import tracemalloc
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tailproof import (
    OFUL,
    UCB1,
    Estimator,
    Filtered,
    MeanOfMedians,
    environments,
    mean_of_medians,
    simulate,
    theory,
)
from tailproof.noise import Cauchy, StudentT

table = start_table("tailproof core, one core", "what", "ours", "reference", "ratio", "target")


def theory_values() -> None:
    for alpha, expected in ((1, 53_889), (0.5, 9_410_353)):
        found = theory.filter_pulls(horizon=10_000, delta=0.01, alpha=alpha, block_exponent=0.5)
        table.add_row(f"filter_pulls, alpha {alpha}", f"{found}", f"{expected}", "", "equal")


def numpy_mean_of_medians(rows: NDArray[np.float64]) -> float:
    return float(np.median(rows, axis=1).mean())


def medians() -> None:
    x = np.random.default_rng(0).standard_cauchy(10**7)
    for k, target in ((9, 4), (21, 4), (233, 3)):
        rows = x[: len(x) // k * k].reshape(-1, k)
        same = mean_of_medians(x, block=k) == numpy_mean_of_medians(rows)
        ours, numpy = race(
            partial(mean_of_medians, x, block=k), partial(numpy_mean_of_medians, rows)
        )
        table.add_row(
            f"mean_of_medians, 10⁷ samples, blocks of {k}, {'same bits' if same else 'DIFFERS'}",
            f"{ours * 1e3:.0f} ms",
            f"{numpy * 1e3:.0f} ms",
            f"{numpy / ours:.1f}×",
            f"≥ {target}×",
        )


def draws() -> None:
    estimator, n, rng = MeanOfMedians(block_exponent=0.5), 53_889, np.random.default_rng(0)
    for df in (0.5, 1.0):
        noise = StudentT(df)
        ours, raw = race(
            partial(estimator.draw, noise, rng, (100, n)),
            partial(Estimator.draw, estimator, noise, rng, (10, n)),  # raw noise, reduced
        )
        ours, raw = ours / 100, raw / 10
        table.add_row(
            f"MeanOfMedians.draw, ñ = {n}, Student-t df {df:g}",
            f"{ours * 1e6:.0f} µs",
            f"{raw * 1e6:.0f} µs",
            f"{raw / ours:.0f}×",
            "≥ 50×",
        )


def plain_oful(decisions: int, fresh: bool) -> None:
    """Play OFUL on one path and add up its regret, without any optimisation."""
    rng, arms, dim = np.random.default_rng(0), 20, 10
    theta = rng.standard_normal(dim)
    theta /= np.linalg.norm(theta)
    inverse, moment, log_det, regret = np.eye(dim), np.zeros(dim), 0.0, 0.0
    for i in range(decisions):
        if fresh or i == 0:
            x = rng.standard_normal((arms, dim))
            x /= np.linalg.norm(x, axis=1, keepdims=True)
        beta = math.sqrt(log_det + 2 * math.log(100)) + 1
        width = np.sqrt(np.sum(x @ inverse * x, axis=1))
        a = int(np.argmax(x @ (inverse @ moment) + beta * width))
        locations = x @ theta
        regret += locations.max() - locations[a]
        reward = locations[a] + rng.standard_cauchy()
        gain = inverse @ x[a]
        growth = 1 + x[a] @ gain
        inverse -= np.outer(gain, gain) / growth
        log_det += math.log(growth)
        moment += reward * x[a]


def oful() -> None:
    paths, decisions = 500, 500
    for fresh, target in ((False, 1.2), (True, 3.0)):
        bandit = environments.neutral(Cauchy(), fresh=fresh)
        ours, plain = race(
            partial(
                simulate, {"OFUL": OFUL()}, bandit, horizon=decisions, paths=paths, checkpoints=1
            ),
            partial(plain_oful, decisions, fresh),
        )
        ours, plain = ours / (paths * decisions), plain / decisions
        kind = "fresh contexts" if fresh else "fixed arms"
        table.add_row(
            f"OFUL, K = 20, d = 10, 500 paths, {kind}, per decision",
            f"{ours * 1e6:.2f} µs",
            f"{plain * 1e6:.1f} µs",
            f"{plain / ours:.0f}×",
            f"≤ {target} µs, ≥ 20×",
        )


def plain_ucb1(pulls: int) -> None:
    """Play UCB1 on one path and add up its regret, without any optimisation."""
    rng, locations = np.random.default_rng(0), np.linspace(0, 1, 10)
    counts, sums, regret = np.zeros(10), np.zeros(10), 0.0
    for t in range(pulls):
        index = sums / np.maximum(counts, 1) + np.sqrt(2 * math.log(t + 1) / np.maximum(counts, 1))
        a = t if t < len(locations) else int(np.argmax(index))
        regret += locations.max() - locations[a]
        counts[a] += 1
        sums[a] += locations[a] + rng.standard_cauchy()


def ucb1() -> None:
    paths, pulls = 500, 10_000
    bandit = environments.k_armed(Cauchy(), locations=np.linspace(0, 1, 10))
    ours, plain = race(
        partial(simulate, {"UCB1": UCB1()}, bandit, horizon=pulls, paths=paths),
        partial(plain_ucb1, pulls),
    )
    ours, plain = ours / (paths * pulls), plain / pulls
    table.add_row(
        "UCB1, K = 10, 500 paths, per pull",
        f"{ours * 1e6:.2f} µs",
        f"{plain * 1e6:.1f} µs",
        f"{plain / ours:.0f}×",
        "≤ 0.2 µs",
    )


def peak_memory() -> None:
    tracemalloc.start()
    simulate({"OFUL": OFUL()}, environments.neutral(Cauchy()), horizon=10_000, paths=500)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    table.add_row("memory of 500 paths × 10⁴ pulls", f"{peak:.0f} MB", "", "", "≤ 400 MB")


def regret() -> None:
    one_block = MeanOfMedians(block=15)
    result = simulate(
        {
            "alone": OFUL(),
            "filtered": Filtered(OFUL(noise_scale=0.45), repeats=15, estimator=one_block),
        },
        environments.neutral(Cauchy()),
        horizon=10_000,
        paths=100,
    )
    filtered, alone = result.mean("filtered")[-1], result.mean("alone")[-1]
    table.add_row(
        "mean regret of filtered OFUL against OFUL, Cauchy, 10⁴ pulls, 100 paths",
        f"{filtered:.0f}",
        f"{alone:.0f}",
        f"{alone / filtered:.1f}×",
        "≤ 600, ≥ 4000",
    )


if __name__ == "__main__":
    for part in (theory_values, medians, draws, oful, ucb1, peak_memory, regret):
        part()
    show(table)
