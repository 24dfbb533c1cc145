"""Bulk routes: cancel or rerun all runs of a workflow that match a filter."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.rates import spread_of
from horai.api.route import RoleRoute, needs
from horai.api.sentence_json import sentence_fields
from horai.core.errors import Invalid
from horai.core.roles import AccessRole
from horai.features.workflow import runs_matching
from horai.features.workflow.graph import RunState
from horai.features.workflow.rerun_store import RunFilter
from horai.features.workflow.runs_matching import RunSummary, RunWish
from horai.features.workflow.wire import RerunManyIn, RunsAnswer, RunsIn, SkippedRunOut
from horai.text import Hint, Refused

router = APIRouter(prefix="/api/v1/workflows", tags=["workflows"], route_class=RoleRoute)


@router.post("/{workflow}/runs/cancel", responses={200: {"model": RunsAnswer}}, openapi_extra=takes(RunsIn))
@needs(AccessRole.OPERATOR)
async def cancel_runs(
    scope: ScopeDep, workflow: str, body: Annotated[Body[RunsIn], Depends(body_of(RunsIn))]
) -> Response:
    """Cancel all unfinished runs that match, at most `limit`, one transaction each.

    While `more` is true, the same request again continues with the rest. A cancelled run is not found again.
    """
    return await _changed(
        body.shape, lambda wish, dry_run: runs_matching.cancel_matching(scope, workflow, wish, dry_run=dry_run)
    )


@router.post("/{workflow}/runs/rerun", responses={200: {"model": RunsAnswer}}, openapi_extra=takes(RerunManyIn))
@needs(AccessRole.OPERATOR)
async def rerun_runs(
    scope: ScopeDep, workflow: str, body: Annotated[Body[RerunManyIn], Depends(body_of(RerunManyIn))]
) -> Response:
    """Rerun all BLOCKED runs that match, at most `limit`, each from the dead nodes that block it, one transaction each.

    While `more` is true, the same request again continues with the rest. A run that runs again is not found again.
    With a `rate`, the next request continues at `nextStart`.
    """
    spread = spread_of(body.shape.rate, body.shape.start_at)
    return await _changed(
        body.shape, lambda wish, dry_run: runs_matching.rerun_matching(scope, workflow, wish, spread, dry_run=dry_run)
    )


async def _changed(asked: RunsIn, change: Callable[[RunWish, bool], Awaitable[RunSummary]]) -> Response:
    ids = None if asked.ids is None else [int(id_) for id_ in asked.ids]
    state = None if asked.state is None else RunState[asked.state]
    wish = RunWish(RunFilter(state, asked.from_, asked.to), ids, asked.limit)
    if wish.is_everything:
        raise Invalid(Refused.CHANGES_EVERY_RUN(), Hint.NARROW_RUNS())
    done = await change(wish, asked.dry_run)
    reasons = [SkippedRunOut.encode(run=each.run, **sentence_fields("reason", each.reason)) for each in done.reasons]
    return answer(RunsAnswer.encode(done, reasons=reasons, dry_run=asked.dry_run))
