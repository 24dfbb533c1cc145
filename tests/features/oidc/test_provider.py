"""The memory of an identity provider's answers, and the rate of requests to it."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta

import identity_provider
import pytest
from aiohttp import web
from identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from rsa_keys import rsa_key

from horai.core.errors import ProviderUnavailable
from horai.core.settings import OidcSettings
from horai.features.oidc.provider import (
    FAILURE_SECONDS,
    REFETCH_SECONDS,
    REMEMBERED_SECONDS,
    CodeRefused,
    Provider,
    is_safe_address,
)

DISCOVERY = "/realm/.well-known/openid-configuration"


class Watch:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def idp(runner: asyncio.Runner) -> Iterator[IdentityProvider]:
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(IdentityProvider()))
    runner.run(stack.aclose())


def provider_of(idp: IdentityProvider, watch: Watch) -> Provider:
    settings = OidcSettings(idp.issuer, CLIENT_ID, CLIENT_SECRET, timeout=timedelta(seconds=1))
    return Provider(settings, watch)


async def test_unknown_key_ids_make_the_server_ask_for_keys_at_most_every_30_seconds(idp: IdentityProvider) -> None:
    watch = Watch()
    provider = provider_of(idp, watch)
    assert [key.kid for key in await provider.keys()] == ["key-1"]
    idp.published.append(rsa_key("provider, later", kid="key-2").as_dict(private=False))

    for _ in range(50):
        assert len(await provider.keys(has_unknown=True)) == 1
    watch.now += REFETCH_SECONDS - 0.1
    assert len(await provider.keys(has_unknown=True)) == 1
    assert idp.requests.count("/keys") == 1
    watch.now += 0.2
    found = await asyncio.gather(*(provider.keys(has_unknown=True) for _ in range(10)))
    assert [len(keys) for keys in found] == [2] * 10
    assert idp.requests.count("/keys") == 2


async def test_a_failed_request_for_keys_counts_and_the_known_keys_stay(idp: IdentityProvider) -> None:
    watch = Watch()
    provider = provider_of(idp, watch)
    await provider.keys()
    watch.now += REFETCH_SECONDS
    idp.answers["/keys"] = lambda _: _answer(500)
    with pytest.raises(ProviderUnavailable):
        await provider.keys(has_unknown=True)

    assert len(await provider.keys(has_unknown=True)) == 1
    assert idp.requests.count("/keys") == 2


async def _answer(status: int) -> web.StreamResponse:
    return web.Response(status=status)


async def test_a_key_that_the_provider_has_withdrawn_is_forgotten_within_an_hour(idp: IdentityProvider) -> None:
    watch = Watch()
    provider = provider_of(idp, watch)
    await provider.keys()
    idp.published = []
    watch.now += REMEMBERED_SECONDS
    assert await provider.keys() == ()


async def test_a_provider_that_is_away_is_asked_once_by_all_who_wait(idp: IdentityProvider) -> None:
    watch = Watch()
    provider = provider_of(idp, watch)
    idp.answers[DISCOVERY] = identity_provider.forever

    found = await asyncio.gather(*(provider.endpoints() for _ in range(20)), return_exceptions=True)

    assert {type(each) for each in found} == {ProviderUnavailable}
    assert idp.requests.count(DISCOVERY) == 1
    idp.answers.clear()
    watch.now += FAILURE_SECONDS
    assert (await provider.endpoints()).token == f"{idp.base}/token"


async def test_a_wrong_code_is_refused_and_a_client_secret_goes_in_the_header_or_in_the_form(
    idp: IdentityProvider,
) -> None:
    watch = Watch()
    with pytest.raises(CodeRefused):
        await provider_of(idp, watch).exchange("wrong", "verifier", "http://127.0.0.1/back")

    idp.document_changes = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    challenge = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"  # of an empty verifier
    asked = {"redirect_uri": "http://127.0.0.1/back", "nonce": "n", "code_challenge": challenge}
    idp.codes["code"] = asked
    token = await provider_of(idp, watch).exchange("code", "", "http://127.0.0.1/back")
    assert token == idp.tokens[-1]


@pytest.mark.parametrize(
    ("url", "on_loopback", "elsewhere"),
    [
        ("https://id.example/keys", True, True),
        ("http://id.example/keys", False, False),
        ("http://127.0.0.1:9/keys", True, False),
        ("http://localhost/keys", True, False),
        ("http://[::1]/keys", True, False),
        ("http://127.0.0.1.evil.example/keys", False, False),
        ("https://user@id.example/", False, False),
        ("https://id.example/#part", False, False),
        ("file:///etc/passwd", False, False),
        ("https://", False, False),
        ("https://[", False, False),
        ("", False, False),
    ],
)
def test_an_address_of_the_provider_is_https_or_on_this_machine(url: str, on_loopback: bool, elsewhere: bool) -> None:
    assert is_safe_address(url, may_be_loopback=True) is on_loopback
    assert is_safe_address(url, may_be_loopback=False) is elsewhere
