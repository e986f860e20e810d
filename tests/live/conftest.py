"""Connections to one journal, in SQLite and in PostgreSQL."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tailproof.live import Journal, open_journal


@pytest.fixture
def opened(place: str) -> Iterator[Callable[..., Journal]]:
    """Open connections to one journal, as many as wanted."""
    with ExitStack() as stack:

        def another(at: str = place) -> Journal:
            journal = open_journal(at, durable=False)
            stack.callback(journal.close)
            return journal

        yield another


@pytest.fixture
def journal(opened: Callable[..., Journal]) -> Journal:
    return opened()
