"""The command line: the library's own calls, typed."""

import io
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tailproof import (
    Filtered,
    MeanOfMedians,
    __version__,
    bestarm,
    identify,
    recipes,
    simulate,
)
from tailproof.checks import require, whole
from tailproof.cli.calibrate import calibrate_command
from tailproof.cli.live import demo_command, log_command, serve_command, verify_command
from tailproof.cli.output import (
    clear_errors,
    console,
    gauntlet_table,
    identification_table,
    progress_bar,
    regret_table,
    summary_table,
    targets_table,
)
from tailproof.cli.saving import prepared, write_table
from tailproof.simulation.plan import MOST_PULLS

__all__ = ["app", "main"]

app = typer.Typer(
    help="Bandits whose rewards may have no mean.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
NoiseText = Annotated[
    str, typer.Option(help="The noise: cauchy, 'student_t(df=0.5)', 'stable(0.5)', …")
]
Paths = Annotated[int, typer.Option(help="Independent paths.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Workers = Annotated[int, typer.Option(help="Processes; 0 means one for each core.")]
Engine = Annotated[str, typer.Option(help="serial, processes, dask or ray; results are the same.")]
Out = Annotated[
    Path | None,
    typer.Option(help="A new folder for the results; after a stop the same command goes on."),
]


def main() -> None:
    """Run the command; what a terminal cannot print becomes a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()


def _show_version(asked: bool) -> None:
    if asked:
        print(f"tailproof {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    pass


@app.command("simulate")
@clear_errors
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
    noise: NoiseText = "cauchy",
    environment: Annotated[
        str,
        typer.Option(help="neutral, orthant, 'neutral(fresh=false)', 'k_armed(locations=(0, 1))'."),
    ] = "neutral",
    horizon: Annotated[int, typer.Option(help="Pulls on each path.")] = 10_000,
    paths: Paths = 100,
    seed: Seed = 0,
    workers: Workers = 1,
    engine: Engine = "processes",
    out: Out = None,
    plot: Annotated[bool, typer.Option("--plot", help="Also draw regret.png there.")] = False,
) -> None:
    """Play policies against a noise and compare their regret.

    OFUL with and without a filter under Cauchy noise:

        tailproof simulate --policy oful --policy
        "filtered(oful(noise_scale=0.45), repeats=15, estimator=median)" --out trial --plot
    """
    policies = _recipes(policy)
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

    with prepared(out, "result.npz", "table.csv", "regret.png") as folder:
        with progress_bar("simulating") as progress:
            result = simulate(
                policies,
                bandit,
                horizon=horizon,
                paths=paths,
                seed=seed,
                workers=workers,
                engine=engine,
                out=folder and folder / "cells",
                progress=progress,
            )
        title = f"Cumulative regret after {horizon} pulls, {paths} paths"
        console.print(regret_table(title, {noise: result}))
        if folder is not None:
            result.save(folder / "result.npz")
            write_table({noise: result}, folder / "table.csv")
            if plot:
                from tailproof.figures import regret_figure

                regret_figure({f"{environment}, {noise}": result}).savefig(folder / "regret.png")
    _say_where("Written to", out)


@app.command("gauntlet")
@clear_errors
def gauntlet_command(
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy: lin_student_ucb, 'auto_filtered(ucb1)'. Repeatable."),
    ] = None,
    problems: Annotated[
        str, typer.Option(help="report, tuning, or names with commas between: fresh-t1,k5-t1.")
    ] = "report",
    size: Annotated[
        str, typer.Option(help="quick (minutes; few paths, at most 2000 pulls) or full.")
    ] = "quick",
    seed: Annotated[
        int | None, typer.Option(help="That of the set of problems if left out.")
    ] = None,
    workers: Workers = 0,
    engine: Engine = "processes",
    out: Out = None,
) -> None:
    """Put policies through the gauntlet: rewards with units, offsets, skew, zeros and outliers.

    Without --policy the tools that we recommend play. Regret is shown over that of random arms;
    a path is stuck if it still has a tenth of that in the second half. With --out there are also
    score.npz, gauntlet.md and a picture, gauntlet.png.

        tailproof gauntlet --policy lin_student_ucb --policy "auto_filtered(ucb1)" --out trial

    Choose settings on --problems tuning only: its problems and seed are not those reported.
    """
    from tailproof import gauntlet

    tools = _recipes(policy or [])
    with prepared(out, "score.npz", "gauntlet.md", "gauntlet.png") as folder:
        with progress_bar("running the gauntlet") as progress:
            score = gauntlet.run(
                tools or gauntlet.RECOMMENDED,
                problems=problems,
                size=size,
                seed=seed,
                workers=workers,
                engine=engine,
                out=folder and folder / "cells",
                progress=progress,
            )
        console.print(gauntlet_table(score))
        console.print(summary_table(score))
        if size == "full":
            console.print(targets_table(gauntlet.check_targets(score)))
        if folder is not None:
            score.save(folder / "score.npz")
            page = score.to_markdown(_typed(policy, problems, size, seed))
            (folder / "gauntlet.md").write_text(page, encoding="utf-8")
            score.plot().savefig(folder / "gauntlet.png")
    _say_where("Written to", out)


def _recipes(texts: list[str]) -> dict[str, Any]:
    """Return the policies that were typed, by their texts."""
    found: dict[str, Any] = {}
    for text in texts:
        require(text not in found, "policy", "given only once", text)
        found[text] = recipes.build("policy", text)
    return found


def _typed(policy: list[str] | None, problems: str, size: str, seed: int | None) -> str:
    """Return the command that makes a score."""
    words = ["tailproof", "gauntlet", "--problems", problems, "--size", size]
    for text in policy or []:
        words += ["--policy", text]
    return shlex.join(words if seed is None else [*words, "--seed", str(seed)])


@app.command("reproduce")
@clear_errors
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
    engine: Engine = "processes",
    seed: Seed = 0,
    workers: Workers = 0,
) -> None:
    """Reproduce the paper: every figure, every claim measured, one offline report.

    What is finished is kept: stop it at any time, type the same command, and it goes on.

        tailproof reproduce 2 7 --size paper --out trial
    """
    from tailproof.paper.reproduction import reproduce

    with progress_bar("reproducing") as progress:
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
@clear_errors
def report_command(
    out: Annotated[Path, typer.Argument(help="A folder written by tailproof reproduce.")],
) -> None:
    """Draw the pictures and the report again from results alone."""
    _report(out)


@app.command("compare")
@clear_errors
def compare_command(
    paths: Paths = 10,
    seed: Seed = 0,
    workers: Workers = 0,
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
        with progress_bar(noise) as progress:
            result = simulate(**vars(plan), workers=workers, progress=progress)
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
@clear_errors
def list_command() -> None:
    """Show what can be named: figures, policies, estimators, aims, noises, problems and more."""
    from tailproof.gauntlet import problems
    from tailproof.paper import EXHIBITS

    table = Table(title="Names for reproduce, --policy, --noise, --environment and --problems")
    table.add_column("kind")
    table.add_column("name")
    table.add_column("what it is")
    for name, exhibit in EXHIBITS.items():
        table.add_row("figure", name, escape(exhibit.TITLE))
    for kind in ("policy", "guest", "estimator", "aim", "noise", "environment"):
        for name, thing in sorted(recipes.names(kind).items()):
            table.add_row(kind, name, escape((thing.__doc__ or "").split("\n", 1)[0]))
    for which in ("report", "tuning"):
        for problem in problems(which):
            table.add_row("problem", problem.name, escape(problem.text))
    console.print(table)


app.command("calibrate")(calibrate_command)
app.command("serve")(serve_command)
app.command("log")(log_command)
app.command("verify")(verify_command)
app.command("demo")(demo_command)


@app.command("identify")
@clear_errors
def identify_command(
    policy: Annotated[
        list[str],
        typer.Option(help="A best-arm recipe: lin_gap_e, 'rage(offset=-1)'. Repeatable."),
    ] = ["lin_gap_e(norm_bound=2, ridge=0.1)"],  # noqa: B006
    block: Annotated[
        int | None,
        typer.Option(help="Also let each recipe decide behind medians of this many pulls."),
    ] = None,
    noise: NoiseText = "cauchy",
    environment: Annotated[
        str, typer.Option(help="near_tie, 'near_tie(angle=0.1)', 'k_armed(locations=(0, 1))'.")
    ] = "near_tie",
    delta: Annotated[
        float | None, typer.Option(help="δ for every recipe; its own if left out.")
    ] = None,
    paths: Paths = 200,
    max_pulls: Annotated[int, typer.Option(help="Pulls on each path at most.")] = 100_000,
    seed: Seed = 0,
    workers: Workers = 1,
    engine: Engine = "processes",
    out: Out = None,
) -> None:
    """Let recipes name the best arm, and count pulls and errors.

    LinGapE alone and behind medians of 41 pulls, under Cauchy noise:

        tailproof identify --policy "lin_gap_e(norm_bound=2, ridge=0.1)" --block 41
    """
    whole("max_pulls", max_pulls, at_most=MOST_PULLS)
    law = recipes.build("noise", noise)
    policies = _recipes(policy)
    if delta is not None:
        rule = "a best-arm recipe without a filter when --delta is given"
        for text, recipe in policies.items():
            require(isinstance(recipe, bestarm.FixedConfidence), "policy", rule, text)
            policies[text] = recipe.at(delta)
    if block is not None:
        policies |= {
            f"{name}, filtered": bestarm.behind_filter(
                recipe, law, block=block, max_pulls=max_pulls
            )
            for name, recipe in policies.items()
        }
    bandit = recipes.build("environment", environment, law)
    with prepared(out, "identification.npz") as folder:
        with progress_bar("identifying") as progress:
            found = identify(
                policies,
                bandit,
                paths=paths,
                max_pulls=max_pulls,
                seed=seed,
                workers=workers,
                engine=engine,
                out=folder and folder / "cells",
                progress=progress,
            )
        title = f"Naming the best arm, {environment}, {noise}, {paths} paths"
        console.print(identification_table(title, found))
        if folder is not None:
            found.save(folder / "identification.npz")
    _say_where("Written to", out)


def _say_where(words: str, place: Path | None) -> None:
    if place is not None:
        console.print(f"{words} {escape(str(place))}", soft_wrap=True)


def _report(out: Path) -> None:
    """Write the report, print the verdict on each claim, and say where to read more."""
    from tailproof.report import write_report

    table = Table(title="What holds")
    for column in ("figure", "claim", "verdict"):
        table.add_column(column)
    colours = {"holds": "green", "mixed": "yellow", "does not hold": "red", "open": "dim"}
    for section in write_report(out):
        for found in section.claims:
            word = found.verdict
            table.add_row(section.name, escape(found.claim.text), f"[{colours[word]}]{word}[/]")
        table.add_section()
    console.print(table)
    _say_where("Report:", out / "report.html")
