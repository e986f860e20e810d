"""What the page says, in sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.formatting import amount, listed, signed
from tailproof.service.page.timeline import plain
from tailproof.stats.aims import Aim
from tailproof.stats.comparison import (
    LEVEL,
    Comparison,
    Lead,
    Statistic,
    Unbounded,
)
from tailproof.stats.uplift import Estimate, Scale, Worth

__all__ = [
    "BY_FEATURES",
    "TOO_EARLY",
    "About",
    "Counted",
    "aim_words",
    "exploring",
    "judged_words",
    "lead_how",
    "lead_words",
    "pay",
    "spelled",
    "weighted_words",
]

_RIVALS = 4
"""With more rivals there is no forecast; it takes up to a tenth of a second for each."""
TOO_EARLY = "Too early to tell: no arm has enough rewards yet."
BY_FEATURES = (
    "The policy chose arms by features, so these estimates cannot tell which arm leads; "
    "`tailproof judge` can."
)


def aim_words(aim: Aim, costs: bool | None = None) -> str:
    """Describe an aim.

    >>> from tailproof import Median, Quantile
    >>> aim_words(Quantile(0.95)), aim_words(Median(), costs=True)
    ('the 0.95-quantile', 'the smallest median')
    """
    size = "" if costs is None else "smallest" if costs else "largest"
    return aim.words(size)


def lead_how(aim: Aim, statistic: Statistic) -> list[str]:
    """Return sentences on the assumptions of intervals and of a sure lead, and on proofs."""
    if isinstance(statistic, Unbounded):
        if aim.share is not None:
            return ["No finite cap is known yet, so there is no interval."]
        return [
            "For a mean of rewards without bounds no interval can hold, so none is given, and no "
            "lead is sure."
        ]
    told = [f"{statistic.words[0].upper()}{statistic.words[1:]}."] if statistic.words else []
    told.append(
        "If rewards depend neither on when they are asked for nor on how long they take, all "
        f"intervals together hold with {100 * LEVEL:.0f} % confidence at every look, whatever the "
        "policy chose, and so does a sure lead."
    )
    proved = "This is proved, for every distribution of rewards."
    if aim.share is not None:
        proved = (
            "This is proved for a fixed cap; for a cap learned from the rewards, as here, only the "
            "rate of wrong sure leads is measured."
        )
    elif statistic.range is not None:
        proved = "This is proved if these are the true bounds of the rewards."
    return [*told, proved]


def lead_words(aim: Aim, comparison: Comparison, noun: str = "request") -> str:
    """Say which arm leads, how sure that is, and how many more customers would make it sure."""
    unbounded = isinstance(comparison.statistic, Unbounded)
    known = (
        ~np.isnan(comparison.values)
        if unbounded
        else [ends is not None for ends in comparison.intervals]
    )
    few = [name for name, enough in zip(comparison.names, known, strict=True) if not enough]
    lead, aside = comparison.lead, set(few)
    if len(few) == len(comparison.names):
        return TOO_EARLY
    if len(comparison.names) == 1:
        return f"{lead.arm} is the only arm."
    if lead.sure:
        return (
            f"{lead.arm} leads, and that is sure: the evidence over every other arm holds at any "
            "look."
        )
    rivals = [name for name in lead.rivals if name not in aside]
    if lead.arm is None:
        parts = [f"Nothing leads: {listed(rivals)} are equal so far"]
    else:
        parts = [f"{lead.arm} leads so far"]
        if aim.share is not None and unbounded:
            parts.append("no finite cap is known yet")
        elif unbounded:
            parts.append("never sure, as a mean of rewards without bounds has no interval")
        elif comparison.doubts:
            parts.append(f"not sure yet: {'; '.join(comparison.doubts)}")
        elif rivals:
            parts.append(f"not sure yet against {listed(rivals)}")
    if few:
        parts.append(f"{listed(few)} {'has' if len(few) == 1 else 'have'} too few rewards")
    words = "; ".join(parts) + "."
    more = comparison.forecast() if len(rivals) <= _RIVALS else None
    if more is None:
        return words
    about = float(f"{more.rewards:.0e}")  # one digit, so that the sentence stays for a while
    return (
        f"{words} About {about:,.0f} more {noun}s with these arms would make it sure, if they "
        "differ as they seem to."
    )


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Customers that are counted, and customers that are not.

    Attributes
    ----------
    known : int
    units : bool
        Whether requests name units, so that returning customers are recognised.
    waiting : int
        Customers whose time is not over.
    outside : float
        The sum of rewards of requests after their customer's window.
    window : float
        Seconds.
    """

    known: int = 0
    units: bool = False
    waiting: int = 0
    outside: float = 0.0
    window: float = math.inf

    @property
    def noun(self) -> str:
        """What one observation is called."""
        return "customer" if self.units else "request"

    @property
    def words(self) -> str:
        """Whose rewards are counted, and whose are not."""
        if not (self.units or self.known):
            due = f": a request has it {spelled(self.window)} after it came"
            return f"No outcome is known yet{due if math.isfinite(self.window) else ''}."
        if not self.units:
            return (
                "Requests name no unit, so each request is taken to be another customer: if "
                "customers return, name them in every ask."
            )
        span = spelled(self.window)
        if not self.known:
            return (
                f"No customer is counted yet; {self.waiting:,} wait: a customer counts once all "
                f"visits within {span} of the first one, and a later one, have their outcomes."
            )
        text = (
            f"{self.known:,} {_are('customer', self.known)} counted, each with what its visits "
            f"within {span} of the first one brought, once they are over"
        )
        if self.waiting:
            text += f"; {self.waiting:,} {'is' if self.waiting == 1 else 'are'} not counted yet"
        if self.outside:
            text += (
                f"; {amount(self.outside)} that later visits brought do not count: a longer wait "
                "counts more of them"
            )
        return f"{text}."

    def to_dict(self) -> dict[str, Any]:
        """Return the values of the page."""
        return {"known": self.known, "units": self.units, "waiting": self.waiting} | {
            "outside": plain(self.outside),
            "words": self.words,
        }


def _are(noun: str, count: int) -> str:
    return f"{noun} is" if count == 1 else f"{noun}s are"


def spelled(seconds: float) -> str:
    """Return a time span in words.

    >>> spelled(604800), spelled(3600), spelled(90)
    ('7 days', '1 hour', '90 seconds')
    """
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds % size == 0 and seconds >= size:
            count = seconds / size
            return f"{count:g} {name}" + ("s" if count != 1 else "")
    return f"{seconds:g} seconds"


def judged_words(aim: Aim, customers: Counted) -> str:
    """Say which number an arm is judged by."""
    what = "what each of its customers brought" if customers.units else "all its rewards"
    return f"Each arm is judged by {what}: {aim_words(aim)}. {customers.words}"


@dataclass(frozen=True, kw_only=True)
class About:
    """What the sentences need to know of an experiment."""

    aim: Aim
    costs: bool
    control: str | None
    lost: bool
    positive: bool
    """Whether no reward below zero was seen, so that percentages mean something."""
    scale: Scale | None
    ruled: float = 1.0
    """The share of requests that the rule decides, by configuration: all but the control group."""
    customers: Counted = Counted()

    @property
    def unit(self) -> str:
        """What the numbers are of, such as "a customer"."""
        level = self.aim.level
        if level is not None:
            name = "median" if level == 0.5 else f"{level:g}-quantile"
            return f"of its rewards above the {name} of the control group"
        return f"a {self.customers.noun}"

    @property
    def capped(self) -> str:
        """How rewards are cut, as a sentence; empty for quantiles."""
        if self.scale is None or self.aim.level is not None:
            return ""
        low, high = self.scale.low, self.scale.high
        ends = f"at {amount(high)}" if low == 0 else f"to {amount(low)} … {amount(high)}"
        return (
            f"Rewards are cut {ends} now. The range is learned again whenever there are twice as "
            "many outcomes, and always from earlier ones."
        )


def pay(about: About, control: Estimate | None, even: Estimate | None) -> dict[str, Any]:
    """Say how much more the rule earned than the control group and an even split."""
    rows = []
    if control is not None:
        name = f"the control group ({about.control})"
        rows.append(_gain(about, "control", name, control, about.ruled))
    if even is not None:
        rows.append(_gain(about, "even", "an even split", even, about.ruled))
    verdict, words = _verdict(about, rows)
    return {"verdict": verdict, "words": words, "how": _pay_how(about, even), "rows": rows}


def _gain(
    about: About, kind: str, name: str, estimate: Estimate, share_of_all: float = 1.0
) -> dict[str, Any]:
    """Return a difference as JSON; more is better, also for costs.

    The total is for a share of all requests.
    """
    sign = -1 if about.costs else 1
    ends = sorted(sign * end for end in (estimate.low, estimate.high))
    gains = [sign * estimate.difference, *ends]
    whole, counted = abs(estimate.other), about.aim.level is None
    share = about.positive and whole > 0
    percents = [100 * gain / whole if share else math.nan for gain in gains]
    many = share_of_all * estimate.requests
    totals = [gain * many if counted else math.nan for gain in gains]
    triples = {"gain": gains, "percent": percents, "total": totals}
    return {
        "against": kind,
        "name": name,
        "rule": plain(estimate.first),
        "other": plain(estimate.other),
        "requests": int(estimate.requests),
        "uncapped": plain(sign * estimate.uncapped),
        "beyond": estimate.beyond,
        **{key: [plain(x) for x in values] for key, values in triples.items()},
    }


def _verdict(about: About, rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
    if about.control is None:
        hint = (
            "There is no control group, so nobody can tell what one arm alone would have earned: "
            'add control = { arm = "…", share = 0.1 } to the file.'
        )
        return ("none", f"{hint} {_sentence(about, rows[0])[1]}" if rows else hint)
    if not rows or rows[0]["against"] != "control" or "Infinity" in rows[0]["gain"]:
        return "early", "Too early to tell: there are too few outcomes in the two groups."
    return _sentence(about, rows[0])


def _sentence(about: About, row: dict[str, Any]) -> tuple[str, str]:
    """Return a verdict and a sentence on one difference."""
    gain, low, high = (float(x) for x in row["gain"])
    percent = row["percent"][0]
    about_percent = "" if percent is None else f", {signed(float(percent))} %"
    between = f"between {amount(low)} and {amount(high)}"
    if math.isinf(low) and math.isinf(high):
        return "unsure", (
            f"Cannot tell against {row['name']}: some arms had no chance. Set explore or floor."
        )
    verb, end = (
        "saved" if about.costs else "earned",
        f"{about_percent}; {between}.{_in_all(about, row)}{_beyond(about, row)}",
    )
    if about.aim.level is not None:
        verb = "had"
    more = f"{amount(abs(gain))} {'more' if gain >= 0 else 'less'} {about.unit} than {row['name']}"
    words = f"the rule {verb} {more}{end}"
    if low > 0:
        return "paid", f"It paid: {words}"
    if high < 0:
        return "cost", f"It did not pay: {words}"
    return "unsure", f"Not sure yet: {words}"


def _in_all(about: About, row: dict[str, Any]) -> str:
    """Say the difference in all, for everyone that the rule decided for, with its interval."""
    total, low, high = (math.nan if x is None else float(x) for x in row["total"])
    if not math.isfinite(total + low + high):
        return ""
    many = about.ruled * row["requests"] if row["against"] != "served" else row["requests"]
    return (
        f" That is {_sum(total)} in all for the {many:,.0f} {about.customers.noun}s that it "
        f"decided for; between {_sum(low)} and {_sum(high)}."
    )


def _sum(x: float) -> str:
    return amount(float(f"{x:.3g}"))


def _beyond(about: About, row: dict[str, Any]) -> str:
    """Name the cap, and the difference without it, if it cut anything."""
    if about.scale is None or not row["beyond"] or not isinstance(row["uncapped"], float):
        return ""
    raw, count = row["uncapped"], row["beyond"]
    more = "more" if raw >= 0 else "less"
    turned = raw * float(row["gain"][0]) < 0
    decide = ", and these decide" if turned else ""
    what = about.customers.noun if about.customers.units else "reward"
    what += " was" if count == 1 else "s were"
    return (
        f" Rewards are capped, now at {amount(about.scale.high)}, and {count:,} {what} beyond the "
        f"cap{decide}: without a cap it is {amount(abs(raw))} {more} "
        f"{about.unit}{_raw_total(about, row)}."
    )


def _raw_total(about: About, row: dict[str, Any]) -> str:
    """Return the uncapped difference in all, in brackets."""
    many = about.ruled * row["requests"]
    return f" ({_sum(float(row['uncapped']) * many)} in all, without an interval)"


def _pay_how(about: About, even: Estimate | None) -> str:
    level = f"{100 * LEVEL:.0f} %"
    if about.aim.level is not None:
        return (
            "Each request got its arm with a probability p that is in the journal. Compared is "
            "the share of rewards above the quantile of the control group's earlier rewards, which "
            "does not move as the rule learns; a reward weighs 1/p. The interval holds with "
            f"{level} confidence at every look, whatever the policy had learned (proved by bets "
            f"that cannot be won at the truth; Ville 1939). {_assumed(about)}"
        )
    parts = [
        "Each request got its arm with a probability p that is in the journal. A reward weighs "
        "1/p, so that the mean of its terms is the difference between two rules, whatever the "
        f"policy had learned and whoever asked. The interval holds with {level} confidence at "
        "every look, also if rewards or visitors change with time: it is about what the requests "
        "so far could expect (proved by bets that cannot be won at the truth; Ville 1939).",
        about.capped,
        "Percentages divide by the estimate for the other rule.",
    ]
    if even is not None:
        parts.append("An even split gives every arm on offer the same share of requests.")
    return " ".join(part for part in [*parts, _assumed(about)] if part)


def _assumed(about: About) -> str:
    """Name the conditions."""
    text = f"{about.customers.words} Assumed: one {about.customers.noun} does not change the "
    text += "reward of another"
    if about.lost:
        text += "; whether a reward is lost or slow does not depend on the arm and its size"
    return text + "."


def exploring(about: About, estimate: Estimate | None, worth: Worth) -> dict[str, Any]:
    """Say how much more the policy's own choice would have earned at the other requests."""
    drawn, decisions = (sum(part) for part in zip((0, 0), *worth.controls.values(), strict=True))
    shares = f" {drawn:,} of {decisions:,} decisions were the control group." if decisions else ""
    how = (
        "This compares what the policy would have chosen by itself, at each request, with what the "
        "request got: control, explore and floor together. It leaves out what was learned thanks "
        f"to them. The interval is of the same kind as above. {about.capped}"
    )
    blank = {"words": "", "how": how.strip(), "row": None}
    if about.aim.level is not None:
        return blank | {"words": f"For a quantile the cost is not estimated.{shares}", "how": ""}
    if estimate is None:
        return blank | {"words": "Too early to tell, or the propensities are not known.", "how": ""}
    row = _gain(about, "served", "what the requests got", estimate)
    gain, low, high = (float(x) for x in row["gain"])
    total = [float(x) for x in row["total"]]
    spread = f"between {amount(low)} and {amount(high)}"
    if low > 0:
        words = f"Exploring cost {amount(gain)} {about.unit}, {spread}; {amount(total[0])} in all."
    else:
        words = (
            f"Exploring cost about {amount(gain)} {about.unit}; {spread}, so nothing is sure yet."
        )
    return {"words": words + shares, "how": how.strip(), "row": row}


def weighted_words(lead: Lead) -> dict[str, str]:
    """Say which arm alone would have earned most."""
    how = (
        "The policy chose arms by features. So each arm is judged by what it alone would have "
        "earned with all requests that could have got it: a reward weighs 1/p, p the "
        "probability of its arm. Imported rows, which the table counts, are left out. All "
        f"intervals together hold with {100 * LEVEL:.0f} % confidence at every look. A rule that "
        "chooses by features can be better than every single arm."
    )
    if lead.arm is None:
        return {"words": TOO_EARLY, "how": how}
    if lead.sure:
        said = f"Alone, {lead.arm} would earn most, and that is sure."
    else:
        said = f"Alone, {lead.arm} would earn most so far; not sure against {listed(lead.rivals)}."
    return {"words": said, "how": how}
