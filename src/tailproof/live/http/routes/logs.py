"""The log of an experiment as a file."""

from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from tailproof.live.http.routes.decisions import Named
from tailproof.live.http.schemas import REFUSALS
from tailproof.live.log import csv_pieces

__all__ = ["router"]

_EXAMPLE = (
    "ticket,hold,arm,propensity,reward,fate,asked,told\r\n"
    "v17,0,red,0.5,12.5,kept,2026-01-05T09:00:00+00:00,2026-01-05T09:02:11+00:00\r\n"
)

router = APIRouter()


@router.get(
    "/experiments/{name}/log",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {"example": _EXAMPLE}}}, 404: REFUSALS[404]},
)
def log(experiment: Named) -> StreamingResponse:
    """Download every ticket with its arm, reward and status as CSV."""
    journal = experiment.reader()

    def pieces() -> Iterator[str]:
        try:
            yield from csv_pieces(journal)
        finally:
            journal.close()

    saved_as = {"Content-Disposition": f'attachment; filename="{experiment.name}.csv"'}
    return StreamingResponse(pieces(), media_type="text/csv", headers=saved_as)
