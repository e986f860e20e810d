"""Excerpts in the results of a search, also where pages are files and may not fetch each other.

Sphinx's search fetches each page that it finds to show where the words are, which browsers refuse
between local files. The texts of all pages are therefore written to one script, which the search
page loads and answers such requests from.
"""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

__all__ = ["add_script", "text", "write"]

_SCRIPT = """"use strict";
const TEXTS = %s;
if (location.protocol === "file:")
  window.fetch = async (address) => {
    const main = document.createElement("main");
    main.setAttribute("role", "main");
    main.textContent = TEXTS[address.replace(/^.\\//, "")] || "";
    return new Response(main.outerHTML);
  };
"""


def add_script(app: Any, page: str, *_: object) -> None:
    """Let the search page, and no other, load the script."""
    if page == "search":
        app.add_js_file("excerpts.js")


def write(app: Any, error: Exception | None) -> None:
    """Write the texts of all pages, when the site is built."""
    if error is None and app.builder.name == "html":
        site = Path(app.outdir)
        texts = {
            path.relative_to(site).as_posix(): text(path.read_text(encoding="utf-8"))
            for path in sorted(site.rglob("*.html"))
        }
        script = _SCRIPT % json.dumps(texts, ensure_ascii=False)
        (site / "_static" / "excerpts.js").write_text(script, encoding="utf-8")


def text(page: str) -> str:
    """Return the words of a page, without its code for browsers.

    >>> text('<nav>Home</nav><article role="main"><h1>A &lt; B<a>#</a></h1><p>so</p></article>')
    'A < B # so'
    """
    _, _, main = page.partition('role="main"')
    main = main.partition(">")[2].partition("</article>")[0]
    main = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", main, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).replace("¶", " ").split())
