"""Operations on silences and heartbeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.audit import AuditVerb
from horai.core.digits import number_in
from horai.core.errors import Conflict, Invalid, NotFound
from horai.db import nodes
from horai.features.alerts import store
from horai.features.alerts.scope import owner_of
from horai.features.alerts.service import record
from horai.features.alerts.store import HeartbeatRow, SilenceRow
from horai.operations.scope import AnyScope, Scope, require_version
from horai.text import Hint, Refused, Wrong, told_by
from horai.time.durations import format_duration, parse_duration

MOST_SILENCES, MOST_HEARTBEATS = 500, 1_000
LONGEST_SILENCE = timedelta(days=366)
LEAST_EVERY = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SilenceWish:
    """A silence as it was asked for: it ends at `ends_at` or after `lasts`."""

    rule: str | None
    job: str | None
    tag: str | None
    starts_at: datetime | None
    ends_at: datetime | None
    lasts: str | None
    note: str | None


async def list_silences(scope: AnyScope, before: int, limit: int, *, also_ended: bool) -> Sequence[SilenceRow]:
    """Return a page of silences, newest first."""
    async with scope.read() as connection:
        return await store.list_silences(connection, owner_of(scope), before, limit, also_ended=also_ended)


async def create_silence(scope: AnyScope, wish: SilenceWish) -> SilenceRow:
    """Create a silence. Raise `Invalid` if it has no end, or ends before it starts."""
    owner, lasts = owner_of(scope), None if wish.lasts is None else _duration("lasts", wish.lasts)
    async with scope.write() as connection:
        now = await nodes.database_time(connection)
        times = _times(wish, lasts, now)
        if await store.count_silences(connection, owner) >= MOST_SILENCES:
            raise Conflict(Refused.SILENCES_FULL(most=MOST_SILENCES), Hint.DELETE_UNUSED())
        matching = (wish.rule, wish.job, wish.tag)
        made = await store.insert_silence(connection, owner, matching, times, (wish.note, scope.actor.name))
        after = {"rule": made.rule, "job": made.job, "tag": made.tag, "note": made.note}
        ends = {"startsAt": made.starts_at.isoformat(), "endsAt": made.ends_at.isoformat()}
        await record(connection, scope, AuditVerb.ALERT_SILENCE_CREATE, str(made.id), None, {**after, **ends})
    return made


def _times(wish: SilenceWish, lasts: timedelta | None, now: datetime) -> tuple[datetime, datetime]:
    if (wish.ends_at is None) == (lasts is None):
        raise Invalid.field("endsAt", Wrong.ONE_END())
    starts = wish.starts_at or now
    ends = wish.ends_at if wish.ends_at is not None else starts + (lasts or timedelta(0))
    if ends <= max(starts, now):
        raise Invalid.field("endsAt", Wrong.ENDS_TOO_EARLY())
    if ends - starts > LONGEST_SILENCE:
        raise Invalid.field("endsAt", Wrong.LONGER_THAN(most=LONGEST_SILENCE // timedelta(hours=1)))
    return starts, ends


async def delete_silence(scope: AnyScope, reference: str) -> None:
    """Delete a silence: alerts that still fire are sent now."""
    number = number_in(reference)
    async with scope.write() as connection:
        if number is None or not await store.delete_silence(connection, owner_of(scope), number):
            listed = Hint.LISTED_AT(path="/api/v1/alerts/silences")
            raise NotFound(Refused.NO_SILENCE(silence=reference[:40]), listed)
        await record(connection, scope, AuditVerb.ALERT_SILENCE_DELETE, reference, None, None)


async def list_heartbeats(scope: Scope, after: str, limit: int) -> Sequence[HeartbeatRow]:
    """Return a page of heartbeats by name."""
    async with scope.read() as connection:
        return await store.list_heartbeats(connection, scope.tenant_id, after, limit)


async def put_heartbeat(
    scope: Scope, name: str, every: str, grace: str, if_version: int | None
) -> tuple[HeartbeatRow, bool]:
    """Create a heartbeat or change its times. The second value tells whether it is new."""
    times = _duration("every", every), _duration("grace", grace)
    if times[0] < LEAST_EVERY:
        raise Invalid.field("every", Wrong.SHORTER_THAN(least="1s"))
    async with scope.write() as connection:
        known = await store.lock_heartbeat(connection, scope.tenant_id, name)
        require_version(f"heartbeat {name!r}", 0 if known is None else known.version, if_version)
        if known is None and await store.count_heartbeats(connection, scope.tenant_id) >= MOST_HEARTBEATS:
            raise Conflict(Refused.HEARTBEATS_FULL(most=MOST_HEARTBEATS), Hint.DELETE_UNUSED())
        row = await store.put_heartbeat(connection, scope.tenant_id, name, *times)
        after = {"every": format_duration(row.every), "grace": format_duration(row.grace)}
        await record(connection, scope, AuditVerb.HEARTBEAT_PUT, name, None, after)
    return row, known is None


async def beat(scope: Scope, name: str) -> HeartbeatRow:
    """Record that the external job has reported. Raise `NotFound` if there is no such heartbeat.

    It is the only write that is not audited: a report every second would fill the log.
    """
    async with scope.write() as connection:
        row = None if "\x00" in name else await store.beat_heartbeat(connection, scope.tenant_id, name)
    if row is None:
        raise _no_heartbeat(name)
    return row


async def delete_heartbeat(scope: Scope, name: str) -> None:
    """Delete a heartbeat. Its alert is resolved."""
    async with scope.write() as connection:
        if "\x00" in name or not await store.delete_heartbeat(connection, scope.tenant_id, name):
            raise _no_heartbeat(name)
        await record(connection, scope, AuditVerb.HEARTBEAT_DELETE, name, None, None)


def _no_heartbeat(name: str) -> NotFound:
    return NotFound(Refused.NO_HEARTBEAT(name=name[:64]), Hint.DEFINE_HEARTBEAT(name=name[:64]))


def _duration(field: str, text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise Invalid.field(field, told_by(error)) from error
