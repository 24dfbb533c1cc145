"""Changes of event sources in the database: once each, by their versions, and none at the cost of another."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
from databases import Superuser

from horai.core.wakes import OutcomeWake, Wake
from horai.db.pool import Platform, connect
from horai.db.verify import verify
from horai.features.events.change import parse_change
from horai.features.events.cloudevents import Poison
from horai.features.events.service import AppliedChange, Arrival, Fate, NotNow, PutAside, accept_changes
from horai.features.events.store import BODY_KEPT, forget_events
from horai.operations.scope import Scope

START = datetime(2100, 1, 1, tzinfo=UTC)
PLANNED = "select key, execute_time, version from horai.instance_live where key is not null order by key"


def at(minute: int) -> str:
    return (START + timedelta(minutes=minute)).isoformat()


def move(key: str, minute: int, **fields: Any) -> dict[str, Any]:
    return {"job": "publish", "key": key, "executeTime": at(minute), **fields}


def cancel(key: str, **fields: Any) -> dict[str, Any]:
    return {"job": "publish", "key": key, "cancel": True, **fields}


def arrival(document: dict[str, Any] | bytes, place: str) -> Arrival:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    try:
        read = parse_change(body, {})
    except Poison as poison:
        read = poison
    return Arrival(place, "articles", {}, body, read)


async def tell(scope: Scope, *documents: dict[str, Any] | bytes, source: str = "test", first: int = 0) -> list[Fate]:
    arrivals = [arrival(document, str(n)) for n, document in enumerate(documents, first)]
    return await accept_changes(scope, source, arrivals)


def effects(fates: Sequence[Fate]) -> list[str]:
    return [fate.effect.value if isinstance(fate, AppliedChange) else type(fate).__name__ for fate in fates]


async def planned(connection: Platform) -> dict[str, tuple[int, int | None]]:
    rows = await connection.fetch(PLANNED)
    return {key: ((time - START) // timedelta(minutes=1), version) for key, time, version in rows}


async def test_A3_events_end_in_the_rules_of_put(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        running = await make.running(scope, connection, "runs")

        fates = await tell(scope, move("new", 1), move("runs", 2), move("new", 3), cancel("gone"))

        assert effects(fates) == ["INSERTED", "SUPERSEDED", "UPDATED", "IGNORED"]
        assert await planned(connection) == {"new": (3, None), "runs": (2, None)}
        assert await make.state(connection, running.held.id) == "CANCELLED"


async def test_an_event_takes_effect_once_however_often_it_comes(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        named = {"id": "e-1"}

        first = await tell(scope, move("a", 1, **named), move("a", 2), move("a", 1, **named))
        again = await tell(scope, move("a", 1, **named), move("a", 2), first=0)

        assert effects(first) == ["INSERTED", "UPDATED", "RepeatedChange"]
        assert effects(again) == ["RepeatedChange", "RepeatedChange"]
        assert await planned(connection) == {"a": (2, None)}
        events = await connection.fetch("select kind from horai.event where instance_id is not null")
        assert [row["kind"] for row in events] == ["INSTANCE_RESCHEDULED"]


async def test_a_repeated_event_does_not_replace_what_runs(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        soon = {"job": "publish", "key": "a", "executeTime": "2020-01-01T00:00:00Z", "version": 1}
        await tell(scope, soon)
        (running,) = await make.claim(connection, await make.node(connection))

        assert effects(await tell(scope, soon, first=7)) == ["RepeatedChange"]
        assert await make.state(connection, running.held.id) == "RUNNING"


async def test_an_event_may_concern_two_jobs_and_two_sources_may_use_one_id(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "audit")
        event = move("a", 1, id="e-1")

        assert effects(await tell(scope, event, {**event, "job": "audit"})) == ["INSERTED", "INSERTED"]
        assert effects(await tell(scope, event, source="other")) == ["UPDATED"]


async def test_the_highest_version_wins_for_any_order_of_arrival(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)

        fates = await tell(scope, *(move("a", version, version=version) for version in (3, 1, 5, 2, 4)))

        assert effects(fates) == ["INSERTED", "IGNORED", "UPDATED", "IGNORED", "IGNORED"]
        assert await planned(connection) == {"a": (5, 5)}


@pytest.mark.parametrize("is_one_batch", [True, False])
@pytest.mark.parametrize("seed", range(6))
async def test_puts_and_cancels_in_any_order_end_with_the_last_version(
    url: str, connection: Platform, seed: int, is_one_batch: bool
) -> None:
    dice = random.Random(seed)
    changes = [
        cancel(key, version=version) if dice.random() < 0.4 else move(key, version, version=version)
        for key in "abcdef"
        for version in range(1, 6)
    ]
    last = {change["key"]: change for change in sorted(changes, key=lambda change: change["version"])}
    dice.shuffle(changes)
    async with make.scope(url) as scope:
        await make.job(scope)
        for n in range(0, len(changes), 30 if is_one_batch else 1):
            fates = await tell(scope, *changes[n : n + (30 if is_one_batch else 1)], first=n)
            assert not [fate for fate in fates if isinstance(fate, NotNow | PutAside)]

    wanted = {key: (5, 5) for key, change in last.items() if "executeTime" in change}
    assert await planned(connection) == wanted
    assert not [finding for finding in await verify(connection) if finding.violations]


async def test_a_cancel_without_a_version_ends_what_is_there_and_keeps_nothing_away(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)

        fates = await tell(scope, cancel("a"), move("a", 1), cancel("a"), move("a", 2))

        assert effects(fates) == ["IGNORED", "INSERTED", "CANCELLED", "INSERTED"]
        assert await planned(connection) == {"a": (2, None)}


async def test_a_cancel_that_is_older_than_the_plan_is_ignored(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)

        assert effects(await tell(scope, move("a", 7, version=7), cancel("a", version=6))) == ["INSERTED", "IGNORED"]
        assert await planned(connection) == {"a": (7, 7)}


async def test_a_cancel_holds_against_an_older_put_over_the_api_too(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await tell(scope, cancel("a", version=7))

        assert (await make.put(scope, "a", START, version=6))[0] == "IGNORED"
        assert (await make.put(scope, "a", START, version=8))[0] == "INSERTED"


async def test_a_cancelled_run_is_told_to_its_holder(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        claimed = await make.running(scope, connection, "a")
        heard: list[tuple[int, int]] = []
        scope.wakeups.subscribe(OutcomeWake, lambda wake: heard.append((wake.instance_id, wake.fence)))

        assert effects(await tell(scope, cancel("a"))) == ["CANCELLED"]
        assert heard == [(claimed.held.id, claimed.held.fence)]


async def test_changes_that_make_instances_claimable_publish_wakes(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        heard: list[Wake] = []
        scope.wakeups.pass_on_to(heard.append)

        await tell(scope, move("a", 1), move("b", 1))

        assert heard


async def test_poison_in_the_middle_is_parked_and_the_others_take_effect(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        documents = [move("a", 1), b'{"key": ', {**move("b", 2), "job": "publsh"}, move("c", 3)]

        fates = await tell(scope, *documents)
        again = await tell(scope, *documents)

        assert effects(fates) == ["INSERTED", "PutAside", "PutAside", "INSERTED"]
        assert effects(again) == ["RepeatedChange", "PutAside", "PutAside", "RepeatedChange"]
        assert list(await planned(connection)) == ["a", "c"]
        rows = await connection.fetch("select place, body, size, reason from horai.parked_event order by id")
        assert [(row["place"], bytes(row["body"]), row["size"]) for row in rows] == [
            ("1", b'{"key": ', 8),
            ("2", json.dumps(documents[2]).encode(), len(json.dumps(documents[2]))),
        ]
        assert "not JSON" in rows[0]["reason"]
        assert rows[1]["reason"] == "There is no job 'publsh'. Create the job, then retry the parked event."


async def test_of_a_long_message_the_beginning_is_kept(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await tell(scope, b"\x00" * (BODY_KEPT + 1))

    row = await connection.fetchrow("select body, size from horai.parked_event")
    assert row is not None
    assert (len(row["body"]), row["size"]) == (BODY_KEPT, BODY_KEPT + 1)


async def test_one_value_that_the_database_refuses_does_not_fail_its_batch(url: str, connection: Platform) -> None:
    await connection.execute(
        "create function horai.grumble() returns trigger language plpgsql as"
        " $$ begin if new.key = 'bad' then raise data_exception; end if; return new; end $$;"
        "create trigger grumble before insert on horai.instance_live for each row execute function horai.grumble()"
    )
    async with make.scope(url) as scope:
        await make.job(scope)

        fates = await tell(scope, *(move("bad" if n == 17 else f"k{n}", 1) for n in range(40)))

        assert Counter(effects(fates)) == {"INSERTED": 39, "PutAside": 1}
        assert effects(fates)[17] == "PutAside"
        assert (
            await connection.fetchval("select reason from horai.parked_event")
            == "the database refused it: data_exception"
        )


async def test_a_key_locked_by_another_transaction_delays_only_its_own_changes(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await tell(scope, move("held", 0), source="before")
        other = await connect(url, "a user")
        async with other.transaction():
            await other.execute("select from horai.instance_live where key = 'held' for update")
            documents = [move("a", 1), move("held", 1), move("b", 1), move("held", 2)]
            fates = await tell(scope, *documents)

            assert effects(fates) == ["INSERTED", "NotNow", "INSERTED", "NotNow"]
        await other.close()
        assert effects(await tell(scope, *documents)) == ["RepeatedChange", "UPDATED", "RepeatedChange", "UPDATED"]
        assert (await planned(connection))["held"] == (2, None)


async def test_a_later_change_does_not_overtake_a_delayed_change_of_the_same_key(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        other = await connect(url, "another source process")
        taking = other.transaction()
        await taking.start()
        await other.execute(
            "insert into horai.source_event (tenant_id, job_id, source, event_id) values (1, $1, 'test', 'id:e-1')",
            job.id,
        )
        documents = [move("a", 1, id="e-1"), move("b", 1), move("a", 2, id="e-2")]

        assert effects(await tell(scope, *documents)) == ["NotNow", "INSERTED", "NotNow"]

        await taking.rollback()
        await other.close()
        assert effects(await tell(scope, *documents)) == ["INSERTED", "RepeatedChange", "UPDATED"]
        assert (await planned(connection))["a"] == (2, None)


async def test_without_a_database_everything_is_for_later(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        make.platform(scope).terminate()

        assert effects(await tell(scope, move("a", 1), b"?")) == ["NotNow", "NotNow"]


async def test_an_event_without_a_job_is_parked_with_a_hint(url: str) -> None:
    async with make.scope(url) as scope:
        (fate,) = await tell(scope, {"key": "a", "executeTime": at(1)})

    assert fate == PutAside("job: is missing. Name it in the event, or start the source with --job.")


async def test_C2a_forgetting_old_events_leaves_those_of_another_tenant(url: str, connection: Superuser) -> None:
    """Also where row-level security does not: the statement names its tenant."""
    other = await connection.fetchval("insert into horai.tenant (name) values ('second') returning id")
    async with make.scope(url) as scope:
        for tenant in (scope, make.of_tenant(scope, other, "second")):
            await make.job(tenant)
            await tell(tenant, move("a", 1))
        await connection.execute("update horai.source_event set at = at - interval '1 day'")

        await forget_events(connection, scope.tenant_id, timedelta(hours=1), 10)

    assert [row["tenant_id"] for row in await connection.fetch("select tenant_id from horai.source_event")] == [other]
