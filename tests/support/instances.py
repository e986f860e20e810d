"""An example of every policy and wrapper: what the tests of the contract play.

A class that needs no settings, or no others than those in `USUAL`, is found by itself.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from tailproof import PEGE, AutoFiltered, MeanOfMedians, Policy, Wrapper, bestarm
from tailproof.discovery import declared

__all__ = ["ALL", "BEST_ARM", "POLICIES", "WRAPPERS", "example", "spans", "wrapped"]

USUAL = {"horizon": 1000, "decisions": 1000, "epsilon": 1, "moment_bound": 1}
"""What a class is given if it needs a setting of this name."""
SETTINGS: dict[str, dict[str, Any]] = {
    "CRT": {"moment_bound": 3},
    "DiscountedUCB": {"gamma": 0.98},
    "FixedArm": {"arm": 2},
    "MENU": {"replicates": 5},
    "MoM": {"blocks": 11},
    "RMMUCB": {"blocks": 3, "resamples": 64},
    "SlidingWindowUCB": {"window": 50},
    "SupBMM": {"replicates": 3},
    "QuantileLUCB": {"delta": 0.5, "quantile": 0.3},
    "AutoFiltered": {"repeats": 3, "settle": 4},
    "Filtered": {"repeats": 5, "estimator": MeanOfMedians(block=5)},
    "FromRegret": {"decisions": 50},
    "Renewed": {"memory": 61},
    "Scaled": {"centre": 0.3, "unit": 0.7, "stretch": 1.5},
    "Vigilant": {"level": 0.9},
}
"""What a class needs besides, or what makes its checks quick, or notice more."""


def example(kind: Callable[..., Policy[Any]], *inside: Policy[Any]) -> Policy[Any]:
    """Return an example of a policy, or of a wrapper around a policy."""
    settings: Any = fields(kind)  # type: ignore[arg-type]
    needed = {field.name for field in settings if field.default is MISSING}
    usual = {name: value for name, value in USUAL.items() if name in needed}
    return kind(*inside, **usual | SETTINGS.get(kind.__name__, {}))


def wrapped(kind: Callable[..., Policy[Any]], policy: Policy[Any]) -> Policy[Any]:
    """Return an example of a wrapper around a policy."""
    if kind is AutoFiltered and spans(policy):  # a constant would be one dimension too many
        return AutoFiltered(policy, **SETTINGS["AutoFiltered"], intercept=False)
    return example(kind, policy)


def spans(policy: Policy[Any]) -> bool:
    """Whether a policy needs as many independent arms as there are dimensions."""
    return isinstance(policy, PEGE | bestarm.LazyTrackAndStop)


POLICIES: list[Policy[Any]] = [
    example(kind) for kind in declared("tailproof.policies", Policy).values()
]
BEST_ARM: list[Policy[Any]] = [
    example(kind) for kind in declared("tailproof.bestarm", Policy).values()
]
ALL = POLICIES + BEST_ARM
WRAPPERS: dict[str, Callable[..., Policy[Any]]] = declared("tailproof.wrappers", Wrapper)
