"""Asks and tells; requests that wait for the journal share its next commit."""

import logging
import sqlite3
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Request
from fastapi.responses import JSONResponse, Response

from tailproof.live import Ask, Cancel, Status, Tell, Ticket
from tailproof.service.batching import Queue
from tailproof.service.experiments import Experiment
from tailproof.service.schemas import (
    REFUSALS,
    AskBody,
    BatchAnswer,
    BatchBody,
    StatusAnswer,
    TellBody,
    TicketAnswer,
    answer,
    problem,
)

__all__ = ["Named", "router"]

_LOG = logging.getLogger("tailproof.live")


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

router = APIRouter(prefix="/experiments/{name}", responses=REFUSALS)


async def _act(
    request: Request, experiment: Experiment, acts: Sequence[Ask | Tell], cancelled: Sequence[str]
) -> list[Ticket | Status | ValueError]:
    """Cancel abandoned asks, do asks and tells, all in one commit; count asks and tells."""
    try:
        orphans = [Cancel(ticket) for ticket in cancelled]
    except ValueError as refusal:
        raise HTTPException(422, str(refusal)) from None
    try:
        queue: Queue = request.app.state.queues[experiment.name]
        answers = await queue.act([*orphans, *acts])
    except Exception as error:
        raise _unwritten(error) from error
    answers = answers[len(cancelled) :]
    request.app.state.metrics.acted(experiment.name, acts, answers)
    return answers


def _unwritten(error: Exception) -> HTTPException:
    _LOG.error("commit failed", exc_info=error)
    shown = isinstance(error, sqlite3.Error | OSError)  # other messages may name hosts
    why = error if shown else type(error).__name__
    return HTTPException(503, f"commit failed, nothing was stored: {why}")


async def _answer_single(
    request: Request, experiment: Experiment, body: AskBody | TellBody
) -> Response:
    try:
        act = body.act(experiment.offer)
    except ValueError as refusal:
        return JSONResponse(problem(refusal), 422)
    (said,) = await _act(request, experiment, [act], body.cancel)
    return JSONResponse(answer(act, said), 422 if isinstance(said, ValueError) else 200)


@router.post("/ask", response_model=TicketAnswer)
async def ask(request: Request, experiment: Named, body: AskBody) -> Response:
    """Get an arm; a repeated request with the same ticket gets the same answer."""
    return await _answer_single(request, experiment, body)


@router.post("/tell", response_model=StatusAnswer)
async def tell(request: Request, experiment: Named, body: TellBody) -> Response:
    """Tell the reward of a ticket, and get its status."""
    return await _answer_single(request, experiment, body)


@router.post("/batch", response_model=BatchAnswer)
async def batch(request: Request, experiment: Named, body: BatchBody) -> Response:
    """Do several asks and tells in one commit; a refused one does not affect the others."""
    acts: list[Ask | Tell | ValueError] = []
    for entry in body.acts:
        try:
            acts.append(entry.act(experiment.offer))
        except ValueError as refusal:
            acts.append(refusal)
    cancelled = [ticket for entry in body.acts for ticket in entry.cancel]
    fit = [act for act in acts if not isinstance(act, ValueError)]
    said = iter(await _act(request, experiment, fit, cancelled))
    answers = [
        problem(act) if isinstance(act, ValueError) else answer(act, next(said)) for act in acts
    ]
    return JSONResponse({"answers": answers})
