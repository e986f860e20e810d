"""The command that reads recorded rewards."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from tailproof.cli.output import console, empty_table, say_where
from tailproof.cli.tables import TableFile, compares_arms

if TYPE_CHECKING:
    from tailproof.advice import Advice

__all__ = ["COMMANDS"]


_AIM = "median, mean, 'quantile(0.95)' or 'capped_mean(0.99)'."
_KEPT = "Share of the information that the filter must keep."
_LIKE = "Compare with a platform's rule for outliers: growthbook, statsig or optimizely."
_TOML = "A new file for tailproof serve, such as shop.toml."


@compares_arms
def calibrate_command(
    file: TableFile,
    aim: Annotated[str | None, typer.Option(help=_AIM)] = None,
    horizon: Annotated[int | None, typer.Option(help="Pulls to come.")] = None,
    dim: Annotated[int | None, typer.Option(help="Length of the arms' vectors, if any.")] = None,
    pulls: Annotated[int | None, typer.Option(help="Pulls per decision, if fixed.")] = None,
    block: Annotated[int | None, typer.Option(help="Block length, if fixed.")] = None,
    scale: Annotated[float | None, typer.Option(help="Scale of noise to leave.")] = None,
    efficiency: Annotated[float | None, typer.Option(help=_KEPT)] = None,
    delta: Annotated[float, typer.Option(help="Error probability for the scale.")] = 0.01,
    like: Annotated[str | None, typer.Option(help=_LIKE)] = None,
    toml: Annotated[Path | None, typer.Option(help=_TOML)] = None,
    plot: Annotated[Path | None, typer.Option(help="A new file for a picture, .png.")] = None,
    columns: Any = None,
) -> None:
    """Say which arm leads in recorded rewards, under which aim, and what to run next.

        tailproof calibrate rewards.csv --reward revenue --arm variant --unit customer --time day
        tailproof calibrate exposures.csv --events orders.csv --window 7d --unit user --time at,paid

    Separator, encoding, decimal mark and currency are detected. Missing rewards are counted and
    left out.
    """
    from tailproof import calibrate, recipes
    from tailproof.advice.platforms import check_platform
    from tailproof.cli.saving import unused

    unused("plot", plot)
    unused("toml", toml)
    if like is not None:
        check_platform(like)
    filters: Any = {"pulls": pulls, "block": block, "scale": scale, "efficiency": efficiency}
    goal = None if aim is None else recipes.build("aim", aim)
    targets: Any = {"aim": goal, "horizon": horizon, "dim": dim, "delta": delta}
    advice = calibrate(file, **targets, **filters, **columns)
    _say(advice, like, toml, plot)


def _say(advice: "Advice", like: str | None, toml: Path | None, plot: Path | None) -> None:
    """Print the advice, and write the files that were asked for."""
    from tailproof.cli.saving import save_picture

    chosen = advice.aim is not None or advice.rewards.symmetric
    _print(advice, quiet=chosen and (toml is not None or like is not None))
    if like is not None:
        _print_like(advice, like)
    if toml is not None:
        _write(advice, toml)
    if plot is not None:
        save_picture(advice.plot(), plot)
        say_where("Picture:", plot)


def _print(advice: "Advice", *, quiet: bool) -> None:
    """Print the table, the sentences and, unless `quiet`, the code to run next."""
    _table("Each arm, with simultaneous 95 % intervals", advice.cells())
    console.print(escape(advice.explain()), highlight=False)
    console.print()
    if quiet:
        return
    for step in advice.next_steps():
        console.print(escape(step), soft_wrap=True, highlight=False)
    if advice.aim is None and not advice.rewards.symmetric:
        choice = "add --aim to this command, for example --aim 'capped_mean(0.99)'"
        console.print(f"To choose one, {choice}.", soft_wrap=True, highlight=False)


def _table(title: str, cells: list[list[str]]) -> None:
    header, *rows = cells
    table = empty_table(title, *header)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def _print_like(advice: "Advice", platform: str) -> None:
    """Print the same customers under a platform's rule for outliers."""
    from tailproof.advice.platforms import platform_lines, platform_rules

    cells, sentences = platform_lines(platform_rules(advice, platform))
    _table("What each rule for outliers makes of the means", cells)
    for sentence in sentences:
        console.print(escape(sentence), highlight=False)
    console.print()


def _write(advice: "Advice", file: Path) -> None:
    """Write the file of a service, and say how to start it."""
    from tailproof.results.files import whole_file

    text = advice.service()
    with whole_file(file) as stream:
        stream.write(f"{text}\n".encode())
    console.print(escape(text), soft_wrap=True, highlight=False)
    say_where("Written to", file)
    console.print(f"Next: tailproof serve {escape(str(file))}", soft_wrap=True, highlight=False)


COMMANDS = (calibrate_command,)
