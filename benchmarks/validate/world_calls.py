"""Cells of ``make bench-worlds`` that call `calibrate` as a user does, in worlds to refute it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from world_cells import RARE, RETURNING, TIME, Cell, Events, Visits, standing_of

from tailproof import CappedMean, LinStudentUCB, calibrate
from tailproof.environments import traffic
from tailproof.environments.traffic import Rows
from tailproof.stats.periods import DAY

NAMES = np.array(list("ABCD"))
LOOKS = 20


class Leaky(NamedTuple):
    """Wholesale customers of one arm who saw the other one once, at their last visit."""

    world: traffic.Returning

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        rows = self.world.draw(rng)
        arm = rows.arm.copy()
        for unit in range(self.world.heavy):
            own = np.flatnonzero(rows.unit == unit)
            if len(own) > 1 and arm[own[0]] == 0:
                arm[own[-1]] = 1
        return rows._replace(arm=arm)


class MoreVisits(NamedTuple):
    """Customers of the second arm come more often, and bring the same."""

    customers: int = 10_000

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        arm = rng.integers(0, 2, self.customers)
        visits = 1 + rng.poisson(np.where(arm == 1, 2.0, 0.5))
        total = np.where(rng.random(len(arm)) < 0.08, np.exp(rng.normal(3, 1, len(arm))), 0.0)
        unit = np.repeat(np.arange(len(arm)), visits)
        place = np.arange(len(unit)) - (np.cumsum(visits) - visits)[unit]
        at = (14 * rng.random(len(arm))[unit] + 0.7 * place) * DAY
        half = np.full(len(unit), 0.5)
        rows = Rows(arm[unit], np.where(place == 0, total[unit], 0.0), unit, at, half)
        return rows.take(np.ones(len(unit), np.bool_)).joined()


class Refunds(NamedTuple):
    """Half of the orders come back a day later, some with a fee."""

    world: traffic.Returning

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        rows = self.world.draw(rng)
        back = rows.take((rows.reward > 0) & (rng.random(len(rows.arm)) < 0.5))
        factor = rng.choice([1.0, 1.0, 1.3], len(back.arm))
        return rows.joined(back._replace(reward=-factor * back.reward, time=back.time + DAY))


class VisitsRamp(NamedTuple):
    """Arms drawn for each visit of returning customers, while shares ramp and the shop grows."""

    world: traffic.Stretched

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        rows = self.world.draw(rng)
        return rows._replace(unit=rng.integers(0, len(rows.arm) // 3, len(rows.arm)))


HELD_OUT: dict[str, Any] = {
    "an arm shown at night, when twice as many buy": traffic.Scheduled(
        share=0.0, night=0.5, night_sales=2
    ),
    "an arm shown more often at night, 1.4 times the sales": traffic.Scheduled(
        rows=40_000, share=0.1, night=0.5, night_sales=1.4
    ),
    "an arm shown on weekends, when twice as many buy": traffic.Scheduled(
        share=0.0, weekend=0.5, weekend_sales=2
    ),
    "an arm shown mostly on weekends, 2 times the sales": traffic.Scheduled(
        share=0.01, weekend=0.5, weekend_sales=2
    ),
    "arms drawn by visit, share 5 → 50 %, sales double": VisitsRamp(
        traffic.Stretched(start=0.05, end=0.5, growth=2)
    ),
    "customers of one arm come oftener and bring the same": MoreVisits(),
    "refunds": Refunds(traffic.Returning(buyers=0.06)),
    "refunds, wholesale": Refunds(RETURNING["wholesale: 20 make 30 % of visits"]),
    "wholesale customers of one arm saw both": Leaky(
        RETURNING["wholesale: 20 make 30 % of visits"]
    ),
    "shares set daily by Thompson sampling, 14 days": traffic.Batches(),
    "shares set daily by Thompson sampling, 28 days, sales double": traffic.Batches(
        rows=28_000, days=28, growth=2
    ),
    "the leader gets 90 % after a week": traffic.Batches(every=7, kind="greedy"),
    "the leader gets 90 %, set weekly, 28 days": traffic.Batches(days=28, every=7, kind="greedy"),
    "the leader gets 90 %, set daily": traffic.Batches(kind="greedy"),
}


def call(rows: Rows, told: str = "unit time", **settings: Any) -> Any:
    """Return what `calibrate` says of a file whose columns are `told`."""
    columns = {name: getattr(rows, name) for name in told.split()}
    return calibrate(arm=NAMES[rows.arm], reward=rows.reward, **columns, **settings)


def calibrate_run(
    world: Any,
    rng: np.random.Generator,
    runs: int,
    *,
    told: str = "unit time",
    best: str = "",
    words: str = "",
    means_only: bool = False,
    of: str = "",
    largest: float | None = None,
) -> Events:
    """Count files in which `calibrate` is sure of an arm that is not better, under any aim.

    Beside it: by aim, advice of a location, and the words.
    """
    found = Events(runs=runs)
    for _ in range(runs):
        said = call(world.draw(rng), told, aim=CappedMean(0.99), largest=largest)
        leads = said.leaders
        if means_only:
            leads = {aim: lead for aim, lead in leads.items() if "mean" in aim}
        leads = {aim: lead for aim, lead in leads.items() if not of or aim == of}
        wrong = [aim for aim, lead in leads.items() if lead.sure and lead.arm not in best]
        found.update(f"sure by {aim}" for aim in wrong)
        found["wrong"] += bool(wrong)
        found["location"] += isinstance(said.policy(), LinStudentUCB)
        if words:
            text = said.explain()
            found["told"] += any(part in text for part in words.split(" | "))
    return found


def control_run(world: Any, rng: np.random.Generator, runs: int) -> Events:
    """Count files in which any arm is better or ruled out against the control, by Holm."""
    found = Events(runs=runs)
    for run in range(runs):
        said = standing_of(world.draw(rng), seed=run)
        pairs = said.against(said.names[0]).values()
        found["wrong"] += any(min(up, down) <= 0.025 for _, up, down in pairs)
    return found


def again_run(world: traffic.Returning, rng: np.random.Generator, runs: int) -> Events:
    """Count files that were ever sure as they grew: read 20 times with looks="any", by unit."""
    found = Events(runs=runs)
    for run in range(runs):
        rows, ever = world.draw(rng), False
        for n in np.linspace(0, len(rows.arm), LOOKS + 1).astype(int)[1:]:
            part = rows.take(np.arange(len(rows.arm)) < n)
            ever |= standing_of(part, "unit", looks="any", seed=run).sure
        found["wrong"] += ever
    return found


def location_run(rng: np.random.Generator, runs: int) -> Events:
    """Count files in which a location is advised, where median and capped mean disagree (C13)."""
    found = Events(runs=runs)
    for _ in range(runs):
        arm = rng.integers(0, 2, 800)
        steady = 1.5 + 0.5 * rng.standard_normal(800)
        skewed = np.exp(0.35 + 1.17 * rng.standard_normal(800))
        reward = np.where(arm == 1, skewed, steady + 0.9)
        said = calibrate(arm=NAMES[arm], reward=reward, aim=CappedMean(0.99))
        found["wrong"] += isinstance(said.policy(), LinStudentUCB)
    return found


def call_cells() -> Iterator[Cell]:
    """Yield the cells of calls."""

    def cell(
        name: str, world: Any, counted: str = "wrong", most: float = 0.05, **more: Any
    ) -> Cell:
        run = partial(calibrate_run, world, **more)
        return Cell("calibrate", name, run, counted, most, more.get("words", ""))

    for name, world in RETURNING.items():
        yield cell(f"A/A, {name}", world)
    for name, world in (TIME | HELD_OUT).items():
        yield cell(name, world)
    for name, rare in RARE.items():
        yield cell(f"rare and dear: {name}", rare, most=0.03, best="B", means_only=True)
    yield cell("shares by segment, propensity told", traffic.Segments(), told="unit propensity")
    for n in (1500, 6000):
        also = traffic.RareDear(rows=(n, n), also=0.02, rarely=9 / n / 6, dear=12.0 * n / 9)
        yield cell(
            f"rare and dear: sells cheaply too, largest= told, {n} rows",
            also, most=0.03, best="B", means_only=True, largest=12.0 * n / 9, of="mean",
        )  # fmt: skip
    drawn = "drawn at random"
    yield cell(
        "broken: shares by segment, not told", traffic.Segments(), "told", -0.95,
        told="unit", words=drawn,
    )  # fmt: skip
    mixed = traffic.RareDear(rows=(3000, 3000), also=0.02)
    yield cell(
        "broken: dear arm sells cheaply too, .1 % at 1999", mixed, "told", -0.95,
        best="B", words="capped at | do not exceed", means_only=True,
    )  # fmt: skip


def other_cells() -> Iterator[Cell]:
    """Yield the cells of controls, growing files and locations."""
    for name in ("ordinary returning", "wholesale: 20 make 30 % of visits"):
        world = replace(RETURNING[name], lifts=(1.0, 1.0, 1.0, 1.0))
        run = partial(control_run, world)
        yield Cell("control", f"three equal arms against a control, {name}", run, "wrong")
        visits = Visits(RETURNING[name])
        yield Cell("control", f"arms drawn by visit, {name}", partial(control_run, visits), "wrong")
    for name in ("ordinary returning", "wholesale: 20 make 30 % of visits"):
        run = partial(again_run, RETURNING[name])
        yield Cell("again", f"a file read 20 times as it grows, any look, {name}", run, "wrong")
    yield Cell(
        "location", "median and capped mean disagree, 400 rows an arm", location_run, "wrong"
    )


CELLS = {
    "calibrate": call_cells,
    "control": lambda: (cell for cell in other_cells() if cell.part == "control"),
    "again": lambda: (cell for cell in other_cells() if cell.part == "again"),
    "location": lambda: (cell for cell in other_cells() if cell.part == "location"),
}
