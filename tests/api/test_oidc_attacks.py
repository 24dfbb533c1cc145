"""Attacks on the sign-in with an identity provider: each is refused, opens no session, and shows no secret in the log."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import identity_provider
import pytest
import structlog
from aiohttp import web
from identity_provider import CLIENT_SECRET, signed, signed_with_public_key, unsigned
from joserfc.jwk import ECKey, OKPKey, RSAKey
from rsa_keys import rsa_key
from sign_ins import BEGIN, CALLBACK, Site, Visit, attempt, begun, site, visit

from api import expect
from horai.api.authentication import COOKIE
from horai.db.pool import Platform
from horai.features.oidc.routes_sign_in import BROWSER

UNPROVEN = "does not prove who you are"
UNKNOWN = "unknown, used or older than 10 minutes, or another browser began it"

Claims = dict[str, Any]


@pytest.fixture(scope="module")
def shared(runner: asyncio.Runner, database: str) -> Iterator[Site]:
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(site(database, timeout=timedelta(seconds=2))))
    runner.run(stack.aclose())


@pytest.fixture
def place(shared: Site) -> Iterator[Site]:
    """The site, whose provider is honest again after each test. Keys are made before: meanwhile no server answers."""
    assert stranger_key().kid != other_key().kid
    honest = dict(vars(shared.provider))
    published = list(shared.provider.published)
    yield shared
    vars(shared.provider).update(honest | {"published": published, "answers": {}, "document_changes": {}})


def refused(done: Visit, *words: str, status: int = 401) -> None:
    """The sign-in was refused, and the browser has no session."""
    codes = {401: "SCH_401_UNAUTHENTICATED", 403: "SCH_403_FORBIDDEN", 503: "SCH_503_PROVIDER_UNAVAILABLE"}
    expect.problem(done.reply, status, codes[status], *words)
    assert COOKIE not in done.cookies


async def sessions(db: Platform) -> int:
    return await db.fetchval("select count(*) from horai.access_session")


def stranger_key() -> RSAKey:
    return rsa_key("stranger", kid="key-9")


def other_key() -> RSAKey:
    """A key of another provider, under the same id."""
    return rsa_key("other provider", kid="key-1")


FORGED: dict[str, Any] = {
    "alg none": lambda claims, _: unsigned(claims),
    "HS256 with the public key": signed_with_public_key,
    "wrong audience": lambda claims, key: signed({**claims, "aud": "another-client"}, key),
    "several audiences without azp": lambda claims, key: signed({**claims, "aud": [claims["aud"], "b"]}, key),
    "azp of another client": lambda claims, key: signed({**claims, "azp": "another-client"}, key),
    "wrong issuer": lambda claims, key: signed({**claims, "iss": "https://evil.example"}, key),
    "issuer with a slash more": lambda claims, key: signed({**claims, "iss": claims["iss"] + "/"}, key),
    "wrong nonce": lambda claims, key: signed({**claims, "nonce": "another"}, key),
    "no nonce": lambda claims, key: signed({k: v for k, v in claims.items() if k != "nonce"}, key),
    "expired": lambda claims, key: signed({**claims, "exp": int(time.time()) - 120}, key),
    "no expiry": lambda claims, key: signed({k: v for k, v in claims.items() if k != "exp"}, key),
    "not yet valid": lambda claims, key: signed({**claims, "nbf": int(time.time()) + 600}, key),
    "issued in the future": lambda claims, key: signed({**claims, "iat": int(time.time()) + 600}, key),
    "unknown kid": lambda claims, _: signed(claims, stranger_key()),
    "key of another provider": lambda claims, _: signed(claims, other_key()),
    "key in the header": lambda claims, _: signed(claims, other_key(), jwk=other_key().as_dict(private=False)),
    "no subject": lambda claims, key: signed({**claims, "sub": ""}, key),
    "cut signature": lambda claims, key: signed(claims, key).rpartition(".")[0] + ".",
    "changed claims": lambda claims, key: _with_claims_of(
        signed(claims, key), signed({**claims, "sub": "root"}, other_key())
    ),
    "not a token": lambda _claims, _key: "x.y.z",
}


def _with_claims_of(token: str, other: str) -> str:
    head, _, signature = token.split(".")
    return f"{head}.{other.split('.')[1]}.{signature}"


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
async def test_C42a_a_forged_id_token_opens_no_session(place: Site, db: Platform, forge: Any) -> None:
    before = await sessions(db)
    place.provider.forge = forge

    with structlog.testing.capture_logs() as logs:
        refused(await attempt(place.api), UNPROVEN)

    assert await sessions(db) == before
    (line,) = [line for line in logs if line["event"] == "sign-in refused"]
    assert line["reason"]
    assert not [secret for secret in (CLIENT_SECRET, *place.provider.tokens) if secret in str(logs)]


async def test_C42a_an_honest_id_token_opens_a_session_and_the_attacks_are_on_record(place: Site, db: Platform) -> None:
    with structlog.testing.capture_logs() as logs:
        done = await attempt(place.api)

    assert (done.reply.status, done.location) == (303, "/jobs")
    assert COOKIE in done.cookies
    assert not [
        secret
        for secret in (CLIENT_SECRET, *place.provider.tokens, *done.cookies.values())
        if secret and secret in str(logs)
    ]
    refused(await visit(place.api, f"{CALLBACK}?state=a&code=b"), UNKNOWN)
    row = await db.fetchrow("select * from horai.audit where verb = 'access.denied' order by id desc limit 1")
    assert row is not None
    assert (row["actor_kind"], row["address"], row["object_name"]) == ("user", "127.0.0.1", f"GET {CALLBACK}")


async def test_a_callback_is_accepted_once(place: Site) -> None:
    started = await begun(place.api)
    assert (await visit(place.api, started.back, started.cookies)).reply.status == 303
    asked = place.provider.requests.count("/token")

    refused(await visit(place.api, started.back, started.cookies), UNKNOWN)

    assert place.provider.requests.count("/token") == asked, "the code must not reach the provider a second time"


async def test_of_many_callbacks_at_once_one_is_accepted(place: Site) -> None:
    started = await begun(place.api)

    done = await asyncio.gather(*(visit(place.api, started.back, started.cookies) for _ in range(8)))

    assert sorted(each.reply.status for each in done) == [303, *[401] * 7]


async def test_a_state_of_another_browser_is_refused_and_its_own_browser_can_still_finish(place: Site) -> None:
    victim, attacker = await begun(place.api), await begun(place.api)
    asked = place.provider.requests.count("/token")

    for cookies in (attacker.cookies, {}, {BROWSER: ""}, {BROWSER: "x" * 43}):
        refused(await visit(place.api, victim.back, cookies), UNKNOWN)

    assert place.provider.requests.count("/token") == asked
    assert (await visit(place.api, victim.back, victim.cookies)).reply.status == 303


async def test_a_code_of_another_sign_in_is_refused(place: Site) -> None:
    """PKCE: the provider compares the verifier, which only the browser of the sign-in can derive."""
    mine, theirs = await begun(place.api), await begun(place.api)
    code = theirs.back.partition("code=")[2].partition("&")[0]
    own = mine.back.partition("code=")[2].partition("&")[0]

    refused(await visit(place.api, mine.back.replace(own, code), mine.cookies), "did not confirm")


async def test_an_old_sign_in_is_refused(place: Site, db: Platform) -> None:
    started = await begun(place.api)
    await db.execute("update horai.access_sign_in set expires_at = now()")

    refused(await visit(place.api, started.back, started.cookies), UNKNOWN)


async def test_an_answer_in_the_name_of_another_issuer_is_refused(place: Site) -> None:
    started = await begun(place.api)
    back = started.back.partition("&iss=")[0] + "&iss=https%3A%2F%2Fevil.example"

    refused(await visit(place.api, back, started.cookies), UNPROVEN)


@pytest.mark.parametrize("query", ["error=access_denied", "error=<script>", "", "code="])
async def test_a_provider_that_refuses_opens_no_session(place: Site, query: str) -> None:
    started = await begun(place.api)
    state = started.back.partition("state=")[2].partition("&")[0]

    refused(await visit(place.api, f"{CALLBACK}?state={state}&{query}", started.cookies), "did not confirm")


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "/%09/evil.example",
        "javascript:alert(1)", "jobs", "", "/a%0d%0aSet-Cookie:x", "/" + "a" * 3000,
    ],
)  # fmt: skip
async def test_a_sign_in_never_leads_to_another_site(place: Site, target: str) -> None:
    expect.invalid((await visit(place.api, f"{BEGIN}?returnTo={target}")).reply)


async def test_a_browser_that_is_refused_lands_on_the_sign_in_page(place: Site) -> None:
    place.provider.user = {"sub": "eve", "groups": ["strangers"]}
    started = await begun(place.api)

    done = await visit(place.api, started.back, started.cookies, Accept="text/html")

    assert (done.reply.status, done.location) == (303, "/?signIn=NO_MAPPED_GROUP")
    assert COOKIE not in done.cookies


@pytest.mark.parametrize("groups", [None, [], ["strangers"], [7], {"ops": True}, "strangers"])
async def test_a_user_without_a_mapped_group_is_refused(place: Site, db: Platform, groups: Any) -> None:
    before = await sessions(db)
    place.provider.user = {"sub": "eve", "groups": groups}

    refused(await attempt(place.api), "none of your groups has a role here", status=403)

    assert await sessions(db) == before


@pytest.mark.parametrize("path", ["/token", "/keys"])
@pytest.mark.parametrize("kind", ["error", "redirect", "huge", "slow", "not json", "not an object"])
async def test_a_provider_that_answers_badly_opens_no_session(
    runner: asyncio.Runner, url: str, path: str, kind: str
) -> None:
    async with site(url, timeout=timedelta(seconds=1)) as place:
        place.provider.answers[path] = BAD[kind]
        refused(await attempt(place.api), "does not answer as it should", status=503)
        assert "/elsewhere" not in place.provider.requests
        assert (await place.root("GET", "/api/v1/keys")).status == 200, "keys still work"


async def test_an_endless_answer_of_the_provider_is_cut_before_its_time(runner: asyncio.Runner, url: str) -> None:
    async with site(url, timeout=timedelta(seconds=60)) as place:
        place.provider.answers["/token"] = identity_provider.huge
        with structlog.testing.capture_logs() as logs:
            async with asyncio.timeout(30):
                refused(await attempt(place.api), status=503)
        assert "an answer is larger than 524288 bytes" in {line.get("reason") for line in logs}


async def _error(_: web.Request) -> web.StreamResponse:
    return web.Response(status=500)


async def _redirect(_: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "/elsewhere"})


async def _not_json(_: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>")


async def _not_an_object(_: web.Request) -> web.StreamResponse:
    return web.json_response([])


BAD = {
    "error": _error,
    "redirect": _redirect,
    "huge": identity_provider.huge,
    "slow": identity_provider.forever,
    "not json": _not_json,
    "not an object": _not_an_object,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": None},
        {"token_endpoint": "https://user:password@evil.example/token"},
    ],
    ids=str,
)
async def test_a_discovery_document_that_is_not_the_issuers_begins_no_sign_in(
    runner: asyncio.Runner, url: str, changes: dict[str, Any]
) -> None:
    async with site(url) as place:
        place.provider.document_changes = changes
        started = await visit(place.api, BEGIN)
        expect.problem(started.reply, 503, "SCH_503_PROVIDER_UNAVAILABLE", "does not answer as it should")
        assert BROWSER not in started.cookies


async def test_the_cookie_of_a_sign_in_is_bound_to_the_host_and_out_of_reach_of_scripts(place: Site) -> None:
    header = (await visit(place.api, BEGIN)).reply.headers["Set-Cookie"]

    assert header.startswith("__Host-")
    assert {"Max-Age=600", "Path=/", "SameSite=lax", "Secure", "HttpOnly"} <= set(header.split("; "))


async def test_the_database_keeps_no_secret_of_a_sign_in(place: Site, db: Platform) -> None:
    started = await begun(place.api)
    state = started.back.partition("state=")[2].partition("&")[0]
    stored = str(await db.fetch("select * from horai.access_sign_in"))

    assert state not in stored
    assert started.cookies[BROWSER] not in stored


async def test_an_address_that_begins_too_many_sign_ins_has_to_wait(runner: asyncio.Runner, url: str) -> None:
    async with site(url) as place:
        begins = [await visit(place.api, BEGIN) for _ in range(101)]
        assert [each.reply.status for each in begins[:100]] == [303] * 100
        expect.problem(begins[100].reply, 429, "SCH_429_RETRY_LIMITED", "Too many sign-ins")
        assert 1 <= int(begins[100].reply.headers["Retry-After"]) <= 60


@pytest.mark.parametrize(
    ("make_key", "algorithm"),
    [
        (lambda: ECKey.generate_key("P-256", {"kid": "k"}), "ES256"),
        (lambda: OKPKey.generate_key("Ed25519", {"kid": "k"}), "EdDSA"),
        (lambda: rsa_key("provider, later", kid="k"), "PS256"),
    ],
    ids=["ES256", "EdDSA", "PS256"],
)
async def test_each_kind_of_public_key_signs_in_after_the_provider_has_changed_its_keys(
    runner: asyncio.Runner, url: str, make_key: Callable[[], Any], algorithm: str
) -> None:
    key = make_key()
    async with site(url) as place:
        shared_secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "k"}
        place.provider.published = [shared_secret, {"kty": "new"}, key.as_dict(private=False)]
        place.provider.forge = lambda claims, _: signed(claims, key, algorithm)
        assert (await attempt(place.api)).reply.status == 303
