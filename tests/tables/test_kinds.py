"""Every kind of table says the same to `calibrate` and to `judge`."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tailproof as tp
from tailproof.live import Agent

Make = Callable[[pd.DataFrame, Path], Any]


def sales() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    return pd.DataFrame(
        {
            "variant": rng.choice(["A", "B"], n),
            "revenue": np.where(rng.random(n) < 0.4, rng.lognormal(3, 1, n).round(2), 0.0),
            "customer": [f"c{i}" for i in range(n)],
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n), unit="h"),
        }
    )


def german(frame: pd.DataFrame, folder: Path) -> Path:
    """Return a file as a spreadsheet in Germany writes it."""
    euros = [f"{x:,.2f} €".translate(str.maketrans(",.", ".,")) for x in frame.revenue]
    days = frame.day.dt.strftime("%d.%m.%Y %H:%M")
    file = folder / "sales.csv"
    frame.assign(revenue=euros, day=days).to_csv(file, sep=";", index=False, encoding="cp1252")
    return file


def written(how: str, name: str) -> Make:
    def make(frame: pd.DataFrame, folder: Path) -> Path:
        file = folder / name
        getattr(frame, f"to_{how}")(file, index=False)
        return file

    return make


def folder_of_parquet(frame: pd.DataFrame, folder: Path) -> Path:
    for part in range(2):
        frame[part::2].to_parquet(folder / f"{part}.parquet", index=False)
    return folder


def arrow(method: str) -> Make:
    def make(frame: pd.DataFrame, folder: Path) -> Any:
        table = pytest.importorskip("pyarrow").Table.from_pandas(frame)
        if method == "to_dataset":
            return pytest.importorskip("pyarrow.dataset").dataset(table)
        return getattr(table, method)() if method else table

    return make


def compressed(frame: pd.DataFrame, folder: Path) -> Path:
    (folder / "sales.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    return folder / "sales.gz"


KINDS: dict[str, Make] = {
    "CSV": written("csv", "sales.csv"),
    "CSV of Germany": german,
    "gzip": compressed,
    "Excel": written("excel", "sales.xlsx"),
    "Parquet": written("parquet", "sales.parquet"),
    "a folder of Parquet": folder_of_parquet,
    "pandas with types of Arrow": lambda frame, _: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda frame, _: pytest.importorskip("polars").from_pandas(frame),
    "a lazy frame": lambda frame, _: pytest.importorskip("polars").from_pandas(frame).lazy(),
    "DuckDB": lambda frame, _: pytest.importorskip("duckdb").from_df(frame),
    "Arrow": arrow(""),
    "batches of Arrow": arrow("to_reader"),
    "a data set of Arrow": arrow("to_dataset"),
    "a mapping of arrays": lambda frame, _: {name: frame[name].to_numpy() for name in frame},
    "a list of rows": lambda frame, _: frame.to_dict("records"),
}
NAMES: dict[str, Any] = {"arm": "variant", "reward": "revenue", "unit": "customer", "time": "day"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table(kind: str, tmp_path: Path) -> None:
    frame, aim = sales(), tp.CappedMean(0.99)
    for tool in (tp.calibrate, lambda t, **names: tp.judge(t, "even", aim, **names)):
        made = KINDS[kind](frame, tmp_path)
        assert _cells(tool(made, **NAMES)) == _cells(tool(frame, **NAMES))
    with pytest.raises(ValueError, match="columns"):
        tp.calibrate(KINDS[kind](frame, tmp_path), arm="colour", reward="revenue")


def _cells(answer: Any) -> Any:
    cells: Any = answer.cells()
    return cells


def test_arrays_and_agents() -> None:
    frame = sales()
    arrays = {option: frame[name].to_numpy() for option, name in NAMES.items()}
    assert tp.calibrate(**arrays).cells() == tp.calibrate(frame, **NAMES).cells()
    agent = Agent(tp.Uniform(), ":memory:")
    for reward in frame.revenue:
        agent.tell(agent.ask(["A", "B"]).id, reward)
    assert tp.calibrate(agent).cells() == tp.calibrate(agent.journal).cells()


@pytest.mark.parametrize("table", [3, "nowhere.csv", [1, 2], pd.Series([1.0]), np.ones((3, 2))])
def test_what_is_no_table(table: Any) -> None:
    with pytest.raises(ValueError, match="table must"):
        tp.calibrate(table)


def test_records_and_lazy_frames_are_imported() -> None:
    frame = sales()
    pytest.importorskip("duckdb")
    lazy = KINDS["DuckDB"](frame, Path())
    for history, names in ((tp.records(frame, **NAMES), {}), (lazy, NAMES), (frame, NAMES)):
        agent = Agent(tp.UCB1(), ":memory:")
        found = tp.live.import_history(agent, history, **names)
        assert found.learned == 400
        assert agent.learner.state.sums.sum() == pytest.approx(frame.revenue.sum())
