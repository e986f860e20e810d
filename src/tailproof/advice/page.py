"""Advice as one HTML file, without network."""

import io
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailproof.advice.advice import Advice

__all__ = ["advice_page"]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{max-width:60rem;margin:2rem auto;padding:0 1rem;font-family:system-ui,sans-serif}}
table{{border-collapse:collapse;display:block;overflow-x:auto}}
td,th{{padding:.3rem .8rem;border-bottom:1px solid #ccc;text-align:left}}
svg{{max-width:100%;height:auto}}pre{{overflow-x:auto}}</style></head>
<body><h1>{name}</h1>{advice}{picture}<pre>{steps}</pre></body></html>
"""


def advice_page(advice: "Advice", name: str) -> str:
    """Return a page: the table of arms, sentences about it, a picture, and the command to run next.

    >>> import numpy as np
    >>> from tailproof import calibrate
    >>> arm = ["<a>", "b"] * 50
    >>> advice_page(calibrate(arm=arm, reward=np.arange(100.0)), "sales").count("&lt;a&gt;") > 0
    True
    """
    stream = io.StringIO()
    advice.plot().savefig(stream, format="svg", bbox_inches="tight")
    picture = stream.getvalue()
    return _PAGE.format(
        name=escape(name),
        advice=advice._repr_html_(),
        picture=picture[picture.index("<svg") :],
        steps=escape("\n".join(advice.next_steps())),
    )
