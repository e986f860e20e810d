"""A path's results depend on that path alone, to the last bit, whatever the others do.

What is summed over the past of a path is where this can fail: sums padded to the busiest path, or
cut into batches by it, round differently. `tailproof.testing` checks every policy once; here are
those with a past, on many seeds.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tailproof import TOFU, HeavyOFUL, LinStudentUCB, MedianUCB, Policy, RobustUCB, SupBTC

DECISIONS, PATHS, ARMS, DIM = 120, 3, 6, 3

POLICIES: list[Policy[Any]] = [
    TOFU(horizon=2000, epsilon=1, moment_bound=3, bonus=0.2),
    TOFU(horizon=2000, epsilon=0.5, moment_bound=3, bonus=0.2),
    SupBTC(horizon=2000, epsilon=1, moment_bound=3),
    SupBTC(horizon=2000, epsilon=0.5, moment_bound=3, bonus=0.1),
    SupBTC(horizon=2000, epsilon=0.5, moment_bound=3, layered=False, bonus=0.1),
    HeavyOFUL(decisions=DECISIONS, epsilon=1, moment_bound=1, bonus=1e-3),
    RobustUCB(estimator="truncated", moment_bound=3, bonus=0.2),
    RobustUCB(estimator="median_of_means", moment_bound=3, bonus=0.2),
    RobustUCB(estimator="catoni", moment_bound=3, bonus=0.2),
    MedianUCB(),
    LinStudentUCB(room=4),
]


class Lots(np.random.Generator):
    """The random numbers that a batch of paths gives to some of them."""

    def __init__(self, seed: int, paths: list[int]) -> None:
        super().__init__(np.random.SFC64(seed))
        self._paths = paths

    def random(self, size: int) -> NDArray[np.float64]:  # type: ignore[override]
        assert size == len(self._paths)
        return super().random(PATHS)[self._paths]


def play(policy: Policy[Any], seed: int, paths: list[int], shock: float = 0, age: int = 0) -> Any:
    """Return all that each of the paths has learned, its choices and estimates.

    Path 0, which is to disturb the others, may see huge rewards, and may be older than they are.
    """
    first, second, third = (np.random.default_rng([seed, i]) for i in range(3))
    arms = first.standard_normal((age + DECISIONS, PATHS, ARMS, DIM))[::-1]
    arms /= np.linalg.norm(arms, axis=-1, keepdims=True)
    rewards = second.standard_t(2, (age + DECISIONS, PATHS, 1))[::-1]
    rewards[5:, 0] += shock * third.choice([-1, 1], rewards[5:, 0].shape)
    state, older = (policy.init(size, ARMS, DIM) for size in (len(paths), 1))
    for offer, reward in zip(arms[:age, :1], rewards[:age, :1], strict=True):
        policy.learn(older, offer, [0], reward)
    if age:
        state.put(np.array([0]), older)
    lots, choices, estimates = Lots(seed, paths), [], []
    for offer, reward in zip(arms[age:, paths], rewards[age:, paths], strict=True):
        choices.append(policy.choose(state, offer, lots))
        policy.learn(state, offer, choices[-1], reward)
        estimate = policy.estimate(state)
        estimates.append(np.zeros(len(paths)) if estimate is None else estimate)
    trace = {"choices": np.stack(choices, axis=1), "estimates": np.stack(estimates, axis=1)}
    return {
        path: {**state.take([row]).to_arrays(), **{name: a[row] for name, a in trace.items()}}
        for row, path in enumerate(paths)
    }


def assert_alone(policy: Policy[Any], seed: int, **disturbance: Any) -> None:
    batch = play(policy, seed, [0, 1, 2], **disturbance)
    for path in (1, 2):
        for name, value in play(policy, seed, [path])[path].items():
            found = batch[path][name][tuple(slice(size) for size in value.shape)]  # but for room
            np.testing.assert_array_equal(found, value, f"{name}, seed {seed}")


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_huge_rewards_elsewhere_change_no_bit(policy: Policy[Any], seed: int) -> None:
    assert_alone(policy, seed, shock=1e300)


@pytest.mark.parametrize("age", [1, 37])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_an_older_path_changes_no_bit(policy: Policy[Any], age: int) -> None:
    assert_alone(policy, 0, age=age)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES[:5], ids=repr)
def test_huge_rewards_elsewhere_change_no_bit_of_many(policy: Policy[Any]) -> None:
    for seed in range(60):
        assert_alone(policy, seed, shock=1e300)
