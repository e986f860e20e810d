"""Helpers of the benchmarks: one core, the best of several runs, a table."""

import math
import os
import time
from collections.abc import Callable
from importlib.metadata import version

from rich.console import Console
from rich.table import Table


def one_core() -> None:
    """Keep linear algebra on one core; call it before NumPy is imported."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"


def race(*runs: Callable[[], object], rounds: int = 7, budget: float = math.inf) -> list[float]:
    """Return the best time of each run, taken in turns; start no round after `budget` seconds."""
    best, end = [math.inf] * len(runs), time.perf_counter() + budget
    for done in range(rounds):
        if done and time.perf_counter() > end:
            break
        for i, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def start_table(title: str, *columns: str) -> Table:
    """Return an empty table with words aligned left and numbers right."""
    table = Table(title=title, caption=f"NumPy {version('numpy')}")
    for column in columns:
        table.add_column(column, justify="left" if column in ("what", "target") else "right")
    return table


def show(table: Table) -> None:
    """Print a table, as wide as on any other terminal."""
    Console(width=130).print(table)
