"""The commands that reproduce the paper."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailproof.cli.options import Engine, Paths, PolicyTexts, Seed, Workers, typed_policies
from tailproof.cli.output import console, empty_table, progress_bar, say_where

__all__ = ["COMMANDS", "redraw"]

FigureNames = Annotated[
    list[str] | None,
    typer.Argument(help="Figures by number or name, see tailproof list --kind figures; or all."),
]
Size = Annotated[
    str,
    typer.Option(help="quick (minutes), paper (as many paths as the paper) or smoke (a test)."),
]
ReportFolder = Annotated[Path, typer.Option(help="Folder for results, pictures and report.")]


def reproduce_command(
    figures: FigureNames = None,
    size: Size = "quick",
    out: ReportFolder = Path("out/reproduce"),
    policy: PolicyTexts = [],  # noqa: B006
    engine: Engine = "processes",
    seed: Seed = 0,
    workers: Workers = 0,
) -> None:
    """Reproduce the paper: draw every figure, measure every claim, write one offline report.

    Finished work is kept: if stopped, the same command continues. Policies of your own are drawn in
    the figures overview, 2-3 and decision-set.

        tailproof reproduce 2 7 --size paper --out trial
    """
    from tailproof.research.paper import COMPARING
    from tailproof.research.paper.reproduction import reproduce

    policies = typed_policies(policy)
    with progress_bar("reproducing") as progress:
        reproduce(
            figures or (COMPARING if policies else ["all"]),
            out,
            size=size,
            seed=seed,
            engine=engine,
            workers=workers,
            policies=policies,
            progress=lambda name, done, total: progress(done, total, f"figure {name}"),
        )
    redraw(out)


def redraw(out: Path) -> None:
    """Draw the pictures and write the report again, from saved results."""
    from tailproof.research.report import decided, write_report

    table = empty_table("What holds", "figure", "claim", "verdict", left=3)
    colours = {"holds": "green", "mixed": "yellow", "does not hold": "red", "open": "dim"}
    sections = write_report(out)
    for section in sections:
        for judged in section.claims:
            word, caveat = judged.verdict, f", {judged.caveat}" if judged.caveat else ""
            told = f"[{colours[word]}]{word}[/]{caveat}"
            table.add_row(section.name, escape(judged.claim.text), told)
        table.add_section()
    console.print(table)
    console.print(decided(sections), soft_wrap=True, highlight=False)
    say_where("Report:", out / "report.html")


def compare_command(paths: Paths = 10, seed: Seed = 0, workers: Workers = 0) -> None:
    """Simulate the paper's figures 2 and 3 for df 3 and 1, and compare with a reference.

    The reference was computed independently, with the settings of the published curves.
    """
    from tailproof.checks import whole
    from tailproof.research.paper import figure_2_3, references
    from tailproof.simulation.sweeps import sweep

    whole("paths", paths, at_least=2)
    columns = ("noise", "policy", "mean (s.d.)", "reference", "difference")
    table = empty_table(f"Regret after 10000 pulls, {paths} paths", *columns, left=2)
    for noise, reference in references.FIGURES_2_3.items():
        plan = figure_2_3.plan(float(noise.removeprefix("df = ")), paths=paths, seed=seed)
        with progress_bar(noise) as progress:
            result = sweep({"": plan}, out=None, workers=workers, progress=progress)[""]
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


COMMANDS = (reproduce_command, compare_command)
