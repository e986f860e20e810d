"""Write the stubs of rooms whose names are read from their files: ``python release/stubs.py``.

A type checker or an editor runs nothing, so it reads the names of such a room from
``__init__.pyi``. ``make stubs`` runs this; a test says where a stub is out of date.
"""

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

__all__ = ["ROOMS", "main", "stub"]

ROOMS = ("bestarm", "noise", "policies", "wrappers")
"""The rooms that read their names from their files."""


def stub(room: ModuleType) -> str:
    """Return the imports and the public names of a room, as a stub."""
    imports = []
    for name in sorted(room.__all__):
        thing = getattr(room, name)
        module = room.__name__ if inspect.ismodule(thing) else thing.__module__
        imports.append(f"from {module} import {name}")
    names = "".join(f'    "{name}",\n' for name in sorted(room.__all__))
    first = f"# Written by `make stubs` from the files of {room.__name__}: do not edit.\n"
    return f"{first}\n{chr(10).join(sorted(imports))}\n\n__all__ = [\n{names}]\n"


def path(room: ModuleType) -> Path:
    """Return where the stub of a room is."""
    return Path(str(room.__file__)).with_suffix(".pyi")


def main() -> None:
    """Write the stub of every room."""
    for name in ROOMS:
        room = import_module(f"tailproof.{name}")
        path(room).write_text(stub(room), encoding="utf-8")


if __name__ == "__main__":
    main()
