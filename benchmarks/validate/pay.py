"""Did it pay: how often a month of a shop says so, if it did and if it did not.

Run it with ``make bench-pay``. A shop shows one of its arms to each visitor; a share of them is the
control group, `RevenueUCB` chooses for the others, and only purchases are told (silence = 0, a
window of a day). The page is looked at once a day for 30 days. "It paid" is claimed if the interval
of the difference to the control group is above zero at any of these looks; it is a mistake if all
arms are alike.

The policy, its propensities and the statistics are those of the library. What is simulated at once
is a day: visitors of a day are decided with what was learned from the days before. ``--sizes``
prints how many visitors are needed for which gain.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # for timing.py

from timing import one_core

one_core()

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from tailproof import CappedMean, RevenueUCB
from tailproof.stats.histograms import Histogram
from tailproof.stats.uplift import CONTROL, POLICY, Decided, Worth
from tailproof.typing import Array, Index

DAYS, CONVERSION = 30, 0.03
LAWS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "lognormal(1)": lambda rng, n: 40 * np.exp(rng.standard_normal(n)),
    "Pareto 2.2": lambda rng, n: 40 * (1 + rng.pareto(2.2, n)),
    "Pareto 1.5": lambda rng, n: 40 * (1 + rng.pareto(1.5, n)),
}


class Shop:
    """One month of one shop: what its journal would say, and what the page says of it."""

    def __init__(self, arms: int, share: float, explore: float) -> None:
        self.worth, self.samples = Worth(CappedMean(0.99)), [Histogram() for _ in range(arms)]
        self.share, self.explore, self.count = share, explore, 0

    def visit(self, p: Array, shown: Index, lots: int, arm: Index, lot: Any, y: Array) -> None:
        """Add visitors: `shown` of each arm, `lots` of them control, and their purchases."""
        k = len(p)
        silent = shown - np.bincount(arm, minlength=k)
        rest = lots - int(lot.sum())  # of the control group, who bought nothing
        count = np.concatenate([np.ones(len(y)), [rest, silent[0] - rest], silent[1:]])
        arms = np.concatenate([arm, [0, 0], np.arange(1, k)])
        rewards = np.concatenate([y, np.zeros(k + 1)])
        group = np.concatenate([np.where(lot, CONTROL, POLICY), [CONTROL], [POLICY] * k])
        some = count > 0
        arms, rewards, count, group = arms[some], rewards[some], count[some], group[some]
        n = len(arms)
        self.worth.add(
            Decided(
                arm=arms,
                offered=np.full(n, float(k)),
                share=p[arms],
                least=np.full(n, p.min()),
                explore=np.full(n, self.explore),
                group=group,
                control_share=np.full(n, self.share),
                is_control=arms == 0,
                reward=rewards,
                there=np.zeros((n, 0), dtype=bool),
                times=count,
            )
        )
        for number, sample in enumerate(self.samples):
            mine = arms == number
            sample.add(rewards[mine])
            sample.counts[sample.lows == 0] += int((count[mine] - 1).sum())  # without sorting them
        self.count += int(shown.sum())
        if self.count & (self.count - 1) == 0:
            self.worth.settle(self.count, self.samples, 0.0)

    def verdict(self) -> int:
        """Return 1 if it paid, −1 if it did not, 0 if that is not sure."""
        found = self.worth.control.estimate()
        if found is None or not found.known:
            return 0
        return int(found.low > 0) - int(found.high < 0)


def months(
    seed: list[int], runs: int, law: str, a_day: int, uplift: float, *, arms: int, share: float,
    explore: float,
) -> dict[str, Array]:  # fmt: skip
    """Simulate months; return the first day of each claim, 0 if never, and the gain that it is."""
    rng, policy, draw = np.random.default_rng(seed), RevenueUCB(), LAWS[law]
    buyers = np.full(arms, CONVERSION)
    buyers[-1] *= 1 + uplift
    state, vectors = (
        policy.init(runs, arms, arms),
        np.broadcast_to(np.eye(arms), (runs, arms, arms)),
    )
    shops = [Shop(arms, share, explore) for _ in range(runs)]
    first = {1: np.zeros(runs), -1: np.zeros(runs)}
    best = np.zeros(runs)
    for day in range(DAYS):
        chosen: Any = policy.propensities(state, vectors)
        own: Array = (1 - explore) * chosen + explore / arms
        p: Array = (1 - share) * own
        p[:, 0] += share
        ends = [2**i for i in range(8, 31) if day * a_day < 2**i < (day + 1) * a_day]
        parts = np.diff([day * a_day, *ends, (day + 1) * a_day])
        bought = []
        for run, shop in enumerate(shops):
            for part in parts:
                lots = int(rng.binomial(part, share))
                shown = rng.multinomial(part - lots, own[run])
                control = int(rng.binomial(lots, buyers[0]))
                others = rng.binomial(shown, buyers)
                arm = np.concatenate(
                    [np.zeros(control, dtype=np.int64), np.repeat(np.arange(arms), others)]
                )
                lot, order = np.arange(len(arm)) < control, rng.permutation(len(arm))
                y = draw(rng, len(arm))
                shown[0] += lots
                best[run] += shown[-1]
                shop.visit(p[run], shown, lots, arm[order], lot[order], y)
                bought.append((run, shown, arm[order], y))
            for sign, days in first.items():
                if not days[run] and shop.verdict() == sign:
                    days[run] = day + 1
        learn(policy, state, vectors, bought)
    found = [shop.worth.control.estimate() for shop in shops]
    return {
        "paid": first[1],
        "cost": first[-1],
        "best": best / (DAYS * a_day),
        "percent": np.array([100 * one.difference / one.other for one in found if one]),
    }


def learn(policy: RevenueUCB, state, vectors, bought) -> None:  # type: ignore[no-untyped-def]
    """Learn a day: purchases one by one, and those who bought nothing by their number."""
    runs, arms = state.visitors.shape
    shown = np.zeros((runs, arms), dtype=np.int64)
    queues: list[list[tuple[Array, Array]]] = [[] for _ in range(runs)]
    for run, seen, arm, y in bought:
        shown[run] += seen
        queues[run].append((arm, y))
    steps = max(sum(len(y) for _, y in queue) for queue in queues)
    chosen, rewards = np.zeros((runs, steps), dtype=np.int64), np.zeros((runs, steps))
    for run, queue in enumerate(queues):
        arm, y = (np.concatenate(part) for part in zip(*queue, strict=True))
        chosen[run, : len(y)], rewards[run, : len(y)] = arm, y
        shown[run] -= np.bincount(chosen[run], minlength=arms)  # the others are learned below
    state.visitors += shown.astype(state.visitors.dtype)
    for step in range(steps):
        policy.learn(state, vectors, chosen[:, step], rewards[:, step, None])


def report(seed: list[int], runs: int, law: str, a_day: int, uplift: float, **more: float) -> None:
    """Print how often a month says that it paid."""
    found = months(seed, runs, law, a_day, uplift, **more)  # type: ignore[arg-type]
    paid, days = found["paid"] > 0, found["paid"][found["paid"] > 0]
    bar = "target: at most 5 %" if not uplift else "target: at least 90 %"
    when = f", in the median on day {np.median(days):.0f}" if len(days) else ""
    print(
        f"{law}, {DAYS * a_day:,} visitors, {100 * uplift:.0f} % better: says that it paid in "
        f"{paid.mean():.1%} of {runs} months ({bar}){when}; that it did not in "
        f"{(found['cost'] > 0).mean():.1%}; the best arm had {found['best'].mean():.0%} of the "
        f"visitors; gain of the rule {np.median(found['percent']):+.1f} % "
        f"({np.quantile(found['percent'], 0.1):+.1f} to {np.quantile(found['percent'], 0.9):+.1f})",
        flush=True,
    )


def needed(seed: list[int], runs: int, law: str, uplift: float, share: float) -> float:
    """Return after how many visitors nine of ten shops know that it paid.

    The rule has two arms and shows the better one to everyone outside the control group.
    """
    rng, draw, done = np.random.default_rng(seed), LAWS[law], []
    buyers, p = CONVERSION * np.array([1, 1 + uplift]), np.array([share, 1 - share])
    for _ in range(runs):
        shop, part = Shop(2, share, 0.0), 256
        while not (shop.verdict() == 1 or shop.count > 1e8):
            shown = rng.multinomial(part, p)
            arm = np.repeat([0, 1], rng.binomial(shown, buyers))
            order = rng.permutation(len(arm))
            shop.visit(p, shown, int(shown[0]), arm[order], arm[order] == 0, draw(rng, len(arm)))
            before = 1 << (shop.count.bit_length() - 1)
            part = before // 8 if shop.count >= 2048 else 256  # eight looks while they double
        done.append(shop.count)
    return float(np.quantile(done, 0.9))


def sizes(runs: int, seed: int, law: str) -> None:
    """Print how many visitors are needed for which gain and control share."""
    shares, uplifts = (0.1, 0.2, 0.5), (1.0, 0.5, 0.3, 0.2, 0.15, 0.1)
    print(f"{law}, {CONVERSION:.0%} buy: visitors until nine of ten of {runs} shops know")
    print("| gain | " + " | ".join(f"control {share:.0%}" for share in shares) + " |")
    for uplift in uplifts:
        cells = [needed([seed, int(1000 * uplift)], runs, law, uplift, share) for share in shares]
        row = " | ".join(f"{float(f'{n:.2g}'):,.0f}" for n in cells)
        print(f"| {uplift:.0%} | {row} |", flush=True)


def main() -> None:
    """Print the bars, or how many visitors are needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--a-day", type=int, default=20_000)
    parser.add_argument("--control", type=float, default=0.2)
    parser.add_argument("--explore", type=float, default=0.0)
    parser.add_argument("--arms", type=int, default=3)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--laws", default="lognormal(1);Pareto 2.2")
    parser.add_argument("--uplifts", default="0,0.15")
    parser.add_argument("--sizes", action="store_true", help="how many visitors are needed")
    given = parser.parse_args()
    if given.sizes:
        sizes(40, given.seed + 10, given.laws.split(";")[0])
        return
    settings = {"arms": given.arms, "share": given.control, "explore": given.explore}
    print(
        f"{given.arms} arms, {CONVERSION:.0%} of visitors buy, a control group of "
        f"{given.control:.0%}, explore {given.explore:g}, one look a day"
    )
    for i, law in enumerate(given.laws.split(";")):
        for uplift in map(float, given.uplifts.split(",")):
            seed = [given.seed, i, int(1000 * uplift)]
            report(seed, given.runs, law, given.a_day, uplift, **settings)


if __name__ == "__main__":
    main()
