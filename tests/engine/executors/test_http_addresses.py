"""The addresses that calls over HTTP dial, and those that are refused."""

import asyncio
import socket
import threading
from typing import Any

import pytest
from http_calls import call_to, code_of, executor, in_loop
from receiver import Receiver, redirect

from horai.core.addresses import AddressPolicy, parse_networks
from horai.core.outcome import FailedUnrecoverable, Succeeded, outcome_of
from horai.engine.executors import lookups
from horai.engine.executors.dial import AddressRefused, CheckedResolver


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.8.8.8",
        "localhost",
        "LOCALHOST",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "[::]",
    ],
)
@in_loop
async def test_an_address_that_is_not_public_is_refused_unless_allowed(host: str):
    async with Receiver() as receiver, executor(AddressPolicy()) as http:
        outcome = await http.run(call_to(receiver.url("/hook?token=hunter2", host)))

    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == "ADDRESS_REFUSED"
    assert host.lower() in outcome.message.lower()
    assert "--callback-allow" in outcome.message
    assert "hunter2" not in outcome.message
    assert receiver.hits == []


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1."])
@in_loop
async def test_an_address_in_a_disguised_notation_is_refused_even_if_its_network_is_allowed(host: str):
    async with Receiver() as receiver, executor() as http:
        outcome = await http.run(call_to(receiver.url("/hook", host)))

    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == "INVALID_TARGET"
    assert receiver.hits == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@in_loop
async def test_an_allowed_address_is_called(host: str):
    async with Receiver() as receiver, executor() as http:
        assert await http.run(call_to(receiver.url("/hook", host))) == Succeeded()


def answers(monkeypatch: pytest.MonkeyPatch, *lookups: list[str]) -> list[str]:
    """Make the resolver answer with `lookups` in turn; returns the names it was asked for."""
    asked: list[str] = []

    def look_up(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        found = lookups[min(len(asked), len(lookups)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


@in_loop
async def test_a_name_is_resolved_once_and_what_was_checked_is_dialled(monkeypatch: pytest.MonkeyPatch):
    async with Receiver() as receiver, executor() as http:
        asked = answers(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
        outcome = await http.run(call_to(receiver.url("/hook", "rebinding.example")))

    assert outcome == Succeeded()
    assert asked == ["rebinding.example"]


@in_loop
async def test_of_several_answers_only_the_permitted_ones_are_dialled(monkeypatch: pytest.MonkeyPatch):
    async with Receiver() as receiver, executor() as http:
        answers(monkeypatch, ["10.0.0.1", "127.0.0.1", "169.254.169.254"], ["10.0.0.1", "10.0.0.2"])
        mixed = await http.run(call_to(receiver.url("/hook", "mixed.example")))
        private = await http.run(call_to(receiver.url("/hook", "private.example")))

    assert mixed == Succeeded()
    assert code_of(private) == "ADDRESS_REFUSED"


@in_loop
async def test_the_resolver_gives_out_permitted_addresses_only(monkeypatch: pytest.MonkeyPatch):
    answers(monkeypatch, ["10.0.0.1", "127.0.0.1", "169.254.169.254"])
    resolver = CheckedResolver(AddressPolicy(parse_networks(["127.0.0.0/8"])))

    assert [found["host"] for found in await resolver.resolve("mixed.example", 80)] == ["127.0.0.1"]


@in_loop
async def test_a_redirect_is_not_followed():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", redirect(receiver.url("/elsewhere")))
        outcome = await http.run(call_to(receiver.url("/hook")))

    assert code_of(outcome) == "HTTP_307"
    assert [hit.path for hit in receiver.hits] == ["/hook"]


@in_loop
async def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with Receiver() as receiver, executor() as http:
        assert await http.run(call_to(receiver.url("/hook"))) == Succeeded()


@in_loop
async def test_C60_seventy_dead_names_of_one_tenant_do_not_delay_the_call_of_another(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"PLACES": 4, "MOST_OVERDUE": 4, "TENANT_PLACES": 2, "TENANT_MOST_OVERDUE": 2}.items():
        monkeypatch.setattr(lookups, name, value)
    monkeypatch.setattr(lookups, "SLOW_AFTER", 0.02)
    asked: list[str] = []
    let_go = threading.Event()

    def look_up(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        if host.startswith("dead"):
            let_go.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]

    async with Receiver() as receiver, executor(per_host=100) as http:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        calls = [call_to(f"http://dead-{n}.x{n}.test/", tenant="noisy") for n in range(70)]
        stuck = [asyncio.create_task(outcome_of(http.run(call))) for call in calls]
        async with asyncio.timeout(30):
            while len(asked) < 4:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(2):
            assert await http.run(call_to(receiver.url("/hook", "healthy.test"), tenant="quiet")) == Succeeded()
        assert sum(name.startswith("dead") for name in asked) == 4
        let_go.set()
        await asyncio.gather(*stuck)


@in_loop
async def test_a_kept_answer_is_checked_again_before_each_connection(monkeypatch: pytest.MonkeyPatch):
    """An answer from the cache gains nothing: the policy decides about the address at each call."""
    resolver = CheckedResolver(AddressPolicy(parse_networks(["127.0.0.0/8"])))
    asked = answers(monkeypatch, ["127.0.0.1"])
    assert await resolver.resolve("moves.example")
    resolver._policy = AddressPolicy()
    with pytest.raises(AddressRefused):
        await resolver.resolve("moves.example")
    assert asked == ["moves.example"]
