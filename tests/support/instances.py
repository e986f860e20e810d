"""An example of every policy and wrapper: what the tests of the contract play.

A class that needs no settings, or no others than those in `USUAL`, is found by itself.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from rotation import by_class

from tailproof import (
    OFUL,
    UCB1,
    AdaRUCB,
    AutoFiltered,
    Capped,
    Filtered,
    FromRegret,
    LinRevenueUCB,
    LinStudentUCB,
    LinTS,
    Mean,
    MeanOfMedians,
    Median,
    MedianOfMeans,
    Negated,
    OrderStatisticUCB,
    Policy,
    Quantile,
    Renewed,
    RevenueUCB,
    SupBMM,
    SymmetricOFUL,
    TruncatedMean,
    Vigilant,
    Wrapper,
)
from tailproof.discovery import declared

__all__ = [
    "ALL",
    "BEST_ARM",
    "OTHER_SETTINGS",
    "POLICIES",
    "SAMPLED",
    "VARIANTS",
    "WRAPPERS",
    "example",
    "spans",
    "wrapped",
]

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
    return hasattr(policy.init(paths=1, arms=5, dim=3), "basis")


POLICIES: list[Policy[Any]] = [
    example(kind) for kind in declared("tailproof.policies", Policy).values()
]
BEST_ARM: list[Policy[Any]] = [
    example(kind) for kind in declared("tailproof.bestarm", Policy).values()
]
ALL = POLICIES + BEST_ARM
WRAPPERS: dict[str, Callable[..., Policy[Any]]] = declared("tailproof.wrappers", Wrapper)
VARIANTS: list[Policy[Any]] = [
    OFUL(bonus=0, ridge=3.0, noise_scale=0.2),
    UCB1(random=True),
    LinStudentUCB(room=4, intercept=False),
    SymmetricOFUL(tau=2, radius="practical", bonus=0.3),
    SymmetricOFUL(tau=8, radius="theorem", mass=0.5, horizon=1000),
    OrderStatisticUCB(quantile=0.8, index="binomial"),
    OrderStatisticUCB(quantile=0.3, sketch=16),
    RevenueUCB(share=0.6),
    LinRevenueUCB(share=0.6),
]
"""The same with other settings; those of other policies are in the tests of their rooms."""
OTHER_SETTINGS: list[Policy[Any]] = [
    Filtered(OFUL(), repeats=1),
    Filtered(OFUL(), repeats=8, estimator=TruncatedMean(threshold=2)),
    Filtered(OFUL(), repeats=7, estimator=MedianOfMeans(blocks=2)),
    Filtered(Filtered(UCB1(), repeats=3, estimator=Median()), repeats=4, estimator=Mean()),
    Filtered(Capped(LinTS()), repeats=21, estimator=Quantile(0.9)),
    Filtered(UCB1(random=True), repeats=3, estimator=Median()),
    AutoFiltered(UCB1(random=True), repeats=3, settle=4),
    AutoFiltered(OFUL()),
    AutoFiltered(OFUL(), repeats=3, settle=30),
    AutoFiltered(OFUL(), intercept=False),
    AutoFiltered(
        SupBMM(horizon=1000, epsilon=1, moment_bound=1, replicates=3), repeats=4, settle=4
    ),
    Capped(UCB1(), share=0.6),
    Capped(OFUL(), share=0.9),
    Capped(AutoFiltered(AdaRUCB(), repeats=3, settle=4)),
    Negated(FromRegret(UCB1(), decisions=50)),
    Vigilant(Renewed(AutoFiltered(UCB1(), repeats=3, settle=4), memory=30), level=0.9),
    Vigilant(LinRevenueUCB(), level=0.9),
    Renewed(LinRevenueUCB(), memory=2),
]
SAMPLED = {
    **{f"{name}, other settings": group for name, group in by_class(VARIANTS).items()},
    **{
        name: [wrapped(wrap, policy) for policy in ALL if name != "Intercept" or not spans(policy)]
        for name, wrap in WRAPPERS.items()
    },
    **{f"{name}, other settings": group for name, group in by_class(OTHER_SETTINGS).items()},
    **{
        f"{name} of wrappers": [
            wrapped(wrap, wrapped(inner, OFUL())) for inner in WRAPPERS.values()
        ]
        for name, wrap in WRAPPERS.items()
    },
}
