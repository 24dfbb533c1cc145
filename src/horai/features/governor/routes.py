"""Routes of the governor: its modes, their history, and its thresholds."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.authentication import Caller
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, CallerDep, VersionDep, takes
from horai.api.cursors import page_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import ANY_KEY, RoleRoute, needs
from horai.core.controls import GovernorMode
from horai.core.errors import Invalid
from horai.core.roles import AccessRole
from horai.features.governor import service, store
from horai.features.governor.rules import RULES, Thresholds, check, figures_of
from horai.features.governor.store import Governor
from horai.features.governor.views import encode_cause, encode_governor
from horai.features.governor.wire import (
    FigureOut,
    GovernorOut,
    ModeChangeList,
    ModeChangeOut,
    ModeIn,
    ThresholdsIn,
    ThresholdsOut,
)
from horai.text import told_by
from horai.time.durations import parse_duration
from horai.wire.encode import Encoded

router = APIRouter(prefix="/api/v1/scheduler", tags=["governor"], route_class=RoleRoute)

_STATES = {"ON": True, "OFF": False, "AUTO": None}
_NAMES = {
    GovernorMode.SHED_LOW: "triggerDelayP95Ms",
    GovernorMode.RETRY_LIMITED: "runSuccessRate10m",
    GovernorMode.RETRY_SHORT_FIRST: "retryBacklog",
    GovernorMode.CORE_ONLY: "dlqGrowthPerMin",
}


@router.get("/mode", responses={200: {"model": GovernorOut}})
@needs(*ANY_KEY)
async def get_mode(scope: AccessScopeDep, caller: CallerDep) -> Response:
    """Show the modes, the holds by hand, and what the governor does now."""
    return answer(await encode_governor(scope, caller, await service.read_governor(scope)))


@router.post("/mode", responses={200: {"model": GovernorOut}}, openapi_extra=takes(ModeIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def post_mode(
    scope: AccessScopeDep, caller: CallerDep, body: Annotated[Body[ModeIn], Depends(body_of(ModeIn))]
) -> Response:
    """Force a mode on or off, with an expiry, or return it to its rule. A notification tells every process at once."""
    given = body.shape
    lasts = duration_of("expiresIn", given.expires_in)
    governor = await service.override_mode(scope, GovernorMode(given.mode), _STATES[given.state], given.note, lasts)
    return answer(await encode_governor(scope, caller, governor))


@router.get("/mode/history", responses={200: {"model": ModeChangeList}})
@needs(*ANY_KEY)
@may_lag
async def get_mode_history(scope: AccessScopeDep, caller: CallerDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List entries into modes and exits from them, newest first. They are kept for 90 days."""
    async with scope.read() as connection:
        rows = await store.list_mode_changes(connection, query.before, query.limit)
    items = [ModeChangeOut.encode(row, cause=encode_cause(row.cause, caller)) for row in rows]
    following = page_cursor(str(rows[-1].id)) if len(rows) == query.limit else None
    return answer(ModeChangeList.encode(items=items, next_cursor=following))


@router.get("/thresholds", responses={200: {"model": ThresholdsOut}})
@needs(*ANY_KEY)
async def get_thresholds(scope: AccessScopeDep, caller: CallerDep) -> Response:
    """Show the settings of the rules. The platform also sees the figures that they compare."""
    return _encode_thresholds(await service.read_governor(scope), caller)


@router.put("/thresholds", responses={200: {"model": ThresholdsOut}}, openapi_extra=takes(ThresholdsIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def put_thresholds(
    scope: AccessScopeDep,
    caller: CallerDep,
    version: VersionDep,
    body: Annotated[Body[ThresholdsIn], Depends(body_of(ThresholdsIn))],
) -> Response:
    """Replace the settings of the rules, and evaluate them at once."""
    given = body.shape
    thresholds = Thresholds(
        delay_p95=_duration("triggerDelayP95", given.trigger_delay_p95),
        delay_for=_duration("triggerDelayFor", given.trigger_delay_for),
        success_rate=given.run_success_rate_10m,
        retry_backlog=given.retry_backlog,
        dead_letters=given.dlq_growth_per_min,
        clear_for=_duration("clearFor", given.clear_for),
        least_starts=given.min_starts,
        least_outcomes=given.min_outcomes,
        is_dry_run=given.dry_run,
    )
    return _encode_thresholds(await service.put_thresholds(scope, thresholds, version), caller)


def _encode_thresholds(governor: Governor, caller: Caller) -> Response:
    figures = [_encode_figure(mode, governor) for mode in RULES] if caller.is_platform else []
    shown = ThresholdsOut.encode(**_snake(service.thresholds_document(governor.thresholds)), figures=figures)
    return answer(shown, 200, {"ETag": f'"{governor.version}"'})


def _snake(document: dict[str, Any]) -> dict[str, Any]:
    names = {field.alias: name for name, field in ThresholdsOut.model_fields.items()}
    return {names[alias]: value for alias, value in document.items()}


def _encode_figure(mode: GovernorMode, governor: Governor) -> Encoded:
    figures = figures_of(governor.reading)
    found = check(mode, figures, governor.thresholds)
    samples = {GovernorMode.SHED_LOW: figures.starts, GovernorMode.RETRY_LIMITED: figures.outcomes}.get(mode)
    value, limit = found.cause.value, found.cause.limit
    if mode is GovernorMode.RETRY_LIMITED:
        value, limit = figures.success_rate, governor.thresholds.success_rate
    return FigureOut.encode(found, mode=mode.value, name=_NAMES[mode], value=value, limit=limit, samples=samples)


def duration_of(field: str, text: str | None) -> timedelta | None:
    """Return the duration of an optional field. Raise `Invalid` if it is none, or zero."""
    return None if text is None else _duration(field, text)


def _duration(field: str, text: str) -> timedelta:
    try:
        duration = parse_duration(text)
    except ValueError as error:
        raise Invalid.field(field, told_by(error)) from error
    return duration
