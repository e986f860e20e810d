"""Tools for revenue: regret in the shops of `benchmarks/shops.py`, on time and late, and cost.

Run with ``make bench-money``; ``--only`` runs a part, and ``--problems tuning`` is for choosing
settings. Regret is of the true capped mean, over that of uniform choices. A path is lost if its
second half has more than half of the regret of chance. Ratios are to UCB1 behind the same cap, with
rewards in units of the pooled standard deviation and, for each problem, the best of `BONUSES` in
hindsight.
"""

import argparse
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from timing import one_core, show, start_table

one_core()

import numpy as np
from shops import REPORT, TUNING, Problem, baskets, capped_means, conversions

from tailproof import UCB1, Capped, LinRevenueUCB, LinStudentUCB, Policy, RevenueUCB
from tailproof import ThompsonSampling as Thompson
from tailproof.policies.base import Index, Indexed, KArmed
from tailproof.policies.state.purse import Purse
from tailproof.typing import Array

BONUSES = (0.12, 0.2, 0.3, 0.42, 0.6, 0.85)
SEEDS = {"tuning": 31, "report": 20_261}
_BLOCK = 500
"""Visitors who are drawn at once."""


@dataclass(frozen=True, kw_only=True)
class PooledUCB1(KArmed[Purse], Indexed[Purse]):
    """UCB1 on capped rewards in units of their standard deviation; path p has the p-th bonus."""

    bonuses: tuple[float, ...]

    def _init(self, paths: int, arms: int, dim: int) -> Purse:
        return Purse.start(paths, arms, dim)

    def _index(self, state: Purse, arms: Array) -> Array:
        n, t = np.maximum(state.visitors, 1), np.maximum(state.decisions, 1)
        spread = np.maximum(
            state.squares.sum(axis=1) / t - np.square(state.sums.sum(axis=1) / t), 0
        )
        width = np.array(self.bonuses) * np.sqrt(2 * np.log(t) * spread)
        index = state.sums / n + width[:, None] / np.sqrt(n)
        return np.where(state.visitors == 0, np.inf, index)

    def _learn(self, state: Purse, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0], 0.99)


class Visitors:
    """The visitors of a shop: the same ones for every policy, and for each of `copies` groups."""

    def __init__(self, problem: Problem, paths: int, seed: int, copies: int = 1) -> None:
        self.paths, self.copies, self.rng = paths, copies, np.random.default_rng([seed, paths])
        self.buyers, self.laws, self.left = conversions(problem), baskets(problem), 0

    def spend(self, chosen: Index) -> Array:
        """Return what the next visitor of each path spends on the chosen arm."""
        if not self.left:
            self.left, self.draw = _BLOCK, self.rng.random((_BLOCK, self.paths))
            self.step, self.who = np.nonzero(self.draw < self.buyers.max())
            self.starts = np.searchsorted(self.step, np.arange(_BLOCK + 1))
            size = (len(self.step),)
            self.basket = np.stack([law.sample(self.rng, size) for law in self.laws], axis=1)
        now = _BLOCK - self.left
        self.left -= 1
        rows = slice(self.starts[now], self.starts[now + 1])
        who, reward = self.who[rows], np.zeros((self.copies, self.paths))
        arm = chosen.reshape(self.copies, self.paths)[:, who]
        basket = self.basket[rows][np.arange(len(who)), arm]
        reward[:, who] = np.where(self.draw[now, who] < self.buyers[arm], basket, 0.0)
        return reward.ravel()


def play(
    problem: Problem,
    policy: Policy[Any],
    *,
    paths: int,
    horizon: int,
    seed: int,
    late: int = 0,
    copies: int = 1,
) -> tuple[Array, Array]:
    """Return the regret over chance of every path, and whether it is lost, by copies.

    A reward is learned when `late` more visitors have come.
    """
    value = capped_means(problem)[1]
    gap = value.max() - value
    visitors, rng = Visitors(problem, paths, seed, copies), np.random.default_rng([seed, 1])
    k, total = len(value), paths * copies
    arms = np.broadcast_to(np.eye(k), (total, k, k))
    state, waiting = policy.init(total, k, k), deque[tuple[Index, Array]]()
    regret = np.zeros((2, total))
    for t in range(horizon):
        chosen = policy.choose(state, arms, rng)
        regret[int(2 * t >= horizon)] += gap[chosen]
        waiting.append((chosen, visitors.spend(chosen)))
        if len(waiting) > late:
            pulled, rewards = waiting.popleft()
            policy.learn(state, arms, pulled, rewards[:, None])
    regret /= horizon / 2 * gap.mean()
    shape = copies, paths
    return regret.mean(axis=0).reshape(shape), (regret[1] > 0.5).reshape(shape)


TOOLS: dict[str, Policy[Any]] = {
    "RevenueUCB()": RevenueUCB(),
    "Capped(UCB1())": Capped(UCB1()),
    "Capped(ThompsonSampling())": Capped(Thompson()),
}


def compare(which: str, paths: int, longest: int, delays: list[int]) -> None:
    """Print the regret of each tool over that of UCB1 in hindsight."""
    problems, seed = {"tuning": TUNING, "report": REPORT}[which], SEEDS[which]
    names = [*TOOLS, *(f"RevenueUCB(), {late} visitors late" for late in delays)]
    found: dict[str, list[float]] = {name: [] for name in ["UCB1 in hindsight", *names]}
    lost: dict[str, list[float]] = {name: [] for name in names}
    table = start_table(f"Regret over chance, {which}, {paths} paths", "what", *found)
    for number, problem in enumerate(problems):
        size = {"paths": paths, "horizon": min(problem.horizon, longest), "seed": seed + number}
        grid = PooledUCB1(bonuses=tuple(np.repeat(BONUSES, paths).tolist()))
        regret, _ = play(problem, grid, copies=len(BONUSES), **size)
        found["UCB1 in hindsight"].append(float(regret.mean(axis=1).min()))
        runs = [(name, policy, 0) for name, policy in TOOLS.items()]
        runs += [(f"RevenueUCB(), {late} visitors late", RevenueUCB(), late) for late in delays]
        for name, policy, late in runs:
            regret, missed = play(problem, policy, late=late, **size)
            found[name].append(float(regret.mean()))
            lost[name].append(float(missed.mean()))
        cells = [f"{own[-1]:.3f}" for own in found.values()]
        print(problem.name, *cells, flush=True)
        table.add_row(f"{problem.name}, {size['horizon']} visitors", *cells)
    show(table)
    table = start_table(f"All of {which}", "what", "mean", "ratio", "worst", "lost, %")
    best = np.array(found["UCB1 in hindsight"])
    for name in names:
        ratio = np.array(found[name]) / best
        mean = float(np.exp(np.log(ratio).mean()))
        row = [np.mean(found[name]), mean, ratio.max()]
        table.add_row(name, *(f"{x:.3f}" for x in row), f"{100 * np.mean(lost[name]):.1f}")
    table.add_row("UCB1 in hindsight", f"{best.mean():.3f}", "1", "1", "")
    show(table)


class Banners:
    """Four banners, visitors with five features and perhaps some that do not matter.

    About 3 % buy; baskets are Pareto with index 2.2. A random banner earns 2.08 a visitor, the best
    single one 2.39, the best for each visitor 3.97.
    """

    def __init__(self, noise_features: int = 0) -> None:
        self.weights = np.random.default_rng(11).normal(0, 0.45, (4, 5))
        self.base = np.log([0.027, 0.030, 0.030, 0.031])
        self.basket, self.dim = np.array([40.0, 38.0, 34.0, 42.0]), 5 + noise_features

    def conversion(self, x: Array) -> Array:
        """Return P(buys) for each visitor and banner."""
        log = self.base + x[:, :5] @ self.weights.T - np.square(self.weights).sum(axis=1) / 2
        return np.asarray(np.clip(np.exp(log), 0, 0.5))

    def play(self, policy: Policy[Any], *, crossed: bool, paths: int, visitors: int) -> list[float]:
        """Return the true revenue a visitor in each fourth of the visitors."""
        rng, luck = np.random.default_rng(17), np.random.default_rng(18)
        earned, path = np.zeros(4), np.arange(paths)
        width = 4 * (self.dim + 1) if crossed else self.dim
        state = policy.init(paths, 4, width)
        for t in range(visitors):
            x = rng.standard_normal((paths, self.dim))
            if crossed:
                lifted = np.concatenate([np.ones((paths, 1)), x], axis=1)
                arms = np.einsum("ab,pf->pabf", np.eye(4), lifted).reshape(paths, 4, width)
            else:
                arms = np.repeat(x[:, None], 4, axis=1)
            chosen, p = policy.choose(state, arms, luck), self.conversion(x)
            earned[4 * t // visitors] += (p * self.basket)[path, chosen].mean() * (1 + 1 / 1.2)
            buys = rng.random(paths) < p[path, chosen]
            spent = self.basket[chosen] * (1 + rng.pareto(2.2, paths))
            policy.learn(state, arms, chosen, np.where(buys, spent, 0.0)[:, None])
        return [float(total) / (visitors / 4) for total in earned]


def features(paths: int, visitors: int) -> None:
    """Print what the banners earn."""
    fourths = ("1st fourth", "2nd", "3rd", "4th", "target")
    title = f"Four banners, revenue a visitor, {visitors} visitors, {paths} paths"
    table = start_table(title, "what", *fourths)
    for more, least in ((0, 3.90), (10, 3.80)):
        earned = Banners(more).play(LinRevenueUCB(), crossed=False, paths=paths, visitors=visitors)
        word = "" if earned[-1] >= least else " missed"
        cells = [f"{value:.2f}" for value in earned]
        table.add_row(f"LinRevenueUCB(), {more} noise features", *cells, f"≥ {least:.2f}{word}")
    earned = Banners().play(LinStudentUCB(), crossed=True, paths=paths, visitors=visitors)
    table.add_row("LinStudentUCB()", *(f"{value:.2f}" for value in earned), "")
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
    parser.add_argument("--longest", type=int, default=60_000, help="cuts horizons")
    parser.add_argument("--delays", type=int, nargs="*", default=[500, 1000, 2000])
    parser.add_argument("--only", choices=["arms", "features", "cost"])
    given = parser.parse_args()
    if given.only in (None, "cost"):
        cost()
    if given.only in (None, "features"):
        features(max(1, given.paths // 5), min(20_000, given.longest))
    if given.only in (None, "arms"):
        compare(given.problems, given.paths, given.longest, given.delays)
