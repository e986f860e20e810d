"""The cells of ``make bench-worlds``: what is said of files and pages, and in which worlds."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from tailproof import UCB1, LinStudentUCB, Policy, RevenueUCB, ThompsonSampling
from tailproof.environments import traffic
from tailproof.environments.traffic import Rows
from tailproof.stats.customers import Customers, windows_closed
from tailproof.stats.intervals import BoundedSample, mean_interval
from tailproof.stats.periods import DAY, days_of
from tailproof.stats.standing import Standing
from tailproof.typing import Array, Index

SEED = 39
LOOKS = 20
TARGET = 0.05
Events = Counter[str]
"""How often each event happened, and "runs" beside it; "EVENT of" counts where it could have."""


class Cell(NamedTuple):
    """A statement in a world.

    Attributes
    ----------
    part, name : str
    run : callable
        Takes a generator and a number of runs, and returns events.
    counted : str
        The event that must be rare.
    most : float
        How rare; a negative number says how frequent the event must be.
    words : str
        What the user reads, where an assumption is broken on purpose.
    """

    part: str
    name: str
    run: Callable[[np.random.Generator, int], Events]
    counted: str
    most: float = TARGET
    words: str = ""


# A file, looked at once


def standing_of(rows: Rows, told: str = "unit time", **settings: Any) -> Standing:
    """Return what is said of a file whose columns are `told`."""
    columns = {name: getattr(rows, name) for name in told.split()}
    customers = Customers.of(arm=rows.arm, reward=rows.reward, **columns)
    names = [f"arm {place}" for place in range(customers.arms)]
    return Standing(customers=customers, names=names, **settings)


def file_run(
    world: Any,
    rng: np.random.Generator,
    runs: int,
    *,
    best: Sequence[int] = (),
    told: str = "unit time",
    words: str = "",
    **settings: Any,
) -> Events:
    """Count: sure of an arm that is not the one best, intervals that miss, words that were said."""
    found = Events(runs=runs)
    truth = reference(world) if hasattr(world, "lifts") else None
    for run in range(runs):
        said = standing_of(world.draw(rng), told, seed=run, **settings)
        found["sure"] += said.sure
        found["wrong"] += said.sure and said.best not in best
        found["any look"] += said.judged_for == "any"
        if len(said.names) == 2 and not best:
            pair = said.pair(1, 0)
            found["pair of"] += pair.known
            found["pair"] += pair.known and not pair.low <= 0 <= pair.high
        if truth is not None and "unit" in told:
            found.update(missed_means(said, truth))
        if words:
            found["told"] += words in told_of(said)
    return found


def told_of(said: Standing) -> str:
    """Return all sentences about a file."""
    from tailproof.advice.claims import about_assumptions, about_lead

    return " ".join([about_lead(said), *about_assumptions(said)])


def missed_means(said: Standing, truth: list[Array]) -> Events:
    """Count the intervals of arms that miss the mean of totals capped as in this file."""
    found = Events()
    low, high = said.range
    for arm, totals in enumerate(truth):
        own = said.capped[said.customers.arm == arm]
        if not (len(own) and high > low):
            continue
        sample = BoundedSample.of(own, low=low, high=high)
        ends = mean_interval(sample, 1 - (1 - said.level) / len(truth))
        value = float(np.clip(totals, low, high).mean())
        found["mean of"] += 1
        found["mean"] += not ends[0] <= value <= ends[1]
    return found


@cache
def reference(world: Any) -> list[Array]:
    """Return the totals of each arm's customers in a file twenty times as long."""
    longer = replace(world, rows=20 * world.rows, heavy=20 * world.heavy)
    rows = longer.draw(np.random.default_rng([SEED, 1]))
    customers = Customers.of(arm=rows.arm, reward=rows.reward, unit=rows.unit)
    return [customers.total[customers.arm == arm] for arm in range(customers.arms)]


RETURNING = {
    "no returning customers": traffic.Returning(returns=False),
    "ordinary returning": traffic.Returning(),
    "resellers: 400 make 30 % of visits": traffic.Returning(heavy=400, their_share=0.3, eager=3),
    "wholesale: 20 make 30 % of visits": traffic.Returning(heavy=20, their_share=0.3),
    "extreme: 10 make 40 % of visits": traffic.Returning(heavy=10, their_share=0.4),
}
RARE = {
    ".1 % at 1999, 1500 rows each": traffic.RareDear(),
    ".1 % at 1999, 300 of 15 300 rows": traffic.RareDear(rows=(15_000, 300)),
    ".5 % at 199, 1500 rows each": traffic.RareDear(rarely=0.005, dear=199.0),
    ".06 % at 1999, 10 000 rows each": traffic.RareDear(rows=(10_000, 10_000), rarely=0.0006),
    ".3 % at 499, 2000 and 500 rows": traffic.RareDear(rows=(2000, 500), rarely=0.003, dear=499.0),
    ".02 % at 9999, 20 000 rows each": traffic.RareDear(
        rows=(20_000, 20_000), rarely=0.0002, dear=9999.0
    ),
    "1 % at 60 against 5 % at 10, 1000 rows each": traffic.RareDear(
        rows=(1000, 1000), cheap=10.0, rarely=0.01, dear=60.0
    ),
}
TIME = {
    "share 5 → 50 % while sales double": traffic.Stretched(start=0.05, end=0.5, growth=2),
    "an arm added midway, sales + 40 %": traffic.Stretched(added=0.5, growth=1.4),
    "share 5 → 50 %, weekends × 2": traffic.Stretched(start=0.05, end=0.5, weekend=2),
    "equal shares, weekends × 2": traffic.Stretched(weekend=2),
}


def file_cells() -> Iterator[Cell]:
    """Yield the cells of files."""

    def cell(name: str, world: Any, counted: str = "wrong", **more: Any) -> Cell:
        most, words = more.pop("most", TARGET), more.get("words", "")
        return Cell("file", name, partial(file_run, world, **more), counted, most, words)

    for name, world in RETURNING.items():
        yield cell(name, world)
    tied = traffic.Returning(lifts=(1.4, 1.4, 1.0, 1.0))
    yield cell("four arms, the two best tied, ordinary returning", tied)
    for rows in (2000, 20_000):
        for ratio in (4.0, 10.0):
            shapes = traffic.Shapes(rows=rows, ratio=ratio)
            name = f"equal means, one arm {ratio:g} times dearer, {rows:,} rows"
            yield cell(name, shapes, share=0.999)  # at .99 the capped means are not equal
    for name, rare in RARE.items():
        yield cell(f"rare and dear: {name}", rare, best=(1,), most=0.03)
    for name, moving in TIME.items():
        yield cell(f"time told: {name}", moving)
    yield cell("few prices 9.99, 19.99, 499", traffic.FewPrices())
    yield cell("AR(1) .9, arms drawn for each row", traffic.Autocorrelated(), told="time")
    blocks = traffic.Autocorrelated(order="blocks")
    yield cell(
        "AR(1) .9, arms in blocks of 50 rows, not told", blocks, told="", words="a run is one"
    )
    # assumptions broken on purpose
    wholesale = RETURNING["wholesale: 20 make 30 % of visits"]
    row = "Each row is taken to be another customer"
    yield cell(
        "broken: wholesale, no unit told", wholesale, "told", told="time", words=row, most=-0.95
    )
    moving = TIME["share 5 → 50 % while sales double"]
    yield cell(
        "broken: growth, no time told, in order", moving, told="unit", words="moved with time"
    )
    same_days = "all arms are taken to have met the same days"
    shuffled = Shuffled(moving)
    yield cell(
        "broken: growth, no time told, rows shuffled", shuffled, "told", told="unit",
        words=same_days, most=-0.95,
    )  # fmt: skip


class Shuffled(NamedTuple):
    """A world whose rows lost their order."""

    world: Any

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        rows = self.world.draw(rng)
        order = rng.permutation(len(rows.arm))
        return Rows._make(column[order] for column in rows)


# Files that are not sound


def sound_run(world: Any, kind: str, rng: np.random.Generator, runs: int) -> Events:
    """Count what is found in files, told that they were split evenly."""
    from tailproof.stats import soundness

    found = Events(runs=runs)
    for _ in range(runs):
        rows, names = world.draw(rng), ["A", "B"]
        customers = Customers.of(
            arm=rows.arm, reward=rows.reward, unit=rows.unit, time=rows.time, arms=2
        )
        day = days_of(np.zeros(0) if customers.time is None else customers.time)
        told = {
            one.kind
            for one in (
                *soundness.about_shares(customers, np.array([0.5, 0.5]), names, day),
                *soundness.machines(customers, names),
                *soundness.duplicates(rows.arm, rows.reward, rows.unit, rows.time),
                *soundness.bursts(rows.arm, names, rows.reward),
            )
        }
        found["told"] += kind in told if kind else bool(told)
    return found


def sound_cells() -> Iterator[Cell]:
    """Yield the cells of spoilt files."""
    for name, world in RETURNING.items():
        yield Cell("sound", f"sound file: {name}", partial(sound_run, world, ""), "told", 0.01)
    spoilt = {
        "a machine with 300 rows in one arm": (traffic.Spoilt(bots=300), "machines"),
        "400 machines in an hour": (traffic.Spoilt(bots=400, one_machine=False), "burst"),
        "6000 machines in one arm": (traffic.Spoilt(bots=6000, one_machine=False), "shares"),
        "5 % of the orders of one arm twice": (traffic.Spoilt(doubled=0.05), "duplicates"),
    }
    for name, (bad, kind) in spoilt.items():
        yield Cell("sound", name, partial(sound_run, bad, kind), "told", -0.95)


# Visits randomised within customers, and arms that a policy chose


class Visits(NamedTuple):
    """Arms drawn for each visit, whose effect differs from customer to customer; equal in all."""

    world: traffic.Returning
    effect: float = 0.5

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        rows = self.world.draw(rng)
        arm = rng.integers(0, 2, len(rows.arm))
        likes = rng.choice([-1.0, 1.0], int(rows.unit.max()) + 1)[rows.unit]
        factor = 1 + self.effect * likes * np.where(arm == 1, 1.0, -1.0)
        return rows._replace(arm=arm, reward=rows.reward * factor)


POLICIES: dict[str, Policy[Any]] = {
    "UCB1": UCB1(),
    "Thompson": ThompsonSampling(),
    "RevenueUCB": RevenueUCB(),
    "LinStudentUCB": LinStudentUCB(),
}
CHOSEN = 6000
"""Rows of a policy's log."""


def chosen(policy: Policy[Any], rng: np.random.Generator, runs: int) -> list[Rows]:
    """Return logs of a policy that chose among two equal arms, at each row by what it had learned.

    Money policies see revenue as it is; the others see it in units of its standard deviation.
    """
    arms = np.broadcast_to(np.eye(2), (runs, 2, 2))
    state = policy.init(runs, 2, 2)
    bought = rng.random((CHOSEN, runs)) < 0.1
    reward = np.where(bought, np.exp(rng.normal(3.0, 1.0, (CHOSEN, runs))), 0.0)
    seen = reward if isinstance(policy, RevenueUCB) else reward / reward.std()
    arm = np.empty((CHOSEN, runs), np.int64)
    p = np.full((CHOSEN, runs), math.nan)
    for t in range(CHOSEN):
        arm[t] = policy.choose(state, arms, rng)
        policy.learn(state, arms, arm[t], seen[t][:, None])
    at = np.linspace(0, 28 * DAY, CHOSEN, endpoint=False)
    rows = np.arange(CHOSEN)
    return [Rows(arm[:, run], reward[:, run], rows, at, p[:, run]) for run in range(runs)]


def chosen_run(name: str, told: str, rng: np.random.Generator, runs: int) -> Events:
    """Count false "sure" in files of a policy, whose reader is not told that a policy chose."""
    found = Events(runs=runs)
    for run, rows in enumerate(chosen(POLICIES[name], rng, runs)):
        said = standing_of(rows, told, seed=run)
        found["wrong"] += said.sure
        found["any look"] += said.judged_for == "any"
    return found


def weighed_run(told: str, rng: np.random.Generator, runs: int) -> Events:
    """Count false "sure" in logs of Thompson sampling with normal rewards and known propensities.

    Every arm has a probability of at least .05.
    """
    found, at = Events(runs=runs), np.arange(runs)
    bought = rng.random((CHOSEN, runs)) < 0.1
    reward = np.where(bought, np.exp(rng.normal(3.0, 1.0, (CHOSEN, runs))), 0.0)
    arm, p = np.empty((CHOSEN, runs), np.int64), np.empty((CHOSEN, runs))
    counts, sums = np.ones((2, runs)), np.zeros((2, runs))
    for t, row in enumerate(reward / reward.std()):
        lead = (sums[1] / counts[1] - sums[0] / counts[0]) / np.sqrt((1 / counts).sum(axis=0))
        second = 0.05 + 0.9 * special.ndtr(lead)
        arm[t] = rng.random(runs) < second
        p[t] = np.where(arm[t] == 1, second, 1 - second)
        counts[arm[t], at] += 1
        sums[arm[t], at] += row
    time = np.linspace(0, 28 * DAY, CHOSEN, endpoint=False)
    for run in range(runs):
        rows = Rows(arm[:, run], reward[:, run], np.arange(CHOSEN), time, p[:, run])
        found["wrong"] += standing_of(rows, told, seed=run).sure
    return found


def chosen_cells() -> Iterator[Cell]:
    """Yield the cells of visits and of policies' own choices."""
    for name, world in RETURNING.items():
        if "no returning" not in name:
            run = partial(file_run, Visits(world))
            yield Cell("chosen", f"arms drawn for each visit, {name}", run, "wrong")
    for name in POLICIES:
        for told in ("", "time"):
            known = "time told" if told else "no time told"
            run_ = partial(chosen_run, name, told)
            yield Cell("chosen", f"two equal arms, chosen by {name}, {known}", run_, "wrong")
    for told in ("propensity", "propensity time"):
        known = told.replace(" ", " and ")
        weighed = partial(weighed_run, told)
        yield Cell("chosen", f"two equal arms, chosen by Thompson, {known} told", weighed, "wrong")


# Live, at any look


def live_run(world: traffic.Returning, policy: bool, rng: np.random.Generator, runs: int) -> Events:
    """Count pages that were ever sure, at one of 20 looks, of two equal arms.

    With `policy`, Thompson sampling chooses a customer's arm at the first visit.
    """
    found = Events(runs=runs)
    for run in range(runs):
        rows = world.draw(rng)
        if policy:
            rows = rows._replace(arm=sticky(rows, rng))
        end = float(rows.time[-1])
        ever = windows = False
        for look in np.linspace(end / LOOKS, end, LOOKS).tolist():
            seen = rows.time <= look
            columns = {
                name: getattr(rows, name)[seen] for name in ("arm", "reward", "unit", "time")
            }
            customers, _ = windows_closed(**columns, window=3 * DAY, now=look, arms=2)
            said = Standing(customers=customers, names=["A", "B"], looks="any", seed=run)
            windows |= said.customers.n > 0
            ever |= said.customers.n > 0 and said.sure
        found["wrong"] += ever
    return found


def sticky(rows: Rows, rng: np.random.Generator) -> Index:
    """Return arms that Thompson sampling gives customers at their first visits."""
    policy: Policy[Any] = ThompsonSampling()
    arms = np.eye(2)[None]
    state = policy.init(1, 2, 2)
    given = np.full(int(rows.unit.max()) + 1, -1)
    size = float(rows.reward.std())
    for unit, reward in zip(rows.unit.tolist(), (rows.reward / size).tolist(), strict=True):
        if given[unit] < 0:
            given[unit] = int(policy.choose(state, arms, rng)[0])
        policy.learn(state, arms, given[unit][None], np.array([[reward]]))
    return np.asarray(given[rows.unit])


def live_cells() -> Iterator[Cell]:
    """Yield the cells of pages."""
    for name, world in RETURNING.items():
        yield Cell(
            "live", f"20 looks, even split, {name}", partial(live_run, world, False), "wrong"
        )
    for name in ("ordinary returning", "wholesale: 20 make 30 % of visits"):
        world = replace(RETURNING[name], rows=5000, buyers=0.1)
        run = partial(live_run, world, True)
        yield Cell("live", f"20 looks, chosen by Thompson, {name}", run, "wrong")


# Power: sure as often as a planned test


def power_run(lift: float, world: Any, rng: np.random.Generator, runs: int) -> Events:
    """Count sure of the better arm, and Welch's test on totals, which is planned for that."""
    found = Events(runs=runs)
    better = replace(world, lifts=(1.0, 1 + lift))
    for run in range(runs):
        rows = better.draw(rng)
        said = standing_of(rows, seed=run)
        one, other = (said.customers.total[said.customers.arm == arm] for arm in (1, 0))
        found["sure"] += said.sure and said.best == 1
        capped = [said.capped[said.customers.arm == arm] for arm in (1, 0)]
        found["Welch"] += bool(
            stats.ttest_ind(one, other, equal_var=False).pvalue < 0.05 and one.mean() > other.mean()
        )
        found["Welch, capped"] += bool(
            stats.ttest_ind(*capped, equal_var=False).pvalue < 0.05
            and capped[0].mean() > capped[1].mean()
        )
    return found


def power_cells() -> Iterator[Cell]:
    """Yield the cells of power, at 60 000 visits."""
    for lift in (0.15, 0.3, 0.5):
        for name in ("no returning customers", "ordinary returning"):
            world = replace(RETURNING[name], rows=60_000)
            run = partial(power_run, lift, world)
            yield Cell("power", f"+{lift:.0%}, 60 000 visits, {name}", run, "sure", -math.inf)


CELLS: dict[str, Callable[[], Iterator[Cell]]] = {
    "file": file_cells,
    "sound": sound_cells,
    "chosen": chosen_cells,
    "live": live_cells,
    "power": power_cells,
}
