"""The Python code that runs the advised policy."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.formatting import several
from tailproof.policies import LinRevenueUCB, RevenueUCB
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim
from tailproof.stats.diagnostics import ArmRewards
from tailproof.wrappers import Negated

if TYPE_CHECKING:
    from tailproof.advice.advice import Advice

__all__ = ["adds_up", "code", "explored", "mostly_zero", "written"]

_EXPLORE = 0.05
"""The share of uniformly random choices, added to a policy that gives some arms no chance."""


def code(advice: Advice, aim: Aim | None = None) -> str:
    """Return Python code that asks the policy for arms and tells it rewards, ready to paste."""
    policy = advice.policy(aim)
    explore = explored(policy)
    text = written(policy)
    names = ", ".join(sorted(set(re.findall(r"\b([A-Z]\w+)\(", text))))
    arms = [arm.name or f"arm {1 + place}" for place, arm in enumerate(_at_least_two(advice))]
    offer, about = repr(arms), ""
    if advice.dim is not None:
        offer = "{" + ", ".join(f"{arm!r}: …" for arm in arms) + "}"
        about = f"  # {several(advice.dim, 'feature')} of each arm"
    elif advice.features:
        kind = "share" if "LinRevenueUCB" in text else "cross"
        offer, names = f"features.{kind}({arms!r}, visitor)", f"{names}, features"
        about = f"  # {several(advice.features, 'feature')} of the visitor"
    rules = ", silence=0.0" if mostly_zero(advice) else ""
    rules += f", explore={explore}" if explore else ""
    rules += f', wait="{advice.window}"' if isinstance(advice.window, str) else ""
    rules += ', rewards="sum"' if adds_up(advice) else ""
    event = ", event=order" if adds_up(advice) else ""
    unit = ", unit=customer" if advice.customers.case == "customers" else ""
    return "\n".join(
        [
            f"from tailproof import {names}",
            "from tailproof.live import Agent",
            "",
            f'agent = Agent({text}, "decisions.db"{rules})',
            f"choice = agent.ask({offer}{unit}){about}",
            f"agent.tell(choice.id, reward{event})  # what choice.arm earned",
        ]
    )


def explored(policy: Policy[Any]) -> float:
    """Return the share of uniformly random choices beside a policy in live use.

    `RevenueUCB` draws its choices. Other policies give some arms no chance: while rewards are late,
    all requests would go to one arm, and nobody could judge another rule from the log.
    """
    inner = policy.policy if isinstance(policy, Negated) else policy
    return 0.0 if isinstance(inner, RevenueUCB | LinRevenueUCB) else _EXPLORE


def mostly_zero(advice: Advice) -> bool:
    """Whether most rewards are zero, so that callers may not report them."""
    return any(np.mean(arm.rewards == 0) > 0.5 for arm in advice.rewards.arms)


def adds_up(advice: Advice) -> bool:
    """Whether a request may bring several rewards: orders of a table, or sales and refunds."""
    refunds = any(bool((arm.rewards < 0).any()) for arm in advice.rewards.arms)
    return advice.events or (refunds and mostly_zero(advice))


def _at_least_two(advice: Advice) -> list[ArmRewards]:
    arms = list(advice.rewards.arms)
    return arms if len(arms) > 1 else arms * 2


def written(thing: Any) -> str:
    """Return a policy as code, without settings that have their default value."""
    if not is_dataclass(thing):
        return repr(thing)
    given = [
        ("" if field.name == "policy" else f"{field.name}=") + written(getattr(thing, field.name))
        for field in fields(thing)
        if getattr(thing, field.name) != field.default
    ]
    return f"{type(thing).__name__}({', '.join(given)})"
