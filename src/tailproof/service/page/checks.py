"""Whether the data can be trusted, and which rewards were told and not learned, with advice."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tailproof.formatting import amount, listed
from tailproof.service.page.counts import LISTED, Counts

__all__ = ["sound"]

_ALARM = math.log(1000)
"""Evidence that the control group is not drawn as configured; chance reaches it once in 1000."""
_MANY = 0.05
"""Above this share, late money is pointed out: effects of interest are as small."""
_MOST_LOST = 0.5
"""Above this share, lost rewards are pointed out: silence may then mean 0."""
_FEW = 0.002
"""Above this share, ignored rewards are pointed out: somebody's trials are a smaller share."""
_LEAST = 5
"""The fewest ignored rewards that are pointed out: somebody's trials are fewer."""
_NAMED = 6
"""The most arms that a check names."""
_IGNORED = {
    "unknown": (
        "unknown tickets",
        "named a ticket that was never asked for here",
        ": look for another experiment's tickets, test data, or asks that failed",
    ),
    "second": (
        "second rewards",
        "came for a ticket that already had another reward",
        ': if a visit may bring several, set rewards = "sum" and name an event in each tell',
    ),
    "repeated": ("repeated tells", "repeated a reward that is stored", ""),
}
"""For each kind of reward that was told and not stored: a name, what happened, and advice."""

Check = tuple[str, bool, str]
"""The name of a check, whether it is fine, and what was found."""


def sound(counts: Counts) -> dict[str, Any]:
    """Say whether the data can be trusted; each check is fine, a warning, or a number to know."""
    checks = [*_of_control(counts), *_of_late(counts), *_of_lost(counts)]
    checks += [*_of_ignored(counts), *_of_alarms(counts)]
    bad = [name for name, fine, _ in checks if not fine]
    words = f"Look at: {listed(bad)}." if bad else "Nothing looks wrong."
    rows = [{"name": name, "fine": fine, "words": found} for name, fine, found in checks]
    return {"fine": not bad, "words": words, "checks": rows}


def _of_control(counts: Counts) -> Iterator[Check]:
    if not counts.followed.worth.controls:
        return
    shares = "; ".join(
        f"{drawn:,} of {n:,} decisions, {drawn / n:.2%}, were control, and {share:.2%} "
        "are configured"
        for share, (drawn, n) in counts.followed.worth.controls.items()
    )
    fine = counts.followed.worth.ratio_evidence() < _ALARM
    if not fine:
        shares += (
            ". Chance does not explain this (evidence above 1000 to 1): requests are lost or sent "
            "elsewhere after their group was drawn"
        )
    yield "control group", fine, shares


def _of_late(counts: Counts) -> Iterator[Check]:
    late, sums, came, revenue = (
        counts.by_arm[name][:LISTED] for name in ("late", "late_sum", "came", "revenue")
    )
    count = int(late.sum())
    if not count:
        yield "late rewards", True, "none"
        return
    by_arm = ", ".join(
        f"{name} {int(late[arm]):,} ({amount(sums[arm])})"
        for name, arm in list(counts.numbers.items())[:_NAMED]
        if late[arm]
    )
    with np.errstate(invalid="ignore"):
        money, earned = abs(float(sums.sum())), abs(float(revenue.sum()))
    fine = count <= _MANY * (count + came.sum()) and not money > _MANY * (money + earned)
    action = "" if fine else ": make wait longer, or tell rewards sooner"
    yield "late rewards", bool(fine), f"{count:,} came too late: {by_arm}{action}"


def _of_lost(counts: Counts) -> Iterator[Check]:
    if counts.silence is not None:
        return
    requests, came, pending, pruned = (
        int(counts.by_arm[name][:LISTED].sum())
        for name in ("requests", "came", "pending", "pruned")
    )
    missing, asked = requests - came, requests + pending + pruned
    fine = missing <= _MOST_LOST * asked
    action = "" if fine else ": if no reward means 0, set silence = 0.0"
    yield "lost rewards", fine, f"{missing:,} of {asked:,} never came{action}"


def _of_ignored(counts: Counts) -> Iterator[Check]:
    """Say which rewards were told and not stored, with their sum and advice."""
    came = int(counts.by_arm["came"][:LISTED].sum())
    for why, (name, what, action) in _IGNORED.items():
        count, total = counts.ignored.get(why, (0, 0.0))
        if count:
            fine = not action or count < _LEAST or count <= _FEW * (came + count)
            yield name, fine, f"{count:,} ({amount(total)} in all) {what}{'' if fine else action}"


def _of_alarms(counts: Counts) -> Iterator[Check]:
    alarms = [note for note in counts.notes if note.kind == "alarm"]
    if alarms:  # the policy has started again by itself, so there is nothing to do
        last = alarms[-1].text
        why = ", ".join(f"{key} {value}" for key, value in last.items()) or "alarm"
        yield (
            "drift alarms",
            True,
            f"{len(alarms)} so far, and the policy started again; the last: {why}",
        )
