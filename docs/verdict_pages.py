"""Copy measured verdicts and their pictures into the docs: ``python docs/verdict_pages.py FOLDER``.

FOLDER is the output of ``tailproof reproduce``; `make paper` creates it and runs this.
"""

import re
import shutil
import sys
from pathlib import Path

__all__ = ["SAID", "count", "fill", "main"]

DOCS = Path(__file__).parent
PARTS = ("verdicts", "figures")
"""What verdicts.md has, in this order, and where paper.md has it: between two comments."""


SAID = re.compile(r"\d+ of the paper's \d+ claims hold at its own size[^.]*")
"""What README.md says of the verdicts."""


def count(verdicts: str) -> str:
    """Return how many claims of the paper hold, in the words of README.md, from the first table.

    >>> count("| 22 claims of the paper | 11 | 2 | 3 | 1 | 5 |")
    "11 of the paper's 22 claims hold at its own size, and 5 more were decided by few decisions"
    """
    row = re.search(r"\| (\d+) claims of the paper((?: \| \d+)+) \|", verdicts)
    if row is None:
        raise ValueError("verdicts must have a row for the claims of the paper")
    numbers = re.findall(r"\d+", row[2])
    few = numbers[4] if len(numbers) > 4 else "0"
    more = "" if few == "0" else f", and {few} more were decided by few decisions"
    return f"{numbers[0]} of the paper's {row[1]} claims hold at its own size{more}"


def fill(page: str, verdicts: str) -> str:
    """Return the page with the tables of the verdicts, and the figures one by one, replaced.

    >>> old = "<!-- verdicts -->1<!-- end of verdicts -->, <!-- figures -->2<!-- end of figures -->"
    >>> fill(old, "a<!-- figures -->b").replace(chr(10), "|")
    '<!-- verdicts -->|a|<!-- end of verdicts -->, <!-- figures -->|b|<!-- end of figures -->'
    """
    for name, text in zip(PARTS, verdicts.split("<!-- figures -->"), strict=True):
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{text.strip()}\n{end}{rest.split(end)[1]}"
    return page


def main(folder: Path) -> None:
    """Replace the verdicts in paper.md and their number in README.md, and copy the pictures."""
    page = DOCS / "paper.md"
    verdicts = (folder / "verdicts.md").read_text(encoding="utf-8")
    page.write_text(fill(page.read_text(encoding="utf-8"), verdicts), encoding="utf-8")
    readme = DOCS.parent / "README.md"
    words = SAID.sub(count(verdicts), readme.read_text(encoding="utf-8"))
    readme.write_text(words, encoding="utf-8")
    for name in re.findall(r"\(images/([\w-]+\.png)\)", verdicts):
        shutil.copy(folder / "figures" / name, DOCS / "images" / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
