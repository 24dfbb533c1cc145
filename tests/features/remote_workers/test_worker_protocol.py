"""The worker protocol: leases, reports and their answers, over a real server and a real database."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import aiohttp
import harness
import pytest
from harness import FAST, Client
from keys import KeyHolder, created, holder, holding
from raw_workers import PATH, RawWorker, connected, ref_of, working

from api import given
from horai.api import socket_protocol
from horai.core.encryption import KeyEncryptionKey
from horai.core.settings import ServerLimits
from horai.db.pool import Platform
from horai.features.remote_workers import connection as worker_connection
from horai.features.remote_workers.session import WorkerSession
from horai.wire.worker_messages import Answer

QUICK = {"maxRetry": 3, "base": "1ms", "jitter": "none"}


@asynccontextmanager
async def server(url: str, **changes: Any) -> AsyncGenerator[Client]:
    settings: dict[str, Any] = {"lease": timedelta(seconds=60), **changes}
    async with harness.node(url, FAST, **settings) as api:
        yield api


async def job(api: Client, handler: str = "echo", **fields: Any) -> Any:
    """A job whose function a worker runs."""
    target = {"type": "worker", "handler": handler}
    made = await api("POST", "/api/v1/jobs", {"name": given.name(), "target": target, "retry": QUICK, **fields})
    assert made.status == 201, made.json
    return made.json


async def instance(api: Client, id_: str) -> Any:
    return (await api("GET", f"/api/v1/instances/{id_}")).json


async def audited(admin: Client) -> list[Any]:
    """The entries of the audit log that a tenant sees."""
    return (await admin("GET", "/api/v1/audit")).json["items"]


async def test_a_worker_runs_an_instance_and_its_report_settles_it(url: str):
    async with server(url) as api:
        made = await given.triggered(api, await job(api, payload={"n": 1}))
        async with working(api, "echo") as worker:
            (lease,) = await worker.leases()
            assert (lease["instance"], lease["attempt"], lease["payload"]) == (made["id"], 1, {"n": 1})
            assert (await instance(api, made["id"]))["state"] == "RUNNING"
            answer = await worker.report(lease, output={"done": True})
        ended = await api.until_state(made["id"], "SUCCESS")
    assert (answer["result"], ended["result"], ended["attempt"]) == ("settled", {"done": True}, 1)


async def test_a_failed_report_is_retried_by_the_policy_of_the_job(url: str):
    async with server(url) as api:
        made = await given.triggered(api, await job(api))
        async with working(api, "echo") as worker:
            (first,) = await worker.leases()
            await worker.report(first, "failed", code="FLAKY", message="not yet")
            (second,) = await worker.leases()
            assert (second["attempt"], second["retryCount"]) == (2, 1)
            assert second["fence"] > first["fence"]
            await worker.report(second, "unrecoverable", code="BROKEN", message="never", tags=["mine"])
        ended = await api.until_state(made["id"], "DEAD")
    assert ended["errorCode"] == "BROKEN"


async def test_a_worker_never_holds_more_leases_than_it_has_credits(url: str):
    async with server(url) as api:
        made = await job(api)
        for _ in range(5):
            await given.triggered(api, made)
        async with working(api, "echo", credits=2) as worker:
            held = await worker.leases(2)
            assert await worker.settle_down() == []
            for _ in range(3):
                await worker.report(held.pop())
                held += await worker.leases()
                assert await worker.settle_down() == []


async def test_a_worker_gets_more_work_when_it_raises_its_credits_and_none_when_it_drains(url: str):
    async with server(url) as api:
        made = await job(api)
        for _ in range(4):
            await given.triggered(api, made)
        async with working(api, "echo", credits=1) as worker:
            held = await worker.leases(1)
            await worker.send("credits", total=3)
            held += await worker.leases(2)
            await worker.send("credits", total=0)
            for lease in held:
                assert (await worker.report(lease))["result"] == "settled"
            assert await worker.settle_down() == []


async def test_a_handler_with_a_limit_of_its_own_does_not_take_the_other_slots(url: str):
    async with server(url) as api:
        slow, quick = await job(api, "slow"), await job(api, "quick")
        async with connected(api) as worker:
            offered = [{"name": "slow", "concurrency": 1}, {"name": "quick"}]
            await worker.hello(credits=3, handlers=offered)
            for _ in range(3):
                await given.triggered(api, slow)
            await worker.leases(1)
            await given.triggered(api, quick)
            assert [lease["handler"] for lease in await worker.leases(1)] == ["quick"]
            assert await worker.settle_down() == []


async def test_a_worker_gets_only_instances_of_its_queues(url: str):
    async with server(url) as api:
        mail, other = await job(api, queue="mail"), await job(api, queue="other")
        await given.triggered(api, other)
        wanted = await given.triggered(api, mail)
        async with working(api, "echo", queues=["mail"]) as worker:
            assert [lease["instance"] for lease in await worker.leases()] == [wanted["id"]]
            assert await worker.settle_down() == []


async def test_a_repeated_report_gets_the_same_answer(url: str):
    async with server(url) as api:
        await given.triggered(api, await job(api))
        async with working(api, "echo") as worker:
            (lease,) = await worker.leases()
            assert [(await worker.report(lease))["result"] for _ in range(3)] == ["settled"] * 3
        async with working(api, "echo") as another:
            assert (await another.report(lease))["result"] == "settled"


async def test_a_report_with_an_old_fence_is_refused_and_changes_nothing(url: str):
    async with server(url) as api:
        made = await given.triggered(api, await job(api))
        async with working(api, "echo") as worker:
            (first,) = await worker.leases()
            await worker.report(first, "failed", code="FLAKY")
            (second,) = await worker.leases()
            async with working(api, "nothing") as another:
                answer = await another.report(first, output="late")
                assert (answer["result"], "fence" in answer["detail"]) == ("stale", True)
            assert (await instance(api, made["id"]))["state"] == "RUNNING"
            assert (await worker.report(second))["result"] == "settled"


async def test_an_instance_that_was_lost_twice_is_to_run_alone(url: str):
    async with server(url) as api:
        made = await given.triggered(api, await job(api))
        alone: list[bool] = []
        for _ in range(3):
            async with working(api, "echo") as worker:
                (lease,) = await worker.leases()
                alone.append(lease.get("alone", False))
                await worker.send("bye")
                assert await worker.closed() == 1000
        async with working(api, "echo") as worker:
            (lease,) = await worker.leases()
            await worker.report(lease)
        ended = await api.until_state(made["id"], "SUCCESS")
    assert (alone, ended["attempt"], ended["retryCount"]) == ([False, False, True], 4, 0)


async def test_a_stale_lease_that_the_worker_has_not_begun_leaves_no_late_attempt(url: str):
    async with server(url) as api:
        made = await given.triggered(api, await job(api))
        async with working(api, "echo") as worker:
            (first,) = await worker.leases()
            await worker.report(first, "failed", code="FLAKY")
            (second,) = await worker.leases()
            async with working(api, "nothing") as another:
                assert (await another.report(first, "released"))["result"] == "stale"
            await worker.report(second)
        ended = await api.until_state(made["id"], "SUCCESS")
    assert [tried["late"] for tried in ended["attempts"]] == [False, False]


async def test_a_worker_that_does_not_read_is_not_read_and_its_connection_is_aborted(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(socket_protocol, "UNREAD_WITHIN", 2.0)
    monkeypatch.setattr(worker_connection, "MOST_UNSENT", 100)
    answer, unsent = WorkerSession.send_answer, list[int]()

    def observed(session: WorkerSession, given: Answer) -> None:
        answer(session, given)
        unsent.append(session.unsent)

    monkeypatch.setattr(WorkerSession, "send_answer", observed)
    flood = [{"instance": "x" * 40, "fence": number, "result": "succeeded"} for number in range(1_000)]

    async def send_all() -> None:
        async with asyncio.timeout(60), server(url) as api, working(api, "echo") as worker:
            for _ in range(2_000):
                await worker.send("reports", reports=flood)

    with pytest.raises(ConnectionError):
        await send_all()
    assert max(unsent) <= 100 + len(flood)


async def test_another_session_cannot_report_an_attempt_that_a_worker_runs(url: str):
    async with server(url) as api:
        made = await given.triggered(api, await job(api))
        async with working(api, "echo") as worker, working(api, "nothing") as another:
            (lease,) = await worker.leases()
            assert (await another.report(lease))["result"] == "refused"
            assert (await instance(api, made["id"]))["state"] == "RUNNING"
            assert (await worker.report(lease))["result"] == "settled"


async def test_a_silent_worker_loses_its_attempt_and_its_late_report_is_stale(url: str):
    async with server(url, lease=timedelta(seconds=1)) as api:
        made = await given.triggered(api, await job(api))
        async with working(api, "echo") as frozen:
            (lease,) = await frozen.leases()
            assert await frozen.closed() == 4408
            async with working(api, "echo", holding=[ref_of(lease)], resume=frozen.resume) as woken:
                assert woken.welcome.get("resumed", False) is False
                (again,) = await woken.leases()
                assert (again["instance"], again["attempt"]) == (made["id"], 2)
                assert (await woken.report(lease))["result"] == "stale"
                assert (await woken.report(again, output="second"))["result"] == "settled"
        ended = await api.until_state(made["id"], "SUCCESS")
    assert (ended["result"], ended["retryCount"]) == ("second", 0)
    assert [(tried["errorCode"], tried["late"]) for tried in ended["attempts"]] == [
        ("NODE_LOST", False),
        (None, True),
        (None, False),
    ]


async def test_a_session_resumes_with_its_token_and_gets_lost_leases_again(url: str):
    async with server(url) as api:
        made = await job(api)
        async with working(api, "echo", credits=2) as worker:
            await given.triggered(api, made)
            (kept,) = await worker.leases()
            await given.triggered(api, made)
            (lost,) = await worker.leases()
        resume, still = worker.resume, [ref_of(kept)]
        async with working(api, "echo", credits=2, resume=resume, holding=still) as again:
            assert (again.welcome["resumed"], again.welcome["session"]) == (True, worker.welcome["session"])
            assert await again.leases() == [lost]
            assert await again.settle_down() == []
            for lease in (kept, lost):
                assert (await again.report(lease))["result"] == "settled"


async def test_a_second_connection_takes_the_session_over_and_gets_its_leases(url: str):
    async with server(url) as api:
        await given.triggered(api, await job(api))
        async with working(api, "echo", credits=1) as first:
            (lease,) = await first.leases()
            async with working(api, "echo", credits=2, resume=first.resume) as second:
                assert second.welcome["resumed"] is True
                assert await first.closed() == 4409
                assert await second.leases() == [lease]
                assert (await second.report(lease))["result"] == "settled"
                for _ in range(3):
                    await given.triggered(api, await job(api))
                assert len(await second.leases(2)) == 2
                assert await second.settle_down() == []


@pytest.mark.parametrize("wrong", ["token", "session"])
async def test_a_session_does_not_resume_with_a_wrong_token(url: str, wrong: str):
    async with server(url) as api:
        await given.triggered(api, await job(api))
        async with working(api, "echo") as worker:
            await worker.leases()
        async with working(api, "echo", resume={**worker.resume, wrong: "x" * 43}) as thief:
            assert thief.welcome.get("resumed", False) is False
            assert thief.welcome["session"] != worker.welcome["session"]
            assert await thief.settle_down() == []


async def test_a_cancel_reaches_the_worker_and_its_slot_is_free_after_its_report(url: str):
    async with server(url) as api:
        made = await job(api)
        first = await given.triggered(api, made)
        async with working(api, "echo", credits=1) as worker:
            (lease,) = await worker.leases()
            await api("POST", f"/api/v1/instances/{first['id']}/cancel")
            assert (await worker.next("cancel"))["attempts"] == [ref_of(lease)]
            await given.triggered(api, made)
            assert await worker.settle_down() == []
            assert (await worker.report(lease))["result"] == "stale"
            await worker.leases()
        assert (await instance(api, first["id"]))["state"] == "CANCELLED"


async def test_progress_and_log_lines_are_shown_with_the_attempt(url: str):
    async with server(url) as api:
        made = await given.triggered(api, await job(api))
        async with working(api, "echo") as worker:
            (lease,) = await worker.leases()
            notes = [{**ref_of(lease), "progress": 0.5}, {**ref_of(lease), "message": "a line"}]
            await worker.send("progress", notes=[*notes, {**ref_of(lease), "progress": 7}])
            await worker.report(lease)

        async def shown() -> Any:
            return (await instance(api, made["id"]))["attempts"][0]

        await given.until(lambda: _holds(shown, lambda found: found["progress"] == 0.5 and len(found["log"]) >= 1))
        assert [line["message"] for line in (await shown())["log"] if line.get("message")] == ["a line"]


async def _holds(read: Any, holds: Any) -> bool:
    return holds(await read())


async def test_a_server_that_stops_tells_its_workers_and_takes_their_reports(url: str, connection: Platform):
    async with aiohttp.ClientSession() as session:
        async with server(url) as api:
            made = await given.triggered(api, await job(api))
            socket = await session.ws_connect(api.base + PATH)
            worker = await RawWorker(socket).hello("echo")
            (lease,) = await worker.leases()

            async def answer() -> str:
                await worker.next("drain")
                return (await worker.report(lease))["result"]

            answered = asyncio.create_task(answer())
        assert await answered == "settled"
        assert await worker.closed() == 1012
        await socket.close()
    state = await connection.fetchval("select state from horai.instance_history where id = $1", int(made["id"]))
    assert state == 2


async def test_a_worker_that_leaves_gives_its_attempts_up_at_once(url: str):
    async with server(url) as api:
        made = await given.triggered(api, await job(api))
        async with working(api, "echo") as worker:
            await worker.leases()
            await worker.send("bye")
            assert await worker.closed() == 1000
        async with working(api, "echo") as another:
            assert [lease["attempt"] for lease in await another.leases()] == [2]
        assert (await instance(api, made["id"]))["state"] == "RUNNING"


async def test_a_report_at_another_server_settles_the_attempt(url: str):
    async with server(url, name="first") as first, server(url, name="second") as second:
        made = await given.triggered(first, await job(first))
        async with working(first, "echo") as worker:
            (lease,) = await worker.leases()
        async with working(second, "echo", holding=[ref_of(lease)], resume=worker.resume) as moved:
            assert moved.welcome.get("resumed", False) is False
            assert (await moved.report(lease, output="moved"))["result"] == "settled"
            assert (await moved.report(lease, output="moved"))["result"] == "settled"
        assert (await first.until_state(made["id"], "SUCCESS"))["result"] == "moved"


async def tenant_of(root: Client, name: str) -> tuple[KeyHolder, KeyHolder]:
    """An admin and a worker of a new tenant."""
    assert (await root("POST", "/api/v1/tenants", {"name": name})).status == 201
    return await holder(root, "admin", name), await holder(root, "worker", name)


async def test_a_worker_neither_gets_nor_reports_instances_of_another_tenant(url: str):
    async with server(url) as api:
        root = await holder(api, "platform-admin")
        admin, own = await tenant_of(root, "own")
        _, foreign = await tenant_of(root, "foreign")
        made = await given.triggered(admin, await job(admin))
        async with working(foreign, "echo") as stranger, working(own, "echo") as worker:
            (lease,) = await worker.leases()
            assert await stranger.settle_down() == []
            assert (await stranger.report(lease))["result"] in {"refused", "stale"}
            await stranger.send("progress", notes=[{**ref_of(lease), "message": "not mine"}])
            await stranger.settle_down()
            assert (await instance(admin, made["id"]))["state"] == "RUNNING"
            assert (await worker.report(lease))["result"] == "settled"
            async with working(foreign, "echo") as later:
                assert (await later.report(lease))["result"] == "stale"
            found = await instance(admin, made["id"])
        assert (found["state"], found["attempts"][0]["log"]) == ("SUCCESS", [])


async def test_a_session_does_not_resume_with_the_key_of_another_tenant(url: str):
    async with server(url) as api:
        root = await holder(api, "platform-admin")
        _, own = await tenant_of(root, "own")
        _, foreign = await tenant_of(root, "foreign")
        async with working(own, "echo") as worker:
            pass
        async with working(foreign, "echo", resume=worker.resume) as thief:
            assert thief.welcome.get("resumed", False) is False


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("operator", 403), (None, 401)])
async def test_only_a_key_with_the_role_worker_connects(url: str, role: str | None, status: int):
    async with server(url) as api:
        root = await holder(api, "platform-admin")
        key = "hk_wrong" if role is None else (await created(root, role, "default"))["key"]
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with connected(holding(api, key)):
                pass
        entries = await audited(await holder(root, "admin", "default"))
    assert refused.value.status == status
    assert role is None or any(entry["verb"] == "access.denied" for entry in entries)


async def test_a_foreign_page_cannot_open_a_worker_connection(url: str):
    async with server(url) as api:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with api.session.ws_connect(api.base + PATH, headers=headers):
                    pass
            assert refused.value.status == 403


async def test_a_revoked_key_ends_the_session_and_its_attempts_run_elsewhere(url: str):
    async with server(url) as api:
        root = await holder(api, "platform-admin")
        admin = await holder(root, "admin", "default")
        key = await created(root, "worker", "default")
        await given.triggered(admin, await job(admin))
        async with working(holding(api, key["key"]), "echo") as worker:
            await worker.leases()
            assert (await root("DELETE", f"/api/v1/keys/{key['id']}")).status in {200, 204}
            async with beating(worker):
                assert await worker.closed() == 4401
        async with working(await holder(root, "worker", "default"), "echo") as another:
            assert [lease["attempt"] for lease in await another.leases()] == [2]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"protocol": 2}, "version 1"),
        ({"credits": 0}, "credits"),
        ({"credits": 1_001}, "credits"),
        ({"handlers": []}, "handlers"),
        ({"handlers": [{"name": "horai:tick"}]}, "horai:tick"),
        ({"queues": ["no queue"]}, "no queue"),
    ],
)
async def test_a_hello_that_cannot_be_served_is_refused(url: str, fields: dict[str, Any], says: str):
    async with server(url) as api, connected(api) as worker:
        await worker.send(
            "hello", **{"protocol": 1, "name": "raw", "handlers": [{"name": "f"}], "credits": 1, **fields}
        )
        error = await worker.next("error")
        assert (says in error["detail"], error["isFatal"]) == (True, True)
        assert await worker.closed() == 4429


async def test_a_server_takes_no_more_sessions_of_a_key_than_its_limit(url: str):
    async with server(url, limits=ServerLimits(workers_per_key=1)) as api, working(api, "echo") as first:
        async with connected(api) as second:
            await second.send("hello", protocol=1, name="raw", handlers=[{"name": "echo"}], credits=1)
            assert "with this key" in (await second.next("error"))["detail"]
            assert await second.closed() == 4429
        assert await first.settle_down() == []


async def test_unknown_fields_are_ignored_and_unknown_messages_do_not_end_the_connection(url: str):
    async with server(url) as api:
        await given.triggered(api, await job(api))
        async with working(api, "echo", fromTheFuture={"a": 1}) as worker:
            (lease,) = await worker.leases()
            await worker.send("from-the-future", x=1)
            assert (await worker.next("error")).get("isFatal", False) is False
            assert (await worker.report(lease, fromTheFuture=1))["result"] == "settled"


async def test_a_message_that_is_not_json_ends_the_connection(url: str):
    async with server(url) as api, working(api, "echo") as worker:
        await worker.socket.send_str("{")
        assert await worker.closed() == 4400


async def test_a_message_above_the_limit_ends_the_connection_and_not_the_session(url: str):
    async with server(url, limits=ServerLimits(worker_message=10_000)) as api:
        async with working(api, "echo") as worker:
            await worker.socket.send_str('{"type":"heartbeat","x":"' + "x" * 20_000 + '"}')
            assert await worker.closed() == 1009
        async with working(api, "echo", resume=worker.resume) as again:
            assert again.welcome["resumed"] is True


async def test_large_payloads_and_outputs_pass_and_a_too_large_output_is_a_failure(url: str):
    async with server(url) as api:
        made = await job(api, payload="x" * 900_000)
        fits, not_ = await given.triggered(api, made), None
        async with working(api, "echo", credits=1) as worker:
            (lease,) = await worker.leases()
            assert len(lease["payload"]) == 900_000
            await worker.report(lease, output="y" * 60_000)
            not_ = await given.triggered(api, made)
            (lease,) = await worker.leases()
            await worker.report(lease, output="y" * 70_000)
        assert len((await api.until_state(fits["id"], "SUCCESS"))["result"]) == 60_000
        assert (await api.until_state(not_["id"], "DEAD"))["errorCode"] == "RESULT_INVALID"


async def test_the_values_of_an_encrypted_job_are_clear_for_the_worker_and_sealed_in_the_database(
    url: str, connection: Platform
):
    async with server(url, encryption_keys=(KeyEncryptionKey(bytes(range(32))),)) as api:
        made = await given.triggered(api, await job(api, encrypted=True, payload={"card": "4111-canary"}))
        async with working(api, "echo") as worker:
            (lease,) = await worker.leases()
            assert (lease["payload"], lease["encrypted"]) == ({"card": "4111-canary"}, True)
            await worker.report(lease, output="out-canary")
        assert (await api.until_state(made["id"], "SUCCESS"))["result"] == "out-canary"
    row = await connection.fetchrow(
        "select payload::text, result::text from horai.instance_history where id = $1", int(made["id"])
    )
    assert row is not None
    assert "canary" not in f"{row['payload']}{row['result']}"


async def test_a_queue_with_one_slot_gives_one_lease_at_a_time(url: str):
    async with server(url) as api:
        assert (await api("PUT", "/api/v1/queues/narrow", {"maxConcurrency": 1})).status == 200
        made = await job(api, queue="narrow")
        for _ in range(2):
            await given.triggered(api, made)
        async with working(api, "echo") as worker:
            (first,) = await worker.leases()
            assert await worker.settle_down() == []
            await worker.report(first)
            await worker.leases()


async def test_the_start_of_a_session_is_audited_with_its_key(url: str):
    async with server(url) as api:
        root = await holder(api, "platform-admin")
        admin = await holder(root, "admin", "default")
        async with working(await holder(root, "worker", "default"), "echo") as worker:
            session = worker.welcome["session"]
        async with working(await holder(root, "worker", "default"), "nothing") as unknown:
            assert unknown.welcome["unknownHandlers"] == ["nothing"]
        entries = [entry for entry in await audited(admin) if entry["verb"] == "worker.connect"]
    assert [entry["object"]["id"] for entry in entries].count(session) == 1
    assert {entry["actor"]["role"] for entry in entries} == {"worker"}


async def test_a_worker_that_ignores_its_timeout_loses_the_attempt_and_keeps_its_slot(url: str):
    async with server(url, lease=timedelta(seconds=1)) as api:
        made = await given.triggered(api, await job(api, timeout="100ms", retry={**QUICK, "maxRetry": 0}))
        async with working(api, "echo", credits=1) as worker:
            (lease,) = await worker.leases()
            async with beating(worker):
                assert (await api.until_state(made["id"], "DEAD"))["errorCode"] == "TIMEOUT"
            assert (await worker.next("cancel"))["attempts"] == [ref_of(lease)]
            assert (await worker.report(lease))["result"] == "stale"


@asynccontextmanager
async def beating(worker: RawWorker) -> AsyncGenerator[None]:
    """Heartbeats as a worker sends them."""

    async def beat() -> None:
        while True:
            await worker.send("heartbeat")
            await asyncio.sleep(0.2)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


DECLARED = {"name": "shop", "jobs": [{"document": {"name": "sell", "target": {"type": "worker"}}, "payload": {"n": 1}}]}


async def test_a_worker_with_an_admin_key_declares_the_jobs_of_its_code(url: str):
    async with server(url) as api:
        root = await holder(api, "platform-admin")
        admin = await holder(root, "admin", "default")
        async with working(await holder(root, "worker", "default"), "sell", declare=DECLARED) as worker:
            assert worker.welcome.get("declared", False) is False
            assert worker.welcome["unknownHandlers"] == ["sell"]
        assert (await admin("GET", "/api/v1/jobs/sell")).status == 404
        async with working(admin, "sell", declare=DECLARED) as worker:
            assert (worker.welcome["declared"], worker.welcome.get("unknownHandlers", [])) == (True, [])
            found = (await admin("GET", "/api/v1/jobs/sell")).json
            await given.triggered(admin, found)
            assert [lease["payload"] for lease in await worker.leases()] == [{"n": 1}]


async def test_the_queues_of_the_code_are_declared_with_its_jobs(url: str):
    declare = {**DECLARED, "queues": [{"name": "mail", "maxConcurrency": 2, "rate": "10/s"}]}
    async with server(url) as api:
        async with working(api, "sell", declare=declare) as worker:
            assert worker.welcome["declared"] is True
        queue = (await api("GET", "/api/v1/queues/mail")).json
        assert (queue["declaredBy"], queue["maxConcurrency"], queue["rate"]) == ("shop", 2, "10/s")


@pytest.mark.parametrize(
    "queue",
    [[], {}, {"name": 5}, {"name": "a b"}, {"name": "mail", "rate": 7.5}, {"name": "mail", "maxConcurrency": [1]},
     {"name": "mail", "priority": {}}, {"name": "mail", "title": 5}],
)  # fmt: skip
async def test_a_queue_that_is_not_valid_is_refused_and_no_job_is_declared(url: str, queue: Any):
    async with server(url) as api:
        async with connected(api) as worker:
            declare = {**DECLARED, "queues": [queue]}
            await worker.send("hello", protocol=1, name="raw", handlers=[{"name": "sell"}], credits=1, declare=declare)
            assert (await worker.next("error"))["isFatal"] is True
            assert await worker.closed() == 4429
        assert (await api("GET", "/api/v1/jobs/sell")).status == 404


@pytest.mark.parametrize(
    "document", [[], {"name": "sell", "target": {"type": "worker"}, "cron": "x"}, {"name": "a", "startAt": "never"}]
)
async def test_a_declaration_that_is_not_valid_is_refused(url: str, document: Any):
    async with server(url) as api, connected(api) as worker:
        declare = {"name": "shop", "jobs": [{"document": document}]}
        await worker.send("hello", protocol=1, name="raw", handlers=[{"name": "sell"}], credits=1, declare=declare)
        assert (await worker.next("error"))["isFatal"] is True
        assert await worker.closed() == 4429
