"""The settings of the calls that have created or moved instances, in the transaction that writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from horai.core.call_settings import CallSettings
from horai.core.errors import Invalid
from horai.core.job import is_builtin
from horai.core.put import PutDecision
from horai.db import call_settings, concurrency_keys, jobs
from horai.db.claims import Claimable
from horai.db.instances import InsertTarget
from horai.db.pool import AnyWrite, TenantRead, TenantWrite
from horai.operations.put import PutResult
from horai.text import Hint, Wrong


async def apply_settings(
    connection: TenantWrite, place: InsertTarget, answers: Sequence[PutResult], settings: Sequence[CallSettings]
) -> list[PutResult]:
    """Give the instances of these answers the settings of their calls. Return the answers with the places where they wait now.

    An instance that was neither created nor moved keeps its own, and so does one whose call has none.
    """
    given = {
        each.instance_id: (own, each.is_new)
        for each, own in zip(answers, settings, strict=True)
        if not own.is_empty and each.verdict is not PutDecision.IGNORED
    }
    if not given:
        return list(answers)
    if any(own.concurrency_key is not None for own, _ in given.values()):
        await refuse_builtin_keys(connection, place.job_id)
    moved: dict[int, Claimable] = {}
    for are_new in (True, False):
        some = {instance_id: own for instance_id, (own, is_new) in given.items() if is_new is are_new}
        moved |= await place_calls(connection, some, are_new=are_new)
        keys = {id_: own.concurrency_key for id_, own in some.items() if own.concurrency_key is not None}
        moved |= {row.id: row for row in await concurrency_keys.assign_keys(connection, keys, are_new=are_new)}
    return [replace(each, woken=moved.get(each.instance_id, each.woken)) for each in answers]


async def place_calls(
    connection: AnyWrite, settings: Mapping[int, CallSettings], *, are_new: bool
) -> dict[int, Claimable]:
    """Give instances the queues, priorities and expiries of their calls. Return where they wait now.

    Raises `Invalid` for a queue that does not exist, an instance that would expire before its time, and a job that
    Horai runs itself.
    """
    placed = {instance_id: own for instance_id, own in settings.items() if own.is_placed}
    if not placed:
        return {}
    rows = await call_settings.place_calls(connection, placed, are_new=are_new)
    for row in rows:
        if row.fault is not None:
            raise _refused(row.fault, placed[row.id])
    return {row.id: row.woken for row in rows if row.woken is not None}


def _refused(fault: str, given: CallSettings) -> Invalid:
    match fault:
        case "queue":
            name = given.queue or ""
            return Invalid.field("queue", Wrong.NO_QUEUE_NAMED(name=name), Hint.MAKE_QUEUE(name=name))
        case "expires":
            return Invalid.field("expires", Wrong.EXPIRES_TOO_EARLY(), Hint.EXPIRE_LATER())
        case _:
            option = "queue" if given.queue is not None else "priority" if given.priority is not None else "expires"
            return Invalid.field(option, Wrong.KEY_OF_BUILTIN(), Hint.OPTION_OF_ANOTHER_JOB())


async def refuse_builtin_keys(connection: TenantRead, job_id: int) -> None:
    """Raise `Invalid` if Horai runs the job itself: a workflow or a tick does its work in other instances."""
    job = await jobs.job_even_deleted(connection, job_id)
    if job is not None and is_builtin(job.document):
        raise Invalid.field("concurrencyKey", Wrong.KEY_OF_BUILTIN(), Hint.KEY_OF_ANOTHER_JOB())
