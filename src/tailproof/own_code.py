"""Policies and noise of a user, named as ``module:name``."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tailproof.checks import meant

__all__ = ["imported", "placeholders"]

_TEXT_OR_OWN = re.compile(r"""('[^']*'|"[^"]*")|([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)""")
"""A string, which stays as it is, or ``module:name``."""


def placeholders(text: str) -> tuple[str, dict[str, str]]:
    """Replace every ``module:name`` by a placeholder, and return the text and the placeholders.

    >>> placeholders("filtered(mine:MedSA(bonus=2), repeats=15)")
    ('filtered(own_0_(bonus=2), repeats=15)', {'own_0_': 'mine:MedSA'})
    >>> placeholders("vw('a:b')")
    ("vw('a:b')", {})
    """
    references: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        name = f"own_{len(references)}_"
        references[name] = match[0]
        return name

    return _TEXT_OR_OWN.sub(stand_in, text), references


def imported(reference: str) -> Any:
    """Import ``module:name``, first from the folder where the user is, as Python does.

    >>> imported("tailproof:OFUL").__name__
    'OFUL'
    >>> imported("tailproof:Unifrom")
    Traceback (most recent call last):
    ValueError: tailproof:Unifrom: the module tailproof has no Unifrom; did you mean Uniform?
    """
    module, _, path = reference.partition(":")
    module = module.removesuffix(".py")
    first, here = module.partition(".")[0], Path.cwd()
    is_here = (here / f"{first}.py").is_file() or (here / first).is_dir()
    if is_here and str(here) not in sys.path:
        sys.path.insert(0, str(here))  # stays: processes that run cells import it, too
    try:
        thing: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"{reference}: importing {module} failed: {error}") from error
        raise ValueError(
            f"{reference}: there is no module {error.name}; it must be installed, or "
            f"{error.name.replace('.', '/')}.py must be in {here}"
        ) from None
    except Exception as error:  # whatever is wrong in that file
        kind = type(error).__name__
        raise ValueError(f"{reference}: importing {module} failed: {kind}: {error}") from error
    for name in path.split("."):
        if not hasattr(thing, name):
            hint = meant(name, [other for other in dir(thing) if not other.startswith("_")])
            raise ValueError(f"{reference}: the module {module} has no {name}{hint}")
        thing = getattr(thing, name)
    return thing
