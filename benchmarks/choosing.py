"""Every tool that docs/choosing.md names, in every set of the gauntlet: the tables of the docs.

``--play FOLDER`` plays the sets and keeps a score of each there: with the 100 paths of the full
size 2 to 9 minutes a set on 16 cores, with ``--paths 10`` about as long on one. A run that was
stopped goes on. ``--write FOLDER`` writes docs/gauntlet.md, its picture, and the table in
docs/choosing.md from these scores, and nothing else, so that each figure has one source.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

from timing import one_core

one_core()

from tailproof.formatting import brief
from tailproof.research.gauntlet import Score, problems, recommended, run

DOCS = Path(__file__).parents[1] / "docs"


class Part(NamedTuple):
    """Problems of the gauntlet that are shown in one table."""

    title: str
    problems: str
    block: str = ""
    k_armed: bool | None = None
    """Whether its problems are K-armed; None where both kinds are played."""


PARTS = {
    "report": Part("locations", "report"),
    "worlds": Part("locations, assumptions broken", "worlds"),
    "moving": Part("worlds that move", "moving", "moving"),
    "shops": Part("revenue, assumptions broken", "worlds", "money"),
    "features": Part("revenue, with features", "money", "money", k_armed=False),
    "money": Part("revenue", "money", "money", k_armed=True),
}
START, END = "<!-- table of benchmarks/choosing.py -->", "<!-- end of the table -->"


def play(folder: Path, parts: list[str], size: str, paths: int | None, jobs: int) -> None:
    """Play some parts, and keep a score of each, and what is finished of a part."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in parts:
        if _file(folder, name).exists():
            continue
        part = PARTS[name]
        own = [problem for problem in problems(part.problems) if problem.block == part.block]
        if part.k_armed is not None:
            own = [problem for problem in own if problem.k_armed == part.k_armed]
        tools = recommended(own)
        if all(problem.k_armed for problem in own):
            tools.pop("LinRevenueUCB", None)  # for features
        score = run(tools, problems=own, size=size, paths=paths, out=folder / name, workers=jobs)
        score.save(_file(folder, name))
        print("\n".join(table({name: score})), flush=True)


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
    files = {name: _file(folder, name) for name in PARTS}
    scores = {name: Score.load(file) for name, file in files.items() if file.exists()}
    command = "python benchmarks/choosing.py --play out/choosing"
    pages = []
    for name, score in scores.items():
        typed = f"{command} --sets {name} --paths {score.settings['paths']}"
        title = f"## {PARTS[name].title.capitalize()}"
        pages.append(score.to_markdown(typed).replace("# The gauntlet", title))
    (DOCS / "gauntlet.md").write_text("# The gauntlet\n\n" + "\n".join(pages), encoding="utf-8")
    if "report" in scores:
        scores["report"].plot().savefig(DOCS / "images" / "gauntlet.png")
    own = next(iter(scores.values())).settings
    made = f"{command} --paths {own['paths']}"
    caption = f"Seed {own['seed']}, tailproof {own['versions']['tailproof']}, `{made}`."
    page = (DOCS / "choosing.md").read_text(encoding="utf-8")
    before, rest = page.split(START)
    after = rest.split(END)[1]
    lines = [before + START, *table(scores), "", caption, END + after]
    (DOCS / "choosing.md").write_text("\n".join(lines), encoding="utf-8")


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.npz"


def main() -> None:
    """Play, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--play", type=Path, metavar="FOLDER")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--sets", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--paths", type=int, help="in place of those of the size")
    parser.add_argument("--size", choices=["smoke", "quick", "full"], default="full")
    parser.add_argument("--jobs", type=int, default=0, help="0 for all cores")
    given = parser.parse_args()
    if given.play:
        play(given.play, given.sets, given.size, given.paths, given.jobs)
    if given.write:
        write(given.write)


if __name__ == "__main__":
    main()
