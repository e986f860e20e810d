"""What is left out where a package of another library is missing, said by name."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network at import
_NEEDED = {
    "bayesianbandits": ["guests/bayesianbandits.py"],
    "fastapi": [
        *(f"../service/{name}.py" for name in ("app", "middleware", "routes", "server")),
        "../cli/demo.py",
    ],
    "httpx": ["../service/client.py"],
    "coba": ["guests/coba.py", "hosts/coba.py"],
    "contextualbandits": ["guests/contextualbandits.py"],
    "gymnasium": ["hosts/gymnasium.py", "hosts/river.py"],
    "litellm": ["hosts/litellm.py"],
    "mabwiser": ["guests/mabwiser.py"],
    "openfeature": ["hosts/openfeature.py"],
    "pymab": ["guests/pymab.py"],
    "river": ["guests/river.py", "hosts/river.py"],
    "vowpalwabbit": ["guests/vw.py", "../recipes.py"],
}
"""The files that cannot be imported without a package, below the room of integrations."""
_MISSING = [name for name in _NEEDED if find_spec(name) is None]
_PACKAGE = Path(str(find_spec("tailproof").origin)).parent  # type: ignore[union-attr]
_ROOM = _PACKAGE / "integrations"
collect_ignore = [str((_ROOM / file).resolve()) for name in _MISSING for file in _NEEDED[name]]


def _needs_what_is_missing(path: Path) -> bool:
    """Return whether a file needs a package that is missing; `collect_ignore` sees no wheels."""
    return any(path.is_relative_to(file) for file in collect_ignore)


@pytest.fixture(autouse=True)
def _pages_in_empty_folders(request: pytest.FixtureRequest) -> None:
    """Let what a page writes, such as a journal, go to a folder that is empty at first."""
    if request.node.path.suffix == ".md":
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leave out what a missing package needs: files of an installed wheel, and the page of guests.

    The page has an example of every wheel.
    """
    items[:] = [item for item in items if not _needs_what_is_missing(item.path)]
    wheels = [name for name in _MISSING if name != "contextualbandits"]
    for item in items:
        if wheels and item.path.name == "guests.md":
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(wheels)}"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the libraries whose guests were not tested."""
    if _MISSING:
        names = ", ".join(_MISSING)
        terminalreporter.write_line(f"guests not tested, as not installed: {names}", yellow=True)
