"""Discounted and sliding-window UCB against plain one-path forms of their definitions."""

import math

import numpy as np
import pytest
from traces import play

from tailproof import DiscountedUCB, SlidingWindowUCB


def discounted(rewards: list[float], pulled: list[int], gamma: float, arm: int) -> float:
    """Return the index of D-UCB from its sums over all decisions."""
    t = len(rewards)
    weights = [gamma ** (t - 1 - s) for s in range(t)]
    own = [w for w, a in zip(weights, pulled, strict=True) if a == arm]
    if not own:
        return math.inf
    total = sum(w * y for w, y, a in zip(weights, rewards, pulled, strict=True) if a == arm)
    return total / sum(own) + 2 * math.sqrt(0.6 * math.log(sum(weights)) / sum(own))


def windowed(rewards: list[float], pulled: list[int], window: int, arm: int) -> float:
    """Return the index of SW-UCB from the last decisions."""
    recent = list(zip(rewards, pulled, strict=True))[-window:]
    own = [y for y, a in recent if a == arm]
    if not own:
        return math.inf
    return sum(own) / len(own) + math.sqrt(0.6 * math.log(len(recent)) / len(own))


@pytest.mark.parametrize("kind", ["discounted", "windowed"])
def test_the_arm_with_the_largest_index_is_pulled(kind: str) -> None:
    policy = DiscountedUCB(gamma=0.9) if kind == "discounted" else SlidingWindowUCB(window=12)
    table = np.random.default_rng(0).standard_normal((150, 2, 3)) + np.arange(3)
    table[75:] = table[75:, :, ::-1]
    _, trace = play(policy, None, table)
    for path in range(2):
        rewards: list[float] = []
        pulled: list[int] = []
        for t, arm in enumerate(trace[:, path].tolist()):
            index = [
                discounted(rewards, pulled, 0.9, a)
                if kind == "discounted"
                else windowed(rewards, pulled, 12, a)
                for a in range(3)
            ]
            assert index[arm] == pytest.approx(max(index))
            rewards.append(float(table[t, path, arm]))
            pulled.append(arm)
        assert np.mean(trace[40:75, path] == 2) > 0.4
        assert np.mean(trace[-35:, path] == 0) > 0.4


def test_a_huge_reward_leaves_no_trace_in_the_window() -> None:
    policy, arms = SlidingWindowUCB(window=5), np.eye(2)[None]
    state = policy.init(1, 2, 2)
    for reward in (math.inf, 1.0, 2.0, 3.0, 4.0, 5.0):
        policy.learn(state, arms, [0], [[reward]])
    assert state.sums.tolist() == [[15.0, 0.0]]
    assert state.counts.tolist() == [[5, 0]]
