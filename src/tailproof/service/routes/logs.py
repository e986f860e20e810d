"""The log of an experiment as CSV, sent while it is read; `tailproof log` also writes Parquet."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tailproof.live import Journal
from tailproof.live.export import csv_pieces
from tailproof.service.routes.decisions import Named
from tailproof.service.schemas import REFUSALS, RULES

__all__ = ["router"]

_EXAMPLE = (
    "ticket,arm,propensity,reward,status,asked,told\r\n"
    "v17,red,0.5,12.5,told,2026-01-05T09:00:00+00:00,2026-01-05T09:02:11+00:00\r\n"
)

Events = Annotated[bool, Query(description="every reward that was told, instead of tickets")]
Format = Annotated[Literal["csv"], Query(description=RULES["format"])]

router = APIRouter()


@router.get(
    "/experiments/{name}/log",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {"example": _EXAMPLE}}}, 404: REFUSALS[404]},
)
def log(experiment: Named, events: Events = False, format: Format = "csv") -> Response:  # noqa: A002
    """Download every ticket with its arm, reward, status and features, or every event."""
    name = f"{experiment.name}-events" if events else experiment.name
    saved_as = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return _Log(experiment.reader(), events=events, media_type="text/csv", headers=saved_as)


class _Log(StreamingResponse):
    """Sends a journal and closes it, also when the client has gone."""

    def __init__(self, journal: Journal, *, events: bool, **settings: Any) -> None:
        self._journal, self._pieces = journal, csv_pieces(journal, events=events)
        super().__init__(self._pieces, **settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._pieces.close()
            self._journal.close()
