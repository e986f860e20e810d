"""Running totals: ever wrong as seldom as stated, also where the terms change with time."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from tailproof.stats.totals import RunningTotal

RUNS, LOOKS = 200, 20
MOST_WRONG = int(binom.ppf(1 - 1e-4, RUNS, 0.05))


def ever_wrong(drift: float, level: float = 0.95) -> int:
    """Return how many runs have an interval that misses Σ E s_t at some look.

    A term is 20 with a small probability that changes with time and with the past, else −1.
    """
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(RUNS):
        total, truth, p, missed = RunningTotal(), 0.0, 0.03, False
        for look in range(LOOKS):
            hits = rng.random(80) < p
            total.add(np.where(hits, 20.0, -1.0), low=-1.0, high=20.0)
            truth += 80 * (21 * p - 1)
            low, high = total.ends(level)
            missed |= not low <= truth <= high
            p = 0.02 + drift * float(hits.mean()) + 0.02 * (look % 2)
        wrong += missed
    return wrong


@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_the_interval_holds_at_every_look(drift: float) -> None:
    """If 5 % of runs ever miss, this fails with a probability of at most 10⁻⁴."""
    assert ever_wrong(drift) <= MOST_WRONG


def test_the_runs_are_hard_enough_to_miss_a_narrow_interval() -> None:
    assert ever_wrong(0.5, level=0.1) > MOST_WRONG


def test_the_result_does_not_depend_on_how_terms_are_split() -> None:
    rng = np.random.default_rng(0)
    terms, low = rng.uniform(-1, 3, 1000), -rng.uniform(1, 5, 1000)
    one, other = RunningTotal(), RunningTotal()
    one.add(terms, low=low, high=3.0)
    for start in range(0, 1000, 37):
        rows = slice(start, start + 37)
        other.add(terms[rows], low=low[rows], high=3.0)
    assert one.ends() == other.ends()
    assert one.value == other.value


def test_counts_stand_for_repeated_terms() -> None:
    one, other = RunningTotal(), RunningTotal()
    one.add(np.array([1.0, -0.5]), low=-1, high=1, counts=np.array([300.0, 200.0]))
    other.add(np.repeat([1.0, -0.5], [300, 200]), low=-1, high=1)
    assert one.ends() == pytest.approx(other.ends())
    assert one.value == other.value == 200


def test_bounds_that_grow_cost_bets_and_infinite_ones_cost_all() -> None:
    total = RunningTotal()
    assert total.ends() == (-math.inf, math.inf)
    total.add(np.ones(500), low=-1, high=1)
    narrow = total.ends()
    total.add(np.zeros(1), low=-50, high=1)
    wide = total.ends()
    assert wide[0] < narrow[0] <= 500 <= narrow[1] == wide[1]
    total.add(np.zeros(1), low=-math.inf, high=1)
    assert total.ends() == (-math.inf, wide[1])


def test_terms_beyond_their_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="within their bounds"):
        RunningTotal().add(np.array([0.5, -2.0]), low=-1, high=1)
    with pytest.raises(ValueError, match="at most 0"):
        RunningTotal().add(np.array([0.5]), low=0.1, high=1)
