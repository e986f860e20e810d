"""Sentences about who leads: which customers, which revenue, in which period, and how sure.

Advice on files and the page of the service say the same: every function takes a `Standing`.
"""

import math

import numpy as np

from tailproof.formatting import listed, short, two_digits, with_sign
from tailproof.stats.contrasts import Contrast
from tailproof.stats.standing import Standing

__all__ = [
    "about_assumptions",
    "about_cap",
    "about_control",
    "about_lead",
    "about_pair",
    "about_visits",
    "bounds_words",
    "how_many_more",
    "noun",
]

_MOST = 1e9
"""A forecast of more customers than this is left out: nobody will collect so many."""


def about_lead(standing: Standing) -> str:
    """Say which arm leads, by how much, and whether that is sure.

    >>> import numpy as np
    >>> from tailproof.stats.customers import Customers
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.integers(0, 2, 40_000)
    >>> bought = np.where(rng.random(40_000) < np.where(arm == 1, 0.06, 0.04), 25.0, 0.0)
    >>> who = Customers.of(arm=arm, reward=bought, unit=np.arange(40_000))
    >>> print(about_lead(Standing(customers=who, names=["classic", "bold"])))
    bold leads, and that is sure: it earns 0.5776 more per customer than classic (+61%; +0.4676 to
    +0.6837, 95%, one look), as long as totals of customers do not exceed 25, the largest so far.
    """
    if standing.best is None:
        return f"nothing leads, as {listed(standing.names)} have equal values."
    leader = standing.leader
    if standing.closest is None:
        return f"{leader} is the only arm."
    rival = standing.names[standing.closest]
    closest = ", its closest rival" if len(standing.names) > 2 else ""
    pair = about_pair(standing, standing.best, standing.closest, closest)
    if standing.sure:
        return f"{leader} leads, and that is sure: it {pair}"
    if standing.doubts:
        reasons = "; ".join(standing.doubts)
        return f"{leader} leads, and that is not sure: {reasons}. It {pair}"
    against = ", ".join(standing.rivals)
    more = how_many_more(standing, standing.best, standing.closest)
    needed = f" {more} would tell {leader} from {rival}." if more else ""
    return f"{leader} leads, not sure against {against}: it {pair}{needed}"


def about_pair(standing: Standing, arm: int, other: int, appendix: str = "") -> str:
    """Say what one arm earns beyond another, with its lift, its interval, and the cap."""
    contrast = standing.pair(arm, other)
    verb = "costs" if standing.costs else "earns"
    more = "more" if contrast.difference >= 0 else "less"
    words = f"{verb} {short(abs(contrast.difference))} {more} per {noun(standing)} than "
    words += f"{standing.names[other]}{appendix} ({_interval(standing, contrast)})"
    return f"{words}{_cap(standing)}.{_uncapped(standing, arm, other, contrast)}"


def _interval(standing: Standing, contrast: Contrast) -> str:
    looks = f"{standing.level:.0%}, {standing.judged_for} look"
    if not contrast.known:
        return f"no interval, {looks}"
    lift = contrast.lift(standing.level)[0]
    percent = "" if math.isnan(lift) else f"{lift:+.0%}; "
    return f"{percent}{with_sign(contrast.low)} to {with_sign(contrast.high)}, {looks}"


def _cap(standing: Standing) -> str:
    """Say at which value totals are cut, and who named it."""
    low, high = standing.range
    totals = "rewards" if standing.customers.case == "rows" else "totals of customers"
    if standing.bounded:
        return f", for {totals} of at most {short(high)}, as you said"
    if standing.assumed:
        return f", as long as {totals} lie between {short(low)} and {short(high)}"
    if not standing.above:
        return f", as long as {totals} do not exceed {short(high)}, the largest so far"
    quantile = f"{standing.share:.0%} quantile"
    return f", {totals} capped {_ends(standing)} (their {quantile})"


def _ends(standing: Standing) -> str:
    """Say where totals are cut; the lower end only if some are below it."""
    low, high = standing.range
    if not low and not standing.below:
        return f"at {short(high)}"
    return f"at {short(low)} and {short(high)}"


def about_cap(standing: Standing) -> str:
    """Say what share of all revenue the cap leaves out, and whose refunds; empty if none."""
    totals, (low, high) = standing.customers.total, standing.range
    size = float(np.abs(totals).sum())
    if not 0 < size < math.inf:
        return ""
    words = []
    if standing.above:
        left = float((totals - high)[totals > high].sum()) / size
        who = _counted(standing.above, standing)
        words = [f"The cap leaves out {left:.1%} of the sum, what {who} brought beyond it."]
    if standing.below:
        under = totals < low
        by_arm = np.bincount(standing.customers.arm[under], minlength=len(standing.names))
        pairs = zip(standing.names, by_arm.tolist(), strict=True)
        arms = ", ".join(f"{name} {count:,}" for name, count in pairs if count)
        left = float((low - totals)[under].sum()) / size
        verb = "counts" if standing.below == 1 else "count"
        refunds = "" if low else ", refunds perhaps"
        words.append(
            f"{_counted(standing.below, standing)} below {short(low)} ({arms}) {verb} as "
            f"{short(low)}{refunds}: {left:.1%} of the sum."
        )
    return " ".join(words)


def _counted(count: int, standing: Standing) -> str:
    return f"{count:,} {noun(standing)}" + ("s" if count > 1 else "")


def bounds_words(standing: Standing) -> str:
    """Describe the range of a mean; the sentence goes on with "For the mean …"."""
    low, high = standing.range
    totals = "rewards" if standing.customers.case == "rows" else "totals of customers"
    between = f"between {short(low)} and {short(high)}"
    if standing.bounded and standing.smallest is None:
        least = f"at least {short(low)}, as here"
        return f"{totals} are at most {short(high)}, as you said, and {least}"
    if standing.bounded:
        return f"{totals} lie {between}, as you said"
    if standing.assumed:
        return f"{totals} are assumed to lie {between}"
    sold = f"{'rewards' if standing.customers.case == 'rows' else 'totals'} that are not zero"
    quantile = f"{100 * standing.share:.4g}% quantile of {sold}"
    return f"{totals} are capped {_ends(standing)}, the {quantile}"


def _uncapped(standing: Standing, arm: int, other: int, contrast: Contrast) -> str:
    """Say the difference without the cap, if the cap reverses its sign."""
    if not standing.above + standing.below:
        return ""
    raw = standing.uncapped(arm, other)
    if raw * contrast.difference >= 0 or not math.isfinite(raw):
        return ""
    more = "more" if raw > 0 else "less"
    low = short(standing.range[0])
    above = f"{_counted(standing.above, standing)} above the cap" if standing.above else ""
    below = f"{_counted(standing.below, standing)} below {low}" if standing.below else ""
    cut = " and ".join(filter(None, [above, below]))
    decide = "decides" if standing.above + standing.below == 1 else "decide"
    return f" Uncapped it was {short(abs(raw))} {more}: {cut} {decide} that."


def how_many_more(standing: Standing, arm: int, other: int) -> str:
    """Say how many more customers would make a pair sure, four times in five; empty if unknown."""
    more = standing.pair(arm, other).more_customers(standing.level)
    if not 0 < more < _MOST:
        return ""
    return f"About {two_digits(more):,.0f} more {noun(standing)}s"


def about_control(standing: Standing, control: str) -> list[str]:
    """Say how much more than the control each arm earns, with p values after Holm."""
    lines = []
    tail = (1 - standing.level) / 2
    for name, (contrast, better, worse) in standing.against(control).items():
        arm, base = list(standing.names).index(name), list(standing.names).index(control)
        pair = about_pair(standing, arm, base)
        if standing.doubts:
            verdict = "not sure"
        elif better <= tail:
            verdict = f"better, p = {better:.2g}"
        elif standing.sure and arm == standing.best:  # it beats every arm, so this one, too
            verdict = "better, as its lead is sure"
        elif worse <= tail:
            verdict = f"worse, p = {worse:.2g}"
        else:
            more = how_many_more(standing, arm, base)
            verdict = "not sure"
            if contrast.low > 0 or contrast.high < 0:
                verdict += f" for all {len(standing.names) - 1} arms at once"
            verdict += f"; {more[0].lower()}{more[1:]} would tell" if more else ""
        lines.append(f"{name} {pair} That is {verdict}.")
    if len(lines) > 1 and not standing.doubts:
        lines.append(
            "Each interval is for its arm alone; better and worse are for all "
            f"{len(lines)} arms at once (Holm's one-sided p)."
        )
    return lines


def about_assumptions(standing: Standing) -> list[str]:
    """Say whose rewards are compared, within which days, for how many looks."""
    customers = standing.customers
    lines = [_whose(standing)]
    if customers.mixed:
        who = "customer that saw" if customers.mixed == 1 else "customers that saw"
        count = "counts for the first one" if customers.mixed == 1 else "count for their first one"
        was = "was left out" if customers.mixed == 1 else "were left out"
        lines.append(
            f"{customers.mixed:,} {who} several arms {count if customers.mixed_stay else was}."
        )
    drift = standing.moved
    if standing.judged_for != standing.looks:
        lines.append(
            "The shares of the arms changed with time, perhaps because of the rewards, so "
            "intervals hold at any look, which makes them wider."
        )
    if standing.weighed:
        lines.append(
            "The shares of the arms followed the rewards, so rewards are weighted by propensities, "
            "and intervals have a tenth of the usual error probability."
        )
    if standing.day is not None and standing.judged_for == "one" and customers.case != "visits":
        days = int(standing.day.max(initial=0)) + 1
        lines.append(f"Arms are compared within days ({days} days): growth and weekends cancel.")
    elif customers.time is not None and standing.day is None:
        lines.append("All rows are of one day, within which hours are not compared.")
    elif standing.day is None and customers.case != "visits":
        order = ", and rows are sorted by arm, so that cannot be tested" if drift.sorted else ""
        lines.append(
            f"No times are given: all arms are taken to have met the same days{order}; name a "
            "time column if not."
        )
    if customers.weight is None and not drift.followed:
        lines.append("Arms are assumed to have been drawn at random, whoever the customer is.")
    if few := standing.concentration.words:
        lines.append(few)
    return lines


def _whose(standing: Standing) -> str:
    customers = standing.customers
    if customers.case == "rows":
        return "Each row is taken to be another customer; name a unit column if some return."
    if customers.case == "visits":
        return (
            f"{customers.n:,} customers, with an arm drawn at each visit: an arm's value is what "
            "a customer brings if every visit has this arm."
        )
    again = f", {customers.returning:,} of whom returned" if customers.returning else ""
    return f"{customers.n:,} customers, each with one arm{again}."


def about_visits(standing: Standing) -> str:
    """Name the arm that leads per visit, if it is not the leader by customers; else empty."""
    if standing.customers.case != "customers" or standing.best is None:
        return ""
    values = -standing.per_visit if standing.costs else standing.per_visit
    best = int(values.argmax())
    if best == standing.best or math.isnan(values[best]):
        return ""
    return (
        f"Per visit {standing.names[best]} leads ({short(abs(values[best]))}): customers of "
        f"{standing.leader} come more often."
    )


def noun(standing: Standing) -> str:
    """Return the noun for one observation: row or customer."""
    return "row" if standing.customers.case == "rows" else "customer"
