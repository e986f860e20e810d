"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Engine",
    "NoiseText",
    "Out",
    "Paths",
    "PolicyTexts",
    "Seed",
    "Workers",
    "column_names",
    "require_option",
]

PolicyTexts = Annotated[
    list[str],
    typer.Option(
        metavar="<policy>",
        help="A policy: oful, 'oful(bonus=0.5)', or mine:MedSA from mine.py. Repeatable.",
    ),
]
NoiseText = Annotated[
    str, typer.Option(help="A noise law: cauchy, 'student_t(df=0.5)', mine:Odd from mine.py, …")
]
Paths = Annotated[int, typer.Option(help="Number of independent paths.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Workers = Annotated[int, typer.Option(help="Number of processes or threads; 0 for one per core.")]
Engine = Annotated[
    str,
    typer.Option(
        help="serial, processes, dask or ray, with the same results; compiled or cuda, much faster."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="A new folder for the results. If stopped, the same command continues."),
]


def require_option(option: str, ok: bool, other: str) -> None:
    """Refuse an option that makes no sense without another.

    >>> require_option("--plot", False, "--out")
    Traceback (most recent call last):
    ValueError: --plot needs --out
    """
    if not ok:
        raise ValueError(f"{option} needs {other}")


def column_names(text: str | None) -> list[str]:
    """Return the names that are separated by commas.

    >>> column_names("age, country"), column_names(None)
    (['age', 'country'], [])
    """
    return [name.strip() for name in text.split(",")] if text else []
