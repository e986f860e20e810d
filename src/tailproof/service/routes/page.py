"""The web page of a service: its static files, and its contents as JSON."""

from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.staticfiles import StaticFiles

from tailproof.service.routes.decisions import Named

__all__ = ["FILES", "PATHS", "router"]

FILES = StaticFiles(packages=[("tailproof.service.page", "assets")], html=True)
"""The page and the client for JavaScript; they reveal nothing and need no token."""
PATHS = {
    "/",
    *(f"/{file.name}" for file in files("tailproof.service.page").joinpath("assets").iterdir()),
}

router = APIRouter(tags=["page"])
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
    body = request.app.state.pages.heads()
    return Response(body, media_type="application/json")


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
    body = request.app.state.pages.summary(experiment.name)
    return Response(body, media_type="application/json")
