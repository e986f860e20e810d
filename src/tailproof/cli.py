"""The command line: the library's own calls, typed."""

import csv
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Protocol

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

from tailproof import Filtered, MeanOfMedians, Result, recipes, simulate
from tailproof.checks import require, whole

__all__ = ["app"]

app = typer.Typer(
    help="Bandits whose rewards may have no mean.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


def _clear_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn refused input into one sentence and exit code 2, and Ctrl-C into exit code 130."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, OSError, MemoryError) as error:
            print(f"tailproof: {error}", file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            print("tailproof: stopped", file=sys.stderr)
            raise typer.Exit(130) from None

    return run


@app.command("simulate")
@_clear_errors
def simulate_command(
    policy: Annotated[
        list[str],
        typer.Option(help="A policy, as a name or a call: oful, 'oful(bonus=0.5)'. Repeatable."),
    ] = ["oful"],  # noqa: B006
    filter_pulls: Annotated[
        int | None,
        typer.Option("--filter", help="Also play each policy behind a filter of this many pulls."),
    ] = None,
    block: Annotated[
        int | None, typer.Option(help="Block length of that filter; ⌈√pulls⌉ if left out.")
    ] = None,
    noise: Annotated[
        str, typer.Option(help="The noise: cauchy, 'student_t(df=0.5)', 'stable(0.5)', …")
    ] = "cauchy",
    environment: Annotated[
        str,
        typer.Option(help="neutral, paper, 'neutral(fresh=False)', 'k_armed(locations=(0, 1))'."),
    ] = "neutral",
    horizon: Annotated[int, typer.Option(help="Pulls on each path.")] = 10_000,
    paths: Annotated[int, typer.Option(help="Independent paths.")] = 100,
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes; results do not depend on them.")] = 1,
    out: Annotated[Path | None, typer.Option(help="A new folder for the results.")] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Also draw regret.png there.")] = False,
) -> None:
    """Play policies against a noise and compare their regret.

    OFUL with and without a filter under Cauchy noise:

        tailproof simulate --policy oful --policy
        "filtered(oful(noise_scale=0.45), repeats=15, estimator=median)" --out trial --plot
    """
    policies: dict[str, Any] = {}
    for text in policy:
        require(text not in policies, "policy", "given only once", text)
        policies[text] = recipes.build("policy", text)
    if filter_pulls is not None:
        estimator = MeanOfMedians(block=block)
        policies |= {
            f"{name}, filtered": Filtered(recipe, repeats=filter_pulls, estimator=estimator)
            for name, recipe in policies.items()
        }
    else:
        require(block is None, "block", "given together with --filter", block)
    bandit = recipes.build("environment", environment, recipes.build("noise", noise))
    require(not plot or out is not None, "plot", "given together with --out", plot)

    with _claimed(out), _progress("simulating") as progress:
        result = simulate(
            policies,
            bandit,
            horizon=horizon,
            paths=paths,
            seed=seed,
            workers=workers,
            progress=progress,
        )
    if out is not None:
        result.save(out / "result.npz")
        _write_table({noise: result}, out / "table.csv")
        if plot:
            from tailproof.figures import regret_figure

            regret_figure({f"{environment}, {noise}": result}).savefig(out / "regret.png")
    _print_table({noise: result})
    if out is not None:
        console.print(f"Written to {escape(str(out))}", soft_wrap=True)


@app.command("reproduce")
@_clear_errors
def reproduce_command(
    figures: Annotated[
        list[str] | None,
        typer.Argument(help="Figures by number, or a warning by name (tailproof list); or all."),
    ] = None,
    size: Annotated[
        str, typer.Option(help="quick (minutes), paper (its number of paths), or smoke (a test).")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="The folder for results, pictures and report.")] = Path(
        "out/reproduce"
    ),
    engine: Annotated[
        str, typer.Option(help="serial, processes, dask or ray; results are the same.")
    ] = "processes",
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes; 0 means one for each core.")] = 0,
) -> None:
    """Reproduce the paper: every figure, every claim measured, one offline report.

    What is finished is kept: stop it at any time, type the same command, and it goes on.

        tailproof reproduce 2 7 --size paper --out trial
    """
    from tailproof.paper.reproduction import reproduce

    with _progress("reproducing") as progress:
        reproduce(
            figures or ["all"],
            out,
            size=size,
            seed=seed,
            engine=engine,
            workers=workers,
            progress=lambda name, done, total: progress(done, total, f"figure {name}"),
        )
    _report(out)


@app.command("report")
@_clear_errors
def report_command(
    out: Annotated[Path, typer.Argument(help="A folder written by tailproof reproduce.")],
) -> None:
    """Draw the pictures and the report again from results alone."""
    _report(out)


@app.command("compare")
@_clear_errors
def compare_command(
    paths: Annotated[int, typer.Option(help="Independent paths.")] = 10,
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes; 0 means one for each core.")] = 0,
) -> None:
    """Play the paper's figures 2 and 3 for df 3 and 1, and put the regrets beside a reference.

    The reference was computed independently, under the settings of the published curves.
    """
    from tailproof.paper import figure_2_3, references

    whole("paths", paths, at_least=2)
    table = Table(title=f"Regret after 10000 pulls, {paths} paths")
    for column in ("noise", "policy", "mean (s.d.)", "reference", "difference"):
        table.add_column(column, justify="left" if column in ("noise", "policy") else "right")
    for noise, reference in references.FIGURES_2_3.items():
        plan = figure_2_3.plan(float(noise.removeprefix("df = ")), paths=paths, seed=seed)
        with _progress(noise) as progress:
            result = simulate(**vars(plan), workers=_workers(workers), progress=progress)
        for row in references.compare(result, reference):
            table.add_row(
                noise,
                row.policy,
                f"{row.mean:.0f} ({row.deviation:.0f})",
                f"{row.reference:.0f}",
                f"{row.errors:+.1f} s.e.",
            )
        table.add_section()
    console.print(table)


@app.command("list")
@_clear_errors
def list_command() -> None:
    """Show what can be named: figures, policies, estimators, noises, environments."""
    from tailproof.paper import EXHIBITS

    table = Table(title="Names for reproduce, --policy, --noise and --environment")
    table.add_column("kind")
    table.add_column("name")
    table.add_column("what it is")
    for name, exhibit in EXHIBITS.items():
        table.add_row("figure", name, escape(exhibit.TITLE))
    for kind in ("policy", "estimator", "noise", "environment"):
        for name, thing in sorted(recipes.names(kind).items()):
            table.add_row(kind, name, escape((thing.__doc__ or "").split("\n", 1)[0]))
    console.print(table)


@app.command("calibrate")
@_clear_errors
def calibrate_command(
    file: Annotated[Path, typer.Argument(help="Recorded rewards: a CSV or a .parquet file.")],
    reward: Annotated[str, typer.Option(help="The column of the rewards.")],
    arm: Annotated[str | None, typer.Option(help="The column of the arms, if several.")] = None,
    pulls: Annotated[int | None, typer.Option(help="Pulls of each choice, if fixed.")] = None,
    block: Annotated[int | None, typer.Option(help="Block length, if fixed.")] = None,
    plot: Annotated[Path | None, typer.Option(help="A new file for a picture, .png.")] = None,
) -> None:
    """Say from recorded rewards whether a mean would do, and how long to hold each choice.

        tailproof calibrate rewards.csv --reward revenue --arm variant --plot choice.png

    No tail index is needed. Missing rewards are counted and left out.
    """
    from tailproof.stats.calibration import calibrate
    from tailproof.stats.reading import read_columns

    if plot is not None:
        require(not plot.exists(), "plot", "a file that does not exist yet", str(plot))
    rewards, arms = read_columns(file, reward, arm)
    found = calibrate(rewards=rewards, arms=arms, pulls=pulls, block=block)
    table = Table(title="One block of each length, beside the best")
    rows = found.table()
    for column in rows[0]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(f"{value:.4g}" for value in row.values()))
    console.print(table)
    console.print(escape(found.explain()))
    if plot is not None:
        found.plot().savefig(plot)
        console.print(f"Picture: {escape(str(plot))}", soft_wrap=True)


@app.command("identify")
@_clear_errors
def identify_command(
    policy: Annotated[
        list[str],
        typer.Option(help="A best-arm recipe: lin_gap_e, 'rage(offset=-1)'. Repeatable."),
    ] = ["lin_gap_e(norm_bound=2, ridge=0.1)"],  # noqa: B006
    block: Annotated[
        int | None,
        typer.Option(help="Also let each recipe decide behind medians of this many pulls."),
    ] = None,
    noise: Annotated[
        str, typer.Option(help="The noise: cauchy, 'student_t(df=0.5)', …")
    ] = "cauchy",
    environment: Annotated[
        str, typer.Option(help="near_tie, 'near_tie(angle=0.1)', 'k_armed(locations=(0, 1))'.")
    ] = "near_tie",
    delta: Annotated[
        float | None, typer.Option(help="δ for every recipe; its own if left out.")
    ] = None,
    paths: Annotated[int, typer.Option(help="Independent paths.")] = 200,
    max_pulls: Annotated[int, typer.Option(help="Pulls on each path at most.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A new folder for the results.")] = None,
) -> None:
    """Let recipes name the best arm, and count pulls and errors.

    LinGapE alone and behind medians of 41 pulls, under Cauchy noise:

        tailproof identify --policy "lin_gap_e(norm_bound=2, ridge=0.1)" --block 41
    """
    from tailproof import bestarm, identify

    law = recipes.build("noise", noise)
    policies: dict[str, Any] = {}
    for text in policy:
        require(text not in policies, "policy", "given only once", text)
        recipe = recipes.build("policy", text)
        if delta is not None:
            rule = "a best-arm recipe without a filter when --delta is given"
            require(isinstance(recipe, bestarm.FixedConfidence), "policy", rule, text)
            recipe = recipe.at(delta)
        policies[text] = recipe
    if block is not None:
        policies |= {
            f"{name}, filtered": bestarm.behind_filter(
                recipe, law, block=block, max_pulls=max_pulls
            )
            for name, recipe in policies.items()
        }
    bandit = recipes.build("environment", environment, law)
    with _claimed(out), _progress("identifying") as progress:
        found = identify(
            policies, bandit, paths=paths, max_pulls=max_pulls, seed=seed, progress=progress
        )
    table = Table(title=f"Naming the best arm, {environment}, {noise}, {paths} paths")
    table.add_column("policy", overflow="fold")
    for column in ("wrong (95 %)", "undecided", "mean pulls", "median"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, row in found.summary().items():
        table.add_row(
            escape(name),
            f"{row['error']:.1%} ({row['low']:.1%} – {row['high']:.1%})",
            f"{row['undecided']:.0f}",
            f"{row['mean_pulls']:.0f}",
            f"{row['median_pulls']:.0f}",
        )
    console.print(table)
    if out is not None:
        found.save(out / "identification.npz")
        console.print(f"Written to {escape(str(out))}", soft_wrap=True)


def _workers(asked: int) -> int:
    return whole("workers", asked, at_least=0) or os.cpu_count() or 1


@contextmanager
def _claimed(out: Path | None) -> Iterator[None]:
    """Make the new folder before the work, and take it back if the work fails."""
    if out is None:
        yield
        return
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        require(False, "out", "a folder that does not exist yet", str(out))
    try:
        yield
    except BaseException:
        out.rmdir()
        raise


def _report(out: Path) -> None:
    """Write the report, print the verdict on each claim, and say where to read more."""
    from tailproof.report import write_report

    table = Table(title="What holds")
    for column in ("figure", "what it shows", "verdict"):
        table.add_column(column)
    colours = {
        "holds": "green",
        "holds partly": "yellow",
        "does not hold": "red",
        "not decided": "dim",
    }
    for section in write_report(out):
        word = section.verdict
        table.add_row(section.name, section.exhibit.TITLE, f"[{colours[word]}]{word}[/]")
    console.print(table)
    console.print(f"Report: {escape(str(out / 'report.html'))}", soft_wrap=True)


class _Rate(ProgressColumn):
    """How much is done in a minute."""

    def render(self, task: Task) -> Text:
        """Show the rate once there is one."""
        return Text(f"{60 * task.speed:.3g} a minute" if task.speed else "", style="dim")


class _Step(Protocol):
    """Tells of progress: work done, work in all, and perhaps another name for it."""

    def __call__(self, done: int, total: int, task: str = ...) -> None: ...


@contextmanager
def _progress(first: str) -> Iterator[_Step]:
    """Show a bar on a terminal, nothing elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        shown = {first: bar.add_task(first, total=None)}

        def step(done: int, total: int, task: str = first) -> None:
            if task not in shown:
                for other in shown.values():
                    bar.update(other, visible=False)
                shown[task] = bar.add_task(task, total=total)
            bar.update(shown[task], completed=done, total=total)

        yield step


_COLUMNS = ("mean", "standard_error", "median", "low", "high", "decisions", "pulls")


def _write_table(results: Mapping[str, Result], file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["setting", "policy", *_COLUMNS])
        for setting, result in results.items():
            for name, row in result.summary().items():
                writer.writerow([setting, name, *(row[column] for column in _COLUMNS)])


def _print_table(results: Mapping[str, Result]) -> None:
    first = next(iter(results.values()))
    paths, pulls = first.settings["paths"], first.pulls[-1]
    table = Table(title=f"Cumulative regret after {pulls} pulls, {paths} paths")
    table.add_column("policy", overflow="fold")
    for column in ("mean ± s.e.", "median", "10–90 %", "decisions"):
        table.add_column(column, justify="right", no_wrap=True)
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
    console.print(table)
