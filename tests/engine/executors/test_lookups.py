"""Host names: bounds of the lookups under way, and answers used again when no newer one is to be had."""

import asyncio
import socket
import threading
import time

import pytest

from horai.engine.executors import lookups
from horai.engine.executors.lookups import Lookup, Lookups, registered_domain


class NameServer:
    """Answers with the number of the lookup, hangs until told, or fails."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: int | None = None
        self.hangs = False
        self.let_go = threading.Event()

    def look_up(self, host: str, _port: int, _family: int) -> int:
        self.asked.append(host)
        if self.hangs:
            self.let_go.wait(30)
        if self.error is not None:
            raise socket.gaierror(self.error, "no answer")
        return len(self.asked)


def question(host: str) -> Lookup:
    return Lookup(host, 80, 0)


async def test_callers_share_the_lookup_of_a_name() -> None:
    server = NameServer()
    asking = Lookups(server.look_up)
    assert await asyncio.gather(*(asking.find(question("a.test")) for _ in range(20))) == [1] * 20
    assert server.asked == ["a.test"]


async def test_an_earlier_answer_is_used_when_the_name_server_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "PATIENCE", 0.05)
    server = NameServer()
    asking = Lookups(server.look_up)
    assert await asking.find(question("a.test")) == 1
    server.error = socket.EAI_AGAIN
    assert await asking.find(question("a.test")) == 1
    server.hangs = True
    assert await asking.find(question("a.test")) == 1
    server.let_go.set()


async def test_an_answer_that_the_name_does_not_exist_is_believed() -> None:
    server = NameServer()
    asking = Lookups(server.look_up)
    await asking.find(question("a.test"))
    server.error = socket.EAI_NONAME
    with pytest.raises(socket.gaierror):
        await asking.find(question("a.test"))


async def test_an_answer_of_more_than_an_hour_ago_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    server = NameServer()
    asking = Lookups(server.look_up)
    await asking.find(question("a.test"))
    server.error = socket.EAI_AGAIN
    now = time.monotonic()
    monkeypatch.setattr(lookups.time, "monotonic", lambda: now + lookups.STALE_FOR + 1)
    with pytest.raises(socket.gaierror):
        await asking.find(question("a.test"))


async def test_slow_lookups_give_their_places_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "PLACES", 2)
    monkeypatch.setattr(lookups, "SLOW_AFTER", 0.05)
    server = NameServer()
    asking = Lookups(server.look_up)
    server.hangs = True
    stuck = [asyncio.create_task(asking.find(question(f"dead-{n}.test"))) for n in range(2)]
    async with asyncio.timeout(30):
        while len(server.asked) < 2:
            await asyncio.sleep(0.01)
        server.hangs = False
        assert await asking.find(question("healthy.test")) == 3
    server.let_go.set()
    await asyncio.gather(*stuck)


async def until_asked(server: NameServer, names: int) -> None:
    async with asyncio.timeout(30):
        while len(server.asked) < names:
            await asyncio.sleep(0.01)


def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four lookups in all and two of a tenant, as many overdue, and a moment until one is overdue."""
    for name, value in {"PLACES": 4, "MOST_OVERDUE": 4, "TENANT_PLACES": 2, "TENANT_MOST_OVERDUE": 2}.items():
        monkeypatch.setattr(lookups, name, value)
    monkeypatch.setattr(lookups, "SLOW_AFTER", 0.02)


async def test_C60_dead_names_of_one_tenant_do_not_delay_another(monkeypatch: pytest.MonkeyPatch) -> None:
    small_bounds(monkeypatch)
    server = NameServer()
    asking = Lookups(server.look_up)
    server.hangs = True
    stuck = [asyncio.create_task(asking.find(question(f"x.dead-{n}.test"), "noisy")) for n in range(70)]
    await until_asked(server, 4)
    server.hangs = False

    async with asyncio.timeout(5):
        assert await asking.find(question("healthy.test"), "quiet")

    assert sum("dead" in name for name in server.asked) == 4, "two that count, and two that are overdue"
    server.let_go.set()
    await asyncio.gather(*stuck)


async def test_a_tenant_does_not_wait_for_the_queued_lookup_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    small_bounds(monkeypatch)
    server = NameServer()
    asking = Lookups(server.look_up)
    server.hangs = True
    stuck = [asyncio.create_task(asking.find(question(f"x.dead-{n}.test"), "noisy")) for n in range(10)]
    await until_asked(server, 4)
    server.hangs = False
    queued = asyncio.create_task(asking.find(question("shared.test"), "noisy"))

    async with asyncio.timeout(5):
        assert await asking.find(question("shared.test"), "quiet")

    assert not queued.done()
    server.let_go.set()
    await asyncio.gather(*stuck, queued)


async def test_names_of_one_domain_are_bounded_per_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "PER_DOMAIN", 2)
    server = NameServer()
    asking = Lookups(server.look_up)
    server.hangs = True
    stuck = [asyncio.create_task(asking.find(question(f"dead-{n}.cloud.test"), "noisy")) for n in range(10)]
    await until_asked(server, 2)
    server.hangs = False

    async with asyncio.timeout(5):
        assert await asking.find(question("shop.cloud.test"), "quiet") == 3

    server.let_go.set()
    await asyncio.gather(*stuck)


async def test_a_fresh_answer_is_used_by_every_tenant_without_a_lookup() -> None:
    server = NameServer()
    asking = Lookups(server.look_up, fresh_for=10.0)
    assert await asking.find(question("a.test"), "one") == 1
    assert await asking.find(question("a.test"), "two") == 1
    assert server.asked == ["a.test"]


async def test_bounds_are_free_again_after_failed_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    small_bounds(monkeypatch)
    server = NameServer()
    server.error = socket.EAI_AGAIN
    asking = Lookups(server.look_up)
    for _ in range(3):
        answers = await asyncio.gather(
            *(asking.find(question(f"x.dead-{n}.test"), "noisy") for n in range(10)), return_exceptions=True
        )
        assert all(isinstance(answer, socket.gaierror) for answer in answers)
    server.error = None
    assert await asking.find(question("healthy.test"), "noisy") == 31


@pytest.mark.parametrize(
    ("host", "domain"), [("a.b.shop.test.", "shop.test"), ("Shop.Test", "shop.test"), ("localhost", "localhost")]
)
def test_a_registered_domain_is_the_last_two_labels(host: str, domain: str) -> None:
    assert registered_domain(host) == domain
