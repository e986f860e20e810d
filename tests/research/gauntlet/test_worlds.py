"""Worlds that break what a tool assumes."""

from typing import Any

import numpy as np
import pytest

from tailproof import Policy, RevenueUCB, Uniform, gauntlet, simulate
from tailproof.research.gauntlet.worlds import REPORT, TUNING, clusters, modes


def test_reported_worlds_are_not_those_tuned_on() -> None:
    assert not REPORT.keys() & TUNING.keys()
    laws = {repr(problem.environment) for problem in TUNING.values()}
    assert not laws & {repr(problem.environment) for problem in REPORT.values()}
    assert [problem.name for problem in gauntlet.problems("worlds")] == list(REPORT)


def test_modes_and_clusters_are_where_they_are_said_to_be() -> None:
    rng = np.random.default_rng(0)
    drawn = modes(0, 2.5, spread=0.3).sample(rng, (3000,))
    shares = [np.mean(np.abs(drawn - at) < 1.2) for at in (-2.5, 0, 2.5)]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.04)
    law = clusters(0.2, 0.7).laws[1]
    values = law.sample(rng, (3000,)) + 0.7
    assert np.mean(values > 0.5) == pytest.approx(0.7, abs=0.04)
    assert np.mean(np.abs(values - np.round(values)) < 0.4) > 0.99


def test_a_rare_dear_arm_is_found_and_an_arm_that_never_sells_is_given_up() -> None:
    """On tuning worlds, cut; random arms pull each arm of two half of the time."""
    dear, never = TUNING["tuning-dear"].environment, TUNING["tuning-never-sells"].environment
    for world, most in ((dear, 0.5), (never, 0.6)):
        tools: dict[str, Policy[Any]] = {"tool": RevenueUCB(), "chance": Uniform()}
        result = simulate(tools, world, horizon=6000, paths=20, seed=3)
        assert result.mean("tool")[-1] < most * result.mean("chance")[-1]
