"""The command that judges a log."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from tailproof.cli.options import (
    DecimalMark,
    FeatureNames,
    column_names,
    is_export,
    is_journal,
    read_export,
)
from tailproof.cli.output import console, empty_table, progress_bar, say_where

__all__ = ["COMMANDS"]


def judge_command(
    file: Annotated[
        str,
        typer.Argument(
            help="A log: CSV, compressed or not, Parquet, - for stdin, a journal (shop.db), or the "
            "CSV that `tailproof log` wrote of one."
        ),
    ],
    rule: Annotated[
        list[str],
        typer.Option(
            metavar="<rule>",
            help="always:ARM, even, 'A=0.7,B=0.3', 'group:mobile=B,desktop=A' or 'policy:ucb1', "
            "which learns from scratch. Repeatable.",
        ),
    ],
    aim: Annotated[
        str,
        typer.Option(
            help="median, 'quantile(0.9)', 'capped_mean(0.99)', mean, or location (symmetric)."
        ),
    ],
    arm: Annotated[str, typer.Option(help="Column of the arms.")] = "arm",
    reward: Annotated[str, typer.Option(help="Column of the rewards.")] = "reward",
    propensity: Annotated[
        str | None,
        typer.Option(
            help="Column of the probability of the chosen arm. Columns p:ARM are those of all. "
            "Without, they are estimated from counts, if arms were drawn at random."
        ),
    ] = None,
    features: FeatureNames = None,
    group: Annotated[str | None, typer.Option(help="Column of visitors' groups.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="Column of what was decided together, such as a visitor.")
    ] = None,
    control: Annotated[str | None, typer.Option(help="The arm to compare with.")] = None,
    costs: Annotated[bool, typer.Option("--costs", help="Smaller is better.")] = False,
    level: Annotated[float, typer.Option(help="Confidence of each interval.")] = 0.95,
    interval: Annotated[str, typer.Option(help="score, exact or anytime.")] = "score",
    cap: Annotated[str | None, typer.Option(help="Range of a capped mean, such as 0,500.")] = None,
    unknown: Annotated[str, typer.Option(help="Missing rewards: alike or worst.")] = "alike",
    silence: Annotated[
        float | None, typer.Option(help="The reward of a row that has none.")
    ] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="A bandit that learned made the log.")
    ] = False,
    floor: Annotated[
        float | None, typer.Option(help="The least propensity that an arm can have.")
    ] = None,
    decimal: DecimalMark = None,
    plot: Annotated[Path | None, typer.Option(help="A new file for a picture, .png.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Say what other rules would have earned on the traffic of a log, and how sure that is.

        tailproof judge log.csv --propensity p --rule always:B --aim 'capped_mean(0.99)'

    Every answer has a verdict: trust, beware or refused, with the reason.
    """
    from tailproof import judge, recipes
    from tailproof.checks import require
    from tailproof.judging import Location, Log
    from tailproof.results.files import whole_file

    if plot is not None:
        require(not plot.exists(), "plot", "a file that does not exist yet", str(plot))
    goal = Location() if aim.strip().lower() == "location" else recipes.build("aim", aim)
    facts: Any = {"silence": silence, "adaptive": adaptive or None, "floor": floor}
    if is_journal(file) or is_export(file):
        facts |= {} if group is None else {"group": group}
        facts |= {} if features is None else {"features": column_names(features)}
    if is_journal(file):
        from tailproof.live import read

        log = Log.of(read(file), **facts)
    elif is_export(file):
        log = Log.of(read_export(file), **facts)
    else:
        from tailproof.records import read_log

        columns: Any = {
            "arm": arm,
            "reward": reward,
            "propensity": propensity,
            "group": group,
            "unit": unit,
            "features": column_names(features),
            "decimal": decimal,
        }
        log = Log.of(**read_log(Path(file), **columns), **facts)
    rules = {text.replace("always:", "always "): _rule(text) for text in rule}
    chosen: Any = {"interval": interval, "unknown": unknown}
    with progress_bar("rules") as step:
        found = judge(
            log,
            rules,
            goal,
            control=control,
            level=level,
            cap=_range(cap),
            costs=costs,
            progress=step,
            **chosen,
        )
    if json:
        import json as encoder

        print(encoder.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        header, *rows = found.cells()
        table = empty_table(found.title, *header)
        for row in rows:
            table.add_row(*map(escape, row))
        console.print(table)
        for sentence in found.sentences():
            console.print(escape(sentence), highlight=False)
    if plot is not None:
        with whole_file(plot) as picture:
            found.plot().savefig(picture, format=plot.suffix[1:] or "png")
        if not json:
            say_where("Picture:", plot)


def _rule(text: str) -> Any:
    """Return the rule that a text describes.

    >>> _rule("always:B"), _rule("A=0.7,B=0.3"), _rule("group:mobile=B,desktop=A")
    ('always:B', {'A': 0.7, 'B': 0.3}, {'mobile': 'B', 'desktop': 'A'})
    """
    from tailproof import recipes

    kind, colon, rest = text.partition(":")
    if colon and kind == "policy":
        return recipes.build("policy", rest)
    if text == "even" or (colon and kind == "always"):
        return text
    pairs = [part.partition("=") for part in (rest if kind == "group" else text).split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError(
            f"rule must be always:ARM, even, 'A=0.7,B=0.3', 'group:NAME=ARM,…' or 'policy:…', "
            f"got {text!r}"
        )
    named = {name.strip(): value.strip() for name, _, value in pairs}
    if kind == "group" and colon:
        return named
    try:
        return {name: float(value) for name, value in named.items()}
    except ValueError:
        raise ValueError(f"rule {text!r} must give a probability to each arm") from None


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"cap must be two numbers, such as 0,500, got {text!r}") from None
    return low, high


COMMANDS = (judge_command,)
