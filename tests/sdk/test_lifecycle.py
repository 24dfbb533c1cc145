"""Hooks, resources and middleware: once per process that runs functions, and around each call."""

import asyncio
import contextvars
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from test_functions import call, run
from working import working

from horai import Horai, Instance, InstanceFailed, Unrecoverable
from horai.core.errors import Invalid
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, Outcome, Succeeded
from horai.ray_tasks.start import require_ray
from horai.sdk.functions import Crew
from horai.sdk.lifecycle import CallNext, ResourceClosed
from horai.testing import Harness

REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("REQUEST", default="none")


class Shop:
    """An application that writes down what happens in its process."""

    def __init__(self, url: str | None = None) -> None:
        self.app = Horai("shop", database_url=url)
        self.seen: list[str] = []

        @self.app.resource
        async def pool() -> AsyncGenerator[list[int]]:
            self.seen.append("pool opens")
            yield [7]
            self.seen.append("pool closes")

        @self.app.on_startup
        def prepare() -> None:
            self.seen.append(f"start with {pool.get()}")

        @self.app.on_shutdown
        async def clean() -> None:
            self.seen.append(f"end with {pool.get()}")

        @self.app.job
        async def charge(amount: int) -> int:
            self.seen.append("charge")
            return pool.get()[0] + amount

        self.pool, self.charge = pool, charge


LIFE = ["pool opens", "start with [7]", "charge", "charge", "end with [7]", "pool closes"]


async def test_a_worker_opens_its_resources_once_and_closes_them_after_its_last_call(url: str) -> None:
    shop = Shop(url)
    with pytest.raises(ResourceClosed, match="The resource 'pool' is not open"):
        shop.pool.get()
    async with working(shop.app):
        assert [await handle for handle in await shop.charge.enqueue_many([1, 2])] == [8, 9]
    assert shop.seen == LIFE
    with pytest.raises(ResourceClosed):
        shop.pool.get()


async def test_a_test_in_virtual_time_has_the_same_life() -> None:
    shop = Shop()
    async with Harness(shop.app) as time:
        assert await time.run(shop.charge, 1) == 8
        assert await time.run(shop.charge, 2) == 9
    assert shop.seen == LIFE


async def test_a_failing_start_ends_it_and_closes_what_is_open() -> None:
    shop = Shop()

    @shop.app.on_startup
    async def broken() -> None:
        raise ConnectionError("no broker")

    with pytest.raises(ConnectionError, match="no broker"):
        async with shop.app.lifecycle.opened():
            pytest.fail("it has started")
    assert shop.seen == ["pool opens", "start with [7]", "end with [7]", "pool closes"]


async def test_a_failing_hook_at_the_end_does_not_keep_the_others_from_running() -> None:
    shop = Shop()

    @shop.app.on_shutdown
    def broken() -> None:
        raise ConnectionError("no broker")

    async with shop.app.lifecycle.opened():
        shop.seen.clear()
    assert shop.seen == ["end with [7]", "pool closes"]


def watched() -> tuple[Horai, list[str]]:
    """Return an application with two middlewares, and their notes."""
    app, seen = Horai("shop"), list[str]()

    @app.middleware
    async def outer(instance: Instance[Any], call_next: CallNext) -> Any:
        REQUEST.set(f"request {instance.attempt}")
        seen.append("outer begins")
        try:
            return await call_next(instance)
        except KeyError as error:
            raise Unrecoverable("turned into a letter") from error
        finally:
            seen.append("outer ends")

    @app.middleware
    async def inner(instance: Instance[Any], call_next: CallNext) -> Any:
        await asyncio.sleep(0)
        seen.append(f"inner of {instance.job}")
        result = await call_next(instance)
        return [result]

    return app, seen


async def attempt(job: Any, payload: str | None = None) -> Outcome:
    crew = Crew(2)
    try:
        return await run(job.executor(crew), call(payload))
    finally:
        crew.close()


async def test_middleware_runs_around_async_functions_and_threads_in_the_order_of_declaration() -> None:
    app, seen = watched()

    @app.job
    async def here(amount: int, factor: int = 2) -> str:
        seen.append("function")
        return f"{amount * factor} {REQUEST.get()}"

    @app.job
    def in_thread(amount: int) -> str:
        seen.append("function")
        return f"{amount} {REQUEST.get()}"

    @app.job
    def nothing() -> None:
        seen.append("function")

    order = ["outer begins", "inner of job", "function", "outer ends"]
    assert await attempt(here, '{"amount":3}') == Succeeded('["6 request 1"]')
    assert await attempt(in_thread, "3") == Succeeded('["3 request 1"]')
    assert await attempt(nothing) == Succeeded("[null]")
    assert seen == order * 3
    assert REQUEST.get() == "none"


async def test_middleware_sees_the_errors_of_functions_and_may_turn_them_into_others() -> None:
    app, seen = watched()

    @app.job
    async def here() -> None:
        raise KeyError("k")

    @app.job
    def in_thread() -> None:
        raise KeyError("k")

    @app.job
    def broken() -> None:
        raise ValueError("no stock")

    for job in (here, in_thread):
        failed = await attempt(job)
        assert isinstance(failed, FailedUnrecoverable)
        assert "turned into a letter" in failed.message
    other = await attempt(broken)
    assert isinstance(other, FailedRetryable)
    assert other.code == "ValueError"
    assert seen.count("outer ends") == 3


async def test_a_payload_that_does_not_fit_reaches_no_middleware() -> None:
    app, seen = watched()

    @app.job
    async def here(amount: int) -> None: ...

    failed = await attempt(here, '"x"')
    assert isinstance(failed, FailedUnrecoverable)
    assert (failed.code, seen) == ("PAYLOAD_INVALID", [])


async def test_a_worker_runs_its_functions_inside_the_middleware(url: str) -> None:
    app = Horai("shop", database_url=url)

    @app.middleware
    async def only_admins(instance: Instance[Any], call_next: CallNext) -> Any:
        if instance.payload != "admin":
            raise Unrecoverable("not allowed")
        return await call_next(instance)

    @app.job
    def clean(user: str) -> str:
        return user

    async with working(app):
        assert await (await clean.enqueue("admin")) == "admin"
        with pytest.raises(InstanceFailed, match="not allowed"):
            await (await clean.enqueue("guest"))


def test_functions_that_cannot_be_hooks_resources_or_middleware_are_refused() -> None:
    app: Any = Horai("shop")

    def takes(one: int) -> None: ...

    async def plain() -> None: ...

    for declare, function, said in (
        (app.on_startup, takes, "takes arguments"),
        (app.on_shutdown, takes, "takes arguments"),
        (app.resource, plain, "is not an async generator"),
        (app.middleware, plain, "is not an async function of two parameters"),
        (app.middleware, takes, "is not an async function of two parameters"),
    ):
        with pytest.raises(Invalid, match=said):
            declare(function)


def test_functions_on_ray_are_refused_beside_hooks_and_resources() -> None:
    shop = Shop()

    @shop.app.job(executor="ray")
    def train() -> None: ...

    assert train.declaration.ray is not None
    with pytest.raises(Invalid, match="'train' runs as a Ray task, in which hooks and resources"):
        require_ray(shop.app, "shop:app", "auto")
