"""Tools for revenue: regret in the shops of the gauntlet, on time and late, and cost.

Run with ``make bench-money``; ``--only`` runs a part, and ``--problems tuning`` is for choosing
settings. Regret is of the true capped mean, over that of uniform choices. A path is lost if its
second half has more than half of the regret of chance. Ratios are to UCB1 behind the same cap, with
rewards in units of the pooled standard deviation and, for each problem, the best of `BONUSES` in
hindsight. Problems are played without their delays, and with one that is the same for all.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from timing import one_core, show, start_table

one_core()

import numpy as np

from tailproof import UCB1, LinRevenueUCB, Mean, Policy, RevenueUCB, Uniform, simulate
from tailproof.environments.shops import Shop
from tailproof.policies.base import Index, Indexed, KArmed
from tailproof.policies.state.base import Finite, Rule
from tailproof.policies.state.counts import Tally
from tailproof.policies.state.sales import SalesHistogram
from tailproof.research.gauntlet import money
from tailproof.research.gauntlet.problems import Problem
from tailproof.typing import Array

BONUSES = (0.12, 0.2, 0.3, 0.42, 0.6, 0.85)
SEEDS = {"tuning": 31, "report": 20_261}
_SETTLE = 2048


@dataclass(frozen=True, kw_only=True)
class PooledUCB1(KArmed[SalesHistogram], Indexed[SalesHistogram]):
    """UCB1 on capped rewards in units of their standard deviation; paths take bonuses in turn."""

    def _init(self, paths: int, arms: int, dim: int) -> SalesHistogram:
        return SalesHistogram.start(paths, arms, dim)

    def _index(self, state: SalesHistogram, arms: Array) -> Array:
        n, t = np.maximum(state.visitors, 1), np.maximum(state.decisions, 1)
        spread = np.maximum(
            state.squares.sum(axis=1) / t - np.square(state.sums.sum(axis=1) / t), 0
        )
        width = np.resize(BONUSES, state.paths) * np.sqrt(2 * np.log(t) * spread)
        index = state.sums / n + width[:, None] / np.sqrt(n)
        return np.where(state.visitors == 0, np.inf, index)

    def _learn(self, state: SalesHistogram, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0], 0.99)


@dataclass(eq=False)
class Settling(Tally):
    """The sums of UCB1, the range, and the first decisions."""

    low: Finite
    high: Finite
    unit: Annotated[Array, Rule(finite=True, blank=1)]
    first: Annotated[Array, Rule((_SETTLE,), finite=True)]
    pulled: Annotated[Index, Rule((_SETTLE,), least=0)]


@dataclass(frozen=True, kw_only=True)
class CappedOf020(KArmed[Settling], Indexed[Settling]):
    """`Capped(UCB1())` as it was in tailproof 0.2.0: a range of all rewards, settled early.

    Its ends are the 1 and 99 % quantiles of all rewards so far, learned anew when the number of
    decisions has doubled, up to 2048 of them; then all are learned again.
    """

    def _init(self, paths: int, arms: int, dim: int) -> Settling:
        return Settling.start(paths, arms, dim)

    def _index(self, state: Settling, arms: Array) -> Array:
        return UCB1()._index(state, arms)

    def _learn(self, state: Settling, arms: Array, chosen: Index, rewards: Array) -> None:
        t = int(state.decisions[0])
        if t < _SETTLE:
            state.first[:, t], state.pulled[:, t] = rewards[:, 0], chosen
        cut = np.clip(rewards[:, 0], state.low, state.high)
        state.update(chosen, (cut - state.low) / state.unit)
        n = t + 1
        if n > _SETTLE or n & t:
            return
        seen = np.sort(state.first[:, :n])
        beyond = int(0.01 * n + 1e-9)
        state.low[:], state.high[:] = low, high = seen[:, beyond], seen[:, n - 1 - beyond]
        cut = np.clip(state.first[:, :n], low[:, None], high[:, None]) - low[:, None]
        spread = cut.std(axis=1)
        state.unit[:] = np.where(spread > 0, spread, 1.0)
        own = state.pulled[:, None, :n] == np.arange(state.arms)[:, None]
        state.sums[:] = (own * cut[:, None]).sum(axis=2) / state.unit[:, None]


def play(
    policy: Policy[Any], problem: Problem, *, paths: int, horizon: int, seed: int, delay: int = 0
) -> tuple[Array, Array]:
    """Return the regret of each path over chance, and whether the path is lost."""
    shop = problem.environment
    assert isinstance(shop, Shop)
    marks = (horizon // 2, horizon)
    found = simulate(
        {"it": policy},
        shop,
        horizon=horizon,
        paths=paths,
        seed=seed,
        checkpoints=marks,
        delay=delay,
    )
    chance = float(shop.values.max() - shop.values.mean())
    half, end = found.curves["it"].regret.T
    return end / (horizon * chance), end - half > 0.5 * chance * (horizon - horizon // 2)


def hindsight(problem: Problem, paths: int, **settings: int) -> float:
    """Return the regret of UCB1 with the best bonus, over chance."""
    regret, _ = play(PooledUCB1(), problem, paths=paths * len(BONUSES), **settings)
    own = np.arange(len(regret)) % 500 % len(BONUSES)  # 500 paths are simulated together
    return min(float(regret[own == place].mean()) for place in range(len(BONUSES)))


TOOLS: dict[str, tuple[Policy[Any], int]] = {
    "RevenueUCB()": (RevenueUCB(), 0),
    "RevenueUCB(), 1000 visitors late": (RevenueUCB(), 1000),
    "Capped(UCB1()) of 0.2.0": (CappedOf020(), 0),
}


def compare(which: str, paths: int, longest: int, names: Sequence[str]) -> None:
    """Print the regret of each tool over that of UCB1 in hindsight, in all problems or in some."""
    problems = {"tuning": money.TUNING, "report": money.REPORT}[which].values()
    found: dict[str, list[float]] = {name: [] for name in ["UCB1 in hindsight", *TOOLS]}
    lost: dict[str, list[float]] = {name: [] for name in TOOLS}
    table = start_table(f"Regret over chance, {which}, {paths} paths", "what", *found)
    for number, problem in enumerate(p for p in problems if p.k_armed):
        if names and problem.name not in names:
            continue
        horizon = min(problem.horizon, longest)
        size = {"paths": paths, "horizon": horizon, "seed": SEEDS[which] + number}
        found["UCB1 in hindsight"].append(hindsight(problem, **size))
        for name, (policy, late) in TOOLS.items():
            regret, missed = play(policy, problem, delay=late, **size)
            found[name].append(float(regret.mean()))
            lost[name].append(float(missed.mean()))
        cells = [f"{own[-1]:.3f}" for own in found.values()]
        losses = [f"{100 * own[-1]:.0f}" for own in lost.values()]
        print(problem.name, *cells, "lost, %:", *losses, flush=True)
        table.add_row(f"{problem.name}, {horizon} visitors", *cells)
    show(table)
    table = start_table(f"All of {which}", "what", "mean", "ratio", "worst", "lost, %", "of it")
    best, own = np.array(found["UCB1 in hindsight"]), np.array(found["RevenueUCB()"])
    for name in TOOLS:
        ratio = np.array(found[name]) / best
        row = [np.mean(found[name]), _geometric(ratio), ratio.max()]
        cells = [f"{x:.3f}" for x in row]
        against = _geometric(own / np.array(found[name]))
        table.add_row(name, *cells, f"{100 * np.mean(lost[name]):.1f}", f"{against:.2f}")
    table.add_row("UCB1 in hindsight", f"{best.mean():.3f}", "1", "1", "", "")
    show(table)
    print("of it: the regret of RevenueUCB(), on time, over that of the tool (geometric mean)")


def _geometric(ratios: Array) -> float:
    return float(np.exp(np.log(ratios).mean()))


def features(paths: int, visitors: int) -> None:
    """Print what the banners of the gauntlet earn: the plain mean, without a cap."""
    fourths = ("1st fourth", "2nd", "3rd", "4th", "target")
    title = f"Four banners, revenue a visitor, {visitors} visitors, {paths} paths"
    table = start_table(title, "what", *fourths)
    targets = {"money-banners": 3.90, "money-banners-noise": 3.80}
    for name, least in targets.items():
        plain = money.REPORT[name].environment
        assert isinstance(plain, Shop)
        shop = replace(plain, aim=Mean())
        x = np.random.default_rng(19).standard_normal((10**6, shop.contexts.dim))
        values = shop.conversion(x) * (shop.values / np.asarray(shop.buyers))
        best = float(values.max(axis=1).mean())
        marks = [visitors // 4 * quarter for quarter in (1, 2, 3, 4)]
        tools: dict[str, Policy[Any]] = {"LinRevenueUCB()": LinRevenueUCB()}
        if shop.unused == 0:
            tools |= {"RevenueUCB()": RevenueUCB(), "a random banner": Uniform()}
        found = simulate(tools, shop, horizon=visitors, paths=paths, seed=17, checkpoints=marks)
        for tool in tools:
            earned = best - np.diff(found.mean(tool), prepend=0.0) / np.diff(marks, prepend=0)
            own = tool == "LinRevenueUCB()"
            target = f"≥ {least:.2f}{'' if earned[-1] >= least else ' missed'}" if own else ""
            table.add_row(f"{name}, {tool}", *(f"{value:.2f}" for value in earned), target)
        table.add_row(f"{name}, the best", *[f"{best:.2f}"] * 4, "")
    show(table)


def cost() -> None:
    """Print the time of a decision and the memory of an arm."""
    table = start_table("Cost, 4 arms, 3 % buyers", "what", "found", "target")
    tools: list[tuple[str, Policy[Any], int, Callable[[int], str]]] = [
        ("RevenueUCB()", RevenueUCB(), 1, lambda n: "≤ 70" if n == 1 else "≤ 0.7"),
        ("LinRevenueUCB(), 5 features", LinRevenueUCB(), 5, lambda n: ""),
    ]
    for name, policy, dim, most in tools:
        for paths, decisions in ((1, 4000), (500, 4000)):
            rng, spent = np.random.default_rng(0), 0.0
            state = policy.init(paths, 4, dim)
            for _ in range(decisions):
                arms = np.repeat(rng.standard_normal((paths, 1, dim)), 4, axis=1)
                sold = rng.lognormal(3, 1, (paths, 1))
                rewards = np.where(rng.random((paths, 1)) < 0.03, sold, 0.0)
                start = time.process_time()
                chosen = policy.choose(state, arms, rng)
                policy.learn(state, arms, chosen, rewards)
                spent += time.process_time() - start
            each = 1e6 * spent / decisions / paths
            where = "live" if paths == 1 else f"batch of {paths}"
            table.add_row(f"{name}: µs a decision, {where}", f"{each:.2f}", most(paths))
        size = sum(array.nbytes for array in state.to_arrays().values()) / paths / 4000
        table.add_row(f"{name}: kB an arm", f"{size:.1f}", "≤ 5" if dim == 1 else "")
    show(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", choices=["tuning", "report"], default="report")
    parser.add_argument("--paths", type=int, default=100)
    parser.add_argument("--longest", type=int, default=200_000, help="cuts horizons")
    parser.add_argument("--names", nargs="*", default=[], help="of problems, by default all")
    parser.add_argument("--only", choices=["arms", "features", "cost"])
    given = parser.parse_args()
    if given.only in (None, "cost"):
        cost()
    if given.only in (None, "features"):
        features(max(1, given.paths // 5), min(20_000, given.longest))
    if given.only in (None, "arms"):
        compare(given.problems, given.paths, given.longest, given.names)
