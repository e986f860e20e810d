"""Environments give the arms, parameters and locations they promise."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, kstest

from tailproof import UCB1, Filtered, Median, Uniform, bestarm, identify, simulate
from tailproof.environments.arm_sets import SharedContext
from tailproof.environments.linear import (
    ArmSet,
    FixedArms,
    FreshArms,
    GivenArms,
    LinearBandit,
    k_armed,
    neutral,
    orthant,
)
from tailproof.noise import Cauchy, Changing, Degenerate, Normal, PerArm, Rademacher, StudentT

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


@dataclass(frozen=True)
class Miscounting(ArmSet):
    """An arm set of someone's own that draws other arms than it says."""

    arms: int = 3
    dim: int = 2
    fresh: bool = True
    more: tuple[int, int, int] = (0, 0, 0)

    def draw(self, rng: np.random.Generator, paths: int) -> Any:
        said = np.array([paths, self.arms, self.dim])
        return rng.standard_normal(tuple(said + self.more))


@pytest.mark.parametrize("more", [(0, 1, 0), (0, -1, 0), (0, 0, 1), (1, 0, 0)])
@pytest.mark.parametrize("fresh", [True, False])
def test_arms_of_another_shape_are_refused(more: tuple[int, int, int], fresh: bool) -> None:
    contexts = Miscounting(fresh=fresh, more=more)
    bandit = LinearBandit(contexts=contexts, theta=(1.0, 0.0), noise=Normal())
    with pytest.raises(ValueError, match=r"must draw vectors of shape \(\d+, 3, 2\), got"):
        simulate({"a": Uniform()}, bandit, horizon=5, paths=4)


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
        (
            lambda: neutral(Cauchy(), arms=0),
            "arms must be a whole number of at least 1",
        ),
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
            "locations must be a sequence of at least two numbers, all finite",
        ),
        (lambda: k_armed(Cauchy(), locations="ab"), "locations must be an array of numbers"),  # type: ignore[arg-type]
        (lambda: neutral(Cauchy(), fresh=0), "fresh must be true or false, got 0"),  # type: ignore[arg-type]
        (lambda: neutral(Cauchy(), norms=(2, 1)), "norms must be a positive number, or the least"),
        (lambda: neutral(Cauchy(), norms=0), "norms must be a positive number"),
        (lambda: neutral(Cauchy(), lean=-1), "lean must be a finite number at least 0"),
        (lambda: neutral(Cauchy(), size=0), "size must be a finite number above 0"),
        (lambda: neutral(Cauchy(), offset=np.inf), "offset must be a finite number"),
        (lambda: neutral(PerArm((Cauchy(),))), "noise must be one law for each of 20 arms"),
        (lambda: neutral("cauchy"), "noise must be a noise law, got 'cauchy'"),  # type: ignore[arg-type]
        (
            lambda: LinearBandit(contexts=GivenArms(((1.0,),)), theta="cube", noise=Cauchy()),  # type: ignore[arg-type]
            "theta must be 'sphere', 'diagonal', or a finite number for each",
        ),
        (
            lambda: LinearBandit(contexts=GivenArms(((1.0,),)), theta=(1.0, 2.0), noise=Cauchy()),
            "theta must be .* a finite number for each of 1 dimensions",
        ),
        (
            lambda: LinearBandit(contexts=GivenArms(((1.0,),)), theta=(np.nan,), noise=Cauchy()),
            "theta must be .* a finite number for each of 1 dimensions",
        ),
    ],
)
def test_bad_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_lengths_are_between_their_norms_and_evenly_so_on_a_log_scale() -> None:
    world = neutral(Cauchy(), norms=(0.03, 30), dim=3).start(100, np.random.default_rng(2))
    lengths = np.linalg.norm(world.arms, axis=-1).ravel()
    assert kstest(np.log(lengths / 0.03) / np.log(1000), "uniform").pvalue > ALARM
    same = neutral(Cauchy(), norms=0.03, fresh=False).start(5, np.random.default_rng(2)).arms
    np.testing.assert_allclose(np.linalg.norm(same, axis=-1), 0.03)


def test_arms_that_lean_are_nearly_collinear_unit_vectors() -> None:
    arms = neutral(Cauchy(), lean=30, dim=4).start(50, np.random.default_rng(2)).arms
    np.testing.assert_allclose(np.linalg.norm(arms, axis=-1), 1)
    assert 1 / 60 < np.arccos(arms[..., 0]).max() < 1 / 29


def test_a_shared_context_is_one_for_all_arms() -> None:
    x = SharedContext(law="sphere", arms=2, features=3).draw(np.random.default_rng(0), 4)
    np.testing.assert_array_equal(x[:, 0, :3], x[:, 1, 3:])
    np.testing.assert_allclose(np.linalg.norm(x, axis=2), 1)


def test_what_is_left_out_draws_nothing() -> None:
    plain, spelt = (
        bandit.start(5, np.random.default_rng(0))
        for bandit in (neutral(Cauchy()), neutral(Cauchy(), norms=1, lean=0, offset=0, size=1))
    )
    np.testing.assert_array_equal(plain.arms, spelt.arms)
    np.testing.assert_array_equal(plain.theta, spelt.theta)


def test_size_multiplies_theta() -> None:
    world = neutral(Cauchy(), size=100).start(5, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(world.theta, axis=1), 100)
    given = LinearBandit(contexts=GivenArms(np.eye(2)), theta=(1, 2), noise=Cauchy(), size=3)
    assert given.start(1, np.random.default_rng(0)).locations.tolist() == [[3, 6]]


@dataclass(frozen=True, kw_only=True)
class Recorder(Uniform):
    """A random choice that keeps its rewards."""

    seen: list[NDArray[np.float64]] = field(default_factory=list, compare=False)

    def _learn(self, state: Any, arms: Any, chosen: Any, rewards: Any) -> None:
        self.seen.append(np.column_stack([chosen, rewards]))


def rewards_of(bandit: LinearBandit) -> NDArray[np.float64]:
    """Return arms and rewards of random choices."""
    recorder = Recorder()
    simulate({"it": recorder}, bandit, horizon=50, paths=4)
    return np.concatenate(recorder.seen)


def test_another_unit_and_an_offset_are_in_every_reward() -> None:
    bandit = neutral(Cauchy(), arms=3, dim=2)
    plain = rewards_of(bandit)
    for offset in (2.0**20, -(2.0**20)):
        far = rewards_of(replace(bandit, offset=offset))
        np.testing.assert_allclose(far[:, 1], plain[:, 1] + offset, rtol=1e-12)
    cents = rewards_of(replace(bandit, offset=3.0).scaled(2.0**-20))
    np.testing.assert_allclose(cents[:, 1], (plain[:, 1] + 3) * 2.0**-20, rtol=1e-12)
    np.testing.assert_array_equal(cents[:, 0], plain[:, 0])


def test_noise_may_depend_on_the_arm_and_on_the_pull() -> None:
    by_arm = PerArm((Degenerate(), Rademacher(7.0)))
    seen = rewards_of(k_armed(by_arm, locations=(0.5, 0.25)))
    assert set(seen[seen[:, 0] == 0, 1]) == {0.5}
    assert set(seen[seen[:, 0] == 1, 1]) == {-6.75, 7.25}
    changing = Changing((Degenerate(), Rademacher()), at=(20,))
    seen = rewards_of(k_armed(changing, locations=(0.0, 0.0)))
    assert np.abs(seen[:, 1]).tolist() == [0] * 80 + [1] * 120


def test_a_filter_meets_raw_rewards_where_the_noise_varies() -> None:
    bandit = k_armed(PerArm((Cauchy(), Degenerate())), locations=(0.0, 1.0))
    policy = Filtered(UCB1(), repeats=15, estimator=Median())
    result = simulate({"it": policy}, bandit, horizon=3000, paths=10)
    assert result.mean("it")[-1] < 300  # 1500 by chance
    found = identify(
        {"it": bestarm.LinGapE(norm_bound=2)},
        k_armed(PerArm((Rademacher(), Normal())), locations=(0.0, 1.0)),
        paths=20,
        max_pulls=10_000,
    )
    assert found.errors("it") <= 2  # δ = 0.01: 3 or more of 20 with probability 0.1 %
