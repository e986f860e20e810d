"""Break one promise at a time, and see whether its test notices.

Every ``mutants/*.toml`` lists promises of a part of the library, each with a small bug that breaks
it::

    [[mutant]]
    promise = "Ties are broken fairly"              # its name, which occurs once
    target = "tailproof.policies.base:pick_largest"   # where the bug is: a module, or what is in it
    old = "lot = rng.random(len(index))"            # found once in the target; spaces do not count
    new = "lot = np.full(len(index), rng.random())"
    tests = ["tests/policies/test_basic_policies.py::test_ties_are_broken_fairly"]

Run ``python mutants/run.py [--part policies] [--changed main] [--workers 2]``; with ``--changed``,
only bugs in files that differ from a commit. A mutant is caught if one of its tests fails. The
command fails if a mutant does not apply, if its tests fail without it, or if it survives.
"""

import argparse
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import Progress

import tailproof

__all__ = ["Mutant", "listed", "main", "mutated"]

ROOT = Path(__file__).parents[1]
LIMIT = 900  # seconds; a mutant that hangs counts as caught


class Mutant(NamedTuple):
    """A promise, a small bug that breaks it, and the tests that should notice."""

    part: str
    promise: str
    target: str
    old: str
    new: str
    tests: tuple[str, ...]


def listed() -> list[Mutant]:
    """Return every mutant."""
    return [
        Mutant(part=path.stem, **row | {"tests": tuple(row["tests"])})
        for path in sorted((ROOT / "mutants").glob("*.toml"))
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    ]


def mutated(mutant: Mutant) -> tuple[Path, str]:
    """Return the file of a mutant, below the folder ``src``, and its text with the bug in it."""
    module, _, inside = mutant.target.partition(":")
    thing: Any = importlib.import_module(module)
    for name in inside.split(".") if inside else ():
        thing = inspect.getattr_static(thing, name)
        for function in ("fget", "func", "__func__"):  # of properties and class methods
            thing = getattr(thing, function, thing)
    file = Path(str(inspect.getsourcefile(inspect.unwrap(thing))))
    lines, first = inspect.getsourcelines(inspect.unwrap(thing))
    before = file.read_text(encoding="utf-8").splitlines(keepends=True)
    here = "".join(lines)
    pattern = r"\s+".join(re.escape(word) for word in mutant.old.split())
    changed, times = re.subn(pattern, lambda _: mutant.new.strip(), here)
    if times != 1 or changed == here:
        raise ValueError(f"{mutant.promise!r} is found {times} times, not once, in {mutant.target}")
    start = max(first - 1, 0)
    text = "".join([*before[:start], changed, *before[start + len(lines) :]])
    return file.relative_to(Path(str(tailproof.__file__)).parents[1]), text


def notice(tests: Sequence[str], file: Path | None = None, text: str = "") -> bool:
    """Return whether a test fails in a copy of the source, where a file may have another text."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if file is not None:
            (source / file).write_text(text, encoding="utf-8")
        run = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider"]
        own = {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                [*run, "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), *tests],
                cwd=ROOT,
                env=os.environ | own,
                capture_output=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
    if done.returncode not in (0, 1):  # 1: a test failed
        raise RuntimeError(f"pytest could not run {tests}: {done.stdout.decode()[-500:]}")
    return done.returncode == 1


def _differing(commit: str) -> set[Path]:
    """Return the files that differ from a commit, below the folder ``src``."""
    command = ["git", "diff", "--name-only", commit, "--", "src"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {Path(name).relative_to("src") for name in names.splitlines()}


def main() -> None:
    """Run the mutants; print those that survive."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--part", help="a list below mutants, such as statistics; all if left out")
    parser.add_argument("--changed", metavar="COMMIT", help="only in files that differ from it")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    mutants = [mutant for mutant in listed() if asked.part in (None, mutant.part)]
    planted = {mutant: mutated(mutant) for mutant in mutants}
    if asked.changed:
        files = _differing(asked.changed)
        planted = {mutant: what for mutant, what in planted.items() if what[0] in files}
    console, survivors = Console(), 0
    with ThreadPoolExecutor(asked.workers) as pool, Progress(console=console) as bar:
        controls = sorted({mutant.tests for mutant in planted})
        for tests, failed in zip(controls, pool.map(notice, controls), strict=True):
            if failed:
                sys.exit(f"these tests fail without any bug: {' '.join(tests)}")
        task = bar.add_task("mutants", total=len(planted))
        runs = pool.map(lambda item: notice(item[0].tests, *item[1]), planted.items())
        for mutant, noticed in zip(planted, runs, strict=True):
            bar.advance(task)
            if not noticed:
                survivors += 1
                bar.console.print(f"survived: {mutant.promise} ({mutant.target})", markup=False)
    console.print(f"{len(planted)} broken promises, {survivors} unnoticed")
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()
