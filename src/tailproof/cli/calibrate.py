"""The command that reads recorded rewards."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailproof.cli.options import DecimalMark, FeatureNames, column_names
from tailproof.cli.output import console, empty_table, say_where

__all__ = ["COMMANDS"]


def calibrate_command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Recorded rewards: CSV, compressed or not, Excel, Parquet, or - for stdin."
        ),
    ],
    reward: Annotated[str, typer.Option(help="Column of the rewards.")],
    arm: Annotated[str | None, typer.Option(help="Column of the arms, if several.")] = None,
    features: FeatureNames = None,
    aim: Annotated[
        str | None,
        typer.Option(help="median, mean, 'quantile(0.95)' or 'capped_mean(0.99)'."),
    ] = None,
    costs: Annotated[bool, typer.Option("--costs", help="Smaller is better.")] = False,
    decimal: DecimalMark = None,
    horizon: Annotated[int | None, typer.Option(help="Pulls to come.")] = None,
    dim: Annotated[int | None, typer.Option(help="Length of the arms' vectors, if any.")] = None,
    pulls: Annotated[int | None, typer.Option(help="Pulls per decision, if fixed.")] = None,
    block: Annotated[int | None, typer.Option(help="Block length, if fixed.")] = None,
    scale: Annotated[
        float | None, typer.Option(help="Scale of the noise that the filter may leave.")
    ] = None,
    efficiency: Annotated[
        float | None, typer.Option(help="Share of the information that the filter must keep.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Error probability for that scale.")] = 0.01,
    plot: Annotated[Path | None, typer.Option(help="A new file for a picture, .png.")] = None,
) -> None:
    """Say which arm leads in recorded rewards, under which aim, and what to run next.

        tailproof calibrate rewards.csv --reward revenue --arm variant --plot rewards.png

    Separator, encoding, decimal mark and currency are detected. Missing rewards are counted and
    left out.
    """
    from tailproof import calibrate, recipes
    from tailproof.checks import require
    from tailproof.records import Decimal, read_columns
    from tailproof.results.files import whole_file

    if reward == arm:
        raise ValueError(f"--reward and --arm name the same column, {arm}")
    if plot is not None:
        require(not plot.exists(), "plot", "a file that does not exist yet", str(plot))
    mark: Decimal | None = decimal  # type: ignore[assignment]  # read_columns checks it
    columns = column_names(features)
    if twice := sorted({name for name in columns if [reward, arm, *columns].count(name) > 1}):
        raise ValueError(f"--features names {twice[0]}, which is named elsewhere too")
    rewards, arms, contexts = read_columns(file, reward, arm, columns, decimal=mark)
    targets = {
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
        features=contexts,
        aim=None if aim is None else recipes.build("aim", aim),
        costs=costs,
        delta=delta,
        **{name: value for name, value in targets.items() if value is not None},
    )
    header, *rows = advice.cells()
    title = "Each arm, with simultaneous 95 % intervals"
    table = empty_table(title, *header)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    console.print(escape(advice.explain()))
    console.print()
    for step in advice.next_steps():
        console.print(escape(step), soft_wrap=True, highlight=False)
    if aim is None and not advice.rewards.symmetric:
        choice = "add --aim to this command, for example --aim 'capped_mean(0.99)'"
        console.print(f"To choose one, {choice}.", soft_wrap=True, highlight=False)
    if plot is not None:
        from tailproof.figures import rewards_figure

        with whole_file(plot) as picture:
            figure = rewards_figure(advice.rewards, advice.estimates)
            figure.savefig(picture, format=plot.suffix[1:] or "png")
        say_where("Picture:", plot)


COMMANDS = (calibrate_command,)
