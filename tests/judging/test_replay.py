"""Policies that learn are played on a log."""

from typing import Any

import numpy as np
import pytest

import tailproof as tp
from tailproof import Location
from tailproof.judging.replay import replay
from tailproof.tables import Records, records


def even_log(seed: int = 0, n: int = 4000, p: float = 0.5, **more: Any) -> Records:
    """Return a log of two arms that earn 0 and 1 with normal noise."""
    rng = np.random.default_rng(seed)
    arm = (rng.random(n) < p).astype(np.int64)
    return records(
        arm=arm,
        reward=arm + rng.standard_normal(n),
        propensity=np.where(arm == 1, p, 1 - p),
        **more,
    )


def test_a_constant_policy_earns_what_its_arm_does() -> None:
    found = tp.judge(even_log(), {"one": tp.FixedArm(arm=1)}, tp.Median())["one"]
    assert found.verdict == "trust"
    assert found.low < 1 < found.high
    assert found.high - found.low < 0.3


@pytest.mark.parametrize("p", [0.5, 0.2])
def test_a_learner_earns_what_it_earns_in_simulation(p: float) -> None:
    """Also on an uneven log; 20 logs, so the mean of estimates has a twentieth of a variance."""
    policy = tp.UCB1()
    horizon, found, covered = 0, [], []
    for seed in range(20):
        own = tp.judge(even_log(seed, p=p), {"ucb": policy}, tp.Mean())["ucb"]
        horizon = own.horizon or 0
        found.append(own.estimate)
        covered.append((own.low, own.high))
    rng = np.random.default_rng(99)
    state, paths = policy.init(2000, 2, 2), 2000
    eye, total = np.broadcast_to(np.eye(2), (paths, 2, 2)), 0.0
    for _ in range(horizon):
        chosen = policy.choose(state, eye, rng)
        reward = chosen + rng.standard_normal(paths)
        policy.learn(state, eye, chosen, reward[:, None])
        total += reward.mean() / horizon
    assert np.mean(found) == pytest.approx(total, abs=0.05)
    assert np.mean([low <= total <= high for low, high in covered]) >= 0.8


def test_a_filter_takes_its_rewards_from_the_same_arm() -> None:
    found = tp.judge(even_log(), {"f": tp.Filtered(tp.UCB1(), repeats=5)}, tp.Mean())["f"]
    assert found.horizon is not None
    assert found.horizon % 5 == 0
    assert found.estimate > 0.5


def test_a_policy_that_looks_at_features_learns_from_rows_that_it_would_have_chosen() -> None:
    rng = np.random.default_rng(5)
    n = 8000
    x, arm = rng.choice([-1.0, 1.0], (n, 1)), rng.integers(0, 2, n)
    reward = x[:, 0] * (2 * arm - 1) + 0.1 * rng.standard_normal(n)
    log = records(arm=arm, reward=reward, propensity=np.full(n, 0.5), features=x)
    found = tp.judge(log, {"lin": tp.LinStudentUCB()}, tp.Median())["lin"]
    assert found.estimate > 0.8


def test_what_cannot_be_replayed_is_refused_with_a_reason() -> None:
    log = even_log()
    features = even_log(features=np.random.default_rng(0).standard_normal((4000, 1)))
    cases: list[tuple[Records, Any, Any, str]] = [
        (log, tp.UCB1(), Location(), "judged by its rewards"),
        (even_log(n=60), tp.UCB1(), tp.Median(), "too short or too uneven"),
        (features, tp.Filtered(tp.LinTS(), repeats=5), tp.Median(), "never repeat"),
        (even_log(arms=["0", "1", "2"]), tp.UCB1(), tp.Median(), "no reward of 2"),
        (even_log(offered=np.ones((4000, 2), bool)), tp.UCB1(), tp.Median(), "offers change"),
    ]
    for own, policy, aim, words in cases:
        found = tp.judge(own, {"rule": policy}, aim)["rule"]
        assert (found.verdict, words in found.reason) == ("refused", True), found.reason


def test_parts_share_no_row() -> None:
    """Rewards that are row numbers: none occurs in two parts."""
    log = even_log().filled(np.arange(4000.0))
    found = replay(tp.Uniform(), log, np.random.default_rng(0)).rewards
    assert found is not None
    seen = [set(part.ravel().tolist()) for part in found]
    assert sum(map(len, seen)) == len(set.union(*seen))


def test_replays_of_the_same_log_are_paired() -> None:
    """The same policy twice differs by nothing; against a constant one, rows are independent."""
    rules = {"a": tp.UCB1(), "b": tp.UCB1(), "one": "1"}
    for aim in (tp.Median(), tp.Mean()):
        found = tp.judge(even_log(), rules, aim, control="a")
        assert found["b"].to_control == (0.0, 0.0, 0.0, 0.5)
        to = found["one"].to_control
        assert to is not None
        assert to.high - to.low > found["a"].high - found["a"].low
