"""What those who run the service watch: health and metrics."""

from importlib.metadata import version

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse

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
