"""`POST /api/v1/instances/cancel`: many at once, by what they have in common."""

from typing import Any

import pytest
from harness import Client
from receiver import HANG, Receiver

from api import expect, given
from horai.db.pool import Platform

PATH = "/api/v1/instances/cancel"


async def planned(api: Client, count: int, **fields: Any) -> Any:
    job = await given.job(api, **fields)
    items = [{"key": f"k{n % 3}-{n}", "executeTime": given.FAR} for n in range(count)]
    assert (await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": items})).status == 200
    return job


async def states(api: Client, job: Any) -> list[str]:
    return sorted(row["state"] for row in await given.listed(api, f"/api/v1/jobs/{job['id']}/instances"))


async def test_all_that_match_are_cancelled_and_nothing_else(api: Client) -> None:
    mine, other = await planned(api, 30), await planned(api, 3)

    dry = (await api("POST", PATH, {"job": mine["name"], "keyPrefix": "k1-", "dryRun": True})).json
    assert dry == {"matched": 10, "cancelled": 0, "held": 0, "more": False, "dryRun": True}
    done = (await api("POST", PATH, {"job": mine["name"], "keyPrefix": "k1-"})).json

    assert done == {"matched": 10, "cancelled": 10, "held": 0, "more": False, "dryRun": False}
    assert await states(api, mine) == ["CANCELLED"] * 10 + ["INIT"] * 20
    assert await states(api, other) == ["INIT"] * 3
    assert (await api("POST", PATH, {"job": mine["name"], "keyPrefix": "k1-"})).json["matched"] == 0


async def test_a_limit_leaves_the_rest_for_the_same_request_again(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horai.operations.cancel_matching.PORTION", 4)
    job = await planned(api, 25, queue=(queue := given.name("queue")))

    first = (await api("POST", PATH, {"queue": queue, "limit": 10})).json
    second = (await api("POST", PATH, {"queue": queue, "limit": 15})).json

    assert (first["cancelled"], first["more"]) == (10, True)
    assert (second["cancelled"], second["more"]) == (15, False)
    assert await states(api, job) == ["CANCELLED"] * 25


async def test_a_bulk_cancel_includes_running_instances_only_on_request(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, HANG, timeout="60s")
    await given.running(api, receiver, job, "a")
    await given.put(api, job, "b")

    assert (await api("POST", PATH, {"job": job["name"]})).json["cancelled"] == 1
    assert await states(api, job) == ["CANCELLED", "RUNNING"]
    assert (await api("POST", PATH, {"job": job["name"], "state": "RUNNING"})).json["cancelled"] == 1
    assert await states(api, job) == ["CANCELLED", "CANCELLED"]


async def test_chosen_ones_are_cancelled_and_what_runs_only_where_it_is_named(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, HANG, timeout="60s")
    running = await given.running(api, receiver, job, "a")
    waiting = (await given.put(api, job, "b")).json["instance"]
    await given.put(api, job, "c")
    chosen = {"ids": [running["id"], waiting["id"]]}

    assert (await api("POST", PATH, {**chosen, "dryRun": True})).json["matched"] == 1
    assert (await api("POST", PATH, {**chosen, "state": "INIT,RUNNING"})).json["cancelled"] == 2
    assert await states(api, job) == ["CANCELLED", "CANCELLED", "INIT"]


async def test_a_member_of_the_payload_narrows_a_sweep(api: Client) -> None:
    job = await given.job(api)
    for number in range(4):
        await given.put(api, job, f"k{number}", payload={"order": {"shop": number % 2, "paid": True}})

    assert (await api("POST", PATH, {"job": job["name"], "payload": "order.shop=1"})).json["cancelled"] == 2
    assert (await api("POST", PATH, {"job": job["name"], "payload": "order.paid=false"})).json["matched"] == 0


async def test_a_bulk_cancel_skips_locked_rows_and_counts_them_as_held(api: Client, db: Platform) -> None:
    job = await planned(api, 3)
    held = db.transaction()
    await held.start()
    await db.execute("select from horai.instance_live where job_id = $1 and key = 'k1-1' for update", int(job["id"]))

    done = (await api("POST", PATH, {"job": job["name"]})).json
    await held.rollback()

    assert (done["matched"], done["cancelled"], done["held"]) == (3, 2, 1)
    assert (await api("POST", PATH, {"job": job["name"]})).json["cancelled"] == 1


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "everything"),
        ({"dryRun": True, "limit": 5}, "everything"),
        ({"job": None}, "everything"),
        ({"state": "SUCCESS"}, "final"),
        ({"state": "NOPE"}, "not a state"),
        ({"queue": "q", "limit": 10_001}, "limit"),
        ({"queue": "q", "what": 1}, "unknown field"),
        ({"ids": []}, "ids"),
        ({"ids": [str(n) for n in range(501)]}, "ids"),
        ({"payload": "=1"}, "payload"),
    ],
)
async def test_a_sweep_that_makes_no_sense_is_refused(api: Client, body: Any, word: str) -> None:
    expect.invalid(await api("POST", PATH, body), word)


async def test_a_job_that_is_not_there_is_not_found(api: Client) -> None:
    expect.problem(await api("POST", PATH, {"job": "nobody"}), 404, "SCH_404_NOT_FOUND")
