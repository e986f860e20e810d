"""The options that say how a table of records is read, the same for every command."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from tailproof.cli.options import column_names

__all__ = ["Largest", "Smallest", "TableFile", "compares_arms", "reads_records"]

Largest = Annotated[
    float | None, typer.Option(help="The largest possible total of a customer, if you know it.")
]
Smallest = Annotated[float | None, typer.Option(help="The smallest possible total of a customer.")]
TableFile = Annotated[
    str,
    typer.Argument(
        help="CSV, compressed or not, Excel, Parquet, a folder of Parquet, - for stdin, a journal "
        "(shop.db), or the file that `tailproof log` wrote."
    ),
]

_Text = str | None
_OPTIONS: dict[str, Any] = {
    "arm": Annotated[_Text, typer.Option(help="Column of the arms; arm unless given.")],
    "reward": Annotated[
        _Text, typer.Option(help="Column of the rewards (of --events); reward unless given.")
    ],
    "unit": Annotated[
        _Text, typer.Option(help="Column of customers, or other units whose rows go together.")
    ],
    "time": Annotated[
        _Text, typer.Option(help="Column of times, such as 2026-11-19 or 19.11.2026 8:30.")
    ],
    "propensity": Annotated[
        _Text,
        typer.Option(
            help="Column of the probability of the chosen arm. Columns p:ARM are of all arms."
        ),
    ],
    "features": Annotated[
        _Text, typer.Option(help="Columns of visitors' features, separated by commas.")
    ],
    "group": Annotated[_Text, typer.Option(help="Column of visitors' groups.")],
    "id": Annotated[
        _Text,
        typer.Option(help="Column that differs in every row, such as the number of an order."),
    ],
    "events": Annotated[
        _Text,
        typer.Option(
            help="A file of orders: the table is then one of exposures. --unit and --time name a "
            "column of both, or two: --time seen_at,ordered_at."
        ),
    ],
    "window": Annotated[
        _Text, typer.Option(help="How long after its exposure a unit's orders count, such as 7d.")
    ],
    "experiment": Annotated[_Text, typer.Option(help="The experiment to keep, if several.")],
    "sheet": Annotated[_Text, typer.Option(help="Sheet of an Excel workbook.")],
    "decimal": Annotated[
        _Text, typer.Option(help="Decimal mark, '.' or ',', if the file is ambiguous.")
    ],
    "zone": Annotated[
        _Text,
        typer.Option(help="Time zone of times that name none, such as Europe/Paris; else UTC."),
    ],
    "spelling": Annotated[
        _Text, typer.Option(help="Arms that differ by case or blanks: ask, merge or keep.")
    ],
    "missing": Annotated[_Text, typer.Option(help="Missing rewards: count or refuse.")],
    "skip_bad": Annotated[
        bool, typer.Option("--skip-bad", help="Leave out rows that cannot be read, and say which.")
    ],
}


_FLAGS = ("skip_bad", "costs")
_COMPARED: dict[str, Any] = {
    "costs": Annotated[bool, typer.Option("--costs", help="Smaller is better.")],
    "control": Annotated[_Text, typer.Option(help="The arm to compare all with.")],
    "looks": Annotated[
        _Text,
        typer.Option(
            help="one (unless given): the file is looked at once; any: again and again as it grows."
        ),
    ],
    "split": Annotated[
        _Text, typer.Option(help="Planned shares, which are checked: even, or 'A=0.5,B=0.5'.")
    ],
    "largest": Largest,
    "smallest": Smallest,
}


def reads_records(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a table; the command gets the given options as `columns`."""
    return _with(_OPTIONS, command)


def compares_arms(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a table and of `calibrate`; it gets them as `columns`."""
    return _with(_COMPARED | _OPTIONS, command)


def _with(options: dict[str, Any], command: Callable[..., None]) -> Callable[..., None]:
    described = inspect.signature(command, eval_str=True)
    added = {name: hint for name, hint in options.items() if name not in described.parameters}

    @wraps(command)
    def run(**given: Any) -> None:
        columns = {name: given.pop(name) for name in added}
        command(**given, columns=_given_options(columns))

    parameters = [part for part in described.parameters.values() if part.name != "columns"]
    parameters = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in parameters]
    for name, hint in added.items():
        default = False if name in _FLAGS else None
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=hint))
    run.__signature__ = described.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {part.name: part.annotation for part in parameters}
    return run


def _given_options(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    given = {name: x for name, x in columns.items() if x is not None and x is not False}
    if "features" in given:
        given["features"] = column_names(given["features"])
    for name in ("unit", "time"):
        if "events" in given and "," in given.get(name, ""):
            given[name] = tuple(column_names(given[name]))
    return given
