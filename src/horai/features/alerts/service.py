"""Operations on channels and rules: list, create, replace, delete."""

from collections.abc import Mapping, Sequence
from typing import Any

from horai.core.audit import AuditEntry, AuditVerb, changed_fields
from horai.core.errors import Conflict, Duplicate, Forbidden, Invalid, NotFound
from horai.core.masking import HIDDEN
from horai.db.pool import AnyRead, AnyWrite
from horai.features.alerts import store
from horai.features.alerts.channels import checked_channel, opened_config, place_of, shown_config, stored_config
from horai.features.alerts.rules import OF_PLATFORM, ONLY_PLATFORM, RuleKind, RuleWish, checked_rule
from horai.features.alerts.scope import PLATFORM, owner_of, tenant_of
from horai.features.alerts.store import ChannelRow, RuleRow
from horai.operations import audit
from horai.operations.calendars import hold_calendar
from horai.operations.scope import AnyScope, require_version
from horai.text import Hint, Refused, Wrong
from horai.time.durations import format_duration

MOST_CHANNELS, MOST_RULES = 100, 500


async def record(
    connection: AnyWrite, scope: AnyScope, verb: AuditVerb, name: str, before: Mapping[str, Any] | None, after: Any
) -> None:
    """Record a write of the caller, with the fields that differ."""
    if before is not None and after is not None:
        before, after = changed_fields(before, after)
    entry = AuditEntry(verb, verb.partition(".")[0], name, name, before, after)
    await audit.record(connection, tenant_of(scope), scope.actor, entry)


async def list_channels(scope: AnyScope, after: str, limit: int) -> Sequence[ChannelRow]:
    """Return a page of channels by name."""
    async with scope.read() as connection:
        return await store.list_channels(connection, owner_of(scope), after, limit)


async def read_channel(scope: AnyScope, name: str) -> ChannelRow:
    """Return a channel. Raise `NotFound` if there is none of this name."""
    async with scope.read() as connection:
        return await require_channel(connection, owner_of(scope), name)


async def require_channel(connection: AnyRead, owner: int, name: str) -> ChannelRow:
    """Return a channel of an owner. Raise `NotFound` if there is none of this name."""
    found = None if "\x00" in name else await store.find_channel(connection, owner, name)
    if found is None:
        raise _no_channel(name)
    return found


async def create_channel(scope: AnyScope, name: str, given: Mapping[str, Any]) -> ChannelRow:
    """Create a channel. Raise `Duplicate` if the name is taken."""
    owner = owner_of(scope)
    kind, language = given["kind"], given["language"]
    wish = checked_channel(kind, language, _fields(given), None, is_platform=owner == PLATFORM)
    async with scope.write() as connection:
        if await store.count_channels(connection, owner) >= MOST_CHANNELS:
            raise Conflict(Refused.CHANNELS_FULL(most=MOST_CHANNELS), Hint.DELETE_UNUSED())
        place = place_of(owner, name, wish.shown)
        config = await stored_config(connection, scope.keyring, scope.tenant_id, place, wish)
        made = await store.insert_channel(connection, owner, name, wish, config)
        if made is None:
            raise Duplicate(Refused.CHANNEL_NAME_TAKEN(name=name), Hint.PUT_CHANNEL(name=name))
        await record(connection, scope, AuditVerb.ALERT_CHANNEL_CREATE, name, None, channel_document(made))
    return made


async def replace_channel(scope: AnyScope, name: str, given: Mapping[str, Any], if_version: int | None) -> ChannelRow:
    """Replace all fields of a channel. `***` keeps a stored value."""
    owner = owner_of(scope)
    async with scope.write() as connection:
        known = await _locked_channel(connection, owner, name, if_version)
        keeps = HIDDEN in given.values()
        stored = await opened_config(connection, scope.keyring, owner, name, known.config) if keeps else None
        kind, language = given["kind"], given["language"]
        wish = checked_channel(kind, language, _fields(given), stored, is_platform=owner == PLATFORM)
        place = place_of(owner, name, wish.shown)
        config = await stored_config(connection, scope.keyring, scope.tenant_id, place, wish)
        changed = await store.replace_channel(connection, owner, name, wish, config)
        if changed is None:
            raise _no_channel(name)
        before, after = channel_document(known), channel_document(changed)
        await record(connection, scope, AuditVerb.ALERT_CHANNEL_CHANGE, name, before, after)
    return changed


async def delete_channel(scope: AnyScope, name: str, if_version: int | None) -> None:
    """Delete a channel. Raise `Conflict` while a rule uses it."""
    owner = owner_of(scope)
    async with scope.write() as connection:
        await _locked_channel(connection, owner, name, if_version)
        if (rule := await store.rule_of_channel(connection, owner, name)) is not None:
            raise Conflict(Refused.CHANNEL_IN_USE(name=name, rule=rule), Hint.CHANGE_RULES_FIRST())
        await store.delete_channel(connection, owner, name)
        await record(connection, scope, AuditVerb.ALERT_CHANNEL_DELETE, name, None, None)


async def _locked_channel(connection: AnyWrite, owner: int, name: str, if_version: int | None) -> ChannelRow:
    known = None if "\x00" in name else await store.lock_channel(connection, owner, name)
    if known is None:
        raise _no_channel(name)
    require_version(f"channel {name!r}", known.version, if_version)
    return known


def channel_document(row: ChannelRow) -> dict[str, Any]:
    """Return a channel as responses and the audit log show it."""
    return {"kind": row.kind, "language": row.language, **shown_config(row.config)}


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in {"name", "kind", "language"}}


def _no_channel(name: str) -> NotFound:
    return NotFound(Refused.NO_CHANNEL(name=name[:64]), Hint.LISTED_AT(path="/api/v1/alerts/channels"))


async def list_rules(scope: AnyScope, after: str, limit: int) -> Sequence[RuleRow]:
    """Return a page of rules by name."""
    async with scope.read() as connection:
        return await store.list_rules(connection, owner_of(scope), after, limit)


async def read_rule(scope: AnyScope, name: str) -> RuleRow:
    """Return a rule. Raise `NotFound` if there is none of this name."""
    async with scope.read() as connection:
        found = None if "\x00" in name else await store.find_rule(connection, owner_of(scope), name)
    if found is None:
        raise _no_rule(name)
    return found


async def create_rule(scope: AnyScope, name: str, given: Mapping[str, Any], *, is_platform: bool) -> RuleRow:
    """Create a rule. Raise `Duplicate` if the name is taken."""
    owner = owner_of(scope)
    wish = _wish(given, owner, is_platform=is_platform)
    async with scope.write() as connection:
        if await store.count_rules(connection, owner) >= MOST_RULES:
            raise Conflict(Refused.RULES_FULL(most=MOST_RULES), Hint.DELETE_UNUSED())
        await _require_channels(connection, owner, given["channels"])
        await _hold_calendar(connection, owner, wish)
        enabled = given["enabled"]
        made = await store.insert_rule(connection, owner, name, wish, given["channels"], is_enabled=enabled)
        if made is None:
            raise Duplicate(Refused.RULE_NAME_TAKEN(name=name), Hint.PUT_RULE(name=name))
        await record(connection, scope, AuditVerb.ALERT_RULE_CREATE, name, None, rule_document(made))
    return made


async def replace_rule(
    scope: AnyScope, name: str, given: Mapping[str, Any], if_version: int | None, *, is_platform: bool
) -> RuleRow:
    """Replace all fields of a rule. If it watches something else, or nothing, its alerts are dropped without a message."""
    owner = owner_of(scope)
    wish = _wish(given, owner, is_platform=is_platform)
    async with scope.write() as connection:
        known = await _locked_rule(connection, owner, name, if_version)
        await _require_channels(connection, owner, given["channels"])
        await _hold_calendar(connection, owner, wish)
        enabled = given["enabled"]
        changed = await store.replace_rule(connection, owner, name, wish, given["channels"], is_enabled=enabled)
        if changed is None:
            raise _no_rule(name)
        if (known.kind, known.definition) != (changed.kind, changed.definition) or not enabled:
            await store.drop_alerts_of_rule(connection, owner, known.id)
        before, after = rule_document(known), rule_document(changed)
        await record(connection, scope, AuditVerb.ALERT_RULE_CHANGE, name, before, after)
    return changed


async def delete_rule(scope: AnyScope, name: str, if_version: int | None) -> None:
    """Delete a rule with its alerts. The delivery log stays."""
    owner = owner_of(scope)
    async with scope.write() as connection:
        await _locked_rule(connection, owner, name, if_version)
        await store.delete_rule(connection, owner, name)
        await record(connection, scope, AuditVerb.ALERT_RULE_DELETE, name, None, None)


async def _locked_rule(connection: AnyWrite, owner: int, name: str, if_version: int | None) -> RuleRow:
    known = None if "\x00" in name else await store.lock_rule(connection, owner, name)
    if known is None:
        raise _no_rule(name)
    require_version(f"rule {name!r}", known.version, if_version)
    return known


def _wish(given: Mapping[str, Any], owner: int, *, is_platform: bool) -> RuleWish:
    """Return the rule. A rule of the platform sees no tenant's data; only the platform sees figures of all tenants."""
    kind = RuleKind(given["kind"])
    if owner == PLATFORM and kind not in OF_PLATFORM:
        raise Invalid.field("kind", Wrong.RULE_OF_TENANT(kind=kind))
    if kind in ONLY_PLATFORM and not is_platform:
        raise Forbidden(Refused.RULE_OF_PLATFORM(kind=kind), Hint.ASK_FOR_ROLE(needed="platform-admin"))
    known = {"name", "kind", "channels", "groupWait", "repeatEvery", "enabled"}
    fields = {name: value for name, value in given.items() if name not in known}
    return checked_rule(kind, fields, given["groupWait"], given["repeatEvery"])


async def _require_channels(connection: AnyWrite, owner: int, names: Sequence[str]) -> None:
    found = await store.share_channels(connection, owner, names)
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise Invalid.field("channels", Wrong.NO_CHANNEL_NAMED(name=missing), Hint.CREATE_CHANNEL_FIRST())


async def _hold_calendar(connection: AnyWrite, owner: int, wish: RuleWish) -> None:
    """Keep the calendar of the rule from being deleted until commit. Raise `Invalid` if there is none."""
    if "calendar" in wish.fields:
        await hold_calendar(connection, owner, wish.fields["calendar"])


def rule_document(row: RuleRow) -> dict[str, Any]:
    """Return a rule as responses and the audit log show it."""
    return {
        "kind": row.kind,
        "channels": list(row.channels),
        "groupWait": format_duration(row.group_wait),
        "repeatEvery": format_duration(row.repeat_every),
        "enabled": row.is_enabled,
        **row.definition,
    }


def _no_rule(name: str) -> NotFound:
    return NotFound(Refused.NO_RULE(name=name[:64]), Hint.LISTED_AT(path="/api/v1/alerts/rules"))
