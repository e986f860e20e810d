"""What the page says, in sentences."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailproof.formatting import amount, json_number, listed, signed
from tailproof.service.page.counts import Counts
from tailproof.stats.aims import Aim
from tailproof.stats.comparison import LEVEL, Comparison, Lead, Statistic, Unbounded
from tailproof.stats.uplift import Estimate

__all__ = [
    "BY_FEATURES",
    "TOO_EARLY",
    "aim_words",
    "customers",
    "exploring",
    "judged",
    "lead_how",
    "lead_words",
    "pay",
    "spelled",
    "weighted_words",
]

_RIVALS = 4
"""With more rivals there is no forecast; it takes up to a tenth of a second for each."""
_SURE = f"{100 * LEVEL:.0f} %"
TOO_EARLY = "Too early to tell: no arm has enough rewards yet."
BY_FEATURES = (
    "The policy chose arms by features, so these estimates cannot tell which arm leads; "
    "`tailproof judge` can."
)
_RETURNED = (
    "Units came back, and rewards of one unit that do not add up are not independent: nothing is "
    "called sure. `tailproof judge` counts units."
)
_WEIGHTED = (
    "The policy chose arms by features. So each arm is judged by what it alone would have "
    "earned with all requests that could have got it: a reward weighs 1/p, p the "
    "probability of its arm. Imported rows, which the table counts, are left out. All "
    f"intervals together hold with {_SURE} confidence at every look. A rule that "
    "chooses by features can be better than every single arm."
)
_PAID_SHARES = (
    "Each request got its arm with a probability p that is in the journal. Compared is the share "
    "of rewards above the quantile of the control group's earlier rewards, which does not move as "
    f"the rule learns; a reward weighs 1/p. The interval holds with {_SURE} confidence at every "
    "look, whatever the policy had learned (proved by bets that cannot be won at the truth; Ville "
    "1939)."
)
_PAID_MEANS = (
    "Each request got its arm with a probability p that is in the journal. A reward weighs "
    "1/p, so that the mean of its terms is the difference between two rules, whatever the "
    f"policy had learned and whoever asked. The interval holds with {_SURE} confidence at "
    "every look, also if rewards or visitors change with time: it is about what the requests "
    "so far could expect (proved by bets that cannot be won at the truth; Ville 1939)."
)
_EXPLORING = (
    "This compares what the policy would have chosen by itself, at each request, with what the "
    "request got: control, explore and floor together. It leaves out what was learned thanks "
    "to them. The interval is of the same kind as above."
)
_NO_CONTROL = (
    "There is no control group, so nobody can tell what one arm alone would have earned: "
    'add control = { arm = "…", share = 0.1 } to the file.'
)


def _capped(counts: Counts) -> str:
    """Say how rewards are cut; nothing for quantiles."""
    scale = counts.followed.worth.scale
    if scale is None or counts.aim.level is not None:
        return ""
    ends = f"at {amount(scale.high)}"
    if scale.low != 0:
        ends = f"to {amount(scale.low)} … {amount(scale.high)}"
    return (
        f"Rewards are cut {ends} now. The range is learned again whenever there are twice as "
        "many outcomes, and always from earlier ones."
    )


def customers(counts: Counts, known: int) -> str:
    """Say whose rewards are counted, and whose are not."""
    span, waiting = spelled(counts.window), counts.followed.windows.open
    if not (counts.followed.units or known):
        due = f": a request has it {span} after it came" if math.isfinite(counts.window) else ""
        return f"No outcome is known yet{due}."
    if not counts.followed.units:
        return (
            "Requests name no unit, so each request is taken to be another customer: if "
            "customers return, name them in every ask."
        )
    if not known:
        return (
            f"No customer is counted yet; {waiting:,} wait: a customer counts once all "
            f"visits within {span} of the first visit, and a later visit, have their outcomes."
        )
    text = (
        f"{known:,} {'customer is' if known == 1 else 'customers are'} counted, each with what its "
        f"visits within {span} of the first visit brought, once they are over"
    )
    if waiting:
        are = "is" if waiting == 1 else "are"
        text += f"; {waiting:,} {are} not counted yet (that takes a later request with its outcome)"
    if counts.outside:
        text += (
            f"; {amount(counts.outside)} that later visits brought do not count: a longer wait "
            "counts more of them"
        )
    return f"{text}."


def judged(counts: Counts) -> str:
    """Say by which number an arm is judged, and for how many customers it is known."""
    known = int(counts.by_arm["customers"].sum())
    what = "what each of its customers brought" if counts.followed.units else "all its rewards"
    return f"Each arm is judged by {what}: {aim_words(counts.aim)}. {customers(counts, known)}"


def aim_words(aim: Aim, costs: bool | None = None) -> str:
    """Describe an aim.

    >>> from tailproof import Median, Quantile
    >>> aim_words(Quantile(0.95)), aim_words(Median(), costs=True)
    ('the 0.95-quantile', 'the smallest median')
    """
    return aim.words("" if costs is None else "smallest" if costs else "largest")


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


def lead_how(aim: Aim, statistic: Statistic) -> list[str]:
    """Return sentences on the assumptions of intervals and of a sure lead, and on proofs."""
    if isinstance(statistic, Unbounded):
        if aim.share is not None:
            return ["No finite cap is known yet, so there is no interval."]
        return [
            "For a mean of rewards without bounds no interval can hold, so none is given, and no "
            "lead is sure."
        ]
    cut = [f"{statistic.words[0].upper()}{statistic.words[1:]}."] if statistic.words else []
    assumed = (
        "If rewards depend neither on when they are asked for nor on how long they take, all "
        f"intervals together hold with {_SURE} confidence at every look, whatever the "
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
    return [*cut, assumed, proved]


def lead_words(counts: Counts, comparison: Comparison) -> str:
    """Say which arm leads, how sure that is, and how many more customers would make it sure."""
    lead, names = comparison.lead, comparison.names
    unbounded = isinstance(comparison.statistic, Unbounded)
    known = [ends is not None for ends in comparison.intervals]
    if unbounded:
        known = (~np.isnan(comparison.values)).tolist()
    few = [name for name, enough in zip(names, known, strict=True) if not enough]
    if len(few) == len(names):
        return TOO_EARLY
    if len(names) == 1:
        return f"{lead.arm} is the only arm."
    if lead.sure and counts.dependent:
        return f"{lead.arm} leads so far. {_RETURNED}"
    if lead.sure:
        return (
            f"{lead.arm} leads, and that is sure: the evidence over every other arm holds at any "
            "look."
        )
    rivals = [name for name in lead.rivals if name not in few]
    if lead.arm is None:
        parts = [f"Nothing leads: {listed(rivals)} are equal so far"]
    else:
        parts = [f"{lead.arm} leads so far"]
        if unbounded and counts.aim.share is not None:
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
    count = float(f"{more.rewards:.0e}")  # one digit, so that the sentence stays for a while
    return (
        f"{words} About {count:,.0f} more {counts.noun}s with these arms would make it sure, if "
        "they differ as they seem to."
    )


def weighted_words(counts: Counts, lead: Lead) -> dict[str, str]:
    """Say which arm alone would have earned most."""
    if lead.arm is None:
        said = TOO_EARLY
    elif lead.sure and counts.dependent:
        said = f"Alone, {lead.arm} would earn most so far. {_RETURNED}"
    elif lead.sure:
        said = f"Alone, {lead.arm} would earn most, and that is sure."
    else:
        said = f"Alone, {lead.arm} would earn most so far; not sure against {listed(lead.rivals)}."
    return {"words": said, "how": _WEIGHTED}


def pay(counts: Counts) -> dict[str, Any]:
    """Say how much more the rule earned than the control group and an even split."""
    worth, mean, rows = counts.followed.worth, counts.aim.level is None, []
    if counts.control and (estimate := worth.against_control()):
        rows.append(_gain(counts, "control", f"the control group ({counts.control})", estimate))
    how = [_PAID_SHARES]
    if mean:
        how = [
            _PAID_MEANS,
            _capped(counts),
            "Percentages divide by the estimate for the other rule.",
        ]
    if mean and (estimate := worth.even.estimate()):
        rows.append(_gain(counts, "even", "an even split", estimate))
        how.append("An even split gives every arm on offer the same share of requests.")
    verdict, words = _verdict(counts, rows)
    return {
        "verdict": verdict,
        "words": words,
        "how": " ".join(text for text in (*how, _assumed(counts)) if text),
        "rows": rows,
        "trail": [(at, *map(json_number, found[2:5])) for at, found in worth.trail],
    }


def _gain(counts: Counts, against: str, name: str, estimate: Estimate) -> dict[str, Any]:
    """Return a difference as JSON; more is better, also for costs.

    The total is for the requests that the rule decides, or for all if they are `served`.
    """
    sign = -1 if counts.costs else 1
    ends = sorted(sign * end for end in (estimate.low, estimate.high))
    gains = [sign * estimate.difference, *ends]
    whole = abs(estimate.other)
    many = estimate.requests * (1.0 if against == "served" else counts.followed.worth.ruled)
    triples = {
        "gain": gains,
        "percent": [
            100 * gain / whole if counts.followed.positive and whole else math.nan for gain in gains
        ],
        "total": [gain * many if counts.aim.level is None else math.nan for gain in gains],
    }
    return {
        "against": against,
        "name": name,
        "rule": json_number(estimate.first),
        "other": json_number(estimate.other),
        "requests": int(estimate.requests),
        "uncapped": json_number(sign * estimate.uncapped),
        "beyond": estimate.beyond,
        **{key: [json_number(x) for x in values] for key, values in triples.items()},
    }


def _verdict(counts: Counts, rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Say whether it paid, in a word and in sentences."""
    if counts.control is None:
        return "none", f"{_NO_CONTROL} {_sentence(counts, rows[0])[1]}" if rows else _NO_CONTROL
    if counts.aim.level is None and counts.followed.worth.scale is None:
        return "early", (
            "Too early to tell: the range of rewards is learned first, from 256 "
            f"{counts.noun}s or more."
        )
    if not rows or rows[0]["against"] != "control" or "Infinity" in rows[0]["gain"]:
        return "early", "Too early to tell: there are too few outcomes in the two groups."
    return _sentence(counts, rows[0])


def _sentence(counts: Counts, row: dict[str, Any]) -> tuple[str, str]:
    """Return a verdict and a sentence on one difference."""
    gain, low, high = (float(x) for x in row["gain"])
    if math.isinf(low) and math.isinf(high):
        return "unsure", (
            f"Cannot tell against {row['name']}: some arms had no chance. Set explore or floor."
        )
    words = _gained(counts, row) if counts.aim.level is None else _shares(counts, gain, low, high)
    if low > 0:
        return "paid", f"It paid: {words}"
    if high < 0:
        return "cost", f"It did not pay: {words}"
    return "unsure", f"Not sure yet: {words}"


def _gained(counts: Counts, row: dict[str, Any]) -> str:
    """Say what the rule earned per customer and in all beyond another rule."""
    gain, low, high = (float(x) for x in row["gain"])
    verb, percent = "saved" if counts.costs else "earned", row["percent"][0]
    share = "" if percent is None else f", {signed(float(percent))} %"
    return (
        f"the rule {verb} {_more(gain)} a {counts.noun} than {row['name']}{share}; "
        f"{_between(low, high)}.{_in_all(counts, row)}{_beyond(counts, row)}"
    )


def _shares(counts: Counts, gain: float, low: float, high: float) -> str:
    """Compare the shares of rewards above the control group's quantile; of costs, not above it."""
    level, where = counts.aim.level, "not above" if counts.costs else "above"
    name = "median" if level == 0.5 else f"{level:g}-quantile"
    return (
        f"{amount(100 * abs(gain))} percentage points {'more' if gain >= 0 else 'fewer'} of the "
        f"rule's rewards than of the control group's were {where} the control group's {name}; "
        f"{_between(100 * low, 100 * high)}."
    )


def _more(gain: float) -> str:
    return f"{amount(abs(gain))} {'more' if gain >= 0 else 'less'}"


def _between(low: float, high: float) -> str:
    return f"between {amount(low)} and {amount(high)}"


def _in_all(counts: Counts, row: dict[str, Any]) -> str:
    """Say the difference in all, for everyone that the rule decided for, with its interval."""
    total, low, high = (math.nan if x is None else _rounded(float(x)) for x in row["total"])
    if not math.isfinite(total + low + high):
        return ""
    many = counts.followed.worth.ruled * row["requests"]
    return (
        f" That is {amount(total)} in all for the {many:,.0f} {counts.noun}s that it decided for; "
        f"{_between(low, high)}."
    )


def _rounded(x: float) -> float:
    return float(f"{x:.3g}")


def _beyond(counts: Counts, row: dict[str, Any]) -> str:
    """Name the cap, and the difference without it, if it cut anything."""
    raw, count = row["uncapped"], row["beyond"]
    scale = counts.followed.worth.scale
    if scale is None or not count or not isinstance(raw, float):
        return ""
    decide = ", and these decide" if raw * float(row["gain"][0]) < 0 else ""
    what = counts.noun if counts.followed.units else "reward"
    total = _rounded(raw * counts.followed.worth.ruled * row["requests"])
    return (
        f" Rewards are capped, now at {amount(scale.high)}, and {count:,} {what}"
        f"{' was' if count == 1 else 's were'} beyond the cap{decide}: without a cap it is "
        f"{_more(raw)} a {counts.noun} ({amount(total)} in all, without an interval)."
    )


def _assumed(counts: Counts) -> str:
    """Name the conditions."""
    assumed = f"Assumed: one {counts.noun} does not change the reward of another"
    if counts.silence is None:
        assumed += "; whether a reward is lost or slow does not depend on the arm and its size"
    return f"{customers(counts, counts.followed.count)} {assumed}."


def exploring(counts: Counts) -> dict[str, Any]:
    """Say how much more the policy's own choice would have earned at the other requests."""
    worth = counts.followed.worth
    drawn, decisions = (sum(part) for part in zip((0, 0), *worth.controls.values(), strict=True))
    shares = f" {drawn:,} of {decisions:,} decisions were the control group." if decisions else ""
    estimate = worth.exploring.estimate()
    if counts.aim.level is not None or estimate is None:
        words = "Too early to tell, or the propensities are not known."
        if counts.aim.level is not None:
            words = f"For a quantile the cost is not estimated.{shares}"
        return {"words": words, "how": "", "row": None}
    row = _gain(counts, "served", "what the requests got", estimate)
    gain, low, high = (float(x) for x in row["gain"])
    cost = f"{amount(gain)} a {counts.noun}"
    if low > 0:
        total = amount(float(row["total"][0]))
        words = f"Exploring cost {cost}, {_between(low, high)}; {total} in all."
    else:
        words = f"Exploring cost about {cost}; {_between(low, high)}, so nothing is sure yet."
    return {"words": words + shares, "how": f"{_EXPLORING} {_capped(counts)}".strip(), "row": row}
