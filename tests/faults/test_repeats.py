"""kill -9 of the server after the COMMIT of a keyed write and before its answer: a repeat gets that answer, and does nothing."""

import asyncio
import os
from pathlib import Path
from typing import Any

import aiohttp
import harness
import pytest
from harness import Client, HoraiProcess

from faults.outside import job_document
from faults.proxy import Proxy
from horai.db.pool import Platform

FAR = "2999-01-01T00:00:00Z"
PUT = ("PUT", "/api/v1/jobs/publish/instances/a", {"executeTime": FAR})
BATCH = ("POST", "/api/v1/jobs/publish/instances/batch", {"items": [{"executeTime": FAR}] * 5})


@pytest.mark.parametrize(("request_", "made"), [(PUT, 1), (BATCH, 5)], ids=["put", "batch"])
async def test_a_repeat_after_a_kill_between_commit_and_answer_does_nothing_again(
    url: str, connection: Platform, short_place: Path, request_: tuple[str, str, Any], made: int
) -> None:
    method, path, body = request_
    async with Proxy(url).listening() as proxy, aiohttp.ClientSession() as session:
        killed = HoraiProcess(short_place / os.urandom(4).hex(), "--database-url", proxy.url)
        await asyncio.to_thread(killed.start)
        api = Client(killed.base, session)
        created = await api("POST", "/api/v1/jobs", job_document("publish", "http://127.0.0.1:9/hook"))
        assert created.status == 201, created.json
        trap = proxy.cut_after("keep_answer", at_commit=True)
        lost = asyncio.create_task(api(method, path, body, Idempotency_Key="once"))
        await asyncio.wait_for(trap.sprung.wait(), 20)
        await asyncio.to_thread(killed.kill)
        await asyncio.gather(lost, return_exceptions=True)
        rows = "select count(*) from horai.instance_live"
        assert await connection.fetchval(rows) == made

        async with harness.node(url) as restarted:
            repeats = [await restarted(method, path, body, Idempotency_Key="once") for _ in range(2)]

        assert {each.status for each in repeats} == {201 if method == "PUT" else 200}
        assert [each.headers["Idempotency-Replayed"] for each in repeats] == ["true", "true"]
        assert repeats[0].json == repeats[1].json
        assert await connection.fetchval(rows) == made
