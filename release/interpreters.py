"""The Python interpreters that are here, by version."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["found", "wanted"]

_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def wanted() -> list[str]:
    """Return the versions that pyproject.toml names."""
    lines = tomllib.loads(Path("pyproject.toml").read_text())["project"]["classifiers"]
    return [line.rpartition(" ")[2] for line in lines if re.search(r":: 3\.\d+$", line)]


def found() -> dict[str, str]:
    """Return an interpreter for each version: one on the PATH, or else in pyenv's folder.

    The environment variable PYTHONS names others, and then all of them.
    """
    given = os.environ.get("PYTHONS", "").split()
    places = given or [place for version in wanted() for place in _places(version)]
    known = {version: place for place in reversed(places) for version in _version(place)}
    return {version: known[version] for version in sorted(known, key=lambda text: int(text[2:]))}


def _places(version: str) -> list[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    own = sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python{version}")))
    return [f"python{version}", *reversed(own)]


def _version(place: str) -> Iterator[str]:
    """Yield the version of an interpreter; a shim of pyenv may be there for one that is not."""
    try:
        done = subprocess.run([place, "-c", _VERSION], capture_output=True, text=True)
    except OSError:
        return
    if done.returncode == 0:
        yield done.stdout.strip()
