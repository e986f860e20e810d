"""The configuration that runs the advised policy as a service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tailproof.advice.code import explored, mostly_zero, written
from tailproof.stats.aims import Aim
from tailproof.stats.estimators import Median
from tailproof.wrappers import Negated

if TYPE_CHECKING:
    from tailproof.advice.advice import Advice

__all__ = ["settings"]


def settings(advice: Advice, aim: Aim | None = None) -> str:
    """Return the configuration of the same policy for ``tailproof serve``."""
    policy = advice.policy(aim)
    explore = explored(policy)
    inner = policy.policy if isinstance(policy, Negated) else policy
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", written(inner)).lower()
    chosen = aim or advice.aim or Median()
    arms = ", ".join(f'"{arm.name}"' for arm in advice.rewards.arms if arm.name)
    listed = [f"arms = [{arms}]"] if arms and advice.dim is None else []
    first = advice.rewards.arms[0].name or "ARM"
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
            'wait = "1d"  # within which a reward counts',
            f'# control = {{ arm = "{first}", share = 0.1 }}  # to know whether it paid',
            'silence = 0.0  # what a request brought of which nothing is told; "lost": unknown'
            if mostly_zero(advice)
            else 'silence = "lost"  # a reward that never comes is unknown; 0.0: it was zero',
        ]
    )
