"""Exact intervals hold, for adaptive logs and any look."""

import numpy as np
import pytest

import tailproof as tp
from tailproof.judging.bets import Bets, _past
from tailproof.tables import Records, records


def adaptive_log(seed: int, n: int = 2000) -> Records:
    """Return the log of a greedy rule with floor 0.1, whose arms earn 0.2 and 0.3."""
    rng = np.random.default_rng(seed)
    total, plays = np.zeros(2), np.zeros(2)
    arm, p, reward = np.empty(n, np.int64), np.empty((n, 2)), np.empty(n)
    for t in range(n):
        best = int(total[1] * plays[0] > total[0] * plays[1])
        p[t] = 0.1
        p[t, best] = 0.9
        arm[t] = rng.random() < p[t, 1]
        reward[t] = rng.random() < (0.2, 0.3)[arm[t]]
        total[arm[t]] += reward[t]
        plays[arm[t]] += 1
    return records(
        arm=arm, reward=reward, propensities=p, propensity=None, adaptive=True, floor=0.1
    )


@pytest.mark.parametrize("interval", ["exact", "anytime"])
def test_exact_intervals_cover_on_adaptive_logs(interval: str) -> None:
    """Wrong in at most 5 % of logs: of 60, more than 9 in one of 1000 runs."""
    wrong = [0, 0]
    for seed in range(60):
        log = adaptive_log(seed, 600)
        more = {"interval": interval, "cap": (0.0, 1.0)}
        found = tp.judge(log, "0", tp.CappedMean(), **more)["always 0"]  # type: ignore[arg-type]
        wrong[0] += not found.low <= 0.2 <= found.high
        middle = tp.judge(log, "0", tp.Quantile(0.7), interval="exact")["always 0"]
        wrong[1] += not middle.low <= 0 <= middle.high
    assert max(wrong) <= 9


def test_a_floor_makes_them_narrower_and_any_look_wider() -> None:
    log = adaptive_log(0)
    raw = (log.arm == 0) / log.propensity
    width = {}
    for most in (None, 10.0):
        for anytime in (False, True):
            low, high = Bets(weight=raw, most=most, anytime=anytime).mean(log.reward)
            assert low < 0.2 < high
            width[most, anytime] = high - low
    assert width[10.0, False] < width[None, False]
    assert width[10.0, False] < width[10.0, True]


def test_capital_stays_positive_whatever_happens() -> None:
    """No reward can lose more than the stake: all rewards at either end, with huge weights."""
    rng = np.random.default_rng(0)
    weight = np.where(rng.random(500) < 0.01, 1e6, 0.0)
    for share in (np.zeros(500), np.ones(500)):
        low, high = Bets(weight=weight).mean(share)
        assert 0 <= low <= high <= 1


def test_a_unit_is_one_bet() -> None:
    log = adaptive_log(1, 400)
    raw = (log.arm == 0) / log.propensity
    alone = Bets(weight=raw).mean(log.reward)
    unit = np.repeat(np.arange(400), 3)
    held = Bets(weight=np.repeat(raw, 3), unit=unit).mean(np.repeat(log.reward, 3))
    assert held == pytest.approx(alone)


def test_what_was_done_has_no_exact_interval_if_it_changed() -> None:
    found = tp.judge(
        adaptive_log(0), "0", tp.CappedMean(), cap=(0, 1), interval="exact", control="1"
    )
    logged, to = found["as logged"], found["always 0"].to_control
    assert np.isnan(logged.low)
    assert to is not None
    assert to.low < -0.1 < to.high


def test_a_bet_knows_only_what_came_before() -> None:
    assert _past(np.array([1.0, 2.0, 4.0]), 0.5).tolist() == [0.5, 0.75, 3.5 / 3]
