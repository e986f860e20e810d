"""Live use where most visitors tell nothing: what a visitor brings if silence is a reward.

Run it with ``make bench-live``; ``--only shop,banners,window`` runs some parts. The agents are the
real ones, with a journal in memory and a clock that the visitors move.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # for timing.py

from timing import one_core

one_core()

import argparse
import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from tailproof import LinRevenueUCB, Mean, OrderStatisticUCB, Policy, RevenueUCB
from tailproof.live import Agent
from tailproof.research.gauntlet import money
from tailproof.service.page.summary import Summary

SHOP = {"A": (0.06, 20.0), "B": (0.03, 30.0)}
"""Conversion and basket: A is worth 1.2 a visitor, B 0.9."""
NAMED: list[Policy[Any]] = [
    RevenueUCB(),
    RevenueUCB(share=0.998),
    OrderStatisticUCB(quantile=0.95),
]
"""What `tailproof calibrate` names for 4000 visitors to each arm of this shop."""
DAY = 86400.0


class Clock:
    """A time that visitors move."""

    now = 1e9

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def visit(
    agent: Agent, clock: Clock, visitors: int, step: float, spend: Callable[[int, str], Any]
) -> list[str]:
    """Let visitors come, `step` seconds apart; return what each was shown.

    `spend` gets the number of a visitor and an arm, None for the offer; it returns the offer, or
    how much is spent and how much later.
    """
    coming: list[tuple[float, str, float]] = []
    shown = []
    for i in range(visitors):
        while coming and coming[0][0] <= clock.now:
            agent.tell(*heapq.heappop(coming)[1:])
        ticket = agent.ask(spend(i, ""))
        amount, later = spend(i, ticket.arm)
        if amount:
            heapq.heappush(coming, (clock.now + later, ticket.id, amount))
        shown.append(ticket.arm)
        clock.now += step
    return shown


def shop(seeds: int, visitors: int = 15_000) -> None:
    """Print what two arms earn if only purchases are told, up to 1000 visitors late."""
    print(f"two arms, 6 % x 20 and 3 % x 30, {visitors} visitors, {seeds} seeds, silence = 0")
    for policy in NAMED:
        worth, right, wrong = [], [], 0
        for seed in range(seeds):
            rng, clock = np.random.default_rng([31, seed]), Clock()

            def spend(_: int, arm: str, rng: np.random.Generator = rng) -> Any:
                if not arm:
                    return list(SHOP)
                conversion, basket = SHOP[arm]
                return basket * (rng.random() < conversion), rng.uniform(0, 1000)

            agent = Agent(policy, ":memory:", wait=1000, silence=0.0, seed=seed, clock=clock)
            summary, shown = Summary(agent.journal, Mean()), []
            for _ in range(10):
                shown += visit(agent, clock, visitors // 10, 1.0, spend)
                while not summary.refresh():
                    pass
                lead = summary.to_dict()["lead"]
                wrong += lead["sure"] and lead["arm"] == "B"
            worth.append(np.mean([np.prod(SHOP[arm]) for arm in shown]))
            right.append(np.mean(np.array(shown[-visitors // 4 :]) == "A"))
        print(
            f"{policy}: {np.mean(worth):.3f} a visitor (target: at least 1.15), best arm for "
            f"{np.mean(right):.1%} of the last quarter (target: 90 %), worst seed {min(right):.1%};"
            f" sure of the wrong arm at {wrong} looks (target: 0)",
            flush=True,
        )


def banners(seeds: int, weeks: int = 4, a_day: int = 1500) -> None:
    """Print what four banners earn with a window of seven days."""
    problem: Any = money.REPORT["money-banners"].environment
    basket = np.array([40.0, 38.0, 34.0, 42.0])
    names = ["control", "summer", "sale", "bundle"]
    found = []
    for seed in range(seeds):
        rng, clock = np.random.default_rng([32, seed]), Clock()
        x = rng.standard_normal((weeks * 7 * a_day, 5))
        conversion = problem.conversion(x)
        value = conversion * basket * (1 + 1 / 1.2)

        def spend(i: int, arm: str, x: Any = x, chance: Any = conversion, rng: Any = rng) -> Any:
            if not arm:
                return dict.fromkeys(names, x[i])
            number = names.index(arm)
            amount = basket[number] * (1 + rng.pareto(2.2))
            return float(amount * (rng.random() < chance[i, number])), rng.uniform(0, 7 * DAY)

        agent = Agent(LinRevenueUCB(), ":memory:", wait="7d", silence=0.0, seed=seed, clock=clock)
        shown = visit(agent, clock, len(x), DAY / a_day, spend)
        earned = value[np.arange(len(x)), [names.index(arm) for arm in shown]]
        found.append(earned.reshape(weeks, -1).mean(axis=1))
    weekly = ", ".join(f"{one:.2f}" for one in np.mean(found, axis=0))
    later = np.array(found)[:, 1:].mean(axis=1)
    print(
        f"four banners, window of 7 days, {a_day} visitors a day, {seeds} seeds: {weekly} a visitor"
        f" by week; from the second week on {later.mean():.2f} ± "
        f"{later.std() / max(1, len(later) - 1) ** 0.5:.2f} (target: at least 3.4; best 3.97)",
        flush=True,
    )


def window(_: int, asks: int = 220_000) -> None:
    """Print how many of many pending rewards are learned."""
    clock = Clock()
    agent = Agent(RevenueUCB(), ":memory:", wait="7d", silence=0.0, clock=clock)
    tickets = []
    for _ in range(asks):
        tickets.append(agent.ask(["A", "B"]).id)
        clock.now += 0.001
    statuses = dict.fromkeys(("kept", "late"), 0)
    for ticket in tickets:
        statuses[agent.tell(ticket, 1.0)] += 1
    clock.now += 7 * DAY
    while not agent.tick():
        pass
    print(
        f"{asks} asks, then their rewards: {statuses}, {agent.learner.learned} learned", flush=True
    )


def main() -> None:
    """Run all parts, or those asked for."""
    parts = {part.__name__: part for part in (shop, banners, window)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(parts))
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    for part in given.only.split(","):
        parts[part](given.seeds)


if __name__ == "__main__":
    main()
