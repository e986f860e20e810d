"""Routes for operators of the service: health, metrics, drop, pause, stop, resume."""

import asyncio
from importlib.metadata import version
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from tailproof.service.routes.decisions import Named
from tailproof.service.schemas import REFUSALS, RULES, problem

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
    """The arm that is meant."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"arm": "red"}, {}]})

    arm: Annotated[str | None, Field(description=RULES["arm"])] = None


@router.post(
    "/experiments/{name}/{act}",
    responses=REFUSALS | {200: {"content": {"application/json": {"example": {"done": True}}}}},
)
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
