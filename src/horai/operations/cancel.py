"""Cancels of keys with a version, like puts: they give the same result in any order.

A cancelled instance keeps the cancel's version. If there is nothing to cancel yet, the cancel leaves an instance that
was cancelled at birth: an older put that arrives later then finds a newer version in the key's history.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from horai.core.put import PutOptions, is_outdated
from horai.core.states import CancelReason
from horai.core.wakes import OutcomeWake
from horai.db import instances, nodes
from horai.db.claims import Claimable
from horai.db.instances import InsertTarget, KeyPast, LiveOfKey, NewInstance
from horai.db.pool import TenantWrite

ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request to cancel one key."""

    key: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class CancelResult:
    """The result of a cancel: whether it ended or prevented an instance, which one, and the wakes to publish."""

    took_effect: bool
    instance_id: int | None
    woken: Claimable | None = None
    ended: OutcomeWake | None = None


async def cancel_all(
    connection: TenantWrite, place: InsertTarget, cancels: Sequence[Cancel]
) -> dict[str, CancelResult]:
    """Decide every cancel in the caller's transaction. Return the results by key; each key occurs once."""
    done: dict[str, CancelResult] = {}
    waiting = list(cancels)
    for _ in range(ROUNDS):
        if not waiting:
            return done
        live = await instances.live_of_keys(connection, place.job_id, [cancel.key for cancel in waiting])
        done |= await _end(connection, [(live[cancel.key], cancel) for cancel in waiting if cancel.key in live])
        done |= await _keep_away(connection, place, [cancel for cancel in waiting if cancel.key not in live])
        waiting = [cancel for cancel in waiting if cancel.key not in done]
    raise RuntimeError(f"keys of job {place.job_id} kept changing during {ROUNDS} rounds")


async def _end(connection: TenantWrite, found: Sequence[tuple[LiveOfKey, Cancel]]) -> dict[str, CancelResult]:
    if not found:
        return {}
    chosen = {row.id: (row, one) for row, one in found if not is_outdated(PutOptions(one.version), row.version)}
    await instances.accept_version(connection, {id_: one.version for id_, (_, one) in chosen.items()})
    gone = await instances.cancel_live(connection, list(chosen), CancelReason.USER, running=True)
    ended = {row.id: None if row.fence is None else OutcomeWake(row.id, row.fence) for row in gone}
    return {
        one.key: CancelResult(True, row.id, ended=ended[row.id])
        if row.id in ended
        else CancelResult(False, row.id, row.woken)
        for row, one in found
    }


async def _keep_away(
    connection: TenantWrite, place: InsertTarget, cancels: Sequence[Cancel]
) -> dict[str, CancelResult]:
    """Leave cancelled instances for keys without a live one. A cancel without a version has nothing to prevent.

    A key that was taken meanwhile is missing from the result and is decided again.
    """
    done = {one.key: CancelResult(False, None) for one in cancels if one.version is None}
    versions = {one.key: one.version for one in cancels if one.version is not None}
    if not versions:
        return done
    now = await nodes.database_time(connection)
    made = await instances.insert_keyed(
        connection, replace(place, is_metered=False), [_mark(key, version, now) for key, version in versions.items()]
    )
    pasts = await instances.past_of_keys(connection, place.job_id, list(made))
    idle = {key: pasts[key] for key in made if key in pasts and _says_nothing_new(versions[key], pasts[key])}
    if idle:
        await instances.take_back(connection, [made[key].id for key in idle])
    marks = {key: woken.id for key, woken in made.items() if key not in idle}
    if marks:
        await instances.cancel_live(connection, list(marks.values()), CancelReason.USER, running=True)
    done |= {key: CancelResult(False, past.last) for key, past in idle.items()}
    return done | {key: CancelResult(True, id_) for key, id_ in marks.items()}


def _mark(key: str, version: int, now: datetime) -> NewInstance:
    return NewInstance(key, now, None, version)


def _says_nothing_new(version: int, known: KeyPast) -> bool:
    return known.past.succeeded or (known.past.version is not None and version <= known.past.version)
