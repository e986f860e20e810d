"""A summary of a journal: did it pay, who leads, the cost of exploring, and is the data sound."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.live import Journal, Recipe
from tailproof.live.reading import Note, Outcome, Reader
from tailproof.service.page import sentences
from tailproof.service.page.arms import Arm, Lift, added, first, least, lift_shown, lifts, state
from tailproof.service.page.checks import sound
from tailproof.service.page.kept import of_worth, packed, unpacked
from tailproof.service.page.timeline import History, plain
from tailproof.stats.aims import Aim
from tailproof.stats.comparison import LEVEL, Comparison, Unbounded
from tailproof.stats.first_windows import FirstWindows
from tailproof.stats.histograms import FEWEST, Histogram
from tailproof.stats.uplift import CONTROL, OTHER, POLICY, Decided, Worth
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    from tailproof.service.experiments import Experiment

Flags = NDArray[np.bool_]

__all__ = ["Summary"]

_ALL_CELLS = 2**20
"""Cells in all histograms, 24 MB; with more than 64 arms each has fewer than 2¹⁴, at least 2¹²."""
_CHUNK = 20_000
"""About how many tickets are read at once, in a few hundredths of a second."""
_LATELY = 1000
"""An arm is no longer on offer if none of this many latest tickets could have got it."""
_LISTED = 50
"""The most arms in tables; if there are more, none gets a value by weights."""
_GROUPS = {None: POLICY, "control": CONTROL}
_RETURNED = (
    "Units came back, and rewards of one unit that do not add up are not independent: nothing is "
    "called sure. `tailproof judge` counts units."
)


class Summary:
    """A summary of an experiment, in memory that does not grow with its journal.

    `refresh` reads a chunk of new rows of the journal, and `to_dict` returns the summary so far.
    Once all is read, the result depends on the journal only, not on how often it was refreshed.

    Whether it paid, and the cost of exploring, are computed by `Worth` from the probabilities with
    which requests got their arms, so no law of the rewards is assumed.

    An arm is judged by all its customers, from a `Histogram` of their totals; without units each
    request is another customer. A customer takes 8 or 16 bytes, while arms are compared. The arm
    on offer with the best estimate leads; it is sure if there is enough evidence over every other
    arm on offer. For a given set of arms, all intervals together hold at all looks with 95 %
    confidence, and so does a sure lead, whatever the policy chose, if rewards depend neither on
    when they are asked for nor on how long they take; which parts of this are proved depends on the
    aim. If requests have features, a policy may choose arms by them: then an arm is judged by the
    weighted estimate of the reward if it alone had been shown, and a lead is sure if its interval
    is above all others.

    The history is kept in buckets with equal numbers of tickets; when 32 are full, neighbours are
    merged.

    Parameters
    ----------
    journal : Journal
        Read in short transactions that block nobody; not the agent's own connection.
    aim : Aim
        The statistic that arms are compared by.
    costs : bool
        Whether rewards are costs, so that smaller is better.

    Examples
    --------
    >>> from tailproof import UCB1, AutoFiltered, Median
    >>> from tailproof.live import Agent
    >>> agent = Agent(AutoFiltered(UCB1()), ":memory:")
    >>> for reward in range(126):
    ...     status = agent.tell(agent.ask(["red", "blue"]).id, reward % 7)
    >>> summary = Summary(agent.journal, Median())
    >>> summary.refresh()
    True
    >>> found = summary.to_dict()
    >>> found["tickets"]["rewards"], [arm["estimate"] for arm in found["arms"]]
    (126, [3.0, 3.0])
    >>> found["lead"]["words"]
    'Nothing leads: blue and red are equal so far.'
    """

    def __init__(self, journal: Journal, aim: Aim, *, costs: bool = False) -> None:
        self.reader, self.aim, self.costs = Reader(journal), aim, costs
        self._arms: list[Arm] = []
        self._numbers: dict[str, int] = {}
        self.read = self.ended = self._start = 0
        self._requests = self._rewards = self._came = self._cancelled = self._again = 0
        self._features, self._asked = False, 0.0
        self.worth = Worth(aim)
        self._windows, self._brought, self._units = FirstWindows(), Histogram(), False
        self._resumed = False
        self._customers, self._told = 0, 0.0
        self._ignored: dict[str, tuple[int, float]] = {}
        self._lifts: dict[str, Lift] = {}
        self._history = History(self.worth.level)
        self._notes: list[Note] = []
        self._recipe: Recipe | None = None
        self._seen: tuple[Any, ...] = (0, None)  # nothing was compared yet
        self._table: Array = np.empty((0, 3))
        self._lead: dict[str, Any] = {}

    def refresh(self, until: int | None = None) -> bool:
        """Read a chunk of new outcomes, at most until a number; return whether none is left."""
        reader = self.reader
        with reader.moment():
            self.ended = reader.count() if until is None else until
            self._recipe = reader.recipe()
            self._notes += reader.notes(len(self._notes))
            self._add_arms(reader.arms(len(self._arms)))
            if self.read == 0:
                self.read = self._start = reader.first()
                self._resume(reader.kept())
                gone = [note.text["arms"] for note in self._notes if note.kind == "prune"]
                for arm in self._arms:
                    arm.pruned = sum(
                        counts[arm.name]["requests"] for counts in gone if arm.name in counts
                    )
            stop = min(self.read + _CHUNK, self.ended)
            while self.read < stop:
                pause = self._start + self.worth.until(self.read - self._start)
                rows = reader.outcomes(self.read, min(pause, stop))
                self._take(rows)
                self.read = min(pause, stop)
                if self.read == pause:
                    samples = [arm.sample for arm in self._arms]
                    samples = [self._brought] if self._units or self._resumed else samples
                    self.worth.settle(pause - self._start, samples, self._asked)
            if self.read == self.ended:
                self._count()
        return self.read == self.ended

    def kept(self, first: int) -> bytes:
        """Return the counts for "did it pay" if outcomes before number `first` are removed."""
        while not self.refresh(first):
            pass
        if not (self._units or self._resumed):
            for arm in self._arms:
                self._brought.join(arm.sample)
        return packed(
            {
                "aim": repr(self.aim),
                "start": self._start,
                "worth": of_worth(self.worth),
                "windows": self._windows,
                "brought": self._brought,
                "units": self._units,
                "customers": self._customers,
            }
        )

    def _resume(self, kept: bytes | None) -> None:
        """Go on with the counts that were kept of removed outcomes, if the aim is the same."""
        state = {} if kept is None else unpacked(kept)
        if state.get("aim") != repr(self.aim):
            return
        vars(self.worth).update(state["worth"])
        self._start, self._units, self._resumed = state["start"], state["units"], True
        self._windows, self._brought = state["windows"], state["brought"]
        self._customers = state.get("customers", 0)

    def _count(self) -> None:
        """Count requests without an outcome, and rewards that came too late."""
        pending, late = self.reader.pending(), self.reader.late()
        self._ignored = self.reader.ignored()
        for number, arm in enumerate(self._arms):
            arm.pending = pending.get(number, 0)
            arm.late, arm.late_sum = late.get(number, (0, 0.0))

    def _add_arms(self, names: Collection[str]) -> None:
        """Add new arms; all arms together share the cells."""
        for name in names:
            self._numbers[name] = len(self._arms)
            self._arms.append(Arm(name))
        for arm in self._arms if names else []:
            arm.sample.limit(max(FEWEST, _ALL_CELLS // len(self._arms)))

    def _take(self, rows: Sequence[Outcome]) -> None:
        """Add requests with an outcome."""
        self._cancelled += sum(row.why == "cancelled" for row in rows)
        rows = [row for row in rows if row.why != "cancelled"]
        if not rows:
            return
        first = self._requests
        last = {row.offer: first + i for i, row in enumerate(rows)}
        offers = {number: self._offered(number, request) for number, request in last.items()}
        arms = np.array([row.arm for row in rows])
        rewards = np.array([row.reward for row in rows], dtype=np.float64)  # None is NaN
        came = np.array([row.why == "told" for row in rows])
        self._add_worth(rows, rewards, offers)
        order = np.argsort(arms, kind="stable")
        numbers, starts = np.unique(arms[order], return_index=True)
        for number, positions in zip(numbers, np.split(order, starts[1:]), strict=True):
            arm, values = self._arms[number], rewards[positions]
            values = values[~np.isnan(values)]
            arm.requests += len(positions)
            arm.came += int(came[positions].sum())
            arm.rewards += len(values)
            arm.orders += int(np.count_nonzero(values))
            arm.sold = added(arm.sold, values)
        self._told = added(self._told, rewards[~np.isnan(rewards)])
        self._came += int(came.sum())
        self._again += sum(row.again for row in rows)
        self._rewards += int((~np.isnan(rewards)).sum())
        asked, scale = np.array([row.asked for row in rows]), self.worth.scale
        self._asked = max(self._asked, float(asked.max()))
        if scale is not None and self.worth.level is None:  # a quantile's scale is of shares
            rewards = np.clip(rewards, scale.low, scale.high)
        live = np.array([row.group != "history" for row in rows])
        if live.any():
            self._history.add(arms[live], asked[live], rewards[live], len(self._arms))
        self._requests += len(rows)

    def _offered(self, number: int, request: int) -> list[int]:
        """Return the numbers of the arms of an offer, and note when they were last offered."""
        offer = self.reader.offer(number)
        self._features |= offer.vectors is not None
        arms = [self._numbers[name] for name in offer.names]
        for arm in arms:
            self._arms[arm].offered = request
        return arms

    def _add_worth(
        self, rows: Sequence[Outcome], rewards: Array, offers: dict[int, list[int]]
    ) -> None:
        """Add requests to the comparison with other rules."""
        again = np.array([bool(row.again) for row in rows])
        share = [math.nan if row.propensity is None else row.propensity for row in rows]
        drawn = [self._control_of(row, offers[row.offer]) for row in rows]
        groups = np.array([_GROUPS.get(row.group, OTHER) for row in rows])
        groups[again] = OTHER
        there = np.zeros((len(rows), self._by_arm), dtype=bool)
        if self._by_arm:
            for i, row in enumerate(rows):
                there[i, offers[row.offer]] = True
        control_share = np.array([share for share, _ in drawn])
        decided = Decided(
            arm=np.array([row.arm for row in rows]),
            offered=np.array([len(offers[row.offer]) for row in rows], dtype=np.float64),
            share=np.array(share),
            least=np.array([least(row.shares) for row in rows]),
            explore=np.array([self.reader.even(row.recipe, row.offer) for row in rows]),
            group=groups,
            control_share=control_share,
            is_control=np.array([flag for _, flag in drawn]),
            reward=rewards,
            there=there,
            times=np.ones(len(rows)),
        )
        complete = self._by_unit(rows, decided, again)
        self.worth.add(complete)
        self._add_customers(complete.arm, complete.reward)
        self.worth.add_rewards(np.where(control_share > 0, groups, OTHER), rewards)

    def _add_customers(self, arms: Index, totals: Array) -> None:
        """Add customers, with their totals, to their arms."""
        self._customers += len(totals)
        for number in np.unique(arms).tolist():
            arm, of_arm = self._arms[number], totals[arms == number]
            of_arm = of_arm[~np.isnan(of_arm)]
            arm.sample.add(of_arm)
            arm.customers += len(of_arm)
            arm.buyers += int(np.count_nonzero(of_arm))
            arm.revenue = added(arm.revenue, of_arm)

    def _by_unit(self, rows: Sequence[Outcome], decided: Decided, again: Flags) -> Decided:
        """Return decisions that are complete: a unit, with its total in its window.

        Only money adds up: the aim is a mean, and silence has a reward.
        """
        rules = {number: self.reader.recipe(number) for number in {row.recipe for row in rows}}
        waits = {
            number: float(rule.wait)
            for number, rule in rules.items()
            if rule and rule.silence is not None and math.isfinite(float(rule.wait))
        }
        adds = self.worth.level is None
        units = [row.unit if adds and row.recipe in waits else None for row in rows]
        self._units |= any(unit is not None for unit in units)
        if not self._units:
            if self._resumed:
                self._brought.add(decided.reward[~np.isnan(decided.reward)])
            return decided
        complete = self._windows.add(
            decided,
            units=units,
            again=again & np.array([unit is not None for unit in units]),
            asked=np.array([row.asked for row in rows]),
            length=np.array([waits.get(row.recipe, 0.0) for row in rows]),
        )
        self._brought.add(complete.reward[(complete.group != OTHER) & ~np.isnan(complete.reward)])
        return complete

    def _control_of(self, row: Outcome, offer: Collection[int]) -> tuple[float, bool]:
        """Return the probability of the control group, and whether the arm is the control's."""
        recipe = self.reader.recipe(row.recipe)
        if recipe is None or recipe.control is None:
            return 0.0, False
        arm, share = recipe.control
        number = self._numbers.get(arm, -1)
        return (share, row.arm == number) if number in offer else (0.0, False)

    @property
    def _by_arm(self) -> int:
        """For how many arms values are estimated by weights."""
        wanted = self._features and self.worth.level is None and len(self._arms) <= _LISTED
        return len(self._arms) if wanted else 0

    def _compare(self, here: list[int]) -> None:
        """Compare the arms with all their rewards, if there is anything new.

        While the journal is still being read, this waits until there are twice as many rewards.
        """
        seen = self._rewards, self._features, len(self._arms), here, self._customers
        early = self.read < self.ended and self._rewards < 2 * self._seen[0]
        if seen == self._seen or (early and self._features == self._seen[1]):
            return
        self._seen = seen
        names, samples = [arm.name for arm in self._arms], [arm.sample for arm in self._arms]
        about, self._lifts = self._about_customers(sum(arm.customers for arm in self._arms)), {}
        how = [sentences.judged_words(self.aim, about)]
        self._lead = {"arm": None, "sure": False, "words": sentences.TOO_EARLY, "how": how[0]}
        if not here:
            self._table = np.empty((0, 3))
            return
        if self._by_arm:
            self._table = self._weighted()
            lead = first(names, here, self._table, costs=self.costs)
            told = sentences.weighted_words(lead)
            if self._again and not self._units and lead.sure:
                lead = lead._replace(sure=False)
                told["words"] = f"Alone, {lead.arm} would earn most so far. {_RETURNED}"
            self._lead = {"arm": lead.arm, "sure": lead.sure} | told
            return
        comparison = compared(self.aim, names, samples, costs=self.costs)
        if self._features:
            self._table = np.column_stack([comparison.values, np.full((len(names), 2), np.nan)])
            how.append("They are for the requests that got the arm, not for all requests.")
            self._lead |= {"words": sentences.BY_FEATURES, "how": " ".join(how)}
            return
        self._table = comparison.table
        if len(here) < len(names):
            names, lows, highs = (
                [part[i] for i in here] for part in (names, comparison.lows, comparison.highs)
            )
            comparison = replace(comparison, names=names, lows=lows, highs=highs)
        how += sentences.lead_how(self.aim, comparison.statistic)
        if not all(sample.exact for sample in samples):
            how.append("Rewards are rounded to save memory; intervals allow for that.")
        said = sentences.lead_words(self.aim, comparison, about.noun)
        self._lead = {"words": said, "how": " ".join(how)}
        self._lifts = {} if self._control is None else lifts(comparison, self._control)
        sure = comparison.lead.sure and (self._units or not self._again)
        if comparison.lead.sure and not sure:
            self._lead["words"] = f"{comparison.lead.arm} leads so far. {_RETURNED}"
        self._lead |= {"arm": comparison.lead.arm, "sure": sure}

    @property
    def _control(self) -> str | None:
        """The arm of the control group, if there is one."""
        recipe = self._recipe
        return None if recipe is None or recipe.control is None else recipe.control[0]

    def _about_customers(self, known: int | None = None) -> sentences.Counted:
        """Return how many customers there are, removed ones too, and which are not counted."""
        waiting = self._windows.waiting_for
        counted = sum(arm.revenue for arm in self._arms) + waiting
        outside = self._told - counted if self._units and not self._resumed else 0.0
        return sentences.Counted(
            known=self._customers if known is None else known,
            units=self._units,
            waiting=self._windows.open,
            outside=outside if abs(outside) > 1e-9 * abs(self._told) else 0.0,
            window=math.inf if self._recipe is None else float(self._recipe.wait),
        )

    def _weighted(self) -> Array:
        """Return a weighted estimate, with its interval, of each arm's reward if shown alone."""
        table, scale = np.full((len(self._arms), 3), math.nan), self.worth.scale
        level = 1 - (1 - LEVEL) / len(self._arms)
        for row, gain in zip(table, self.worth.arms, strict=False):
            estimate = gain.estimate(level)
            if estimate is not None and scale is not None:
                ends = np.clip([estimate.low, estimate.high], scale.low - estimate.other, math.inf)
                row[:] = estimate.first, *np.minimum(estimate.other + ends, scale.high)
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the page shows, as JSON values; infinities are strings."""
        here = [self._on_offer(arm) for arm in self._arms]
        self._compare([i for i, yes in enumerate(here) if yes])
        table = np.full((len(self._arms), 3), np.nan)
        table[: len(self._table)] = self._table
        signed = -table[:, 0] if self.costs else table[:, 0]
        order = sorted(
            range(len(self._arms)),
            key=lambda i: (not here[i], math.isnan(signed[i]), -signed[i], i),
        )
        every, recipe = self._arms, self._recipe
        missing = self._requests - self._came
        silence = None if recipe is None else recipe.silence
        silent = 0 if silence is None else missing
        return {
            "read": 1.0 if self.read == self.ended else self.read / self.ended,
            "recipe": "" if recipe is None else recipe.text,
            "aim": self.aim.name,
            "mean": self.worth.level is None,
            "weighted": bool(self._by_arm),
            "wait": plain(math.inf if recipe is None else float(recipe.wait)),
            "explore": 0.0 if recipe is None else recipe.explore,
            "floor": 0.0 if recipe is None else recipe.floor,
            "aim_words": sentences.aim_words(self.aim, self.costs),
            "costs": self.costs,
            "outcomes": self.ended,
            "customers": self._about_customers().to_dict(),
            "silence": silence,
            "rewards": "first" if recipe is None else recipe.rewards,
            "tickets": {
                "asked": sum(arm.asked for arm in every),
                "rewards": self._came,
                "pending": sum(arm.pending for arm in every),
                "late": sum(arm.late for arm in every),
                "late_sum": plain(sum(arm.late_sum for arm in every)),
                "silent": silent,
                "lost": missing - silent,
                "cancelled": self._cancelled,
            },
            **self._paid(),
            "lead": self._lead,
            "arms": [
                self._arms[i].to_dict(table[i], self._lift(i, table[i]), here=here[i])
                for i in order[:_LISTED]
            ],
            "more_arms": max(0, len(order) - _LISTED),
            "history": self._history.to_dict([arm.name for arm in self._arms], order[:1]),
        }

    def _paid(self) -> dict[str, Any]:
        """Return the sections: whether it paid, the cost of exploring, and the data's soundness."""
        worth, recipe = self.worth, self._recipe
        control = None if recipe is None else recipe.control
        about = sentences.About(
            aim=self.aim,
            costs=self.costs,
            control=None if control is None else control[0],
            lost=recipe is None or recipe.silence is None,
            positive=all(arm.sample.lows[0] >= 0 for arm in self._arms if len(arm.sample.lows)),
            scale=worth.scale,
            ruled=worth.ruled,
            customers=self._about_customers(),
        )
        against = worth.against_control() if control else None
        even = worth.even.estimate() if worth.level is None else None
        return {
            "control": None if control is None else {"arm": control[0], "share": control[1]},
            "pay": sentences.pay(about, against, even)
            | {"trail": [(at, *map(plain, estimate[2:5])) for at, estimate in worth.trail]},
            "exploring": sentences.exploring(about, worth.exploring.estimate(), worth),
            "sound": sound(about, worth, self._arms[:_LISTED], self._notes, self._ignored),
            "ignored": {why: [count, plain(x)] for why, (count, x) in self._ignored.items()},
            "state": state(self._notes),
            "notes": [note._asdict() for note in self._notes][-_LISTED:],
        }

    def _lift(self, arm: int, estimate: Array) -> dict[str, Any] | None:
        gains = self._lifts.get(self._arms[arm].name)
        return lift_shown(gains, float(estimate[0]), self._arms)

    def _on_offer(self, arm: Arm) -> bool:
        return arm.pending > 0 or arm.offered >= self._requests - _LATELY


def counted(experiment: "Experiment") -> Callable[[int], bytes]:
    """Return the counts that `prune` keeps so that "did it pay" goes on."""

    def page(first: int) -> bytes:
        known = experiment
        summary = Summary(known.reader(), known.aim, costs=known.costs)
        try:
            return summary.kept(first)
        finally:
            summary.reader.close()

    return page


def compared(
    aim: Aim, names: Sequence[str], samples: Sequence[Histogram], *, costs: bool = False
) -> Comparison:
    """Compare arms by all their rewards, for any look.

    >>> from tailproof import Mean
    >>> red, blue = Histogram(), Histogram()
    >>> red.add([0, 0, 1] * 100)
    >>> blue.add([0, 1, 1] * 100)
    >>> compared(Mean(), ["red", "blue"], [red, blue]).lead
    Lead(arm='blue', sure=True, rivals=())
    """
    exact = all(sample.exact for sample in samples)
    lows = [sample.low for sample in samples]
    statistic = aim.among(lows)
    if aim.averages and not aim.bounded and not exact:
        statistic = Unbounded()  # a frequent largest reward may be an effect of rounding
    highs = None if exact else [sample.high for sample in samples]
    return Comparison.of(statistic, names, lows, highs, costs=costs, any_look=True)
