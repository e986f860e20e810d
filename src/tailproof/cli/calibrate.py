"""The command that reads one's own rewards."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tailproof import calibrate, recipes
from tailproof.checks import require
from tailproof.cli.output import clear_errors, console
from tailproof.results.files import whole_file

__all__ = ["calibrate_command"]


@clear_errors
def calibrate_command(
    file: Annotated[
        Path,
        typer.Argument(help="Recorded rewards: separated values, packed or not, Parquet, or -."),
    ],
    reward: Annotated[str, typer.Option(help="The column of the rewards.")],
    arm: Annotated[str | None, typer.Option(help="The column of the arms, if several.")] = None,
    aim: Annotated[
        str | None,
        typer.Option(help="median, mean, 'quantile(0.95)' or 'capped_mean(0.99)'."),
    ] = None,
    costs: Annotated[bool, typer.Option("--costs", help="The smallest is the best.")] = False,
    decimal: Annotated[
        str | None, typer.Option(help="The decimal mark, point or comma, if unclear.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Pulls to come.")] = None,
    dim: Annotated[int | None, typer.Option(help="Length of the arms' vectors, if any.")] = None,
    pulls: Annotated[int | None, typer.Option(help="Pulls of each choice, if fixed.")] = None,
    block: Annotated[int | None, typer.Option(help="Block length, if fixed.")] = None,
    scale: Annotated[float | None, typer.Option(help="The noise that a filter may leave.")] = None,
    efficiency: Annotated[
        float | None, typer.Option(help="The share of the information that it must keep.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The level of that scale.")] = 0.01,
    plot: Annotated[Path | None, typer.Option(help="A new file for a picture, .png.")] = None,
) -> None:
    """Say from recorded rewards which arm leads under which aim, and what to run next.

        tailproof calibrate rewards.csv --reward revenue --arm variant --plot rewards.png

    Separator, encoding, decimal mark and currency are found in the file. Missing rewards are
    counted and left out.
    """
    from tailproof.records import Decimal, read_columns

    if plot is not None:
        require(not plot.exists(), "plot", "a file that does not exist yet", str(plot))
    mark: Decimal | None = decimal  # type: ignore[assignment]  # which is checked there
    rewards, arms = read_columns(file, reward, arm, decimal=mark)
    targets: dict[str, Any] = {
        "horizon": horizon,
        "dim": dim,
        "pulls": pulls,
        "block": block,
        "scale": scale,
        "efficiency": efficiency,
    }
    advice = calibrate(
        rewards=rewards,
        arms=arms,
        aim=None if aim is None else recipes.build("aim", aim),
        costs=costs,
        delta=delta,
        **{name: value for name, value in targets.items() if value is not None},
    )
    header, *rows = advice.cells()
    table = Table(title="Each arm, with intervals that are right together with 95 %")
    for column in header:
        table.add_column(column, justify="left" if column == "arm" else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    console.print(escape(advice.explain()))
    console.print()
    for step in advice.next_steps():
        console.print(escape(step), soft_wrap=True, highlight=False)
    if plot is not None:
        from tailproof.figures import rewards_figure

        with whole_file(plot) as picture:
            figure = rewards_figure(advice.rewards, advice.estimates)
            figure.savefig(picture, format=plot.suffix[1:] or "png")
        console.print(f"Picture: {escape(str(plot))}", soft_wrap=True)
