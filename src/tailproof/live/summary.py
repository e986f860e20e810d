"""A summary of a journal: which arm leads and how surely, pulls and rewards over time."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.advice import LEVEL, calibrate, estimates, leader
from tailproof.live.journal import Journal
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim, CappedMean
from tailproof.stats.diagnostics import LEAST
from tailproof.stats.estimators import Mean, Quantile
from tailproof.typing import Array
from tailproof.wrappers import AutoFiltered, Filtered
from tailproof.wrappers.base import Wrapper

__all__ = ["Summary"]

Numbers = NDArray[np.int64]

WINDOW = 1000
"""Latest rewards by which an arm is judged."""
_ALL_WINDOWS = 1_000_000
"""Rewards in all windows, about 8 MB; if arms are many, each has fewer, at least `LEAST`."""
_CHUNK = 20_000
"""Tickets read at once, about; this takes a few hundredths of a second."""
_BUCKETS, _SMALLEST = 64, 32
"""Number of buckets, at most, and tickets in each at the start."""
_SAMPLED = 256
"""Rewards sampled in each bucket, about, for the quantiles that are drawn."""
_QUANTILES = {"low": 0.1, "middle": 0.5, "high": 0.9}
_FEWEST = 5
"""Rewards that an arm needs in a bucket for its quantiles to be drawn."""
_LATELY = 1000
"""An arm is no longer on offer if none of this many latest tickets could have got it."""
_DRAWN, _LISTED = 6, 50
"""Arms in charts and in tables."""
_JUDGED = 20_000
"""The tail is estimated from about this many rewards, and again after as many or 10 % more."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴/φ, φ the golden ratio: its multiples modulo 2⁶⁴ are spread evenly, whatever the period."""


@dataclass
class _Arm:
    """One arm: its tickets and rewards in ended decisions, and its latest rewards in order."""

    name: str
    tickets: int = 0
    rewards: int = 0
    offered: int = -1
    """The number of the last ticket that could have got it."""
    window: Array = field(default_factory=lambda: np.empty(0))
    open: int = 0
    told: int = 0


class Summary:
    """A summary of an experiment, in memory that does not grow with its journal.

    Each `refresh` reads a chunk of what is new in the journal, and `to_dict` returns what is known
    so far. The result depends only on the journal, not on how often it was refreshed, except for
    the verdict on the tail, which is cached for a while.

    An arm is judged by its last 1000 rewards that came in time, in ended decisions. The arm on
    offer with the best estimate leads, and that is sure if its interval overlaps no other. The
    intervals hold together with 95 % confidence, at a single look and for independent rewards.

    The history is kept in buckets with equal numbers of tickets. When 64 are full, neighbours are
    merged.

    Parameters
    ----------
    journal : Journal
        Read in short transactions that block nobody; not the agent's own connection.
    policy : Policy
    aim : Aim
        The statistic that arms are compared by.
    costs : bool
        Whether rewards are costs, so that smaller is better.
    wait : float
        Seconds until a reward counts as lost.
    clock : callable, optional
        Returns the time, as in `Agent`.

    Examples
    --------
    >>> from tailproof import UCB1, AutoFiltered, Median
    >>> from tailproof.live import Agent
    >>> agent = Agent(AutoFiltered(UCB1()), ":memory:")
    >>> for reward in range(126):
    ...     fate = agent.tell(agent.ask(["red", "blue"]).id, reward % 7)
    >>> summary = Summary(agent.journal, agent.policy, Median())
    >>> summary.refresh()
    True
    >>> found = summary.to_dict()
    >>> found["tickets"]["rewards"], [arm["estimate"] for arm in found["arms"]]
    (126, [3.0, 3.0])
    >>> found["lead"]["words"]
    'blue leads; its interval overlaps that of red.'

    Source: our own. Differences: none.
    """

    def __init__(
        self,
        journal: Journal,
        policy: Policy[Any],
        aim: Aim,
        *,
        costs: bool = False,
        wait: float = 86400.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.journal, self.policy, self.aim = journal, policy, aim
        self.costs, self.wait, self._clock = costs, wait, clock or journal.now
        self._arms: list[_Arm] = []
        self._numbers: dict[str, int] = {}
        self.read = self.ended = self.holds = 0
        self._tickets = self._rewards = self._late = self._overdue = 0
        self._features = False
        self._history = _History()
        self._judged, self._tail, self._advice = 0, "", ""
        self._table: tuple[tuple[int, int], Array] = ((0, 0), np.empty((0, 3)))

    def refresh(self) -> bool:
        """Read a chunk of what is new, and return whether that was all."""
        chunk = max(1, _CHUNK // self.policy.pulls)
        with self.journal.moment():
            self.holds, self.ended = self.journal.counts()
            for name in self.journal.arms(since=len(self._arms)):
                self._numbers[name] = len(self._arms)
                self._arms.append(_Arm(name))
            stop = min(self.read + chunk, self.ended)
            self._take(self.journal.ended_tickets(self.read, stop))
            self.read = stop
            if self.read == self.ended:
                self._late = self.journal.late()
                self._take_open(self.journal.open_tickets(self._clock() - self.wait))
        if self.read < self.ended:
            return False
        self._judge()
        return True

    def _take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add tickets of ended decisions."""
        if not rows:
            return
        offers, places, asked, found = zip(*rows, strict=True)
        first, kinds = self._tickets, dict.fromkeys(zip(offers, places, strict=True), 0)
        for number, place in kinds:
            kinds[number, place] = self._numbers[self.journal.offer(number).names[place]]
        last = {number: first + i for i, number in enumerate(offers)}
        for number, ticket in last.items():
            offer = self.journal.offer(number)
            self._features |= offer.vectors is not None
            for name in offer.names:
                self._arms[self._numbers[name]].offered = ticket
        arms = np.array([kinds[kind] for kind in zip(offers, places, strict=True)])
        rewards = np.array(found, dtype=np.float64)  # None is NaN
        order, width = np.argsort(arms, kind="stable"), self._width
        numbers, starts = np.unique(arms[order], return_index=True)
        for number, own in zip(numbers, np.split(rewards[order], starts[1:]), strict=True):
            came, arm = own[~np.isnan(own)], self._arms[number]
            arm.tickets += len(own)
            arm.rewards += len(came)
            arm.window = np.concatenate([arm.window, came])[-width:]
            self._rewards += len(came)
        self._history.add(first, arms, np.array(asked), rewards, len(self._arms))
        self._tickets += len(rows)

    def _take_open(self, rows: Sequence[tuple[int, int, int, int, int]]) -> None:
        """Count tickets of open decisions, as they are now."""
        for arm in self._arms:
            arm.open = arm.told = 0
        self._overdue = 0
        for number, place, tickets, told, overdue in rows:
            arm = self._arms[self._numbers[self.journal.offer(number).names[place]]]
            arm.open += tickets
            arm.told += told
            self._overdue += overdue

    @property
    def _width(self) -> int:
        """Latest rewards kept of each arm."""
        return min(WINDOW, max(LEAST, _ALL_WINDOWS // max(1, len(self._arms))))

    def _judge(self) -> None:
        """Estimate the tail again, if there are many new rewards."""
        more = self._rewards - self._judged
        if self._rewards < LEAST or more < min(self._judged / 10 or 1, _JUDGED):
            return
        self._judged = self._rewards
        arms = [arm for arm in self._arms if len(arm.window) > 1]
        size = max(LEAST, _JUDGED // max(1, len(arms)))
        windows = [arm.window[-size:] for arm in arms]
        names = np.repeat([arm.name for arm in arms], [len(x) for x in windows])
        try:
            found = calibrate(rewards=np.concatenate([*windows, []]), arms=names, costs=self.costs)
        except ValueError as error:  # too few of each arm, or all equal
            self._tail, self._advice = f"No verdict: {error}.", ""
            return
        self._tail = found.rewards.verdict
        self._advice = found.calibration.choice if found.calibration else f"{found.refusal}."

    def _estimated(self) -> Array:
        """Return the estimate and interval of each arm, NaN where it has too few rewards."""
        seen = len(self._arms), self._rewards
        if self._table[0] != seen:
            width, table = self._width, np.full((len(self._arms), 3), np.nan)
            some = [i for i, arm in enumerate(self._arms) if len(arm.window) > 1]
            if some:
                windows = [self._arms[i].window[-width:] for i in some]
                table[some] = estimates(self.aim, windows, 1 - (1 - LEVEL) / len(self._arms))
            self._table = seen, table
        return self._table[1]

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the page shows, as JSON values; infinities are strings."""
        table = self._estimated()
        here = [self._on_offer(arm) for arm in self._arms]
        signed = -table[:, 0] if self.costs else table[:, 0]
        order = sorted(
            range(len(self._arms)),
            key=lambda i: (not here[i], math.isnan(signed[i]), -signed[i], i),
        )
        ended, told = self._tickets, sum(arm.told for arm in self._arms)
        waiting = sum(arm.open for arm in self._arms) - told
        return {
            "read": 1.0 if self.read == self.ended else self.read / self.ended,
            "recipe": repr(self.policy),
            "aim": self.aim.name,
            "aim_words": _aim_words(self.aim, self.costs),
            "holds": {"open": self.holds - self.ended, "ended": self.ended},
            "tickets": {
                "asked": ended + waiting + told,
                "rewards": self._rewards + told,
                "pending": waiting - self._overdue,
                "overdue": self._overdue,
                "late": self._late,
                "lost": ended - self._rewards - self._late,
            },
            "lead": self._lead([i for i, yes in enumerate(here) if yes], table),
            "arms": [self._row(i, table[i], here[i]) for i in order[:_LISTED]],
            "more_arms": max(0, len(order) - _LISTED),
            "history": self._history.to_dict([arm.name for arm in self._arms], order[:1]),
            "tail": {"words": self._tail, "rewards": self._judged, "least": LEAST},
            "filter": {"words": _filter_words(self.policy), "advice": self._advice},
        }

    def _row(self, number: int, found: Array, here: bool) -> dict[str, Any]:
        arm = self._arms[number]
        return {
            "name": arm.name,
            "here": here,
            "pulls": arm.tickets + arm.open,
            "rewards": arm.rewards + arm.told,
            "pending": arm.open - arm.told,
            "missing": arm.tickets - arm.rewards,
            **dict(zip(("estimate", "low", "high"), map(_plain, found.tolist()), strict=True)),
        }

    def _on_offer(self, arm: _Arm) -> bool:
        return arm.open > 0 or arm.offered >= self._tickets - _LATELY

    def _lead(self, here: list[int], table: Array) -> dict[str, Any]:
        """Return which arm on offer leads, and how sure that is, in words."""
        how = (
            f"Each arm is judged by its last {self._width} rewards: {_aim_words(self.aim)} and "
            f"{_interval_words(self.aim)}. If rewards are independent, the intervals of all arms "
            f"hold together with {100 * LEVEL:.0f} % confidence at a single look. If you look "
            "often, you will now and then see a lead that goes away."
        )
        if self._features:
            how += " Requests differ in their features; an arm is judged by all that got it."
        found: dict[str, Any] = {"arm": None, "sure": False, "how": how}
        names, unknown = [self._arms[i].name for i in here], np.isnan(table[here, 0])
        if unknown.all():
            return found | {"words": "Too early to tell: no arm has enough rewards yet."}
        lead = leader(names, table[here], costs=self.costs)
        few = list(compress(names, unknown))
        aside = set(few)
        reaching = [name for name in lead.rivals if name not in aside]
        words = [f"{lead.arm} leads"]
        if len(names) == 1:
            words = [f"{lead.arm} is the only arm"]
        elif lead.sure:
            words.append("its interval overlaps no other")
        if len(reaching) == 1:
            words.append(f"its interval overlaps that of {reaching[0]}")
        elif reaching:
            words.append(f"its interval overlaps those of {_listed(reaching)}")
        if few:
            words.append(f"{_listed(few)} {'has' if len(few) == 1 else 'have'} too few rewards")
        return found | {"arm": lead.arm, "sure": lead.sure, "words": "; ".join(words) + "."}


class _History:
    """Pulls of each arm in buckets with equal numbers of tickets, and a sample of their rewards.

    Buckets double in size as the journal grows. Ticket n is sampled if n/φ modulo 1 is below
    2^−thin, φ the golden ratio; so each sample is part of those at smaller sizes.
    """

    def __init__(self) -> None:
        self.size, self.count = _SMALLEST, 0
        self._pulls: Numbers = np.zeros((_BUCKETS, 0), dtype=np.int64)
        self._begin, self._ends = math.nan, np.full(_BUCKETS, -math.inf)
        self._tickets, self._arms = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._rewards: Array = np.empty(0)

    def add(self, first: int, arms: Numbers, asked: Array, rewards: Array, known: int) -> None:
        """Add tickets numbered from `first` on; `known` is the number of arms so far."""
        self.count = first + len(arms)
        self._begin = self._begin if first else float(asked[0])
        self._pulls = np.pad(self._pulls, ((0, 0), (0, known - self._pulls.shape[1])))
        while self.count > _BUCKETS * self.size:
            self._double()
        tickets = first + np.arange(len(arms))
        np.add.at(self._pulls, (tickets // self.size, arms), 1)
        np.maximum.at(self._ends, tickets // self.size, asked)
        took = self._sampled(tickets) & ~np.isnan(rewards)
        self._tickets = np.append(self._tickets, tickets[took])
        self._arms = np.append(self._arms, arms[took])
        self._rewards = np.append(self._rewards, rewards[took])

    def _double(self) -> None:
        """Merge pairs of buckets, and keep half of the sample."""
        self.size, half = 2 * self.size, _BUCKETS // 2
        pulls, ends = self._pulls.reshape(half, 2, -1), self._ends.reshape(half, 2)
        self._pulls = np.pad(pulls.sum(axis=1), ((0, half), (0, 0)))
        self._ends = np.pad(ends.max(axis=1), (0, half), constant_values=-math.inf)
        keep = self._sampled(self._tickets)
        self._tickets, self._arms = self._tickets[keep], self._arms[keep]
        self._rewards = self._rewards[keep]

    def _sampled(self, tickets: Numbers) -> NDArray[np.bool_]:
        thin = max(0, (self.size // _SAMPLED).bit_length() - 1)
        return tickets.astype(np.uint64) * _GOLDEN <= np.uint64((2**64 - 1) >> thin)

    def to_dict(self, names: Sequence[str], best: Sequence[int]) -> dict[str, Any]:
        """Return pulls and reward quantiles of the `best` and the recently most pulled arms."""
        buckets = -(-self.count // self.size)
        pulls = np.pad(self._pulls[:buckets], ((0, 0), (0, len(names) - self._pulls.shape[1])))
        lately = np.argsort(-pulls[buckets // 2 :].sum(axis=0), kind="stable").tolist()
        drawn = list(dict.fromkeys([*best, *lately]))[:_DRAWN]
        drawn = sorted(number for number in drawn if pulls[:, number].any())
        bands = self._bands(drawn, buckets)
        finite = self._rewards[np.isfinite(self._rewards)]
        centre = _middle(finite)
        with np.errstate(over="ignore"):
            spread = _middle(np.abs(finite - centre))
        others = pulls.sum(axis=1) - pulls[:, drawn].sum(axis=1)
        return {
            "begin": _plain(self._begin),
            "ends": np.maximum.accumulate(self._ends[:buckets]).tolist(),
            "centre": _plain(centre),
            "spread": _plain(spread),
            "arms": [
                {
                    "name": names[number],
                    "pulls": pulls[:, number].tolist(),
                    **{
                        quantile: [_plain(x) for x in band[:, place].tolist()]
                        for quantile, band in bands.items()
                    },
                }
                for place, number in enumerate(drawn)
            ],
            "others": others.tolist(),
        }

    def _bands(self, arms: Sequence[int], buckets: int) -> dict[str, Array]:
        """Return three quantiles of the rewards in each bucket and arm, NaN where they are few."""
        mine = np.isin(self._arms, arms)
        place = np.searchsorted(arms, self._arms[mine])
        cell = self._tickets[mine] // self.size * len(arms) + place
        order = np.lexsort((self._rewards[mine], cell))
        ranked = self._rewards[mine][order]
        cells, first, count = np.unique(cell[order], return_index=True, return_counts=True)
        enough = count >= _FEWEST
        cells, first, count = cells[enough], first[enough], count[enough]
        found = {}
        for name, level in _QUANTILES.items():
            band = np.full(buckets * len(arms), np.nan)
            band[cells] = ranked[first + np.ceil(level * count).astype(np.int64) - 1]
            found[name] = band.reshape(buckets, len(arms))
        return found


def _middle(sample: Array) -> float:
    """Return the lower median, NaN for an empty sample."""
    half = (len(sample) - 1) // 2
    return float(np.partition(sample, half)[half]) if len(sample) else math.nan


def _plain(x: float) -> float | str | None:
    """Return a number as JSON allows: None for NaN, strings for infinities."""
    if math.isfinite(x):
        return x
    return None if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


def _aim_words(aim: Aim, costs: bool | None = None) -> str:
    """Describe an aim.

    >>> from tailproof import Median
    >>> _aim_words(Quantile(0.95)), _aim_words(Median(), costs=True)
    ('the 0.95-quantile', 'the smallest median')
    """
    size = "" if costs is None else "smallest " if costs else "largest "
    if isinstance(aim, Quantile):
        return f"the {size}{aim.level:g}-quantile"
    if isinstance(aim, CappedMean):
        return f"the {size}mean of rewards capped at common quantiles of all arms ({aim.share:g})"
    return f"the {size}{aim.name}"


def _interval_words(aim: Aim) -> str:
    """Describe the interval of an aim."""
    if isinstance(aim, CappedMean):
        return "Student's interval"
    if isinstance(aim, Mean):
        return "an interval between two of the means of 15 blocks"
    return "an interval between two of these rewards"


def _filter_words(policy: Policy[Any]) -> str:
    """Describe how many requests share a decision, and how their rewards are used.

    >>> from tailproof import UCB1
    >>> _filter_words(AutoFiltered(UCB1()))  # doctest: +ELLIPSIS
    "21 requests share a decision: they get the same arm, and Pitman's estimator reduces their..."
    """
    if policy.pulls == 1:
        return "Each request is a decision of its own, and each reward is learned by itself."
    inside: Policy[Any] = policy
    while isinstance(inside, Wrapper) and not isinstance(inside, AutoFiltered | Filtered):
        inside = inside.policy
    use = "the policy learns their rewards together"
    if isinstance(inside, AutoFiltered):
        use = "Pitman's estimator reduces their rewards to one number"
    elif isinstance(inside, Filtered):
        use = f"{inside.estimator!r} reduces their rewards to one number"
    return (
        f"{policy.pulls} requests share a decision: they get the same arm, and {use}, so that a "
        f"few extreme rewards do not decide. If rewards are lost, {policy.least} are enough, and "
        "more requests get the arm."
    )


def _listed(names: Sequence[str]) -> str:
    """Return names as an English list.

    >>> _listed(["a"]), _listed(["a", "b", "c"]), _listed(list("abcdef"))
    ('a', 'a, b and c', 'a, b, c and 3 more')
    """
    shown = [*names] if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
