"""Convert docstrings for Sphinx: equations keep their lines, public names become links."""

import inspect
import re
from typing import Any

from api_pages import public_names
from policy_tables import LABELS

__all__ = ["to_rst"]

_PUBLIC = public_names()


def to_rst(_app: Any, what: str, name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """Rewrite a docstring, and add the base class and the source file.

    A paragraph that does not end like a sentence, or is a list of assignments, is an equation.
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
        return re.sub(rf"\b({'|'.join(LABELS)}):", r"**\1:**", _prose(text, name))
    return ".. code-block:: text\n\n" + "\n".join(f"    {line}" for line in text.split("\n"))


_CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)


def _prose(text: str, name: str) -> str:
    """Escape literal characters, and link public names."""
    parts = _CODE.split(text)
    parts[::2] = [re.sub(r"[|*]|(?<=\w)_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2]]
    parts[1::2] = [_linked(part, name) for part in parts[1::2]]
    return "".join(parts)


def _linked(code: str, name: str) -> str:
    """Turn a name in single backticks into a link to its page, or to its class's page."""
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
    """Return the spellings of a page's name, or of its members, in docstrings."""
    full = page.removeprefix("tailproof.")
    short = full.rsplit(".", 1)[-1]
    belongs = words.rsplit(".", 1)[-1]
    return {full, short, f"{short}.{belongs}"}


def _based_on(thing: Any) -> str:
    """Return a sentence on the public class that a class inherits from."""
    for base in inspect.getmro(thing)[1:] if inspect.isclass(thing) else ():
        for page, public in _PUBLIC.items():
            if public is base:
                return f". **Methods:** those of :py:obj:`~{page}`, and its own below."
    return "."
