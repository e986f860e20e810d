"""Whether the data can be trusted, and which rewards were told and not learned, with advice."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tailproof.formatting import amount, listed
from tailproof.live.reading import Note
from tailproof.service.page.arms import Arm
from tailproof.service.page.sentences import About
from tailproof.stats.uplift import Worth

__all__ = ["sound"]

_ALARM = math.log(1000)
"""Evidence that the control group is not drawn as configured."""
_MANY = 0.05
"""A share of late money above this is pointed out."""
_MOST_LOST = 0.5
"""A share of lost rewards above this is pointed out: silence may then mean 0."""
_FEW = 0.002
"""A share of rewards that cannot be stored above this is pointed out."""

_LEAST = 5
"""Fewer rewards than this that cannot be stored are not pointed out."""


def sound(
    about: About,
    worth: Worth,
    arms: Sequence[Arm],
    notes: Sequence[Note],
    ignored: Mapping[str, tuple[int, float]],
) -> dict[str, Any]:
    """Say whether the data can be trusted; each check is fine, a warning, or a number to know."""
    checks = []
    if worth.controls:
        evidence = worth.ratio_evidence()
        shares = "; ".join(
            f"{drawn:,} of {n:,} decisions, {drawn / n:.2%}, were control, and {share:.2%} "
            "are configured"
            for share, (drawn, n) in worth.controls.items()
        )
        if evidence >= _ALARM:
            shares += (
                ". That is no chance (evidence above 1000 to 1): requests are lost or sent "
                "elsewhere after their group was drawn"
            )
        checks.append(("control group", evidence < _ALARM, shares))
    late = sum(arm.late for arm in arms)
    told = sum(arm.came for arm in arms)
    if late:
        by_arm = ", ".join(
            f"{arm.name} {arm.late:,} ({amount(arm.late_sum)})" for arm in arms[:6] if arm.late
        )
        money, revenue = (
            abs(sum(getattr(arm, name) for arm in arms)) for name in ("late_sum", "revenue")
        )
        fine = late <= _MANY * (late + told) and not money > _MANY * (money + revenue)
        action = "" if fine else ": make wait longer, or tell rewards sooner"
        checks.append(("late rewards", fine, f"{late:,} came too late: {by_arm}{action}"))
    else:
        checks.append(("late rewards", True, "none"))
    if about.lost:
        missing = sum(arm.requests - arm.came for arm in arms)
        asked = sum(arm.asked for arm in arms)
        fine = missing <= _MOST_LOST * asked
        action = "" if fine else ": if no reward means 0, set silence = 0.0"
        checks.append(("lost rewards", fine, f"{missing:,} of {asked:,} never came{action}"))
    checks += _about_ignored(ignored, told)
    alarms = [note for note in notes if note.kind == "alarm"]
    if alarms:  # the policy has started again by itself, so there is nothing to do
        said = f"{len(alarms)} so far, and the policy started again; the last: {_note(alarms[-1])}"
        checks.append(("drift alarms", True, said))
    bad = [name for name, fine, _ in checks if not fine]
    words = f"Look at: {listed(bad)}." if bad else "Nothing looks wrong."
    rows = [{"name": name, "fine": fine, "words": said} for name, fine, said in checks]
    return {"fine": not bad, "words": words, "checks": rows}


def _about_ignored(
    ignored: Mapping[str, tuple[int, float]], told: int
) -> list[tuple[str, bool, str]]:
    """Say which rewards were told and not stored, with their sum and advice."""
    ways = {
        "unknown": (
            "unknown tickets",
            "named a ticket that was never asked for here",
            "look for another experiment's tickets, test data, or asks that failed",
        ),
        "second": (
            "second rewards",
            "came for a ticket that had another one",
            'if a visit may bring several, set rewards = "sum" and name an event in each tell',
        ),
        "repeated": ("repeated tells", "were repeats of one that is stored", ""),
    }
    findings = []
    for why, (name, what, action) in ways.items():
        count, total = ignored.get(why, (0, 0.0))
        if count:
            fine = not action or count < _LEAST or count <= _FEW * (told + count)
            said = f"{count:,} ({amount(total)} in all) {what}"
            findings.append((name, fine, said if fine else f"{said}: {action}"))
    return findings


def _note(note: Note) -> str:
    return ", ".join(f"{key} {value}" for key, value in note.text.items()) or note.kind
