"""Bad paths, methods, headers and patches get their documented problem and change nothing."""

import asyncio
from typing import Any

import pytest
from harness import Client
from receiver import Answer, Receiver
from yarl import URL

from api import expect, given
from horai.db.pool import Platform

JOBS = "/api/v1/jobs"

MISSING = [
    ("GET", "/api/v1/jobs/nobody"),
    ("PATCH", "/api/v1/jobs/nobody"),
    ("DELETE", "/api/v1/jobs/nobody"),
    ("GET", "/api/v1/jobs/99999999999999999999"),
    ("GET", "/api/v1/jobs/9999999"),
    ("GET", "/api/v1/jobs/%E0%A5%A7"),
    ("GET", "/api/v1/jobs/a%00b"),
    ("GET", "/api/v1/jobs/%FF"),
    ("POST", "/api/v1/jobs/nobody/pause"),
    ("POST", "/api/v1/jobs/nobody/resume"),
    ("POST", "/api/v1/jobs/nobody/trigger"),
    ("GET", "/api/v1/jobs/nobody/instances"),
    ("PUT", "/api/v1/jobs/nobody/instances/a"),
    ("DELETE", "/api/v1/jobs/nobody/instances/a"),
    ("GET", "/api/v1/instances?job=nobody"),
    ("GET", "/api/v1/instances/777777777"),
    ("GET", "/api/v1/instances/99999999999999999999"),
    ("GET", "/api/v1/instances/nobody"),
    ("GET", "/api/v1/instances/-1"),
    ("GET", "/api/v1/instances/%C2%B2"),
    ("POST", "/api/v1/instances/777777777/cancel"),
    ("GET", "/api/v1/nothing"),
    ("GET", "/api/v2/jobs"),
    ("GET", "/api/v1/jobs/"),
    ("GET", "/nothing"),
]


@pytest.mark.parametrize(("method", "path"), MISSING)
async def test_an_unknown_resource_or_path_gets_404_and_changes_nothing(
    api: Client, db: Platform, method: str, path: str
) -> None:
    before = await expect.contents(db)

    reply = await given.sent(api, method, path, b"{}", Idempotency_Key="missing")

    expect.problem(reply, 404, "SCH_404_NOT_FOUND")
    assert await expect.contents(db) == before


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/v1/jobs", {"GET", "POST"}),
        ("POST", "/api/v1/jobs/some", {"GET", "PATCH", "DELETE"}),
        ("GET", "/api/v1/jobs/some/trigger", {"POST"}),
        ("DELETE", "/api/v1/instances", {"GET"}),
        ("PATCH", "/api/v1/scheduler/health", {"GET"}),
        ("POST", "/healthz", {"GET"}),
    ],
)
async def test_a_method_that_is_not_allowed_is_told_which_are(
    api: Client, method: str, path: str, allowed: set[str]
) -> None:
    reply = await given.sent(api, method, path, b"")

    expect.problem(reply, 405, "SCH_405")
    assert {word.strip() for word in reply.headers["Allow"].split(",")} == allowed


@pytest.mark.parametrize("key", ["k" * 256, "ключ", ""], ids=["long", "not ASCII", "empty"])
async def test_a_bad_idempotency_key_is_refused_and_leaves_nothing(api: Client, db: Platform, key: str) -> None:
    job = await given.job(api)
    before = await expect.contents(db)

    for path, body in ((f"{JOBS}/{job['id']}/trigger", b"{}"), (JOBS, b'{"name":"keyed"}')):
        reply = await given.sent(api, "POST", path, body, Idempotency_Key=key)
        expect.invalid(reply, "Idempotency-Key")

    assert await expect.contents(db) == before


@pytest.mark.parametrize("tag", ["x", '"x"', '""', "", '"1", "2"', '"99999999999999999999"', '"-1"'])
async def test_an_if_match_that_is_no_etag_of_ours_is_refused(api: Client, db: Platform, tag: str) -> None:
    job = await given.job(api)
    before = await expect.contents(db)

    expect.invalid(await given.sent(api, "PATCH", f"{JOBS}/{job['id']}", b"{}", If_Match=tag), "If-Match")

    assert await expect.contents(db) == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Host: localhost\r\nIf-Match: \xb2\r\n", b"422"),
        (b"Host: localhost\r\nIf-Match: \xff\r\n", b"422"),
        (b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: \xb2\r\n", b"400"),
        (b"Host: \xff\r\n", b"403"),
        (b"", b"403"),
    ],
)
async def test_header_bytes_that_are_no_text_are_refused(api: Client, headers: bytes, status: bytes) -> None:
    job = await given.job(api)
    url = URL(api.base)
    reader, writer = await asyncio.open_connection(url.host, url.port)

    writer.write(b"DELETE /api/v1/jobs/%s HTTP/1.1\r\n%sConnection: close\r\n\r\n" % (job["id"].encode(), headers))
    answer = await asyncio.wait_for(reader.read(), 10)

    writer.close()
    await writer.wait_closed()
    assert answer.split()[1] == status
    assert (await api("GET", f"{JOBS}/{job['id']}")).status == 200


BAD_PATCHES: list[Any] = [
    {"cron": "nonsense"},
    {"every": "1s", "cron": "0 9 * * *"},
    {"target": {"type": "http", "url": "ftp://example.com"}},
    {"retry": {"maxRetry": 5000}},
    {"timezone": "Mars/Olympus"},
    {"priority": "top"},
    {"id": "5"},
    {"version": 9},
    {"payload": 1, "misfire": "sometimes"},
    {"overlap": "sometimes"},
    {"endAt": "2020-01-01T00:00:00Z"},
    {"calendar": ["01-01/12-31"]},
]


async def test_a_bad_patch_changes_nothing(api: Client, db: Platform) -> None:
    job = await given.job(api, cron="0 9 * * *")
    before = await expect.contents(db)

    for patch in BAD_PATCHES:
        expect.invalid(await api("PATCH", f"{JOBS}/{job['id']}", patch))

    assert await expect.contents(db) == before


async def test_a_note_is_text_of_bounded_length(api: Client, db: Platform) -> None:
    job = await given.job(api)
    before = await expect.contents(db)

    for body in ({"note": "x" * 2_001}, {"note": 7}, {"notes": "x"}, ["x"]):
        expect.invalid(await api("POST", f"{JOBS}/{job['id']}/pause", body))

    assert await expect.contents(db) == before


async def test_texts_that_look_like_code_are_only_texts(api: Client, receiver: Receiver, db: Platform) -> None:
    evil = "'; drop table horai.job; --"
    job = await given.scripted(api, receiver, Answer(200), tags=["<script>alert(1)</script>"], payload=evil)

    made = (await given.put(api, job, "k'%3Bdrop%20table%20horai.job--", None, payload=evil)).json["instance"]

    done = await api.until_state(made["id"], "SUCCESS")
    assert done["payload"] == evil
    assert await db.fetchval("select count(*) from horai.job where id = $1", int(job["id"])) == 1
    rows = await given.listed(api, f"/api/v1/instances?tag=%3Cscript%3Ealert(1)%3C/script%3E&job={job['id']}")
    assert [row["id"] for row in rows] == [made["id"]]
