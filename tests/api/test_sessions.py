"""Sessions of the console: sign in with a key, act by the cookie, sign out."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.cookies import SimpleCookie

import asyncpg
import pytest
from harness import Client, node
from keys import created, holding

from api import expect
from horai.api.authentication import COOKIE

SESSION = "/api/v1/session"
JOBS = "/api/v1/jobs"


@pytest.fixture
def api(runner: asyncio.Runner, url: str) -> Iterator[Client]:
    """A node of its own: the first key of a server cannot be taken back."""
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(node(url)))
    runner.run(stack.aclose())


async def signed_in(api: Client, key: str) -> str:
    """The cookie header of a new session."""
    reply = await api("POST", SESSION, {"key": key})
    assert reply.status == 201, reply.json
    return f"{COOKIE}={SimpleCookie(reply.headers['Set-Cookie'])[COOKIE].value}"


async def test_a_session_has_the_tenant_and_the_role_of_its_key(api: Client) -> None:
    admin = await created(api, "admin", name="ops")
    viewer = await created(holding(api, admin["key"]), "viewer", name="wall")
    cookie = await signed_in(api, viewer["key"])

    who = (await api("GET", SESSION, Cookie=cookie)).json
    assert who == {
        "keyless": False, "keyId": viewer["id"], "userId": None, "name": "wall", "role": "viewer", "tenant": "default",
        "grants": [],
    }  # fmt: skip
    assert (await api("GET", JOBS, Cookie=cookie)).status == 200
    expect.problem(await api("POST", JOBS, {"name": "j"}, Cookie=cookie), 403, "SCH_403_FORBIDDEN", "viewer")


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(api: Client, url: str) -> None:
    key = await created(api, "admin")
    reply = await api("POST", SESSION, {"key": key["key"]})
    morsel = SimpleCookie(reply.headers["Set-Cookie"])[COOKIE]
    assert COOKIE.startswith("__Host-")
    assert (morsel["path"], morsel["secure"], morsel["httponly"], morsel["samesite"]) == ("/", True, True, "strict")
    assert morsel["max-age"] == str(12 * 3600)
    assert morsel["domain"] == ""

    connection = await asyncpg.connect(url)
    try:
        stored = str(await connection.fetch("select * from horai.access_session"))
    finally:
        await connection.close()
    assert morsel.value not in stored

    cookie = f"{COOKIE}={morsel.value}"
    foreign = await api("POST", JOBS, {"name": "j"}, Cookie=cookie, Sec_Fetch_Site="cross-site")
    expect.problem(foreign, 403, "SCH_403_FORBIDDEN", "another site")
    foreign = await api("POST", JOBS, {"name": "j"}, Cookie=cookie, Origin="https://evil.example")
    expect.problem(foreign, 403, "SCH_403_FORBIDDEN", "evil.example")


async def test_signing_out_ends_the_session(api: Client) -> None:
    cookie = await signed_in(api, (await created(api, "admin"))["key"])
    out = await api("DELETE", SESSION, Cookie=cookie)
    assert (out.status, SimpleCookie(out.headers["Set-Cookie"])[COOKIE].value) == (204, "")
    assert (await api("GET", JOBS, Cookie=cookie)).status == 401


async def test_a_session_ends_with_its_key_and_with_its_time(api: Client, url: str) -> None:
    admin = await created(api, "admin")
    ask = holding(api, admin["key"])
    key = await created(ask, "viewer")
    cookie = await signed_in(api, key["key"])
    assert (await ask("DELETE", f"/api/v1/keys/{key['id']}")).status == 200
    assert (await api("GET", JOBS, Cookie=cookie)).status == 401

    late = await signed_in(api, admin["key"])
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("update horai.access_session set expires_at = now()")
    finally:
        await connection.close()
    assert (await api("GET", JOBS, Cookie=late)).status == 401


async def test_a_wrong_key_opens_no_session(api: Client) -> None:
    await created(api, "admin")
    refused = await api("POST", SESSION, {"key": "hk_wrong"})
    expect.problem(refused, 401, "SCH_401_UNAUTHENTICATED", "key")
    assert "Set-Cookie" not in refused.headers


async def test_a_server_without_keys_says_so_and_ignores_cookies_of_another_server(api: Client) -> None:
    for cookie in ({}, {"Cookie": f"{COOKIE}=of-another-server"}):
        who = await api("GET", SESSION, **cookie)
        unnamed = dict.fromkeys(("keyId", "userId", "name", "role"))
        assert who.json == {**unnamed, "keyless": True, "tenant": "default", "grants": []}
    await created(api, "admin")
    assert (await api("GET", SESSION, Cookie=f"{COOKIE}=of-another-server")).status == 401


async def test_open_event_streams_end_when_a_key_is_revoked(api: Client) -> None:
    admin = holding(api, (await created(api, "admin"))["key"])
    key = await created(admin, "viewer")
    headers = {"Authorization": f"Bearer {key['key']}"}
    async with api.session.get(f"{api.base}/api/v1/events", headers=headers) as stream:
        assert (await stream.content.readline()).startswith(b"retry")
        await admin("DELETE", f"/api/v1/keys/{key['id']}")
        async with asyncio.timeout(30):
            await stream.content.read()  # to its end
    assert (await holding(api, key["key"])("GET", "/api/v1/events")).status == 401
