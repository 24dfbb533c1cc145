"""Changes from a real nats-server into a real database: redelivered, shuffled, poisoned, and through restarts."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import make
import pytest
from adapters import NatsAdapter
from changes_made import START, move, planned, until
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig
from nats_server import NatsServer, publisher

from horai.db.pool import Platform
from horai.db.verify import verify
from horai.features.events import nats
from horai.features.events.intake import Intake, IntakeSettings, delay_of
from horai.features.events.nats import NatsSettings, NatsSource
from horai.features.events.source import Message, SourceRefused, SourceUnavailable
from horai.operations.scope import Scope

FOR_PUBLISH = IntakeSettings(job="publish")


@pytest.fixture(autouse=True)
def _is_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for a server that is away, for a message that does not come, and for a request that was lost."""
    for name, seconds in (("CONNECT_TIMEOUT", 2.0), ("IDLE", 0.2), ("REQUEST_FOR", 1.0), ("RECONNECT_WAIT", 0.1)):
        monkeypatch.setattr(nats, name, seconds)


@asynccontextmanager
async def taking(scope: Scope, adapter: NatsAdapter, settings: IntakeSettings = FOR_PUBLISH) -> AsyncGenerator[Intake]:
    """An intake at work."""
    async with adapter.opened() as source:
        intake, stop = Intake(scope, source, settings), asyncio.Event()
        running = asyncio.create_task(intake.run(stop))
        try:
            yield intake
        finally:
            stop.set()
            await running


async def test_A3_a_published_change_moves_the_plan(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    adapter = NatsAdapter(nats_server, stream)
    async with make.scope(url) as scope:
        await make.job(scope)
        await adapter.publish([move("a", 1), move("b", 1), move("a", 2), {"key": "b", "cancel": True, "version": 2}])
        async with taking(scope, adapter) as intake:

            async def is_done() -> bool:
                return sum(intake.counts.values()) == 4

            await until(is_done)

    assert await planned(connection) == {"a": 2}
    assert intake.counts == {"INSERTED": 2, "UPDATED": 1, "CANCELLED": 1}


async def test_two_thousand_changes_in_random_order_with_duplicates_end_in_the_last_version_of_each_key(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    changes = [move(f"k{key}", version) for key in range(200) for version in range(1, 9)]
    changes += dice.choices(changes, k=400)
    dice.shuffle(changes)
    adapter = NatsAdapter(nats_server, stream)
    await adapter.publish(changes)
    async with make.scope(url) as scope:
        await make.job(scope)
        async with taking(scope, adapter) as one, taking(scope, adapter) as other:

            async def is_done() -> bool:
                counts = one.counts + other.counts
                return sum(counts.values()) - counts["DELAYED"] >= 2000

            await until(is_done, 60)

    counts = one.counts + other.counts
    assert counts["REPEATED"] == 400
    assert counts["INSERTED"] == 200
    assert await planned(connection) == {f"k{key}": 8 for key in range(200)}
    assert not [finding for finding in await verify(connection) if finding.violations]


async def test_poison_in_the_middle_of_a_batch_is_parked_and_never_comes_again(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    adapter = NatsAdapter(nats_server, stream, ack_wait=timedelta(seconds=1))
    documents: list[Any] = [move(f"k{n}", 1) for n in range(50)]
    documents[20] = b"\xff\xfe not JSON"
    documents[30] = move("k30", 1, job="audit")
    async with make.scope(url) as scope:
        await make.job(scope)
        await adapter.publish(documents)
        async with taking(scope, adapter) as intake:

            async def is_done() -> bool:
                async with publisher(nats_server) as jetstream:
                    known = await jetstream.consumer_info(stream, adapter.settings.consumer)
                return known.num_pending == 0 and known.num_ack_pending == 0

            await until(is_done)

    assert (intake.counts["INSERTED"], intake.counts["PARKED"]) == (48, 2)
    rows = await connection.fetch("select source, subject, reason from horai.parked_event order by id")
    assert {(row["source"], row["subject"]) for row in rows} == {(f"nats:{stream}", adapter.settings.subject)}
    assert rows[1]["reason"] == "job: names 'audit', and this source is for 'publish'"


async def test_a_header_that_looks_like_the_servers_own_does_not_swallow_its_message(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    adapter = NatsAdapter(nats_server, stream)
    await adapter.publish([])
    async with publisher(nats_server) as jetstream:
        for status in ("404", "503", "100"):
            body = json.dumps(move(f"k{status}", 1)).encode()
            await jetstream.publish(adapter.settings.subject, body, headers={"Status": status})
    async with make.scope(url) as scope:
        await make.job(scope)
        async with taking(scope, adapter):

            async def is_done() -> bool:
                return len(await planned(connection)) == 3

            await until(is_done)


async def test_the_message_id_tells_a_repeated_publication(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    """JetStream itself forgets ids, by default after two minutes; here it is made to at once."""
    adapter = NatsAdapter(nats_server, stream)
    async with publisher(nats_server) as jetstream:
        await jetstream.add_stream(StreamConfig(stream, subjects=[adapter.settings.subject], duplicate_window=0.1))
        body = json.dumps({"key": "a", "executeTime": START.isoformat()}).encode()
        for _ in range(2):

            async def is_stored() -> bool:
                answer = await jetstream.publish(adapter.settings.subject, body, headers={"Nats-Msg-Id": "e-1"})
                return not answer.duplicate

            await until(is_stored)
    async with make.scope(url) as scope:
        await make.job(scope)
        async with taking(scope, adapter) as intake:

            async def is_done() -> bool:
                return sum(intake.counts.values()) == 2

            await until(is_done)

    assert intake.counts == {"INSERTED": 1, "REPEATED": 1}


async def test_events_of_a_recreated_stream_are_not_taken_for_those_of_the_old_stream(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    """Its sequence begins at one again, and events without an id are known by their place."""
    adapter = NatsAdapter(nats_server, stream)
    async with make.scope(url) as scope:
        await make.job(scope)
        async with taking(scope, adapter):
            for key in ("a", "b"):
                await adapter.publish([{"key": key, "executeTime": START.isoformat()}])

                async def is_planned() -> bool:
                    return key in await planned(connection)  # noqa: B023

                await until(is_planned)
                async with publisher(nats_server) as jetstream:
                    await jetstream.delete_stream(stream)


async def test_a_restart_of_the_server_is_ridden_out(
    url: str, connection: Platform, mortal_server: NatsServer, stream: str
) -> None:
    adapter = NatsAdapter(mortal_server, stream, ack_wait=timedelta(seconds=2))
    async with make.scope(url) as scope:
        await make.job(scope)
        await adapter.publish([move("a", 1)])
        async with taking(scope, adapter):
            for version, end in ((2, mortal_server.stop), (3, mortal_server.kill)):

                async def is_planned() -> bool:
                    return await planned(connection) == {"a": version - 1}  # noqa: B023

                await until(is_planned)
                await asyncio.to_thread(end)
                await asyncio.to_thread(mortal_server.start)
                await adapter.publish([move("a", version)])

            async def is_last() -> bool:
                return await planned(connection) == {"a": 3}

            await until(is_last)


async def test_while_the_database_is_away_nothing_is_acknowledged(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    adapter = NatsAdapter(nats_server, stream)
    await adapter.publish([move("a", 1), b"poison"])
    async with make.scope(url) as dead:
        await make.job(dead)
        async with adapter.opened() as source:
            intake = Intake(dead, source, FOR_PUBLISH)
            await intake._tidy()
            make.platform(dead).terminate()
            assert await intake.step() is None
            assert intake.counts == {"DELAYED": 2}
    async with make.scope(url) as scope, taking(scope, adapter):

        async def is_done() -> bool:
            return await planned(connection) == {"a": 1} and await connection.fetchval(
                "select count(*) = 1 from horai.parked_event"
            )

        await until(is_done)


async def test_an_unacknowledged_event_is_delivered_again_and_changes_nothing(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    class Deaf(NatsSource):
        """A source that never acknowledges its commits."""

        async def ack(self, message: Message) -> None:
            """Lost on the way."""

    adapter = NatsAdapter(nats_server, stream, ack_wait=timedelta(seconds=1))
    await adapter.publish([{"key": "a", "executeTime": START.isoformat()}])
    async with make.scope(url) as scope:
        await make.job(scope)
        source = Deaf(adapter.settings)
        await source.open()
        intake = Intake(scope, source, FOR_PUBLISH)

        async def has_come_twice() -> bool:
            await intake.step()
            return intake.counts["REPEATED"] >= 1

        await until(has_come_twice)
        await source.close()

    assert intake.counts["INSERTED"] == 1
    assert await connection.fetchval("select count(*) from horai.event where kind = 'INSTANCE_RESCHEDULED'") == 0


async def test_a_missing_stream_is_made_only_when_asked_for(nats_server: NatsServer, stream: str) -> None:
    settings = replace(NatsAdapter(nats_server, stream).settings, creates_stream=False)

    with pytest.raises(SourceRefused, match="There is no stream"):
        await NatsSource(settings).open()


async def test_a_consumer_of_something_else_is_not_taken_over(nats_server: NatsServer, stream: str) -> None:
    adapter = NatsAdapter(nats_server, stream)
    await adapter.publish([])
    async with publisher(nats_server) as jetstream:
        await jetstream.add_consumer(stream, ConsumerConfig(durable_name="taken", ack_policy=AckPolicy.ALL))
        await jetstream.add_consumer(
            stream, ConsumerConfig(durable_name="other", filter_subject=adapter.settings.subject)
        )

    with pytest.raises(SourceRefused, match="explicit acknowledgement"):
        await NatsSource(replace(adapter.settings, durable="taken")).open()
    with pytest.raises(SourceRefused, match="is for"):
        await NatsSource(replace(adapter.settings, durable="other", subject=f"{stream}.else")).open()


async def test_without_a_server_the_source_says_so_in_time() -> None:
    nobody = NatsSettings(("nats://127.0.0.1:1",), "s", "s.a")

    with pytest.raises(SourceUnavailable, match="No NATS server answers"):
        await NatsSource(nobody).open()


def test_a_message_that_has_to_wait_stays_away_longer_each_time_and_a_minute_at_most() -> None:
    delays = [delay_of(deliveries).total_seconds() for deliveries in (1, 2, 3, 100)]

    assert delays == [1, 2, 4, 60]


async def test_events_are_remembered_for_a_week(
    url: str, connection: Platform, nats_server: NatsServer, stream: str
) -> None:
    await connection.execute(
        "insert into horai.source_event (tenant_id, job_id, source, event_id, at)"
        " select 1, 1, 's', age::text, clock_timestamp() - age from unnest(array['8 days', '6 days']::interval[]) age"
    )
    adapter = NatsAdapter(nats_server, stream)
    async with make.scope(url) as scope, adapter.opened() as source:
        await Intake(scope, source).step()

    assert await connection.fetchval("select array_agg(event_id) from horai.source_event") == ["6 days"]
