"""Which policy to run, given an aim and recorded rewards."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.formatting import rounded
from tailproof.noise import Empirical
from tailproof.policies import (
    OFUL,
    UCB1,
    LinRevenueUCB,
    LinStudentUCB,
    OrderStatisticUCB,
    Policy,
    RevenueUCB,
)
from tailproof.stats.aims import Aim, check_aim
from tailproof.stats.calibration import Calibration
from tailproof.stats.estimators import Median, Quantile
from tailproof.stats.medians import NoiseQuantile, scale as scale_of
from tailproof.wrappers import Capped, Filtered, Negated

if TYPE_CHECKING:
    from tailproof.advice.advice import Advice

__all__ = ["NEARLY_ALL", "is_revenue", "location_agrees", "recommend"]

_SAMPLES_BEYOND = 3
"""About how many samples of a block lie beyond the quantile that it estimates."""
_SHORT_BLOCK = 9
"""The block length for a median if the calibration would use a mean."""
NEARLY_ALL = 0.998
"""The share of purchases below the cap where the aim is a mean: one whale must not decide."""


def recommend(advice: Advice, aim: Aim | None = None) -> Policy[Any]:
    """Return the policy for an aim, by default the aim of this advice.

    Rewards that are not symmetric need an aim, as their mean and median differ.
    """
    chosen = aim if aim is not None else advice.aim
    if chosen is None and not advice.rewards.symmetric:
        several = len(advice.rewards.arms) > 1
        *first, last = [
            f"{name} ({lead.arm or 'no arm'} leads)" if several else name
            for name, lead in advice.leaders.items()
        ]
        raise ValueError(
            f"your rewards are not symmetric, so choose an aim: {', '.join(first)} or {last}"
        )
    inner: Aim = chosen or Median()
    check_aim("aim", inner)
    inner.check_differs(advice.rewards.samples)
    if advice.costs:
        inner = inner.mirrored  # the policy inside maximises −cost
    linear = advice.dim is not None or advice.features
    policy = _for_vectors(advice, inner) if linear else _for_arms(advice, inner)
    return Negated(policy) if advice.costs else policy


def _for_arms(advice: Advice, aim: Aim) -> Policy[Any]:
    """Return the policy for K arms without features."""
    if aim.level is not None and not aim.central:
        return OrderStatisticUCB(quantile=aim.level)
    if is_revenue(advice, aim):
        return RevenueUCB(share=_share(advice, aim))
    if aim.averages and not advice.rewards.symmetric:
        return LinStudentUCB()  # the median agrees
    calibration = _filter_for_location(advice)
    if calibration.block == 1:
        return UCB1(bonus=rounded(_deviation(advice)))
    if advice.rewards.symmetric and not advice.asked:
        return LinStudentUCB()
    inner = UCB1(bonus=rounded(calibration.scale))
    return Filtered(inner, repeats=calibration.pulls, estimator=calibration.estimator)


def _for_vectors(advice: Advice, aim: Aim) -> Policy[Any]:
    """Return the policy for arms with feature vectors, or for visitors' features."""
    if is_revenue(advice, aim):
        share = _share(advice, aim)
        return Capped(OFUL(), share=share) if advice.dim else LinRevenueUCB(share=share)
    size = rounded(max(abs(arm.median) for arm in advice.rewards.arms) or 1.0)
    if aim.averages and not advice.rewards.symmetric:
        return LinStudentUCB()
    if aim.level is not None and not aim.central:
        quantile = Quantile(aim.level)
        repeats = math.ceil(_SAMPLES_BEYOND / min(aim.level, 1 - aim.level)) - 1
        errors = advice.rewards.errors
        law = Empirical(-errors if advice.costs else errors)
        noise = rounded(scale_of(NoiseQuantile(law, repeats, quantile), 1, 0.01))
        inner = OFUL(noise_scale=noise, norm_bound=size)
        return Filtered(inner, repeats=repeats, estimator=quantile)
    calibration = _filter_for_location(advice)
    if calibration.block == 1:
        return OFUL(noise_scale=rounded(_deviation(advice)), norm_bound=size)
    if advice.rewards.symmetric and not advice.asked:
        return LinStudentUCB()
    inner = OFUL(noise_scale=rounded(calibration.scale), norm_bound=size)
    return Filtered(inner, repeats=calibration.pulls, estimator=calibration.estimator)


def is_revenue(advice: Advice, aim: Aim) -> bool:
    """Whether the aim is money, and no location is learned in its place."""
    if not aim.averages or (not aim.bounded and advice.rewards.symmetric):
        return False
    return not location_agrees(advice, aim)


def location_agrees(advice: Advice, aim: Aim) -> bool:
    """Whether median and aim are sure of the same arm: then a location is learned sooner."""
    comparison = advice.comparisons.get(aim.name)
    if comparison is None or len(comparison.names) < 2:
        return False
    median = advice.leaders["median"]
    return median.sure and comparison.lead.sure and comparison.lead.arm == median.arm


def _share(advice: Advice, aim: Aim) -> float:
    """Return the share of purchases below the cap; an error if there is no mean to approach."""
    if aim.share is not None:
        return aim.share
    if advice.rewards.tail.high <= 1:
        raise ValueError(
            f"the mean cannot be the aim of these rewards. {advice.rewards.verdict} "
            "Next: aim at the median, a quantile or the capped mean"
        )
    return NEARLY_ALL


def _filter_for_location(advice: Advice) -> Calibration:
    """Return the filter for a median, which for skewed rewards must not be a mean."""
    calibration = advice.filter
    if advice.rewards.symmetric or advice.asked:
        return calibration
    if advice.rewards.mostly_equal:
        raise ValueError(
            "the median cannot tell your arms apart: more than half of the rewards equal the "
            "median of their arm. Next: aim at the mean or the capped mean"
        )
    return (
        calibration
        if calibration.block > 1
        else replace(calibration, pulls=_SHORT_BLOCK, block=_SHORT_BLOCK)
    )


def _deviation(advice: Advice) -> float:
    """The pooled standard deviation of the rewards of an arm."""
    with np.errstate(invalid="ignore", over="ignore"):
        squares = sum(len(sample) * float(sample.var()) for sample in advice.rewards.samples)
    return math.sqrt(squares / advice.rewards.count)
