"""Operations on sinks: create, change, read, pause, resume, replay and delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.core.audit import AuditVerb
from horai.core.errors import Conflict, NotFound
from horai.core.masking import revealed_target, shown_target
from horai.core.validation import Validation
from horai.core.wakes import EventsWake, NodesWake
from horai.db import outbox
from horai.db.pool import TenantRead, TenantWrite
from horai.features.outbox import store
from horai.features.outbox.places import EVENT_TYPE, SINK_NAME, checked_place, place_in, place_of_sink
from horai.features.outbox.store import SinkKind, SinkLag, SinkRow, SinkSpec, SinkStatus
from horai.operations import audit, target_secrets
from horai.operations.scope import Scope, require_version
from horai.text import Hint, Refused, Wrong, mismatch

MOST_SINKS = 100


@dataclass(frozen=True, slots=True)
class SinkView:
    """A sink, and how far it is behind."""

    row: SinkRow
    lag: SinkLag


async def list_sinks(scope: Scope, after: str, limit: int) -> list[SinkView]:
    """Return a page of the tenant's sinks by name."""
    async with scope.read() as connection:
        return await _views(connection, scope, await store.list_sinks(connection, scope.tenant_id, after, limit))


async def read_sink(scope: Scope, name: str) -> SinkView:
    """Return a sink. Raise `NotFound` if there is none of this name."""
    async with scope.read() as connection:
        row = None if "\x00" in name else await store.find_sink(connection, scope.tenant_id, name)
        if row is None:
            raise _not_found(name)
        return (await _views(connection, scope, [row]))[0]


async def put_sink(
    scope: Scope, name: str, given: Mapping[str, Any], if_version: int | None = None
) -> tuple[SinkView, bool]:
    """Create a sink, which gets the events from now on, or change one, which keeps its position. The second value tells whether it is new."""
    spec = _checked(scope, name, given)
    async with scope.write() as connection:
        before = await store.lock_sink(connection, scope.tenant_id, name)
        if before is None:
            require_version(f"sink {name!r}", 0, if_version)
            row = await _insert(connection, scope, name, spec)
        else:
            require_version(f"sink {name!r}", before.version, if_version)
            row = await _change(connection, scope, before, spec)
        view = (await _views(connection, scope, [row]))[0]
    _announce(scope)
    return view, before is None


def _checked(scope: Scope, name: str, given: Mapping[str, Any]) -> SinkSpec:
    faults = Validation()
    if not SINK_NAME.fullmatch(name):
        faults.add("name", mismatch(name, SINK_NAME))
    kind = SinkKind(given["kind"])
    checked_place(kind, given, scope.brokers, faults)
    for wanted in given.get("types") or ():
        if not EVENT_TYPE.fullmatch(wanted):
            faults.add("types", mismatch(wanted, EVENT_TYPE))
    batch = given.get("batch")
    if batch is not None and kind is not SinkKind.WEBHOOK:
        faults.add("batch", Wrong.NOT_FOR_SINK(kind=kind.value))
    faults.raise_if_any()
    return SinkSpec(kind, place_in(kind, given), given.get("types"), batch or 1)


async def _insert(connection: TenantWrite, scope: Scope, name: str, spec: SinkSpec) -> SinkRow:
    revealed_target(spec.place, None, "sink")
    position = await outbox.open_outbox(connection)
    if await store.count_sinks(connection, scope.tenant_id) >= MOST_SINKS:
        raise Conflict(Refused.SINKS_FULL(most=MOST_SINKS), Hint.DELETE_UNUSED_SINKS())
    row = await store.insert_sink(
        connection, scope.tenant_id, name, await _sealed(connection, scope, name, spec), position
    )
    if row is None:
        raise Conflict(Refused.SINK_NAME_TAKEN(name=name), Hint.REPEAT_TO_CHANGE())
    await audit.record_write(connection, scope, AuditVerb.SINK_CREATE, name, name, _audited(row))
    return row


async def _change(connection: TenantWrite, scope: Scope, before: SinkRow, spec: SinkSpec) -> SinkRow:
    place = place_of_sink(before.name, before.place)
    kept = await target_secrets.kept_by(connection, scope, place, before.place, spec.place)
    full = SinkSpec(spec.kind, revealed_target(spec.place, kept, "sink"), spec.types, spec.batch)
    row = await store.change_sink(
        connection, scope.tenant_id, before.name, await _sealed(connection, scope, before.name, full)
    )
    await audit.record_change(
        connection, scope, AuditVerb.SINK_CHANGE, row.name, row.name, _audited(before), _audited(row)
    )
    return row


async def _sealed(connection: TenantWrite, scope: Scope, name: str, spec: SinkSpec) -> SinkSpec:
    place = place_of_sink(name, spec.place)
    stored = await target_secrets.sealed(connection, scope.keyring, scope.tenant_id, place, spec.place)
    return SinkSpec(spec.kind, stored, spec.types, spec.batch)


async def set_paused(scope: Scope, name: str, *, is_paused: bool, note: str | None = None) -> SinkView:
    """Pause a sink, or let it get the events from its position on."""
    status = SinkStatus.PAUSED if is_paused else SinkStatus.ACTIVE
    async with scope.write() as connection:
        before = await _lock(connection, scope, name)
        row = before
        if (before.status is SinkStatus.PAUSED) != is_paused or before.status is SinkStatus.PARKED:
            row = await store.set_sink_status(connection, scope.tenant_id, name, status)
            verb = AuditVerb.SINK_PAUSE if is_paused else AuditVerb.SINK_RESUME
            await audit.record_write(connection, scope, verb, name, name, None if note is None else {"note": note})
        view = (await _views(connection, scope, [row]))[0]
    _announce(scope)
    return view


async def replay_sink(scope: Scope, name: str, since: datetime) -> int:
    """Send a sink all events since a time again. Return how many they are."""
    async with scope.write() as connection:
        await _lock(connection, scope, name)
        replayed = await store.rewind_sink(connection, scope.tenant_id, name, since)
        after, counts = {"since": since.isoformat()}, {"replayed": replayed}
        await audit.record_write(connection, scope, AuditVerb.SINK_REPLAY, name, name, after, counts)
    _announce(scope)
    return replayed


async def delete_sink(scope: Scope, name: str) -> None:
    """Delete a sink. Events that it has not got are not sent."""
    async with scope.write() as connection:
        await _lock(connection, scope, name)
        await store.delete_sink(connection, scope.tenant_id, name)
        await audit.record_write(connection, scope, AuditVerb.SINK_DELETE, name, name)
    _announce(scope)


async def _lock(connection: TenantWrite, scope: Scope, name: str) -> SinkRow:
    row = None if "\x00" in name else await store.lock_sink(connection, scope.tenant_id, name)
    if row is None:
        raise _not_found(name)
    return row


async def _views(connection: TenantRead, scope: Scope, rows: Sequence[SinkRow]) -> list[SinkView]:
    lags = await store.lags_of_sinks(connection, scope.tenant_id, [row.id for row in rows]) if rows else {}
    return [SinkView(row, lags.get(row.id, SinkLag())) for row in rows]


def _announce(scope: Scope) -> None:
    """Make every process read the controls again, and the node that leads deliver."""
    scope.wakeups.publish(NodesWake())
    scope.wakeups.publish(EventsWake())


def _audited(row: SinkRow) -> dict[str, Any]:
    return {"kind": row.kind.value, **shown_target(row.place), "types": row.types, "batch": row.batch}


def _not_found(name: str) -> NotFound:
    return NotFound(Refused.NO_SINK(name=name[:64]), Hint.LISTED_AT(path="/api/v1/sinks"))
