"""Handles: the state, progress, log, result and end of one instance, by the call that added it or by its id."""

import asyncio
import base64
import os
from typing import Any

import pytest
from rows import until
from working import working

from horai import Handle, Horai, Instance, InstanceCancelled, InstanceFailed, NotFound, Unrecoverable
from horai.db.pool import Platform


class Shop:
    """An application with a function that waits until the test lets it end."""

    def __init__(self, url: str) -> None:
        self.app = Horai("shop", database_url=url)
        self.may_end, self.has_begun = asyncio.Event(), asyncio.Event()

        @self.app.job
        async def export(instance: Instance[int]) -> int:
            instance.log("begins", "warning")
            instance.progress(0.25, "a quarter")
            instance.progress(0.5)
            self.has_begun.set()
            await self.may_end.wait()
            return instance.payload

        @self.app.job
        async def hopeless() -> None:
            raise Unrecoverable("no stock")

        self.export, self.hopeless = export, hopeless


async def test_a_handle_shows_the_instance_while_it_runs_and_is_awaited_for_its_result(url: str) -> None:
    shop = Shop(url)
    async with working(shop.app):
        handle = await shop.export.enqueue(7)
        async with asyncio.timeout(60):
            await shop.has_begun.wait()
        await until(lambda: _has_progress(handle, 0.5))  # notes are written in batches, soon after they are made
        assert await handle.state() == "RUNNING"
        assert [(entry.attempt, entry.level, entry.message) for entry in await handle.logs()] == [
            (1, "WARNING", "begins"), (1, "INFO", "a quarter"),
        ]  # fmt: skip
        shop.may_end.set()
        assert await handle == 7
        assert await asyncio.gather(handle, handle) == [7, 7]
        assert await handle.state() == "SUCCESS"
        assert await handle.cancel() is False


async def test_an_instance_is_found_by_its_id_from_the_application_and_from_its_job(url: str) -> None:
    shop = Shop(url)
    shop.may_end.set()
    async with working(shop.app):
        added = await shop.export.enqueue(7)
        for handle in (shop.app.handle(added.id), shop.export.handle(int(added.id))):
            assert await handle.result("30s") == 7
            assert (handle.job, await handle.state()) == ("export", "SUCCESS")
        failed = await shop.hopeless.enqueue()
        with pytest.raises(InstanceFailed, match="no stock"):
            await shop.app.handle(failed.id)


async def test_an_instance_is_cancelled_by_its_handle(url: str) -> None:
    shop = Shop(url)
    async with shop.app:
        handle = await shop.export.enqueue(7, delay="1h")
        assert await handle.state() == "INIT"
        assert await handle.progress() is None
        assert await handle.logs() == []
        assert await shop.app.handle(handle.id).cancel() is True
        assert await handle.cancel() is True
        assert await handle.state() == "CANCELLED"
        with pytest.raises(InstanceCancelled):
            await handle


async def test_ids_that_are_not_of_this_tenant_or_job_are_told_at_once(url: str, connection: Platform) -> None:
    shop = Shop(url)
    async with shop.app:
        own, moved = await shop.export.enqueue_many([7, 8], delay="1h")
        other = await _instance_of_another_tenant(connection, moved.id)
        for handle in (shop.app.handle(10**15), shop.app.handle(other)):
            for method in (handle.result, handle.state, handle.progress, handle.logs, handle.cancel):
                with pytest.raises(NotFound, match=f"There is no instance {handle.id}"):
                    await method()
        for wrong in ("abc", "-1", ""):
            with pytest.raises(NotFound, match="There is no instance"):
                shop.app.handle(wrong)
        with pytest.raises(NotFound, match=f"The instance {own.id} belongs to the job 'export', not to 'hopeless'"):
            await shop.hopeless.handle(own.id).result()
    assert await connection.fetchval("select state from horai.instance_live where id = $1", other) == 0


async def _has_progress(handle: Handle[Any], progress: float) -> bool:
    return await handle.progress() == progress


async def _has_logs(handle: Handle[Any]) -> bool:
    return bool(await handle.logs())


async def _instance_of_another_tenant(connection: Platform, instance_id: str) -> int:
    tenant = await connection.fetchval("insert into horai.tenant (name) values ('other') returning id")
    await connection.execute("update horai.instance_live set tenant_id = $1 where id = $2", tenant, int(instance_id))
    return int(instance_id)


async def test_every_method_of_a_handle_has_a_form_without_await(url: str) -> None:
    shop = Shop(url)
    shop.may_end.set()

    def story() -> dict[str, Any]:
        handle = shop.export.sync.enqueue(7)
        assert handle.result("30s") == 7
        later = shop.export.sync.put("k", delay="1h", payload=8)
        assert (later.state(), later.progress(), later.logs()) == ("INIT", None, [])
        assert shop.app.handle_sync(later.id).cancel() is True
        with pytest.raises(NotFound):
            shop.app.handle_sync(10**15).state()
        return {"state": shop.export.sync.handle(handle.id).state(), "found": shop.app.handle_sync(handle.id).result()}

    async with working(shop.app):
        assert await asyncio.to_thread(story) == {"state": "SUCCESS", "found": 7}
        shop.app.close_sync()


async def test_the_log_of_an_encrypted_job_is_opened(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(os.urandom(32)).decode())
    app = Horai("shop", database_url=url)

    @app.job(encrypted=True)
    async def charge(instance: Instance[int]) -> int:
        instance.log("card 4711", "ERROR")
        return instance.payload

    async with working(app):
        handle = await charge.enqueue(7)
        assert await handle.result("30s") == 7
        await until(lambda: _has_logs(handle))
        assert [entry[2:] for entry in await handle.logs()] == [("card 4711", "ERROR")]
