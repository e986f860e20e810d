"""Look at pages as readers do: at 390 and 1280 px, light and dark, in a real Chromium.

    npm install --prefix out axe-core
    python docs/look.py out/node_modules/axe-core/axe.min.js out/docs out/reproduce/report.html

Each page is opened four times. A finding is a page wider than the screen, an element whose text is
cut off or needs scrolling sideways, an error in the console, or a violation of WCAG 2.1 A and AA
that axe-core reports, contrast included. Exit code 1 if there are any.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "live" / "browser"))
from chromium import Chromium

__all__ = ["look", "main", "pages"]

WIDTHS, SCHEMES = (390, 1280), ("light", "dark")
_CUT_OFF = """
[...document.querySelectorAll("body *")].filter(e => {
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  return style.overflowX !== "visible" && style.display !== "inline" && box.width > 1 &&
    box.height > 1 && e.scrollWidth > e.clientWidth + 1 && e.checkVisibility();
}).map(e => `${e.tagName}.${e.className}, ${e.scrollWidth} px in ${e.clientWidth}: ` +
  e.innerText.slice(0, 60))
"""
_AXE = """
axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).then(found =>
  found.violations.map(v => `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 120)}`))
"""


def pages(places: list[str]) -> Iterator[Path]:
    """Yield the files among the places, and the pages of the folders."""
    for place in map(Path, places):
        yield from sorted(place.rglob("*.html")) if place.is_dir() else [place]


def look(browser: Chromium, page: Path, axe: str) -> Iterator[str]:
    """Yield what is wrong with a page at each width, in each scheme."""
    for scheme in SCHEMES:
        for width in WIDTHS:
            browser.size(width, 900)
            browser.prefer(scheme)
            browser.complaints.clear()
            browser.open(page.resolve().as_uri())
            where = f"{page}, {width} px, {scheme}"
            wide = browser.run("document.documentElement.scrollWidth")
            if wide > width:
                yield f"{where}: {wide} px wide"
            yield from (f"{where}: cut off: {text}" for text in browser.run(_CUT_OFF))
            browser.run(axe + "; 0")
            yield from (f"{where}: {text}" for text in browser.run(_AXE))
            yield from (f"{where}: console: {text}" for text in browser.complaints)


def main() -> None:
    """Print what is wrong, and how much was looked at."""
    axe, found, seen = Path(sys.argv[1]).read_text(), 0, 0
    with Chromium() as browser:
        for page in pages(sys.argv[2:]):
            seen += 1
            for text in look(browser, page, axe):
                found += 1
                print(json.dumps(text, ensure_ascii=False)[1:-1])
    print(f"{seen} pages, each at {WIDTHS} px, {' and '.join(SCHEMES)}: {found} findings")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
