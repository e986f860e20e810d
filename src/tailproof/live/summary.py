"""A summary of a journal: which arm leads and whether that is sure, pulls and rewards over time."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.advice import calibrate
from tailproof.live.journal import Counts, Journal, Told
from tailproof.live.scheduler import Rules
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim, CappedMean
from tailproof.stats.comparison import LEVEL, Comparison, MeanWithin, Statistic, Unbounded
from tailproof.stats.diagnostics import LEAST
from tailproof.stats.estimators import Mean, Quantile
from tailproof.stats.histograms import FEWEST, Histogram
from tailproof.typing import Array
from tailproof.wrappers import AutoFiltered, Filtered
from tailproof.wrappers.base import Wrapper

__all__ = ["Summary"]

Numbers = NDArray[np.int64]

_WINDOW = 1000
"""The latest rewards of an arm, from which the tail is estimated."""
_ALL_WINDOWS = 1_000_000
"""The most rewards in all windows, 8 MB; with many arms each has fewer, at least `LEAST`."""
_ALL_CELLS = 2**20
"""Cells in all histograms, 24 MB; with more than 64 arms each has fewer than 2¹⁴, at least 2¹²."""
_CHUNK = 20_000
"""About how many tickets are read at once, in a few hundredths of a second."""
_BUCKETS, _SMALLEST = 64, 32
"""The most buckets, and the tickets in each at the start."""
_SAMPLED = 256
"""About how many rewards of each bucket are sampled, for the quantiles that are drawn."""
_QUANTILES = {"low": 0.1, "middle": 0.5, "high": 0.9}
_FEWEST = 5
"""Rewards that an arm needs in a bucket for its quantiles to be drawn."""
_LATELY = 1000
"""An arm is no longer on offer if none of this many latest tickets could have got it."""
_DRAWN, _LISTED = 6, 50
"""The most arms in charts and in tables."""
_JUDGED = 20_000
"""The tail is estimated from about this many rewards; again after 10 % or this many more."""
_RIVALS = 4
"""With more rivals there is no forecast; it takes up to a tenth of a second for each."""
_TOO_EARLY = "Too early to tell: no arm has enough rewards yet."
_BY_FEATURES = "The policy chose arms by features, so these estimates cannot tell which arm leads."
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴/φ, φ the golden ratio: its multiples modulo 2⁶⁴ are spread evenly, whatever the period."""


@dataclass
class _Arm:
    """One arm: its tickets and rewards in ended decisions, and its latest rewards.

    `rewards` includes those of silence; `came` does not.
    """

    name: str
    tickets: int = 0
    rewards: int = 0
    came: int = 0
    offered: int = -1
    """The number of the last ticket that could have got it."""
    sample: Histogram = field(default_factory=Histogram)
    window: Array = field(default_factory=lambda: np.empty(0))
    counts: Counts = field(default_factory=Counts)
    """All tickets and events so far."""

    @property
    def open(self) -> int:
        """Tickets without an outcome."""
        return max(0, self.counts.asked - self.tickets)


class Summary:
    """A summary of an experiment, in memory that does not grow with its journal.

    `refresh` reads a chunk of what is new in the journal, and `to_dict` returns what is known so
    far. Once all is read, the result depends on the journal only, not on how often it was
    refreshed, except for the verdict on the tail, which is updated now and then.

    An arm is judged by all its rewards that came in time, in ended decisions, from a `Histogram`.
    Only while arms are compared does each reward take 8 or 16 bytes. The arm on offer with the best
    estimate leads; it is sure if there is enough evidence over every other arm on offer. For a
    given set of arms, all intervals together hold at all looks with 95 % confidence, and so does a
    sure lead, whatever the policy chose, if rewards depend neither on when they are asked for nor
    on how long they take; what of this is proved depends on the aim, see `tailproof.intervals`. If
    requests have features, a policy may choose arms by them: then the arms are not compared.

    The tail is estimated from the latest rewards of each arm, up to 1000. The history is kept in
    buckets with equal numbers of tickets; when 64 are full, neighbours are merged.

    Parameters
    ----------
    journal : Journal
        Read in short transactions that block nobody; not the agent's own connection.
    policy : Policy
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
    ...     fate = agent.tell(agent.ask(["red", "blue"]).id, reward % 7)
    >>> summary = Summary(agent.journal, agent.policy, Median())
    >>> summary.refresh()
    True
    >>> found = summary.to_dict()
    >>> found["tickets"]["rewards"], [arm["estimate"] for arm in found["arms"]]
    (126, [3.0, 3.0])
    >>> found["lead"]["words"]
    'Nothing leads: blue and red are equal so far.'

    Source: our own. Differences: none.
    """

    def __init__(
        self,
        journal: Journal,
        policy: Policy[Any],
        aim: Aim,
        *,
        costs: bool = False,
    ) -> None:
        self.journal, self.policy, self.aim, self.costs = journal, policy, aim, costs
        self._arms: list[_Arm] = []
        self._numbers: dict[str, int] = {}
        self.read = self.ended = 0
        self._tickets = self._rewards = self._came = 0
        self._features = False
        self._history = _History()
        self._rules = Rules.of({}, policy)
        self._judged, self._tail, self._advice = 0, "", ""
        self._seen: tuple[Any, ...] = (0, None)  # nothing was compared yet
        self._table: Array = np.empty((0, 3))
        self._lead: dict[str, Any] = {}

    def refresh(self) -> bool:
        """Read a chunk of what is new, and return whether that was all."""
        chunk = max(1, _CHUNK // self.policy.pulls)
        with self.journal.moment():
            self.ended = self.journal.counts()[0]
            self._rules = Rules.of(self.journal.meta(), self.policy)
            self._meet(self.journal.arms(since=len(self._arms)))
            stop = min(self.read + chunk, self.ended)
            self._take(self.journal.ended(self.read, stop))
            self.read = stop
            if self.read == self.ended:
                for number, counts in self.journal.tally().items():
                    self._arms[number].counts = counts
        if self.read < self.ended:
            return False
        self._judge()
        return True

    def _meet(self, names: Collection[str]) -> None:
        """Add new arms; all arms together share the cells."""
        for name in names:
            self._numbers[name] = len(self._arms)
            self._arms.append(_Arm(name))
        for arm in self._arms if names else []:
            arm.sample.limit(max(FEWEST, _ALL_CELLS // len(self._arms)))

    def _take(self, rows: Sequence[tuple[int, int, float, Told]]) -> None:
        """Add tickets of ended decisions."""
        if not rows:
            return
        first = self._tickets
        last = {offer: first + i for i, (offer, *_) in enumerate(rows)}
        for number, ticket in last.items():
            offer = self.journal.offer(number)
            self._features |= offer.vectors is not None
            for name in offer.names:
                self._arms[self._numbers[name]].offered = ticket
        arms = np.array([arm for _, arm, _, _ in rows])
        found = [self._rules.came(ticket, at) for _, _, at, ticket in rows]
        came = np.array(found, dtype=np.float64)  # None is NaN
        silence = math.nan if self._rules.silence is None else self._rules.silence
        rewards = np.where(np.isnan(came), silence, came)
        order, width = np.argsort(arms, kind="stable"), self._width
        numbers, starts = np.unique(arms[order], return_index=True)
        for number, own in zip(numbers, np.split(order, starts[1:]), strict=True):
            arm, values = self._arms[number], rewards[own]
            values = values[~np.isnan(values)]
            arm.tickets += len(own)
            arm.came += int((~np.isnan(came[own])).sum())
            arm.rewards += len(values)
            arm.sample.add(values)
            arm.window = np.concatenate([arm.window, values])[-width:]
        self._came += int((~np.isnan(came)).sum())
        self._rewards += int((~np.isnan(rewards)).sum())
        asked = np.array([ticket.asked for *_, ticket in rows])
        self._history.add(first, arms, asked, rewards, len(self._arms))
        self._tickets += len(rows)

    @property
    def _width(self) -> int:
        """Latest rewards kept of each arm."""
        return min(_WINDOW, max(LEAST, _ALL_WINDOWS // max(1, len(self._arms))))

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
        shown = f"This describes the latest rewards of each arm, up to {min(size, self._width)}."
        self._tail = f"{found.rewards.verdict} {shown}"
        self._advice = found.calibration.choice if found.calibration else f"{found.refusal}."

    def _compare(self, here: list[int]) -> None:
        """Compare the arms with all their rewards, if there is anything new.

        While the journal is still being read, this waits until there are twice as many rewards.
        """
        seen = self._rewards, self._features, len(self._arms), here
        early = self.read < self.ended and self._rewards < 2 * self._seen[0]
        if seen == self._seen or (early and self._features == self._seen[1]):
            return
        self._seen = seen
        names, samples = [arm.name for arm in self._arms], [arm.sample for arm in self._arms]
        how = [f"Each arm is judged by all its rewards: {_aim_words(self.aim)}."]
        self._lead = {"arm": None, "sure": False, "words": _TOO_EARLY, "how": how[0]}
        if not here:
            self._table = np.empty((0, 3))
            return
        found = compared(self.aim, names, samples, costs=self.costs)
        if self._features:
            self._table = np.column_stack([found.values, np.full((len(names), 2), np.nan)])
            how.append("They are for the requests that got the arm, not for all requests.")
            self._lead |= {"words": _BY_FEATURES, "how": " ".join(how)}
            return
        self._table = found.table
        if len(here) < len(names):
            names, lows, highs = (
                [part[i] for i in here] for part in (names, found.lows, found.highs)
            )
            found = replace(found, names=names, lows=lows, highs=highs)
        how += _how(self.aim, found.statistic)
        if not all(sample.exact for sample in samples):
            how.append("Rewards are rounded to save memory; what is said here allows for that.")
        words = _lead_words(self.aim, found)
        self._lead = {"words": words, "how": " ".join(how)}
        self._lead |= {"arm": found.lead.arm, "sure": found.lead.sure}

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
        every = [arm.counts for arm in self._arms]
        missing = self._tickets - self._came
        silent = 0 if self._rules.silence is None else missing
        return {
            "read": 1.0 if self.read == self.ended else self.read / self.ended,
            "recipe": repr(self.policy),
            "aim": self.aim.name,
            "aim_words": _aim_words(self.aim, self.costs),
            "outcomes": self.ended,
            "silence": self._rules.silence,
            "rewards": self._rules.rewards,
            "tickets": {
                "asked": sum(one.asked for one in every),
                "rewards": sum(one.told for one in every),
                "pending": sum(arm.open for arm in self._arms),
                "late": sum(one.late for one in every),
                "late_sum": _plain(sum(one.late_sum for one in every)),
                "silent": silent,
                "lost": missing - silent,
            },
            "lead": self._lead,
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
            "pulls": max(arm.counts.asked, arm.tickets),
            "rewards": arm.rewards,
            "pending": arm.open,
            "missing": arm.tickets - arm.came,
            "late": arm.counts.late,
            "late_sum": _plain(arm.counts.late_sum),
            **dict(zip(("estimate", "low", "high"), map(_plain, found.tolist()), strict=True)),
        }

    def _on_offer(self, arm: _Arm) -> bool:
        return arm.open > 0 or arm.offered >= self._tickets - _LATELY


def compared(
    aim: Aim, names: Sequence[str], samples: Sequence[Histogram], *, costs: bool = False
) -> Comparison:
    """Compare arms by all their rewards, for any look.

    >>> red, blue = Histogram(), Histogram()
    >>> red.add([0, 0, 1] * 100)
    >>> blue.add([0, 1, 1] * 100)
    >>> compared(Mean(), ["red", "blue"], [red, blue]).lead
    Lead(arm='blue', sure=True, rivals=())
    """
    exact = all(sample.exact for sample in samples)
    lows = [sample.low for sample in samples]
    statistic = aim.among(lows)
    if isinstance(aim, Mean) and not exact:
        statistic = Unbounded()  # a frequent largest reward may be an effect of rounding
    highs = None if exact else [sample.high for sample in samples]
    return Comparison.of(statistic, names, lows, highs, costs=costs, any_look=True)


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
        quantile = f"the {aim.share:g}-quantile of those that are not zero"
        return f"the {size}mean of rewards capped at {quantile}"
    return f"the {size}{aim.name}"


def _how(aim: Aim, statistic: Statistic) -> list[str]:
    """Return sentences on what the intervals and a sure lead assume, and what is proved."""
    if isinstance(statistic, Unbounded):
        if isinstance(aim, CappedMean):
            return ["No finite cap is known yet, so there is no interval."]
        return [
            "For a mean of rewards without bounds no interval can hold, so none is given, and no "
            "lead is sure."
        ]
    found = [f"{statistic.words[0].upper()}{statistic.words[1:]}."] if statistic.words else []
    found.append(
        "If rewards depend neither on when they are asked for nor on how long they take, all "
        f"intervals together hold with {100 * LEVEL:.0f} % confidence at every look, whatever the "
        "policy chose, and so does a sure lead."
    )
    proved = "This is proved, for every distribution of rewards."
    if isinstance(aim, CappedMean):
        proved = (
            "This is proved for a fixed cap; for a cap learned from the rewards, as here, only the "
            "rate of wrong sure leads is measured."
        )
    elif isinstance(statistic, MeanWithin):
        proved = "This is proved if these are the true bounds of the rewards."
    return [*found, proved]


def _lead_words(aim: Aim, found: Comparison) -> str:
    """Say which arm leads, how sure that is, and what would make it sure."""
    unbounded = isinstance(found.statistic, Unbounded)
    known = ~np.isnan(found.values) if unbounded else [ends is not None for ends in found.intervals]
    few = [name for name, enough in zip(found.names, known, strict=True) if not enough]
    lead, aside = found.lead, set(few)
    if len(few) == len(found.names):
        return _TOO_EARLY
    if len(found.names) == 1:
        return f"{lead.arm} is the only arm."
    if lead.sure:
        return (
            f"{lead.arm} leads, and that is sure: the evidence over every other arm holds at any "
            "look."
        )
    rivals = [name for name in lead.rivals if name not in aside]
    if lead.arm is None:
        parts = [f"Nothing leads: {_listed(rivals)} are equal so far"]
    else:
        parts = [f"{lead.arm} leads so far"]
        if isinstance(aim, CappedMean) and unbounded:
            parts.append("no finite cap is known yet")
        elif unbounded:
            parts.append("never sure, as a mean of rewards without bounds has no interval")
        elif rivals:
            parts.append(f"not sure yet against {_listed(rivals)}")
    if few:
        parts.append(f"{_listed(few)} {'has' if len(few) == 1 else 'have'} too few rewards")
    words = "; ".join(parts) + "."
    more = found.forecast() if len(rivals) <= _RIVALS else None
    if more is None:
        return words
    about = float(f"{more.rewards:.0e}")  # one digit, so that the sentence stays for a while
    return (
        f"{words} About {about:,.0f} more rewards of these arms would make it sure, if they differ "
        "as they seem to."
    )


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
