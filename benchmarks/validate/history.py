"""A live bandit that starts from past decisions: how well it begins, and whether bias locks it.

Run it with ``make bench-history``; ``--only warm,biased`` runs some parts. The agents are the real
ones, with a journal in memory and a clock that the visitors move.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # for timing.py

from timing import one_core

one_core()

import argparse
import time
from typing import Any

import numpy as np

from tailproof import LinRevenueUCB, Policy, RevenueUCB
from tailproof.live import Agent, import_history
from tailproof.research.gauntlet import money
from tailproof.typing import Array

BANNERS = ["control", "summer", "sale", "bundle"]
BASKET = np.array([40.0, 38.0, 34.0, 42.0])
CONVERSION, PRICE = np.array([0.06, 0.03]), np.array([20.0, 30.0])
"""Arms A and B: A is worth 1.2 a visitor, B 0.9; times 3 for rich visitors."""
RICH = 0.3
LOCKED = 0.5
"""A path is locked if the better arm gets less than this share of the last 1000 visitors."""
SHOWN = {
    "B mostly to the rich, A mostly to the poor": (0.95, 0.05),
    "B to rich visitors only, to half of them": (0.5, 0.0),
}
"""The probability of B, for rich and for poor visitors."""


class Clock:
    """A time that visitors move."""

    now = 1e9

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def begun(policy: Policy[Any], seed: int) -> tuple[Agent, Clock]:
    """Return an agent that learns each reward a visitor later."""
    clock = Clock()
    return Agent(policy, ":memory:", wait=1.5, silence=0.0, seed=seed, clock=clock), clock


def ask(agent: Agent, clock: Clock, offer: Any) -> Any:
    """Let one visitor come, and return the ticket."""
    ticket = agent.ask(offer)
    clock.now += 1.0
    return ticket


def warm(seeds: int, rows: int = 100_000, live: int = 5000) -> None:
    """Print what the first visitors bring after an even test of four banners."""
    problem: Any = money.REPORT["money-banners"].environment
    for policy in (RevenueUCB(), LinRevenueUCB()):
        sees = policy.view != "arms"
        first, last, best, took = [], [], [], []
        for seed in range(seeds):
            rng = np.random.default_rng([41, seed])
            x = rng.standard_normal((rows + live, 5))
            conversion = problem.conversion(x)
            value = conversion * BASKET * (1 + 1 / 1.2)
            buys = rng.random(conversion.shape) < conversion
            spent = buys * BASKET * (1 + rng.pareto(2.2, conversion.shape))
            shown = rng.integers(4, size=rows)
            agent, clock = begun(policy, seed)
            start = time.process_time()
            import_history(
                agent,
                arm=np.array(BANNERS)[shown],
                reward=spent[np.arange(rows), shown],
                propensity=np.full(rows, 0.25),
                features=x[:rows] if sees else None,
            )
            took.append(time.process_time() - start)
            earned = np.empty(live)
            for i in range(live):
                offer = dict.fromkeys(BANNERS, x[rows + i]) if sees else BANNERS
                ticket = ask(agent, clock, offer)
                arm = BANNERS.index(ticket.arm)
                earned[i] = value[rows + i, arm]
                if spent[rows + i, arm]:
                    agent.tell(ticket.id, float(spent[rows + i, arm]))
            first.append(earned[:1000].mean())
            last.append(earned[-1000:].mean())
            now = value[rows:]
            best.append((now.max(axis=1) if sees else now[:, now.mean(axis=0).argmax()]).mean())
        of_last = np.mean(first) / np.mean(last)
        print(
            f"{policy}, {rows} rows of an even test, {seeds} seeds: the first 1000 visitors bring "
            f"{np.mean(first):.2f} each, visitors {live - 999} to {live} {np.mean(last):.2f}: "
            f"{of_last:.1%} (target: at least 95 %); the best rule {np.mean(best):.2f}; "
            f"the import took {np.mean(took):.0f} s of CPU",
            flush=True,
        )


def biased(seeds: int, rows: int = 20_000, live: int = 10_000) -> None:
    """Print how many paths are locked by a history in which arm B was shown to rich visitors."""
    for policy, as_is in ((RevenueUCB(), False), (LinRevenueUCB(), False), (RevenueUCB(), True)):
        for how, chances in SHOWN.items():
            shares = [_path(policy, i, rows, live, chances, as_is=as_is) for i in range(seeds)]
            free = sum(share >= LOCKED for share in shares)
            words = "learned as it is" if as_is else "imported with its propensities"
            print(
                f"{how}; {rows} rows {words}; {policy}: not locked {free} of {seeds} (target, with "
                f"propensities: all); the better arm for {np.mean(shares):.0%} of the last "
                f"1000 of {live} visitors, worst path {min(shares):.0%}",
                flush=True,
            )


def _path(
    policy: Policy[Any],
    seed: int,
    rows: int,
    live: int,
    chances: tuple[float, float],
    *,
    as_is: bool,
) -> float:
    """Return the share of A, the better arm, among the last 1000 visitors."""
    rng, sees = np.random.default_rng([43, seed]), policy.view != "arms"
    rich = rng.random(rows + live) < RICH
    spent = _spent(rich, rng)
    p = np.where(rich[:rows], *chances)
    arm = (rng.random(rows) < p).astype(int)
    agent, clock = begun(policy, seed)
    import_history(
        agent,
        arm=np.array(["A", "B"])[arm],
        reward=spent[np.arange(rows), arm],
        propensity=np.where(arm == 1, p, 1 - p),
        features=rich[:rows, None].astype(float) if sees else None,
        as_is=as_is,
    )
    shown = []
    for i in range(rows, rows + live):
        offer = {name: [float(rich[i])] for name in "AB"} if sees else ["A", "B"]
        ticket = ask(agent, clock, offer)
        amount = float(spent[i, "AB".index(ticket.arm)])
        if amount:
            agent.tell(ticket.id, amount)
        shown.append(ticket.arm == "A")
    return float(np.mean(shown[-1000:]))


def _spent(rich: Any, rng: np.random.Generator) -> Array:
    """Return what every visitor would spend, of shape (n, 2)."""
    buys = rng.random((len(rich), 2)) < CONVERSION
    return np.asarray(buys * PRICE * np.where(rich, 3.0, 1.0)[:, None])


def main() -> None:
    """Run all parts, or those asked for."""
    parts = {part.__name__: part for part in (warm, biased)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(parts))
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args()
    for part in given.only.split(","):
        parts[part](given.seeds or {"warm": 5, "biased": 20}[part])


if __name__ == "__main__":
    main()
