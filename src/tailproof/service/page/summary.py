"""The page of an experiment: did it pay, who leads, the cost of exploring, is the data sound."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tailproof.formatting import json_number
from tailproof.live import Journal
from tailproof.live.reading import Note
from tailproof.service.page import sentences
from tailproof.service.page.checks import sound
from tailproof.service.page.counts import LISTED, Counts
from tailproof.stats.aims import Aim
from tailproof.stats.any_look import Lift, compared, lead_by_intervals, lifts, shown_alone
from tailproof.typing import Array

__all__ = ["Summary"]


class Summary:
    """What the page shows of an experiment, from its `Counts`.

    Whether it paid, and the cost of exploring, are computed by `Worth` from the probabilities with
    which requests got their arms, so no law of the rewards is assumed.

    An arm is judged by all its customers. The arm on offer with the best estimate leads; it is sure
    if there is enough evidence over every other arm on offer. For a given set of arms, all
    intervals together hold at all looks with 95 % confidence, and so does a sure lead, whatever the
    policy chose, if rewards depend neither on when they are asked for nor on how long they take;
    which parts of this are proved depends on the aim. If requests have features, a policy may
    choose arms by them: then an arm is judged by the weighted estimate of the reward if it alone
    had been shown, and a lead is sure if its interval is above all others.

    Parameters
    ----------
    journal : Journal
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
        self.counts = Counts(journal, aim, costs=costs)
        self._seen: tuple[Any, ...] = (0, None)  # nothing was compared yet
        self._table: Array = np.empty((0, 3))
        self._lead: dict[str, Any] = {}
        self._lifts: dict[str, Lift] = {}

    def refresh(self) -> bool:
        """Read a chunk of new outcomes; return whether none is left."""
        return self.counts.refresh()

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the page shows, as JSON values; infinities are strings."""
        counts, recipe = self.counts, self.counts.recipe
        self._compare(np.flatnonzero(counts.here).tolist())
        arms = self._in_order()
        control = None if recipe is None else recipe.control
        return {
            "read": 1.0 if counts.read == counts.ended else counts.read / counts.ended,
            "recipe": "" if recipe is None else recipe.text,
            "aim": counts.aim.name,
            "mean": counts.aim.level is None,
            "weighted": bool(counts.weighted),
            "wait": json_number(counts.window),
            "explore": 0.0 if recipe is None else recipe.explore,
            "floor": 0.0 if recipe is None else recipe.floor,
            "aim_words": sentences.aim_words(counts.aim, counts.costs),
            "costs": counts.costs,
            "outcomes": counts.ended,
            "customers": {
                "known": counts.followed.count,
                "units": counts.followed.units,
                "waiting": counts.followed.windows.open,
                "outside": json_number(counts.outside),
                "words": sentences.customers(counts, counts.followed.count),
            },
            "silence": counts.silence,
            "rewards": "first" if recipe is None else recipe.rewards,
            "tickets": self._tickets(),
            "control": None if control is None else {"arm": control[0], "share": control[1]},
            "pay": sentences.pay(counts),
            "exploring": sentences.exploring(counts),
            "sound": sound(counts),
            "ignored": {why: [n, json_number(x)] for why, (n, x) in counts.ignored.items()},
            "state": _state(counts.notes),
            "notes": [note._asdict() for note in counts.notes][-LISTED:],
            "alarms": sum(note.kind == "alarm" for note in counts.notes),
            "lead": self._lead,
            "arms": [self._arm(arm) for arm in arms[:LISTED]],
            "more_arms": max(0, len(arms) - LISTED),
            "history": counts.timeline.to_dict(list(counts.numbers), arms[:1]),
        }

    def _compare(self, here: list[int]) -> None:
        """Compare the arms with all their rewards, if there is anything new.

        While the journal is still being read, this waits until there are twice as many rewards.
        """
        counts = self.counts
        rewards = int(counts.by_arm["rewards"].sum())
        seen = rewards, counts.features, len(counts.numbers), here, counts.followed.count
        early = counts.read < counts.ended and rewards < 2 * self._seen[0]
        if seen == self._seen or (early and counts.features == self._seen[1]):
            return
        self._seen, self._table, self._lifts = seen, np.empty((0, 3)), {}
        self._lead = {"arm": None, "sure": False}
        if not here:
            self._lead |= {"words": sentences.TOO_EARLY, "how": sentences.judged(counts)}
        elif counts.weighted:
            self._lead_by_weights(here)
        else:
            self._lead_by_rewards(here)
        self._lead["sure"] &= not counts.dependent

    def _lead_by_weights(self, here: list[int]) -> None:
        """Compare what each arm alone would have earned."""
        counts = self.counts
        self._table = shown_alone(counts.followed.worth, counts.weighted)
        names = [name for name, i in counts.numbers.items() if i in here]
        lead = lead_by_intervals(names, self._table[here], costs=counts.costs)
        self._lead |= {"arm": lead.arm, "sure": lead.sure} | sentences.weighted_words(counts, lead)

    def _lead_by_rewards(self, here: list[int]) -> None:
        """Compare the rewards of each arm."""
        counts, names = self.counts, list(self.counts.numbers)
        comparison = compared(counts.aim, names, counts.followed.samples, costs=counts.costs)
        self._table, how = comparison.table, [sentences.judged(counts)]
        if counts.features:
            self._table = np.column_stack([comparison.values, np.full((len(names), 2), np.nan)])
            how.append("They are for the requests that got the arm, not for all requests.")
            self._lead |= {"words": sentences.BY_FEATURES, "how": " ".join(how)}
            return
        if len(here) < len(names):
            names, lows, highs = (
                [part[i] for i in here] for part in (names, comparison.lows, comparison.highs)
            )
            comparison = replace(comparison, names=names, lows=lows, highs=highs)
        how += sentences.lead_how(counts.aim, comparison.statistic)
        if not all(sample.exact for sample in counts.followed.samples):
            how.append("Rewards are rounded to save memory; intervals allow for that.")
        words = sentences.lead_words(counts, comparison)
        self._lead = {"words": words, "how": " ".join(how)}
        self._lead |= {"arm": comparison.lead.arm, "sure": comparison.lead.sure}
        self._lifts = {} if counts.control is None else lifts(comparison, counts.control)

    def _in_order(self) -> list[int]:
        """Return the arms, those on offer first, the best of them at the top."""
        value = self._estimates[:, 0] if not self.counts.costs else -self._estimates[:, 0]
        order: list[int] = np.lexsort((-value, np.isnan(value), ~self.counts.here)).tolist()
        return order

    @property
    def _estimates(self) -> Array:
        """Estimate and interval of each arm; NaN where nothing was compared."""
        table = np.full((len(self.counts.numbers), 3), np.nan)
        table[: len(self._table)] = self._table
        return table

    def _arm(self, number: int) -> dict[str, Any]:
        """Return the row of an arm."""
        name, estimate = list(self.counts.numbers)[number], self._estimates[number].tolist()
        of = {key: float(values[number]) for key, values in self.counts.by_arm.items()}
        return {
            "name": name,
            "here": bool(self.counts.here[number]),
            "pulls": int(of["requests"] + of["pending"] + of["pruned"]),
            "rewards": int(of["rewards"]),
            "pending": int(of["pending"]),
            "missing": int(of["requests"] - of["came"]),
            "late": int(of["late"]),
            "late_sum": json_number(of["late_sum"]),
            "customers": int(of["customers"]),
            "orders": int(of["orders"]),
            "conversion": _ratio(of["buyers"], of["customers"]),
            "basket": _ratio(of["sold"], of["orders"]),
            "per_customer": _ratio(of["revenue"], of["customers"]),
            "lift": self._lift(name, estimate[0]),
            **dict(zip(("estimate", "low", "high"), map(json_number, estimate), strict=True)),
        }

    def _lift(self, name: str, value: float) -> dict[str, Any] | None:
        """Return the lift of an arm over the control, and in per cent of the control."""
        if (gains := self._lifts.get(name)) is None:
            return None
        base, sound = value - gains[0], self.counts.followed.positive
        percents = [100 * gain / base if base > 0 and sound else math.nan for gain in gains]
        return {"gain": [*map(json_number, gains)], "percent": [*map(json_number, percents)]}

    def _tickets(self) -> dict[str, Any]:
        """Return how many requests there are, and what became of them."""
        with np.errstate(invalid="ignore"):
            of = {key: float(values.sum()) for key, values in self.counts.by_arm.items()}
        missing = int(of["requests"] - of["came"])
        silent = 0 if self.counts.silence is None else missing
        return {
            "asked": int(of["requests"] + of["pending"] + of["pruned"]),
            "rewards": int(of["came"]),
            "pending": int(of["pending"]),
            "late": int(of["late"]),
            "late_sum": json_number(of["late_sum"]),
            "silent": silent,
            "lost": missing - silent,
            "cancelled": self.counts.cancelled,
        }


def _ratio(part: float, of: float) -> float | str | None:
    return json_number(part / of) if of else None


def _state(notes: Sequence[Note]) -> dict[str, Any]:
    """Return the arm that every request gets now, if any, and the arms that were dropped."""
    fixed: dict[str, Any] | None = None
    for note in notes:
        if note.kind in ("fix", "resume"):
            fixed = note.text if note.kind == "fix" else None
    return {"fixed": fixed, "dropped": [drop.text["arm"] for drop in notes if drop.kind == "drop"]}
