"""Triggers with an idempotency key: they run once, and all who ask learn of it."""

import asyncio

import make
import pytest
from key_rows import live_rows

from horai.core.errors import DispatcherDown, Duplicate, Invalid
from horai.db.pool import Platform
from horai.operations import instances
from horai.operations.request_keys import Once
from horai.operations.scope import Scope


async def trigger(scope: Scope, key: str, body: bytes = b"{}") -> str:
    """The id of the instance made, or of the first one."""
    try:
        return str((await instances.trigger(scope, "publish", None, Once(key, body))).id)
    except Duplicate as duplicate:
        return str(duplicate.extra["instanceId"])


async def test_C20_C56_twenty_triggers_with_one_key_run_once_and_all_learn_of_it(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.node(connection)

        ids = await asyncio.gather(*(trigger(scope, "click-1") for _ in range(20)))

        (row,) = await live_rows(connection)
        assert set(ids) == {str(row["id"])}
        with pytest.raises(Duplicate) as told:
            await instances.trigger(scope, "publish", None, Once("click-1", b"{}"))
        assert told.value.extra["state"] == "INIT"
        assert await trigger(scope, "click-2") != ids[0]


async def test_C20_C56_a_key_used_with_another_body_is_refused(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.node(connection)
        await trigger(scope, "click-1", b'{"a": 1}')

        with pytest.raises(Invalid, match="another body"):
            await trigger(scope, "click-1", b'{"a": 2}')

        assert len(await live_rows(connection)) == 1


async def test_C20_a_request_that_failed_leaves_its_key_free(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        with pytest.raises(DispatcherDown):
            await trigger(scope, "click-1")
        await make.node(connection)

        await trigger(scope, "click-1")

        assert len(await live_rows(connection)) == 1


@pytest.mark.parametrize("key", ["", "a" * 256, "ä", "a\nb"])
async def test_a_key_that_is_no_key_is_refused(url: str, key: str):
    async with make.scope(url) as scope:
        await make.job(scope)

        with pytest.raises(Invalid):
            await trigger(scope, key)
