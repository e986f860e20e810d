"""The web page of a service: its static files, and its contents as JSON."""

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from tailproof.service.routes.decisions import Named

__all__ = ["FILES", "router"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy: nothing from other hosts, nothing inline, no framing."""
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/client.js": ("client.js", "text/javascript; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
}
"""Static files by path, with their types; they reveal nothing and need no token."""


router = APIRouter(tags=["page"])


@cache
def _file(name: str) -> tuple[bytes, bytes, str]:
    """Return a file, its gzipped content, and its ETag."""
    content = (files("tailproof.service") / "page" / "assets" / name).read_bytes()
    return content, gzip.compress(content, 6), f'"{sha256(content).hexdigest()[:16]}"'


def _served(request: Request) -> Response:
    """Serve a static file, or 304 if the browser has it."""
    name, kind = FILES[request.url.path]
    plain, packed, tag = _file(name)
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": _POLICY,
        "ETag": tag,
        "Referrer-Policy": "no-referrer",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=kind)
    return Response(plain, headers=headers, media_type=kind)


for _path in FILES:
    router.get(_path, include_in_schema=False)(_served)


_NEVER_KEPT = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_HEAD = {
    "name": "shop",
    "read": 1.0,
    "lead": {
        "arm": "red",
        "sure": False,
        "words": "red leads so far; not sure yet against blue.",
    },
    "tickets": {"asked": 90, "rewards": 70, "pending": 9, "late": 1, "late_sum": 3.5, "lost": 10},
}
_ARM = {"name": "red", "pulls": 50, "rewards": 40, "estimate": 3.1, "low": 2.0, "high": 4.4}


def _example(value: object) -> dict[str, Any]:
    return {"content": {"application/json": {"example": value}}}


@router.get(
    "/experiments",
    response_class=JSONResponse,
    responses={200: _example({"experiments": [_HEAD]})},
)
def heads(request: Request) -> Response:
    """List the experiments, each with its leading arm and ticket counts."""
    body = request.app.state.refresher.heads()
    return Response(body, headers=_NEVER_KEPT, media_type="application/json")


@router.get(
    "/experiments/{name}/summary",
    response_class=JSONResponse,
    responses={
        200: _example(_HEAD | {"aim": "median", "arms": [_ARM]}),
        404: {"description": "There is no such experiment."},
    },
)
def summary(request: Request, experiment: Named) -> Response:
    """Get the page of an experiment as JSON; incomplete while `read` is below 1."""
    body = request.app.state.refresher.summary(experiment.name)
    return Response(body, headers=_NEVER_KEPT, media_type="application/json")
