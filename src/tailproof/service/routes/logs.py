"""The log of an experiment as a file."""

import io
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tailproof.extras import import_extra
from tailproof.live import Journal, read
from tailproof.live.export import csv_pieces
from tailproof.service.routes.decisions import Named
from tailproof.service.schemas import REFUSALS, problem

__all__ = ["router"]

_EXAMPLE = (
    "ticket,arm,propensity,reward,status,asked,told\r\n"
    "v17,red,0.5,12.5,told,2026-01-05T09:00:00+00:00,2026-01-05T09:02:11+00:00\r\n"
)
_PARQUET = "application/vnd.apache.parquet"

Events = Annotated[bool, Query(description="every reward that was told, instead of tickets")]

router = APIRouter()
_Format = Literal["csv", "parquet"]


@router.get(
    "/experiments/{name}/log",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/csv": {"example": _EXAMPLE}, _PARQUET: {"example": "PAR1…"}}},
        404: REFUSALS[404],
        501: {"description": "Parquet needs the package pyarrow."},
    },
)
def log(experiment: Named, events: Events = False, format: _Format = "csv") -> Response:  # noqa: A002
    """Download every ticket with its arm, reward, status and features, or every event."""
    name = f"{experiment.name}-events" if events else experiment.name
    saved_as = {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
    if format == "csv":
        return _Log(experiment.reader(), events=events, media_type="text/csv", headers=saved_as)
    try:
        import_extra("pyarrow", "parquet", "writing Parquet")
    except ImportError as error:
        return JSONResponse(problem(error), 501)
    journal, stream = experiment.reader(), io.BytesIO()
    try:
        table = read(journal)
        (table.events if events else table.frame).to_parquet(stream)
    finally:
        journal.close()
    return Response(stream.getvalue(), media_type=_PARQUET, headers=saved_as)


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
