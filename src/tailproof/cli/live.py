"""The commands of live use: a service, its journals, and a demonstration."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from tailproof.cli.output import console, progress_bar, say_where
from tailproof.cli.paper import redraw
from tailproof.cli.tables import compares_arms, reads_records
from tailproof.extras import import_extra

if TYPE_CHECKING:
    from tailproof.live import Journal, Verification
    from tailproof.live.config import Config
    from tailproof.service.experiments import Experiment
    from tailproof.stats.aims import Aim

__all__ = ["COMMANDS", "JOURNALS"]

JournalText = Annotated[
    str,
    typer.Argument(
        help="A SQLite file, 'postgresql://user@host/database#experiment', or a file shop.toml."
    ),
]
OfSeveral = Annotated[
    str | None, typer.Option(help="For a file with several experiments: its name.")
]
SettingsFile = Annotated[Path, typer.Argument(help="The settings, such as shop.toml.")]
ExperimentName = Annotated[str, typer.Argument(help="The name of an experiment in the file.")]
Reported = Annotated[
    str,
    typer.Argument(
        help="A journal: a SQLite file or 'postgresql://…#experiment'; a file shop.toml; a table "
        "as for tailproof calibrate; or a folder written by tailproof reproduce."
    ),
]
AimText = Annotated[
    str | None,
    typer.Option(help="For a journal: median, 'quantile(0.9)', 'capped_mean(0.99)' or mean."),
]


def serve_command(
    file: SettingsFile,
    address: Annotated[str | None, typer.Option(help="Address, instead of the file's.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port, instead of the file's; 0 for any free port.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that share address and journals.")] = 1,
) -> None:
    r"""Serve experiments over HTTP, with a page that shows how they go.

    A file shop.toml describes the experiments:

        \[service]
        journal = "journals"
        \[experiments.shop]
        recipe = "auto_filtered(ucb1(bonus=0.7))"
        arms = ["red", "blue"]
        wait = "2h"
        silence = "lost"
        explore = 0.05

    Then ask for an arm, and tell the reward that it brought:

        tailproof serve shop.toml

        curl localhost:8000/experiments/shop/ask --json '{"ticket": "v17"}'

        curl localhost:8000/experiments/shop/tell
        --json '{"ticket": "v17", "reward": 12.5}'

    Only this machine can reach it. To listen on another address, set TAILPROOF_TOKEN in the
    environment and send it with each request: Authorization: Bearer …
    """
    _import_server()
    from tailproof.service.server import serve

    def say(url: str, names: list[str]) -> None:
        console.print(f"{url} serves {', '.join(names)}", soft_wrap=True, highlight=False)

    serve(file, address=address, port=port, workers=workers, say=say)


def log_command(
    journal: JournalText,
    out: Annotated[
        Path | None, typer.Option(help="A new file, .csv or .parquet; by default CSV on stdout.")
    ] = None,
    experiment: OfSeveral = None,
    events: Annotated[
        bool, typer.Option("--events", help="Every reward that was told, instead of tickets.")
    ] = False,
) -> None:
    """Export a journal: each request with arm, propensities, reward, status and features.

        tailproof log journals/shop.db --out shop.parquet

    `tailproof judge` reads this file. With --events, each purchase and refund of a request is a
    row.

    The journal may be in use. In CSV, a name that a spreadsheet would take for a formula starts
    with an apostrophe.
    """
    from tailproof.checks import require
    from tailproof.live.export import csv_pieces

    if out is not None:
        require(out.suffix in (".csv", ".parquet"), "out", "a .csv or .parquet file", str(out))
        require(not out.exists(), "out", "a file that does not exist yet", str(out))
        if out.suffix == ".parquet":
            import_extra("pyarrow", "parquet", "writing Parquet")
    source = _journal(journal, experiment)
    try:
        if out is None:
            for piece in csv_pieces(source, events=events):
                sys.stdout.write(piece.replace("\r\n", "\n"))
            return
        _write_log(source, out, events=events)
    finally:
        source.close()
    say_where("Written to", out)


def _write_log(source: "Journal", out: Path, *, events: bool) -> None:
    """Write a journal, or its events, to a new file."""
    from tailproof.live import read
    from tailproof.live.export import csv_pieces
    from tailproof.results.files import whole_file

    with whole_file(out) as stream:
        if out.suffix == ".parquet":
            log = read(source)
            (log.events if events else log.frame).to_parquet(stream)
        else:
            for piece in csv_pieces(source, events=events):
                stream.write(piece.encode())


def verify_command(journal: JournalText, experiment: OfSeveral = None) -> None:
    """Check the outcomes of a journal, replay it, and check that decisions come out as recorded.

        tailproof verify journals/shop.db

    If some do not, it lists them and ends with exit code 1: the journal was changed by hand, or
    written by another version. The journal may be in use.
    """
    from tailproof.live.recipe import built
    from tailproof.live.verification import verify

    source = _journal(journal, experiment)
    try:
        recipes = source.recipes()
        if not recipes:
            raise ValueError("the journal is empty: no agent has used it yet")
        recipe = recipes[-1][1]
        if built(recipe) is None:
            raise ValueError(f"{recipe} cannot be built from its text; use Agent.verify in Python")
        with source.moment():
            verification = verify(source)
    finally:
        source.close()
    console.print(escape(recipe), soft_wrap=True, highlight=False)
    _say_checked(verification)
    if not verification.ok:
        raise typer.Exit(1)
    console.print("everything matches")


def _say_checked(verification: "Verification") -> None:
    """Print the result of a verification."""
    console.print(
        f"{verification.requests} requests decided again, {verification.outcomes} outcomes"
    )
    lists = {
        "requests that differ": [*map(str, verification.differing)],
        "changed": verification.changed,
    }
    for heading, some in lists.items():
        if some:
            shown, more = ", ".join(some[:_SHOWN]), len(some) - _SHOWN
            rest = f" and {more} more" if more > 0 else ""
            console.print(f"{heading}: {shown}{rest}", soft_wrap=True, highlight=False)
    for after, same in verification.snapshots.items():
        if not same:
            console.print(f"the snapshot after {after} updates differs from the replay")
    for text, reason in verification.unchecked.items():
        console.print(
            f"decisions of {escape(text)} were not checked: {escape(reason)}",
            soft_wrap=True,
            highlight=False,
        )
    if verification.since:
        console.print(f"checked since outcome {verification.since}, as earlier records were pruned")


_SHOWN = 20
"""How many differences a verification prints."""


@reads_records
def import_command(
    file: SettingsFile,
    experiment: ExperimentName,
    past: Annotated[
        str, typer.Argument(help="Past decisions: CSV, Parquet, Excel, or another journal.")
    ],
    as_is: Annotated[
        bool,
        typer.Option("--as-is", help="Learn every row, as choices did not depend on visitors."),
    ] = False,
    columns: Any = None,
) -> None:
    """Start warm: let an experiment learn past decisions.

        tailproof import shop.toml checkout past.csv --arm banner --reward revenue

    The rows become outcomes of the journal, all of them or none, and the policy learns them in the
    order of time. If propensities differ between rows of an arm, and the policy sees no features,
    rows are thinned to match visitors drawn at random.
    """
    from tailproof.live.history import import_history

    with _open_experiment(file, experiment) as opened, progress_bar("rows written") as step:
        imported = import_history(
            opened.agent,
            past,
            **columns,
            arms=None if opened.settings.arms is None else list(opened.settings.arms),
            as_is=as_is,
            source=Path(past).name if "://" not in past else "a PostgreSQL journal",
            progress=step,
        )
    for sentence in imported.sentences:
        console.print(escape(sentence), soft_wrap=True, highlight=False)
    console.print(f"{imported.learned} of {imported.rows} rows learned")


def change_command(file: SettingsFile, experiment: ExperimentName) -> None:
    """Let the recipe in the file, its policy and rules, take over the journal of an experiment.

        tailproof change shop.toml checkout

    The new policy learns every outcome so far. The journal keeps which recipe decided what, and
    verify checks the decisions of each. A service that runs meanwhile follows at its next request.
    """
    with _open_experiment(file, experiment, change=True) as opened:
        *_, (number, text, _, after, _) = opened.agent.journal.recipes()
    if not opened.agent.changed:
        console.print(f"{escape(text)} decides already", soft_wrap=True, highlight=False)
        return
    words = f"{escape(text)} decides from now on; it has learned {after} outcomes"
    console.print(f"recipe {number}: {words}", soft_wrap=True, highlight=False)


def prune_command(
    file: SettingsFile,
    experiment: ExperimentName,
    before: Annotated[str, typer.Option(help="A date such as 2026-01-01, or an age such as 90d.")],
    look: Annotated[
        bool, typer.Option("--look", help="Say which records would be removed; remove nothing.")
    ] = False,
) -> None:
    """Remove the records of requests that ended before a time, and keep the learned state.

        tailproof prune shop.toml checkout --before 90d

    Ticket ids, units, rewards and features go. It first names the statements that will no longer be
    possible; with --look it does nothing else. A note in the journal says what was removed. The
    service may run meanwhile.
    """
    from tailproof.live.retention import prune, pruning_notice
    from tailproof.service.page.counts import counted

    with _open_experiment(file, experiment) as opened:
        notice = pruning_notice(opened.agent, before, page=True)
        console.print(notice, soft_wrap=True, highlight=False)
        if look:
            return
        pruned = prune(opened.agent, before, page=counted(opened))
    if not pruned.outcomes:
        return
    console.print(
        f"removed {pruned.outcomes} outcomes with their requests and {pruned.events} events; "
        f"verify checks from outcome {pruned.since} on",
        soft_wrap=True,
        highlight=False,
    )


@contextmanager
def _open_experiment(file: Path, name: str, *, change: bool = False) -> "Iterator[Experiment]":
    """Open an experiment of a file."""
    from tailproof.checks import require
    from tailproof.live.config import load
    from tailproof.service.experiments import open_one

    config = load(file)
    names = ", ".join(config.experiments)
    require(name in config.experiments, "experiment", f"one of {names}, as in {file}", name)
    opened = open_one(config, config.experiments[name], change=change)
    try:
        yield opened
    finally:
        opened.agent.close()


@compares_arms
def report_command(
    file: Reported,
    aim: AimText = None,
    experiment: OfSeveral = None,
    out: Annotated[
        Path | None, typer.Option(help="A new file, .html; by default NAME.html here.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    columns: Any = None,
) -> None:
    """Write the page of an experiment as one file: did it pay, who leads, is the data sound.

        tailproof report journals/shop.db --aim 'capped_mean(0.99)'

        tailproof report shop.toml --experiment checkout --out checkout.html

        tailproof report sales.csv --arm variant --reward revenue

    The file needs no network, so it can be sent by mail. The journal may be in use. Of a folder
    that tailproof reproduce has written, the pictures and the report are drawn again.
    """
    from tailproof.checks import require

    require("://" in file or Path(file).exists(), "file", "one that exists", file)
    table = _is_table(file)
    if Path(file).is_dir() and not table:
        redraw(Path(file))
        return
    if columns and not table:
        raise ValueError(f"{', '.join(columns)}: options for tables only, and {file} is no table")
    out = out or Path(f"{_page_name(file, experiment)}.html")
    if not json and not force:
        require(not out.exists(), "out", "a new file (or use --force)", str(out))
    if table:
        said = _about_table(file, aim, columns | ({"experiment": experiment} if experiment else {}))
    else:
        said = _about_experiment(file, aim, experiment)
    _write_report(*said, None if json else out)


def _is_table(file: str) -> bool:
    """Return whether this is a file of rows, or a folder of Parquet."""
    from tailproof.tables.journals import is_journal

    place = Path(file)
    if place.is_dir():
        return any(place.rglob("*.parquet"))
    return place.is_file() and place.suffix != ".toml" and not is_journal(file)


def _page_name(file: str, experiment: str | None) -> str:
    """Return the default name of the page."""
    if "://" in file:
        return file.rpartition("#")[2]
    if not file.endswith(".toml"):
        return Path(file).name.partition(".")[0]
    return _experiment_name(_loaded(file), experiment)


def _about_table(
    file: str, aim: str | None, columns: dict[str, Any]
) -> tuple[dict[str, Any], str, str]:
    """Return the report of a table as data, as a page and as sentences."""
    from tailproof import calibrate, recipes
    from tailproof.advice.page import advice_page

    advice = calibrate(file, aim=None if aim is None else recipes.build("aim", aim), **columns)
    words = advice.explain()
    facts = {"name": Path(file).name, "arms": advice.table(), "words": words.split("\n")}
    return facts, advice_page(advice, Path(file).name), words


def _about_experiment(
    file: str, aim: str | None, experiment: str | None
) -> tuple[dict[str, Any], str, str]:
    """Return the report of an experiment as data, as a page and as sentences."""
    from tailproof.service.page.offline import offline_page, summarised

    source, name, goal = _reported(file, aim, experiment)
    try:
        facts = summarised(source, goal, name=name)
    finally:
        source.close()
    return facts, offline_page(facts), facts["pay"]["words"]


def _write_report(facts: dict[str, Any], page: str, words: str, out: Path | None) -> None:
    """Write a page to a file, or print its contents as JSON."""
    import json

    from tailproof.results.files import whole_file

    if out is None:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    with whole_file(out) as stream:
        stream.write(page.encode())
    console.print(escape(words), soft_wrap=True, highlight=False)
    say_where("Written to", out)


def _reported(file: str, aim: str | None, experiment: str | None) -> "tuple[Journal, str, Aim]":
    """Return the journal, the name and the aim."""
    from tailproof import recipes

    name = _page_name(file, experiment)
    if not file.endswith(".toml"):
        if aim is None:
            raise ValueError("--aim is required for a journal, such as --aim 'capped_mean(0.99)'")
        return _journal(file, None), name, recipes.build("aim", aim)
    settings = _loaded(file).experiments[name]
    goal = settings.aim if aim is None else recipes.build("aim", aim)
    return _journal(file, name), name, goal


def _journal(file: str, experiment: str | None) -> "Journal":
    """Open a journal, or the journal of an experiment of a file; it must exist."""
    from tailproof.live import open_journal
    from tailproof.service.experiments import journal_of

    if not file.endswith(".toml"):
        return open_journal(file, make=False)
    config = _loaded(file)
    return journal_of(config, _experiment_name(config, experiment), make=False)


def _loaded(file: str) -> "Config":
    from tailproof.live.config import load

    return load(Path(file))


def _experiment_name(config: "Config", experiment: str | None) -> str:
    """Return the name of an experiment of a file, which need not be given if it has one."""
    from tailproof.checks import require

    names = list(config.experiments)
    if experiment is None and len(names) == 1:
        return names[0]
    require(experiment in names, "--experiment", f"one of {', '.join(names)}", experiment)
    assert experiment is not None
    return experiment


def demo_command(
    port: Annotated[int, typer.Option(help="Port of the page; 0 for any free port.")] = 0,
    seconds: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
) -> None:
    """Start a service with simulated visitors, and watch it learn in two minutes.

    Three versions of a button bring rewards with Cauchy noise, which have no mean. A tenth of the
    visitors are the control group. Rewards come up to two seconds late, and one in five never
    comes. Ctrl-C stops it, and no file is left behind.

        tailproof demo
    """
    _import_server()
    from tailproof.checks import number
    from tailproof.cli.demo import demo

    if seconds is not None:
        number("seconds", seconds, above=0)
    with console.status("starting") as status:
        demo(
            port=port,
            seconds=seconds,
            say=lambda text: console.print(text, soft_wrap=True, highlight=False),
            show=status.update,
        )


COMMANDS = (serve_command, demo_command, report_command)
JOURNALS = (import_command, change_command, prune_command, log_command, verify_command)


def _import_server() -> None:
    """Import the packages of the service, or say how to install them."""
    for package in ("fastapi", "httpx", "prometheus_client", "uvicorn"):
        import_extra(package, "serve", "the service")
