"""Plant small bugs, one at a time, and see whether the tests notice.

Every ``mutants/*.toml`` lists the bugs of a room, a part of the library::

    tests = ["tests/stats"]            # run for each bug, after the doctests of its file

    [[mutant]]
    file = "stats/theory.py"           # below src/tailproof
    old = "return 4 * x"               # found exactly once in the file
    new = "return 2 * x"
    tests = ["tests/stats/test_theory.py"]   # optional, in place of the room's tests
    equivalent = "why no test can notice"    # optional: it changes nothing that a test can see

Run ``python mutants/run.py [--room stats] [--workers 2]``. A mutant is caught if a test fails. The
command fails if a list does not fit the source, if the tests fail without a bug, if an equivalent
mutant is caught, or if any other survives.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

ROOT = Path(__file__).parents[1]
LIMIT = 900  # seconds; a mutant that hangs counts as caught


class Mutant(NamedTuple):
    """A small bug, and the tests that should notice it."""

    room: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str | None

    def __str__(self) -> str:
        change = f"{' '.join(self.old.split())} → {' '.join(self.new.split())}"
        return f"{self.file}: {change}"


def listed(room: str | None) -> list[Mutant]:
    """Return the mutants of a room, or of all rooms; stop if one does not fit the source."""
    found = []
    for path in sorted((ROOT / "mutants").glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        for row in data["mutant"] if room in (None, path.stem) else ():
            tests = tuple(row.get("tests", data["tests"]))
            mutant = Mutant(
                path.stem, row["file"], row["old"], row["new"], tests, row.get("equivalent")
            )
            times = (
                (ROOT / "src/tailproof" / mutant.file).read_text(encoding="utf-8").count(mutant.old)
            )
            if times != 1 or mutant.old == mutant.new:
                sys.exit(f"{path.name}: found {times} times, not once, in the source: {mutant}")
            found.append(mutant)
    return found


def caught(mutant: Mutant) -> bool:
    """Return whether a test fails in a copy of the source with this bug."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        file = source / "tailproof" / mutant.file
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        for tests in ([str(file)], list(mutant.tests)):  # doctests first: they take a second
            run = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider"]
            environment = os.environ | {
                "PYTHONPATH": str(source),
                "PYTHONDONTWRITEBYTECODE": "1",
                "OMP_NUM_THREADS": "1",
            }
            try:
                done = subprocess.run(
                    [*run, "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), *tests],
                    cwd=ROOT,
                    env=environment,
                    capture_output=True,
                    timeout=LIMIT,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return True
            if done.returncode not in (0, 5):  # 5: the file has no doctest
                return True
    return False


def main() -> None:
    """Run the mutants; print survivors, and equivalent mutants that were caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--room", help="a list below mutants, such as stats; all if left out")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    mutants, console = listed(arguments.room), Console()
    survivors = []
    controls = {mutant.tests: mutant._replace(new=mutant.old) for mutant in mutants}
    with ThreadPoolExecutor(arguments.workers) as pool, Progress(console=console) as bar:
        for control, noticed in zip(
            controls.values(), pool.map(caught, controls.values()), strict=True
        ):
            if noticed:
                sys.exit(f"these tests fail without any bug: {' '.join(control.tests)}")
        task = bar.add_task("mutants", total=len(mutants))
        for mutant, noticed in zip(mutants, pool.map(caught, mutants), strict=True):
            bar.advance(task)
            if not noticed:
                survivors.append(mutant)
            word = "caught" if noticed else "survived"
            if noticed == (mutant.equivalent is not None):
                bar.console.print(f"{word}: {mutant}", markup=False)
    equivalent = [mutant for mutant in mutants if mutant.equivalent is not None]
    real = [mutant for mutant in survivors if mutant.equivalent is None]
    console.print(
        f"{len(mutants) - len(equivalent)} mutants, {len(real)} survived; "
        f"{len(equivalent)} more are equivalent"
    )
    sys.exit(bool(real) or any(mutant not in survivors for mutant in equivalent))


if __name__ == "__main__":
    main()
