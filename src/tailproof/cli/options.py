"""Options that several commands have."""

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Engine",
    "Horizon",
    "MostPulls",
    "NoiseText",
    "Out",
    "Paths",
    "PlainEngine",
    "PolicyTexts",
    "Seed",
    "Workers",
    "column_names",
    "require_option",
    "typed_policies",
]


def _whole_number(text: str) -> int:
    """Return the whole number that a text is: 10000 or 1e4.

    >>> _whole_number("1e4"), _whole_number("-3")
    (10000, -3)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
        if value.is_integer():
            return int(value)
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} is not a valid integer, such as 10000 or 1e4")


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
Paths = Annotated[
    int,
    typer.Option(help="Number of independent paths.", parser=_whole_number, metavar="<int>"),
]
Horizon = Annotated[
    int, typer.Option(help="Pulls per path: 10000 or 1e4.", parser=_whole_number, metavar="<int>")
]
MostPulls = Annotated[
    int, typer.Option(help="Most pulls per path.", parser=_whole_number, metavar="<int>")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Workers = Annotated[int, typer.Option(help="Number of processes or threads; 0 for one per core.")]
Engine = Annotated[
    str,
    typer.Option(
        help="serial, processes, dask or ray, with the same results; compiled or cuda, much faster."
    ),
]
PlainEngine = Annotated[
    str, typer.Option("--engine", help="serial, processes, dask or ray, with the same results.")
]
Out = Annotated[
    Path | None,
    typer.Option(help="A new folder for the results. If stopped, the same command continues."),
]


def typed_policies(texts: list[str]) -> dict[str, Any]:
    """Return the policies from the command line, by their text."""
    from tailproof import recipes
    from tailproof.checks import require

    policies: dict[str, Any] = {}
    for text in texts:
        require(text not in policies, "policy", "given only once", text)
        policies[text] = recipes.build("policy", text, imports=True)
    return policies


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
