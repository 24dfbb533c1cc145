"""Queues that an application's code declares, applied when it starts, before the jobs that use them.

As with jobs, the code defines a queue, and the operator decides whether it runs: its pause and the note of it stay as they
are. A start writes nothing if every stored queue matches the code. Each queue is written in its own transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from horai.core.errors import FieldError, Invalid
from horai.core.queue import DEFAULT_PRIORITY, QueueSettings, checked, checked_name
from horai.core.wakes import QueueWake
from horai.db.pool import retrying
from horai.db.queues import QueueRow, queues_of_application
from horai.operations.declared_owner import QUEUE_WORD, DeclaredChanges, Owner
from horai.operations.queues import held_as, lock_queue, write_settings
from horai.operations.scope import Scope

SHOWN_NAME = 128
"""Characters of a wrong name in an error."""

DeclaredQueue = Mapping[str, Any]
"""A queue as code declares it: a document with its `name` and the fields of `PUT /api/v1/queues/{name}`.

A pause in it has no effect.
"""


@dataclass(frozen=True, slots=True)
class QueueDeclaration:
    """The valid queues of an application by name, in the order in which every process writes them; and the stored ones."""

    owner: Owner
    wishes: Mapping[str, QueueSettings]
    stored: Mapping[str, QueueRow]

    def changes(self) -> DeclaredChanges:
        """Return the changes that `apply` would make now."""
        return self._sorted(
            {name: _fate(self.owner, self.stored.get(name), wish) for name, wish in self.wishes.items()}
        )

    async def apply(self, scope: Scope) -> DeclaredChanges:
        """Write the queues that differ. Raise `Invalid` if another application declared one of them meanwhile."""
        fates = {name: _fate(self.owner, self.stored.get(name), wish) for name, wish in self.wishes.items()}
        for name, fate in fates.items():
            if fate != "unchanged":
                fates[name] = await _apply(scope, self.owner, name, self.wishes[name])
        return self._sorted(fates)

    def _sorted(self, fates: Mapping[str, str]) -> DeclaredChanges:
        by_fate = {
            fate: tuple(QUEUE_WORD + name for name, own in fates.items() if own == fate) for fate in set(fates.values())
        }
        removed = (name for name, queue in self.stored.items() if name not in self.wishes and _limits(queue.settings))
        return DeclaredChanges(
            by_fate.get("created", ()),
            by_fate.get("changed", ()),
            by_fate.get("unchanged", ()),
            tuple(QUEUE_WORD + name for name in removed),
        )


async def look(scope: Scope, owner: Owner, declared: Sequence[DeclaredQueue]) -> QueueDeclaration:
    """Compare the queues of the code with the stored ones. Write nothing.

    Raise `Invalid` with every error of every queue, and if a queue belongs to another application.
    """
    wishes = _checked(declared)
    async with scope.read() as connection:
        rows = await queues_of_application(connection, scope.tenant_id, list(wishes), owner.name)
    _refuse_foreign(owner, [row for row in rows if row.name in wishes])
    return QueueDeclaration(owner, wishes, {row.name: row for row in rows})


def _checked(declared: Sequence[DeclaredQueue]) -> dict[str, QueueSettings]:
    wishes: dict[str, QueueSettings] = {}
    faults: list[FieldError] = []
    hint: str | None = None
    for document in declared:
        given = document.get("name")
        name = given if isinstance(given, str) else ""
        try:
            checked_name(name)
            settings = checked(document)
        except Invalid as error:
            faults += [
                FieldError(f"{QUEUE_WORD}{name[:SHOWN_NAME]}.{each.field}", each.message) for each in error.errors
            ]
            hint = hint or error.hint
            continue
        if name in wishes:
            faults.append(FieldError(f"{QUEUE_WORD}{name}.name", "is declared twice"))
        wishes[name] = settings
    if faults:
        raise Invalid.fields(faults, hint)
    return {name: wishes[name] for name in sorted(wishes)}


def _refuse_foreign(owner: Owner, rows: Sequence[QueueRow]) -> None:
    """Raise `Invalid` if one of the queues belongs to another application."""
    foreign = [(row.name, row.declared_by) for row in rows if not owner.may_declare(row.declared_by)]
    told = "is declared by the application {!r}, and a queue belongs to the first application that declares it"
    faults = [FieldError(f"{QUEUE_WORD}{name}", told.format(theirs)) for name, theirs in foreign]
    if faults:
        raise Invalid.fields(faults, owner.way_out(str(foreign[0][1]), "queues"))


def _fate(owner: Owner, queue: QueueRow | None, wish: QueueSettings) -> str:
    """Return what a declaration does to a queue. A queue that was never set counts as a new one."""
    if queue is None or queue.version == 0:
        return "created"
    is_ours = owner.name is None or queue.declared_by == owner.name
    is_equal = _in_force(held_as(wish, queue.settings)) == _in_force(queue.settings)
    return "unchanged" if is_ours and is_equal else "changed"


def _in_force(settings: QueueSettings) -> QueueSettings:
    """Return the settings with their priority written out: a change over REST writes `normal` where there was none."""
    return replace(settings, priority=settings.priority_in_force)


def _limits(settings: QueueSettings) -> bool:
    """Return whether a queue without a declaration still has settings of it that have an effect."""
    limits = settings.priority_in_force, settings.max_concurrency, settings.rate
    return limits != (DEFAULT_PRIORITY, None, None)


async def _apply(scope: Scope, owner: Owner, name: str, wish: QueueSettings) -> str:
    """Write one queue. The second of two processes finds it as declared, and writes nothing."""

    async def attempt() -> tuple[str, int]:
        async with scope.write() as connection:
            before = await lock_queue(connection, scope, name)
            _refuse_foreign(owner, [before])
            fate = _fate(owner, before, wish)
            if fate != "unchanged":
                await write_settings(connection, scope, before, held_as(wish, before.settings), owner.name)
            return fate, before.id

    fate, queue_id = await retrying(attempt)
    if fate != "unchanged":
        scope.wakeups.publish(QueueWake(queue_id))
    return fate
