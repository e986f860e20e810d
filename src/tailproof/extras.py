"""Optional packages, imported when they are used."""

from importlib import import_module
from importlib.metadata import requires
from shlex import quote
from typing import Any

__all__ = ["import_extra", "install_command"]


def import_extra(package: str, extra: str, user: str = "this guest") -> Any:
    """Return an optional package, or say how to install it.

    >>> import_extra("no_such_package", "river")
    Traceback (most recent call last):
    ImportError: this guest needs no_such_package: pip install 'river>=0.26', or in a clone
    pip install '.[river]'
    >>> import_extra("no_such_package.part", "postgres", "this journal")
    Traceback (most recent call last):
    ImportError: this journal needs no_such_package: pip install 'psycopg[binary]>=3.2.1', or in a
    clone pip install '.[postgres]'
    """
    try:
        return import_module(package)
    except ModuleNotFoundError:
        name = package.partition(".")[0]
        raise ImportError(f"{user} needs {name}: {install_command(extra)}") from None


def install_command(extra: str) -> str:
    """Return what to type for an extra: its packages, which pip finds without a clone."""
    lines = (line.split(";") for line in requires("tailproof") or ())
    packages = (name for name, *markers in lines if f"'{extra}'" in "".join(markers))
    return f"pip install {' '.join(map(quote, packages))}, or in a clone pip install '.[{extra}]'"
