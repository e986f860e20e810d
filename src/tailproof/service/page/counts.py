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
from tailproof.stats.followed import Followed
from tailproof.stats.timeline import Timeline
from tailproof.stats.uplift import CONTROL, OTHER, POLICY, Decided
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    from tailproof.service.experiments import Experiment

__all__ = ["LISTED", "Counts", "counted"]

LISTED = 50
"""The most arms in tables; if there are more, none gets a value by weights."""
_CHUNK = 20_000
"""How many outcomes are read at once, in 0.1 to 0.2 seconds: an answer waits for no more."""
_LATELY = 1000
"""An arm is no longer on offer if none of this many latest tickets could have got it."""
_ROUNDED = 1e-8
"""By how much shares of a journal may be rounded up: they have nine digits."""
_OUTSIDE = 1e-9
"""A smaller share of all rewards outside of windows is rounding: sums are made in two ways."""
_GROUPS = {None: POLICY, "control": CONTROL}
_READ = ("requests", "came", "rewards", "orders", "sold")
_COUNTED = ("offered", "pruned", "pending", "late", "late_sum")


class Counts:
    """What the journal of an experiment says so far, in memory that does not grow with it.

    `refresh` reads a chunk of new outcomes. Once all are read, the counts depend on the journal
    only, not on how often they were refreshed.

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
    followed : Followed
        The customers, and whether it paid.
    timeline : Timeline
    """

    def __init__(self, journal: Journal, aim: Aim, *, costs: bool = False) -> None:
        self.reader, self.aim, self.costs = Reader(journal), aim, costs
        self.read = self.ended = 0
        self.numbers: dict[str, int] = {}
        self.followed, self.timeline = Followed(aim), Timeline(aim.level)
        self.cancelled = self.again = 0
        self.features = False
        self.ignored: dict[str, tuple[int, float]] = {}
        self.notes: list[Note] = []
        self.recipe: Recipe | None = None
        self._asked = 0.0
        self._by_arm: dict[str, Array] = {name: np.zeros(0) for name in (*_READ, *_COUNTED)}

    @property
    def by_arm(self) -> dict[str, Array]:
        """The counts of each arm.

        ``requests`` with an outcome; those whose reward ``came``; ``rewards``, those of silence
        too; ``orders``, rewards that are not zero, and what they ``sold``; ``customers``,
        ``buyers`` and their ``revenue``; ``offered``, how many requests there were when the arm was
        last on offer; requests that were ``pruned`` before they were read, or are ``pending``;
        rewards that came ``late``, and their ``late_sum``.
        """
        return self._by_arm | self.followed.by_arm

    @property
    def requests(self) -> int:
        """How many requests with an outcome were read."""
        return int(self._by_arm["requests"].sum())

    @property
    def noun(self) -> str:
        """What one observation is called."""
        return "customer" if self.followed.units else "request"

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
    def dependent(self) -> bool:
        """Whether units came back, and each of their rewards counts, although they are alike."""
        return self.again > 0 and not self.followed.units

    @property
    def outside(self) -> float:
        """The sum of rewards of requests after their customer's window."""
        if not self.followed.units or self.followed.restored:
            return 0.0
        told, revenue = (float(self.by_arm[name].sum()) for name in ("sold", "revenue"))
        outside = told - revenue - self.followed.windows.waiting_for
        return outside if abs(outside) > _OUTSIDE * abs(told) else 0.0

    @property
    def weighted(self) -> int:
        """For how many arms values are estimated by weights."""
        wanted = self.features and self.aim.level is None and len(self.numbers) <= LISTED
        return len(self.numbers) if wanted else 0

    @property
    def here(self) -> NDArray[np.bool_]:
        """Which arms are still on offer."""
        lately = self._by_arm["offered"] > self.requests - _LATELY
        return np.asarray(lately | (self._by_arm["pending"] > 0))

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
                pause = self.followed.until(self.read)
                end = min(pause, stop)
                self._take(reader.outcomes(self.read, end))
                self.read = end
                if end == pause:
                    self.followed.settle(pause, self._asked)
            if self.read == self.ended:
                self._count_open()
        return self.read == self.ended

    def kept(self, first: int) -> bytes:
        """Return the counts for "did it pay" if outcomes before number `first` are removed."""
        while not self.refresh(first):
            pass
        return self.followed.packed()

    def _begin(self) -> None:
        """Start at the first outcome, with the counts that were kept of removed ones."""
        self.read = self.followed.start = self.reader.first()
        kept = self.reader.kept()
        if kept is not None:
            self.followed.restore(kept)
        self._by_arm["pruned"] = np.zeros(len(self.numbers))
        for note in self.notes:
            for name, gone in note.text["arms"].items() if note.kind == "prune" else ():
                self._by_arm["pruned"][self.numbers[name]] += gone["requests"]

    def _count_open(self) -> None:
        """Count requests without an outcome, and rewards that came too late or were not stored."""
        self.ignored = self.reader.ignored()
        for name in ("pending", "late", "late_sum"):
            self._by_arm[name] = np.zeros(len(self.numbers))
        for arm, count in self.reader.pending().items():
            self._by_arm["pending"][arm] = count
        for arm, (count, total) in self.reader.late().items():
            self._by_arm["late"][arm], self._by_arm["late_sum"][arm] = count, total

    def _add_arms(self, names: Collection[str]) -> None:
        """Add new arms."""
        for name in names:
            self.numbers[name] = len(self.numbers)
        for key, counts in self._by_arm.items():
            self._by_arm[key] = np.pad(counts, (0, len(names)))
        self.followed.add_arms(len(names))

    def _add(self, name: str, arms: Index, values: float | Array = 1.0) -> None:
        """Add to the counts of arms, in order: it matters not how rows are split between calls."""
        with np.errstate(invalid="ignore"):  # opposite infinities
            np.add.at(self._by_arm[name], arms, values)

    def _take(self, rows: Sequence[Outcome]) -> None:
        """Add requests with an outcome."""
        known = [row for row in rows if row.why != "cancelled"]
        self.cancelled += len(rows) - len(known)
        if not known:
            return
        decided, waits = self._decided(known), self._waits({row.recipe for row in known})
        arms, rewards = decided.arm, decided.reward
        asked, told = np.array([row.asked for row in known]), ~np.isnan(rewards)
        self.followed.add(
            decided,
            units=[row.unit if row.recipe in waits else None for row in known],
            again=np.array([bool(row.again) for row in known]),
            asked=asked,
            length=np.array([waits.get(row.recipe, 0.0) for row in known]),
        )
        self._add("requests", arms)
        self._add("came", arms[np.array([row.why == "told" for row in known])])
        self._add("rewards", arms[told])
        self._add("orders", arms[told & (rewards != 0)])
        self._add("sold", arms[told], rewards[told])
        self.again += sum(row.again for row in known)
        self._asked = max(self._asked, float(asked.max()))
        scale = self.followed.worth.scale
        if scale is not None and self.aim.level is None:  # a quantile's scale is of shares
            rewards = np.clip(rewards, scale.low, scale.high)
        live = np.array([row.group != "history" for row in known])
        if live.any():
            self.timeline.add(arms[live], asked[live], rewards[live], len(self.numbers))

    def _waits(self, numbers: Collection[int]) -> dict[int, float]:
        """Return the windows of recipes whose rewards add up: of money, where silence is 0."""
        recipes = {number: self.reader.recipe(number) for number in numbers}
        return {
            number: float(recipe.wait)
            for number, recipe in recipes.items()
            if recipe
            and recipe.silence is not None
            and math.isfinite(float(recipe.wait))
            and self.aim.level is None
        }

    def _offered(self, number: int, request: int) -> list[int]:
        """Return the numbers of the arms of an offer, and note when they were last offered."""
        offer = self.reader.offer(number)
        self.features |= offer.vectors is not None
        arms = [self.numbers[name] for name in offer.names]
        self._by_arm["offered"][arms] = np.maximum(self._by_arm["offered"][arms], request)
        return arms

    def _decided(self, rows: Sequence[Outcome]) -> Decided:
        """Return requests as decisions, to compare them with other rules."""
        last = {row.offer: i for i, row in enumerate(rows, self.requests + 1)}
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


def _least(shares: str | None) -> float:
    """Return a lower bound on the propensities, which are rounded; NaN if they are not known."""
    return math.nan if shares is None else min(json.loads(shares)) * (1 - _ROUNDED)


def counted(experiment: "Experiment") -> Callable[[int], bytes]:
    """Return a function with the counts that `prune` keeps, so that "did it pay" goes on."""

    def page(first: int) -> bytes:
        counts = Counts(experiment.reader(), experiment.settings.aim)
        try:
            return counts.kept(first)
        finally:
            counts.reader.close()

    return page
