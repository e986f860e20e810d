"""Histograms against the rewards that they were made of."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tailproof.stats.histograms import FEWEST, Histogram
from tailproof.typing import Array

SIZE = 3 * FEWEST


def numbers(rng: np.random.Generator) -> Array:
    """Return floats of all sizes and both signs, among them zeros, subnormals and infinities."""
    x = rng.integers(-(2**63), 2**63 - 1, SIZE, dtype=np.int64, endpoint=True).view(np.float64)
    special = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, -2.2e-308, np.inf, -np.inf, 1.8e308, -1.79e308]
    return np.concatenate([x[~np.isnan(x)], special])


LAWS: dict[str, Callable[[np.random.Generator], Array]] = {
    "normal": lambda rng: rng.standard_normal(SIZE),
    "lognormal": lambda rng: np.exp(3 * rng.standard_normal(SIZE)),
    "Cauchy": lambda rng: np.append(rng.standard_cauchy(SIZE), [np.inf, -np.inf]),
    "offset": lambda rng: 1e9 + rng.standard_normal(SIZE),
    "bits": numbers,
    "zeros": lambda rng: np.append(np.exp(rng.standard_normal(SIZE)), np.zeros(SIZE)),
}


def draw(law: str, seed: int) -> Array:
    """Return more different rewards than there are cells."""
    return LAWS[law](np.random.default_rng(seed))


def of(x: Array, most: int = FEWEST) -> Histogram:
    found = Histogram(most)
    found.add(x)
    return found


def same(a: Histogram, b: Histogram) -> bool:
    pairs = [(a.lows, b.lows), (a.highs, b.highs), (a.counts, b.counts)]
    return a.dropped == b.dropped and all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_rewards_lie_between_low_and_high(law: str, seed: int) -> None:
    x = draw(law, seed)
    found = of(x)
    exact = np.sort(x)
    assert np.all(found.low <= exact)
    assert np.all(exact <= found.high)
    assert found.count == len(x) == len(found.low) == len(found.high)
    assert len(found.counts) <= FEWEST
    assert not found.exact
    assert np.all(np.diff(found.lows) > 0)
    for edge in (found.lows, found.highs):
        assert np.isin(edge, x).all()  # nothing is made up
    for value in (-np.inf, 0.0, np.inf):
        alike = np.count_nonzero(x == value)
        if law != "bits" or np.isinf(value):  # subnormal numbers may share the cell of zero
            assert np.count_nonzero(found.low == value) == alike
            assert np.count_nonzero(found.high == value) == alike


@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), chunks=st.integers(1, 40))
def test_neither_order_nor_chunks_matter(law: str, seed: int, chunks: int) -> None:
    x, rng = draw(law, seed), np.random.default_rng(seed)
    parts = Histogram(FEWEST)
    cuts = np.sort(rng.integers(0, len(x), chunks))
    for part in np.split(rng.permutation(x), cuts):
        parts.add(part)
    assert same(parts, of(x))
    limited = of(x, most=2 * FEWEST)
    limited.limit(FEWEST)
    assert same(limited, of(x))


def test_one_by_one_is_all_at_once() -> None:
    x = draw("Cauchy", 0)
    single = of(x[:-200])
    for reward in x[-200:]:
        single.add(reward)
    assert same(single, of(x))


@pytest.mark.parametrize("law", ["normal", "lognormal", "Cauchy", "offset", "zeros"])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), power=st.integers(-200, 200), sign=st.sampled_from([-1, 1]))
def test_units_change_nothing_but_the_unit(law: str, seed: int, power: int, sign: int) -> None:
    x, unit = draw(law, seed), sign * 2.0**power
    here, there = of(x), of(unit * x)
    assert there.dropped == here.dropped
    edges = (here.lows, here.highs) if sign > 0 else (here.highs[::-1], here.lows[::-1])
    np.testing.assert_array_equal(there.lows, unit * edges[0])
    np.testing.assert_array_equal(there.highs, unit * edges[1])
    np.testing.assert_array_equal(there.counts, here.counts[::sign])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(allow_nan=False), max_size=50))
def test_few_rewards_are_exact(rewards: list[float]) -> None:
    found = Histogram()
    found.add(rewards)
    assert found.exact
    np.testing.assert_array_equal(found.low, np.sort(rewards))
    np.testing.assert_array_equal(found.high, np.sort(rewards))


def test_as_many_values_as_cells_are_exact() -> None:
    x = np.random.default_rng(0).standard_normal(2**14)
    found = Histogram()
    found.add(np.append(x, x))
    assert (found.dropped, found.count, found.exact) == (0, 2**15, True)
    found.add(9.5)
    assert found.dropped > 0
    assert not found.exact


def test_no_more_bits_are_dropped_than_needed() -> None:
    """With every second one of 2¹⁵ neighbours nothing is gained by one bit, half by two."""
    found = Histogram()
    found.add(1 + 2.0**-51 * np.arange(2**15))
    assert found.dropped == 2
    assert len(found.counts) == 2**14
    assert np.max(found.high - found.low) == 2.0**-51


def test_what_is_refused_changes_nothing() -> None:
    found = of(np.arange(5.0))
    with pytest.raises(ValueError, match="rewards must be without NaN"):
        found.add([1.0, np.nan])
    assert found.low.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="most must be a whole number of at least 4096"):
        Histogram(100)
