"""PUT and trigger, whose requests share statements: each is answered as if it had come alone."""

import asyncio
import io
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import harness
import make
import pytest
from databases import Superuser, superuser
from harness import Client, Reply
from keys import KeyHolder, created, holder, holding

from api import expect, given
from api.conftest import SOME_KEY
from horai.core.limits import PAYLOAD_LIMIT
from horai.core.shards import Role

GOLDEN = Path(__file__).parent / "single_write_errors.json"
LIVE = "select count(*) from horai.instance_live where job_id = $1"
TAKEN = "select count(*) from horai.idempotency_key where job_id = $1"
SLOW = """
create function public.dawdle() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$;
create trigger dawdle before insert on horai.instance_live for each row execute function public.dawdle()
"""
QUICK = "drop trigger dawdle on horai.instance_live; drop function public.dawdle()"
DAWDLERS = "select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
BODIES: tuple[tuple[bytes, dict[str, str]], ...] = (
    (b"{", {}),
    (b"[]", {}),
    (b'"text"', {}),
    (b'{"payload": 1, "payload": 2}', {}),
    (b'{"unknown": 1}', {}),
    (b'{"payload": NaN}', {}),
    (b'{"payload": "\\u0000"}', {}),
    (b'{"payload": "\\ud800"}', {}),
    (b'{"payload": ' + b"[" * 70 + b"]" * 70 + b"}", {}),
    (b'{"payload": 1' + b"0" * 400 + b"}", {}),
    (b'{"version": "1"}', {}),
    (b'{"executeTime": "soon"}', {}),
    (b'\xef\xbb\xbf{"payload": 1}', {}),
    (b"\xff", {}),
    (b'{"payload": "' + b"x" * PAYLOAD_LIMIT + b'"}', {}),
    (b"{}", {"content_type": "text/plain"}),
)
WRITES = ("PUT", "trigger")


@asynccontextmanager
async def served(url: str, **changes: Any) -> AsyncGenerator[tuple[KeyHolder, KeyHolder, Superuser]]:
    """A server with the role `api` and a live node: an admin's and an operator's clients, and a connection of the test."""
    db = await superuser(url, "horai single writes")
    await make.node(db)
    async with harness.node(url, roles=frozenset({Role.api}), **changes) as api:
        root = await holder(api, "platform-admin")
        await given.loopback_targets(root, "default")
        admin = await holder(root, "admin", "default")
        yield admin, await holder(root, "operator", "default"), db
    db.terminate()


async def write(api: Client, how: str, job: Any, key: str, **headers: str) -> Reply:
    """One write of this kind. A trigger has the key as its Idempotency-Key."""
    if how == "PUT":
        return await api("PUT", f"/api/v1/jobs/{job['name']}/instances/{key}", {"executeTime": given.FAR}, **headers)
    return await api("POST", f"/api/v1/jobs/{job['name']}/trigger", {}, Idempotency_Key=key, **headers)


async def writes(api: Client, how: str, job: Any, count: int, stem: str = "key") -> list[Reply]:
    """Many writes at the same time."""
    return await asyncio.gather(*(write(api, how, job, f"{stem}-{number}") for number in range(count)))


async def errors(api: Client, job: Any) -> list[dict[str, Any]]:
    """The answers to requests that make no sense, on both routes."""
    found: list[dict[str, Any]] = []
    asked = [(job["name"], body, headers) for body, headers in BODIES]
    asked += [("nothing", b"{}", {}), ("9" * 30, b"{}", {}), ("%00", b"{}", {})]
    for name, body, headers in asked:
        for method, path in (("PUT", "instances/a"), ("POST", "trigger")):
            sent = {"Idempotency_Key": "bad"} | headers
            reply = await given.sent(api, method, f"/api/v1/jobs/{name}/{path}", io.BytesIO(body), **sent)
            kept = {header: reply.headers.get(header) for header in ("content-type", "cache-control", "retry-after")}
            found.append({"status": reply.status, "headers": kept, "body": reply.json})
    return found


async def test_wrong_bodies_get_the_same_answers_as_from_the_routes_of_fastapi(api: Client) -> None:
    job = await given.job(api)

    found = await errors(api, job)

    assert found == json.loads(GOLDEN.read_text())
    assert Counter(answer["status"] for answer in found).keys() == {404, 413, 422}


@pytest.mark.parametrize("how", WRITES)
async def test_writes_at_the_same_time_are_each_answered_and_share_statements(how: str, url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        await writes(operator, how, job, 5, "first")  # after it, the process knows the keys that it needs

        replies = await writes(operator, how, job, 40)

        assert {reply.status for reply in replies} == {201}
        assert len({reply.json["instance"]["id"] for reply in replies}) == 40
        assert all(reply.json["instance"]["state"] == "INIT" for reply in replies)
        shared = await db.fetchval(
            "select count(distinct xmin::text) from horai.instance_live where job_id = $1", int(job["id"])
        )
        assert shared < 30


@pytest.mark.parametrize("how", WRITES)
async def test_the_answer_is_the_instance_as_a_read_shows_it(how: str, url: str) -> None:
    async with served(url) as (admin, operator, _):
        job = await given.job(admin, payload={"from": "job"}, priority="high", queue="letters")
        for _ in range(2):
            reply = await write(operator, how, job, given.name("key"))
            read = await given.read(admin, reply.json["instance"])
            assert {name: read[name] for name in reply.json["instance"]} == reply.json["instance"]
            assert reply.json["instance"]["queue"] == "letters"


@pytest.mark.parametrize("how", WRITES)
async def test_a_paused_job_keeps_new_instances_until_it_is_resumed(how: str, url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        assert (await admin("POST", f"/api/v1/jobs/{job['name']}/pause")).status == 200

        assert {reply.status for reply in await writes(operator, how, job, 3)} == {201}

        assert await db.fetchval("select max(lane) from horai.instance_live where job_id = $1", int(job["id"])) == 0


async def test_a_mixed_batch_of_puts_decides_each_by_its_own_rule(url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        for key in ("moved", "done", "dead"):
            assert (await write(operator, "PUT", job, key)).status == 201
        await _end(db, "done", 2)
        await _end(db, "dead", 4)

        keys = ("new", "moved", "done", "new", "dead", "other")
        path = f"/api/v1/jobs/{job['name']}/instances/"
        replies = await asyncio.gather(
            *(operator("PUT", path + key, {"version": 9 - turn}) for turn, key in enumerate(keys))
        )

        assert [reply.json["decision"] for reply in replies] == [
            "INSERTED", "UPDATED", "IGNORED", "IGNORED", "INSERTED", "INSERTED",
        ]  # fmt: skip
        assert replies[0].json["instance"]["id"] == replies[3].json["instance"]["id"]
        assert replies[4].json["instance"]["fence"] == 7, "it continues the fence of the dead instance"


async def _end(db: Superuser, key: str, state: int) -> None:
    await db.execute(
        "with gone as (delete from horai.instance_live where key = $1 returning *) insert into horai.instance_history"
        " (id, job_id, tenant_id, lane, key, fire_time, execute_time, born_for, slot, attempt, fence, created_at, finished_at, retry_count, events, state)"
        " select id, job_id, tenant_id, lane, key, fire_time, execute_time, born_for, slot, 1, 7, created_at, clock_timestamp(), 0, 1, $2 from gone",
        key,
        state,
    )


async def test_repeats_in_one_batch_of_triggers_answer_with_the_first_instance(url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        await write(operator, "trigger", job, "old")

        replies = await asyncio.gather(
            *(write(operator, "trigger", job, key) for key in ("old", "a", "a", "b", "a", "old"))
        )

        assert [reply.status for reply in replies] == [409, 201, 409, 201, 409, 409]
        assert replies[1].json["instance"]["id"] == replies[2].json["instanceId"] == replies[4].json["instanceId"]
        other = await operator("POST", f"/api/v1/jobs/{job['name']}/trigger", {"payload": 1}, Idempotency_Key="a")
        expect.invalid(other, "another body")
        assert await db.fetchval(LIVE, int(job["id"])) == await db.fetchval(TAKEN, int(job["id"])) == 3


@pytest.mark.parametrize("how", WRITES)
async def test_a_revoked_key_is_refused_among_writes_of_others(how: str, url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        made = await created(admin, "operator")
        revoked = holding(admin, made["key"])
        assert (await write(revoked, how, job, "before")).status == 201
        assert (await admin("DELETE", f"/api/v1/keys/{made['id']}")).status == 200

        callers = [revoked, operator] * 10
        replies = await asyncio.gather(
            *(write(caller, how, job, f"key-{number}") for number, caller in enumerate(callers))
        )

        assert [reply.status for reply in replies] == [401, 201] * 10
        assert await db.fetchval(LIVE, int(job["id"])) == 11


@pytest.mark.parametrize("how", WRITES)
async def test_a_key_that_another_transaction_has_locked_does_not_hold_up_the_others(how: str, url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        first = await write(operator, how, job, "warm")
        async with db.transaction():
            if how == "PUT":
                await db.execute(
                    "insert into horai.instance_live (id, job_id, tenant_id, lane, shard, key, fire_time, execute_time, born_for, due, slot)"
                    " select nextval('horai.instance_id'), job_id, tenant_id, lane, shard, 'held', fire_time, execute_time, born_for, due, -99"
                    " from horai.instance_live where id = $1",
                    int(first.json["instance"]["id"]),
                )
            else:
                await db.execute(
                    "insert into horai.idempotency_key (tenant_id, scope, key, request_hash) values (1, $1, 'held', '')",
                    f"trigger:{job['id']}",
                )
            held = asyncio.create_task(write(operator, how, job, "held"))
            async with asyncio.timeout(3):
                assert {reply.status for reply in await writes(operator, how, job, 20)} == {201}
            assert not held.done()
        assert (await held).status == (200 if how == "PUT" else 422)


@pytest.mark.parametrize("how", WRITES)
async def test_a_lost_connection_is_a_503_and_a_repeat_writes_once(how: str, url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        await write(operator, how, job, "warm")
        await db.execute(SLOW)
        lost = asyncio.create_task(writes(operator, how, job, 5))

        async def dawdlers() -> Any:
            return await db.fetch(DAWDLERS)

        while not lost.done():
            for row in await given.until(dawdlers) if not lost.done() else ():
                await db.execute("select pg_terminate_backend($1)", row["pid"])
            await asyncio.wait({lost}, timeout=0.05)
        for reply in await lost:
            expect.problem(reply, 503, "SCH_503_DATABASE_UNAVAILABLE")
        await db.execute(QUICK)
        assert await db.fetchval(LIVE, int(job["id"])) == 1

        assert {reply.status for reply in await writes(operator, how, job, 5)} == {201}
        assert {reply.status for reply in await writes(operator, how, job, 5)} == {200 if how == "PUT" else 409}
        assert await db.fetchval(LIVE, int(job["id"])) == 6


async def test_each_trigger_of_a_batch_has_an_audit_row_of_its_own_actor(url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        await write(operator, "trigger", job, "warm")
        heard: dict[str, set[int]] = {}
        """The senders of each wake."""

        def hear(_: object, sender: int, __: object, told: Any) -> None:
            for wake in str(told).split():
                heard.setdefault(wake, set()).add(sender)

        await db.add_listener("horai_wake", hear)
        callers = [admin, operator] * 8
        replies = await asyncio.gather(
            *(
                write(caller, "trigger", job, f"key-{number}", X_Request_Id=f"request-{number}")
                for number, caller in enumerate(callers)
            )
        )

        rows = await db.fetch(
            "select actor_role, request_id, address, object_kind, object_id, object_name, after::text, counts from horai.audit"
            " where verb = 'job.trigger' and request_id like 'request-%' order by substr(request_id, 9)::integer"
        )
        assert [tuple(row.values()) for row in rows] == [
            (role, f"request-{number}", "127.0.0.1", "job", job["id"], job["name"], _after(reply), None)
            for number, (role, reply) in enumerate(zip(["admin", "operator"] * 8, replies, strict=True))
        ]
        assert await db.fetchval("select count(*) from horai.audit where verb like 'instance%'") == 0

        async def told() -> bool:
            await db.fetchval("select 1")
            return "a" in heard

        await given.until(told)
        notifiers = await db.fetch("select pid from pg_stat_activity where application_name = 'horai notifier'")
        assert heard["a"] <= {row["pid"] for row in notifiers}, "no write holds the lock of notifications in its commit"

        await writes(operator, "PUT", job, 5)
        assert await db.fetchval("select count(*) from horai.audit where verb = 'job.trigger'") == 17


def _after(reply: Reply) -> str:
    return json.dumps({"instance": reply.json["instance"]["id"], "payload": None}, separators=(",", ":"))


@pytest.mark.parametrize("how", WRITES)
async def test_payloads_of_an_encrypted_job_are_sealed_in_every_batch(how: str, url: str) -> None:
    async with served(url, encryption_keys=(SOME_KEY,)) as (admin, operator, db):
        job = await given.job(admin, encrypted=True)
        path = f"/api/v1/jobs/{job['name']}/{'instances/' if how == 'PUT' else 'trigger'}"

        async def secret(number: int) -> int:
            key, body = f"key-{number}", {"payload": {"secret": "canary"}}
            sent = ("PUT", path + key, body) if how == "PUT" else ("POST", path, body)
            return (await operator(*sent, Idempotency_Key=key) if how != "PUT" else await operator(*sent)).status

        for numbers in (range(1), range(1, 2), range(2, 10)):  # the first one reads the data key, which the others know
            assert set(await asyncio.gather(*map(secret, numbers))) == {201}

        stored = await db.fetch("select payload::text from horai.instance_live where job_id = $1", int(job["id"]))
        assert len(stored) == 10
        assert not [row for row in stored if "canary" in row["payload"]]


async def test_triggers_are_refused_while_no_node_executes(url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        await write(operator, "trigger", job, "warm")
        await db.execute("update horai.node set stopped_at = clock_timestamp() where 'executor' = any (roles)")

        for reply in await writes(operator, "trigger", job, 3):
            expect.problem(reply, 503, "SCH_503_DISPATCHER_DOWN")

        assert await db.fetchval(TAKEN, int(job["id"])) == 1


async def test_triggers_beyond_the_limit_of_keys_are_refused(url: str) -> None:
    async with served(url) as (admin, operator, db):
        job = await given.job(admin)
        await write(operator, "trigger", job, "warm")
        await db.execute("insert into horai.idempotency_load (tenant_id, keys, bytes) values (1, 100000000, 0)")

        assert {reply.status for reply in await writes(operator, "trigger", job, 3)} == {429}

        assert await db.fetchval(LIVE, int(job["id"])) == 1
