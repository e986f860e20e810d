"""What those who run the service watch: health and metrics."""

from importlib.metadata import version

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

__all__ = ["router"]

_HEALTH = {"status": "ok", "version": version("tailproof")}
_METRICS = 'tailproof_asks_total{experiment="shop"} 1204.0\n'

router = APIRouter()


@router.get("/health", responses={200: {"content": {"application/json": {"example": _HEALTH}}}})
async def health() -> dict[str, str]:
    """Report that the service is up; needs no token."""
    return _HEALTH


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"example": _METRICS}}}},
)
def metrics(request: Request) -> PlainTextResponse:
    """Get metrics for Prometheus."""
    return PlainTextResponse(request.app.state.metrics.page())
