"""The filter is Algorithm 2 of the paper, and nests."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tailproof import (
    OFUL,
    UCB1,
    Filtered,
    Mean,
    MeanOfMedians,
    Median,
    TruncatedMean,
    mean_of_medians,
    theory,
)
from tailproof.policies.base import Array, Index, Policy, State
from tailproof.wrappers.base import innermost


@dataclass(frozen=True, kw_only=True)
class Recorder(Policy[State]):
    """A policy that wants three rewards and remembers them in a list."""

    lessons: Any

    @property
    def pulls(self) -> int:
        return 3

    def _init(self, paths: int, arms: int, dim: int) -> State:
        return State(arms=arms, dim=dim, decisions=np.zeros(paths, dtype=np.int64))

    def _choose(self, state: State, arms: Array, rng: np.random.Generator) -> Index:
        return np.zeros(state.paths, dtype=np.int64)

    def _learn(self, state: State, arms: Array, chosen: Index, rewards: Array) -> None:
        self.lessons.append(rewards)


def lesson(policy: Policy[Any], rewards: Array) -> None:
    state = policy.init(len(rewards), 2, 1)
    policy.learn(state, np.ones((len(rewards), 2, 1)), [0] * len(rewards), rewards)
    assert state.decisions.tolist() == [1] * len(rewards)


def test_each_reward_of_the_policy_stands_for_its_own_pulls() -> None:
    lessons: list[Array] = []
    policy = Filtered(Recorder(lessons=lessons), repeats=20, estimator=MeanOfMedians(block=6))
    assert policy.pulls == 60
    rewards = np.random.default_rng(0).standard_cauchy((2, 60))
    lesson(policy, rewards)
    for path in range(2):
        for j in range(3):
            expected = mean_of_medians(rewards[path, 20 * j : 20 * (j + 1)], block=6)
            assert lessons[0][path, j] == expected


def test_lost_rewards_are_replaced_by_the_others_in_turn() -> None:
    policy = Filtered(UCB1(), repeats=5, estimator=Mean())
    state = policy.init(1, 2, 1)
    policy.learn(state, np.ones((1, 2, 1)), [0], [[1.0, 2.0, 4.0]])
    assert state.inner.sums.tolist() == [[2, 0]]  # the mean of 1, 2, 4, 1, 2


def test_filters_nest() -> None:
    lessons: list[Array] = []
    inner = Filtered(Recorder(lessons=lessons), repeats=2, estimator=Mean())
    outer = Filtered(inner, repeats=5, estimator=Median())
    assert outer.pulls == 30
    rewards = np.random.default_rng(0).standard_cauchy((1, 30))
    lesson(outer, rewards)
    expected = np.median(rewards.reshape(3, 2, 5), axis=-1).mean(axis=-1)
    np.testing.assert_allclose(lessons[0][0], expected)


def test_the_default_is_the_papers_estimator() -> None:
    assert Filtered(OFUL(), repeats=64).estimator.length(64) == 8  # type: ignore[attr-defined]


def test_estimates_pass_through() -> None:
    policy = Filtered(OFUL(), repeats=3)
    state = policy.init(2, 2, 2)
    np.testing.assert_array_equal(policy.estimate(state), state.inner.theta)
    silent = Filtered(Recorder(lessons=[]), repeats=3)
    assert silent.estimate(silent.init(2, 2, 2)) is None


def test_from_theory_takes_the_median_that_is_proved_to_do() -> None:
    policy = Filtered.from_theory(OFUL(), horizon=10**6, delta=0.01, alpha=1)
    found = theory.median_pulls(horizon=10**6, delta=0.01, alpha=1)
    wanted = Filtered(OFUL(noise_scale=found.scale), repeats=21, estimator=Median(), fewest=21)
    assert policy == wanted


def test_from_theory_says_when_its_bound_is_no_better_than_chance() -> None:
    """OFUL's bound passes the 2T that can be lost near T = 5·10⁴ in two dimensions, for α = 1."""
    settings: Any = {"delta": 0.01, "alpha": 1}
    with pytest.warns(UserWarning, match="horizon of 10000 is too short .* more than 20000"):
        Filtered.from_theory(OFUL(), horizon=10_000, **settings)
    with pytest.warns(UserWarning, match="OFUL in 10 dimensions"):
        Filtered.from_theory(OFUL(), horizon=10**5, dim=10, **settings)
    Filtered.from_theory(OFUL(), horizon=10**7, dim=10, **settings)  # no warning


@pytest.mark.parametrize("alpha", [0.5, 3])
def test_from_theory_follows_the_unit_of_the_noise(alpha: float) -> None:
    settings: dict[str, Any] = {"horizon": 10**10, "delta": 0.01, "alpha": alpha}
    one = Filtered.from_theory(OFUL(), **settings)
    other = Filtered.from_theory(OFUL(), **settings, tail_constant=10.0**alpha)
    assert one.repeats == other.repeats
    assert innermost(other).noise_scale == pytest.approx(10 * innermost(one).noise_scale)


def test_from_theory_takes_the_papers_pulls() -> None:
    policy = Filtered.from_theory(
        OFUL(), horizon=10**10, delta=0.01, alpha=1, constants="paper", block_exponent=0.5
    )
    assert policy.pulls == math.ceil((16 * math.log(2e12)) ** 2)
    assert policy.estimator == MeanOfMedians(block_exponent=0.5)


def test_from_theory_warns_when_no_decision_fits() -> None:
    settings: dict[str, Any] = {"horizon": 10_000, "delta": 0.01, "alpha": 1}
    with pytest.warns(UserWarning, match="53889 pulls for one decision, more than the horizon"):
        policy = Filtered.from_theory(OFUL(), **settings, constants="paper")
    assert policy.pulls == 53_889
    with pytest.warns(UserWarning, match="11 pulls for one decision, more than the horizon of 10"):
        Filtered.from_theory(OFUL(), horizon=10, delta=0.1, alpha=1e-3)


def test_from_theory_counts_the_pulls_of_the_policy_inside() -> None:
    """One decision of three rewards is three times as long, and may not fit where one does."""
    settings: Any = {"horizon": 10**5, "delta": 0.01, "alpha": 1, "constants": "paper"}
    with pytest.warns(UserWarning, match="is too short for the theorem"):
        each = Filtered.from_theory(OFUL(), **settings).pulls
    assert each <= 10**5 < 3 * each
    with pytest.warns(UserWarning, match=f"{3 * each} pulls for one decision, more than"):
        policy = Filtered.from_theory(Recorder(lessons=[]), **settings)
    assert policy.pulls == 3 * each


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Filtered(OFUL(), repeats=0),
            r"repeats must be a whole number of at least 1.*, got 0",
        ),
        (lambda: Filtered(OFUL(), repeats=2.5), "repeats"),  # type: ignore[arg-type]
        (
            lambda: Filtered(OFUL(), repeats=9, estimator=MeanOfMedians(block=15)),
            "block must be at most 9, the number of samples, got 15",
        ),
        (lambda: Filtered("oful", repeats=3), "policy must be a policy, got 'oful'"),  # type: ignore[arg-type]
        (lambda: Filtered(OFUL(), repeats=3, estimator=np.median), "estimator"),  # type: ignore[arg-type]
        (
            lambda: Filtered.from_theory(
                OFUL(), horizon=10, delta=0.1, alpha=1e-3, constants="paper"
            ),
            "alpha must be large enough",
        ),
        (lambda: Filtered.from_theory(OFUL(), horizon=0, delta=0.1, alpha=1), "horizon"),
        (lambda: Filtered.from_theory(OFUL(), horizon=9, delta=1.1, alpha=1), "delta"),
        (
            lambda: Filtered.from_theory(
                OFUL(), horizon=9, delta=0.1, alpha=1, constants="paper", block_exponent=1
            ),
            "block_exponent",
        ),
        (
            lambda: Filtered.from_theory(OFUL(), horizon=9, delta=0.1, alpha=1, block_exponent=0.5),
            "block_exponent must be None for usable, got 0.5",
        ),
        (
            lambda: Filtered.from_theory(
                OFUL(), horizon=9, delta=0.1, alpha=1, constants="paper", tail_constant=2
            ),
            "tail_constant must be 1 for paper, got 2",
        ),
        (
            lambda: Filtered.from_theory(OFUL(), horizon=9, delta=0.1, alpha=1, constants="own"),  # type: ignore[arg-type]
            "constants must be one of usable, paper, got 'own'",
        ),
        (
            lambda: Filtered.from_theory(UCB1(), horizon=9, delta=0.1, alpha=1),
            "has no noise_scale",
        ),
    ],
)
def test_bad_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_a_filter_compares_by_value_and_shows_how_it_was_made() -> None:
    policy = Filtered(OFUL(), repeats=8, estimator=TruncatedMean(threshold=2))
    assert policy == Filtered(OFUL(), repeats=8, estimator=TruncatedMean(threshold=2))
    assert policy != Filtered(OFUL(), repeats=9, estimator=TruncatedMean(threshold=2))
    assert eval(repr(policy)) == policy


def test_a_filter_from_theory_takes_all_the_rewards_of_its_theorem() -> None:
    """The median of eight rewards errs more often than that of 21; others accept eleven."""
    proved = Filtered.from_theory(OFUL(), horizon=10**6, delta=0.01, alpha=1)
    assert (proved.pulls, proved.least) == (21, 21)
    assert Filtered(OFUL(), repeats=21, estimator=Median()).least == 11
    state = proved.init(1, 2, 2)
    with pytest.raises(ValueError, match="rewards"):
        proved.learn(state, np.eye(2)[None], [0], np.zeros((1, 8)))
    with pytest.raises(ValueError, match="fewest must be at most 3"):
        Filtered(OFUL(), repeats=3, estimator=Median(), fewest=4)
