"""The page of an experiment as one file that needs no service and no network."""

import json
import time
from importlib.resources import files
from typing import Any

from tailproof.live import Journal
from tailproof.service.page.summary import Summary
from tailproof.stats.aims import Aim

__all__ = ["offline_page", "summarised"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Content security policy: nothing is loaded from anywhere."""


def summarised(journal: Journal, aim: Aim, *, name: str) -> dict[str, Any]:
    """Return the page of a journal, as JSON values.

    >>> from tailproof import UCB1, Median
    >>> from tailproof.live import Agent
    >>> agent = Agent(UCB1(), ":memory:")
    >>> agent.tell(agent.ask(["red", "blue"], ticket="a").id, 3.5)
    'kept'
    >>> summarised(agent.journal, Median(), name="shop")["tickets"]["rewards"]
    1
    """
    known = journal.recipes()
    if not known:
        raise ValueError("the journal is empty: no agent has used it yet")
    summary = Summary(journal, aim, costs=known[-1][1].startswith("Negated("))
    while not summary.refresh():
        pass
    return {"name": name, **summary.to_dict(), "at": time.time()}


def offline_page(summary: dict[str, Any]) -> str:
    """Return the page with its data, as one HTML file."""
    folder = files("tailproof.service") / "page" / "assets"
    text = (folder / "index.html").read_text("utf-8")
    data = json.dumps(summary).replace("<", "\\u003c")
    for tag, content in {
        '<link rel="stylesheet" href="/page.css">': _inside("style", folder / "page.css"),
        '<script src="/charts.js" defer></script>': "",
        '<script src="/page.js" defer></script>': "",
        "</body>": "".join(
            [
                f'<script type="application/json" id="data">{data}</script>',
                _inside("script", folder / "charts.js"),
                _inside("script", folder / "page.js"),
                "</body>",
            ]
        ),
        "<title>": f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n<title>',
    }.items():
        assert tag in text
        text = text.replace(tag, content)
    return text


def _inside(tag: str, file: Any) -> str:
    return f"<{tag}>\n{file.read_text('utf-8')}</{tag}>\n"
