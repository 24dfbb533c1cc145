"""Many instances at once: cancelled by what they have in common."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from horai.accept import sweeps
from horai.accept.scope import Scope, require_job
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.filters import states_of
from horai.api.present import answer
from horai.core.errors import Invalid
from horai.core.states import LIVE, State
from horai.db.lists import InstanceFilter
from horai.db.pool import acquire
from horai.wire.instances import SweepAnswer, SweepIn

router = APIRouter(prefix="/api/v1/instances", tags=["instances"])

WAITING = LIVE - {State.RUNNING}
ANYTHING = ("job", "state", "queue", "tag", "key", "key_prefix", "error_code", "from_", "to")


@router.post("/cancel", responses={200: {"model": SweepAnswer}}, openapi_extra=takes(SweepIn))
async def cancel_instances(scope: ScopeDep, body: Annotated[Body[SweepIn], Depends(body_of(SweepIn))]) -> Response:
    """Cancel all live instances that match, at most `limit`; what runs only where `state` names RUNNING.

    Done in portions. The same request again goes on with what is left, as long as `more` is true.
    """
    wish = body.shape
    if all(getattr(wish, name) in (None, "") for name in ANYTHING):
        raise Invalid(
            "Nothing narrows this down: it would cancel everything.",
            "Give at least one of job, state, queue, tag, key, keyPrefix, errorCode, from, to.",
        )
    swept = await sweeps.cancel_matching(scope, await _filter(scope, wish), wish.limit, dry_run=wish.dry_run)
    told = {"matched": swept.matched, "cancelled": swept.cancelled, "held": swept.held, "more": swept.more}
    return answer({**told, "dryRun": wish.dry_run})


async def _filter(scope: Scope, wish: SweepIn) -> InstanceFilter:
    job_id = None
    if wish.job is not None:
        async with acquire(scope.pool) as connection:
            job_id = (await require_job(connection, scope, wish.job)).id
    return InstanceFilter(
        WAITING if wish.state is None else _live(wish.state),
        job_id,
        wish.key,
        wish.from_,
        wish.to,
        wish.queue,
        wish.tag,
        wish.error_code,
        wish.key_prefix,
    )


def _live(words: str) -> frozenset[State]:
    states = states_of(words) & LIVE
    if not states:
        raise Invalid.field("state", "is final: nothing can be cancelled there", "INIT, FAIL, BLOCKED and RUNNING can.")
    return states
