"""Our docstrings, as Sphinx reads them: equations keep their lines, public names are links."""

import inspect
import re
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["MODULES", "public_names", "to_rst"]

MODULES = (
    "tailproof",
    "tailproof.noise",
    "tailproof.bestarm",
    "tailproof.gauntlet",
    "tailproof.guests",
    "tailproof.live",
    "tailproof.figures",
    "tailproof.testing",
    "tailproof.simulation.environments",
    "tailproof.stats.theory",
    "tailproof.wrappers.compositions",
    "tailproof.checks",
    "tailproof.results",
    "tailproof.simulation",
    "tailproof.wrappers",
)
"""Where public names live; of a name that several have, the first is its page."""
ALIASES = {
    "tailproof.simulation.environments": "tailproof.environments",
    "tailproof.stats.theory": "tailproof.theory",
    "tailproof.wrappers.compositions": "tailproof.compositions",
}
"""Modules that are public under another name than their file's."""


def public_names() -> dict[str, Any]:
    """Return every public thing by the name of its page, without second names for it."""
    found: dict[str, Any] = {}
    for file in MODULES:
        module = import_module(file)
        for name in module.__all__:
            try:
                thing = getattr(module, name)
            except ImportError:  # what is made of another library that is not installed
                thing = None
            known = isinstance(thing, ModuleType) or any(
                thing is other for other in found.values() if callable(thing)
            )
            if not known:
                found[f"{ALIASES.get(file, file)}.{name}"] = thing
    return found


_PUBLIC = public_names()


def to_rst(_app: Any, what: str, name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """Rewrite a docstring, and say whose methods a class has and where its code is.

    A paragraph that does not end as a sentence does, or is a list of them, is an equation.
    """
    first, *rest = "\n".join(lines).strip("\n").split("\n\n")
    paragraphs = [_prose(first, name), *(_paragraph(text, name) for text in rest)]
    if what in ("class", "function"):
        module = inspect.getmodule(thing)
        file = getattr(module, "__file__", "").replace("\\", "/").rpartition("/src/")[2]
        paragraphs.append(f"**Code:** ``src/{file}``" + _based_on(thing))
    lines[:] = [*"\n\n".join(paragraphs).split("\n"), ""]


def _paragraph(text: str, name: str) -> str:
    if re.match(r"\s*(>>>|\.\.)", text) or re.match(r"Examples\n-+", text):
        return text
    ended = text.rstrip().endswith((".", ":", "?")) and not re.match(r"\w+ = .*\n", text)
    if ended or text.startswith(" ") or re.search(r"\n-+\n", text) or not text.strip():
        return re.sub(r"\b(Source|Differences):", r"**\1:**", _prose(text, name))
    return ".. code-block:: text\n\n" + "\n".join(f"    {line}" for line in text.split("\n"))


_CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)


def _prose(text: str, name: str) -> str:
    """Escape what is meant as itself, and link public names."""
    parts = _CODE.split(text)
    parts[::2] = [re.sub(r"[|*]|(?<=\w)_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2]]
    parts[1::2] = [_linked(part, name) for part in parts[1::2]]
    return "".join(parts)


def _linked(code: str, name: str) -> str:
    """Turn a name in single backticks into a link to its page, or that of its class."""
    words = code.strip("`")
    page = max(
        (page for page in _PUBLIC if words.removeprefix("tailproof.") in _spellings(page, words)),
        key=lambda page: name.startswith(page.rsplit(".", 1)[0] + ".") * page.count("."),
        default=None,
    )
    if code.startswith("``") or page is None or page == name:
        return f"``{words}``"
    return f":py:obj:`{words} <{page}>`"


def _spellings(page: str, words: str) -> set[str]:
    """Return how a docstring may write the name of a page, or of what belongs to it."""
    full = page.removeprefix("tailproof.")
    short = full.rsplit(".", 1)[-1]
    belongs = words.rsplit(".", 1)[-1]
    return {full, short, f"{short}.{belongs}"}


def _based_on(thing: Any) -> str:
    """Say which public class a class has its other methods from."""
    for base in inspect.getmro(thing)[1:] if inspect.isclass(thing) else ():
        for page, public in _PUBLIC.items():
            if public is base:
                return f". **Methods:** those of :py:obj:`~{page}`, and its own below."
    return "."
