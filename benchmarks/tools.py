"""Whether a recommended tool is locked out anywhere: what was found beside each limit.

Run with ``make bench-tools``; ``--only`` runs parts, ``--jobs`` uses more cores. Where a limit is a
ratio to an earlier version, ``--baseline`` names a checkout of it, and the same problems and seeds
are played by that code in a process of its own: ``git worktree add ../v0.3.0 f8b718f``. Regret is
over that of random arms. A path is lost if its second half has more than a tenth of the regret of
chance, in shops more than half.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from timing import one_core

one_core()

import numpy as np

import tailproof as tp
from tailproof import environments, noise
from tailproof.typing import Array

CHUNK = 50
"""Paths that are played together; a task for each chunk."""
LATE = (0, 100, 1000)
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
Task = dict[str, Any]
"""What to play: part, problem, tool, paths, seed, and a delay where there is one."""
MODES = ("k5-modes-best", "k5-modes-all", "k5-modes-worst", "k5-three-modes")
DEAR = ("dear-twice", "dear-three", "dear-late", "dear-four")
RARE = "findings: 0.3 % × 499 against 5 % × 9.99"
CLUSTERS = {"wide": (0.3, 0.4, 0.5, 0.6, 0.7), "close": (0.45, 0.475, 0.5, 0.525, 0.55)}
WORLDS = ("common week", "one price changes", "nothing moves")


def random_problems() -> dict[str, Any]:
    """Return the problems of the random form: arms, fixed arms and new contexts, three laws."""
    laws = {"t0.8": noise.StudentT(0.8), "t4": noise.StudentT(4), "lognormal": noise.LogNormal(0.9)}
    found: dict[str, Any] = {}
    for name, law in laws.items():
        for arms in (6, 15):
            places = tuple(np.linspace(0, 1.2, arms).tolist())
            found[f"k{arms}-{name}"] = environments.k_armed(law, locations=places)
        for fresh in (False, True):
            kind = "fresh" if fresh else "fixed"
            found[f"{kind}-{name}"] = environments.neutral(law, fresh=fresh, arms=12, dim=6)
    return found


def regret(policy: Any, bandit: Any, task: Task, horizon: int, most: float) -> list[Any]:
    """Return the regret of every path over chance, and whether it is lost."""
    marks = (horizon // 2, horizon)
    settings = {"horizon": horizon, "paths": task["paths"], "seed": task["seed"]}
    tools = {"it": policy, "chance": tp.Uniform()}
    late, engine = task.get("delay", 0), task.get("engine", "serial")
    found = tp.simulate(
        tools, bandit, checkpoints=marks, delay=late, engine=engine, **settings
    ).curves
    chance = found["chance"].regret.mean(axis=0)
    half, end = found["it"].regret.T
    lost = end - half > most * (chance[1] - chance[0])
    return [(end / chance[1]).tolist(), lost.tolist()]


def measure(task: Task) -> list[Any]:
    """Play one task; both versions understand those that are compared."""
    part, name, horizon = task["part"], task["problem"], task.get("longest", 10**9)
    student = tp.LinStudentUCB()
    if part in ("gauntlet", "clusters-68"):
        from tailproof.research.gauntlet.problems import PROBLEMS

        problem = PROBLEMS[name]
        if task["tool"] == "clusters":
            student = tp.LinStudentUCB(clusters=True)
        return regret(student, problem.bandit, task, min(problem.horizon, horizon), 0.1)
    if part in ("random", "imputed"):
        tool = student if task["tool"] == "plain" else tp.LinStudentUCB(random=True)
        if task["tool"] == "imputed":
            from imputing import Imputing

            tool = Imputing()
        return regret(tool, random_problems()[name], task, min(10_000, horizon), 0.1)
    if part == "clusters":
        return cluster_world(name, task, min(10_000, horizon))
    if part == "vigilant":
        return shop_world(name, task, min(56_000, horizon))
    return shop_or_modes(part, name, task, horizon)


def shop_or_modes(part: str, name: str, task: Task, longest: int) -> list[Any]:
    """Play a world of the gauntlet, a rare dear arm, or a shop of bench-money."""
    from tailproof.environments.shops import Shop
    from tailproof.noise import LogNormal
    from tailproof.research.gauntlet import money, worlds

    if name == RARE:
        flat = LogNormal(1e-3, "none", 9.99), LogNormal(1e-3, "none", 499)
        shop = Shop(buyers=(0.05, 0.003), baskets=flat)
        return regret(tp.RevenueUCB(), shop, task, min(20_000, longest), 0.5)
    problem = worlds.REPORT[name] if part != "money" else money.REPORT[name]
    task = task | {"delay": problem.delay if part == "dear" else 0}
    if task["tool"] == "hindsight":
        from money import PooledUCB1

        plain = task | {"engine": "serial"}  # it has no compiled form
        return regret(PooledUCB1(), problem.environment, plain, min(problem.horizon, longest), 0.5)
    tool: Any = tp.RevenueUCB()
    if part == "modes":
        tool = tp.LinStudentUCB(clusters=task["tool"] == "clusters")
    most = 0.1 if part == "modes" else 0.5
    return regret(tool, problem.environment, task, min(problem.horizon, longest), most)


def cluster_world(name: str, task: Task, horizon: int) -> list[Any]:
    """Play rewards near 0 or 1; how often each is for the arm, or its features, to say."""
    rng, paths = np.random.default_rng(task["seed"]), task["paths"]
    kind, _, width = name.partition(" ")
    share = np.array(CLUSTERS[width])
    k, reach = len(share), (share.max() - share.min()) / 2
    policy = tp.LinStudentUCB()
    state = policy.init(paths, k, k if kind == "arms" else 2)
    arms, end, half, chance = (
        np.tile(np.eye(k), (paths, 1, 1)),
        np.zeros(paths),
        np.zeros(paths),
        0.0,
    )
    for t in range(horizon):
        if kind == "features":
            arms = rng.uniform(-1, 1, (paths, k, 2))
            value = 0.5 + reach * arms @ [0.5, -0.5]
        else:
            value = np.tile(share, (paths, 1))
        chosen = policy.choose(state, arms, rng)
        mine = value[np.arange(paths), chosen]
        rewards = (rng.random(paths) < mine) + 0.1 * rng.standard_normal(paths)
        policy.learn(state, arms, chosen, rewards[:, None])
        end += value.max(axis=1) - mine
        half += (value.max(axis=1) - mine) * (t < horizon // 2)
        chance += float((value.max(axis=1) - value.mean(axis=1)).mean())
    return [(end / chance).tolist(), (end - half > 0.05 * chance).tolist()]


def shop_world(name: str, task: Task, horizon: int) -> list[Any]:
    """Play three arms in a shop with 1000 visitors a day; see `WORLDS`."""
    rng, paths = np.random.default_rng(task["seed"]), task["paths"]
    policy: Any = tp.RevenueUCB()
    if task["tool"] == "vigilant":
        policy = tp.Vigilant(policy, period=7000, phases=7)
    buyers, price = np.array([0.05, 0.042, 0.035]), np.array([20.0, 20.0, 20.0])
    arms, state = np.tile(np.eye(3), (paths, 1, 1)), policy.init(paths, 3, 3)
    end, chance = np.zeros(paths), 0.0
    for t in range(horizon):
        day = t // 1000 % 7
        share = buyers * ((2.0 if day >= 5 else 0.6) if name == "common week" else 1.0)
        prices = price * ([0.5, 1, 1] if name == "one price changes" and t >= horizon // 2 else 1)
        value = share * prices
        chosen = policy.choose(state, arms, rng)
        sold = prices[chosen] * rng.lognormal(-0.32, 0.8, paths)
        rewards = np.where(rng.random(paths) < share[chosen], sold, 0.0)
        policy.learn(state, arms, chosen, rewards[:, None])
        end += value.max() - value[chosen]
        chance += float(value.max() - value.mean())
    return [(end / chance).tolist(), (end > 0.5 * chance).tolist()]


def cost(decisions: int = 600) -> dict[str, float]:
    """Return microseconds a decision of both tools, in a batch of 500 and live."""
    found: dict[str, float] = {}
    tools: dict[str, tp.Policy[Any]] = {
        "LinStudentUCB": tp.LinStudentUCB(),
        "RevenueUCB": tp.RevenueUCB(),
    }
    for name, policy in tools.items():
        for paths, where in ((500, "batch of 500"), (1, "live")):
            count = decisions if paths == 500 else 4 * decisions
            rng, best = np.random.default_rng(0), np.inf
            for _ in range(3):
                state, spent = policy.init(paths, 5, 5), 0.0
                arms = np.broadcast_to(np.eye(5), (paths, 5, 5))
                for _ in range(count):
                    wild = rng.standard_cauchy((paths, 1))
                    rewards = np.where(rng.random((paths, 1)) < 0.3, np.abs(wild), 0.0)
                    rewards = wild if name == "LinStudentUCB" else rewards
                    start = time.process_time()
                    policy.learn(state, arms, policy.choose(state, arms, rng), rewards)
                    spent += time.process_time() - start
                best = min(best, 1e6 * spent / count / paths)
            found[f"{name}, {where}"] = best
    return found


def tasks_of(part: str, paths: int, longest: int, engine: str) -> list[Task]:
    """Return the tasks of a part, in chunks of paths."""
    found: list[Task] = []
    fast = {"engine": engine} if part in ("dear", "money") else {}  # both tools have a form

    def add(problem: str, tool: str, count: int, most: int = CHUNK, **more: Any) -> None:
        for chunk, first in enumerate(range(0, count, most)):
            size = min(most, count - first)
            seed = 20_261 + 1009 * chunk
            task = {"part": part, "problem": problem, "tool": tool, "paths": size, "seed": seed}
            found.append(task | {"longest": longest} | fast | more)

    if part == "gauntlet":
        from tailproof.research.gauntlet.problems import PROBLEMS

        for name in sorted(PROBLEMS, key=lambda name: -PROBLEMS[name].horizon):
            add(name, "now", paths)
    elif part == "clusters-68":
        from tailproof.research.gauntlet.problems import PROBLEMS

        for name in (name for name, problem in PROBLEMS.items() if problem.k_armed):
            for tool in ("now", "clusters"):
                add(name, tool, paths)
    elif part == "random":
        for name in random_problems():
            for delay in LATE:
                for tool in ("plain", "random"):
                    add(name, tool, 2 * paths, delay=delay)
    elif part == "imputed":
        for name in random_problems():
            for delay in LATE[1:]:
                for tool in ("imputed", "random"):
                    add(name, tool, paths, delay=delay)
    elif part == "clusters":
        for kind in ("arms", "features"):
            for width in CLUSTERS:
                add(f"{kind} {width}", "now", paths)
    elif part == "vigilant":
        for name in WORLDS:
            for tool in ("alone", "vigilant"):
                add(name, tool, paths)
    elif part == "money":
        from tailproof.research.gauntlet import money

        for name, problem in money.REPORT.items():
            if problem.k_armed:
                add(name, "now", paths)
                add(name, "hindsight", 3 * paths, most=500)
    else:
        for name in MODES if part == "modes" else (RARE, *DEAR):
            for tool in ("now", "clusters") if part == "modes" else ("now",):
                add(name, tool, paths)
    return found


def played(tasks: Sequence[Task], jobs: int) -> list[list[Any]]:
    """Return the results of all tasks, on several cores."""
    if jobs == 1:
        return [measure(task) for task in tasks]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(measure, tasks))


def by_baseline(checkout: Path, request: dict[str, Any]) -> Any:
    """Let the code of another checkout answer, in a process of its own."""
    shim = (
        "import importlib, sys, types, tailproof\n"
        "try:\n own = importlib.import_module('tailproof.gauntlet.problems')\n"
        "except ImportError:\n own = None\n"
        "if own:\n"
        " for name, value in (('research', None), ('research.gauntlet', None),"
        " ('research.gauntlet.problems', own)):\n"
        "  sys.modules['tailproof.' + name] = value or types.ModuleType(name)\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import json, tools\n"
        "print(json.dumps(tools.answer(json.load(sys.stdin))))\n"
    )
    paths = [str(checkout.resolve() / "src"), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", shim], input=json.dumps(request), env=env, check=True,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def answer(request: dict[str, Any]) -> Any:
    """Return what a checkout finds."""
    return played(request["tasks"], request["jobs"]) if "tasks" in request else cost()


Found = dict[tuple[str, str, int], tuple[float, float]]


def collected(tasks: Sequence[Task], results: Sequence[list[Any]]) -> Found:
    """Return the mean regret and the share of lost paths, by problem, tool and delay."""
    groups: dict[tuple[str, str, int], list[list[Any]]] = {}
    for task, result in zip(tasks, results, strict=True):
        key = task["problem"], task["tool"], task.get("delay", 0)
        groups.setdefault(key, []).append(result)
    found: Found = {}
    for key, parts in groups.items():
        values = np.concatenate([part[0] for part in parts])
        if key[1] == "hindsight":  # paths take the bonuses in turn
            from money import BONUSES

            own = np.concatenate([np.arange(len(part[0])) % len(BONUSES) for part in parts])
            mean = min(float(values[own == place].mean()) for place in range(len(BONUSES)))
        else:
            mean = float(values.mean())
        found[key] = mean, float(np.concatenate([part[1] for part in parts]).mean())
    return found


def geometric(ratios: Sequence[float] | Array) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.log(np.maximum(ratios, 1e-9)).mean()))


def report(part: str, found: Found, before: Found | None) -> None:
    """Print a part, and what its limits compare; of the gauntlet what is 15 % worse than before."""
    print(f"{part}: regret in % of chance, lost paths in %, before, ratio", flush=True)
    for (problem, tool, delay), (mean, lost) in found.items():
        old = before[problem, tool, delay][0] if before else None
        if part == "gauntlet" and old and mean / old < 1.15:
            continue
        words = f"{problem}, {tool}" + (f", {delay} late" if delay else "")
        was = f"{100 * old:8.2f} {mean / old:6.2f}" if old else ""
        print(f"  {words:<36}{100 * mean:8.2f} {100 * lost:4.0f} {was}", flush=True)
    limits = {
        "dear": "at most 35, 2 lost",
        "modes": "at most 10, 3 lost",
        "clusters": "at most 1.3 times before",
    }
    for line in [*sums(part, found, before), *([limits[part]] if part in limits else [])]:
        print(f"  {line}", flush=True)


def sums(part: str, found: Found, before: Found | None) -> list[str]:
    """Return the sentences about the limits that compare several problems."""
    if part == "gauntlet" and before:
        ratios = [found[key][0] / max(before[key][0], 1e-12) for key in found]
        worst = max(zip(ratios, found, strict=True))
        mean = f"geometric mean {geometric(ratios):.3f} (≤ 1.02)"
        return [f"gauntlet: {mean}, worst {worst[0]:.2f} (≤ 1.25) in {worst[1][0]}"]
    pairs = {
        "random": ("random", "plain"),
        "imputed": ("random", "imputed"),
        "money": ("now", "hindsight"),
        "clusters-68": ("clusters", "now"),
        "vigilant": ("vigilant", "alone"),
    }
    if part not in pairs:
        return []
    mine, other = pairs[part]
    lines = []
    for delay in dict.fromkeys(key[2] for key in found):
        names = [key[0] for key in found if key[1] == mine and key[2] == delay]
        ratios = [found[n, mine, delay][0] / found[n, other, delay][0] for n in names]
        words = f"{part}: {mine} over {other}" + (f", {delay} late" if delay else "")
        lines.append(f"{words}: geometric mean {geometric(ratios):.3f}, worst {max(ratios):.2f}")
        if part == "vigilant":
            lines += [f"  {n}: {r:.2f}" for n, r in zip(names, ratios, strict=True)]
    targets = {
        "random": "limit 1.05 at once",
        "imputed": "limit 1.05 after each delay",
        "clusters-68": "limits 1.02 and 1.25, of the 17 with K arms",
        "money": "limits 1.1 and 1.4",
        "vigilant": "limits 1.1 (week), 0.7 (price), 1.06 (nothing moves)",
    }
    return [*lines, targets[part]]


PARTS = (
    "dear",
    "money",
    "modes",
    "gauntlet",
    "clusters-68",
    "random",
    "imputed",
    "clusters",
    "vigilant",
    "cost",
)


def main() -> None:
    """Measure the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--paths", type=int, default=100)
    parser.add_argument("--longest", type=int, default=10**9, help="cuts horizons")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--engine", default="serial", help="of dear and money: compiled is faster")
    parser.add_argument("--baseline", type=Path, help="a checkout of the version to compare with")
    given = parser.parse_args()
    for part in given.only:
        if part == "cost":
            now, before = cost(), by_baseline(given.baseline, {}) if given.baseline else {}
            for name, each in now.items():
                ratio = f", {each / before[name]:.2f} times before (≤ 1.2)" if before else ""
                print(f"cost: {name}: {each:.1f} µs a decision{ratio}", flush=True)
            continue
        tasks = tasks_of(part, given.paths, given.longest, given.engine)
        found = collected(tasks, played(tasks, given.jobs))
        old = None
        if given.baseline and part in ("gauntlet", "clusters"):
            results = by_baseline(given.baseline, {"tasks": tasks, "jobs": given.jobs})
            old = collected(tasks, results)
        report(part, found, old)


if __name__ == "__main__":
    main()
