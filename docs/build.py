"""Copy measured verdicts into paper.md: ``python docs/build.py FOLDER``.

FOLDER is the output of ``tailproof reproduce``; `make paper` creates it and runs this.
"""

import sys
from pathlib import Path

BEGIN, END = "<!-- verdicts -->", "<!-- end of verdicts -->"


def main(folder: Path) -> None:
    """Replace the verdicts in paper.md with those in a folder."""
    page = Path(__file__).parent / "paper.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    verdicts = (folder / "verdicts.md").read_text(encoding="utf-8").strip()
    page.write_text(f"{before}{BEGIN}\n{verdicts}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
