"""More cells of ``make bench-worlds``: what `judge` trusts, and whether "it paid"."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from world_cells import CELLS as FIRST, RARE, RETURNING, SEED, TIME, Cell, Events

from tailproof import CappedMean, Mean, Median, calibrate, judge, records
from tailproof.environments import traffic
from tailproof.stats.aims import Aim
from tailproof.stats.customers import Customers
from tailproof.stats.histograms import Histogram
from tailproof.stats.periods import DAY
from tailproof.stats.standing import Standing
from tailproof.stats.uplift import CONTROL, POLICY, Decided, Worth
from tailproof.typing import Array, Index

LOOKS, SHARE = 25, 0.2


def log_of(rows: traffic.Rows) -> Any:
    """Return the records of a log of two arms."""
    return records(
        arm=np.array(["A", "B"])[rows.arm],
        reward=rows.reward,
        unit=rows.unit,
        propensity=rows.propensity,
    )


def judge_units_run(world: traffic.Returning, rng: np.random.Generator, runs: int) -> Events:
    """Count trusted intervals that miss, and the width over that of the delta method."""
    found = Events(runs=runs)
    totals, visits = visits_of(world)
    for run in range(runs):
        rows = world.draw(rng)
        said = judge(log_of(rows), "B", CappedMean(0.99), model=False, seed=run)
        value, cap = said["always B"], said.cap
        if cap is None or value.verdict == "refused":
            continue
        truth = float(np.clip(totals, *cap).sum() / visits.sum())
        trusted = value.verdict == "trust"
        found["wrong of"] += trusted
        found["wrong"] += trusted and not value.low <= truth <= value.high
        own = Customers.of(arm=rows.arm, reward=rows.reward, unit=rows.unit)
        x, n = np.clip(own.total, *cap)[own.arm == 1], own.visits[own.arm == 1]
        error = math.sqrt(float(np.square(x - x.sum() / n.sum() * n).sum())) / float(n.sum())
        found["width"] += round(1000 * (value.high - value.low) / (2 * 1.96 * error))
        found["width of"] += 1000
    return found


@cache
def visits_of(world: traffic.Returning) -> tuple[Array, Array]:
    """Return totals and visits of the customers of a log twenty times as long."""
    longer = replace(world, rows=20 * world.rows, heavy=20 * world.heavy)
    rows = longer.draw(np.random.default_rng([SEED, 2]))
    own = Customers.of(arm=rows.arm, reward=rows.reward, unit=rows.unit)
    return own.total, own.visits


def judge_prices_run(
    rows: int, largest: float | None, rng: np.random.Generator, runs: int
) -> Events:
    """Count means of few prices that are trusted and miss."""
    found, world = Events(runs=runs), traffic.FewPrices(rows=rows)
    for run in range(runs):
        log = log_of(world.draw(rng))
        value = judge(log, "B", Mean(), model=False, seed=run, largest=largest)["always B"]
        trusted = value.verdict == "trust"
        found["trusted"] += trusted
        found["wrong"] += trusted and not value.low <= world.values[1] <= value.high
    return found


def judge_time_run(world: Any, rng: np.random.Generator, runs: int) -> Events:
    """Count trusted differences of equal arms that exclude zero; propensities are not told."""
    found = Events(runs=runs)
    for run in range(runs):
        rows = world.draw(rng)
        arm = np.array(["A", "B"])[rows.arm]
        log = records(arm=arm, reward=rows.reward, time=rows.time)
        said = judge(log, "B", CappedMean(0.99), model=False, seed=run, control="A")["always B"]
        found["trusted"] += said.verdict == "trust"
        to = said.to_control
        if said.verdict == "trust" and to is not None:
            found["wrong"] += not to.low <= 0 <= to.high
    return found


def judge_cells() -> Iterator[Cell]:
    """Yield the cells of `judge`."""
    for name, world in RETURNING.items():
        run = partial(judge_units_run, world)
        yield Cell("judge", f"capped mean, units told, {name}", run, "wrong")
    for name, moving in TIME.items():
        run = partial(judge_time_run, moving)
        yield Cell("judge", f"B against A, propensities estimated, {name}", run, "wrong")
    night = traffic.Scheduled(share=0.1, night=0.5, night_sales=2)
    run = partial(judge_time_run, night)
    yield Cell("judge", "B against A, estimated, B rather at night", run, "wrong")
    for rows in (1000, 10_000):
        prices = f"mean of 9.99, 19.99 and 499, {rows:,} rows"
        yield Cell("judge", prices, partial(judge_prices_run, rows, None), "wrong")
        bound = partial(judge_prices_run, rows, 499.0)
        yield Cell("judge", f"{prices}, largest=499", bound, "wrong")


# Live: an arm that sells rarely and dear


def rare_run(world: traffic.RareDear, rng: np.random.Generator, runs: int) -> Events:
    """Count pages that were ever sure of the arm that is worth less, at one of 25 looks."""
    found = Events(runs=runs)
    for run in range(runs):
        rows, ever = world.draw(rng), False
        for n in np.linspace(0, len(rows.arm), LOOKS + 1).astype(int)[1:]:
            who = Customers.of(arm=rows.arm[:n], reward=rows.reward[:n], arms=2)
            said = Standing(customers=who, names=["often", "dear"], looks="any", seed=run)
            ever |= said.sure and said.leader == "often"
        found["wrong"] += ever
    return found


def rare_cells() -> Iterator[Cell]:
    """Yield the cells of pages of such an arm."""
    for name, world in RARE.items():
        run = partial(rare_run, world)
        yield Cell("rare", f"25 looks, rare and dear: {name}", run, "wrong", 0.03)


# Did it pay


def decided(arm: Index, lot: Any, reward: Array) -> Decided:
    """Return decisions of an even split of two arms beside a control group that has the first."""
    n = len(arm)
    return Decided(
        arm=arm,
        offered=np.full(n, 2.0),
        share=np.where(arm == 0, SHARE + (1 - SHARE) / 2, (1 - SHARE) / 2),
        least=np.full(n, (1 - SHARE) / 2),
        explore=np.zeros(n),
        group=np.where(lot, CONTROL, POLICY),
        control_share=np.full(n, SHARE),
        is_control=arm == 0,
        reward=reward,
        there=np.zeros((n, 0), dtype=np.bool_),
        times=np.ones(n),
    )


Draw = Callable[[np.random.Generator], tuple[Index, Any, Array]]


def drawn(rng: np.random.Generator, n: int) -> tuple[Index, Any]:
    """Return arms and who is in the control group."""
    lot = rng.random(n) < SHARE
    return np.where(lot, 0, rng.integers(0, 2, n)), lot


def wholesale(rng: np.random.Generator) -> tuple[Index, Any, Array]:
    """Return one outcome for each customer and window; arms are alike."""
    rows = RETURNING["wholesale: 20 make 30 % of visits"].draw(rng)
    totals = Customers.of(arm=np.zeros_like(rows.arm), reward=rows.reward, unit=rows.unit).total
    return *drawn(rng, len(totals)), totals


def hidden(rng: np.random.Generator) -> tuple[Index, Any, Array]:
    """Return a shop whose control arm has .8 % of orders at 8000, and whose rival sells oftener."""
    arm, lot = drawn(rng, 40_000)
    buys = rng.random(len(arm)) < np.where(arm == 1, 0.08, 0.06)
    dear = (arm == 0) & (rng.random(len(arm)) < 0.008)
    return arm, lot, np.where(buys, np.where(dear, 8000.0, 20.0), 0.0)


def pay_run(draw: Draw, aim: Aim, rng: np.random.Generator, runs: int) -> Events:
    """Count pages that ever said "it paid" or "it did not", and those that hid a loss."""
    found = Events(runs=runs)
    for _ in range(runs):
        arm, lot, reward = draw(rng)
        worth, sample, claimed, paid, shown, start = Worth(aim), Histogram(), False, False, False, 0
        ends = [2**k for k in range(8, 30) if 2**k < len(arm)] + [len(arm)]
        for end in ends:
            part = slice(start, end)
            sample.add(reward[part])
            worth.add(decided(arm[part], lot[part], reward[part]))
            worth.add_rewards(np.where(lot[part], CONTROL, POLICY), reward[part])
            worth.settle(end, [sample], 0.0)
            said, start = worth.against_control(), end
            if said is not None and said.known:
                claimed |= said.low > 0 or said.high < 0
                paid |= said.low > 0
                shown |= said.low > 0 and said.uncapped < 0
        found["wrong"] += claimed
        found["paid"] += paid
        found["told"] += shown or not paid
    return found


def pay_cells() -> Iterator[Cell]:
    """Yield the cells of "did it pay"."""
    for aim in (CappedMean(0.99), Median()):
        run = partial(pay_run, wholesale, aim)
        yield Cell("pay", f"equal arms, wholesale customers, {aim.name}", run, "wrong")
    words = "without a cap it is … less"
    run = partial(pay_run, hidden, CappedMean(0.99))
    yield Cell("pay", "broken: the cap hides a loss", run, "told", -0.95, words)


# Speed


def speed_run(rng: np.random.Generator, runs: int) -> Events:
    """Count calls of `calibrate` on 10⁶ rows of 3·10⁵ customers and 5 arms that take over 5 s."""
    found, n = Events(runs=runs), 10**6
    for _ in range(runs):
        unit = rng.integers(0, 300_000, n)
        arm = np.array(list("abcde"))[rng.integers(0, 5, 300_000)[unit]]
        reward = np.where(rng.random(n) < 0.03, np.exp(rng.normal(3.0, 1.5, n)), 0.0)
        at = np.sort(rng.random(n)) * 28 * DAY
        start = time.process_time()
        str(calibrate(arm=arm, reward=reward, unit=unit, time=at))
        spent = time.process_time() - start
        found["slow"] += spent > 5
        found["CPU, of 5 s"] += round(1000 * spent)
        found["CPU, of 5 s of"] += 5000
    return found


def speed_cells() -> Iterator[Cell]:
    """Yield the cell of speed."""
    yield Cell("speed", "calibrate, 10⁶ rows, 3·10⁵ customers, 5 arms", first_few, "slow")


def first_few(rng: np.random.Generator, runs: int) -> Events:
    """Time at most two calls of a chunk: they are alike."""
    return speed_run(rng, min(runs, 2))


CELLS: dict[str, Callable[[], Iterator[Cell]]] = FIRST | {
    "rare": rare_cells,
    "judge": judge_cells,
    "pay": pay_cells,
    "speed": speed_cells,
}
