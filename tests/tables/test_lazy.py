"""Frames whose rows are elsewhere say the same as their rows would here."""

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


@pytest.mark.slow
def test_a_hundred_million_rows_of_parquet(tmp_path: Path) -> None:
    """Ten files of ten million rows, one million customers; the sums are exact."""
    duckdb = pytest.importorskip("duckdb")
    for file in range(10):
        duckdb.sql(
            f"""COPY (SELECT hash(i + {file} * 10000000) % 1000000 AS customer,
            CASE WHEN customer % 2 = 0 THEN 'a' ELSE 'b' END AS variant,
            CASE WHEN hash(i * 7 + {file}) % 20 = 0 THEN (i % 1000) / 10.0 ELSE 0.0 END AS revenue
            FROM range(10000000) t(i)) TO '{tmp_path}/{file}.parquet'"""
        )
    relation = duckdb.read_parquet(f"{tmp_path}/*.parquet")
    found = records(relation, arm="variant", reward="revenue", unit="customer")
    assert found.n == 1_000_000
    assert found.weight is not None
    assert found.weight.sum() == 1e8
    total = duckdb.sql(f"SELECT sum(revenue) FROM '{tmp_path}/*.parquet'").fetchone()[0]
    assert found.reward.sum() == pytest.approx(total)
    assert tp.calibrate(found, aim=tp.CappedMean(0.99)).comparisons
