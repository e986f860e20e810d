"""The routes of the service: asks and tells, what operators do, the log, and the page."""

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from tailproof.live import Ask, Cancel, Journal, Tell
from tailproof.live.export import csv_pieces
from tailproof.service.experiments import Experiment
from tailproof.service.schemas import (
    REFUSALS,
    RULES,
    ArmBody,
    AskBody,
    BatchAnswer,
    BatchBody,
    StatusAnswer,
    TellBody,
    TicketAnswer,
    answer,
    problem,
)

__all__ = ["FILES", "PATHS", "router"]

_LOG = logging.getLogger("tailproof.live")
FILES = StaticFiles(packages=[("tailproof.service.page", "assets")], html=True)
"""The page and the client for JavaScript; they reveal nothing and need no token."""
PATHS = {
    "/",
    *(f"/{file.name}" for file in files("tailproof.service.page").joinpath("assets").iterdir()),
}
_OK = {"status": "ok", "version": version("tailproof")}
_FAILING = _OK | {"status": "failing"}
_METRICS = 'tailproof_asks_total{experiment="shop"} 1204.0\n'
_LOG_ROWS = (
    "ticket,arm,propensity,reward,status,asked,told\r\n"
    "v17,red,0.5,12.5,told,2026-01-05T09:00:00+00:00,2026-01-05T09:02:11+00:00\r\n"
)
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

router = APIRouter()


def _shown(example: object, kind: str = "application/json", **more: Any) -> dict[str, Any]:
    """Return the example of an answer, for the OpenAPI page."""
    return {"content": {kind: {"example": example}}} | more


async def _named(
    request: Request,
    name: Annotated[str, Path(description="name of the experiment", examples=["shop"])],
) -> Experiment:
    """Return an experiment by name, or answer 404."""
    experiments: dict[str, Experiment] = request.app.state.experiments
    if name not in experiments:
        names = ", ".join(experiments)
        raise HTTPException(404, f"unknown experiment {name!r}: this service has {names}")
    return experiments[name]


Named = Annotated[Experiment, Depends(_named)]
"""The experiment that a path names."""


# ---- asks and tells


async def _answers(
    request: Request, experiment: Experiment, bodies: Sequence[AskBody | TellBody]
) -> list[dict[str, Any]]:
    """Cancel abandoned asks, do asks and tells, all in one commit; count asks and tells.

    A refused act does not affect the others.
    """
    acts: list[Ask | Tell | ValueError] = []
    for body in bodies:
        try:
            acts.append(body.act(experiment.settings.offer))
        except ValueError as refusal:
            acts.append(refusal)
    try:
        orphans = [Cancel(ticket) for body in bodies for ticket in body.cancel]
    except ValueError as refusal:
        raise HTTPException(422, str(refusal)) from None
    fit = [act for act in acts if not isinstance(act, ValueError)]
    try:
        done = await experiment.act([*orphans, *fit])
    except Exception as error:
        raise _unwritten(error) from error
    request.app.state.metrics.acted(experiment.settings.name, fit, done[len(orphans) :])
    outcomes = iter(done[len(orphans) :])
    return [
        problem(act) if isinstance(act, ValueError) else answer(act, next(outcomes)) for act in acts
    ]


async def _answer(request: Request, experiment: Experiment, body: AskBody | TellBody) -> Response:
    (said,) = await _answers(request, experiment, [body])
    return JSONResponse(said, 422 if "error" in said else 200)


def _unwritten(error: Exception) -> HTTPException:
    _LOG.error("commit failed", exc_info=error)
    shown = isinstance(error, sqlite3.Error | OSError)  # other messages may name hosts
    why = error if shown else type(error).__name__
    return HTTPException(503, f"commit failed, nothing was stored: {why}")


@router.post("/experiments/{name}/ask", response_model=TicketAnswer, responses=REFUSALS)
async def ask(request: Request, experiment: Named, body: AskBody) -> Response:
    """Get an arm; a repeated request with the same ticket gets the same answer."""
    return await _answer(request, experiment, body)


@router.post("/experiments/{name}/tell", response_model=StatusAnswer, responses=REFUSALS)
async def tell(request: Request, experiment: Named, body: TellBody) -> Response:
    """Tell the reward of a ticket, and get its status."""
    return await _answer(request, experiment, body)


@router.post("/experiments/{name}/batch", response_model=BatchAnswer, responses=REFUSALS)
async def batch(request: Request, experiment: Named, body: BatchBody) -> Response:
    """Do several asks and tells in one commit; a refused act does not affect the others."""
    return JSONResponse({"answers": await _answers(request, experiment, body.acts)})


# ---- what operators do


@router.get(
    "/health",
    responses={
        200: _shown(_OK),
        503: _shown(_FAILING, description="No commit could be made; the log says why."),
    },
)
async def health(request: Request) -> JSONResponse:
    """Report whether a commit could be made within the last seconds; needs no token."""
    every = request.app.state.experiments.values()
    failing = any(await asyncio.gather(*(experiment.problem() for experiment in every)))
    return JSONResponse(_FAILING if failing else _OK, 503 if failing else 200)


@router.get(
    "/metrics", response_class=PlainTextResponse, responses={200: _shown(_METRICS, "text/plain")}
)
def metrics(request: Request) -> PlainTextResponse:
    """Get metrics for Prometheus."""
    return PlainTextResponse(request.app.state.metrics.page())


@router.post("/experiments/{name}/{act}", responses=REFUSALS | {200: _shown({"done": True})})
async def act(
    experiment: Named,
    act: Annotated[Literal["drop", "pause", "stop", "resume"], Path(description=RULES["act"])],
    body: ArmBody,
) -> Response:
    """Change who gets which arm, which the journal then says.

    `drop`: offer an arm no more; its rewards still count. `pause`: give every request this arm, or
    the control arm, until `resume`. `stop`: this arm has won, and every request gets it. `resume`:
    let the policy choose again.
    """
    if body.arm is None and act in ("drop", "stop"):
        return JSONResponse(problem(f"arm is required: {RULES['arm']}"), 422)
    if body.arm is not None and act == "resume":
        return JSONResponse(problem("unknown field 'arm': leave it out, resume needs none"), 422)
    given = [] if body.arm is None else [body.arm]
    try:
        await asyncio.to_thread(getattr(experiment.agent, act), *given)
    except ValueError as refusal:
        return JSONResponse(problem(refusal), 422)
    return JSONResponse({"done": True})


# ---- the log


class _Log(StreamingResponse):
    """Sends a journal and closes it, also when the client has gone."""

    def __init__(self, journal: Journal, *, events: bool, **settings: Any) -> None:
        self._journal, self._pieces = journal, csv_pieces(journal, events=events)
        super().__init__(self._pieces, media_type="text/csv", **settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._pieces.close()
            self._journal.close()


@router.get(
    "/experiments/{name}/log",
    response_class=StreamingResponse,
    responses={200: _shown(_LOG_ROWS, "text/csv"), 404: REFUSALS[404]},
)
def log(
    experiment: Named,
    events: Annotated[
        bool, Query(description="every reward that was told, instead of tickets")
    ] = False,
    format: Annotated[Literal["csv"], Query(description=RULES["format"])] = "csv",  # noqa: A002
) -> Response:
    """Download every ticket with its arm, reward, status and features, or every event.

    It is sent while it is read; `tailproof log` also writes Parquet.
    """
    name = experiment.settings.name + ("-events" if events else "")
    saved_as = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return _Log(experiment.reader(), events=events, headers=saved_as)


# ---- the page


@router.get(
    "/experiments",
    tags=["page"],
    response_class=JSONResponse,
    responses={200: _shown({"experiments": [_HEAD]})},
)
def heads(request: Request) -> Response:
    """List the experiments, each with its leading arm and ticket counts."""
    return JSONResponse({"experiments": request.app.state.pages.heads()})


@router.get(
    "/experiments/{name}/summary",
    tags=["page"],
    response_class=JSONResponse,
    responses={
        200: _shown(_HEAD | {"aim": "median", "arms": [_ARM]}),
        404: {"description": "There is no such experiment."},
    },
)
def summary(request: Request, experiment: Named) -> Response:
    """Get the page of an experiment as JSON; incomplete while `read` is below 1."""
    return JSONResponse(request.app.state.pages.summary(experiment.settings.name))
