"""Routes for operators of the service: health, metrics, drop, pause, stop, resume."""

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from tailproof.service.routes.decisions import Named
from tailproof.service.schemas import REFUSALS, problem

__all__ = ["router"]

_OK = {"status": "ok", "version": version("tailproof")}
_FAILING = _OK | {"status": "failing"}
_METRICS = 'tailproof_asks_total{experiment="shop"} 1204.0\n'

router = APIRouter()


@router.get(
    "/health",
    responses={
        200: {"content": {"application/json": {"example": _OK}}},
        503: {
            "description": "No commit could be made; the log says why.",
            "content": {"application/json": {"example": _FAILING}},
        },
    },
)
async def health(request: Request) -> JSONResponse:
    """Report whether a commit could be made within the last seconds; needs no token."""
    ok = await request.app.state.health.ok()
    return JSONResponse(_OK if ok else _FAILING, 200 if ok else 503)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"example": _METRICS}}}},
)
def metrics(request: Request) -> PlainTextResponse:
    """Get metrics for Prometheus."""
    return PlainTextResponse(request.app.state.metrics.page())


class ArmBody(BaseModel):
    """Which arm is meant."""

    model_config = ConfigDict(extra="forbid")

    arm: Annotated[str, Field(description="name of the arm", examples=["red"])]


class PauseBody(BaseModel):
    """Which arm requests get; by default the control group's."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{}]})

    arm: Annotated[str | None, Field(description="name of the arm", examples=["red"])] = None


class NoBody(BaseModel):
    """Nothing more to say."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{}]})


class Done(BaseModel):
    """What was asked for is in the journal."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"done": True}]})

    done: bool


async def _done(act: Callable[..., None], *given: str | None) -> Response:
    """Do something to an experiment, which its journal then says."""
    try:
        await asyncio.to_thread(act, *given)
    except ValueError as refusal:
        return JSONResponse(problem(refusal), 422)
    return JSONResponse({"done": True})


@router.post("/experiments/{name}/drop", response_model=Done, responses=REFUSALS)
async def drop(experiment: Named, body: ArmBody) -> Response:
    """Offer an arm no more; its rewards still count."""
    return await _done(experiment.agent.drop, body.arm)


@router.post("/experiments/{name}/pause", response_model=Done, responses=REFUSALS)
async def pause(experiment: Named, body: PauseBody) -> Response:
    """Give every request this arm, or the control arm, until the experiment is resumed."""
    return await _done(experiment.agent.pause, body.arm)


@router.post("/experiments/{name}/stop", response_model=Done, responses=REFUSALS)
async def stop(experiment: Named, body: ArmBody) -> Response:
    """End the experiment: this arm has won, and every request gets it."""
    return await _done(experiment.agent.stop, body.arm)


@router.post("/experiments/{name}/resume", response_model=Done, responses=REFUSALS)
async def resume(experiment: Named, body: NoBody) -> Response:
    """Let the policy choose again."""
    return await _done(experiment.agent.resume)
