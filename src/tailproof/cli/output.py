"""What commands print: tables that lose no column, a progress bar, errors in one sentence."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from tailproof.formatting import plus_minus, short

if TYPE_CHECKING:
    from tailproof.research.gauntlet import Block, CheckedTarget, Score
    from tailproof.results import Identification, Result

__all__ = [
    "ReportProgress",
    "clear_errors",
    "console",
    "empty_table",
    "identification_table",
    "progress_bar",
    "regret_table",
    "say_where",
    "score_tables",
]

console = Console(emoji=False)


def clear_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an error into one sentence and exit code 2, and Ctrl-C into exit code 130."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, **__: _say(message)
                command(*args, **kwargs)
        except BrokenPipeError:  # the reader, such as head, has seen enough
            raise
        except (ValueError, ImportError, OSError, MemoryError) as error:
            _say(error)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            _say("stopped")
            raise typer.Exit(130) from None

    return run


def _say(message: object) -> None:
    if isinstance(message, OSError) and message.strerror:
        where = "" if message.filename is None else f"{message.filename}: "
        message = where + message.strerror
    print(f"tailproof: {message}", file=sys.stderr)


def say_where(label: str, path: Path) -> None:
    """Print where something was written, on one line."""
    console.print(f"{label} {escape(str(path))}", soft_wrap=True)


def empty_table(title: str, *columns: str, left: int = 1) -> Table:
    """Return a table that folds in narrow terminals; `left` columns are aligned to the left."""
    table = Table(title=escape(title))
    for number, column in enumerate(columns):
        justify: Any = "left" if number < left else "right"
        table.add_column(escape(column), justify=justify, overflow="fold")
    return table


def regret_table(title: str, setting: str, result: "Result") -> Table:
    """Return the final regret of every policy."""
    metrics = {
        name: None
        for curves in result.curves.values()
        for name, array in curves.metrics.items()
        if array.ndim == 2
    }
    columns = ("policy", "mean ± s.e.", "median", "10–90 %", "decisions")
    table = empty_table(title, *columns, *(name.replace("_", " ") for name in metrics))
    table.add_row(f"[bold]{escape(setting)}[/bold]")
    for name, row in result.summary().items():
        values = result.curves[name].metrics
        table.add_row(
            escape(name),
            plus_minus(f"{row['mean']:.1f}", f"{row['standard_error']:.1f}"),
            f"{row['median']:.1f}",
            f"{row['low']:.1f} – {row['high']:.1f}",
            f"{row['decisions']:.0f}",
            *(short(float(values[metric][:, -1].mean())) for metric in metrics),
        )
    return table


def identification_table(title: str, result: "Identification") -> Table:
    """Return how often every policy was wrong, and its pulls."""
    table = empty_table(title, "policy", "wrong (95 %)", "undecided", "mean pulls", "median")
    for name, row in result.summary().items():
        table.add_row(
            escape(name),
            f"{row['error']:.1%} ({row['low']:.1%} – {row['high']:.1%})",
            f"{row['undecided']:.0f}",
            f"{row['mean_pulls']:.0f}",
            f"{row['median_pulls']:.0f}",
        )
    return table


def score_tables(score: "Score") -> Iterator[Table]:
    """Return the tables of a score: every problem, a summary of each block, and the targets."""
    from tailproof.research.gauntlet import check_targets

    yield _gauntlet_table(score)
    for block, part in score.parts().items():
        yield _summary_table(part, block)
    if score.settings["size"] == "full":
        yield _targets_table(check_targets(score))


def _gauntlet_table(score: "Score") -> Table:
    """Return every tool's regret in every problem, in per cent of random arms."""
    size = f"{score.settings['paths']} paths, size {score.settings['size']}"
    table = empty_table(f"Regret in % of random arms, {size}", "problem", *score.tools)
    table.caption = "● per cent of paths stuck or lost; – the tool cannot play the problem"
    for problem in score.problems:
        cells = []
        for tool in score.tools:
            row = score.row(problem, tool)
            if row is None:
                cells.append("–")
            else:
                stuck = f" [red]●{100 * row.stuck:.0f}[/]" if row.stuck else ""
                cells.append(f"{100 * row.over_chance:.3g}{stuck}")
        table.add_row(escape(problem), *cells)
    return table


def _summary_table(score: "Score", block: "Block") -> Table:
    """Return the regret of each tool relative to the best tool, and where it gets stuck."""
    title = f"{block.title}: regret relative to the best tool of each problem"
    columns = ("tool", "problems", "median", "worst", "where", f"{block.word} in")
    table = empty_table(title, *columns)
    for tool, row in score.summary().items():
        table.add_row(
            escape(tool),
            str(row["problems"]),
            f"{row['median_over_best']:.2f}",
            f"{row['worst_over_best']:.3g}",
            escape(row["worst_problem"]),
            str(len(row["stuck"])),
        )
    return table


def _targets_table(targets: Sequence["CheckedTarget"]) -> Table:
    """Return each target with the measured value and whether it is met."""
    table = empty_table("Targets", "what", "tool", "at most", "found", "")
    for checked in targets:
        target = checked.target
        table.add_row(
            escape(target.text),
            escape(target.tool),
            f"{target.at_most:g}",
            f"{checked.value:.3g}",
            "[green]passed[/]" if checked.passed else "[red]missed[/]",
        )
    return table


class _Rate(ProgressColumn):
    """Steps per minute."""

    def render(self, task: Task) -> Text:
        """Show the rate once it is known."""
        return Text(f"{60 * task.speed:.3g} a minute" if task.speed else "", style="dim")


class ReportProgress(Protocol):
    """Reports progress: steps done, steps in all, and the name of a new task."""

    def __call__(self, done: int, total: int, task: str = ...) -> None:
        """Show it."""


@contextmanager
def progress_bar(first: str) -> Iterator[ReportProgress]:
    """Show a progress bar on a terminal, and nothing elsewhere."""
    if not console.is_terminal:  # even a hidden bar leaves a blank line in older versions of rich
        yield lambda done, total, task=first: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        shown = {first: bar.add_task(first, total=None)}

        def step(done: int, total: int, task: str = first) -> None:
            if task not in shown:
                for earlier in shown.values():
                    bar.update(earlier, visible=False)
                shown[task] = bar.add_task(task, total=total)
            bar.update(shown[task], completed=done, total=total)

        yield step
