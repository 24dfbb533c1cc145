"""Definitions as files: the kinds of definitions, and the operation that makes the stored ones equal to written ones."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
from pydantic import BaseModel

from horai.core.definitions import FieldChange, changes_between
from horai.core.errors import FieldError, HoraiError, NotFound
from horai.core.payload_text import payload_text
from horai.db.definition_versions import VersionRow, VersionsOf, find_version, list_versions
from horai.operations.dry_run import perhaps
from horai.operations.scope import Scope, require_version
from horai.operations.versions import Kind, StoredDefinition
from horai.text import Hint, Refused


@dataclass(frozen=True, slots=True)
class WrittenDefinition:
    """A definition that a user wrote: its fields without payloads, and its JSON text, which has them to the letter."""

    document: Mapping[str, Any]
    text: bytes

    @property
    def name(self) -> str:
        """Return the name of the object."""
        return str(self.document["name"])

    @property
    def payload(self) -> str | None:
        """Return the payload as JSON text."""
        return payload_text(msgspec.json.decode(self.text, type=dict[str, msgspec.Raw]).get("payload"), "payload")


@dataclass(frozen=True, slots=True)
class DefinitionKind:
    """A kind of definition, and how its objects are found and written."""

    name: Kind
    shape: type[BaseModel]
    """The fields that a file may have."""
    find: Callable[[Scope, str], Awaitable[StoredDefinition | None]]
    """Return the object of this name or id."""
    page: Callable[[Scope, int, int], Awaitable[list[StoredDefinition]]]
    """Return a page of objects after an id."""
    put: Callable[[Scope, WrittenDefinition, StoredDefinition | None], Awaitable[None]]
    """Create the object, or make the stored one equal to the definition. A pause, its note and a secret given as `***` stay.

    Writes nothing if they are equal. Raises `PreconditionFailed` if the object has changed since it was read.
    """
    not_found: Callable[[str], HoraiError]


class ApplyAction(StrEnum):
    """The fate of a definition."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class AppliedDefinition:
    """The fate of one written definition: what it changes, or why it is refused."""

    kind: str
    name: str
    action: ApplyAction
    changes: Sequence[FieldChange] = ()
    version: int | None = None
    declared_by: str | None = None
    error: HoraiError | None = None

    @property
    def errors(self) -> Sequence[FieldError]:
        """Return the wrong fields."""
        return () if self.error is None else self.error.errors


Item = tuple[DefinitionKind, WrittenDefinition]
SERVER_FAULT = 500
"""The lowest status of an error that is no fault of the definition: it ends the request, and a repeat continues."""
ORDER: tuple[Kind, ...] = ("queue", "job", "workflow", "reconciler")
"""The order in which definitions are written: each kind may name objects of those before it."""


async def apply(scope: Scope, items: Sequence[Item], *, is_dry: bool) -> list[AppliedDefinition]:
    """Make the stored definitions equal to the written ones, in the order of their kinds; return the fates in the given order.

    Each is written in its own transaction; a refused one does not keep the others from being written. With `is_dry` all of
    them are written in one transaction that is rolled back.
    """
    fates: dict[int, AppliedDefinition] = {}
    async with perhaps(scope, is_dry=is_dry) as trial:
        async with trial.read():  # takes the Idempotency-Key of the request: if it is refused, so is the whole request
            pass
        for position in sorted(range(len(items)), key=lambda each: ORDER.index(items[each][0].name)):
            fates[position] = await _apply(trial, *items[position])
    return [fates[position] for position in range(len(items))]


async def _apply(scope: Scope, kind: DefinitionKind, written: WrittenDefinition) -> AppliedDefinition:
    try:
        before = await kind.find(scope, written.name)
        if before is not None and before.name != written.name:
            before = None
        await kind.put(scope, written, before)
        after = await kind.find(scope, written.name)
    except HoraiError as error:
        if error.status >= SERVER_FAULT:
            raise
        return AppliedDefinition(kind.name, written.name, ApplyAction.REFUSED, error=error)
    if after is None:  # another request deleted it meanwhile
        gone = kind.not_found(written.name)
        return AppliedDefinition(kind.name, written.name, ApplyAction.REFUSED, error=gone)
    return fate_of(kind, before, after)


def fate_of(kind: DefinitionKind, before: StoredDefinition | None, after: StoredDefinition) -> AppliedDefinition:
    """Return the fate of a definition that was written, or was already as written."""
    old: dict[str, Any] = {} if before is None else msgspec.json.decode(before.text)
    changes = changes_between(old, msgspec.json.decode(after.text))
    is_same = before is not None and before.version == after.version
    action = ApplyAction.CREATED if before is None else ApplyAction.UNCHANGED if is_same else ApplyAction.CHANGED
    return AppliedDefinition(kind.name, after.name, action, changes, after.version, after.declared_by)


async def require_definition(scope: Scope, kind: DefinitionKind, reference: str) -> StoredDefinition:
    """Return a definition by the id or name of its object. Raises `NotFound` if there is none."""
    found = await kind.find(scope, reference)
    if found is None:
        raise kind.not_found(reference)
    return found


async def versions_of(scope: Scope, stored: StoredDefinition) -> list[VersionRow]:
    """Return the kept versions of a definition, newest first."""
    async with scope.read() as connection:
        return await list_versions(connection, _of(scope, stored))


async def require_kept(scope: Scope, stored: StoredDefinition, version: int) -> VersionRow:
    """Return one version. Raises `NotFound` if it is not kept."""
    async with scope.read() as connection:
        found = await find_version(connection, _of(scope, stored), version)
    if found is None:
        raise NotFound(Refused.NO_VERSION(name=stored.name, version=version), Hint.LIST_VERSIONS())
    return found


async def restore(
    scope: Scope, kind: DefinitionKind, reference: str, version: int, if_version: int | None, *, is_dry: bool
) -> tuple[AppliedDefinition, StoredDefinition]:
    """Make a definition what it was at a version. It gets a new version. A pause, its note and secret values stay as they are now.

    Raises `PreconditionFailed` if the object has not the version `if_version`, also if another request changes it meanwhile.
    """
    async with perhaps(scope, is_dry=is_dry) as trial:
        before = await require_definition(trial, kind, reference)
        require_version(f"{kind.name} {before.name!r}", before.version, if_version)
        kept = await require_kept(trial, before, version)
        document = msgspec.json.decode(kept.definition)
        await kind.put(trial, WrittenDefinition(_without_payloads(document), kept.definition.encode()), before)
        after = await require_definition(trial, kind, str(before.id) if kind.name != "queue" else before.name)
    return fate_of(kind, before, after), after


def _without_payloads(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "payload"}


def _of(scope: Scope, stored: StoredDefinition) -> VersionsOf:
    return VersionsOf(scope.tenant_id, stored.kind, stored.id)
