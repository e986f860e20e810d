"""Every statement in every world: how often it is wrong where other people's shops break its rules.

Run with ``make bench-worlds``; ``--runs`` sets the runs of a cell, ``--jobs`` the processes, and
``--only file,live`` the parts. Each chunk of runs is written to ``--out`` when it is done, so a run
that was stopped goes on where it was, and ``--show`` prints what is there. Seeds are fixed. Rates
come with their exact 99 % bounds (Clopper and Pearson).

A cell *holds* if its rate is at most 5 %, is MISSED if the bounds exclude 5 %, and open otherwise.
Where an assumption is broken on purpose, the row names the words that tell the user, and how often
they are said.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # for timing.py

from timing import one_core, start_table

one_core()

import argparse
import json
import math
import re
import time

import joblib
import numpy as np
from rich.console import Console
from rich.progress import track
from world_bars import bar_lines, bounds
from world_calls import CELLS as CALLS
from world_cells import SEED, Cell, Events
from world_rules import CELLS as RULES

import tailproof

CELLS = RULES | CALLS
CHUNK = 25
"""Runs of a cell that a process makes at a time."""


def chunk_of(part: str, name: str, chunk: int, runs: int, out: Path) -> None:
    """Run a chunk of a cell and write its events."""
    (cell,) = (cell for cell in all_cells() if (cell.part, cell.name) == (part, name))
    start = time.process_time()
    found = cell.run(np.random.default_rng([SEED, *f"{part} {name}".encode(), chunk]), runs)
    found["seconds"] = math.ceil(time.process_time() - start)
    place = file_of(out, part, name, chunk, runs)
    written = place.with_suffix(".part")
    written.write_text(json.dumps({key: int(n) for key, n in found.items()}))
    written.rename(place)


def file_of(out: Path, part: str, name: str, chunk: int, runs: int) -> Path:
    """Return where a chunk's events are written."""
    return out / f"{part} {re.sub('[^a-zA-Z0-9]+', '-', name)}-{chunk:03}-{runs}.json"


def all_cells() -> list[Cell]:
    return [cell for cells in CELLS.values() for cell in cells()]


_PAGE = """# How often statements are wrong, world by world

[What can make us wrong](worlds.md) says what these tables show in detail. `make bench-worlds` makes
them; `python benchmarks/validate/worlds.py --show --page docs/world-tables.md` writes this page.
Do not edit it. Version {version}, seed {seed}.

A rate has a 99 % interval (Clopper and Pearson 1934). *Holds* is a rate within its target, *open*
one above it whose interval contains the target.

```text
{bars}
```

{table}
"""


def verdict(cell: Cell, events: Events) -> str:
    """Return whether a cell holds."""
    hits, runs = events[cell.counted], events["runs"]
    if cell.most == -math.inf:
        return ""
    low, high = bounds(hits, runs)
    if cell.most < 0:
        return "holds" if hits >= -cell.most * runs else "MISSED" if high < -cell.most else "open"
    return "holds" if hits <= cell.most * runs else "MISSED" if low > cell.most else "open"


def show(
    cells: list[Cell], chunks: list[tuple[int, int]], out: Path, style: str, page: Path | None
) -> None:
    """Print the table of what is there, and the bars; both are in the folder, too."""
    rows, measured = [], []
    for cell in cells:
        events = Events()
        for place in (file_of(out, cell.part, cell.name, *chunk) for chunk in chunks):
            if place.exists():
                events.update(json.loads(place.read_text()))
        if not events["runs"]:
            continue
        measured.append((cell, events))
        low, high = bounds(events[cell.counted], events["runs"])
        shown = f"{events[cell.counted] / events['runs']:.1%} ({low:.1%} – {high:.1%})"
        rows.append([cell.part, cell.name, str(events["runs"]), cell.counted, shown, target(cell)])
        rows[-1] += [verdict(cell, events), others(cell, events)]
    header = ["part", "what", "runs", "event", "rate (99 %)", "target", "verdict", "beside it"]
    lines = [header, ["---"] * len(header), *rows]
    markdown = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    bars = "\n".join(bar_lines(measured))
    (out / "table.md").write_text(f"{markdown}\n", encoding="utf-8")
    (out / "bars.txt").write_text(f"{bars}\n", encoding="utf-8")
    if page is not None:
        page.write_text(
            _PAGE.format(version=tailproof.__version__, seed=SEED, bars=bars, table=markdown)
        )
    if style == "table":
        table = start_table("Statements in worlds that break their rules", *header)
        for row in rows:
            table.add_row(*row)
        Console(width=170).print(table)
    elif style == "markdown":
        print(markdown)
    else:
        for part, name, runs, event, shown, _, held, *_ in rows:
            print(f"{part} {name[:52]}: {event} {shown} {runs} {held}")
    print(bars)


def target(cell: Cell) -> str:
    if cell.most == -math.inf:
        return ""
    return f"≤ {cell.most:.0%}" if cell.most >= 0 else f"≥ {-cell.most:.0%}"


def others(cell: Cell, events: Events) -> str:
    """Return the rates of the other events of a cell, and the words that tell the user."""
    found = []
    for name, hits in sorted(events.items()):
        if name in ("runs", "seconds", cell.counted) or name.endswith(" of"):
            continue
        of = events.get(f"{name} of", events["runs"])
        found.append(f"{name} {hits / max(of, 1):.1%}")
    words = [f"“{cell.words}”"] if cell.words else []
    return "; ".join([*found, *words])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="runs of each cell")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", default=",".join(CELLS), help="parts, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("out/worlds"), help="a folder of results")
    parser.add_argument("--show", action="store_true", help="only print what is there")
    styles = "table", "markdown", "lines"
    parser.add_argument("--style", choices=styles, default="table", help="how the table is printed")
    parser.add_argument("--page", type=Path, help="a page of the documentation to write")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    parts = asked.only.split(",")  # in the order in which they are made
    cells = [cell for part in parts for cell in all_cells() if cell.part == part]
    chunks = [(at // CHUNK, min(CHUNK, asked.runs - at)) for at in range(0, asked.runs, CHUNK)]
    jobs = [(cell.part, cell.name, *chunk, asked.out) for cell in cells for chunk in chunks]
    if not asked.show:
        todo = [job for job in jobs if not file_of(job[4], *job[:4]).exists()]
        done = joblib.Parallel(n_jobs=asked.jobs, return_as="generator_unordered")(
            joblib.delayed(chunk_of)(*job) for job in todo
        )
        list(track(done, "worlds", len(todo), console=Console(stderr=True), transient=True))
    show(cells, chunks, asked.out, asked.style, asked.page)


if __name__ == "__main__":
    main()
