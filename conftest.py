"""What is left out where a package of another library is missing, said by name."""

import os
from importlib.util import find_spec
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network at import
_NEEDED = {
    "bayesianbandits": ["src/tailproof/guests/bayesianbandits.py"],
    "fastapi": [
        "src/tailproof/live/demo.py",
        *(f"src/tailproof/live/http/{name}" for name in ("app.py", "metrics.py", "middleware.py")),
        *(f"src/tailproof/live/http/{name}" for name in ("routes", "schemas.py", "server.py")),
    ],
    "httpx": ["src/tailproof/live/http/client.py"],
    "coba": ["src/tailproof/guests/coba.py", "src/tailproof/guests/in_coba.py"],
    "contextualbandits": ["src/tailproof/guests/contextualbandits.py"],
    "gymnasium": ["src/tailproof/guests/in_gymnasium.py", "src/tailproof/guests/in_river.py"],
    "mabwiser": ["src/tailproof/guests/mabwiser.py"],
    "pymab": ["src/tailproof/guests/pymab.py"],
    "river": ["src/tailproof/guests/river.py", "src/tailproof/guests/in_river.py"],
    "vowpalwabbit": ["src/tailproof/guests/vw.py"],
}
_MISSING = [name for name in _NEEDED if find_spec(name) is None]
collect_ignore = [file for name in _MISSING for file in _NEEDED[name]]


@pytest.fixture(autouse=True)
def _pages_in_empty_folders(request: pytest.FixtureRequest) -> None:
    """Let what a page writes, such as a journal, go to a folder that is empty at first."""
    if request.node.path.suffix == ".md":
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leave out the page that has an example of every wheel, unless all are there."""
    wheels = [name for name in _MISSING if name != "contextualbandits"]
    for item in items:
        if wheels and item.path.name == "guests.md":
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(wheels)}"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the libraries whose guests were not tested."""
    if _MISSING:
        names = ", ".join(_MISSING)
        terminalreporter.write_line(f"guests not tested, as not installed: {names}", yellow=True)
