"""The command that reads recorded rewards."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from tailproof.cli.output import console, empty_table, say_where
from tailproof.cli.tables import Largest, Smallest, TableFile, reads_records

if TYPE_CHECKING:
    from tailproof.advice import Advice

__all__ = ["COMMANDS"]


_AIM = "median, mean, 'quantile(0.95)' or 'capped_mean(0.99)'."
_KEPT = "Share of the information that the filter must keep."
_LOOKS = "one: the file is looked at once; any: again and again as it grows."
_SPLIT = "Planned shares, which are checked: even, or 'A=0.5,B=0.5'."


@reads_records
def calibrate_command(
    file: TableFile,
    aim: Annotated[str | None, typer.Option(help=_AIM)] = None,
    costs: Annotated[bool, typer.Option("--costs", help="Smaller is better.")] = False,
    control: Annotated[str | None, typer.Option(help="The arm to compare all with.")] = None,
    looks: Annotated[str, typer.Option(help=_LOOKS)] = "one",
    split: Annotated[str | None, typer.Option(help=_SPLIT)] = None,
    largest: Largest = None,
    smallest: Smallest = None,
    horizon: Annotated[int | None, typer.Option(help="Pulls to come.")] = None,
    dim: Annotated[int | None, typer.Option(help="Length of the arms' vectors, if any.")] = None,
    pulls: Annotated[int | None, typer.Option(help="Pulls per decision, if fixed.")] = None,
    block: Annotated[int | None, typer.Option(help="Block length, if fixed.")] = None,
    scale: Annotated[float | None, typer.Option(help="Scale that the filter may leave.")] = None,
    efficiency: Annotated[float | None, typer.Option(help=_KEPT)] = None,
    delta: Annotated[float, typer.Option(help="Error probability for that scale.")] = 0.01,
    plot: Annotated[Path | None, typer.Option(help="A new file for a picture, .png.")] = None,
    columns: Any = None,
) -> None:
    """Say which arm leads in recorded rewards, under which aim, and what to run next.

        tailproof calibrate rewards.csv --reward revenue --arm variant --unit customer --time day

    Separator, encoding, decimal mark and currency are detected. Missing rewards are counted and
    left out.
    """
    from tailproof import calibrate, recipes
    from tailproof.cli.saving import save_picture, unused

    unused("plot", plot)
    filters: Any = {"pulls": pulls, "block": block, "scale": scale, "efficiency": efficiency}
    goal = None if aim is None else recipes.build("aim", aim)
    targets: Any = {"aim": goal, "costs": costs, "horizon": horizon, "dim": dim, "delta": delta}
    targets |= {"control": control, "looks": looks, "split": split}
    targets |= {"largest": largest, "smallest": smallest}
    advice = calibrate(file, **targets, **filters, **columns)
    _print(advice)
    if plot is not None:
        save_picture(advice.plot(), plot)
        say_where("Picture:", plot)


def _print(advice: "Advice") -> None:
    header, *rows = advice.cells()
    table = empty_table("Each arm, with simultaneous 95 % intervals", *header)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    console.print(escape(advice.explain()))
    console.print()
    for step in advice.next_steps():
        console.print(escape(step), soft_wrap=True, highlight=False)
    if advice.aim is None and not advice.rewards.symmetric:
        choice = "add --aim to this command, for example --aim 'capped_mean(0.99)'"
        console.print(f"To choose one, {choice}.", soft_wrap=True, highlight=False)


COMMANDS = (calibrate_command,)
