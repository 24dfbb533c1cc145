"""The sealer, step by step: finished transactions only, late ids included, one chain, silent when idle."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import audits
import harness
import make
import pytest
import structlog
from harness import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from receiver import Answer, Receiver
from rows import connections
from stages import Workbench, workbench

from horai.core.shards import EVERY_ROLE, Role
from horai.core.wakes import AuditWake
from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.engine.lease import FIRST_SHARD
from horai.features import audit
from horai.features.audit.heads import HeadPublisher
from horai.features.audit.stage import PAUSE, SWEEP, Sealer
from horai.features.parts import StageParts, stages_of
from horai.operations import jobs

SECOND = timedelta(seconds=1)


async def sealed_ids(bench: Workbench) -> list[int]:
    """The ids that seals cover, in the order of the chain."""
    found = await bench.connection.fetch("select entries from horai.audit_seal order by n")
    return [int.from_bytes(entries[at : at + 8]) for (entries,) in found for at in range(0, len(entries), 52)]


async def test_C9_a_late_row_with_a_lower_id_is_sealed(url: str) -> None:
    async with workbench(url) as bench, connections(url, 2) as (slow, quick):
        late = slow.transaction()
        await late.start()
        low = await audits.write(slow)
        high = await audits.write(quick)
        await audits.seal(bench)
        assert await sealed_ids(bench) == [], "an older transaction is open: its rows come first"
        await late.commit()

        await audits.seal(bench)

        assert low < high
        assert await sealed_ids(bench) == [low, high]
        assert (await audits.check(bench.scope)).is_intact


async def test_C9_a_lower_id_of_a_younger_transaction_is_sealed_after_a_seal_with_higher_ids(url: str) -> None:
    """The sequence hands out ids in another order than PostgreSQL hands out transactions."""
    async with workbench(url) as bench, connections(url, 1) as (slow,):
        low: int = await slow.fetchval("select nextval(pg_get_serial_sequence('horai.audit', 'id'))")
        high = await audits.write(bench.connection)
        await audits.seal(bench)
        columns = "actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind, object_id, object_name"
        await slow.execute(
            f"insert into horai.audit (id, {columns}) overriding system value"
            " values ($1, 'key', '', '', '', '', '', '', '', '', '')",
            low,
        )

        await audits.seal(bench)

        assert await sealed_ids(bench) == [high, low]
        assert (await audits.check(bench.scope)).is_intact


async def test_rows_of_one_transaction_are_not_divided_between_seals(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horai.features.audit.stage.AT_ONCE", 3)
    async with workbench(url) as bench:
        await audits.write_many(bench.connection, 2)
        async with bench.connection.transaction():
            await audits.write_many(bench.connection, 4)
        await audits.write_many(bench.connection, 2)

        await audits.seal(bench)

        assert [n for (n,) in await bench.connection.fetch("select rows from horai.audit_seal order by n")] == [6, 2]
        assert (await audits.check(bench.scope)).is_intact


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "write", "commit", "rollback", "seal"]), st.integers(0, 2)), max_size=24
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_C9_every_committed_row_is_sealed_once_however_transactions_interleave(
    url: str, steps: list[tuple[str, int]]
) -> None:
    asyncio.run(interleave(url, steps))


async def interleave(url: str, steps: list[tuple[str, int]]) -> None:
    async with workbench(url) as bench, connections(url, 3) as writers:
        open_: dict[int, asyncio.Future[None]] = {}
        transactions = {number: writer.transaction() for number, writer in enumerate(writers)}
        for verb, number in steps:
            if verb == "seal":
                await audits.seal(bench)
            elif verb == "write":
                if number not in open_:
                    transactions[number] = writers[number].transaction()
                    await transactions[number].start()
                    open_[number] = asyncio.get_running_loop().create_future()
                await audits.write(writers[number])
            elif number in open_:
                await getattr(transactions[number], verb)()
                del open_[number]
        for number in list(open_):
            await transactions[number].commit()
        await audits.seal(bench)

        committed = [id_ for (id_,) in await bench.connection.fetch("select id from horai.audit order by xid, id")]
        assert await sealed_ids(bench) == committed
        assert (await audits.check(bench.scope)).is_intact


async def test_two_sealers_make_one_chain(url: str) -> None:
    async with workbench(url) as bench:
        sealers = [
            Sealer(bench.line(f"audit {number}"), bench.lease, bench.clock.now(), None, HeadPublisher(None, None))
            for number in range(3)
        ]
        for round_ in range(5):
            await audits.write_many(bench.connection, 3)
            later = bench.clock.now() + round_ * 2 * SWEEP
            await asyncio.gather(*(sealer.step(later) for sealer in sealers))
        await audits.seal(bench)

        report = await audits.check(bench.scope)
        assert report.is_intact
        assert (report.rows, report.unsealed) == (15, 0)


async def test_only_the_owner_of_the_first_shard_seals(url: str) -> None:
    async with workbench(url) as bench:
        await audits.write(bench.connection)
        bench.lease.owned -= {FIRST_SHARD}
        await audits.seal(bench)
        assert await sealed_ids(bench) == []

        bench.lease.owned |= {FIRST_SHARD}
        await audits.seal(bench)
        assert len(await sealed_ids(bench)) == 1


async def test_a_process_that_owns_no_trigger_shards_has_no_sealer(url: str) -> None:
    async with workbench(url) as bench:
        settings_ = bench.settings
        parts = StageParts(
            bench.line,
            bench.lease,
            bench.scope.wakeups,
            settings_,
            EVERY_ROLE - {Role.scheduler},
            bench.clock.now(),
            (),
        )

        assert stages_of([audit.FEATURE], parts) == []


async def test_a_write_wakes_the_sealer_and_wakes_within_a_second_share_one_step(url: str) -> None:
    async with workbench(url) as bench:
        await make.job(bench.scope)
        sealer = audits.sealer_of(bench)
        now = bench.clock.now()
        await sealer.step(now)
        sealer.signal.clear()

        await jobs.pause_job(bench.scope, "publish", "stock-taking")
        bench.scope.wakeups.deliver(AuditWake())  # as the listener does with the notification of the row

        assert sealer.signal.is_set()
        assert await sealer.step(now + SECOND / 10) == now + PAUSE, "once a second"
        assert len(await sealed_ids(bench)) == 1, "that of the creation"
        await sealer.step(now + PAUSE)
        assert len(await sealed_ids(bench)) == 2


async def test_C9_an_idle_sealer_sends_no_statements_between_sweeps(url: str) -> None:
    """The budget of an idle node is 40 statements a minute; the sealer adds 5 in 5 minutes."""
    async with workbench(url) as bench:
        sealer = audits.sealer_of(bench)
        await audits.write(bench.connection)
        now = bench.clock.now()
        again = await sealer.step(now)
        assert again == now + SWEEP
        tap = await bench.tap(sealer.line)

        for minute in range(1, 5):
            assert await sealer.step(now + minute * audits.MINUTE) == again
        assert await tap.names() == []
        await sealer.step(again)

        assert await tap.names() == ["begin", "lock_sealing", "last_seal", "sealing_horizon", "commit"]


async def test_rows_behind_an_open_transaction_are_tried_again_ever_less_often(url: str) -> None:
    async with workbench(url) as bench, connections(url, 1) as (slow,):
        sealer = audits.sealer_of(bench)
        async with slow.transaction():
            await audits.write(slow)
            await audits.write(bench.connection)
            now, pauses = bench.clock.now(), list[timedelta]()
            for _ in range(7):
                again = await sealer.step(now)
                pauses.append(again - now)
                now = again
        assert pauses == [SECOND * seconds for seconds in (1, 2, 4, 8, 16, 30, 30)]

        await sealer.step(now)

        assert len(await sealed_ids(bench)) == 2


async def test_each_head_is_logged_and_added_to_the_file_of_heads(url: str, tmp_path: Path) -> None:
    file, key = audits.key_in(tmp_path)
    heads = tmp_path / "heads"
    async with workbench(url, audit_key_file=file, audit_heads_file=str(heads)) as bench:
        await audits.write(bench.connection)
        sealer = audits.sealer_of(bench)
        with structlog.testing.capture_logs() as logs:
            await sealer.step(bench.clock.now())

        head = (await audits.check(bench.scope, key)).head
        assert head is not None
        [line] = [json.loads(line) for line in heads.read_text().splitlines()]
        assert (line["head"], line["rows"]) == (head, 1)
        key_id, _, signature = line["signature"].partition(":")
        assert key_id == key.id
        assert key.verifies(head, bytes.fromhex(signature))
        assert [entry["head"] for entry in logs if entry["event"] == "audit rows sealed"] == [head]


async def test_a_file_of_heads_that_cannot_be_written_stops_no_sealing(url: str, tmp_path: Path) -> None:
    async with workbench(url, audit_heads_file=str(tmp_path)) as bench:
        await audits.write(bench.connection)
        with structlog.testing.capture_logs() as logs:
            await audits.sealer_of(bench).step(bench.clock.now())

        assert len(await sealed_ids(bench)) == 1
        assert [entry["log_level"] for entry in logs if "not written" in entry["event"]] == ["error"]


async def test_C9_a_url_of_heads_gets_the_newest_head_once_it_answers(url: str, tmp_path: Path) -> None:
    file, key = audits.key_in(tmp_path)
    async with Receiver() as receiver:
        receiver.on("/heads", Answer(503), Answer(503), Answer(204))
        sent_to = receiver.url("/heads").replace("://", "://auditor:canary@")
        async with workbench(url, audit_key_file=file, audit_heads_url=sent_to) as bench:
            sealer, now = audits.sealer_of(bench), bench.clock.now()
            with structlog.testing.capture_logs() as logs:
                await audits.write(bench.connection)
                again = await sealer.step(now)
                assert again == now + timedelta(seconds=5)
                await audits.write(bench.connection)
                sealer.wake()
                assert await sealer.step(now + timedelta(seconds=2)) == again, "two heads do not make it ask sooner"
                later = await sealer.step(again)
                assert later == again + timedelta(seconds=10)
                assert await sealer.step(later) > later + timedelta(seconds=30)
            head = (await audits.check(bench.scope, key)).head
        bodies = [hit.json for hit in receiver.hits]
        assert [body["head"].partition(":")[0] for body in bodies] == ["1", "2", "2"]
        assert (bodies[-1]["head"], bodies[-1]["rows"]) == (head, 1)
        assert key.verifies(bodies[-1]["head"], bytes.fromhex(bodies[-1]["signature"].partition(":")[2]))
        assert "canary" not in str(logs)
        assert [entry["error"] for entry in logs if "not sent" in entry["event"]] == ["HTTP 503", "HTTP 503"]


async def test_a_url_of_heads_that_cannot_be_reached_stops_no_sealing(url: str) -> None:
    async with workbench(url, audit_heads_url="http://127.0.0.1:1/heads") as bench:
        await audits.write(bench.connection)
        await audits.sealer_of(bench).step(bench.clock.now())

        assert len(await sealed_ids(bench)) == 1


async def test_a_server_whose_transactions_begin_again_is_an_alarm(url: str) -> None:
    """As after a restore under a running process: new rows would sort before the sealed ones."""
    async with workbench(url) as bench:
        await audits.write(bench.connection)
        await audits.seal(bench)
        async with audits.as_intruder(bench.connection):
            await bench.connection.execute("update horai.audit_seal set to_xid = '99999999999'")

        with pytest.raises(RuntimeError, match="restored while this process ran"):
            await audits.seal(bench)


async def test_a_write_in_one_process_wakes_the_sealer_of_another(url: str, connection: Platform) -> None:
    """Within half a minute: a sweep would come after five."""
    asked = harness.node(url, name="asked", roles=frozenset({Role.api}))
    sealing = harness.node(url, name="sealing", roles=frozenset({Role.scheduler}))
    async with asked as api, sealing:
        await given_job(api)
        for verb in ("pause", "resume"):
            assert (await api("POST", f"/api/v1/jobs/publish/{verb}")).status == 200
            async with asyncio.timeout(30):
                while (await api("GET", "/api/v1/audit")).json["items"][0]["seal"] is None:
                    await asyncio.sleep(0.02)

        assert await connection.fetchval("select sum(rows) from horai.audit_seal") == 3


async def given_job(api: Client) -> None:
    target = {"type": "http", "url": "http://127.0.0.1:9/hook"}
    assert (await api("POST", "/api/v1/jobs", {"name": "publish", "target": target})).status == 201


async def test_C9_lists_and_the_sealer_read_by_index(url: str) -> None:
    async with workbench(url) as bench:
        for ago in (2, 1, 0):
            await audits.months_ago(bench.connection, ago, rows=5_000)
        await audits.seal(bench)
        await bench.connection.execute("analyze horai.audit, horai.audit_seal")
        sealed_to: int = await bench.connection.fetchval("select max(to_xid::text::bigint) from horai.audit_seal")
        await bench.connection.execute("set plan_cache_mode = force_custom_plan; set enable_seqscan = on")
        listed = (1, None, None, None, None, None, None, datetime.max.replace(tzinfo=UTC), 2**63 - 1, 50, False)
        found = (1, None, None, "job-9", None, None, None, datetime.max.replace(tzinfo=UTC), 2**63 - 1, 50, False)
        exported = (*listed[:7], datetime(1970, 1, 1, tzinfo=UTC), -1, 500, False)
        asked = {
            "list_audit": listed,
            "export_audit": exported,
            "rows_to_seal": (str(sealed_to), str(sealed_to + 1000), 100),
            "rows_between": ("1", str(sealed_to), "0", -1, 500),
        }
        for name, values in asked.items():
            text = await plan_of(bench, name, values)
            assert not re.search(r"Seq Scan on audit_\d+ \w+  \(cost=0\.00\.\.[1-9]|Bitmap", text), text
        text = await plan_of(bench, "list_audit", found)
        assert "BitmapOr" in text, f"an object is found by its id or its name\n{text}"


async def plan_of(bench: Workbench, name: str, values: tuple[Any, ...]) -> str:
    plan = await bench.connection.fetch(f"explain {sql(name)}", *values)
    return "\n".join([name, *(line for (line,) in plan)])
