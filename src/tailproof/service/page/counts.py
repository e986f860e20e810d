"""The counts of an experiment: each outcome of the journal is read once, by its number."""

import json
import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tailproof.live import Journal, Recipe
from tailproof.live.reading import Note, Outcome, Reader
from tailproof.stats.aims import Aim
from tailproof.stats.first_windows import FirstWindows
from tailproof.stats.histograms import FEWEST, Histogram
from tailproof.stats.stored import packed, unpacked
from tailproof.stats.timeline import Timeline
from tailproof.stats.uplift import CONTROL, OTHER, POLICY, Decided, Worth
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    from tailproof.service.experiments import Experiment

__all__ = ["LISTED", "Counts", "counted"]

LISTED = 50
"""The most arms in tables; if there are more, none gets a value by weights."""
_ALL_CELLS = 2**20
"""Cells in all histograms, 24 MB; with more than 64 arms each has fewer than 2¹⁴, at least 2¹²."""
_CHUNK = 20_000
"""About how many tickets are read at once, in a few hundredths of a second."""
_LATELY = 1000
"""An arm is no longer on offer if none of this many latest tickets could have got it."""
_ROUNDED = 1e-8
"""By how much shares of a journal may be rounded up: they have nine digits."""
_OUTSIDE = 1e-9
"""A smaller share of all rewards outside of windows is rounding: sums are made in two ways."""
_GROUPS = {None: POLICY, "control": CONTROL}
_READ = ("requests", "came", "rewards", "orders", "sold", "customers", "buyers", "revenue")
_COUNTED = ("offered", "pruned", "pending", "late", "late_sum")


class Counts:
    """What the journal of an experiment says so far, in memory that does not grow with it.

    `refresh` reads a chunk of new outcomes. Once all are read, the counts depend on the journal
    only, not on how often they were refreshed.

    An arm is judged by its customers: see `_by_unit`. A customer takes 8 or 16 bytes, while arms
    are compared.

    Parameters
    ----------
    journal : Journal
        Read in short transactions that block nobody; not the agent's own connection.
    aim : Aim
        The statistic that arms are compared by.
    costs : bool
        Whether rewards are costs, so that smaller is better.

    Attributes
    ----------
    read, ended : int
        How many outcomes are read, and how many there are.
    numbers : dict
        The number of each arm, by name.
    samples : list of Histogram
        The total of each customer of an arm.
    by_arm : dict of arrays
        For each arm: ``requests`` with an outcome; those whose reward ``came``; ``rewards``, those
        of silence too; ``orders``, rewards that are not zero, and what they ``sold``;
        ``customers``, ``buyers`` and their ``revenue``; ``offered``, how many requests there were
        when the arm was last on offer; requests that were ``pruned`` before they were read, or are
        ``pending``; rewards that came ``late``, and their ``late_sum``.
    worth : Worth
        Whether the rule paid, and the cost of exploring.
    """

    def __init__(self, journal: Journal, aim: Aim, *, costs: bool = False) -> None:
        self.reader, self.aim, self.costs = Reader(journal), aim, costs
        self.read = self.ended = self._start = 0
        self.numbers: dict[str, int] = {}
        self.samples: list[Histogram] = []
        self.by_arm: dict[str, Array] = {name: np.zeros(0) for name in (*_READ, *_COUNTED)}
        self.cancelled = self.again = self.customers = 0
        self.features = self.units = self.resumed = False
        self.worth, self.timeline = Worth(aim), Timeline(aim.level)
        self.windows, self._brought = FirstWindows(), Histogram()
        self.ignored: dict[str, tuple[int, float]] = {}
        self.notes: list[Note] = []
        self.recipe: Recipe | None = None
        self._asked = 0.0

    @property
    def requests(self) -> int:
        """How many requests with an outcome were read."""
        return int(self.by_arm["requests"].sum())

    @property
    def noun(self) -> str:
        """What one observation is called."""
        return "customer" if self.units else "request"

    @property
    def control(self) -> str | None:
        """The arm of the control group."""
        return self.recipe.control[0] if self.recipe and self.recipe.control else None

    @property
    def window(self) -> float:
        """The seconds in which rewards count."""
        return float(self.recipe.wait) if self.recipe else math.inf

    @property
    def silence(self) -> float | None:
        """The reward of a request that brought none; None if such a reward is lost."""
        given = None if self.recipe is None else self.recipe.silence
        return None if given is None else float(given)

    @property
    def positive(self) -> bool:
        """Whether no reward below zero was seen, so that percentages mean something."""
        return all(len(sample.lows) == 0 or sample.lows[0] >= 0 for sample in self.samples)

    @property
    def outside(self) -> float:
        """The sum of rewards of requests after their customer's window."""
        if not self.units or self.resumed:
            return 0.0
        told, revenue = (float(self.by_arm[name].sum()) for name in ("sold", "revenue"))
        outside = told - revenue - self.windows.waiting_for
        return outside if abs(outside) > _OUTSIDE * abs(told) else 0.0

    @property
    def weighted(self) -> int:
        """For how many arms values are estimated by weights."""
        wanted = self.features and self.aim.level is None and len(self.numbers) <= LISTED
        return len(self.numbers) if wanted else 0

    @property
    def here(self) -> NDArray[np.bool_]:
        """Which arms are still on offer."""
        lately = self.by_arm["offered"] > self.requests - _LATELY
        return np.asarray(lately | (self.by_arm["pending"] > 0))

    def refresh(self, until: int | None = None) -> bool:
        """Read a chunk of new outcomes, at most until a number; return whether none is left."""
        reader = self.reader
        with reader.moment():
            self.ended = reader.count() if until is None else until
            self.recipe = reader.recipe()
            self.notes += reader.notes(len(self.notes))
            self._add_arms(reader.arms(len(self.numbers)))
            if self.read == 0:
                self._begin()
            stop = min(self.read + _CHUNK, self.ended)
            while self.read < stop:
                pause = self._start + self.worth.until(self.read - self._start)
                end = min(pause, stop)
                self._take(reader.outcomes(self.read, end))
                self.read = end
                if end == pause:
                    self.worth.settle(pause - self._start, self._judged, self._asked)
            if self.read == self.ended:
                self._count_open()
        return self.read == self.ended

    def kept(self, first: int) -> bytes:
        """Return the counts for "did it pay" if outcomes before number `first` are removed."""
        while not self.refresh(first):
            pass
        brought = Histogram()
        for sample in self._judged:
            brought.join(sample)
        return packed(
            {
                "aim": repr(self.aim),
                "start": self._start,
                "worth": self.worth.state,
                "windows": self.windows,
                "brought": brought,
                "units": self.units,
                "customers": self.customers,
            }
        )

    @property
    def _judged(self) -> list[Histogram]:
        """What customers brought, from which the range of rewards is learned."""
        return [self._brought] if self.units or self.resumed else self.samples

    def _begin(self) -> None:
        """Start at the first outcome; go on with counts of removed ones if the aim is the same."""
        self.read = self._start = self.reader.first()
        kept = self.reader.kept()
        state = {} if kept is None else unpacked(kept)
        if state.get("aim") == repr(self.aim):
            self.worth = Worth(self.aim, **state["worth"])
            self._start, self.units, self.resumed = state["start"], state["units"], True
            self.windows, self._brought = state["windows"], state["brought"]
            self.customers = state["customers"]
        self.by_arm["pruned"] = np.zeros(len(self.numbers))
        for note in self.notes:
            for name, gone in note.text["arms"].items() if note.kind == "prune" else ():
                self.by_arm["pruned"][self.numbers[name]] += gone["requests"]

    def _count_open(self) -> None:
        """Count requests without an outcome, and rewards that came too late or were not stored."""
        self.ignored = self.reader.ignored()
        for name in ("pending", "late", "late_sum"):
            self.by_arm[name] = np.zeros(len(self.numbers))
        for arm, count in self.reader.pending().items():
            self.by_arm["pending"][arm] = count
        for arm, (count, total) in self.reader.late().items():
            self.by_arm["late"][arm], self.by_arm["late_sum"][arm] = count, total

    def _add_arms(self, names: Collection[str]) -> None:
        """Add new arms; all arms together share the cells."""
        for name in names:
            self.numbers[name] = len(self.numbers)
            self.samples.append(Histogram())
        for sample in self.samples if names else []:
            sample.limit(max(FEWEST, _ALL_CELLS // len(self.samples)))
        for key, counts in self.by_arm.items():
            self.by_arm[key] = np.pad(counts, (0, len(names)))

    def _add(self, name: str, arms: Index, values: float | Array = 1.0) -> None:
        """Add to the counts of arms, in order: it matters not how rows are split between calls."""
        with np.errstate(invalid="ignore"):  # opposite infinities
            np.add.at(self.by_arm[name], arms, values)

    def _take(self, rows: Sequence[Outcome]) -> None:
        """Add requests with an outcome."""
        known = [row for row in rows if row.why != "cancelled"]
        self.cancelled += len(rows) - len(known)
        if not known:
            return
        decided = self._decided(known)
        arms, rewards = decided.arm, decided.reward
        complete = self._by_unit(known, decided)
        self.worth.add(complete)
        self._add_customers(complete)
        drawn = np.where(decided.control_share > 0, decided.group, OTHER)
        self.worth.add_rewards(drawn, rewards)
        told = ~np.isnan(rewards)
        self._add("requests", arms)
        self._add("came", arms[np.array([row.why == "told" for row in known])])
        self._add("rewards", arms[told])
        self._add("orders", arms[told & (rewards != 0)])
        self._add("sold", arms[told], rewards[told])
        self.again += sum(row.again for row in known)
        asked, scale = np.array([row.asked for row in known]), self.worth.scale
        self._asked = max(self._asked, float(asked.max()))
        if scale is not None and self.aim.level is None:  # a quantile's scale is of shares
            rewards = np.clip(rewards, scale.low, scale.high)
        live = np.array([row.group != "history" for row in known])
        if live.any():
            self.timeline.add(arms[live], asked[live], rewards[live], len(self.numbers))

    def _offered(self, number: int, request: int) -> list[int]:
        """Return the numbers of the arms of an offer, and note when they were last offered."""
        offer = self.reader.offer(number)
        self.features |= offer.vectors is not None
        arms = [self.numbers[name] for name in offer.names]
        self.by_arm["offered"][arms] = np.maximum(self.by_arm["offered"][arms], request)
        return arms

    def _decided(self, rows: Sequence[Outcome]) -> Decided:
        """Return requests as decisions, to compare them with other rules."""
        last = {row.offer: self.requests + i for i, row in enumerate(rows, 1)}
        offers = {number: self._offered(number, request) for number, request in last.items()}
        controls = [self._control_of(row, offers[row.offer]) for row in rows]
        there = np.zeros((len(rows), self.weighted), dtype=bool)
        for i, row in enumerate(rows if self.weighted else ()):
            there[i, offers[row.offer]] = True
        return Decided(
            arm=np.array([row.arm for row in rows]),
            offered=np.array([len(offers[row.offer]) for row in rows], dtype=np.float64),
            share=np.array([row.propensity for row in rows], dtype=np.float64),  # None is NaN
            least=np.array([_least(row.shares) for row in rows]),
            explore=np.array([self.reader.even(row.recipe, row.offer) for row in rows]),
            group=np.array([OTHER if row.again else _GROUPS.get(row.group, OTHER) for row in rows]),
            control_share=np.array([share for share, _ in controls]),
            is_control=np.array([flag for _, flag in controls]),
            reward=np.array([row.reward for row in rows], dtype=np.float64),
            there=there,
            times=np.ones(len(rows)),
        )

    def _control_of(self, row: Outcome, offer: Collection[int]) -> tuple[float, bool]:
        """Return the probability of the control group, and whether the arm is the control's."""
        recipe = self.reader.recipe(row.recipe)
        if recipe is None or recipe.control is None:
            return 0.0, False
        arm, share = recipe.control
        number = self.numbers.get(arm, -1)
        return (share, row.arm == number) if number in offer else (0.0, False)

    def _by_unit(self, rows: Sequence[Outcome], decided: Decided) -> Decided:
        """Return decisions that are complete: a unit, with its total in its window.

        Without units each request is another customer. Only money adds up: the aim is a mean, and
        silence has a reward.
        """
        rules = {number: self.reader.recipe(number) for number in {row.recipe for row in rows}}
        waits = {
            number: float(rule.wait)
            for number, rule in rules.items()
            if rule and rule.silence is not None and math.isfinite(float(rule.wait))
        }
        adds = self.aim.level is None
        units = [row.unit if adds and row.recipe in waits else None for row in rows]
        self.units |= any(unit is not None for unit in units)
        if self.units:
            pairs = zip(rows, units, strict=True)
            decided = self.windows.add(
                decided,
                units=units,
                again=np.array([bool(row.again) and unit is not None for row, unit in pairs]),
                asked=np.array([row.asked for row in rows]),
                length=np.array([waits.get(row.recipe, 0.0) for row in rows]),
            )
        if self.units or self.resumed:
            counted = (decided.group != OTHER) | (not self.units)
            self._brought.add(decided.reward[counted & ~np.isnan(decided.reward)])
        return decided

    def _add_customers(self, rows: Decided) -> None:
        """Add customers, with their totals, to their arms."""
        self.customers += len(rows.arm)
        known = ~np.isnan(rows.reward)
        arms, totals = rows.arm[known], rows.reward[known]
        for number in np.unique(arms).tolist():
            self.samples[number].add(totals[arms == number])
        self._add("customers", arms)
        self._add("buyers", arms[totals != 0])
        self._add("revenue", arms, totals)


def _least(shares: str | None) -> float:
    """Return a lower bound on the propensities, which are rounded; NaN if they are not known."""
    return math.nan if shares is None else min(json.loads(shares)) * (1 - _ROUNDED)


def counted(experiment: "Experiment") -> Callable[[int], bytes]:
    """Return what gives `prune` the counts that it keeps, so that "did it pay" goes on."""

    def page(first: int) -> bytes:
        counts = Counts(experiment.reader(), experiment.settings.aim)
        try:
            return counts.kept(first)
        finally:
            counts.reader.close()

    return page
