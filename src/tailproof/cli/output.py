"""What a command shows: tables that lose no column, a bar, errors in one sentence."""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
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

from tailproof.results import Identification, Result

if TYPE_CHECKING:
    from tailproof.gauntlet import CheckedTarget, Score

__all__ = [
    "clear_errors",
    "console",
    "gauntlet_table",
    "identification_table",
    "progress_bar",
    "regret_table",
    "summary_table",
    "targets_table",
]

console = Console(emoji=False)


def clear_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn refused input into one sentence and exit code 2, and Ctrl-C into exit code 130."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, **__: _say(message)
                command(*args, **kwargs)
        except BrokenPipeError:  # whoever read the output has seen enough
            raise
        except (ValueError, ImportError, OSError, MemoryError) as error:
            _say(error)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            _say("stopped")
            raise typer.Exit(130) from None

    return run


def _say(message: object) -> None:
    print(f"tailproof: {message}", file=sys.stderr)


def regret_table(title: str, results: Mapping[str, Result]) -> Table:
    """Return the final regret of every policy, under the name of each result."""
    table = _table(title, "mean ± s.e.", "median", "10–90 %", "decisions")
    for setting, result in results.items():
        table.add_row(f"[bold]{escape(setting)}[/bold]")
        for name, row in result.summary().items():
            table.add_row(
                escape(name),
                f"{row['mean']:.1f} ± {row['standard_error']:.1f}",
                f"{row['median']:.1f}",
                f"{row['low']:.1f} – {row['high']:.1f}",
                f"{row['decisions']:.0f}",
            )
        table.add_section()
    return table


def identification_table(title: str, found: Identification) -> Table:
    """Return the errors and pulls of every policy."""
    table = _table(title, "wrong (95 %)", "undecided", "mean pulls", "median")
    for name, row in found.summary().items():
        table.add_row(
            escape(name),
            f"{row['error']:.1%} ({row['low']:.1%} – {row['high']:.1%})",
            f"{row['undecided']:.0f}",
            f"{row['mean_pulls']:.0f}",
            f"{row['median_pulls']:.0f}",
        )
    return table


def gauntlet_table(score: "Score") -> Table:
    """Return the regret over chance of every tool in every problem, in per cent."""
    size = f"{score.settings['paths']} paths, size {score.settings['size']}"
    table = _table(f"Regret over chance, per cent, {size}", *score.tools, first="problem")
    table.caption = "● per cent of paths stuck; – the tool does not fit the problem"
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


def summary_table(score: "Score") -> Table:
    """Return the ratios of each tool to the best, and in how many problems it gets stuck."""
    title = "Beside the best tool of each problem"
    table = _table(title, "problems", "median", "worst", "where", "stuck in", first="tool")
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


def targets_table(found: Sequence["CheckedTarget"]) -> Table:
    """Return what was found beside each target."""
    table = _table("Targets", "tool", "at most", "found", "", first="what")
    for judged in found:
        target = judged.target
        table.add_row(
            escape(target.text),
            escape(target.tool),
            f"{target.at_most:g}",
            f"{judged.value:.3g}",
            "[green]passed[/]" if judged.passed else "[red]missed[/]",
        )
    return table


def _table(title: str, *columns: str, first: str = "policy") -> Table:
    """Return a table of policies whose cells fold where a terminal is narrow."""
    table = Table(title=escape(title))
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(escape(column), justify="right", overflow="fold")
    return table


class _Rate(ProgressColumn):
    """How much is done in a minute."""

    def render(self, task: Task) -> Text:
        """Show the rate once there is one."""
        return Text(f"{60 * task.speed:.3g} a minute" if task.speed else "", style="dim")


class _Step(Protocol):
    """Tells of progress: work done, work in all, and perhaps another name for it."""

    def __call__(self, done: int, total: int, task: str = ...) -> None: ...


@contextmanager
def progress_bar(first: str) -> Iterator[_Step]:
    """Show a bar on a terminal, nothing elsewhere."""
    if not console.is_terminal:  # where a hidden bar of older versions of rich leaves a blank line
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
                for other in shown.values():
                    bar.update(other, visible=False)
                shown[task] = bar.add_task(task, total=total)
            bar.update(shown[task], completed=done, total=total)

        yield step
