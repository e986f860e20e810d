"""Options that several commands have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas

__all__ = [
    "DecimalMark",
    "Engine",
    "FeatureNames",
    "NoiseText",
    "Out",
    "Paths",
    "PolicyTexts",
    "Seed",
    "Workers",
    "column_names",
    "is_export",
    "is_journal",
    "read_export",
    "require_option",
]

PolicyTexts = Annotated[
    list[str],
    typer.Option(
        metavar="<policy>", help="A policy as a name or a call: 'oful(bonus=0.5)'. Repeatable."
    ),
]
NoiseText = Annotated[
    str, typer.Option(help="A noise law: cauchy, 'student_t(df=0.5)', 'stable(0.5)', …")
]
Paths = Annotated[int, typer.Option(help="Number of independent paths.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Workers = Annotated[int, typer.Option(help="Number of processes; 0 for one per core.")]
Engine = Annotated[
    str, typer.Option(help="serial, processes, dask or ray; the results are the same.")
]
Out = Annotated[
    Path | None,
    typer.Option(help="A new folder for the results. If stopped, the same command continues."),
]
FeatureNames = Annotated[
    str | None, typer.Option(help="Columns of visitors' features, separated by commas.")
]
DecimalMark = Annotated[
    str | None, typer.Option(help="Decimal mark, '.' or ',', if the file is ambiguous.")
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


def is_journal(file: str) -> bool:
    """Return whether a path or URL is that of a journal."""
    if file.startswith(("postgres:", "postgresql:")):
        return True
    return _begins(file, b"SQLite")


def is_export(file: str) -> bool:
    """Return whether a file is a journal that was exported as CSV."""
    heads = b"ticket,arm,propensity,reward,status,", b"ticket,hold,arm,propensity,reward,fate,"
    return any(_begins(file, head) for head in heads)


def read_export(file: str) -> "pandas.DataFrame":
    """Read a journal that was exported as CSV."""
    import pandas

    return pandas.read_csv(file, low_memory=False)


def _begins(file: str, mark: bytes) -> bool:
    if not Path(file).is_file():
        return False
    with Path(file).open("rb") as start:
        return start.read(len(mark)) == mark
