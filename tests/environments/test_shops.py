"""Shops: what they pay is what they say, and rewards may come late."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailproof import (
    UCB1,
    CappedMean,
    LinRevenueUCB,
    Mean,
    Plan,
    Policy,
    RevenueUCB,
    Uniform,
    bestarm,
    environments,
    identify,
    noise,
    simulate,
)
from tailproof.environments.shops import Shop
from tailproof.noise import LogNormal, Pareto
from tailproof.typing import Array

TWO = Shop(buyers=(0.06, 0.03), baskets=(LogNormal(0.5, "none", 20), LogNormal(0.5, "none", 30)))
FEATURED = Shop(
    buyers=(0.02, 0.03, 0.05),
    baskets=(Pareto(2.2, "none", 40), Pareto(2.2, "none", 38), Pareto(2.2, "none", 10)),
    weights=((0.5, -0.5), (0.0, 0.3), (-0.4, 0.0)),
    unused=1,
)


class Recorder(Uniform):
    """A random choice that keeps what it learns, and when."""

    seen: list[tuple[Array, Array, Array]] = []  # noqa: RUF012
    asked: list[int] = []  # noqa: RUF012

    def _choose(self, state: Any, arms: Any, rng: Any) -> Any:
        self.asked.append(len(self.seen))
        return super()._choose(state, arms, rng)

    def _learn(self, state: Any, arms: Any, chosen: Any, rewards: Any) -> None:
        self.seen.append((arms.copy(), chosen.copy(), rewards.copy()))


def recorded(bandit: Any, horizon: int, paths: int = 50, **settings: Any) -> tuple[Array, ...]:
    """Return arms, choices and rewards of a random policy, decisions first."""
    Recorder.seen, Recorder.asked = [], []
    simulate({"it": Recorder()}, bandit, horizon=horizon, paths=paths, **settings)
    return tuple(np.array(part) for part in zip(*Recorder.seen, strict=True))


def test_rewards_have_the_laws_they_say() -> None:
    """100 000 visitors; each bound is five standard errors."""
    _, chosen, rewards = recorded(TWO, 2000)
    for arm, (p, law) in enumerate(zip(TWO.buyers, TWO.baskets, strict=True)):
        own = rewards[chosen == arm].ravel()
        bought = own[own != 0]
        assert abs(len(bought) / len(own) - p) < 5 * np.sqrt(p / len(own))
        ranks = law.cdf(bought)
        assert abs(ranks.mean() - 0.5) < 5 * np.sqrt(1 / 12 / len(bought))


def test_values_are_capped_means_of_the_rewards() -> None:
    _, chosen, rewards = recorded(TWO, 4000)
    samples = [np.sort(rewards[chosen == arm].ravel()) for arm in (0, 1)]
    for mine, found, own in zip(TWO.values, CappedMean(0.99).values(samples), samples, strict=True):
        assert abs(mine - found) < 5 * own.std() / np.sqrt(len(own))
    assert replace(TWO, aim=Mean()).values[0] == pytest.approx(0.06 * 20 * np.exp(0.125), rel=1e-6)


def test_arms_of_a_shop_without_zeros() -> None:
    """Everyone buys, so that no zeros are put in."""
    all_buy = replace(TWO, buyers=(1, 1))
    assert (recorded(all_buy, 20)[2] > 0).all()
    assert all_buy.values.argmax() == 1


def test_features_decide_who_buys() -> None:
    """By least squares of purchases on the stated probability: slope one, and nothing besides."""
    arms, chosen, rewards = recorded(FEATURED, 4000)
    assert arms.shape == (4000, 50, 3, 3)
    assert (arms == arms[:, :, :1]).all()
    p = FEATURED.conversion(arms[:, :, 0])
    own = np.take_along_axis(p, chosen.astype(np.int64)[..., None], axis=2).ravel()
    bought = rewards.ravel() != 0
    z = (bought - own).sum() / np.sqrt((own * (1 - own)).sum())
    tilt = ((bought - own) * own).sum() / np.sqrt((own**3 * (1 - own)).sum())
    assert abs(z) < 5
    assert abs(tilt) < 5
    assert p.max() <= 0.5
    assert (FEATURED.conversion(np.zeros(3)) < FEATURED.buyers).all()


def test_the_regret_of_a_featured_shop_is_that_of_the_best_arm_for_each_visitor() -> None:
    world = FEATURED.start(200, np.random.default_rng(0))
    each = FEATURED.values / np.asarray(FEATURED.buyers)
    for _ in range(3):
        x = world.arms[:, 0]
        np.testing.assert_allclose(world.locations, FEATURED.conversion(x) * each)
        np.testing.assert_array_equal(world.best, world.locations.max(axis=1))
        world.advance()
    assert len(set(world.locations.argmax(axis=1))) > 1


def test_every_policy_has_the_same_visitors() -> None:
    rewards = []
    for arm in (0, 1):

        class Always(Recorder):
            def _choose(self, state: Any, arms: Any, rng: Any, arm: int = arm) -> Any:
                return np.full(state.paths, arm)

        Recorder.seen = []
        simulate({f"always {arm}": Always()}, TWO, horizon=500, paths=40)
        rewards.append(np.array([part[2] for part in Recorder.seen]))
    often, seldom = rewards
    assert 0 < np.count_nonzero(seldom) < np.count_nonzero(often)
    assert (often[seldom != 0] != 0).all()


def test_units_of_a_shop() -> None:
    first, second = (recorded(shop, 200)[2] for shop in (TWO, TWO.scaled(1e6)))
    np.testing.assert_allclose(second, 1e6 * first, rtol=1e-9)
    assert ((first == 0) == (second == 0)).all()
    np.testing.assert_allclose(TWO.scaled(1e6).values, 1e6 * TWO.values)


def test_policies_learn_in_a_shop() -> None:
    """20 paths; a random arm has 1 by definition."""
    result = simulate({"it": RevenueUCB()}, TWO, horizon=3000, paths=20, delay=100)
    assert result.mean("it")[-1] < 0.7 * 3000 * (TWO.values.max() - TWO.values.mean())
    clear = replace(FEATURED, buyers=(0.1, 0.1, 0.1), weights=((1, 0), (0, 1), (-1, 0)))
    tools: dict[str, Policy[Any]] = {
        "features": LinRevenueUCB(),
        "arms": RevenueUCB(),
        "mean": UCB1(),
    }
    found = simulate(tools, clear, horizon=1000, paths=5)
    assert found.mean("features")[-1] < 0.9 * found.mean("arms")[-1]
    assert found.curves["mean"].error is None


@pytest.mark.parametrize("delay", [0, 1, 30])
def test_rewards_are_learned_late(delay: int) -> None:
    arms, _, rewards = recorded(FEATURED, 100, paths=4, seed=3, delay=delay)
    assert Recorder.asked == [max(0, t - delay) for t in range(100)]
    assert len(rewards) == 100 - delay
    on_time = recorded(FEATURED, 100, paths=4, seed=3)
    np.testing.assert_array_equal(arms, on_time[0][: 100 - delay])
    np.testing.assert_array_equal(rewards, on_time[2][: 100 - delay])


def test_a_result_says_how_late_rewards_were(tmp_path: Path) -> None:
    bandit = environments.neutral(noise.Cauchy(), arms=4, dim=2)
    for delay in (0, 5):
        found = simulate({"it": Uniform()}, bandit, horizon=20, paths=3, delay=delay, out=tmp_path)
        assert found.settings["delay"] == delay
        assert found.curves["it"].decisions[-1] == 20 - delay
    assert len(list(tmp_path.glob("*.cell"))) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"buyers": (0.1,)}, "buyers must be one for each of 2 arms"),
        ({"buyers": (0.1, 0)}, "buyers must be"),
        ({"buyers": (0.1, 1.5)}, "buyers must be"),
        ({"baskets": (LogNormal(1), LogNormal(1))}, "baskets must be laws of numbers that are not"),
        ({"weights": ((1,),)}, "weights must be a row of numbers for each of 2 arms"),
        ({"unused": 3}, "unused=3 needs weights"),
        ({"aim": 0.99}, "aim must be an aim"),
    ],
)
def test_shops_that_cannot_be(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}"):
        replace(TWO, **settings)


def test_plans_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"^delay must be"):
        Plan(policies={"it": Uniform()}, environment=TWO, horizon=10, paths=2, delay=-1)
    with pytest.raises(ValueError, match=r"^environment must be linear, with fixed arms"):
        identify({"it": bestarm.LinGapE(norm_bound=2)}, TWO, paths=2, max_pulls=100)


def test_a_cycle_moves_the_buyers_of_all_arms() -> None:
    """Three phases of two visitors; the share of buyers and the values follow the factors."""
    shop = Shop(
        buyers=(0.1, 0.2), baskets=(LogNormal(0.5, "none"),) * 2, cycle=(1, 2, 0.5), phase=2
    )
    world, seen = shop.start(1, np.random.default_rng(0)), []
    for _ in range(7):
        seen.append(float(world.conversion[0, 1]))
        assert world.best[0] == pytest.approx(shop.values.max() * seen[-1] / 0.2)
        world.advance()
    assert seen == [0.2, 0.2, 0.4, 0.4, 0.1, 0.1, 0.2]
    with pytest.raises(ValueError, match="cycle"):
        Shop(buyers=(0.1, 0.6), baskets=(LogNormal(0.5, "none"),) * 2, cycle=(1, 2))
