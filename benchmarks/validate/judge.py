"""Judging logs: coverage, errors against other estimators, verdicts, looks, months of a shop, cost.

Run with ``make bench-judge``; ``--only`` runs a part, ``--problems tuning`` is for choosing
settings, and ``--logs``, ``--rows`` and ``--dims`` cut the grid. A cell is a law, a way of logging,
a rule, an aim, a number of rows and of features. With ``--out FILE`` every finished cell is
written, and a second run continues.
"""

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # for timing.py

from timing import one_core, show, start_table

one_core()

import numpy as np

import tailproof as tp
from tailproof import Location
from tailproof.judging.bets import Bets
from tailproof.tables import Records, records
from tailproof.typing import Array, Index

AIMS: dict[str, Any] = {
    "median": tp.Median(),
    "quantile": tp.Quantile(0.9),
    "capped": tp.CappedMean(0.99),
    "location": Location(),
}
LAWS = ("normal", "student", "cauchy", "contaminated", "lognormal", "zeros", "pareto")
SYMMETRIC = LAWS[:4]
LOGGINGS = ("even", "uneven", "softmax", "epsilon", "journal")
SEEDS = {"tuning": 77, "report": 4242}


def aims_of(law: str) -> list[str]:
    """Return the aims that exist and say something under a law."""
    if law in SYMMETRIC:
        return list(AIMS)
    return ["median", "quantile", "capped"] if law == "lognormal" else ["capped"]


@dataclass(frozen=True)
class World:
    """Arms and visitors: the reward of each arm is drawn around a linear function of features.

    Rewards that are mostly zero: an arm sells to a share of visitors, with baskets of its own.
    """

    law: str
    arms: int
    dim: int
    seed: int
    buyers: float = 0.06

    @property
    def parameters(self) -> tuple[Array, Array]:
        """Return the level and the slopes of each arm."""
        rng = np.random.default_rng([self.seed, self.arms, self.dim])
        return rng.normal(0, 0.5, self.arms), rng.normal(0, 0.5, (self.dim, self.arms))

    def centre(self, x: Array) -> Array:
        """Return m(x, a) of shape (n, K)."""
        level, slopes = self.parameters
        return np.asarray(level + x @ slopes)

    def rewards(self, centre: Array, rng: np.random.Generator) -> Array:
        """Return a reward around each centre."""
        shape, law = centre.shape, self.law
        if law == "normal":
            return centre + rng.standard_normal(shape)
        if law == "student":
            return centre + rng.standard_t(1.5, shape)
        if law == "cauchy":
            return centre + rng.standard_cauchy(shape)
        if law == "contaminated":
            wild = rng.random(shape) < 0.1
            return centre + np.where(wild, 10 * rng.standard_cauchy(shape), rng.normal(size=shape))
        if law == "lognormal":
            return np.exp(0.5 * centre + rng.standard_normal(shape))
        buys = rng.random(shape) < np.clip(self.buyers * np.exp(0.6 * centre), 0, 0.5)
        if law == "zeros":
            return np.where(buys, 10 * rng.lognormal(0, 2, shape), 0.0)
        return np.where(buys, 10 * (1 + rng.pareto(1.2, shape)), 0.0)

    def rules(self, x: Array) -> dict[str, Array]:
        """Return the probabilities of a good, a bad and a constant rule."""
        centre = self.centre(x)
        one = np.zeros_like(centre)
        one[:, self.arms // 2] = 1.0
        return {"good": softmax(3 * centre), "bad": softmax(-2 * centre), "one": one}


def softmax(score: Array) -> Array:
    raised = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


class Truth:
    """What a rule earns: from 400 000 visitors."""

    def __init__(self, world: World, rows: int = 400_000) -> None:
        rng = np.random.default_rng([world.seed, 999])
        x = rng.standard_normal((rows, world.dim))
        centre, at = world.centre(x), np.arange(rows)
        self.sample, self.location = {}, {}
        for name, pi in world.rules(x).items():
            arm = draw(pi, rng)
            self.location[name] = float((pi * centre).sum(axis=1).mean())
            self.sample[name] = np.sort(world.rewards(centre[at, arm], rng))

    def value(self, rule: str, aim: str, cap: tuple[float, float] | None) -> float:
        """Return the aim of a rule; a capped mean for this cap."""
        y = self.sample[rule]
        if aim == "location":
            return self.location[rule]
        if aim == "capped":
            assert cap is not None
            return float(np.clip(y, *cap).mean())
        return float(np.quantile(y, 0.5 if aim == "median" else 0.9))


def draw(pi: Array, rng: np.random.Generator) -> Index:
    """Return an arm for each row."""
    below = rng.random(len(pi))[:, None] > np.cumsum(pi, axis=1)
    return np.asarray(np.minimum(below.sum(axis=1), pi.shape[1] - 1))


def logs(world: World, logging: str, n: int, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield logs; adaptive ones are made side by side."""
    rng = np.random.default_rng([seed, n, LOGGINGS.index(logging), LAWS.index(world.law)])
    k = world.arms
    x = rng.standard_normal((count, n, world.dim))
    centre = world.centre(x)
    arm = np.empty((count, n), np.int64)
    p = np.empty((count, n, k))
    y = world.rewards(centre, rng)
    at = np.arange(count)
    if logging == "even":
        p[:] = 1 / k
    elif logging == "uneven":
        p[:] = 0.5 ** np.arange(k) / (0.5 ** np.arange(k)).sum()
    elif logging == "softmax" and world.dim:
        p[:] = 0.1 / k + 0.9 * softmax((centre[..., ::-1]).reshape(-1, k)).reshape(count, n, k)
    if logging in ("even", "uneven") or (logging == "softmax" and world.dim):
        for i in range(count):
            arm[i] = draw(p[i], rng)
    else:
        policy: Any = tp.RevenueUCB() if logging == "journal" else None
        state = policy.init(count, k, k) if policy else None
        eye = np.broadcast_to(np.eye(k), (count, k, k))
        total, plays = np.zeros((count, k)), np.full((count, k), 1e-9)
        for t in range(n):
            if policy is not None:
                shares = policy.propensities(state, eye)
                p[:, t] = 0.05 / k + 0.95 * shares
            elif logging == "softmax":
                p[:, t] = 0.1 / k + 0.9 * softmax(2 * total / plays)
            else:
                rate = max(0.05, min(1.0, 5 * k / (t + 1) ** 0.75))
                best = (total / plays + 1e-9 * rng.random((count, k))).argmax(axis=1)
                p[:, t] = rate / k
                p[at, t, best] += 1 - rate
            arm[:, t] = draw(p[:, t], rng)
            own = y[at, t, arm[:, t]]
            if policy is not None:
                policy.learn(state, eye, arm[:, t], own[:, None])
            total[at, arm[:, t]] += np.clip(own, -3, 3)
            plays[at, arm[:, t]] += 1
    adaptive = logging in ("epsilon", "journal") or (logging == "softmax" and not world.dim)
    for i in range(count):
        yield {
            "arm": arm[i],
            "arms": range(k),
            "reward": y[i, np.arange(n), arm[i]],
            "propensities": p[i],
            "propensity": None,
            "features": x[i] if world.dim else None,
            "adaptive": adaptive,
        }


def coverage(given: argparse.Namespace) -> None:
    """Print how often intervals cover, by aim; and the worst cells."""
    seed, arms = SEEDS[given.problems], given.arms
    done: dict[str, Any] = {}
    if given.out and Path(given.out).exists():
        lines = Path(given.out).read_text().splitlines()
        done = {row["cell"]: row for row in map(json.loads, lines)}
    for n in given.rows:
        count = given.logs if n < 5000 else max(given.logs // given.fewer, 1)
        for dim in given.dims:
            for law in given.laws:
                world = World(law, arms, dim, seed)
                truth = Truth(world)
                for logging in given.loggings:
                    cell = f"{law}/{logging}/K={arms}/d={dim}/n={n}/{count}/{given.problems}"
                    if cell not in done:
                        done[cell] = {"cell": cell, **one_cell(world, truth, logging, n, count)}
                        if given.out:
                            with Path(given.out).open("a") as file:
                                file.write(json.dumps(done[cell]) + "\n")
                        print(cell, summary(done[cell]), flush=True)
    report(list(done.values()))


def one_cell(world: World, truth: Truth, logging: str, n: int, count: int) -> dict[str, Any]:
    """Return for each aim and rule: verdicts, whether the interval covers, errors and widths."""
    found: dict[str, Any] = {}
    for i, columns in enumerate(logs(world, logging, n, count, world.seed)):
        log = records(**columns)
        x = np.empty((n, 0)) if log.features is None else log.features
        for aim in aims_of(world.law):
            judged = tp.judge(log, world.rules(x), AIMS[aim], control="one", seed=i)
            right = {rule: truth.value(rule, aim, judged.cap) for rule in ("good", "bad", "one")}
            for rule, value in right.items():
                own = judged[rule]
                rows = found.setdefault(f"{aim}/{rule}", [])
                to, gap = own.to_control, value - right["one"]
                told = to is not None and judged["one"].verdict == "trust"
                rows.append(
                    [
                        ["trust", "beware", "refused"].index(own.verdict),
                        int(own.low <= value <= own.high),
                        own.estimate - value,
                        own.high - own.low,
                        int(to.low <= gap <= to.high) if to is not None and told else -1,
                    ]
                )
    return found


def summary(cell: dict[str, Any]) -> str:
    words = []
    for name, rows in cell.items():
        if name != "cell":
            trusted = [row[1] for row in rows if row[0] == 0]
            share = len(trusted) / len(rows)
            words.append(f"{name} {np.mean(trusted) if trusted else math.nan:.2f} ({share:.0%})")
    return "; ".join(words)


def report(cells: list[dict[str, Any]]) -> None:
    table = start_table(
        "Coverage of 95 % where it says trust",
        "what",
        "cells",
        "pooled",
        "≥ .93 of cells",
        "worst",
        "trust",
        "beware: pooled",
        "differences",
    )
    worst: list[tuple[float, str, int]] = []
    for size in sorted({cell["cell"].split("/")[4] for cell in cells}):
        for aim in AIMS:
            every, shares, doubtful, gaps, said = [], [], [], [], []
            for cell in cells:
                if f"/{size}/" not in cell["cell"]:
                    continue
                for name, rows in cell.items():
                    if name.startswith(f"{aim}/"):
                        trusted = [row[1] for row in rows if row[0] == 0]
                        doubtful += [row[1] for row in rows if row[0] == 1]
                        gaps += [row[4] for row in rows if row[0] == 0 and row[4] >= 0]
                        said += [row[0] == 0 for row in rows]
                        every += trusted
                        if len(trusted) >= len(rows) / 4:
                            shares.append(float(np.mean(trusted)))
                            worst.append((shares[-1], f"{cell['cell']} {name}", len(trusted)))
            if shares:
                table.add_row(
                    f"{aim}, {size}",
                    str(len(shares)),
                    f"{np.mean(every):.3f}",
                    f"{np.mean(np.array(shares) >= 0.93):.3f}",
                    f"{min(shares):.3f}",
                    f"{np.mean(said):.0%}",
                    f"{np.mean(doubtful):.3f}" if doubtful else "",
                    f"{np.mean(gaps):.3f}" if gaps else "",
                )
    show(table)
    table = start_table("The worst cells", "what", "coverage", "logs")
    for share, name, count in sorted(worst)[:12]:
        table.add_row(name, f"{share:.3f}", str(count))
    show(table)


def peers(given: argparse.Namespace) -> None:
    """Print median errors over those of other estimators, by law."""
    names = ("IPS", "SNIPS", "DM", "DR", "SWITCH", "DRos")
    count, n = max(given.logs // 10, 2), 1000
    table = start_table(
        f"Median error over that of others, n = {n}, {count} logs a cell",
        "what",
        "capped: ours",
        *names,
        "ours / best that covers",
        "ours / best",
        "median: ours / weighted",
        "location / DR",
    )
    for law in given.laws:
        errors: dict[str, list[float]] = {name: [] for name in ("ours", *names)}
        covers: dict[str, list[bool]] = {name: [] for name in names}
        ranked: dict[str, list[float]] = {"ours": [], "weighted": [], "location": [], "DR": []}
        for dim in given.dims:
            world = World(law, given.arms, dim, SEEDS[given.problems] + 1)
            truth = Truth(world)
            for logging in given.loggings:
                for columns in logs(world, logging, n, count, world.seed):
                    log = records(**columns)
                    x = np.empty((n, 0)) if log.features is None else log.features
                    rules = world.rules(x)
                    capped = tp.judge(log, rules, AIMS["capped"])
                    assert capped.cap is not None
                    median = tp.judge(log, rules, AIMS["median"])
                    place = tp.judge(log, rules, Location()) if law == "cauchy" else None
                    for rule, pi in rules.items():
                        if "refused" in (capped[rule].verdict, median[rule].verdict):
                            continue
                        w = pi[np.arange(n), log.arm] / log.known_propensity
                        right = truth.value(rule, "capped", capped.cap)
                        errors["ours"].append(abs(capped[rule].estimate - right))
                        others = estimators(np.clip(log.reward, *capped.cap), w, pi, log, x)
                        for name, (value, error) in others.items():
                            errors[name].append(abs(value - right))
                            covers[name].append(abs(value - right) <= 1.96 * error)
                        if law not in ("zeros", "pareto"):
                            middle = truth.value(rule, "median", None)
                            order = np.argsort(log.reward)
                            below = np.cumsum(w[order])
                            at = int(np.searchsorted(below, below[-1] / 2))
                            ranked["ours"].append(abs(median[rule].estimate - middle))
                            ranked["weighted"].append(abs(log.reward[order][at] - middle))
                        if place is not None and place[rule].verdict != "refused":
                            centre = truth.location[rule]
                            ranked["location"].append(abs(place[rule].estimate - centre))
                            value = estimators(log.reward, w, pi, log, x)["DR"][0]
                            ranked["DR"].append(abs(value - centre))
        middle_of = {name: float(np.median(own)) for name, own in errors.items()}
        fair = [middle_of[name] for name in names if np.mean(covers[name]) >= 0.85]
        best = min(middle_of[name] for name in names)
        ratios = [
            f"{np.median(ranked[a]) / np.median(ranked[b]):.3f}" if ranked[a] else ""
            for a, b in (("ours", "weighted"), ("location", "DR"))
        ]
        table.add_row(
            law,
            f"{middle_of['ours']:.3g}",
            *(f"{middle_of[name]:.3g} ({np.mean(covers[name]):.2f})" for name in names),
            f"{middle_of['ours'] / min(fair):.3f}" if fair else "none covers",
            f"{middle_of['ours'] / best:.3f}",
            *ratios,
        )
        print(law, flush=True)
    show(table)


def estimators(
    y: Array, w: Array, pi: Array, log: Records, x: Array
) -> dict[str, tuple[float, float]]:
    """Return value and standard error of the usual estimators, as Open Bandit Pipeline has them."""
    n, design = len(y), np.column_stack([np.ones(len(y)), x])
    q = np.zeros_like(pi)
    for fold in range(3):
        rows = np.arange(n) % 3 == fold
        for a in range(pi.shape[1]):
            learn = ~rows & (log.arm == a)
            gram = design[learn].T @ design[learn] + np.eye(design.shape[1])
            q[rows, a] = design[rows] @ np.linalg.solve(gram, design[learn].T @ y[learn])
    own, direct = q[np.arange(n), log.arm], (pi * q).sum(axis=1)
    small, shrunk = np.where(w <= 10, w, 0.0), 10 * w / (w**2 + 10)
    parts = {
        "IPS": w * y,
        "DM": direct,
        "DR": direct + w * (y - own),
        "SWITCH": direct + small * (y - own),
        "DRos": direct + shrunk * (y - own),
    }
    found = {name: (float(v.mean()), float(v.std() / math.sqrt(n))) for name, v in parts.items()}
    value = float(w @ y / w.sum())
    found["SNIPS"] = value, float(np.sqrt(np.square(w * (y - value)).sum()) / w.sum())
    return found


def looks(given: argparse.Namespace) -> None:
    """Print how often an anytime interval is ever wrong, and widths over those of scores.

    An anytime interval is made of all looks so far, so the one after the last row is wrong if any
    was. Widths are those of the first tenth of the logs.
    """
    from scipy.stats import beta

    n, count, cap = 10_000, given.logs, (0.0, 100.0)
    table = start_table(
        f"Ever wrong over {n} looks, {count} logs",
        *("what", "wrong", "99 % bound", "anytime / score", "exact / score", "target"),
    )
    world = World("zeros", given.arms, 0, SEEDS[given.problems] + 2)
    right = Truth(world).value("bad", "capped", cap)
    rule = {"bad": world.rules(np.empty((n, 0)))["bad"]}
    for logging in ("even", "epsilon", "journal"):
        rows = list(logs(world, logging, n, count, world.seed))
        floor = 1 / given.arms if logging == "even" else 0.05 / given.arms
        for known in (floor, None):
            wrong, widths = 0, []
            for i, columns in enumerate(rows):
                log = records(**columns, floor=known)
                weight = rule["bad"][np.arange(n), log.arm] / log.known_propensity
                most = None if known is None else float(rule["bad"].max()) / known
                bets = Bets(weight=weight, most=most, anytime=True)
                low, high = bets.mean(np.clip(log.reward, *cap) / cap[1])
                wrong += not low <= right / cap[1] <= high
                if i < count / 10:
                    kinds: Any = ("anytime", "exact", "score")
                    found = (
                        tp.judge(log, rule, AIMS["capped"], cap=cap, interval=k) for k in kinds
                    )
                    widths.append([own["bad"].high - own["bad"].low for own in found])
            bound = float(beta.ppf(0.99, wrong + 1, count - wrong))
            each = np.median(np.array(widths), axis=0)
            table.add_row(
                f"{logging}, floor {'unknown' if known is None else f'{known:.3g}'}",
                *(f"{wrong / count:.1%}", f"{bound:.1%}"),
                *(f"{each[0] / each[2]:.2f}", f"{each[1] / each[2]:.2f}", "≤ 5 %"),
            )
            print(logging, known, wrong, count, flush=True)
    show(table)


def means(given: argparse.Namespace) -> None:
    """Print how often a mean is called trustworthy."""
    table = start_table("Mean: says trust", "what", *(f"n = {n}" for n in given.rows), "target")
    for law in ("normal", "cauchy", "zeros", "pareto"):
        shares = []
        for n in given.rows:
            world = World(law, given.arms, 0, SEEDS[given.problems] + 3)
            said = []
            for columns in logs(world, "uneven", n, given.logs, world.seed):
                judged = tp.judge(records(**columns), world.rules(np.empty((n, 0))), tp.Mean())
                said += [judged[rule].verdict == "trust" for rule in ("good", "bad", "one")]
            shares.append(f"{np.mean(said):.1%}")
        table.add_row(law, *shares, "" if law == "normal" else "≤ 1 %")
    show(table)


def months(given: argparse.Namespace) -> None:
    """Print coverage for the best rule of a shop with features, from a bandit's own journal."""
    from tailproof.research.gauntlet import money

    shop: Any = money.REPORT["money-banners"].environment
    paths, n, k, dim = given.logs, 10_000, shop.contexts.arms, shop.contexts.dim
    basket = np.array([law.scale for law in shop.baskets])  # all Pareto with index 2.2
    rng, luck = np.random.default_rng(5151), np.random.default_rng(5152)
    policy = tp.LinRevenueUCB()
    state = policy.init(paths, k, dim)
    x = rng.standard_normal((n, paths, dim))
    arm, p, y = np.empty((n, paths), np.int64), np.empty((n, paths, k)), np.empty((n, paths))
    path = np.arange(paths)
    for t in range(n):
        arms = np.repeat(x[t][:, None], k, axis=1)
        shares = policy.propensities(state, arms)
        assert shares is not None
        p[t] = 0.05 / k + 0.95 * shares
        arm[t] = draw(p[t], luck)
        buys = rng.random(paths) < shop.conversion(x[t])[path, arm[t]]
        y[t] = np.where(buys, basket[arm[t]] * (1 + rng.pareto(2.2, paths)), 0.0)
        policy.learn(state, arms, arm[t], y[t][:, None])

    def best(features: Array) -> Array:
        return np.asarray(np.eye(k)[(shop.conversion(features) * basket).argmax(axis=1)])

    visitors = rng.standard_normal((2_000_000, dim))
    chosen = best(visitors).argmax(axis=1)
    buys = rng.random(len(visitors)) < shop.conversion(visitors)[np.arange(len(visitors)), chosen]
    spent = np.where(buys, basket[chosen] * (1 + rng.pareto(2.2, len(visitors))), 0.0)
    covered, trusted, widths = [], [], []
    for month in range(paths):
        log = records(
            arm=arm[:, month],
            arms=range(k),
            reward=y[:, month],
            propensities=p[:, month],
            propensity=None,
            features=x[:, month],
            adaptive=True,
        )
        found = tp.judge(log, {"best": best}, tp.CappedMean(0.99))
        assert found.cap is not None
        right = float(np.clip(spent, *found.cap).mean())
        own = found["best"]
        covered.append(own.low <= right <= own.high)
        trusted.append(own.verdict == "trust")
        widths.append((own.high - own.low) / right)
    table = start_table(f"{paths} months of {n} visitors", "what", "found", "target")
    table.add_row("covers the best rule's value", f"{np.mean(covered):.3f}", "≥ .93")
    table.add_row("says trust", f"{np.mean(trusted):.0%}", "")
    table.add_row("width over value", f"{np.median(widths):.2f}", "")
    show(table)


def hard(given: argparse.Namespace) -> None:
    """Print coverage where it is hard: rare buyers, rare arms, many arms, decisions held."""
    seed, count = SEEDS[given.problems] + 4, given.logs
    table = start_table(
        f"Hard cases, {count} logs", "what", "aim", "trust", "covers", "beware", "covers"
    )
    cases: dict[str, tuple[World, int]] = {
        "0.5 % buyers": (World("zeros", 3, 0, seed, buyers=0.005), 2000),
        "2 buyers a 1000, Pareto": (World("pareto", 3, 0, seed, buyers=0.002), 5000),
        "arms with propensity 0.01": (World("cauchy", 3, 0, seed), 10_000),
        "10 uneven arms, 5 features": (World("contaminated", 10, 5, seed), 1000),
        "10 even arms, 5 features": (World("contaminated", 10, 5, seed), 2000),
        "held for 20 rewards": (World("student", 3, 0, seed), 2000),
    }
    for name, (world, n) in cases.items():
        truth, rng = Truth(world), np.random.default_rng([seed, n])
        rows: dict[str, list[tuple[str, bool]]] = {aim: [] for aim in aims_of(world.law)}
        for columns in logs(world, "uneven" if "uneven" in name else "even", n, count, seed):
            if "0.01" in name:
                p = np.tile([0.98, 0.01, 0.01], (n, 1))
                arm = draw(p, rng)
                y = world.rewards(world.centre(np.empty((n, 0)))[np.arange(n), arm], rng)
                columns |= {"propensities": p, "arm": arm, "reward": y}
            if "held" in name:  # the rewards of a decision share a visitor
                unit = np.arange(n) // 20
                arm = rng.integers(0, 3, n // 20)[unit]
                centre = world.centre(np.empty((n, 0)))[np.arange(n), arm]
                y = world.rewards(centre, rng) + rng.normal(0, 0.5, n // 20)[unit]
                columns |= {"arm": arm, "reward": y, "unit": unit}
            log = records(**columns)
            x = np.empty((n, 0)) if log.features is None else log.features
            for aim in rows:
                if "held" in name and aim != "location":
                    continue  # the visitor's part changes all other aims
                judged = tp.judge(log, world.rules(x), AIMS[aim])
                for rule in ("good", "bad", "one"):
                    right, own = truth.value(rule, aim, judged.cap), judged[rule]
                    rows[aim].append((own.verdict, own.low <= right <= own.high))
        for aim, found in rows.items():
            cells = []
            for verdict in ("trust", "beware"):
                own_rows = [ok for told, ok in found if told == verdict]
                share = len(own_rows) / max(len(found), 1)
                cells += [f"{share:.0%}", f"{np.mean(own_rows):.3f}" if own_rows else ""]
            if found:
                table.add_row(name, aim, *cells)
    show(table)


def cost(given: argparse.Namespace) -> None:
    """Print processor time and memory."""
    n, k, d = 1_000_000, 5, 5
    rng = np.random.default_rng(0)
    x, arm = rng.standard_normal((n, d)), rng.integers(0, k, n)
    reward = np.where(rng.random(n) < 0.05, rng.lognormal(3, 1, n), 0.0)
    log = records(
        arm=arm, reward=reward, propensities=np.full((n, k), 1 / k), propensity=None, features=x
    )
    rules = {"2": "2", "even": "even", "linear": lambda v: softmax(v @ np.eye(d, k))}
    table = start_table(f"Cost: {n:,} rows, {k} arms, {d} features, 3 rules", "what", "CPU, s")
    for name, aim in AIMS.items():
        start = time.process_time()
        tp.judge(log, rules, aim)
        table.add_row(name, f"{time.process_time() - start:.1f}")
        print(name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, "GB so far")
    show(table)


PARTS = {
    "cost": cost,
    "means": means,
    "peers": peers,
    "looks": looks,
    "months": months,
    "hard": hard,
    "coverage": coverage,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--problems", choices=["tuning", "report"], default="report")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--fewer", type=int, default=4, help="divides the logs of 10⁴ rows")
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--dims", type=int, nargs="*", default=[0, 5])
    parser.add_argument("--arms", type=int, default=3)
    parser.add_argument("--laws", nargs="*", default=LAWS)
    parser.add_argument("--loggings", nargs="*", default=LOGGINGS)
    parser.add_argument("--out")
    chosen = parser.parse_args()
    for part, run in PARTS.items():
        if chosen.only in (None, part):
            run(chosen)
