"""The command that judges a log."""

import json as encoder
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from tailproof.cli.output import console, empty_table, progress_bar, say_where
from tailproof.cli.tables import Largest, Smallest, TableFile, reads_records

if TYPE_CHECKING:
    from tailproof.judging import Judgement

__all__ = ["COMMANDS"]

_RULE = (
    "always:ARM, even, 'A=0.7,B=0.3', 'group:mobile=B,desktop=A' or 'policy:ucb1', which learns "
    "from scratch. Repeatable."
)
_AIM = "median, 'quantile(0.9)', 'capped_mean(0.99)', mean, or location (symmetric)."


@reads_records
def judge_command(
    file: TableFile,
    rule: Annotated[list[str], typer.Option(metavar="<rule>", help=_RULE)],
    aim: Annotated[str, typer.Option(help=_AIM)],
    control: Annotated[str | None, typer.Option(help="The arm to compare with.")] = None,
    costs: Annotated[bool, typer.Option("--costs", help="Smaller is better.")] = False,
    level: Annotated[float, typer.Option(help="Confidence of each interval.")] = 0.95,
    interval: Annotated[str, typer.Option(help="score, exact or anytime.")] = "score",
    cap: Annotated[str | None, typer.Option(help="Range of a capped mean, such as 0,500.")] = None,
    largest: Largest = None,
    smallest: Smallest = None,
    unknown: Annotated[str, typer.Option(help="Missing rewards: alike or worst.")] = "alike",
    silence: Annotated[float | None, typer.Option(help="Reward of a row that has none.")] = None,
    adaptive: Annotated[bool, typer.Option("--adaptive", help="A bandit made the log.")] = False,
    floor: Annotated[float | None, typer.Option(help="The least propensity of an arm.")] = None,
    since: Annotated[str | None, typer.Option(help="Leave out rows before this date.")] = None,
    plot: Annotated[Path | None, typer.Option(help="A new file for a picture, .png.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    columns: Any = None,
) -> None:
    """Say what other rules would have earned on the traffic of a log, and how sure that is.

        tailproof judge log.csv --propensity p --rule always:B --aim 'capped_mean(0.99)'

    Every answer has a verdict: trust, beware or refused. Rows before an arm came are left out.
    """
    from tailproof.cli.saving import save_picture, unused

    unused("plot", plot)
    facts = {"silence": silence, "adaptive": adaptive or None, "floor": floor} | columns
    asked: Any = {"control": control, "costs": costs, "level": level, "interval": interval}
    asked |= {"unknown": unknown, "cap": _range(cap), "largest": largest, "since": since}
    judgement = _judged(file, rule, aim, asked | {"smallest": smallest}, facts)
    _print(judgement, json=json)
    if plot is not None:
        save_picture(judgement.plot(), plot)
        if not json:
            say_where("Picture:", plot)


def _judged(
    file: str, rule: list[str], aim: str, asked: Any, columns: dict[str, Any]
) -> "Judgement":
    from tailproof import judge, recipes
    from tailproof.tables import records

    goal = recipes.build("aim", aim)
    log = records(file, **columns)
    rules = {text.replace("always:", "always "): _rule(text) for text in rule}
    with progress_bar("rules") as step:
        return judge(log, rules, goal, progress=step, **asked)


def _print(judgement: "Judgement", *, json: bool) -> None:
    if json:
        print(encoder.dumps(judgement.to_dict(), indent=2, ensure_ascii=False))
        return
    header, *rows = judgement.cells()
    table = empty_table(judgement.title, *header)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    for sentence in judgement.sentences():
        console.print(escape(sentence), highlight=False)


def _rule(text: str) -> Any:
    """Return the rule that a text describes.

    >>> _rule("always:B"), _rule("A=0.7,B=0.3"), _rule("group:mobile=B,desktop=A")
    ('always:B', {'A': 0.7, 'B': 0.3}, {'mobile': 'B', 'desktop': 'A'})
    """
    from tailproof import recipes

    kind, colon, rest = text.partition(":")
    if colon and kind == "policy":
        return recipes.build("policy", rest, imports=True)
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
