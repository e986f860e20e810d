"""Exposures joined with orders, in the form in which platforms export them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tailproof import Records, records

DAY = 86400.0


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Seen: u a, v b, w both, x late, y a and no order; z orders without an exposure."""
    seen = pd.DataFrame(
        [
            ("u", "a", 0), ("u", "a", 3), ("v", "b", 1), ("w", "a", 0), ("w", "b", 1),
            ("x", "b", 8), ("y", "a", 2),
        ],
        columns=["user", "variant", "day"],
    )  # fmt: skip
    orders = pd.DataFrame(
        [
            ("u", -1, 100.0), ("u", 0, 5.0), ("u", 6.9, 7.0), ("u", 7, 1000.0), ("v", 2, 20.0),
            ("w", 2, 300.0), ("x", 9, 50.0), ("z", 3, 11.0), ("v", 10, 70.0),
        ],
        columns=["user", "day", "spent"],
    )  # fmt: skip
    for table in (seen, orders):
        table["at"] = table.pop("day") * DAY
    return seen, orders


def joined(seen: Any, orders: Any, **more: Any) -> Records:
    names: dict[str, Any] = {"arm": "variant", "reward": "spent", "unit": "user", "time": "at"}
    return records(seen, events=orders, **(names | {"window": "7d"} | more))


def test_one_row_a_unit_with_what_came_within_its_window() -> None:
    found = joined(*tables())
    assert [found.arms[arm] for arm in found.arm] == ["a", "b", "a"]
    assert found.reward.tolist() == [12.0, 20.0, 0.0]
    assert found.time is not None
    assert (found.time / DAY).tolist() == [0, 1, 2]
    assert found.notes == (
        "1 unit that saw several arms was left out.",
        "Events that do not count: 1 before the first exposure of their unit, 2 after the window "
        "of their unit, 1 of units that were not exposed.",
        "1 unit is left out, as less than 7 days passed since the exposure.",
    )


def test_without_a_window_all_that_followed_counts_and_this_is_said() -> None:
    found = joined(*tables(), window=None)
    assert found.reward.sum() == 1012 + 90 + 0 + 50
    assert "name a window" in found.notes[-1]


def test_tables_may_name_a_column_differently() -> None:
    seen, orders = tables()
    other = orders.rename(columns={"user": "buyer", "at": "bought"})
    found = joined(seen, other, unit=("user", "buyer"), time=["at", "bought"])
    assert found.reward.tolist() == joined(seen, orders).reward.tolist()
    with pytest.raises(
        ValueError, match="arm must be a column, or for unit and time a column of each"
    ):
        joined(seen, orders, arm=("variant", "user"))
    with pytest.raises(ValueError, match="arm must name a column of the table, which has user, v"):
        records(seen, events=orders)
    with pytest.raises(ValueError, match="reward must name a column of the table, which has user"):
        records(seen, events=orders, arm="variant", unit="user", time="at")


def test_the_order_of_rows_does_not_matter() -> None:
    seen, orders = tables()
    once = joined(seen, orders)
    again = joined(seen.sample(frac=1, random_state=1), orders.sample(frac=1, random_state=2))
    assert again.reward.tolist() == once.reward.tolist()
    assert again.notes == once.notes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": "soon"}, "window must be a span such as 7d"),
        ({"window": "30d"}, "no unit's window of 30 days has ended"),
        ({"unit": "customer"}, "unit must be one of the columns user, variant, at"),
        ({"experiment": "price"}, "experiment needs one of the columns experiment_id"),
    ],
)
def test_mistakes_are_told(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        joined(*tables(), **change)
    with pytest.raises(ValueError, match="window needs events"):
        records(tables()[0], window="7d", reward="at")


def test_tables_that_name_units_differently_are_refused() -> None:
    seen, orders = tables()
    with pytest.raises(ValueError, match="no unit of the events was exposed, such as 'x u'; the"):
        joined(seen, orders.assign(user=[f"x {user}" for user in orders.user]))


def written(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    pd.DataFrame(rows).to_csv(folder / name, index=False)
    return folder / name


def stamp(day: float) -> str:
    return str(pd.Timestamp("2026-03-01", tz="UTC") + pd.Timedelta(days=day))


def orders_of(unit: str, value: str) -> list[dict[str, Any]]:
    """Two orders within three days of the exposure, and one that makes the tables long enough."""
    rows = [("u1", 1, 10.0), ("u2", 2, 30.0), ("u9", 9, 1.0)]
    return [{unit: name, "timestamp": stamp(day), value: paid} for name, day, paid in rows]


def test_growthbook(tmp_path: Path) -> None:
    """An assignment query has an identifier, timestamp, experiment_id and variation_id."""
    rows = [("u1", 0, "price", 0), ("u2", 0, "price", 1), ("u1", 1, "colour", 1)]
    seen = written(
        tmp_path,
        "assignments.csv",
        [
            {"user_id": u, "timestamp": stamp(t), "experiment_id": e, "variation_id": v}
            for u, t, e, v in rows
        ],
    )
    orders = written(tmp_path, "orders.csv", orders_of("user_id", "value"))
    with pytest.raises(ValueError, match="2 experiments in the column experiment_id"):
        records(seen, events=orders, window="3d")
    found = records(seen, events=orders, window="3d", experiment="price")
    assert (found.arms, found.reward.tolist()) == (("0", "1"), [10.0, 30.0])


def test_statsig(tmp_path: Path) -> None:
    """The daily report of first exposures: all experiments, with a unit and its type."""
    rows = [("price", "u1", "Control"), ("price", "u2", "Test"), ("colour", "u1", "Test")]
    seen = written(
        tmp_path,
        "first_exposures.csv",
        [
            {
                "company_id": "c",
                "unit_id": unit,
                "unit_type": "userID",
                "exposure_type": "get_experiment",
                "name": name,
                "rule": "r",
                "experiment_group": group,
                "first_exposure_utc": stamp(0),
                "first_exposure_pst_date": "2026-02-28",
                "user_id": None,
                "stable_id": None,
            }
            for name, unit, group in rows
        ],
    )
    events = orders_of("user_id", "event_value")  # with times in seconds since 1970
    for row in events:
        row["timestamp"] = int(pd.Timestamp(row["timestamp"]).timestamp())
    orders = written(tmp_path, "events.csv", events)
    with pytest.raises(ValueError, match="2 experiments in the column name: pass experiment="):
        records(seen, events=orders, window="3d")
    found = records(seen, events=orders, window="3d", experiment="price")
    assert (found.arms, found.reward.tolist()) == (("Control", "Test"), [10.0, 30.0])


@pytest.mark.parametrize("kind", ["csv", "parquet", "lazy"])
def test_posthog(tmp_path: Path, kind: str) -> None:
    """One export has all events; their properties are JSON; a person has several ids.

    Who is in no arm gets the response false.
    """
    calls = [
        {
            "event": "$feature_flag_called",
            "distinct_id": f"anonymous {u}",
            "person_id": u,
            "timestamp": stamp(0),
            "properties": json.dumps({"$feature_flag": "price", "$feature_flag_response": g}),
        }
        for u, g in (("u1", "control"), ("u2", "test"), ("u3", False), ("u4", None))
    ]
    bought = [
        {
            "event": "order completed",
            "distinct_id": row["person_id"],
            "person_id": row["person_id"],
            "timestamp": row["timestamp"],
            "properties": json.dumps({"revenue": row["revenue"]}),
        }
        for row in orders_of("person_id", "revenue")
    ]
    export: Any = written(tmp_path, "events.csv", calls + bought)
    if kind != "csv":
        pd.read_csv(export).to_parquet(tmp_path / "events.parquet", index=False)
        export = tmp_path / "events.parquet"
    if kind == "lazy":
        export = pytest.importorskip("polars").scan_parquet(export)
    found = records(export, events=export, window="3d")
    assert (found.arms, found.reward.tolist()) == (("control", "test"), [10.0, 30.0])
    assert found.notes[0] == "2 calls of the feature flag without an arm were left out."


def test_a_large_shop_agrees_with_pandas() -> None:
    rng = np.random.default_rng(0)
    seen = pd.DataFrame({"user": rng.integers(0, 3000, 5000), "at": rng.uniform(0, 20, 5000) * DAY})
    seen["variant"] = np.where(seen.user % 2, "a", "b")
    orders = pd.DataFrame(
        {
            "user": rng.integers(0, 4000, 8000),
            "at": rng.uniform(-2, 30, 8000) * DAY,
            "spent": rng.lognormal(3, 1, 8000),
        }
    )
    first = seen.groupby("user")["at"].min().rename("first")
    both = orders.merge(first, left_on="user", right_index=True)
    inside = both[(both["at"] >= both["first"]) & (both["at"] < both["first"] + 5 * DAY)]
    expected = inside.groupby("user").spent.sum().reindex(first.index, fill_value=0.0)
    found = joined(seen, orders, window="5d")
    assert found.reward.sum() == pytest.approx(expected.sum())
    assert np.sort(found.reward) == pytest.approx(np.sort(expected.to_numpy()))
