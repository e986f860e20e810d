"""Best-arm recipes are wrong with probability at most δ, in any unit and for any noise scale."""

import math
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from tailproof import Policy, bestarm, identify
from tailproof.environments.arm_sets import GivenArms
from tailproof.environments.linear import LinearBandit
from tailproof.noise import Normal

PATHS, LEVEL = 60, 1e-3
"""A recipe that errs with probability δ exactly fails one setting in a thousand; those here err
far less often, as their constants are cautious."""
RECIPES: list[bestarm.BestArm[Any]] = [
    bestarm.GAllocation(),
    bestarm.LazyTrackAndStop(),
    bestarm.LinGapE(),
    bestarm.RAGE(),
    bestarm.SuccessiveElimination(),
    bestarm.TrackAndStop(),
    bestarm.XYAdaptive(),
    bestarm.XYAllocation(),
]
UNSTRUCTURED = (bestarm.SuccessiveElimination, bestarm.TrackAndStop)


class Setting(NamedTuple):
    """One instance: arms, θ with one best arm, the scale of the noise, and δ."""

    vectors: tuple[tuple[float, ...], ...]
    theta: tuple[float, ...]
    scale: float
    delta: float


def setting(geometry: str, scale: float, delta: float, ratio: float, length: float) -> Setting:
    """Return arms of a given length whose smallest gap is `ratio` times the noise."""
    rng = np.random.default_rng([len(geometry), round(1e6 * delta), round(1e6 * ratio)])
    if geometry == "two":
        x, theta = np.eye(2), np.array([1.0, 2.0])
    elif geometry == "basis":
        x, theta = np.eye(3), np.array([3.0, 2.0, 1.0])
    elif geometry == "near tie":
        x, theta = np.vstack([np.eye(3), [np.cos(0.5), np.sin(0.5), 0]]), np.array([2.0, 0, 0])
    else:
        x = rng.standard_normal((6, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        theta = rng.standard_normal(3)
    values = np.sort(x @ theta)
    theta *= ratio * scale / (values[-1] - values[-2]) / length
    vectors = tuple(tuple(row) for row in (length * x).tolist())
    return Setting(vectors, tuple(theta.tolist()), scale, delta)


SETTINGS = [
    setting(geometry, scale, delta, ratio, length)
    for (geometry, length), scale, (delta, ratio) in product(
        [("two", 1.0), ("basis", 1e3), ("near tie", 1.0), ("random", 1e-3), ("random", 1.0)],
        [1e-4, 1e-2, 1.0, 10.0],
        [(0.2, 2.0), (0.05, 5.0), (0.05, 1e4)],
    )
]


def check(recipe: bestarm.BestArm[Any], it: Setting, block: int | None) -> int:
    """Play the recipe, alone or behind medians of `block` pulls; return how many paths decided."""
    law, budget = Normal(it.scale), 60_000
    own = recipe.at(it.delta).with_scale(it.scale)
    if isinstance(own, bestarm.LinGapE):  # its bound on ‖θ‖ and its penalty have units
        size = float(np.linalg.norm(it.theta))
        own = bestarm.LinGapE(
            delta=it.delta,
            noise_scale=it.scale,
            norm_bound=size,
            ridge=max(it.scale / size, 1e-4) ** 2,
        )
    if isinstance(own, bestarm.RAGE):  # its first phase looks for gaps of about one
        values = np.sort(np.array(it.vectors) @ it.theta)
        gap = math.ceil(math.log2(values[-1] - values[-2]))
        own = replace(own, offset=min(max(1 - gap, -10), 1))
    policy: Policy[Any] = own
    if block is not None:
        policy = bestarm.behind_filter(own, law, block=block, max_pulls=budget)
    bandit = LinearBandit(contexts=GivenArms(it.vectors), theta=it.theta, noise=law)
    if isinstance(own, UNSTRUCTURED):
        values = np.array(it.vectors) @ it.theta
        basis = tuple(tuple(row) for row in np.eye(len(values)).tolist())
        bandit = LinearBandit(contexts=GivenArms(basis), theta=tuple(values.tolist()), noise=law)
    found = identify({"it": policy}, bandit, paths=PATHS, max_pulls=budget)
    assert binom.sf(found.errors("it") - 1, PATHS, it.delta) > LEVEL
    return PATHS - found.undecided("it")


def test_there_are_sixty_settings() -> None:
    assert len(set(SETTINGS)) == 60


@pytest.mark.parametrize("block", [None, 5])
@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
def test_a_few_settings(recipe: bestarm.BestArm[Any], block: int | None) -> None:
    for it in (SETTINGS[2], SETTINGS[13], SETTINGS[41]):
        assert check(recipe, it, block) > 0


@pytest.mark.slow
@pytest.mark.parametrize("block", [None, 5])
@pytest.mark.parametrize("it", SETTINGS, ids=range(60))
@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
def test_every_setting(recipe: bestarm.BestArm[Any], it: Setting, block: int | None) -> None:
    check(recipe, it, block)
