"""HTTP routes for reconcilers and their reports."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import IdempotencyKey, ScopeDep, VersionDep, once_of, required_once, takes
from horai.api.cursors import next_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.errors import Invalid
from horai.core.roles import AccessRole
from horai.features.reconcile import service as reconcilers
from horai.features.reconcile.definition import shown_source
from horai.features.reconcile.service import Overview, ReconcilerChange, ReconcilerWish
from horai.features.reconcile.store import Report
from horai.features.reconcile.wire import (
    ExamplesOut,
    FaultyItemOut,
    ReconcilerIn,
    ReconcilerList,
    ReconcilerOut,
    ReconcilerPatch,
    ReportList,
    ReportOut,
    ReportSummary,
)
from horai.text import Hint, Wrong
from horai.wire.encode import Encoded
from horai.wire.instances import InstanceAnswer
from horai.wire.jobs import Noted

router = APIRouter(prefix="/api/v1/reconcilers", tags=["reconcilers"], route_class=RoleRoute)


def _shown(overview: Overview, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return answer(_encode_reconciler(overview), status, {"ETag": f'"{overview.row.version}"', **(headers or {})})


def _source(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given["source"].items() if value is not None}


@router.post("", status_code=201, responses={201: {"model": ReconcilerOut}}, openapi_extra=takes(ReconcilerIn))
@needs(AccessRole.ADMIN)
async def create_reconciler(
    scope: ScopeDep,
    body: Annotated[Body[ReconcilerIn], Depends(body_of(ReconcilerIn))],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a reconciler: it compares a source with the instances of a job and creates missing instances."""
    given = body.given()
    wish = ReconcilerWish(given["name"], given["job"], _source(given), given)
    made = await reconcilers.create_reconciler(scope, wish, once_of(idempotency_key, body.raw))
    return _shown(made, 201, {"Location": f"/api/v1/reconcilers/{made.row.id}"})


@router.get("", responses={200: {"model": ReconcilerList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_reconcilers(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List reconcilers, newest first, each with its last report and its next fire time."""
    found = await reconcilers.list_reconcilers(scope, query.before, query.limit)
    cursor = next_cursor([overview.row for overview in found], query.limit)
    return answer(ReconcilerList.encode(items=[_encode_reconciler(each) for each in found], next_cursor=cursor))


@router.get("/{reconciler}", responses={200: {"model": ReconcilerOut}})
@needs(AccessRole.VIEWER)
async def get_reconciler(scope: ScopeDep, reconciler: str) -> Response:
    """Read a reconciler by id or name."""
    return _shown(await reconcilers.read_reconciler(scope, reconciler))


@router.patch("/{reconciler}", responses={200: {"model": ReconcilerOut}}, openapi_extra=takes(ReconcilerPatch))
@needs(AccessRole.ADMIN)
async def patch_reconciler(
    scope: ScopeDep,
    reconciler: str,
    body: Annotated[Body[ReconcilerPatch], Depends(body_of(ReconcilerPatch))],
    if_version: VersionDep,
) -> Response:
    """Change the schedule or the source of a reconciler.

    The new source replaces the old one completely; a current run reads it from its beginning.
    """
    given = body.given()
    if "source" in given and given["source"] is None:
        raise Invalid.field("source", Wrong.SOURCE_STAYS(), Hint.GIVE_ANOTHER_SOURCE())
    source = _source(given) if "source" in given else None
    schedule = {name: value for name, value in given.items() if name != "source"}
    return _shown(
        await reconcilers.change_reconciler(scope, reconciler, ReconcilerChange(schedule, source, if_version))
    )


@router.delete("/{reconciler}", status_code=204)
@needs(AccessRole.ADMIN)
async def delete_reconciler(scope: ScopeDep, reconciler: str, if_version: VersionDep) -> Response:
    """Delete a reconciler; the instances that it created stay."""
    await reconcilers.delete_reconciler(scope, reconciler, if_version)
    return Response(status_code=204)


@router.post(
    "/{reconciler}/pause", responses={200: {"model": ReconcilerOut}}, openapi_extra=takes(Noted, required=False)
)
@needs(AccessRole.OPERATOR)
async def pause_reconciler(
    scope: ScopeDep, reconciler: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Pause a reconciler: it starts no new runs. A current run finishes."""
    return _shown(await reconcilers.set_paused(scope, reconciler, body.shape.note, paused=True))


@router.post(
    "/{reconciler}/resume", responses={200: {"model": ReconcilerOut}}, openapi_extra=takes(Noted, required=False)
)
@needs(AccessRole.OPERATOR)
async def resume_reconciler(
    scope: ScopeDep, reconciler: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Resume a paused reconciler; one catch-up run replaces all missed runs."""
    return _shown(await reconcilers.set_paused(scope, reconciler, body.shape.note, paused=False))


@router.post("/{reconciler}/run", status_code=202, responses={202: {"model": InstanceAnswer}})
@needs(AccessRole.OPERATOR)
async def run_reconciler(scope: ScopeDep, reconciler: str, idempotency_key: IdempotencyKey = None) -> Response:
    """Start a comparison now, once per `Idempotency-Key`; the result of the returned instance is the report."""
    row = await reconcilers.run_reconciler(scope, reconciler, required_once(idempotency_key, b""))
    return answer(InstanceAnswer.encode(instance=row), 202, {"Location": f"/api/v1/instances/{row.id}"})


@router.get("/{reconciler}/reports", responses={200: {"model": ReportList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_reports(scope: ScopeDep, reconciler: str, query: Annotated[PageQuery, Query()]) -> Response:
    """List the reports of a reconciler, newest first; the last 1,000 are kept."""
    rows = await reconcilers.list_reports(scope, reconciler, query.before, query.limit)
    items = [_encode_report(row) for row in rows]
    return answer(ReportList.encode(items=items, next_cursor=next_cursor(rows, query.limit)))


def _encode_reconciler(overview: Overview) -> Encoded:
    """Return a reconciler with its last report, without its secrets."""
    row, last = overview.row, overview.last
    return ReconcilerOut.encode(
        row,
        job=row.target,
        job_id=row.target_id,
        run_job_id=row.job_id,
        every=row.document.get("every"),
        cron=row.document.get("cron"),
        timezone=row.document.get("timezone"),
        source=shown_source(row.source),
        next_fire=overview.next_fire,
        last_report=None if last is None else _encode_summary(last),
    )


def _encode_summary(report: Report) -> Encoded:
    return ReportSummary.encode(report)


def _encode_report(report: Report) -> Encoded:
    tally = report.tally
    return ReportOut.encode(
        report,
        examples=ExamplesOut.encode(
            missing=tally.missing_keys,
            surplus=report.surplus_keys,
            faulty=[FaultyItemOut.encode(key=key, why=why) for key, why in tally.faults],
        ),
    )
