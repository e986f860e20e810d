"""AdaR-UCB against a plain one-path reference, at its edges, and against chance."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from traces import play, row, trace_of

from tailproof import AdaRUCB, Filtered, Median
from tailproof.typing import Array

C = (1 + math.sqrt(2)) ** 2


def plain_index(xs: list[float], others: list[float], t: int) -> float:
    """Return B of one arm at decision t: the equation for M handed to a root finder."""
    log, n = math.log(t**3), len(xs)
    if sum(other != 0 for other in others) <= C * log:
        return math.inf
    squares = np.array(others) ** 2

    def excess(log_m: float) -> float:
        return float(np.minimum(squares / math.exp(2 * log_m), 1).sum() - C * log)

    sizes = np.sqrt(squares[squares > 0])
    ends = math.log(sizes.min()) - 1, math.log(sizes.max()) + math.log(n) + 1
    m = math.exp(brentq(excess, *ends, xtol=1e-14, rtol=1e-14))
    trimmed = np.array([x if abs(x) <= m else 0.0 for x in xs])
    variance = float(np.var(trimmed, ddof=1))
    return float(trimmed.mean()) + math.sqrt(2 * variance * log / n) + 10 * m * log / n


def draws(kind: str, decisions: int, paths: int) -> Array:
    """Return rewards for three arms, of shape (decisions, paths, 3, 2)."""
    rng, shape = np.random.default_rng(8), (decisions, paths, 3, 2)
    table = {
        "Cauchy": rng.standard_cauchy(shape),
        "losses": -rng.pareto(1.5, shape),
        "often zero": rng.standard_normal(shape) * (rng.random(shape) < 0.7),
        "few values": rng.integers(-2, 2, shape),
    }
    return np.asarray(table[kind] * np.array([1.0, 0.5, 0.1])[:, None])


@pytest.mark.parametrize("kind", ["Cauchy", "losses", "often zero", "few values"])
def test_policy_is_the_published_algorithm(kind: str) -> None:
    table = draws(kind, 600, 2)
    state, trace = play(AdaRUCB(), None, table)
    for path in range(2):
        xs: Any = [[] for _ in range(3)]
        others: Any = [[] for _ in range(3)]
        finite = 0
        for t, chosen in enumerate(trace[:, path], start=1):
            if t > 250:  # before, every arm has an infinite index
                index = [plain_index(x, other, t) for x, other in zip(xs, others, strict=True)]
                best = max(index)
                assert index[chosen] == pytest.approx(best, rel=1e-9), (path, t)
                finite += best < math.inf
            xs[chosen].append(table[t - 1, path, chosen, 0])
            others[chosen].append(table[t - 1, path, chosen, 1])
        assert finite > 100
        index = [plain_index(x, other, 601) for x, other in zip(xs, others, strict=True)]
        np.testing.assert_allclose(state.index[path], index, rtol=1e-9)


def test_an_index_is_infinite_exactly_while_there_is_no_threshold() -> None:
    """An arm whose second rewards are zero never has one; the first rewards do not count."""
    table = np.ones((300, 1, 2, 2))
    table[:, :, 1, 1] = 0.0
    state, _ = play(AdaRUCB(), None, table)
    assert state.nonzero[0, 1] == 0
    assert state.index[0, 1] == math.inf
    one = AdaRUCB().init(1, 1, 1)
    for t in range(2, 200):  # the number of the next decision
        AdaRUCB().learn(one, np.ones((1, 1, 1)), [0], [[5.0, 3.0]])
        assert np.isfinite(one.index[0, 0]) == (t - 1 > C * math.log(t**3))


def test_multiplying_all_rewards_changes_no_decision() -> None:
    table = draws("losses", 600, 2)
    plain = trace_of(AdaRUCB(), None, table)
    np.testing.assert_array_equal(plain, trace_of(AdaRUCB(), None, table * 2.0**-40))


def test_huge_and_tiny_rewards_leave_finite_numbers() -> None:
    table = draws("Cauchy", 400, 3)
    table[::7, 0] = math.inf
    table[::5, 1] *= 1e300
    table[:, 2] *= 1e-300
    state, _ = play(AdaRUCB(), None, table)
    assert np.isfinite(state.index[:2]).all()
    assert (state.index[2] == math.inf).all()  # all of it counts as zero


def test_paths_of_different_age_keep_to_themselves() -> None:
    """Paths that sort at different times, in one state, do what each does alone."""
    table, policy, arms = draws("losses", 500, 1), AdaRUCB(), np.ones((2, 3, 1))
    young, _ = play(policy, None, table[:137])
    old, _ = play(policy, None, table[:260])
    both = policy.init(2, 3, 1)
    both.put(np.array([0]), young)
    both.put(np.array([1]), old)
    for reward in table[260:, 0]:
        for alone in (young, old):
            policy.learn(alone, arms[:1], [1], reward[1:2])
        policy.learn(both, arms, [1, 1], reward[[1, 1]])
    np.testing.assert_array_equal(both.index, np.concatenate([young.index, old.index]))


GOLDEN = "2222022202221111111111111122222222122222"
"""The last 40 choices of one path; a change here changes results and belongs in the changelog."""


def test_golden_trace() -> None:
    assert row(trace_of(AdaRUCB(bonus=0.1), None, draws("losses", 600, 1))[-40:]) == GOLDEN


def test_losses_are_learned_far_below_chance() -> None:
    """Without variance, and nothing told. Of 40 paths, chance pulls the worse arm half the time;
    AdaR-UCB about 0.12 of the last decisions, with a standard error of 0.01 over paths: the alarm
    at 0.25 is false with a probability far below 1e-9.
    """
    losses = np.random.default_rng(21).pareto(1.8, (2500, 40, 2, 2)) + np.array([[2.0], [0.0]])
    trace = trace_of(AdaRUCB(), None, -losses)
    assert (trace[-500:] == 0).mean() < 0.25


def test_a_filter_goes_around_it() -> None:
    policy = Filtered(AdaRUCB(), repeats=3, estimator=Median())
    assert policy.pulls == 6
    table = np.random.default_rng(2).standard_cauchy((300, 2, 3, 6))
    trace = trace_of(policy, None, table)
    reduced = np.median(table.reshape(300, 2, 3, 2, 3), axis=-1)
    np.testing.assert_array_equal(trace, trace_of(AdaRUCB(), None, reduced))
