"""Write measured verdicts and pictures into the docs: ``python docs/verdict_pages.py FOLDER``.

FOLDER is the output of ``tailproof reproduce``; `make paper` creates it and runs this.
"""

import re
import shutil
import sys
from pathlib import Path

__all__ = ["SAID", "count", "main", "page", "tally"]

DOCS = Path(__file__).parent
SAID = re.compile(r"\d+ of the paper's \d+ claims hold at its own size[^.]*")
"""What README.md and paper.md say of the verdicts."""
_HEAD = """# The paper's claims, one by one

[The paper, reproduced](paper.md) says in three minutes what these tables say in detail. They are
written by `make paper`, which simulates all figures at the paper's own size; do not edit them.

"""


def tally(verdicts: str) -> dict[str, int]:
    r"""Return how many claims of the paper have each verdict, from the first table.

    >>> tally("| | hold | open |\n|---|---|---|\n| 22 claims of the paper | 11 | 2 |")
    {'claims': 22, 'hold': 11, 'open': 2}
    """
    found = re.search(r"\| \|(.*)\|\n[|-]+\n\| (\d+) claims of the paper \|(.*)\|", verdicts)
    if found is None:
        raise ValueError("verdicts must have a row for the claims of the paper")
    kinds, numbers = (found[i].split("|") for i in (1, 3))
    pairs = zip(kinds, numbers, strict=True)
    return {"claims": int(found[2])} | {kind.strip(): int(number) for kind, number in pairs}


def count(verdicts: str) -> str:
    r"""Return how many claims of the paper hold, in the words of README.md, from the first table.

    >>> row = "| 22 claims of the paper | 11 | 5 |"
    >>> count(f"| | hold | by few decisions |\n|---|---|---|\n{row}")
    "11 of the paper's 22 claims hold at its own size, and 5 more were decided by few decisions"
    """
    number = tally(verdicts)
    few = number.get("by few decisions", 0)
    more = f", and {few} more were decided by few decisions" if few else ""
    return f"{number['hold']} of the paper's {number['claims']} claims hold at its own size{more}"


def page(verdicts: str) -> str:
    r"""Return the page of the tables, from verdicts.md of a reproduction.

    >>> page("a<!-- figures -->b").removeprefix(_HEAD)
    'a\n\n## Figure by figure\n\nb\n'
    """
    tables, figures = (text.strip() for text in verdicts.split("<!-- figures -->"))
    return f"{_HEAD}{tables}\n\n## Figure by figure\n\n{figures}\n"


def main(folder: Path) -> None:
    """Write paper-tables.md, the number in README.md and paper.md, and copy the pictures."""
    verdicts = (folder / "verdicts.md").read_text(encoding="utf-8")
    (DOCS / "paper-tables.md").write_text(page(verdicts), encoding="utf-8")
    for told in (DOCS.parent / "README.md", DOCS / "paper.md"):
        words = SAID.sub(count(verdicts), told.read_text(encoding="utf-8"))
        told.write_text(words, encoding="utf-8")
    for name in re.findall(r"\(images/([\w-]+\.png)\)", verdicts):
        shutil.copy(folder / "figures" / name, DOCS / "images" / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
