"""`/audit`: listed by filter and page, verified, exported; rows of other tenants are not shown."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import audits
import pytest
from harness import Client

from api import expect, given
from horai.db.pool import Platform

AUDIT = "/api/v1/audit"
SOON = timedelta(minutes=1)


async def paused(api: Client) -> Any:
    """A job that was paused and resumed."""
    job = await given.job(api)
    for verb, note in (("pause", "stock-taking"), ("resume", None)):
        reply = await api("POST", f"/api/v1/jobs/{job['name']}/{verb}", {"note": note})
        assert reply.status == 200, reply.json
    return job


async def until_sealed(api: Client) -> Any:
    """Wait until the sealer has sealed all rows; the report."""

    async def sealed() -> Any:
        told = (await api("GET", f"{AUDIT}/verify")).json
        return told if told["seals"] and not told["unsealed"] else None

    return await given.until(sealed)


async def test_C9_a_write_is_listed_with_its_actor_object_and_change(api: Client) -> None:
    job = await paused(api)
    await until_sealed(api)

    reply = await api("GET", f"{AUDIT}?object={job['name']}&verb=job.pause")

    [row] = reply.json["items"]
    assert set(row) == {
        "id", "at", "actor", "address", "requestId", "verb", "object", "before", "after", "counts", "seal",
    }  # fmt: skip
    assert row["actor"] == {"kind": "keyless", "id": "", "name": "", "role": "admin"}
    assert row["object"] == {"kind": "job", "id": job["id"], "name": job["name"]}
    assert row["before"] == {"status": "ACTIVE", "note": None}
    assert row["after"] == {"status": "PAUSED", "note": "stock-taking"}
    assert row["counts"] is None
    assert row["seal"] >= 1


async def test_a_list_is_filtered_and_read_page_by_page(api: Client) -> None:
    job = await paused(api)
    for _ in range(6):
        await api("POST", f"/api/v1/jobs/{job['name']}/pause")
        await api("POST", f"/api/v1/jobs/{job['name']}/resume")

    async def verbs(query: str) -> list[str]:
        return [row["verb"] for row in await given.listed(api, f"{AUDIT}?{query}")]

    mine = f"object={job['id']}&objectKind=job"
    assert await verbs(mine) == ["job.resume", "job.pause"] * 7 + ["job.create"]
    assert await verbs(f"{mine}&verb=job.pause") == ["job.pause"] * 7
    assert await verbs(f"{mine}&actor=") == ["job.resume", "job.pause"] * 7 + ["job.create"]
    assert await verbs(f"{mine}&actor=alice") == []
    assert await verbs(f"object={job['id']}&objectKind=queue") == []
    now = datetime.now(UTC)
    before, after = ((now + by).strftime("%Y-%m-%dT%H:%M:%SZ") for by in (-SOON, SOON))
    assert len(await verbs(f"{mine}&from={before}&to={after}")) == 15
    assert await verbs(f"{mine}&from={after}") == []
    assert await verbs(f"{mine}&to={before}") == []


@pytest.mark.parametrize(
    ("query", "words"),
    [("?verb=job.destroy", "job.destroy"), ("?cursor=x", "cursor"), ("?from=today", "from"), ("/verify?head=1:zz", "head"),
     ("/export?verb=nothing", "verb"), ("/verify?from=0", "from"), ("?actor=a%00b", "actor")],
)  # fmt: skip
async def test_a_filter_that_cannot_be_read_is_refused(api: Client, query: str, words: str) -> None:
    expect.invalid(await api("GET", AUDIT + query), words)


async def test_C9_rows_of_other_tenants_are_neither_listed_nor_exported(
    runner: asyncio.Runner, api: Client, db: Platform
) -> None:
    other = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", given.name("tenant"))
    await audits.write(db, "foreign-job", other)

    listed = await given.listed(api, AUDIT)
    exported = await lines(api)

    assert "foreign" not in json.dumps([listed, exported])


async def lines(api: Client, query: str = "") -> list[Any]:
    async with api.session.get(f"{api.base}{AUDIT}/export{query}") as response:
        assert response.status == 200
        assert response.headers["content-type"] == "application/x-ndjson"
        assert response.headers["cache-control"] == "no-store"
        return [json.loads(line) for line in (await response.text()).splitlines()]


async def test_C9_an_export_has_all_rows_oldest_first_in_pages_of_bounded_size(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horai.features.audit.service.PAGE", 3)
    job = await paused(api)
    for _ in range(4):
        await api("POST", f"/api/v1/jobs/{job['name']}/pause")

    await until_sealed(api)
    exported = await lines(api, f"?object={job['name']}")

    assert exported == (await given.listed(api, f"{AUDIT}?object={job['name']}"))[::-1]
    assert len(exported) == 7
    assert await lines(api, "?actor=alice") == []


async def test_C9_the_chain_is_verified_against_a_published_head(api: Client) -> None:
    await paused(api)
    told = await until_sealed(api)

    assert told["intact"] is True
    assert told["faults"] == []
    assert told["nextSeal"] is None
    head = told["head"]
    assert (await api("GET", f"{AUDIT}/verify?head={head}")).json["intact"] is True
    later = f"{int(head.partition(':')[0]) + 5}:{'0' * 64}"
    assert (await api("GET", f"{AUDIT}/verify?head={later}")).json["faults"] == [
        {"kind": "cut", "seal": int(later.partition(":")[0]), "row": None}
    ]


async def test_C9_an_edited_row_is_named_by_the_verification(api: Client, db: Platform) -> None:
    job = await paused(api)
    await until_sealed(api)
    [row, *_] = await given.listed(api, f"{AUDIT}?object={job['name']}")
    change = "update horai.audit set actor_name = $1 where id = $2"
    async with audits.as_intruder(db):
        await db.execute(change, "alice", int(row["id"]))
    try:
        told = (await api("GET", f"{AUDIT}/verify")).json
        assert told["intact"] is False
        assert told["faults"] == [{"kind": "edited", "seal": row["seal"], "row": row["id"]}]
    finally:
        async with audits.as_intruder(db):
            await db.execute(change, "", int(row["id"]))
    assert (await until_sealed(api))["intact"] is True


async def test_a_repeated_request_with_a_key_is_recorded_once(api: Client) -> None:
    job = await given.job(api)
    for _ in range(3):
        await api("POST", f"/api/v1/jobs/{job['name']}/pause", {}, Idempotency_Key=f"once-{job['name']}")

    assert len(await given.listed(api, f"{AUDIT}?object={job['name']}&verb=job.pause")) == 1
