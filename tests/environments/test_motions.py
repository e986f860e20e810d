"""Bandits that move: when theta changes, how, and what regret is counted against."""

from typing import Any

import numpy as np
import pytest

from tailproof import (
    UCB1,
    Filtered,
    FixedArm,
    Mean,
    Renewed,
    Uniform,
    bestarm,
    environments,
    identify,
    simulate as run,
)
from tailproof.environments import LinearBandit, k_armed, motions, neutral
from tailproof.noise import Cauchy, Degenerate, Empirical, Normal, PassedOn, PerArm

EVERY: list[motions.Motion] = [
    motions.Jump(at=(3, 7)),
    motions.Shuffle(at=(3, 7)),
    motions.Swap(at=(3, 7)),
    motions.Rise(at=(3, 7), by=0.5),
    motions.Shift(at=(3, 7), by=2),
    motions.PassOn(at=(3, 7)),
    motions.Walk(stride=0.3, every=3),
    motions.Walk(stride=0.3, every=3, keeps_length=True),
    motions.Rotation(period=20, every=3),
]


def regret(policy: Any, bandit: LinearBandit, horizon: int, paths: int = 3) -> Any:
    found = run({"it": policy}, bandit, horizon=horizon, paths=paths, checkpoints=horizon)
    return found.curves["it"].regret


def test_every_motion_has_an_example() -> None:
    exported = {getattr(motions, name) for name in motions.__all__} - {motions.Motion}
    assert exported == {type(motion) for motion in EVERY}


def test_regret_is_against_the_best_arm_of_the_moment() -> None:
    bandit = k_armed(Cauchy(), locations=(0, 1, 4), motion=motions.Swap(at=(3, 5)))
    gaps = np.diff(regret(FixedArm(arm=2), bandit, 8), prepend=0)
    assert gaps.tolist() == [[0, 0, 0, 4, 4, 0, 0, 0]] * 3


def test_a_decision_sees_the_theta_of_its_first_pull() -> None:
    """Pulls count, not decisions."""
    policy = Filtered(FixedArm(arm=1), repeats=2, estimator=Mean())
    bandit = k_armed(Degenerate(), locations=(0, 1), motion=motions.Swap(at=(3,)))
    gaps = np.diff(regret(policy, bandit, 8), prepend=0)
    assert gaps.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]] * 3


@pytest.mark.parametrize("motion", EVERY, ids=repr)
@pytest.mark.parametrize("fresh", [True, False])
def test_theta_moves_at_its_marks_only(motion: motions.Motion, fresh: bool) -> None:
    world = neutral(Cauchy(), arms=4, dim=4, fresh=fresh, motion=motion).start(
        5, np.random.default_rng(0)
    )
    still = neutral(Cauchy(), arms=4, dim=4, fresh=fresh).start(5, np.random.default_rng(0))
    moved = []
    for pulled in range(1, 9):
        before = world.theta
        world.advance(pulled)
        still.advance(pulled)
        if not np.array_equal(before, world.theta):
            moved.append(pulled)
        np.testing.assert_array_equal(world.arms, still.arms)  # offers do not depend on θ
        np.testing.assert_allclose(world.locations, np.matvec(world.arms, world.theta))
        np.testing.assert_array_equal(world.best, world.locations.max(axis=1))
    assert moved == _marks(motion)


def _marks(motion: motions.Motion) -> list[int]:
    return [mark for mark, _ in zip(motion.marks(), range(2), strict=False)]


@pytest.mark.parametrize("motion", EVERY, ids=repr)
def test_units_do_not_matter(motion: motions.Motion) -> None:
    bandit = k_armed(Normal(), locations=(0, 1, 3), motion=motion)
    plain, large = (regret(Uniform(), own, 12) for own in (bandit, bandit.scaled(1024)))
    np.testing.assert_allclose(large, 1024 * plain)


def test_policies_of_other_pulls_see_the_same_world() -> None:
    """A random walk is a function of the pulls, whoever pulls."""
    bandit = k_armed(Degenerate(), locations=(0, 1), motion=motions.Walk(stride=1, every=6))
    once = np.diff(regret(FixedArm(arm=0), bandit, 30), prepend=0)
    thrice = Filtered(FixedArm(arm=0), repeats=3, estimator=Mean())
    np.testing.assert_allclose(np.diff(regret(thrice, bandit, 30), prepend=0), once)


def test_lengths_and_angles() -> None:
    rng, theta = np.random.default_rng(0), np.random.default_rng(1).standard_normal((4, 5))
    length = np.linalg.norm(theta, axis=1)
    for motion in (
        motions.Jump(at=(1,)),
        motions.Shuffle(at=(1,)),
        motions.Rotation(period=8, every=1),
        motions.Walk(stride=1, keeps_length=True),
    ):
        np.testing.assert_allclose(np.linalg.norm(motion.step(theta, rng), axis=1), length)
    turn = motions.Rotation(period=8, every=1)
    turned = theta
    for _ in range(8):
        turned = turn.step(turned, rng)
    np.testing.assert_allclose(turned, theta)


def test_laws_are_passed_on_with_the_locations() -> None:
    """What an arm pays is the reward of the law that it has now, zeros among them."""
    sales = [np.array([0.0, 0.0, 9.0]), np.array([0.0, 1.0, 2.0])]
    laws = tuple(Empirical(own - own.mean()) for own in sales)
    means = [float(own.mean()) for own in sales]
    bandit = k_armed(PassedOn(laws, (50,)), locations=means, motion=motions.PassOn(at=(50,)))
    world, rng = bandit.start(1, np.random.default_rng(0)), np.random.default_rng(1)
    seen: list[set[float]] = [set(), set()]
    for pulled in range(100):
        world.advance(pulled)
        drawn = bandit.noise.sample(rng, np.array([0]), pulled, 1)  # type: ignore[call-arg, arg-type]
        seen[pulled >= 50].add(round(float(world.locations[0, 0] + drawn[0, 0]), 12))
    assert seen == [{0.0, 9.0}, {0.0, 1.0, 2.0}]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="at must be in ascending order"):
        motions.Jump(at=(5, 3))
    with pytest.raises(ValueError, match="at must be a sequence of pull counts"):
        motions.Jump(at=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="by must be a finite number above 0"):
        motions.Shift(at=(5,), by=0)
    with pytest.raises(ValueError, match="motion must be a motion"):
        environments.k_armed(Cauchy(), locations=(0, 1), motion="jump")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one law for each of 3 arms"):
        k_armed(PassedOn((Normal(), Normal()), (5,)), locations=(0, 1, 2))
    moving = k_armed(PerArm((Normal(), Normal())), locations=(0, 1), motion=EVERY[0])
    with pytest.raises(ValueError, match="environment must be one without motion"):
        identify({"it": bestarm.TrackAndStop()}, moving, paths=1, max_pulls=99)


def test_recipes_name_motions() -> None:
    from tailproof import recipes

    text = "k_armed(locations=(0, 1), motion=swap(at=(500,)))"
    bandit = recipes.build("environment", text, Normal())
    assert bandit.motion == motions.Swap(at=(500,))
    assert recipes.build("policy", "vigilant(renewed(ucb1, memory=2000))").policy.policy == UCB1()
    assert recipes.build("policy", "renewed(memory=9)", UCB1()) == Renewed(UCB1(), memory=9)
