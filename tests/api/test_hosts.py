"""The host names that a server answers to, and the clients behind a trusted proxy."""

from typing import Any

import pytest
from starlette.datastructures import Headers

from horai.api.hosts import HostRules
from horai.core.addresses import parse_networks
from horai.core.settings import ServerAccess

PUBLIC = ServerAccess(public_url="https://horai.example.com:8443")


@pytest.mark.parametrize(
    ("rules", "host", "is_ours"),
    [
        (HostRules(), "127.0.0.1:8470", True),
        (HostRules(), "localhost", True),
        (HostRules(), "[::1]:1", True),
        (HostRules(), "192.0.2.7", False),
        (HostRules(), "127.0.0.1.evil.example", False),
        (HostRules(), "horai.example.com", False),
        (HostRules(PUBLIC), "horai.example.com", True),
        (HostRules(PUBLIC), "HORAI.example.com:8443", True),
        (HostRules(PUBLIC), "other.example.com", False),
        (HostRules(is_beyond_loopback=True), "192.0.2.7:8470", True),
        (HostRules(is_beyond_loopback=True), "[2001:db8::7]:8470", True),
        (HostRules(is_beyond_loopback=True), "rebound.example", False),
        (HostRules(is_beyond_loopback=True), "", False),
    ],
)
def test_a_server_answers_only_to_names_that_no_other_site_can_own(rules: HostRules, host: str, is_ours: bool) -> None:
    assert rules.is_ours(host) is is_ours


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9", "10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("203.0.113.1", ["127.0.0.1"], "203.0.113.1"),
    ],
)
def test_the_address_of_a_client_is_the_last_one_before_the_trusted_proxies(
    peer: str, forwarded: list[str], client: str
) -> None:
    rules = HostRules(ServerAccess(trusted_proxies=parse_networks(["10.0.0.0/8"])))
    raw = [(b"x-forwarded-for", value.encode()) for value in forwarded] + [(b"x-forwarded-proto", b"https")]
    scope: dict[str, Any] = {"client": (peer, 5), "scheme": "http"}
    rules.resolve_client(scope, Headers(raw=raw))
    assert scope["client"][0] == client
    assert scope["scheme"] == ("https" if peer.startswith("10.") else "http")


def test_without_trusted_proxies_forwarded_headers_count_for_nothing() -> None:
    scope: dict[str, Any] = {"client": ("127.0.0.1", 5), "scheme": "http"}
    HostRules().resolve_client(scope, Headers(raw=[(b"x-forwarded-for", b"203.0.113.9")]))
    assert scope == {"client": ("127.0.0.1", 5), "scheme": "http"}
