"""Units that come back live: once each, with all that their first window brought."""

from typing import Any

import numpy as np
import pytest

from tailproof.stats.first_windows import FirstWindows
from tailproof.stats.uplift import Decided


def drawn(seed: int, n: int = 400) -> tuple[Decided, dict[str, Any]]:
    """Return decisions whose reward is a power of two, so that sums say which were added."""
    rng = np.random.default_rng(seed)
    asked = np.cumsum(rng.exponential(1.0, n))
    units = [None if x == 0 else f"u{x}" for x in rng.integers(0, 60, n).tolist()]
    again = np.array([unit is not None and unit in units[:i] for i, unit in enumerate(units)])
    zeros = np.zeros(n)
    rows = Decided(
        arm=np.arange(n), offered=zeros, share=zeros, least=zeros, explore=zeros,
        group=np.zeros(n, np.int64), control_share=zeros, is_control=zeros > 0,
        reward=rng.random(n), there=np.zeros((n, 0), np.bool_), times=zeros + 1,
    )  # fmt: skip
    return rows, {"units": units, "again": again, "asked": asked, "length": np.full(n, 30.0)}


def slices(rows: Decided, about: dict[str, Any], cuts: list[int]) -> tuple[Decided, int]:
    windows, found = FirstWindows(), []
    for start, stop in zip([0, *cuts], [*cuts, len(rows.arm)], strict=True):
        part = {key: value[start:stop] for key, value in about.items()}
        found.append(windows.add(rows.take(slice(start, stop)), **part))  # type: ignore[arg-type]
    whole = Decided._make(np.concatenate(column) for column in zip(*found, strict=True))
    return whole, windows.open


@pytest.mark.parametrize("seed", range(3))
def test_a_unit_has_what_its_first_window_brought_however_rows_are_split(seed: int) -> None:
    rows, about = drawn(seed)
    asked, units = about["asked"], about["units"]
    found, waiting = slices(rows, about, [])
    expected = {}
    for row, unit in enumerate(units):
        if unit is None:
            expected[row] = rows.reward[row]
        elif not about["again"][row]:
            mine = [
                other
                for other in range(row, len(units))
                if units[other] == unit and asked[other] < asked[row] + 30
            ]
            if asked[-1] >= asked[row] + 30:
                expected[row] = sum(rows.reward[mine])
    assert dict(zip(found.arm.tolist(), found.reward.tolist(), strict=True)) == pytest.approx(
        expected
    )
    entered = len(expected) + waiting
    assert entered == sum(u is None for u in units) + len({u for u in units if u})
    for cuts in ([1, 2, 50], [200], list(range(1, 400))):
        parts, open_ = slices(rows, about, cuts)
        assert parts.arm.tolist() == found.arm.tolist()
        assert parts.reward == pytest.approx(found.reward)
        assert open_ == waiting


def test_an_order_of_entry_that_rewards_cannot_change() -> None:
    rows, about = drawn(5)
    found, _ = slices(rows, about, [])
    other, _ = slices(rows._replace(reward=100 * rows.reward[::-1]), about, [])
    assert found.arm.tolist() == other.arm.tolist()
