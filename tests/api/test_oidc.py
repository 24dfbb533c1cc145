"""Users of an identity provider: sign in, act by their groups, switch the tenant, sign out."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.cookies import SimpleCookie
from typing import Any

import harness
import pytest
from harness import Client
from keys import created, holding
from sign_ins import BEGIN, CALLBACK, SESSION, Site, attempt, signed_in, site, visit

from api import expect
from horai.api.authentication import COOKIE
from horai.core.settings import OidcSettings, ServerAccess
from horai.db.pool import Platform
from horai.process import StartError

JOBS = "/api/v1/jobs"
OPTIONS = "/api/v1/session/options"


@pytest.fixture
def place(runner: asyncio.Runner, url: str) -> Iterator[Site]:
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(site(url)))
    runner.run(stack.aclose())


async def until_refused(api: Client, session: dict[str, str]) -> None:
    """Wait until the session has ended: a change of the groups reaches a node by a notification."""
    async with asyncio.timeout(1):
        while (await api("GET", SESSION, **session)).status != 401:
            await asyncio.sleep(0.01)


async def test_C42a_a_user_signs_in_and_acts_with_the_role_of_a_group(place: Site, connection: Platform) -> None:
    session = await signed_in(place.api)

    who = await place.api("GET", SESSION, **session)
    assert who.json == {
        "keyless": False, "keyId": None, "userId": "ada-1", "name": "Ada", "role": "admin", "tenant": "default",
        "grants": [{"tenant": "default", "role": "admin"}],
    }  # fmt: skip
    assert (await place.api("POST", JOBS, {"name": "nightly"}, **session)).status == 201
    expect.problem(await place.api("GET", "/api/v1/tenants", **session), 403, "SCH_403_FORBIDDEN", "platform-admin")
    rows = await connection.fetch("select * from horai.audit where actor_kind = 'user' order by id")
    assert [(row["verb"], row["actor_id"], row["actor_name"], row["actor_role"], row["tenant_id"]) for row in rows] == [
        ("user.sign_in", "ada-1", "Ada", "admin", 1),
        ("job.create", "ada-1", "Ada", "admin", 1),
    ]


async def test_the_cookie_of_a_user_is_that_of_every_session_and_only_its_hash_is_stored(
    place: Site, connection: Platform
) -> None:
    done = await attempt(place.api)
    (header,) = [line for line in done.reply.headers.getall("Set-Cookie") if line.startswith(f"{COOKIE}=")]
    morsel = SimpleCookie(header)[COOKIE]

    assert (morsel["path"], morsel["secure"], morsel["httponly"], morsel["samesite"]) == ("/", True, True, "strict")
    assert morsel["max-age"] == str(12 * 3600)
    row = await connection.fetchrow("select *, expires_at - now() as left from horai.access_session")
    assert row is not None
    assert 11.9 * 3600 < row["left"].total_seconds() <= 12 * 3600
    assert morsel.value not in str(row)


async def test_a_user_has_the_highest_role_of_several_groups(place: Site) -> None:
    await place.map("staff", "viewer", "default")
    place.provider.user["groups"] = ["staff", "ops", "strangers"]

    who = await place.api("GET", SESSION, **await signed_in(place.api))

    assert (who.json["role"], who.json["grants"]) == ("admin", [{"tenant": "default", "role": "admin"}])


async def test_a_user_of_several_tenants_switches_and_sees_the_data_of_one_at_a_time(place: Site) -> None:
    assert (await place.root("POST", "/api/v1/tenants", {"name": "north"})).status == 201
    await place.map("ops", "viewer", "north")
    await place.map("ops", "platform-admin")
    session = await signed_in(place.api)
    assert (await place.api("POST", JOBS, {"name": "ours"}, **session)).status == 201

    grants = (await place.api("GET", SESSION, **session)).json["grants"]
    assert [(grant["tenant"], grant["role"]) for grant in grants] == [
        ("default", "admin"), ("north", "viewer"), (None, "platform-admin"),
    ]  # fmt: skip
    north = await switched(place.api, session, "north", "viewer")
    assert (await place.api("GET", JOBS, **north)).json["items"] == []
    expect.problem(
        await place.api("POST", JOBS, {"name": "n"}, **north), 403, "SCH_403_FORBIDDEN", "Your role is viewer"
    )
    platform = await switched(place.api, north, None, "platform-admin")
    assert (await place.api("GET", "/api/v1/tenants", **platform)).status == 200
    expect.problem(await place.api("GET", JOBS, **platform), 403, "SCH_403_FORBIDDEN")
    default = await switched(place.api, platform, "default", "admin")
    assert [job["name"] for job in (await place.api("GET", JOBS, **default)).json["items"]] == ["ours"]


async def switched(api: Client, session: dict[str, str], tenant: str | None, role: str) -> dict[str, str]:
    """The session after a switch: its old id has ended."""
    reply = await api("PATCH", SESSION, {"tenant": tenant}, **session)
    assert (reply.status, reply.json["tenant"], reply.json["role"]) == (200, tenant, role)
    morsel = SimpleCookie(reply.headers["Set-Cookie"])[COOKIE]
    assert (morsel["secure"], morsel["httponly"], morsel["samesite"]) == (True, True, "strict")
    assert 0 < int(morsel["max-age"]) <= 12 * 3600
    await until_refused(api, session)
    moved = {"Cookie": f"{COOKIE}={morsel.value}"}
    assert (await api("GET", SESSION, **moved)).json == reply.json
    return moved


async def test_a_user_cannot_switch_to_a_tenant_without_a_grant(place: Site) -> None:
    assert (await place.root("POST", "/api/v1/tenants", {"name": "north"})).status == 201
    session = await signed_in(place.api)

    for tenant in ("north", "absent", None):
        reply = await place.api("PATCH", SESSION, {"tenant": tenant}, **session)
        expect.problem(reply, 403, "SCH_403_FORBIDDEN", "No group of yours has a role")
    expect.invalid(await place.api("PATCH", SESSION, {}, **session), "tenant")
    assert (await place.api("GET", SESSION, **session)).json["tenant"] == "default"
    refused = await place.root("PATCH", SESSION, {"tenant": "default"})
    expect.problem(refused, 409, "SCH_409_CONFLICT", "belongs to one tenant")


async def test_C42a_a_deleted_mapping_ends_its_sessions_within_a_second_on_every_node(place: Site, url: str) -> None:
    extra = await place.map("night-shift", "operator", "default")
    place.provider.user = {"sub": "bob", "groups": ["night-shift"]}
    session = await signed_in(place.api)
    async with harness.node(url, name="other-node") as other:
        for api in (place.api, other):
            assert (await api("GET", JOBS, **session)).status == 200
        assert (await place.root("DELETE", f"/api/v1/groups/{extra['id']}")).status == 200
        for api in (place.api, other):
            await until_refused(api, session)


async def test_a_session_never_moves_to_another_tenant_by_itself(place: Site) -> None:
    assert (await place.root("POST", "/api/v1/tenants", {"name": "alpha"})).status == 201
    mapping = await place.map("ops", "viewer", "alpha")
    session = await signed_in(place.api)
    assert (await place.api("GET", SESSION, **session)).json["tenant"] == "alpha"

    assert (await place.root("DELETE", f"/api/v1/groups/{mapping['id']}")).status == 200

    await until_refused(place.api, session)
    assert (await place.api("GET", SESSION, **await signed_in(place.api))).json["tenant"] == "default"


async def test_a_lower_role_counts_at_once(place: Site) -> None:
    await place.map("ops", "platform-admin")
    (mapping,) = [
        each for each in (await place.root("GET", "/api/v1/groups")).json["items"] if each["tenant"] == "default"
    ]
    session = await signed_in(place.api)
    assert (await place.root("DELETE", f"/api/v1/groups/{mapping['id']}")).status == 200
    await until_refused(place.api, session)
    await place.map("ops", "viewer", "default")

    async with asyncio.timeout(1):
        while (await place.api("GET", SESSION, **session)).status != 200:
            await asyncio.sleep(0.01)
    assert (await place.api("GET", SESSION, **session)).json["role"] == "viewer"


async def test_signing_out_ends_the_session_of_a_user(place: Site) -> None:
    session = await signed_in(place.api)
    assert (await place.api("DELETE", SESSION, **session)).status == 204
    await until_refused(place.api, session)


async def test_a_session_of_a_user_ends_after_its_time(place: Site, connection: Platform) -> None:
    session = await signed_in(place.api)
    await connection.execute("update horai.access_session set expires_at = now()")
    assert (await place.api("GET", SESSION, **session)).status == 401


async def test_the_way_to_sign_in_is_public_and_names_the_host_of_the_provider(place: Site) -> None:
    assert (await place.api("GET", OPTIONS)).json == {"provider": "127.0.0.1"}


async def test_a_server_without_a_provider_says_so(runner: asyncio.Runner, url: str) -> None:
    async with harness.node(url) as api:
        assert (await api("GET", OPTIONS)).json == {"provider": None}
        for path in (BEGIN, f"{CALLBACK}?state=a&code=b"):
            expect.problem((await visit(api, path)).reply, 404, "SCH_404_NOT_FOUND", "no identity provider")
        key = await created(api, "admin")
        assert (await holding(api, key["key"])("GET", SESSION)).json["grants"] == []


async def test_a_provider_on_a_server_without_keys_is_refused_at_start(runner: asyncio.Runner, url: str) -> None:
    oidc = OidcSettings("https://id.example", "console", "secret")
    with pytest.raises(StartError, match="Refusing to serve --oidc-issuer without a key"):
        async with harness.node(url, access=ServerAccess(public_url="https://horai.example", oidc=oidc)):
            pass


async def test_a_group_has_one_role_per_tenant_and_only_the_platform_sees_groups(
    place: Site, connection: Platform
) -> None:
    made = await place.map("staff", "viewer", "default")
    assert {name: made[name] for name in ("group", "role", "tenant")} == {
        "group": "staff", "role": "viewer", "tenant": "default",
    }  # fmt: skip
    again = await place.root("POST", "/api/v1/groups", {"group": "staff", "role": "admin", "tenant": "default"})
    told = expect.problem(again, 409, "SCH_409_DUPLICATE", "has a role there already: viewer")
    assert told["mappingId"] == made["id"]
    listed = (await place.root("GET", "/api/v1/groups")).json["items"]
    assert [each["group"] for each in listed] == ["staff", "ops"]
    first = (await place.root("GET", "/api/v1/groups?limit=1")).json
    rest = (await place.root("GET", f"/api/v1/groups?limit=1&cursor={first['nextCursor']}")).json
    assert [each["group"] for page in (first, rest) for each in page["items"]] == ["staff", "ops"]

    removed = await place.root("DELETE", f"/api/v1/groups/{made['id']}")
    assert (removed.status, removed.json) == (200, made)
    expect.problem(
        await place.root("DELETE", f"/api/v1/groups/{made['id']}"), 404, "SCH_404_NOT_FOUND", "group mapping"
    )
    rows = await connection.fetch("select * from horai.audit where object_name = 'staff' order by id")
    assert [(row["verb"], row["tenant_id"], row["actor_kind"]) for row in rows] == [
        ("group.create", 1, "key"), ("group.delete", 1, "key"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"group": "g", "role": "viewer"}, "only the role platform-admin belongs to no tenant"),
        ({"group": "g", "role": "platform-admin", "tenant": "default"}, "belongs to no tenant"),
        ({"group": "g", "role": "worker", "tenant": "default"}, "role"),
        ({"group": "", "role": "viewer", "tenant": "default"}, "group"),
        ({"group": "x" * 257, "role": "viewer", "tenant": "default"}, "group"),
        ({"group": "a\x00b", "role": "viewer", "tenant": "default"}, "NUL"),
        ({"role": "viewer", "tenant": "default"}, "group"),
    ],
)
async def test_a_mapping_that_makes_no_sense_is_refused(place: Site, body: dict[str, Any], word: str) -> None:
    expect.invalid(await place.root("POST", "/api/v1/groups", body), word)


async def test_a_mapping_to_an_unknown_tenant_is_refused(place: Site) -> None:
    body = {"group": "g", "role": "viewer", "tenant": "absent"}
    expect.problem(await place.root("POST", "/api/v1/groups", body), 404, "SCH_404_NOT_FOUND", "absent")
    for mapping in ("x", "0", "9" * 30, "-1", "²"):
        expect.problem(await place.root("DELETE", f"/api/v1/groups/{mapping}"), 404, "SCH_404_NOT_FOUND")
