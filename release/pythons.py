"""Test the wheel with every Python that is here, each in an environment of its own.

``python release/pythons.py``; ``--core`` runs the tests of the statistics and algorithms only, and
``--skip 3.11`` leaves a version out. PYTHONS="/a/python3.13 /b/python3.14" names the interpreters.
Everything lands in out/pythons.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from interpreters import found, wanted

OUT = Path("out/pythons")
PAGES = ("README.md", "CONTRIBUTING.md", "docs/guests.md", "docs/how-to", "docs/reference")
SUITE = ("--pyargs", "tailproof", "tests", *PAGES)
ROOMS = ("policies", "wrappers", "bestarm", "stats", "noise", "simulation")
CORE = (
    *(f"tests/{room}" for room in ROOMS),
    "tests/testing/test_contract.py",
    "tests/advice/test_advice.py",
)


def main() -> int:
    """Test every version, and print a line for each; the exit code says whether all passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", action="store_true", help="without live use, service and pages")
    parser.add_argument("--skip", action="append", default=[], help="a version to leave out")
    options = parser.parse_args()
    pythons, lines, passed = found(), [], True
    shutil.rmtree(OUT, ignore_errors=True)
    wheel = built()
    versions = sorted({*wanted(), *pythons} - {*options.skip}, key=lambda text: int(text[2:]))
    for version in versions:
        if version in pythons:
            ok, line = tested(pythons[version], OUT / version, wheel, core=options.core)
            passed &= ok
        else:
            line = "not tested: there is no such interpreter on the PATH, in pyenv or in PYTHONS"
        lines.append(f"{version:6} {line}")
        print(lines[-1], flush=True)
    print("\n".join(["", f"{wheel.name}:", *lines]))
    return 0 if passed else 1


def built() -> Path:
    """Return the wheel of this tree."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--wheel-dir", OUT, "."], check=True)
    (wheel,) = OUT.glob("*.whl")
    return wheel


def tested(python: str, place: Path, wheel: Path, *, core: bool) -> tuple[bool, str]:
    """Return whether the tests pass with an interpreter, and a line about them."""
    start = time.monotonic()
    subprocess.run([python, "-m", "venv", place / "env"], check=True)
    own = str((place / "env" / "bin" / "python").absolute())
    subprocess.run([own, "-m", "pip", "install", "--quiet", f"{wheel.absolute()}[dev]"], check=True)
    packages = said([own, "-m", "pip", "list", "--format", "freeze"])
    (place / "packages.txt").write_text(packages)
    copied(place)
    installed = time.monotonic()
    command = [own, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup"]
    command += [*CORE, "README.md"] if core else SUITE
    with (place / "tests.txt").open("w") as log:
        done = subprocess.run(command, cwd=place, stdout=log, stderr=subprocess.STDOUT)
    end = time.monotonic()
    lines = (place / "tests.txt").read_text().splitlines()
    if done.returncode:
        print("\n".join(lines[-60:]))
    (numpy,) = re.findall(r"^numpy==(\S+)", packages, re.MULTILINE)
    counts = re.sub(r" in .*|=", "", lines[-1]).strip()
    seconds = f"{installed - start:.0f} s to install, {end - installed:.0f} s of tests"
    return not done.returncode, f"NumPy {numpy}: {counts} ({seconds})"


def copied(place: Path) -> None:
    """Copy what git knows but the package, so that only the installed one is imported."""
    listed = said(["git", "ls-files", "--cached", "--others", "--exclude-standard"])
    for name in listed.splitlines():
        if not name.startswith("src/") and Path(name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, place / name)


def said(command: Sequence[str]) -> str:
    """Return what a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
