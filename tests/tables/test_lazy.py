"""Frames whose rows are elsewhere say the same as their rows would here."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tailproof as tp
from tailproof import Records, records


def sales(n: int = 6000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    customer = rng.integers(0, n // 4, n)
    bought = rng.random(n) < 0.1
    return pd.DataFrame(
        {
            "customer": [f"c{i}" for i in customer],
            "variant": np.where(customer % 2, "a", "b"),
            "revenue": np.where(bought, rng.lognormal(3, 1, n).round(2), 0.0),
            "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.uniform(0, 20, n), unit="D"),
        }
    )


def lazy(kind: str, frame: pd.DataFrame) -> Any:
    if kind == "duckdb":
        return pytest.importorskip("duckdb").from_df(frame)
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(frame).lazy()
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


KINDS = pytest.mark.parametrize("kind", ["duckdb", "polars", "dask"])
NAMES: dict[str, Any] = {"arm": "variant", "reward": "revenue", "time": "when"}


def by_unit(found: Records) -> Any:
    assert found.weight is not None
    assert found.time is not None
    table = np.column_stack([found.arm, found.time, found.reward, found.weight])
    return table[np.lexsort(table.T[::-1])]


@KINDS
def test_sums_by_unit_are_made_where_the_data_are(kind: str) -> None:
    frame = sales()
    found = records(lazy(kind, frame), unit="customer", **NAMES)
    groups = frame.groupby(["variant", "customer"])
    sums = groups.agg(reward=("revenue", "sum"), time=("when", "min"), n=("revenue", "size"))
    seconds = sums.time.to_numpy("datetime64[us]").astype(np.int64) / 1e6
    arm = sums.index.get_level_values(0) == "b"
    wanted = np.column_stack([arm, seconds, sums.reward, sums.n])
    assert found.arms == ("a", "b")
    assert by_unit(found) == pytest.approx(wanted[np.lexsort(wanted.T[::-1])])


@KINDS
def test_without_a_unit_the_rewards_are_those_of_the_rows(kind: str) -> None:
    frame = sales()
    found = records(lazy(kind, frame), **NAMES)
    here = records(frame, **NAMES)
    for arm in (0, 1):
        own = np.sort(found.reward[found.arm == arm])
        assert own.tolist() == np.sort(here.reward[here.arm == arm]).tolist()
    assert found.weight is None
    advice = [tp.calibrate(table, aim=tp.CappedMean(0.99)) for table in (found, here)]
    assert advice[0].cells() == advice[1].cells()


def spoiled(how: str) -> pd.DataFrame:
    """Sales as they may be: with arms drawn by visit, missing rewards, orders that occur twice."""
    frame, rng = sales(), np.random.default_rng(1)
    if how == "arms by visit":
        frame["variant"] = rng.choice(["a", "b"], len(frame))
    if how == "a leak":
        frame.loc[frame.index[:3], "variant"] = ["a", "b", "b"]
    if how == "missing rewards":
        frame.loc[rng.random(len(frame)) < 0.1, "revenue"] = np.nan
    if how == "orders twice":
        frame = pd.concat([frame, frame[frame.revenue > 0].head(20)])
    if how == "refunds that cancel":
        poor = frame.groupby("customer")["revenue"].transform("sum") == 0
        back = frame[poor].drop_duplicates("customer").head(50)
        told = [34.4, 31.58, -31.58, -34.4]
        frame = pd.concat([frame, *(back.assign(revenue=amount) for amount in told)])
    return frame


@KINDS
@pytest.mark.parametrize("time", ["when", None])
@pytest.mark.parametrize(
    "how", ["arms by visit", "a leak", "missing rewards", "orders twice", "refunds that cancel"]
)
def test_the_statements_are_those_of_the_rows(kind: str, how: str, time: str | None) -> None:
    frame = spoiled(how)
    names = NAMES | {"unit": "customer", "time": time}
    said = [tp.calibrate(table, **names).explain() for table in (lazy(kind, frame), frame)]
    assert ("Rows were summed" in said[0]) == (how != "arms by visit")
    note = "Rows were summed where they are, so bursts of one arm were not looked for."
    assert said[0].replace(note, "").split() == said[1].split()
    assert "refunds perhaps" not in said[0]


def test_rows_of_a_day_have_no_order() -> None:
    """The rows of a database come sorted; a policy that follows rewards would look like this."""
    frame = sales().sort_values(["variant", "revenue"])
    for time in ("when", None):
        said = tp.calibrate(lazy("duckdb", frame), **(NAMES | {"time": time})).explain()
        assert "followed the rewards" not in said
        assert "in a burst" not in said


def test_the_same_table_gives_the_same_rows() -> None:
    tables = [lazy("duckdb", sales().sample(frac=1, random_state=seed)) for seed in (0, 1)]
    found = [records(table, unit="customer", **NAMES) for table in tables]
    assert found[0].reward == pytest.approx(found[1].reward)
    assert found[0].arm.tolist() == found[1].arm.tolist()


@KINDS
def test_spoiled_rows_are_refused_or_counted(kind: str) -> None:
    frame = sales(400)
    frame.loc[:2, "variant"] = None
    names = NAMES | {"unit": "customer"}
    with pytest.raises(ValueError, match="names no arm in"):
        records(lazy(kind, frame), **names)
    found = records(lazy(kind, frame), skip_bad=True, **names)
    assert found.weight is not None
    assert found.weight.sum() == 397
    frame.loc[5, "revenue"] = np.nan
    with pytest.raises(ValueError, match="has no reward in 1 of its rows"):
        records(lazy(kind, frame), skip_bad=True, missing="refuse", **names)


def test_sums_are_not_taken_for_rows() -> None:
    found = records(lazy("duckdb", sales(400)), unit="customer", **NAMES)
    with pytest.raises(ValueError, match="these records are sums of rows"):
        tp.judge(found, "even", tp.Median())
    names = {"variant": "Arm", "revenue": "Reward", "customer": "Unit", "when": "Time"}
    again = records(lazy("duckdb", sales(400).rename(columns=names)))
    assert again.reward.tolist() == found.reward.tolist()


def test_texts_are_read_as_in_a_file() -> None:
    frame = sales(400)
    texts = frame.assign(revenue=[f"${x:,.2f}" for x in frame.revenue])
    found = records(lazy("duckdb", texts), unit="customer", **NAMES)
    assert found.reward.tolist() == records(frame, unit="customer", **NAMES).reward.tolist()


def test_customers_with_long_numbers_are_told_apart() -> None:
    frame = sales(400).assign(customer=2**60 + np.arange(400))
    for table in (frame, lazy("duckdb", frame), lazy("polars", frame)):
        found = records(table, unit="customer", **NAMES)
        assert found.unit is not None
        assert len(set(found.unit.tolist())) == 400


@KINDS
def test_judging_takes_the_rows(kind: str) -> None:
    frame = sales()
    rows = [tp.judge(table, ["a"], tp.Median(), **NAMES) for table in (lazy(kind, frame), frame)]
    assert rows[0].rows == rows[1].rows == len(frame)
    assert rows[0]["always a"].estimate == pytest.approx(rows[1]["always a"].estimate)


@KINDS
def test_mistakes_are_told(kind: str) -> None:
    with pytest.raises(ValueError, match="arm must be one of the columns customer, variant, "):
        records(lazy(kind, sales(40)), arm="colour", reward="revenue")
    with pytest.raises(ValueError, match="reward must be one of the columns"):
        records(lazy(kind, sales(40)))


def test_more_rows_than_are_of_use_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailproof.tables.lazy._MOST_ROWS", 3000)
    found = records(lazy("polars", sales()), **NAMES)
    assert found.n == 3000
    assert "3,000 of 6,000 rows, drawn at random, are used" in found.notes[0]
    assert abs((found.reward > 0).mean() - 0.1) < 0.03


READ = """
import resource, sys, time
import duckdb
import tailproof as tp
duckdb.sql("SET memory_limit = '1GB'; SET enable_progress_bar = false")
start = time.monotonic()
table = duckdb.read_parquet(sys.argv[1] + "/*.parquet")
advice = tp.calibrate(table, arm="variant", reward="revenue", unit="customer")
assert advice.comparisons and advice.records.weight.sum() == 1e8
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(advice.records.n, advice.records.reward.sum(), most / 1e6, time.monotonic() - start)
"""


@pytest.mark.slow
def test_a_hundred_million_rows_of_parquet(tmp_path: Path) -> None:
    """Ten files of ten million rows, one million customers, within 2 GB and 2 minutes."""
    duckdb = pytest.importorskip("duckdb")
    for file in range(10):
        duckdb.sql(
            f"""COPY (SELECT hash(i + {file} * 10000000) % 1000000 AS customer,
            CASE WHEN customer % 2 = 0 THEN 'a' ELSE 'b' END AS variant,
            CASE WHEN hash(i * 7 + {file}) % 20 = 0 THEN (i % 1000) / 10.0 ELSE 0.0 END AS revenue
            FROM range(10000000) t(i)) TO '{tmp_path}/{file}.parquet'"""
        )
    command = [sys.executable, "-c", READ, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    units, reward, gigabytes, seconds = map(float, done.stdout.split())
    total = duckdb.sql(f"SELECT sum(revenue) FROM '{tmp_path}/*.parquet'").fetchall()[0][0]
    assert units == 1_000_000
    assert reward == pytest.approx(total)
    assert gigabytes < 2
    assert seconds < 120
