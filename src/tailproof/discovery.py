"""The public names of a room, read from its files: a new policy is named in its own file alone."""

import inspect
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

__all__ = ["declared"]


def declared(room: str, base: type | tuple[type, ...]) -> dict[str, Any]:
    """Return the classes that the files of a room declare, by name, in order.

    A file declares a class by naming it in its ``__all__``. The class must be a subclass of `base`
    and not abstract. Files whose name begins with an underscore are left out, and so is ``base``,
    which holds what the others share.

    >>> "UCB1" in declared("tailproof.policies", object)
    True
    """
    paths = import_module(room).__path__
    files = [file.name for file in iter_modules(paths) if not file.ispkg]
    classes = {}
    for file in files:
        if file == "base" or file.startswith("_"):
            continue
        module = import_module(f"{room}.{file}")
        for name in module.__all__:
            thing = getattr(module, name)
            ours = inspect.isclass(thing) and thing.__module__ == module.__name__
            if ours and issubclass(thing, base) and not inspect.isabstract(thing):
                classes[name] = thing
    return dict(sorted(classes.items()))
