"""RMM-UCB beside our tools on the K-armed problems of the gauntlet, as a table for the docs.

Run ``python benchmarks/successors.py [smoke|quick|full]``; quick takes ten minutes on one core.
"""

import sys
from typing import Any

from timing import one_core

one_core()

from tailproof import RMMUCB, LinStudentUCB, OrderStatisticUCB, Policy, gauntlet
from tailproof.research.gauntlet.problems import problems

TOOLS: dict[str, Policy[Any]] = {
    "RMMUCB": RMMUCB(),
    "MARS, `RMMUCB(blocks=1)`": RMMUCB(blocks=1),
    "OrderStatisticUCB": OrderStatisticUCB(),
    "LinStudentUCB": LinStudentUCB(),
}


def main() -> None:
    """Print the table."""
    size = sys.argv[1] if len(sys.argv) > 1 else "quick"
    names = [problem.name for problem in problems("report") if problem.k_armed]
    score = gauntlet.run(TOOLS, problems=names, size=size, workers=1)
    print(f"| problem | {' | '.join(TOOLS)} |\n|---|{'---|' * len(TOOLS)}")
    for name in names:
        cells = []
        for tool in TOOLS:
            row = score.row(name, tool)
            assert row is not None
            stuck = f", {row.stuck:.0%} stuck" if row.stuck else ""
            cells.append(f"{100 * row.over_chance:.3g}{stuck}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
