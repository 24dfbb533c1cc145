"""`horai worker --server`: the same functions without a database, and refusals that say what to do."""

import asyncio
import json
import signal
from pathlib import Path

import harness
import pytest
from harness import FAST, Client
from keys import created, holder
from raw_workers import working
from terminal import Terminal
from workers import Shop

from api import given
from horai import Horai
from horai.core.errors import Invalid
from horai.sdk.remote_worker import RemoteSettings, run

SHOP = """
import os
from horai import Horai, Instance

app = Horai("shop")
mail = app.queue("mail", max_concurrency=3)


@app.job(queue=mail)
async def greet(name: str) -> str:
    return f"hello {name}"


@app.job
async def chain(instance: Instance[None]) -> str:
    try:
        await greet.enqueue("more")
    except Exception as error:
        return type(error).__name__
    return "enqueued"


@app.job
async def deadly(instance: Instance[None]) -> None:
    os._exit(7)


@app.job(isolation="process")
def apart(instance: Instance[int]) -> int:
    instance.log(f"in process {os.getpid()}")
    return instance.payload + 1
"""
READY = "Horai is ready: worker far (greet, chain, deadly, apart)"


@pytest.fixture
def shop(short_place: Path, request: pytest.FixtureRequest) -> Shop:
    return Shop(short_place / f"far-{abs(hash(request.node.nodeid))}", SHOP)


async def trigger(api: Client, job: str, payload: object) -> str:
    reply = await api("POST", f"/api/v1/jobs/{job}/trigger", {"payload": payload}, Idempotency_Key=given.name("key"))
    assert reply.status == 201, reply.json
    return reply.json["instance"]["id"]


async def test_a_worker_declares_and_runs_the_functions_of_its_code_without_a_database(url: str, shop: Shop):
    async with harness.node(url, FAST) as api:
        with shop.worker("", "--server", api.base, "--name", "far") as worker:
            assert await asyncio.to_thread(worker.ready) == READY, worker.log
            greeted = await trigger(api, "greet", "Eirene")
            assert (await api.until_state(greeted, "SUCCESS"))["result"] == "hello Eirene"
            queue = (await api("GET", "/api/v1/queues/mail")).json
            assert (queue["declaredBy"], queue["maxConcurrency"]) == ("shop", 3)
            chained = await trigger(api, "chain", None)
            assert (await api.until_state(chained, "SUCCESS"))["result"] == "NoDatabaseHere"
            apart = await trigger(api, "apart", 41)
            assert (await api.until_state(apart, "SUCCESS"))["result"] == 42
            worker.signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.ends) == 0
        nodes = (await api("GET", "/api/v1/health")).json
    assert "far" not in json.dumps(nodes.get("nodes", []))


async def test_an_instance_that_was_lost_twice_kills_only_its_own_process(url: str, shop: Shop):
    async with harness.node(url, FAST) as api:
        target, retry = {"type": "worker", "handler": "deadly"}, {"maxRetry": 0, "base": "1ms", "jitter": "none"}
        made = await api("POST", "/api/v1/jobs", {"name": "killer", "target": target, "retry": retry})
        assert made.status == 201, made.json
        deadly = await trigger(api, "killer", None)
        for _ in range(2):
            async with working(api, "deadly") as lost:
                await lost.leases()
                await lost.send("bye")
                await lost.closed()
        with shop.worker("", "--server", api.base, "--name", "far") as worker:
            assert await asyncio.to_thread(worker.ready) == READY, worker.log
            ended = await api.until_state(deadly, "DEAD")
            greeted = await trigger(api, "greet", "Dike")
            assert (await api.until_state(greeted, "SUCCESS"))["result"] == "hello Dike"
    assert (ended["errorCode"], ended["attempt"], ended["retryCount"]) == ("PROCESS_DIED", 3, 1)


async def test_a_remote_worker_refuses_a_function_that_runs_on_ray():
    app = Horai("shop")

    @app.job(executor="ray")
    def heavy() -> None: ...

    with pytest.raises(Invalid, match="'heavy' runs as a Ray task, which a remote worker does not submit"):
        await run(app, RemoteSettings(["http://127.0.0.1:9"]), asyncio.Event(), lambda _: None)


async def test_a_worker_without_a_valid_key_says_which_key_it_needs(url: str, shop: Shop):
    async with harness.node(url, FAST) as api:
        root = await holder(api, "platform-admin")
        viewer = (await created(root, "viewer", "default"))["key"]
        (shop.place / "key").write_text(f"{viewer}\n")
        with shop.worker("", "--server", api.base) as without:
            assert await asyncio.to_thread(without.ends) == 1
        assert "does not accept the key" in without.log
        with shop.worker("", "--server", api.base, "--api-key-file", "key") as wrong:
            assert await asyncio.to_thread(wrong.ends) == 1
        assert "role worker" in wrong.log
        good = (await created(root, "worker", "default"))["key"]
        with shop.worker("", "--server", api.base, "--name", "far", HORAI_API_KEY=good) as right:
            assert await asyncio.to_thread(right.ready) == READY, right.log
            assert "no job for these functions" in right.log


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--database-url", "postgresql://x"], "uses no database"),
        (["--data-dir", "data"], "uses no database"),
        (["--reload"], "--reload does not go with --server"),
        (["--processes", "2"], "--processes does not go with --server"),
        (["--api-key", "a", "--api-key-file", "b"], "name two keys"),
        (["--api-key-file", "nowhere"], "cannot be read"),
    ],
)
def test_flags_that_do_not_go_with_a_server_are_refused(shop: Shop, flags: list[str], says: str):
    ended = Terminal().at(shop.place)("worker", "shop", "--server", "http://127.0.0.1:9", *flags)
    assert (ended.code, says in ended.err) == (2, True), ended.err


def test_an_address_that_is_none_is_refused(shop: Shop):
    ended = Terminal().at(shop.place)("worker", "shop", "--server", "nowhere")
    assert (ended.code, "not the address of a server" in ended.err) == (2, True), ended.err
