"""Arms at any look: what is said of rounded rewards, and how seldom equal arms are told apart."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from tailproof import UCB1, CappedMean, Mean, Median, Quantile, ThompsonSampling
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim
from tailproof.stats.any_look import compared
from tailproof.stats.comparison import Comparison, Lead
from tailproof.stats.histograms import Histogram
from tailproof.typing import Array


def test_rewards_that_are_rounded_stay_within_what_is_said() -> None:
    """With more different rewards than cells, intervals are a little wider, never narrower."""
    rng = np.random.default_rng(4)
    rewards = [np.exp(rng.standard_normal(40_000)) * (1 + 0.1 * arm) for arm in range(2)]
    names, samples = ["a", "b"], [Histogram(4096), Histogram(4096)]
    for sample, own in zip(samples, rewards, strict=True):
        sample.add(own)
        assert not sample.exact
    for aim in (Median(), CappedMean(0.9), Quantile(0.8)):
        ranked = [np.sort(own) for own in rewards]
        rounded = compared(aim, names, samples)
        exact = Comparison.of(rounded.statistic, names, ranked, any_look=True)
        wide, narrow = rounded.table, exact.table
        assert np.all(wide[:, 1] <= narrow[:, 1] * (1 + 1e-9))
        assert np.all(wide[:, 2] >= narrow[:, 2] * (1 - 1e-9))
        np.testing.assert_allclose(wide, narrow, rtol=0.005)
        assert rounded.lead == exact.lead == Lead("b", True, ())
    assert compared(Mean(), names, samples).lead == Lead("b", False, ("a",))


RUNS = 40
MOST_SURE = binom.ppf(1 - 1e-4, RUNS, 0.05)
REWARDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "6 % buy for 20": lambda rng, runs: np.where(rng.random(runs) < 0.06, 20.0, 0.0),
    "Cauchy": lambda rng, runs: rng.standard_cauchy(runs),
    "normal": lambda rng, runs: rng.standard_normal(runs),
}


def ever_sure(policy: Policy[Any], law: str, sure_of: Callable[[list[Histogram]], bool]) -> int:
    """Return in how many runs two equal arms, chosen by the policy, were ever told apart.

    Each run has 3000 rewards, with a look after every 50.
    """
    runs, every = RUNS, 50
    rng, arms = np.random.default_rng(1), np.broadcast_to(np.eye(2), (runs, 2, 2))
    state, sure = policy.init(runs, 2, 2), np.zeros(runs, dtype=bool)
    samples = [[Histogram(), Histogram()] for _ in range(runs)]
    chosen, rewards = np.empty((every, runs), dtype=np.int64), np.empty((every, runs))
    for now in range(3000):
        place = now % every
        chosen[place] = policy.choose(state, arms, rng)
        rewards[place] = REWARDS[law](rng, runs)
        policy.learn(state, arms, chosen[place], rewards[place, :, None])
        if place + 1 < every:
            continue
        for run in np.flatnonzero(~sure):
            for arm, sample in enumerate(samples[run]):
                sample.add(rewards[chosen[:, run] == arm, run])
            sure[run] = sure_of(samples[run])
    return int(sure.sum())


CELLS: list[tuple[Policy[Any], Aim, str]] = [
    (UCB1(), Median(), "normal"),
    (UCB1(), Median(), "Cauchy"),
    (UCB1(), CappedMean(0.99), "6 % buy for 20"),
    (ThompsonSampling(), Mean(), "6 % buy for 20"),
    (UCB1(), CappedMean(0.99), "normal"),
    (ThompsonSampling(), Median(), "normal"),
    (ThompsonSampling(), CappedMean(0.99), "6 % buy for 20"),
]


@pytest.mark.parametrize(
    ("policy", "aim", "law"),
    [pytest.param(*cell, marks=[pytest.mark.slow] if i else []) for i, cell in enumerate(CELLS)],
)
def test_equal_arms_are_seldom_told_apart_at_any_look(
    policy: Policy[Any], aim: Aim, law: str
) -> None:
    """If 5 % of runs are ever sure, this fails with a probability of at most 10⁻⁴."""
    found = ever_sure(policy, law, lambda arms: compared(aim, ["a", "b"], arms).lead.sure)
    assert found <= MOST_SURE


def test_the_same_looks_fool_a_test_for_one_look() -> None:
    """A z-test at 5 % shows that the runs above are hard enough to fail a rule for one look."""

    def sure_of(arms: list[Histogram]) -> bool:
        a, b = (arm.low for arm in arms)
        if min(len(a), len(b)) < 10:
            return False
        deviation = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
        return bool(abs(a.mean() - b.mean()) > 1.96 * deviation)

    assert ever_sure(UCB1(), "normal", sure_of) > MOST_SURE
