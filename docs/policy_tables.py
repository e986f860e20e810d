"""The tables of policies, written at each build from the docstrings of the policies."""

import inspect
import re
from typing import Any

from tailproof.discovery import declared
from tailproof.policies import Policy

__all__ = ["COLUMNS", "LABELS", "fill", "labels", "tables"]

COLUMNS = {
    "Source": "source",
    "Needs": "needs to know",
    "Pulls": "pulls per decision",
    "Regret": "published regret",
    "Accepts a near-best arm": "accepts a near-best arm",
    "Learns without a mean": "learns without a mean",
}
"""What a docstring says after a label and a colon, and the heading of its column."""
LABELS = ("Kind", "Differences", *COLUMNS)
"""The labels in the docstring of a policy, each at the start of a line or after a sentence."""
_START = re.compile(rf"(?:^|(?<=[.:;]\s))({'|'.join(LABELS)}): ", re.MULTILINE)
_MARK = re.compile(r"<!-- policies: (.+?) -->")


def labels(thing: Any) -> dict[str, str]:
    """Return what the docstring of a class says after each label.

    >>> from tailproof import CRT
    >>> labels(CRT)["Needs"]
    'ε, moment v, δ'
    """
    _, *parts = _START.split(inspect.getdoc(thing) or "")
    said = {
        label: " ".join(text.split("\n\n")[0].split()).removesuffix(".")
        for label, text in zip(parts[::2], parts[1::2], strict=True)
    }
    for label in ("Kind", "Source"):
        if label not in said:
            raise ValueError(f"the docstring of {thing.__name__} must have a line '{label}: …'")
    return said


def tables() -> dict[str, str]:
    """Return the table of each kind of policy, as Markdown."""
    kinds: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for room in ("policies", "wrappers", "bestarm"):
        for name, policy in declared(f"tailproof.{room}", Policy).items():
            said = labels(policy)
            page = f"tailproof.bestarm.{name}" if room == "bestarm" else f"tailproof.{name}"
            said["Source"] = re.split(r"[;:]|(?<!al)\. |, from ", said["Source"])[0]
            kinds.setdefault(said["Kind"], []).append((f"{{py:obj}}`{name} <{page}>`", said))
    return {kind: _table(rows) for kind, rows in kinds.items()}


def _table(rows: list[tuple[str, dict[str, str]]]) -> str:
    used = [label for label in COLUMNS if any(label in said for _, said in rows)]
    usual = {"Pulls": "1", "Regret": "none"}
    lines = [["policy", *(COLUMNS[label] for label in used)], ["---"] * (len(used) + 1)]
    for link, said in rows:
        lines.append([link, *(said.get(label, usual.get(label, "")) for label in used)])
    escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def fill(_app: Any, _document: str, source: list[str]) -> None:
    """Replace the marks in a page with the tables of their kinds."""
    if _MARK.search(source[0]):
        known = tables()
        source[0] = _MARK.sub(lambda mark: known[mark[1]], source[0])
