"""The commands of live use: a service, its journals, and two minutes to see it at work."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailproof import recipes
from tailproof.checks import number, require
from tailproof.cli.output import clear_errors, console
from tailproof.extras import import_extra
from tailproof.results.files import whole_file

__all__ = ["demo_command", "log_command", "serve_command", "verify_command"]

JournalText = Annotated[
    str, typer.Argument(help="A file of SQLite, or 'postgresql://user@host/database#experiment'.")
]


@clear_errors
def serve_command(
    file: Annotated[Path, typer.Argument(help="The settings: shop.toml.")],
    address: Annotated[
        str | None, typer.Option(help="Where to listen, in place of the file's.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="In place of the file's; 0 for any that is free.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that share address and journals.")] = 1,
) -> None:
    r"""Answer ask and tell over HTTP, with a page to look at.

    A file shop.toml says what is tried:

        \[service]
        journal = "journals"
        \[experiments.shop]
        recipe = "auto_filtered(ucb1(bonus=0.7))"
        arms = ["red", "blue"]
        wait = "2h"
        explore = 0.05

    Then ask for an arm, and tell what it brought:

        tailproof serve shop.toml

        curl localhost:8000/experiments/shop/ask --json '{"ticket": "v17"}'

        curl localhost:8000/experiments/shop/tell
        --json '{"ticket": "v17", "reward": 12.5}'

    It answers its own machine only. For any other address set TAILPROOF_TOKEN in the environment,
    and send it with each request: Authorization: Bearer …
    """
    from tailproof.live.serving import serve

    def say(url: str, names: list[str]) -> None:
        console.print(f"{url} serves {', '.join(names)}", soft_wrap=True, highlight=False)

    serve(file, address=address, port=port, workers=workers, say=say)


@clear_errors
def log_command(
    journal: JournalText,
    out: Annotated[
        Path | None, typer.Option(help="A new file, .csv or .parquet; by default shown as CSV.")
    ] = None,
) -> None:
    """Show every ticket of a journal: arm, propensity, reward, fate and times.

        tailproof log journals/shop.db --out shop.parquet

    The journal may be in use. A name that a spreadsheet would take for a formula has an apostrophe
    before it in CSV.
    """
    from tailproof.live import open_journal, read
    from tailproof.live.log import csv_pieces

    if out is not None:
        require(out.suffix in (".csv", ".parquet"), "out", "a file .csv or .parquet", str(out))
        require(not out.exists(), "out", "a file that does not exist yet", str(out))
        if out.suffix == ".parquet":
            import_extra("pyarrow", "parquet", "a Parquet file")
    source = open_journal(journal, make=False)
    try:
        if out is None:
            for piece in csv_pieces(source):
                sys.stdout.write(piece.replace("\r\n", "\n"))
            return
        with whole_file(out) as stream:
            if out.suffix == ".parquet":
                read(source).frame.to_parquet(stream)
            else:
                for piece in csv_pieces(source):
                    stream.write(piece.encode())
    finally:
        source.close()
    console.print(f"Written to {escape(str(out))}", soft_wrap=True)


@clear_errors
def verify_command(journal: JournalText) -> None:
    """Learn every lesson of a journal and choose every hold again.

        tailproof verify journals/shop.db

    It ends with exit code 1, and names them, if some holds would be chosen otherwise now: then the
    journal was changed by hand, or by another version. The journal may be in use.
    """
    from tailproof.live import open_journal
    from tailproof.live.fold import verify

    source = open_journal(journal, make=False)
    try:
        recipe = source.meta().get("recipe")
        require(recipe is not None, "journal", "one that an agent has used", journal)
        try:
            policy = recipes.build("policy", str(recipe))
        except ValueError:
            policy = None
        rule = "one that can be typed; for others there is Agent.verify in Python"
        require(repr(policy) == recipe, "the policy of the journal", rule, recipe)
        found = verify(policy, source)
    finally:
        source.close()
    console.print(escape(str(recipe)), soft_wrap=True, highlight=False)
    console.print(f"{found.holds} holds chosen again, {found.lessons} of them ended")
    if found.differing:
        shown = ", ".join(map(str, found.differing[:_SHOWN]))
        more = len(found.differing) - _SHOWN
        rest = f" and {more} more" if more > 0 else ""
        console.print(f"holds that differ: {shown}{rest}", soft_wrap=True, highlight=False)
    for after, same in found.snapshots.items():
        if not same:
            console.print(f"the snapshot after {after} lessons is not what they lead to")
    if not found.ok:
        raise typer.Exit(1)
    console.print("all as it was")


_SHOWN = 20


@clear_errors
def demo_command(
    port: Annotated[int, typer.Option(help="Where the page is; 0 for any that is free.")] = 0,
    seconds: Annotated[float | None, typer.Option(help="Stop by itself after so long.")] = None,
) -> None:
    """Start a service with simulated visitors, to look at: two minutes tell the story.

    Three looks of a button bring rewards with Cauchy noise, which have no mean. Rewards come up
    to two seconds late; every fifth never comes. Ctrl-C stops everything, and nothing is left.

        tailproof demo
    """
    from tailproof.live.demo import demo

    if seconds is not None:
        number("seconds", seconds, above=0)
    with console.status("starting") as status:
        demo(
            port=port,
            seconds=seconds,
            say=lambda text: console.print(text, soft_wrap=True, highlight=False),
            show=status.update,
        )
