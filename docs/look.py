"""Look at pages as readers do: at 390 and 1280 px, light and dark, in a real Chromium.

    npm install --prefix out axe-core
    python docs/look.py out/node_modules/axe-core/axe.min.js out/docs out/reproduce/report.html

A finding is a page wider than the screen, text that is cut off or needs scrolling sideways (but for
what is made to scroll and can be reached with the keyboard, such as tables of many columns), an
error in the console, or a violation of WCAG 2.1 A and AA that axe-core reports, contrast included.
Exit code 1 if there are any.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from chromium import Chromium

__all__ = ["Reader", "look", "main", "pages"]

WIDTHS, SCHEMES = (390, 1280), ("light", "dark")
_CUT_OFF = """
[...document.querySelectorAll("body *")].filter(e => {
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  return style.overflowX !== "visible" && style.display !== "inline" && box.width > 1 &&
    box.height > 1 && e.scrollWidth > e.clientWidth + 1 && e.checkVisibility() && e.tabIndex < 0;
}).map(e => `${e.tagName}.${e.className}, ${e.scrollWidth} px in ${e.clientWidth}: ` +
  e.innerText.slice(0, 60))
"""
_AXE = """
axe.run({preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).then(found =>
  found.violations.map(v => `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 120)}`))
"""


class Reader(Chromium):
    """A browser that keeps every error of the console."""

    def _keep(self, event: dict[str, Any]) -> None:
        super()._keep(event)
        params = event.get("params", {})
        if event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif event["method"] == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.complaints.append(json.dumps(params["args"]))


def pages(places: list[str]) -> Iterator[Path]:
    """Yield the files among the places, and the pages of the folders."""
    for place in map(Path, places):
        yield from sorted(place.rglob("*.html")) if place.is_dir() else [place]


def look(browser: Reader, page: Path, axe: str) -> Iterator[str]:
    """Yield what is wrong with a page at each width, in each scheme."""
    for scheme in SCHEMES:
        browser.prefer(scheme)
        browser.complaints.clear()
        for width in WIDTHS:
            browser.size(width, 900)
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
    with Reader() as browser:
        for page in pages(sys.argv[2:]):
            seen += 1
            for text in look(browser, page, axe):
                found += 1
                print(json.dumps(text, ensure_ascii=False)[1:-1])
    print(f"{seen} pages, each at {WIDTHS} px, {' and '.join(SCHEMES)}: {found} findings")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
