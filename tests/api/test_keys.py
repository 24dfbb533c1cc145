"""Keys: the first one closes the server, each serves its tenant and its role, and a revoked one ends at once."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from harness import Client, node
from keys import KeyHolder, created, holder, holding

from api import expect, given
from horai.api.failed_attempts import MOST
from horai.core.access_keys import checksum_of, new_key

JOBS = "/api/v1/jobs"
KEYS = "/api/v1/keys"


@pytest.fixture
def api(runner: asyncio.Runner, url: str) -> Iterator[Client]:
    """A node of its own: the first key of a server cannot be taken back."""
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(node(url)))
    runner.run(stack.aclose())


async def platform(api: Client) -> KeyHolder:
    """The first key of a server: one of the platform."""
    return await holder(api, "platform-admin")


async def test_the_first_key_closes_the_server_to_requests_without_one(api: Client) -> None:
    assert (await api("GET", JOBS)).status == 200

    admin = await holder(api, "admin")

    refused = await api("GET", JOBS)
    expect.problem(refused, 401, "SCH_401_UNAUTHENTICATED", "no key")
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert (await admin("GET", JOBS)).status == 200
    assert (await api("GET", "/healthz")).status == 200


async def test_revoking_the_last_key_does_not_open_the_server_again(url: str) -> None:
    async with node(url) as api:
        key = await created(api, "admin")
        admin = holding(api, key["key"])
        assert (await admin("DELETE", f"{KEYS}/{key['id']}")).json["revokedAt"] is not None
        assert (await admin("GET", JOBS)).status == 401
        assert (await api("GET", JOBS)).status == 401
    async with node(url) as api:
        assert (await api("GET", JOBS)).status == 401


async def test_of_two_first_keys_at_the_same_time_only_one_is_created(url: str) -> None:
    async with node(url) as one, node(url, name="second") as two:
        wishes = [ask("POST", KEYS, {"role": "admin", "name": f"{n}"}) for n in range(10) for ask in (one, two)]
        replies = await asyncio.gather(*wishes)
    assert sorted(reply.status for reply in replies) == [201] + [401] * 19


async def test_the_database_refuses_to_forget_that_keys_are_asked_for(api: Client, url: str) -> None:
    await created(api, "admin")
    connection = await asyncpg.connect(url)
    try:
        for statement in ("delete from", "truncate", "update"):
            change = " set keyed_at = now()" if statement == "update" else ""
            with pytest.raises(asyncpg.PostgresError, match="never goes back"):
                await connection.execute(f"{statement} horai.access_state{change}")
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "key",
    [
        new_key().text,
        new_key().text[:-1] + "?",
        "hk_short",
        "",
        "é" * 20,
    ],
    ids=["unknown", "wrong checksum", "cut", "empty", "not ASCII"],
)
async def test_a_wrong_key_is_refused_also_before_the_first_key(api: Client, key: str) -> None:
    header = f"Bearer {key}".encode().decode("latin-1")
    expect.problem(await api("GET", JOBS, Authorization=header), 401, "SCH_401_UNAUTHENTICATED", "key")


async def test_a_key_whose_secret_differs_is_refused(api: Client) -> None:
    key = (await created(api, "admin"))["key"]
    other = new_key().text.split("_")
    forged = "_".join(["hk", key.split("_")[1], other[2]])
    assert (await holding(api, f"{forged}_{checksum_of(forged)}")("GET", JOBS)).status == 401


async def test_other_schemes_than_bearer_are_refused(api: Client) -> None:
    assert (await api("GET", JOBS, Authorization="Basic YTpi")).status == 401


async def test_an_expired_key_is_refused(api: Client, url: str) -> None:
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    key = await created(api, "admin", expiresAt=soon)
    admin = holding(api, key["key"])
    assert (await admin("GET", JOBS)).status == 200

    connection = await asyncpg.connect(url)
    try:
        await connection.execute("update horai.access_key set expires_at = now() - interval '1 s'")
        await connection.execute("select pg_notify('horai_wake', 'k')")
    finally:
        await connection.close()
    await _until_refused(admin)

    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    reply = await api("POST", KEYS, {"role": "admin", "expiresAt": past})
    assert reply.status == 401


async def _until_refused(ask: KeyHolder) -> None:
    async with asyncio.timeout(30):
        while (await ask("GET", JOBS)).status != 401:
            await asyncio.sleep(0.01)


async def test_a_revoked_key_is_refused_by_both_nodes_within_a_second(url: str) -> None:
    async with node(url) as one, node(url, name="second") as two:
        admin = await holder(one, "admin")
        key = await created(admin, "viewer")
        viewers = [holding(api, key["key"]) for api in (one, two)]
        for viewer in viewers:
            assert (await viewer("GET", JOBS)).status == 200

        await admin("DELETE", f"{KEYS}/{key['id']}")
        assert (await viewers[0]("GET", JOBS)).status == 401
        async with asyncio.timeout(1):
            while (await viewers[1]("GET", JOBS)).status != 401:
                await asyncio.sleep(0.01)


async def test_a_key_is_allowed_only_from_its_networks(api: Client) -> None:
    admin = await holder(api, "admin")
    near = await created(admin, "viewer", networks=["127.0.0.0/8"])
    far = await created(admin, "viewer", networks=["10.0.0.0/8", "2001:db8::/32"])

    assert (await holding(api, near["key"])("GET", JOBS)).status == 200
    assert (await holding(api, far["key"])("GET", JOBS)).status == 401
    assert far["networks"] == ["10.0.0.0/8", "2001:db8::/32"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "role"),
        ({"role": "owner"}, "role"),
        ({"role": "admin", "networks": ["10.0.0.1/8"]}, "networks.0"),
        ({"role": "admin", "networks": ["everywhere"]}, "networks.0"),
        ({"role": "admin", "expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
        ({"role": "platform-admin", "tenant": "default"}, "tenant"),
        ({"role": "admin", "name": ""}, "name"),
        ({"role": "admin", "quota": 3}, "quota"),
    ],
)
async def test_a_key_that_cannot_be_made_is_refused_and_the_server_stays_open(
    api: Client, body: dict[str, Any], field: str
) -> None:
    expect.problem(await api("POST", KEYS, body), 422, "SCH_422_INVALID", field)
    assert (await api("GET", JOBS)).status == 200


async def test_after_ten_wrong_keys_an_address_has_to_wait_but_good_keys_still_work(api: Client) -> None:
    admin = await holder(api, "admin")
    assert (await admin("GET", JOBS)).status == 200
    for _ in range(MOST):
        assert (await holding(api, new_key().text)("GET", JOBS)).status == 401

    limited = await holding(api, new_key().text)("GET", JOBS)
    expect.problem(limited, 429, "SCH_429_RETRY_LIMITED", "wrong keys")
    assert 0 < int(limited.headers["Retry-After"]) <= 60
    assert (await admin("GET", JOBS)).status == 200


async def test_the_text_of_a_key_is_stored_nowhere_and_shown_once(api: Client, url: str) -> None:
    key = await created(api, "admin", name="deploy")
    admin = holding(api, key["key"])
    listed = (await admin("GET", KEYS)).json["items"]
    assert [(item["id"], item["name"], item["role"], item["tenant"]) for item in listed] == [
        (key["id"], "deploy", "admin", "default")
    ]
    secret = key["key"].split("_")[2]
    assert secret not in str(listed)
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch("select tablename from pg_tables where schemaname = 'horai'")
        for (table,) in tables:
            rows = await connection.fetch(f'select t::text from horai."{table}" t')
            assert not [row for row in rows if secret in row[0]], table
    finally:
        await connection.close()


async def test_a_repeated_creation_gets_the_id_of_the_first_key_and_no_text(api: Client, url: str) -> None:
    admin = await holder(api, "admin")
    first = await admin("POST", KEYS, {"role": "viewer"}, Idempotency_Key="once")
    again = await admin("POST", KEYS, {"role": "viewer"}, Idempotency_Key="once")

    expect.problem(again, 409, "SCH_409_DUPLICATE", "only once")
    assert again.json["keyId"] == first.json["id"]
    assert len((await admin("GET", KEYS)).json["items"]) == 2
    connection = await asyncpg.connect(url)
    try:
        kept = await connection.fetch("select t::text from horai.idempotency_key t")
    finally:
        await connection.close()
    assert kept
    assert first.json["key"].split("_")[2] not in str(kept)


async def test_keys_are_listed_in_pages_newest_first(api: Client) -> None:
    admin = await holder(api, "admin")
    for number in range(4):
        await created(admin, "viewer", name=f"v{number}")
    first = (await admin("GET", f"{KEYS}?limit=3")).json
    second = (await admin("GET", f"{KEYS}?limit=3&cursor={first['nextCursor']}")).json
    assert [item["name"] for item in first["items"] + second["items"]] == ["v3", "v2", "v1", "v0", "admin"]
    assert second["nextCursor"] is None


async def test_C2a_a_key_of_one_tenant_sees_neither_jobs_nor_keys_of_another(api: Client) -> None:
    root = await platform(api)
    for name in ("north", "south"):
        assert (await root("POST", "/api/v1/tenants", {"name": name})).status == 201
    north, south = await holder(root, "admin", "north"), await holder(root, "admin", "south")
    job = await given.job(north, name="secret")

    absent = await south("GET", f"{JOBS}/absent")
    for reference in ("secret", job["id"]):
        foreign = await south("GET", f"{JOBS}/{reference}")
        assert (
            (foreign.status, foreign.json["code"]) == (absent.status, absent.json["code"]) == (404, "SCH_404_NOT_FOUND")
        )
    assert (await south("GET", JOBS)).json["items"] == []
    assert (await north("GET", JOBS)).json["items"][0]["name"] == "secret"

    theirs = (await north("GET", KEYS)).json["items"]
    assert [item["tenant"] for item in theirs] == ["north"]
    expect.problem(await south("DELETE", f"{KEYS}/{theirs[0]['id']}"), 404, "SCH_404_NOT_FOUND", theirs[0]["id"])
    assert (await north("GET", JOBS)).status == 200
    assert {item["tenant"] for item in (await root("GET", KEYS)).json["items"]} == {None, "north", "south"}


async def test_a_key_of_the_platform_reads_no_tenants_data(api: Client) -> None:
    root = await platform(api)
    for path in (
        JOBS,
        "/api/v1/instances",
        "/api/v1/queues",
        "/api/v1/dlq",
        "/api/v1/scheduler/stats",
        "/api/v1/events",
    ):
        expect.problem(await root("GET", path), 403, "SCH_403_FORBIDDEN", "platform-admin")
    assert (await root("GET", "/api/v1/scheduler/nodes")).json["items"]
    assert (await root("GET", "/api/v1/scheduler/health")).json["nodes"]
    assert (await (await holder(root, "viewer", "default"))("GET", "/api/v1/scheduler/health")).json["nodes"] == []


async def test_an_admin_creates_keys_of_its_own_tenant_only(api: Client) -> None:
    root = await platform(api)
    await root("POST", "/api/v1/tenants", {"name": "north"})
    admin = await holder(root, "admin", "default")
    assert (await created(admin, "viewer"))["tenant"] == "default"
    assert (await created(admin, "viewer", "default"))["tenant"] == "default"
    for body in ({"role": "viewer", "tenant": "north"}, {"role": "platform-admin"}):
        expect.problem(await admin("POST", KEYS, body), 403, "SCH_403_FORBIDDEN", "another tenant")
    expect.problem(await root("POST", KEYS, {"role": "admin"}), 422, "SCH_422_INVALID", "tenant")
    expect.problem(await root("POST", KEYS, {"role": "admin", "tenant": "east"}), 404, "SCH_404_NOT_FOUND", "east")


async def test_tenants_are_created_once_and_listed_by_name(api: Client) -> None:
    root = await platform(api)
    for name in ("b-team", "a_team"):
        assert (await root("POST", "/api/v1/tenants", {"name": name})).json["name"] == name
    expect.problem(await root("POST", "/api/v1/tenants", {"name": "b-team"}), 409, "SCH_409_DUPLICATE", "b-team")
    for name in ("", "B", "a b", "-a", "a" * 64, "ü"):
        expect.problem(await root("POST", "/api/v1/tenants", {"name": name}), 422, "SCH_422_INVALID", "name")
    first = (await root("GET", "/api/v1/tenants?limit=2")).json
    second = (await root("GET", f"/api/v1/tenants?limit=2&cursor={first['nextCursor']}")).json
    assert [item["name"] for item in first["items"] + second["items"]] == ["a_team", "b-team", "default"]
    assert (await root("GET", "/api/v1/tenants/a_team")).json["name"] == "a_team"
    expect.problem(await root("GET", "/api/v1/tenants/none"), 404, "SCH_404_NOT_FOUND", "none")


async def test_a_repeated_creation_of_a_tenant_gets_the_first_answer(api: Client) -> None:
    root = await platform(api)
    first = await root("POST", "/api/v1/tenants", {"name": "north"}, Idempotency_Key="once")
    again = await root("POST", "/api/v1/tenants", {"name": "north"}, Idempotency_Key="once")
    assert (again.status, again.json, again.headers["Idempotency-Replayed"]) == (201, first.json, "true")


async def test_C43_denied_writes_are_recorded_and_beyond_ten_a_minute_only_counted(api: Client) -> None:
    root = await platform(api)
    admin, viewer = await holder(root, "admin", "default"), await holder(root, "viewer", "default")
    for _ in range(13):
        assert (await viewer("POST", JOBS, {"name": "j"})).status == 403
    assert (await viewer("GET", "/api/v1/signing-secrets")).status == 403
    assert (await api("POST", JOBS, {"name": "j"})).status == 401

    denied = (await admin("GET", "/api/v1/audit?verb=access.denied&limit=100")).json["items"]
    assert [row["object"]["name"] for row in denied] == ["POST /api/v1/jobs"] * 10
    assert denied[0]["actor"]["role"] == "viewer"
    assert denied[0]["address"] == "127.0.0.1"
    assert denied[0]["after"] == {"status": 403}
    unknown = (await root("GET", "/api/v1/audit?verb=access.denied")).json["items"]
    assert [(row["actor"]["id"], row["after"]) for row in unknown] == [("", {"status": 401})]


async def test_C43_keys_and_tenants_are_recorded_where_they_belong(api: Client) -> None:
    root = await platform(api)
    await root("POST", "/api/v1/tenants", {"name": "north"})
    key = await created(root, "admin", "north", name="deploy")
    await root("DELETE", f"{KEYS}/{key['id']}")
    north = await holder(root, "admin", "north")

    theirs = (await north("GET", "/api/v1/audit")).json["items"]
    assert [(row["verb"], row["object"]["name"]) for row in reversed(theirs)] == [
        ("key.create", "deploy"),
        ("key.revoke", "deploy"),
        ("key.create", "admin"),
    ]
    assert theirs[-1]["after"] == {"role": "admin", "tenant": "north", "networks": [], "expiresAt": None}
    platforms = (await root("GET", "/api/v1/audit")).json["items"]
    assert [row["verb"] for row in reversed(platforms)] == ["key.create", "tenant.create"]
    assert key["key"].split("_")[2] not in str([theirs, platforms])
