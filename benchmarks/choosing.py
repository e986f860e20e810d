"""Every tool that docs/choosing.md names, in every set of the gauntlet: the tables of the docs.

``--play FOLDER`` plays the sets and keeps a score of each there, in about half an hour of one core.
Tools that have a compiled form are played as machine code. ``--write FOLDER`` writes
docs/gauntlet.md, its picture, and the table in docs/choosing.md from these scores, and nothing
else, so that each figure has one source.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from timing import one_core

one_core()

from tailproof.formatting import brief
from tailproof.policies import Policy
from tailproof.research.gauntlet import Score, problems, recommended, run

DOCS = Path(__file__).parents[1] / "docs"


class Part(NamedTuple):
    """Problems of the gauntlet that are shown in one table."""

    title: str
    problems: str
    block: str
    paths: int
    k_armed: bool | None = None
    """Whether its problems are K-armed; None where both kinds are played."""
    arrays: tuple[str, ...] = ()
    """The tools without a compiled form."""


MONEY = ("Capped(UCB1)",)
FEATURES = ("RevenueUCB", "LinRevenueUCB", "Capped(UCB1)", "LinStudentUCB")
PARTS = {
    "report": Part("locations", "report", "", 40),
    "worlds": Part("locations, assumptions broken", "worlds", "", 40),
    "money": Part("revenue", "money", "money", 50, True, MONEY),
    "features": Part("revenue, with features", "money", "money", 20, False, FEATURES),
    "shops": Part("revenue, assumptions broken", "worlds", "money", 50, None, MONEY),
    "moving": Part("worlds that move", "moving", "moving", 10, None, tuple(recommended("moving"))),
}
START, END = "<!-- table of benchmarks/choosing.py -->", "<!-- end of the table -->"


def play(folder: Path, parts: list[str], paths: int | None, size: str, jobs: int) -> None:
    """Play some parts, and keep a score of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in parts:
        part = PARTS[name] if paths is None else PARTS[name]._replace(paths=paths)
        score = played(part, size, jobs, folder / name)
        score.save(folder / f"{name}.npz")
        print("\n".join(table({name: score})), flush=True)


def played(part: Part, size: str, jobs: int, cells: Path) -> Score:
    """Play a part: compiled tools by machine code, the others by arrays of paths.

    What is finished is kept in the folder of cells, so that a run that was stopped goes on there.
    """
    own = [problem for problem in problems(part.problems) if problem.block == part.block]
    if part.k_armed is not None:
        own = [problem for problem in own if problem.k_armed == part.k_armed]
    tools = recommended(own)
    if all(problem.k_armed for problem in own):
        tools.pop("LinRevenueUCB", None)  # for features
    engines = {name: "processes" if name in part.arrays else "compiled" for name in tools}
    scores = [
        run(
            {name: tool for name, tool in tools.items() if engines[name] == engine},
            problems=own, size=size, paths=part.paths, out=cells, engine=engine, workers=jobs,
        )
        for engine in dict.fromkeys(engines.values())
    ]  # fmt: skip
    return joined(scores, tools)


def joined(scores: list[Score], tools: dict[str, Policy[Any]]) -> Score:
    """Return one score of all tools; random arms and the oracle are those of the first."""
    first = scores[0]
    regret = {
        problem: dict(item for score in reversed(scores) for item in score.regret[problem].items())
        for problem in first.problems
    }
    described = {name: repr(tool) for name, tool in tools.items()}
    return replace(first, regret=regret, settings={**first.settings, "tools": described})


def table(scores: dict[str, Score]) -> list[str]:
    """Return a row for each tool in each set, as Markdown."""
    head = "| set | paths | tool | problems | regret, median | over the best tool, median | worst |"
    lines = [
        f"{head} where | most paths lost | where |",
        "|---|---:|---|---:|---:|---:|---:|---|---:|---|",
    ]
    for name, score in scores.items():
        for tool, row in score.summary().items():
            lost = max((r for r in score.rows() if r.tool == tool), key=lambda r: r.stuck)
            cells = [
                PARTS[name].title,
                str(score.settings["paths"]),
                f"`{tool}`",
                str(row["problems"]),
                f"{brief(100 * row['over_chance'])} %",
                brief(row["median_over_best"]),
                brief(row["worst_over_best"]),
                row["worst_problem"],
                f"{100 * lost.stuck:.0f} %",
                lost.problem if lost.stuck else "–",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def write(folder: Path) -> None:
    """Write the pages from the scores of a folder."""
    scores = {name: Score.load(folder / f"{name}.npz") for name in PARTS if _file(folder, name)}
    command = "python benchmarks/choosing.py --play out/choosing"
    pages = [
        score.to_markdown(command).replace("# The gauntlet", f"## {PARTS[name].title.capitalize()}")
        for name, score in scores.items()
    ]
    (DOCS / "gauntlet.md").write_text("# The gauntlet\n\n" + "\n".join(pages), encoding="utf-8")
    scores["report"].plot().savefig(DOCS / "images" / "gauntlet.png")
    own = scores["report"].settings
    caption = f"Seed {own['seed']}, tailproof {own['versions']['tailproof']}, `{command}`."
    page = (DOCS / "choosing.md").read_text(encoding="utf-8")
    before, rest = page.split(START)
    after = rest.split(END)[1]
    lines = [before + START, *table(scores), "", caption, END + after]
    (DOCS / "choosing.md").write_text("\n".join(lines), encoding="utf-8")


def _file(folder: Path, name: str) -> bool:
    return (folder / f"{name}.npz").exists()


def main() -> None:
    """Play, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--play", type=Path, metavar="FOLDER")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--sets", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--paths", type=int, help="in place of those of each set")
    parser.add_argument("--size", choices=["smoke", "quick", "full"], default="full")
    parser.add_argument("--jobs", type=int, default=0, help="0 for all cores")
    given = parser.parse_args()
    if given.play:
        play(given.play, given.sets, given.paths, given.size, given.jobs)
    if given.write:
        write(given.write)


if __name__ == "__main__":
    main()
