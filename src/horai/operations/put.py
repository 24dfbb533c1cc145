"""`put`: create or reschedule the instance of a key, by the rules of seed 000.

Each key of a call is decided under one lock: an instance that can be moved is moved, a running one is cancelled and
replaced, a succeeded one is left alone. A row that changed between read and write matches nothing, and its key is
decided again.

Payloads of an encrypted job are sealed before they are stored, and opened to learn whether a put repeats another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from horai.core.put import PayloadMissing, Plan, PutDecision, PutOptions, decide_live, decide_past, is_repeat
from horai.core.sealed_values import SealedColumn
from horai.core.wakes import OutcomeWake
from horai.db import instances, quotas
from horai.db.claims import Claimable
from horai.db.instances import InsertTarget, KeyPast, LiveOfKey, NewInstance
from horai.db.kept_steps import carry_steps, keeping_steps
from horai.db.pool import TenantRead, TenantWrite
from horai.operations.keyring import Keyring
from horai.operations.sealed_values import SealedJob, SealedText, load_keys, opened_or_none, seal_texts

ROUNDS = 100
CREATED = frozenset({PutDecision.INSERTED, PutDecision.SUPERSEDED})
"""The decisions that create an instance."""


@dataclass(frozen=True, slots=True)
class Put:
    """A request to run one key at one time."""

    key: str
    at: datetime
    payload: str | None = None
    intent: PutOptions = field(default_factory=PutOptions)
    needs_payload: bool = False
    """The put may move a live instance, which has a payload, but not create one without a payload."""
    compared: str | None = None
    """For an encrypted job: the payload before it was sealed, to compare it with that of another put."""

    @property
    def wish(self) -> NewInstance:
        """Return the put as the row to insert."""
        return NewInstance(self.key, self.at, self.payload, self.intent.version)

    @property
    def plan(self) -> Plan:
        """Return what the put asks for."""
        return Plan(self.intent.version, self.at, self.payload if self.compared is None else self.compared)


@dataclass(frozen=True, slots=True)
class PutResult:
    """The decision on a put and the instance it concerns."""

    verdict: PutDecision
    instance_id: int
    woken: Claimable | None = None
    ended: OutcomeWake | None = None
    """The superseded claim. Its holder must be told after the commit."""

    @property
    def is_new(self) -> bool:
        """Return whether the put has created the instance."""
        return self.verdict in CREATED


async def put_all(
    connection: TenantWrite, place: InsertTarget, wishes: Sequence[Put], keyring: Keyring | None = None
) -> list[PutResult]:
    """Decide every put in the caller's transaction. If a key occurs twice, its puts are decided in order.

    The `keyring` is used if the job is encrypted. Raises `Conflict` if it has no key to seal a payload.
    """
    if place.is_metered:
        await quotas.check_payloads(connection, place.tenant_id, (wish.payload for wish in wishes))
    keyring = keyring or Keyring()
    wishes = await _sealed(connection, place, wishes, keyring)
    answers: dict[int, PutResult] = {}
    waiting: list[int] = list(range(len(wishes)))
    for _ in range(ROUNDS + len(wishes)):
        if not waiting:
            return [answers[index] for index in range(len(wishes))]
        first_of_key = {wishes[index].key: index for index in reversed(waiting)}
        decided = await _decide(connection, place, [wishes[index] for index in first_of_key.values()], keyring)
        answers |= {first_of_key[key]: answer for key, answer in decided.items()}
        waiting = [index for index in waiting if index not in answers]
    raise RuntimeError(f"keys of job {place.job_id} kept changing during {ROUNDS} rounds")


async def _sealed(
    connection: TenantWrite, place: InsertTarget, wishes: Sequence[Put], keyring: Keyring
) -> Sequence[Put]:
    """Return the puts with the payloads to store."""
    if place.sealed_for is None:
        return wishes
    job = SealedJob(place.tenant_id, place.sealed_for, place.search_paths)
    payloads = await seal_texts(connection, keyring, job, SealedColumn.PAYLOAD, [put.payload for put in wishes])
    return [replace(put, payload=payload, compared=put.payload) for put, payload in zip(wishes, payloads, strict=True)]


async def _opened(
    connection: TenantRead, place: InsertTarget, plans: Mapping[str, Plan], keyring: Keyring
) -> Mapping[str, Plan]:
    """Return the stored plans of keys with their payloads opened. One that cannot be opened equals no other."""
    if place.sealed_for is None or not plans:
        return plans
    job = SealedJob(place.tenant_id, place.sealed_for)
    texts = {
        key: SealedText(job, SealedColumn.PAYLOAD, plan.payload)
        for key, plan in plans.items()
        if plan.payload is not None
    }
    await load_keys(connection, keyring, texts.values())
    opened = {key: opened_or_none(keyring, text) for key, text in texts.items()}
    return {key: replace(plan, payload=opened.get(key)) for key, plan in plans.items()}


async def _decide(
    connection: TenantWrite, place: InsertTarget, puts: Sequence[Put], keyring: Keyring
) -> dict[str, PutResult]:
    live = await instances.live_of_keys(connection, place.job_id, [put.key for put in puts])
    answers = await _insert_fresh(connection, place, [put for put in puts if put.key not in live], keyring)
    plans = {key: Plan(row.version, row.fire_time, row.payload) for key, row in live.items()}
    plans = await _opened(connection, place, plans, keyring)
    verdicts = {put.key: _verdict(put, live[put.key], plans[put.key]) for put in puts if put.key in live}
    chosen = [(live[put.key], put.wish, verdicts[put.key]) for put in puts if put.key in verdicts]
    kept = {put.key for put in puts if put.intent.keep_steps}
    moves = [(row, wish) for row, wish, verdict in chosen if verdict is PutDecision.UPDATED]
    answers |= await _move(connection, place, [move for move in moves if move[1].key not in kept])
    if keeping := [move for move in moves if move[1].key in kept]:
        async with keeping_steps(connection):
            answers |= await _move(connection, place, keeping)
    answers |= await _replace(
        connection, place, [(row, wish) for row, wish, v in chosen if v is PutDecision.SUPERSEDED]
    )
    if carried := {
        row.id: answers[wish.key].instance_id
        for row, wish, verdict in chosen
        if verdict is PutDecision.SUPERSEDED and wish.key in kept and wish.key in answers
    }:
        await carry_steps(connection, carried)
    for row, wish, verdict in chosen:
        if verdict is PutDecision.IGNORED:
            answers[wish.key] = PutResult(verdict, row.id, row.woken)
    return answers


def _verdict(put: Put, live: LiveOfKey, known: Plan) -> PutDecision:
    return decide_live(live.state, live.version, put.intent, repeats=is_repeat(put.plan, known))


async def _move(
    connection: TenantWrite, place: InsertTarget, moves: Sequence[tuple[LiveOfKey, NewInstance]]
) -> dict[str, PutResult]:
    if not moves:
        return {}
    moved = await instances.move_planned(connection, moves, place)
    return {wish.key: PutResult(PutDecision.UPDATED, row.id, moved[row.id]) for row, wish in moves if row.id in moved}


async def _replace(
    connection: TenantWrite, place: InsertTarget, moves: Sequence[tuple[LiveOfKey, NewInstance]]
) -> dict[str, PutResult]:
    """Cancel running instances and insert their successors.

    A successor continues the fence: for a receiver, the fence of a key only grows.
    """
    if not moves:
        return {}
    cancelled = await instances.supersede_running(connection, moves)
    successors = [_successor(row, wish) for row, wish in moves if row.id in cancelled]
    made = await instances.insert_keyed(connection, place, successors)
    if len(made) < len(successors):
        raise RuntimeError("a key was taken while its superseded instance was locked")
    ended = {wish.key: OutcomeWake(row.id, row.fence) for row, wish in moves}
    return {key: PutResult(PutDecision.SUPERSEDED, woken.id, woken, ended[key]) for key, woken in made.items()}


def _successor(row: LiveOfKey, wish: NewInstance) -> NewInstance:
    payload = row.payload if wish.payload is None else wish.payload
    version = row.version if wish.version is None else wish.version
    return NewInstance(wish.key, wish.at, payload, version, supersedes=row.id, fence=row.fence)


async def _insert_fresh(
    connection: TenantWrite, place: InsertTarget, puts: Sequence[Put], keyring: Keyring
) -> dict[str, PutResult]:
    """Insert first and read the history after: with the key taken, all instances that finished before are visible."""
    if not puts:
        return {}
    made = await instances.insert_keyed(connection, place, [put.wish for put in puts])
    pasts = await _pasts(connection, place, [put for put in puts if put.key in made], keyring)
    answers: dict[str, PutResult] = {}
    for put in puts:
        if put.key in made:
            answers[put.key] = _fresh_answer(put, made[put.key], pasts.get(put.key, KeyPast()))
    ignored = [made[key].id for key, answer in answers.items() if answer.verdict is PutDecision.IGNORED]
    if ignored:
        await instances.take_back(connection, ignored)
    renewed = {key: pasts[key] for key, a in answers.items() if a.verdict is PutDecision.INSERTED and key in pasts}
    if renewed:
        await instances.inherit(connection, {made[key].id: known for key, known in renewed.items()})
    if letters := [letter for known in renewed.values() for letter in known.dead]:
        await instances.supersede_dead_letters(connection, letters)
    return answers


async def _pasts(
    connection: TenantRead, place: InsertTarget, puts: Sequence[Put], keyring: Keyring
) -> dict[str, KeyPast]:
    """Return the history of the keys. Check for repeated puts only if the versions are equal."""
    pasts = dict(await instances.past_of_keys(connection, place.job_id, [put.key for put in puts]))
    equal = [put for put in puts if put.intent.version is not None and _version(pasts, put) == put.intent.version]
    for key in await _repeated(connection, place, equal, keyring) if equal else ():
        pasts[key] = replace(pasts[key], past=replace(pasts[key].past, repeated=True))
    return pasts


async def _repeated(
    connection: TenantRead, place: InsertTarget, puts: Sequence[Put], keyring: Keyring
) -> Sequence[str]:
    """Return the keys whose last finished instance equals the put."""
    if place.sealed_for is None:
        return await instances.repeated_keys(connection, place.job_id, [put.wish for put in puts])
    last = await instances.last_of_keys(connection, place.job_id, [put.key for put in puts])
    plans = {key: Plan(row.version, row.fire_time, row.payload) for key, row in last.items()}
    plans = await _opened(connection, place, plans, keyring)
    return [put.key for put in puts if put.key in plans and is_repeat(put.plan, plans[put.key])]


def _version(pasts: Mapping[str, KeyPast], put: Put) -> int | None:
    return pasts[put.key].past.version if put.key in pasts else None


def _fresh_answer(put: Put, made: Claimable, known: KeyPast) -> PutResult:
    if decide_past(known.past, put.intent) is PutDecision.IGNORED and known.last is not None:
        return PutResult(PutDecision.IGNORED, known.last)
    if put.needs_payload and put.payload is None:
        raise PayloadMissing  # the caller's transaction rolls the row back
    return PutResult(PutDecision.INSERTED, made.id, made)
