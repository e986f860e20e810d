"""Check the built site: ``python docs/check.py out/docs``.

Internal links work, nothing is loaded from other hosts, every public name has a page, a search
finds the right page first, no formula lost underscores, and what is written by hand has at most
`WORDS` words.
"""

import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from api_pages import HANDLES, PAGES, public_names

SEARCHES = {
    "heavy tail": "heavy-tails",
    "MABWiser": "tutorials/keep-your-bandit",
    "delayed rewards": "tutorials/live",
}
"""What a reader may search for, and the page that should come first."""
WORDS = 30_000
"""Words of the README and the pages, code included, as ``wc -w`` counts them: two thirds of those
of 0.3.0, a length that one person still reads and keeps true."""
GENERATED = {"gauntlet.md", "guest-tables.md", "paper-tables.md", "world-tables.md"}
_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an anchor, a link or a file that is loaded."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        elif tag in _LOADED and _LOADED[tag] in given:
            self.loaded.add(given[_LOADED[tag]])


def dead_links(site: Path) -> list[str]:
    """Return broken links and what is loaded from other hosts."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    found = []
    for path, page in pages.items():
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    found.append(f"{path.name} loads {link} from another host")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target.exists()
            if there and parts.fragment and target in pages:
                there = unquote(parts.fragment) in pages[target].anchors
            if not there:
                found.append(f"{path.relative_to(site.resolve())}: broken link {link}")
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        if "url(http" in text or "url(//" in text or "@import" in text:
            found.append(f"{style.name} loads something from another host")
    return sorted(found)


def missing_names(site: Path) -> list[str]:
    """Return the public names and modules without an entry in the site's inventory."""
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    known = {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}
    rooms = [
        HANDLES.get(room, f"tailproof.{room}") for page in PAGES.values() for room in page.rooms
    ]
    wanted = [*public_names(), *(room for room in rooms if room in _described())]
    return [f"{name} has no page" for name in wanted if name not in known]


def _described() -> set[str]:
    """Return the modules that are public names."""
    import tailproof

    return {f"tailproof.{name}" for name in tailproof.__all__}


def wrong_searches(site: Path) -> list[str]:
    """Return the searches that find a wrong page first; node runs the site's own search."""
    if shutil.which("node") is None:
        print("search not checked: node is not installed")
        return []
    script = Path(__file__).parent / "search.js"
    done = subprocess.run(
        ["node", script, site, *SEARCHES], capture_output=True, text=True, check=True
    )
    firsts = dict(zip(SEARCHES, done.stdout.splitlines(), strict=True))
    return [
        f"a search for {words!r} finds {firsts[words]} first, not {page}"
        for words, page in SEARCHES.items()
        if firsts[words] != page
    ]


def broken_formulas(site: Path) -> list[str]:
    """Return the emphasis that two underscores of norms made, which must be escaped."""
    return [
        f"{path.name}: {formula} lost underscores"
        for path in sorted(site.rglob("*.html"))
        for formula in re.findall("<em>[^<]*‖[^<]*</em>", path.read_text(encoding="utf-8"))
    ]


def count_words(docs: Path) -> int:
    """Return the number of words of the README and the pages that no command writes."""
    written = [page for page in docs.rglob("*.md") if page.name not in GENERATED]
    pages = [page.read_text(encoding="utf-8") for page in (docs.parent / "README.md", *written)]
    table = re.compile("<!-- table of .*?<!-- end of the table -->", re.DOTALL)
    return sum(len(table.sub("", page).split()) for page in pages)


def too_many_words(docs: Path) -> list[str]:
    """Return a sentence if the docs are longer than they may be."""
    words = count_words(docs)
    print(f"{words} words, at most {WORDS}")
    return [f"the docs have {words} words, more than {WORDS}"] if words > WORDS else []


def main(site: Path) -> int:
    """Print what is wrong with the site; return 1 if anything is."""
    own = [*broken_formulas(site), *too_many_words(Path(__file__).parent)]
    faults = [*dead_links(site), *missing_names(site), *wrong_searches(site), *own]
    for fault in faults:
        print(fault)
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
