"""Environments give the arms, parameters and locations they promise."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, kstest

from tailproof.noise import Cauchy, StudentT
from tailproof.simulation.environments import (
    ArmSet,
    FixedArms,
    FreshArms,
    GivenArms,
    LinearBandit,
    k_armed,
    neutral,
    orthant,
)

ALARM = 1e-4  # the false-alarm rate of each statistical test


def test_papers_setting() -> None:
    world = orthant(StudentT(1)).start(50, np.random.default_rng(0))
    np.testing.assert_allclose(world.theta, 1 / np.sqrt(10))
    assert world.arms.shape == (50, 20, 10)
    assert world.arms.min() >= 0
    np.testing.assert_allclose(np.linalg.norm(world.arms, axis=-1), 1)


def test_papers_contexts_are_normalised_uniforms() -> None:
    """The ratio of two uniform coordinates is below r with probability r/2 for r ≤ 1."""
    arms = orthant(StudentT(1)).start(100, np.random.default_rng(0)).arms.reshape(-1, 10)
    ratio = arms[:, 0] / arms[:, 1]
    level = np.where(ratio <= 1, ratio / 2, 1 - 1 / (2 * np.maximum(ratio, 1e-300)))
    assert kstest(level, "uniform").pvalue > ALARM


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_the_neutral_setting_prefers_no_direction(dim: int) -> None:
    world = neutral(Cauchy(), dim=dim, arms=7).start(900, np.random.default_rng(1))
    for vectors in (world.arms.reshape(-1, dim), world.theta):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, rtol=1e-12)
        if dim > 1:  # a coordinate of a uniform direction is Beta-distributed on [−1, 1]
            law = beta((dim - 1) / 2, (dim - 1) / 2, loc=-1, scale=2)
            for coordinate in vectors.T:
                assert kstest(coordinate, law.cdf).pvalue > ALARM
        covariance = vectors.T @ vectors / len(vectors)
        assert np.abs(covariance - np.eye(dim) / dim).max() < 6 / np.sqrt(len(vectors))


def test_fresh_arms_change_with_each_decision_and_drawn_ones_do_not() -> None:
    for fresh in (True, False):
        world = neutral(Cauchy(), fresh=fresh).start(3, np.random.default_rng(0))
        arms, locations = world.arms.copy(), world.locations.copy()
        world.advance()
        assert np.array_equal(arms, world.arms) != fresh
        assert np.array_equal(locations, world.locations) != fresh
        np.testing.assert_allclose(world.locations, np.matvec(world.arms, world.theta))
        np.testing.assert_array_equal(world.best, world.locations.max(axis=1))


def test_paths_have_their_own_arms() -> None:
    world = neutral(Cauchy(), fresh=False).start(2, np.random.default_rng(0))
    assert not np.allclose(world.arms[0], world.arms[1])


def test_k_armed_locations() -> None:
    world = k_armed(Cauchy(), locations=(0.0, 2.0, -1.0)).start(4, np.random.default_rng(0))
    np.testing.assert_array_equal(world.locations, np.tile([0.0, 2.0, -1.0], (4, 1)))
    assert world.best.tolist() == [2.0] * 4


def test_given_arms() -> None:
    bandit = LinearBandit(
        contexts=GivenArms(((1.0, 0.0), (0.6, 0.8))), theta=(0.0, 1.0), noise=Cauchy()
    )
    assert bandit.start(2, np.random.default_rng(0)).locations.tolist() == [[0.0, 0.8]] * 2


def test_arrays_are_as_good_as_tuples() -> None:
    one, two = (
        LinearBandit(contexts=GivenArms(vectors), theta=theta, noise=Cauchy())
        for vectors, theta in (
            (np.eye(3), np.ones(3)),
            (((1, 0, 0), (0, 1, 0), (0, 0, 1)), (1, 1, 1)),
        )
    )
    assert one == two
    assert hash(one) == hash(two)
    assert repr(one) == repr(two)  # by which a finished cell is found again
    assert k_armed(Cauchy(), locations=np.ones(3)) == one


class Keeping(ArmSet):
    """An arm set that keeps what it handed out."""

    arms, dim = 2, 2

    def draw(self, rng: np.random.Generator, paths: int) -> NDArray[np.float64]:
        self.drawn = np.tile(np.eye(2), (paths, 1, 1))
        return self.drawn


def test_nobody_can_change_arms_that_stay_the_same() -> None:
    contexts = Keeping()
    world = LinearBandit(contexts=contexts, theta=(0, 1), noise=Cauchy()).start(
        2, np.random.default_rng(0)
    )
    contexts.drawn[:] = 7
    assert world.arms.tolist() == [[[1, 0], [0, 1]]] * 2
    with pytest.raises(ValueError, match="read-only"):
        world.arms[0, 0, 0] = 7


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: neutral(Cauchy(), arms=0), "arms must be a whole number of at least 1, got 0"),
        (lambda: orthant(Cauchy(), dim=-1), "dim"),
        (lambda: FreshArms(law="cube", arms=2, dim=2), "law must be one of orthant, sphere"),  # type: ignore[arg-type]
        (lambda: FixedArms(law="sphere", arms=2, dim=0.5), "dim"),  # type: ignore[arg-type]
        (lambda: GivenArms(()), "vectors"),
        (lambda: GivenArms(((1.0, float("nan")),)), "vectors must be finite"),
        (lambda: GivenArms(np.full((2, 2), np.inf)), "vectors must be finite"),
        (lambda: GivenArms(((1.0, 2.0), (1.0,))), "vectors must be an array of numbers"),
        (lambda: GivenArms((1.0, 2.0)), r"vectors must be of shape \(arms, dim\), got \(2,\)"),  # type: ignore[arg-type]
        (lambda: k_armed(Cauchy(), locations=()), "locations"),
        (
            lambda: k_armed(Cauchy(), locations=(0.0, float("inf"))),
            "locations must be a sequence of at least one number, all finite",
        ),
        (lambda: k_armed(Cauchy(), locations="ab"), "locations must be an array of numbers"),  # type: ignore[arg-type]
        (lambda: neutral(Cauchy(), fresh=0), "fresh must be true or false, got 0"),  # type: ignore[arg-type]
        (lambda: neutral("cauchy"), "noise must be a noise law, got 'cauchy'"),  # type: ignore[arg-type]
        (
            lambda: LinearBandit(contexts=GivenArms(((1.0,),)), theta="cube", noise=Cauchy()),  # type: ignore[arg-type]
            "theta must be 'sphere', 'diagonal' or numbers, got 'cube'",
        ),
        (
            lambda: LinearBandit(contexts=GivenArms(((1.0,),)), theta=(1.0, 2.0), noise=Cauchy()),
            "theta must be 1 finite numbers",
        ),
        (
            lambda: LinearBandit(contexts=GivenArms(((1.0,),)), theta=(np.nan,), noise=Cauchy()),
            "theta must be 1 finite numbers",
        ),
    ],
)
def test_bad_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
