"""Whether an answer can be trusted, and why not."""

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailproof.judging.propensities import drift
from tailproof.judging.scores import by_unit
from tailproof.stats.aims import Aim
from tailproof.stats.customers import refunds_outweigh
from tailproof.stats.diagnostics import (
    LEAST,
    MOST_ASYMMETRY,
    SAFE_TAIL_INDEX,
    Tail,
    asymmetry,
)
from tailproof.tables import Records
from tailproof.typing import Array

__all__ = [
    "Doubt",
    "Overlap",
    "about_drift",
    "about_errors",
    "about_mean",
    "about_overlap",
    "about_refunds",
]

LEAST_REWARDS = 30
"""With fewer effective rewards `judge` gives no answer."""
LEAST_UNITS = 10
"""With fewer effective decisions or visitors `judge` gives no answer."""
LEAST_BEYOND = 10
"""With fewer effective rewards beyond a quantile `judge` gives no answer."""
UNSUPPORTED = 0.01
"""If the log never shows a larger share of a rule's choices, `judge` gives no answer."""
DOMINANT = 0.2
"""The share of the variance of one unit above which an interval is not trusted."""
UNKNOWN = 0.02
"""The share of unknown rewards above which "alike" is not trusted."""
OFF = 4.0
"""Standard errors by which weights may miss their mean; right weights do in 1 of 15 000 rules."""

_ATOM = 0.05
"""A value is an atom, such as no purchase, if it makes up this share of the rewards."""
_FEW = 10
"""With so few different values there is no tail to look at: ratings, clicks, or a few prices."""

_LARGEST_COUNT = 1000
"""Whole numbers up to this may be counts or ratings."""

Kind = Literal["beware", "refused"]


class Doubt(NamedTuple):
    """A reason against an answer, in a sentence."""

    kind: Kind
    reason: str


class Overlap(NamedTuple):
    """How much the log shows of the choices that a rule would make.

    Attributes
    ----------
    effective : float
        (Σw)²/Σw², the number of rewards of the rule itself that would be as informative; at most
        its expected value.
    units : float
        The same for units.
    mean_weight : float
        One on average, if propensities are right.
    off : float
        By how many standard errors a weighted mean misses its target: the weights miss one, or a
        feature misses its mean.
    balanced : str
        The feature that misses by most; empty if it is the mean weight.
    unsupported : float
        The share of its choices that the log never shows.
    """

    effective: float
    units: float
    mean_weight: float
    off: float
    balanced: str
    unsupported: float

    @classmethod
    def of(cls, log: Records, raw: Array, steady: Array | float, pi: Array | None) -> "Overlap":
        """Return the overlap of a rule with these probabilities and weights."""
        weight = np.asarray(raw * steady)
        names, features = log.contexts
        features = np.empty((log.n, 0)) if features is None else features
        off, feature = 0.0, ""
        for place in range(-1, features.shape[1]):
            x = np.ones(log.n) if place < 0 else features[:, place] - features[:, place].mean()
            miss = by_unit((raw - 1) * x, log.unit)
            size = math.sqrt(float(np.square(miss - miss.mean()).sum()))
            t = float(miss.sum()) / size if size > 1e-9 * max(1.0, float(np.abs(x).max())) else 0.0
            if abs(t) > abs(off):
                off, feature = t, "" if place < 0 else names[place]
        missing = 0.0
        if pi is not None:
            if log.propensities is not None:
                missing = float(pi[log.propensities <= 0].sum()) / log.n
            else:
                never = np.bincount(log.arm, minlength=len(log.arms)) == 0
                missing = float(pi[:, never].sum()) / log.n
        seen = _effective(weight)
        if pi is not None and log.propensities is not None:
            seen = min(seen, _expected(log.propensities, steady, pi))
        share = _effective(by_unit(weight, log.unit)) / max(_effective(weight), 1e-300)
        return cls(seen, share * seen, float(raw.mean()), off, feature, missing)


def _effective(w: Array) -> float:
    total = float(w.sum())
    return total**2 / float(w @ w) if total > 0 else 0.0


def _expected(propensities: Array, steady: Array | float, pi: Array) -> float:
    """Return the effective size in expectation, which luck cannot make larger.

    (Σh)²/Σ h² Σ_a π_a²/p_a: rewards too rare to have been seen count here.
    """
    second = (np.square(pi) / np.where(propensities > 0, propensities, 1.0)).sum(axis=1)
    h = np.broadcast_to(np.asarray(steady, dtype=np.float64), second.shape)
    return float(h.sum()) ** 2 / float(np.square(h) @ second)


def about_overlap(aim: Aim, overlap: Overlap) -> Iterator[Doubt]:
    """Yield reasons in weights and counts to doubt any answer."""
    if overlap.unsupported > UNSUPPORTED:
        yield Doubt(
            "refused",
            f"the log never shows {overlap.unsupported:.0%} of its choices: no overlap",
        )
    tau = aim.level if aim.bounded else None
    beyond = math.inf if tau is None else overlap.effective * min(tau, 1 - tau)
    if overlap.effective < LEAST_REWARDS:
        yield Doubt(
            "refused",
            f"the log is worth only {overlap.effective:.0f} rewards of this rule, and "
            f"{LEAST_REWARDS} are needed",
        )
    elif overlap.units < LEAST_UNITS:
        yield Doubt(
            "refused",
            f"the log is worth only {overlap.units:.0f} decisions of this rule, and "
            f"{LEAST_UNITS} are needed",
        )
    elif beyond < LEAST_BEYOND:
        yield Doubt(
            "refused",
            f"the log is worth only {beyond:.0f} rewards beyond this quantile, and "
            f"{LEAST_BEYOND} are needed",
        )
    if abs(overlap.off) > OFF:
        target = f"one on average ({overlap.mean_weight:.3g} instead)"
        if overlap.balanced:
            target = f"the mean of {overlap.balanced}"
        yield Doubt(
            "beware",
            f"weights do not give {target}: propensities are wrong, or choices depend on something "
            "that was not recorded",
        )


def about_drift(log: Records) -> Iterator[Doubt]:
    """Yield reasons in the times to doubt propensities that were estimated from counts."""
    if not log.estimated:
        return
    movement = drift(log)
    if movement.rewards and (movement.within if log.time is not None else movement.shares):
        times = "" if log.time is not None else "the times, or "
        yield Doubt(
            "beware",
            "both the shares of the arms and the rewards moved with time, so propensities "
            f"estimated from counts are wrong: give {times}the true ones",
        )


def about_errors(errors: Array) -> Iterator[Doubt]:
    """Yield reasons in the errors to doubt a location."""
    if asymmetry(errors - np.median(errors)) > MOST_ASYMMETRY:
        yield Doubt(
            "beware",
            "errors are not symmetric, so their location is neither a median nor a mean: ask for "
            "one of these",
        )


def about_refunds(low: float, high: float, owed_more: float, other: str) -> Iterator[Doubt]:
    """Yield the reason to doubt a difference that refunds beyond the cap may turn round.

    On average a row of this rule owes more than a row of the other rule, by `owed_more`.
    """
    more = low > 0 and refunds_outweigh(low, owed_more)
    less = high < 0 and refunds_outweigh(-high, -owed_more)
    if more or less:
        yield Doubt("beware", f"refunds that count as 0 may outweigh its difference from {other}")


def about_mean(reward: Array) -> Iterator[Doubt]:
    """Yield reasons in the tail of the rewards to doubt a mean."""
    values, counts = np.unique(reward, return_counts=True)
    if len(values) <= _FEW:
        yield from _about_few(values, counts)
        return
    most = int(counts.argmax())
    atom = counts[most] > _ATOM * len(reward)
    sizes = reward - (values[most] if atom else np.median(reward))
    sizes = sizes[sizes != 0]
    tail = Tail.of(sizes)
    if len(sizes) < LEAST or math.isinf(tail.alpha):
        words = f"{len(sizes)} rewards are too few to tell whether they have a mean"
        yield Doubt("beware", f"{words}: ask for the capped mean or a quantile")
    elif tail.low < SAFE_TAIL_INDEX:
        yield Doubt(
            "beware",
            f"the tail index of the rewards is {tail.alpha:.2f}, between {tail.low:.2f} and "
            f"{tail.high:.2f}: a mean cannot be relied on; ask for the capped mean or a quantile",
        )


def _about_few(values: Array, counts: NDArray[Any]) -> Iterator[Doubt]:
    """Yield the reason to doubt a mean of few different values.

    Whole numbers without a gap, as clicks and ratings, have a largest number that is known, if it
    has come often enough. Of prices nobody knows whether a larger price is still to be sold.
    """
    largest = int(np.abs(values).argmax())
    small = float(np.abs(values).max()) <= _LARGEST_COUNT
    steps = small and bool((values % 1 == 0).all()) and bool((np.diff(values) == 1).all())
    if steps and counts[largest] >= LEAST_BEYOND:
        return
    yield Doubt(
        "beware",
        f"a mean holds only if no reward beyond {values[largest]:,.4g} is possible, which came "
        f"{counts[largest]:,} times here: name the largest possible one (largest=), or ask for the "
        "capped mean",
    )
