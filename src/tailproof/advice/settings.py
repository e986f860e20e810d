"""The configuration that runs the advised policy as a service."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tailproof.advice.code import adds_up, explored, mostly_zero, written
from tailproof.stats.aims import Aim
from tailproof.stats.estimators import Median
from tailproof.tables.exposures import seconds
from tailproof.wrappers import Negated

if TYPE_CHECKING:
    from tailproof.advice.advice import Advice

__all__ = ["settings"]

_FLOOR = 0.02
"""The suggested least share of every arm."""


def settings(advice: Advice, aim: Aim | None = None) -> str:
    """Return the configuration of the same policy for ``tailproof serve``."""
    policy = advice.policy(aim)
    explore = explored(policy)
    inner = policy.policy if isinstance(policy, Negated) else policy
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", written(inner)).lower()
    chosen = aim or advice.aim or Median()
    arms = ", ".join(
        json.dumps(arm.name, ensure_ascii=False) for arm in advice.rewards.arms if arm.name
    )
    listed = [f"arms = [{arms}]"] if arms and advice.dim is None else []
    small = ["costs = true"] if advice.costs else []
    chance = [f"explore = {explore}  # random, so that every arm has a chance"] if explore else []
    return "\n".join(
        [
            "[experiments.shop]",
            f'recipe = "{words}"',
            f'aim = "{chosen.name}"',
            *small,
            *listed,
            *chance,
            f'wait = "{_wait(advice)}"  # {_about_wait(advice)}',
            *_sums(advice),
            *_groups(advice),
            'silence = 0.0  # the reward of a request that nobody tells; "lost": unknown'
            if mostly_zero(advice)
            else 'silence = "lost"  # a reward that never comes is unknown; 0.0: it was zero',
            *_units(advice),
        ]
    )


def _wait(advice: Advice) -> str:
    """Return the window of orders, a day unless it was given."""
    if advice.window is None:
        return "1d"
    size = seconds("window", advice.window)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if size % length == 0:
            return f"{size / length:g}{unit}"
    return f"{size:g}s"


def _about_wait(advice: Advice) -> str:
    """Say that the window was not given, where customers return after a day."""
    guessed = advice.window is None and advice.customers.returning
    more = ": a guess, as no --window was given; later visits and refunds do not count"
    return "within which a reward counts" + (more if guessed else "")


def _sums(advice: Advice) -> list[str]:
    """Say that orders and refunds of a request add up, as they did in the records."""
    line = 'rewards = "sum"  # orders and refunds add up; tell each with its number: event = "…"'
    return [line] if adds_up(advice) else []


def _groups(advice: Advice) -> list[str]:
    """Return the control group, and a share of every arm, so that other rules can be judged."""
    first = advice.control or advice.rewards.arms[0].name or "ARM"
    arm = json.dumps(first, ensure_ascii=False)
    line = f"control = {{ arm = {arm}, share = 0.1 }}  # to know whether it paid"
    if advice.control is None:
        return [f"# {line}"]
    room = _FLOOR * len(advice.rewards.arms) <= 0.5
    floor = f"floor = {_FLOOR}  # of every arm, so that other rules can be judged later"
    return [line, *([floor] if room else [])]


def _units(advice: Advice) -> list[str]:
    """Say that customers return, where the file tells them apart."""
    has_units = advice.customers.case == "customers"
    return ['# name the customer in every ask: unit = "…"; a customer keeps its arm'] * has_units
