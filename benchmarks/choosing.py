"""Every tool that docs/choosing.md names, in every set of the gauntlet: the tables of the docs.

``--play FOLDER`` plays the sets and keeps a score of each there: with 100 paths 2 to 9 minutes a
set on 16 cores. ``--write FOLDER`` writes docs/gauntlet.md, its picture, and the table in
docs/choosing.md from these scores, and nothing else, so that each figure has one source.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from timing import one_core

one_core()

from tailproof.formatting import brief
from tailproof.research.gauntlet import Score, problems, recommended, run

DOCS = Path(__file__).parents[1] / "docs"
SETS = {
    "report": ("report", "", None, "locations"),
    "worlds": ("worlds", "", None, "locations, assumptions broken"),
    "money": ("money", "money", True, "revenue"),
    "features": ("money", "money", False, "revenue, with features"),
    "shops": ("worlds", "money", None, "revenue, assumptions broken"),
    "moving": ("moving", "moving", None, "worlds that move"),
}
"""The problems of each part, their block, whether they are K-armed, and what the table says."""
STANDING = ("report", "worlds", "money", "shops")
START, END = "<!-- table of benchmarks/choosing.py -->", "<!-- end of the table -->"


def play(folder: Path, sets: list[str], size: str, jobs: int) -> None:
    """Play some sets, and keep a score of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sets:
        score = played(name, size, jobs)
        score.save(folder / f"{name}.npz")
        print("\n".join(table({name: score})), flush=True)


def played(name: str, size: str, jobs: int) -> Score:
    """Play a set, the longest problems first, so that no core waits for them at the end."""
    which, block, k_armed, _ = SETS[name]
    own = [problem for problem in problems(which) if problem.block == block]
    if k_armed is not None:
        own = [problem for problem in own if problem.k_armed == k_armed]
    tools = recommended(own)
    if all(problem.k_armed for problem in own):
        tools.pop("LinRevenueUCB", None)  # for features
    longest_first = sorted(own, key=lambda problem: -problem.horizon)
    score = run(tools, problems=longest_first, size=size, workers=jobs)
    return replace(score, regret={problem.name: score.regret[problem.name] for problem in own})


def table(scores: dict[str, Score]) -> list[str]:
    """Return a row for each tool in each set, as Markdown."""
    head = "| set | tool | problems | regret, median | over the best tool, median | worst | where |"
    lines = [f"{head} most paths lost | where |", "|---|---|---:|---:|---:|---:|---|---:|---|"]
    for name, score in scores.items():
        for tool, row in score.summary().items():
            lost = max((r for r in score.rows() if r.tool == tool), key=lambda r: r.stuck)
            cells = [
                SETS[name][3],
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
    scores = {name: Score.load(folder / f"{name}.npz") for name in SETS if _file(folder, name)}
    command = "python benchmarks/choosing.py --play out/choosing"
    pages = [
        score.to_markdown(command).replace("# The gauntlet", f"## {SETS[name][3].capitalize()}")
        for name, score in scores.items()
    ]
    (DOCS / "gauntlet.md").write_text("# The gauntlet\n\n" + "\n".join(pages), encoding="utf-8")
    scores["report"].plot().savefig(DOCS / "images" / "gauntlet.png")
    own = scores["report"].settings
    caption = (
        f"{own['paths']} paths, seed {own['seed']}, tailproof {own['versions']['tailproof']}, "
        f"`{command}`."
    )
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
    parser.add_argument("--sets", nargs="*", choices=SETS, default=STANDING)
    parser.add_argument("--size", choices=["smoke", "quick", "full"], default="full")
    parser.add_argument("--jobs", type=int, default=0, help="0 for all cores")
    given = parser.parse_args()
    if given.play:
        play(given.play, given.sets, given.size, given.jobs)
    if given.write:
        write(given.write)


if __name__ == "__main__":
    main()
