"""Rows become customers: nobody is counted twice, and nothing that is not finished is counted."""

import numpy as np
import pytest

from tailproof.environments.traffic import Returning
from tailproof.stats.customers import (
    Concentration,
    Customers,
    cap_of_totals,
    totals_of,
    windows_closed,
)


def test_totals_do_not_depend_on_the_order_or_the_names_of_units() -> None:
    rows = Returning(rows=3000, heavy=3, their_share=0.2).draw(np.random.default_rng(1))
    shuffled = np.random.default_rng(2).permutation(3000)
    names = np.random.default_rng(3).permutation(10_000)[rows.unit]
    one = Customers.of(arm=rows.arm, reward=rows.reward, unit=rows.unit, time=rows.time)
    other = Customers.of(
        arm=rows.arm[shuffled],
        reward=rows.reward[shuffled],
        unit=names[shuffled],
        time=rows.time[shuffled],
    )
    assert one.total.sum() == pytest.approx(rows.reward.sum())
    assert np.allclose(one.total, other.total)
    assert (one.arm == other.arm).all()
    assert (one.visits == other.visits).all()
    assert one.case == "customers"


def test_sums_of_visits_stand_for_them() -> None:
    rows = Returning(rows=2000).draw(np.random.default_rng(4))
    one = Customers.of(arm=rows.arm, reward=rows.reward, unit=rows.unit)
    sums = Customers.of(arm=one.arm, reward=one.total, unit=np.arange(one.n), count=one.visits)
    assert (sums.visits == one.visits).all()
    assert sums.returning == one.returning
    assert (sums.total == one.total).all()


def test_without_units_each_row_is_a_customer() -> None:
    found = Customers.of(arm=np.array([0, 1, 1]), reward=np.array([0.0, 2.0, 2.0]))
    assert (found.case, found.n, found.returning) == ("rows", 3, 0)
    assert found.sold.tolist() == [0, 2]


def test_few_leaks_are_left_out_and_many_are_randomised_visits() -> None:
    unit = np.repeat(np.arange(1000), 2)
    arm = np.repeat(np.arange(1000) % 2, 2)
    reward = np.ones(2000)
    leaked = arm.copy()
    leaked[1::400] ^= 1  # five customers
    found = Customers.of(arm=leaked, reward=reward, unit=unit)
    assert (found.case, found.mixed, found.n) == ("customers", 5, 995)
    drawn = np.random.default_rng(0).integers(0, 2, 2000)
    visits = Customers.of(arm=drawn, reward=reward, unit=unit)
    assert (visits.case, visits.mixed, visits.n) == ("visits", 0, 1000)
    assert visits.sold.sum() > 1000  # a customer counts for each arm that sold to it


def test_scores_of_visits_are_unbiased() -> None:
    """The mean over 400 files is within 4 standard errors of the truth: fails 1 time in 15 000."""
    rng, means = np.random.default_rng(0), []
    unit = np.repeat(np.arange(50), 4)
    for _ in range(400):
        arm = rng.integers(0, 2, 200)
        found = Customers.of(
            arm=arm, reward=np.where(arm, 2.0, 1.0), unit=unit, propensity=np.full(200, 0.5), arms=2
        )
        means.append(found.visit_scores(0.0, 100.0, 1, 0).mean())
    assert abs(np.mean(means) - 4) < 4 * np.std(means) / 20  # four visits, one more each


def test_the_cap_is_of_totals_and_scales_rows() -> None:
    total = np.append(np.ones(99), 1000.0)
    assert cap_of_totals(total, 0.99) == (0.0, 1.0)
    found = Customers.of(
        arm=np.zeros(4, int), reward=np.array([6.0, 4.0, 1.0, 0.0]), unit=np.array([1, 1, 2, 3])
    )
    assert found.capped_rows(0.0, 5.0).tolist() == [3.0, 2.0, 1.0, 0.0]
    assert found.hidden(0.0, 5.0).tolist() == [0.5]


def test_a_refund_is_no_purchase_of_another_customer() -> None:
    found = Customers.of(
        arm=np.zeros(2, int), reward=np.array([9.0, -9.0]), unit=np.array([1, 1]), arms=1
    )
    assert found.total.tolist() == [0.0]
    assert found.sold.tolist() == [0]


def test_a_window_that_is_open_is_not_counted_and_later_sales_neither() -> None:
    columns = {
        "arm": np.array([0, 1, 0, 1]),
        "reward": np.array([1.0, 2.0, 4.0, 8.0]),
        "unit": np.array([1, 2, 1, 2]),
        "time": np.array([0.0, 5.0, 8.0, 6.0]),
    }
    found, waiting = windows_closed(**columns, window=7, now=12.0)  # type: ignore[arg-type]
    assert found.total.tolist() == [1.0, 10.0]
    assert (found.arm.tolist(), waiting) == ([0, 1], 0)
    found, waiting = windows_closed(**columns, window=7, now=11.9)  # type: ignore[arg-type]
    assert (found.total.tolist(), waiting) == ([1.0], 1)


def test_few_customers_are_said() -> None:
    few = Concentration.of(np.append(np.ones(100), [200.0, 100.0]))
    assert (few.half, few.largest) == (1, 0.5)
    assert "1 customer makes half of it, the largest 50%" in few.words
    assert Concentration.of(np.ones(1000)).words == ""
    assert Concentration.of(np.zeros(3)) == Concentration(0, 0.0)


def test_leaks_that_carry_money_count_for_their_first_arm() -> None:
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(1000), 2)
    arm = np.repeat(rng.integers(0, 2, 1000), 2)
    reward = np.ones(2000)
    arm[:4] = [0, 1, 0, 1]  # two customers of a thousand
    few = Customers.of(arm=arm, reward=reward, unit=unit)
    assert (few.n, few.mixed, few.mixed_stay) == (998, 2, False)
    reward[:4] = 1000.0
    rich = Customers.of(arm=arm, reward=reward, unit=unit)
    assert (rich.n, rich.mixed, rich.mixed_stay, rich.case) == (1000, 2, True, "customers")
    assert rich.arm[:2].tolist() == [0, 0]
    assert rich.row_arm[:4].tolist() == [0, 0, 0, 0]


def test_infinite_rows_share_the_cap_of_their_customer() -> None:
    found = Customers.of(
        arm=np.array([0, 0, 1]), reward=np.array([np.inf, 5.0, 2.0]), unit=np.array([1, 1, 2])
    )
    assert found.capped_rows(0.0, 10.0).tolist() == [10.0, 0.0, 2.0]


def test_orders_and_refunds_that_cancel_are_no_purchase() -> None:
    """Of floats, 34.4 + 31.58 − 31.58 − 34.4 is −7.1e-15."""
    unit = np.repeat([0, 1, 2], 4)
    told = [34.4, 31.58, -31.58, -34.4]
    reward = np.array([*told, *told[:3], 0.0, np.inf, -np.inf, 1.0, 1e-300])
    own = Customers.of(arm=np.zeros(12, int), reward=reward, unit=unit)
    assert own.total.tolist() == [0.0, 34.4 + 31.58 - 31.58, 0.0]
    assert totals_of(np.zeros(1, int), np.array([1e-300]), 1).tolist() == [1e-300]
