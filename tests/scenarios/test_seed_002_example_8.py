"""Seed 002 §18, example 8: before a large backfill its rate is limited, so that it does not crowd out the work of now."""

import asyncio
import math

import harness
from receiver import Answer, Receiver

from api import given
from horai.db.pool import Platform

CAP = 4
ONLINE = 60
MONTH = {"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}


async def test_C59h_C62_online_work_never_waits_behind_more_of_a_backfill_than_its_cap(
    url: str, connection: Platform
) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        receiver.on("/report", Answer(200, delay=0.03))
        receiver.on("/order", Answer(200))
        report = await given.job(api, receiver.url("/report"), name="report", every="1m", queue="reports")
        await given.job(api, receiver.url("/order"), name="order")

        plan = await api("POST", "/api/v1/jobs/report/backfill", {**MONTH, "dryRun": True})
        assert plan.json["total"] == 31 * 1440, "first it is counted, then it is limited"
        limited = {**MONTH, "rate": "100/s", "maxConcurrency": CAP}
        backfill = (await api("POST", "/api/v1/jobs/report/backfill", limited)).json
        await given.until(lambda: _has(receiver, "/report", 20))
        for number in range(ONLINE):
            reply = await api("PUT", f"/api/v1/jobs/order/instances/order-{number}", {})
            assert reply.status == 201
            await api.until_state(reply.json["instance"]["id"], "SUCCESS")
        await api("POST", f"/api/v1/backfills/{backfill['id']}/pause", {"note": "the sale begins"})
        under_way = await api("GET", f"/api/v1/jobs/{report['id']}/instances?state=INIT,RUNNING")
        assert len(under_way.json["items"]) <= CAP
        await asyncio.gather(*(api.until_state(row["id"], "SUCCESS") for row in under_way.json["items"]))

        # How many of the backfill started between the coming of an order and its own start.
        ahead = await connection.fetch(
            """select (select count(*) from horai.instance_history other
                where other.job_id <> past.job_id and other.claimed_at > past.created_at and other.claimed_at < past.claimed_at) as n
               from horai.instance_history past where past.key is not null order by 1"""
        )
        waited_for = [row["n"] for row in ahead]
        assert len(waited_for) == ONLINE
        assert waited_for[math.ceil(0.95 * ONLINE) - 1] <= CAP
        told = (await api("GET", f"/api/v1/backfills/{backfill['id']}")).json
        assert told["progress"]["made"] < told["progress"]["total"]
        assert 0 < told["progress"]["ratePerSecond"] <= 110


async def _has(receiver: Receiver, path: str, count: int) -> bool:
    return sum(hit.path == path for hit in receiver.hits) >= count
