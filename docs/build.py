"""Copy measured verdicts and their pictures into paper.md: ``python docs/build.py FOLDER``.

FOLDER is the output of ``tailproof reproduce``; `make paper` creates it and runs this.
"""

import re
import shutil
import sys
from pathlib import Path

__all__ = ["fill", "main"]

DOCS = Path(__file__).parent
PARTS = ("verdicts", "figures")
"""What verdicts.md has, in this order, and where paper.md has it: between two comments."""


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
    """Replace the verdicts in paper.md with those in a folder, and the pictures that they name."""
    page = DOCS / "paper.md"
    verdicts = (folder / "verdicts.md").read_text(encoding="utf-8")
    page.write_text(fill(page.read_text(encoding="utf-8"), verdicts), encoding="utf-8")
    for name in re.findall(r"\(images/([\w-]+\.png)\)", verdicts):
        shutil.copy(folder / "figures" / name, DOCS / "images" / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
