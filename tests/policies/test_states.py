"""States as plain arrays: copies share nothing, and arrays that no run can produce are refused."""

from types import GenericAlias
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tailproof import OFUL, UCB1, Filtered, Median, Policy, RobustUCB
from tailproof.policies.state.base import dtype_named
from tailproof.policies.state.paired_rewards import PairedRewards
from tailproof.policies.state.quantile_bounds import ExactBounds

ARMS = np.ones((1, 2, 2))


def test_saved_arrays_and_the_state_share_nothing() -> None:
    policy = UCB1()
    state = policy.init(1, 2, 2)
    saved = state.to_arrays()
    restored = policy.restore(saved)
    for learner in (state, restored):
        policy.learn(learner, ARMS, [1], [[5.0]])
        assert learner.sums.tolist() == [[0, 5]]
    assert saved["counts"].tolist() == saved["sums"].tolist() == [[0, 0]]
    assert saved["decisions"].tolist() == [0]


@pytest.mark.parametrize(
    ("policy", "changes", "words"),
    [
        (RobustUCB(), {"decisions": [17]}, "buffers must be of one length, at least 17, got"),
        (RobustUCB(), {"pulled": [[2] + [-1] * 15]}, "pulled must be below 2, got 2"),
        (RobustUCB(), {"pulled": [[-2] + [-1] * 15]}, "pulled must be at least -1, got -2"),
        (RobustUCB(), {"samples": [[np.inf] + [0.0] * 15]}, "samples must be finite"),
        (OFUL(), {"log_det": [np.nan]}, "log_det must be finite"),
        (OFUL(), {"block": [[[np.inf, 0.0, 0.0], [0.0, 1.0, 0.0]]]}, "block holds NaN or infin"),
        (
            Filtered(OFUL(), repeats=3, estimator=Median()),
            {"inner.log_det": [np.nan]},
            "inner.log_det must be finite",
        ),
    ],
)
def test_arrays_that_no_run_can_produce_are_refused(
    policy: Policy[Any], changes: dict[str, Any], words: str
) -> None:
    arrays = policy.init(1, 2, 2).to_arrays()
    policy.restore(arrays)
    with pytest.raises(ValueError, match=words):
        policy.restore(arrays | {name: np.array(value) for name, value in changes.items()})


def test_a_buffer_grows_and_marks_unused_places() -> None:
    policy = RobustUCB()
    state = policy.init(1, 2, 2)
    for _ in range(17):
        policy.learn(state, ARMS, [0], [[1.0]])
    assert state.pulled.tolist() == [[0] * 17 + [-1] * 15]


def test_standing_counts_strictly_smaller_bounds() -> None:
    state = ExactBounds.start(1, 4, 1)
    state.bound[:], state.counts[:] = [[2.0, 1.0, 2.0, np.inf]], 9
    state.rank[0, 3] = 10  # too few rewards for a bound
    assert state.standing.tolist() == [[1, 0, 1, 4]]


def test_sums_over_small_rewards_include_the_bound() -> None:
    state = PairedRewards.start(1, 1, 1)
    for j in range(1, 26):  # the first 19 are sorted, the others not yet
        state.add(np.array([0]), np.array([[float(j), float(j)]]))
        state.decisions += 1
    state.decisions -= 1  # as while the last decision is learned
    assert state.ordered.tolist() == [[19]]
    for bound in (7, 19, 22):
        total, square = state.small(state.unsorted(), np.array([[float(bound)]]))
        assert total.tolist() == [[bound * (bound + 1) / 2]]
        assert square.tolist() == [[bound * (bound + 1) * (2 * bound + 1) / 6]]
        count, _ = state.small_others(state.unsorted(), np.array([[float(bound**2)]]))
        assert count.tolist() == [[bound]]


Element = TypeVar("Element", bound=np.generic)


class Lazy:
    """What the statement ``type NDArray[T] = ...`` makes, which Python 3.11 does not have."""

    __value__ = np.ndarray[tuple[Any, ...], np.dtype[Element]]


LAZY: Any = Lazy()


@pytest.mark.parametrize(
    ("hint", "dtype"),
    [
        (NDArray[np.int64], np.int64),
        (np.ndarray[tuple[Any, ...], np.dtype[np.int64]], np.int64),
        (GenericAlias(LAZY, (np.float64,)), np.float64),
        (int, None),
        (tuple[int, ...], None),
    ],
)
def test_an_array_is_seen_in_every_spelling(hint: Any, dtype: type | None) -> None:
    """NumPy 2.5 made NDArray a lazy alias; before, it was the class itself."""
    assert dtype_named(hint) is dtype
