"""Bulk routes: cancel or replay all instances that match a filter."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.cursors import cursor_after, instance_cursor
from horai.api.filters import FilterValues, instances_meant, states_of
from horai.api.rates import rate_of
from horai.api.route import RoleRoute, needs
from horai.core.errors import Invalid
from horai.core.roles import AccessRole
from horai.core.states import LIVE, State
from horai.db.instance_lists import InstanceFilter
from horai.features.dead_letters import replay_matching
from horai.features.dead_letters.replay_matching import InstanceReplayRequest
from horai.operations import cancel_matching
from horai.operations.scope import Scope
from horai.text import Hint, Refused, Wrong
from horai.wire.instances import ReplaySweepAnswer, ReplaySweepIn, SweepAnswer, SweepIn

router = APIRouter(prefix="/api/v1/instances", tags=["instances"], route_class=RoleRoute)

WAITING = LIVE - {State.RUNNING}
DEAD = frozenset({State.DEAD})
ANYTHING = ("job", "state", "queue", "tag", "key", "key_prefix", "error_code", "payload", "ids", "from_", "to")


@router.post("/cancel", responses={200: {"model": SweepAnswer}}, openapi_extra=takes(SweepIn))
@needs(AccessRole.OPERATOR)
async def cancel_instances(scope: ScopeDep, body: Annotated[Body[SweepIn], Depends(body_of(SweepIn))]) -> Response:
    """Cancel all live instances that match, at most `limit`; running ones only if `state` names RUNNING.

    They are cancelled in portions. While `more` is true, the same request again continues with the rest.
    """
    wish = body.shape
    _refuse_everything(wish, Refused.CANCELS_EVERYTHING)
    states = WAITING if wish.state is None else states_of(wish.state) & LIVE
    if not states:
        raise Invalid.field("state", Wrong.STATE_FINAL(), Hint.LIVE_STATES())
    swept = await cancel_matching.cancel_matching(
        scope, await _filter(scope, wish, states), wish.limit, dry_run=wish.dry_run
    )
    return answer(SweepAnswer.encode(swept, dry_run=wish.dry_run))


@router.post("/replay", responses={200: {"model": ReplaySweepAnswer}}, openapi_extra=takes(ReplaySweepIn))
@needs(AccessRole.OPERATOR)
async def replay_instances(
    scope: ScopeDep, body: Annotated[Body[ReplaySweepIn], Depends(body_of(ReplaySweepIn))]
) -> Response:
    """Replay the dead instances that match and whose letters are open, at most `limit`, newest fire time first, at `rate`.

    The same request again skips instances that were replayed before; with `cursor` it continues after them.
    """
    wish = body.shape
    _refuse_everything(wish, Refused.REPLAYS_EVERYTHING)
    if wish.state is not None and not states_of(wish.state) & DEAD:
        raise Invalid.field("state", Wrong.NOT_DEAD(), Hint.NAME_DEAD())
    only = await _filter(scope, wish, DEAD)
    before = instance_cursor(wish.cursor)
    wanted = InstanceReplayRequest(only, wish.limit, rate_of(wish.rate))
    swept = await replay_matching.replay_matching(scope, wanted, before, dry_run=wish.dry_run)
    cursor = None if swept.reached is None else cursor_after(*swept.reached)
    return answer(ReplaySweepAnswer.encode(swept, next_cursor=cursor, dry_run=wish.dry_run))


def _refuse_everything(wish: SweepIn, says: Refused) -> None:
    if all(getattr(wish, name) in (None, "") for name in ANYTHING):
        raise Invalid(
            says(),
            Hint.GIVE_A_FILTER(),
        )


async def _filter(scope: Scope, wish: SweepIn, states: frozenset[State]) -> InstanceFilter:
    ids = None if wish.ids is None else tuple(int(id_) for id_ in wish.ids)
    return await instances_meant(scope, wish, FilterValues(states, wish.job, ids))
