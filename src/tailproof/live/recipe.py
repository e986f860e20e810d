"""The recipe of an experiment: its policy and the meaning of its rewards, a row of the journal."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self, TypedDict

from tailproof import recipes
from tailproof.checks import number, require, whole
from tailproof.live.journal import CANCELLED, LARGE, Request
from tailproof.live.offer import Offer
from tailproof.policies.base import Policy

__all__ = ["Recipe", "Rewards", "Rules", "built", "seconds"]

Rewards = Literal["first", "sum"]
_ROUNDED = 1e-9
"""By how much a sum of shares may exceed one."""


class Rules(TypedDict, total=False):
    """The rules of a `Recipe`, which explains them; rules left out or None stay as they are."""

    wait: float | str | None
    silence: float | str | None
    rewards: Rewards | None
    control: tuple[str, float] | None
    floor: float | None
    explore: float | None
    arms: Collection[str] | None
    seed: int | None
    dim: int | None


_RULES = tuple(Rules.__annotations__)


def seconds(wait: float | str) -> float:
    """Return a time span in seconds.

    >>> seconds("2h"), seconds("1.5 min"), seconds(30)
    (7200.0, 90.0, 30.0)
    >>> seconds("soon")
    Traceback (most recent call last):
    ValueError: wait must be a number of seconds or a string such as '90s', '15min', '2h' or '1d',
    got 'soon'
    """
    units = {"s": 1, "min": 60, "h": 3600, "d": 86400}
    if isinstance(wait, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*", wait)
        rule = "a number of seconds or a string such as '90s', '15min', '2h' or '1d'"
        require(match is not None, "wait", rule, wait)
        wait = float(match[1]) * units[match[2]] if match else 0.0
    return number("wait", wait, above=0)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A policy, and the rules by which requests get arms and rewards count.

    A journal keeps each recipe that it had; a request has the number of its recipe.

    Parameters
    ----------
    policy : Policy or str
        A policy that cannot be built from its text, such as one of your own, stays text when it
        is read from a journal.
    wait : float or str
        The window in which rewards count, in seconds or as "90s", "15min", "2h", "1d". Later
        rewards are stored, but not learned.
    silence : float, "lost" or None
        The reward of a request whose window ends without one: 0.0 if only purchases are told. Every
        outcome is then learned when its window ends, in the order of the asks, because purchases
        that are learned at once make early buyers look like all visitors. "lost" or None means that
        such a reward is unknown, as with latencies, sensors and surveys: then a reward is learned
        when it comes.
    rewards : "first" or "sum"
        Whether the first event told of a request is its reward, or the sum of all events in its
        window, such as two purchases and a refund.
    control : (str, float), optional
        An arm and a share, such as ``("red", 0.1)``: with this probability a request is in the
        control group and gets this arm, if it is on offer, whatever is learned. All requests of a
        unit are in the same group. The policy learns from the control group as from any other.
    floor : float
        The least probability of every arm on offer; floor × K must be at most 1 − control share.
    explore : float
        The probability of choosing uniformly at random among the arms of the offer, outside the
        control group.
    arms : collection of str, optional
        All arms that there may be; an offer with another one is refused. Without it new arms may
        come, up to 10 000.
    seed : int
        Random numbers are hashes of the seed and the request; 0 in a new journal.
    dim : int, optional
        For offers without features and a policy that uses vectors: the most arms there will ever
        be; by default the number of `arms`, or that in the first offer.

    Examples
    --------
    >>> from tailproof import UCB1
    >>> recipe = Recipe(policy=UCB1(), wait="2h", silence=0.0)
    >>> Recipe.of(recipe.text, recipe.rules) == recipe
    True
    """

    policy: Policy[Any] | str
    wait: float | str = 86400.0
    silence: float | str | None = None
    rewards: Rewards = "first"
    control: tuple[str, float] | None = None
    floor: float = 0.0
    explore: float = 0.0
    arms: Collection[str] | None = None
    seed: int | None = None
    dim: int | None = None

    def __post_init__(self) -> None:
        policy = isinstance(self.policy, Policy | str)
        require(policy, "policy", "a Policy such as UCB1()", self.policy)
        silence = None if self.silence == "lost" else self.silence
        if silence is not None:
            ok = isinstance(silence, int | float) and not isinstance(silence, bool)
            require(ok, "silence", 'a number or "lost"', silence)
            silence = number("silence", silence) + 0.0
        require(self.rewards in ("first", "sum"), "rewards", '"first" or "sum"', self.rewards)
        arms = None if self.arms is None else Offer.of(self.arms).names
        values = {
            "wait": seconds(self.wait),
            "silence": silence,
            "control": _control(self.control, arms),
            "floor": float(number("floor", self.floor, at_least=0, at_most=1)),
            "explore": float(number("explore", self.explore, at_least=0, at_most=1)),
            "arms": arms,
            "seed": None if self.seed is None else whole("seed", self.seed, at_least=0),
            "dim": None if self.dim is None else whole("dim", self.dim),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if arms is not None:
            self.even(Offer(arms))

    @property
    def text(self) -> str:
        """The policy as text."""
        return self.policy if isinstance(self.policy, str) else repr(self.policy)

    @property
    def rules(self) -> str:
        """The rules as JSON, as the journal keeps them."""
        return json.dumps({name: getattr(self, name) for name in _RULES}, ensure_ascii=False)

    @classmethod
    def of(cls, policy: Policy[Any] | str, rules: str) -> Self:
        """Return a recipe that a journal keeps."""
        made = built(policy) if isinstance(policy, str) else policy
        return cls(policy=made or policy, **json.loads(rules))

    def altered(self, wanted: "Policy[Any] | Recipe", given: Mapping[str, Any]) -> "Recipe":
        """Return the recipe that is wanted: where nothing is given, rules stay as they are."""
        some = {name: value for name, value in given.items() if value is not None}
        if not isinstance(wanted, Recipe):
            return replace(self, policy=wanted, **some)
        kept = {name: getattr(self, name) for name in ("seed", "dim")}
        overrides = {name: getattr(wanted, name) for name in kept}
        kept |= {name: value for name, value in overrides.items() if value is not None}
        return replace(wanted, **(kept | some))

    def difference(self, other: "Recipe") -> str:
        """Say which rules differ, as "wait 60.0, not 30.0"; empty if none does."""
        return "; ".join(
            f"{name} {getattr(self, name)!r}, not {getattr(other, name)!r}"
            for name in _RULES
            if getattr(self, name) != getattr(other, name)
        )

    @cached_property
    def at_once(self) -> bool:
        """Whether a reward is learned when it comes."""
        return self.silence is None and self.rewards == "first"

    def even(self, offer: Offer) -> float:
        """Return the share of uniformly random choices outside the control group."""
        if not self.floor:
            return self.explore
        arms = len(offer.names)
        rest = 1 - self.control[1] if self.control and self.control[0] in offer.names else 1.0
        least = self.floor * arms / rest
        if least > 1 + _ROUNDED:
            raise ValueError(
                f"floor must be at most {rest / arms:g} for an offer of {arms} arms, got "
                f"{self.floor:g}: all floors and the control share together are at most 1"
            )
        return max(self.explore, min(least, 1.0))

    def outcome(self, request: Request, *, over: bool) -> tuple[float | None, str] | None:
        """Return the reward that counts for a request, and why; None while the request is pending.

        `over` says whether its window has ended. The reason is "told", "silent", "lost" or
        "cancelled".
        """
        if CANCELLED in request.events:
            return None, "cancelled"
        if not over and not self.at_once:
            return None
        told = [(at, value) for value, at, late in request.events.values() if not late]
        if told:
            first = self.rewards == "first"
            return min(told)[1] if first else total([value for _, value in told]), "told"
        if not over:
            return None
        if self.silence is None:
            return None, "lost"
        return float(self.silence), "silent"


def total(rewards: Sequence[float]) -> float:
    """Return the sum of finite rewards, which is infinite if it is too large for a float.

    >>> total([0.1, 0.2, 0.3]), total([1e308, 1e308, -1e308]), total([1e308, 1e308])
    (0.6, 1e+308, inf)
    """
    try:
        return math.fsum(rewards)
    except OverflowError:
        return math.fsum(reward / LARGE for reward in rewards) * LARGE


def built(text: str) -> Policy[Any] | None:
    """Return the policy of a text, None if it cannot be built from it."""
    try:
        policy: Policy[Any] = recipes.build("policy", text)
    except ValueError:
        return None
    return policy if repr(policy) == text else None


def _control(control: Any, arms: Collection[str] | None) -> tuple[str, float] | None:
    if control is None:
        return None
    ok = isinstance(control, Sequence) and not isinstance(control, str) and len(control) == 2
    require(ok, "control", "an arm and a share, such as ('red', 0.1)", control)
    arm, share = control
    Offer.of([arm])
    if arms is not None and arm not in arms:
        raise ValueError(f"the control arm must be one of the arms, {sorted(arms)}, got {arm!r}")
    return arm, number("the control share", share, above=0, below=1)
