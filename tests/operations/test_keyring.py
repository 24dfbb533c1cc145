"""The keyring of a process: for how long it opens values, and what it forgets when data keys are erased."""

import asyncio
from typing import Any

import asyncpg
import make
import pytest
from ears import ear

from horai.core.encryption import KeyEncryptionKey
from horai.core.errors import KeyUnavailable
from horai.db import data_keys
from horai.db.pool import Dedicated, transaction
from horai.db.wakeups import Wakeups
from horai.operations.keyring import REMEMBERED_SECONDS, Keyring
from horai.operations.scope import Scope

KEY = KeyEncryptionKey(bytes(range(32)))
PLACE = ("test",)


class HandTime:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def sealed(scope: Scope, keyring: Keyring) -> dict[str, Any]:
    async with transaction(scope.pool) as connection:
        return await keyring.seal(connection, scope.tenant_id, PLACE, "hunter2")


async def test_C42_a_keyring_opens_with_an_erased_key_for_five_seconds_at_most(url: str, connection: Dedicated) -> None:
    time = HandTime()
    keyring = Keyring((KEY,), time)
    async with make.scope(url) as scope:
        envelope = await sealed(scope, keyring)
    assert await keyring.open(connection, 1, PLACE, envelope) == "hunter2"

    assert await data_keys.erase_data_keys(connection, 1) == 1

    time.now += REMEMBERED_SECONDS - 0.1
    assert await keyring.open(connection, 1, PLACE, envelope) == "hunter2", "nothing has told this keyring"
    time.now += 0.1
    with pytest.raises(KeyUnavailable):
        await keyring.open(connection, 1, PLACE, envelope)
    assert REMEMBERED_SECONDS == 5


async def test_C42_an_erasure_makes_the_keyrings_of_other_processes_forget(url: str, connection: Dedicated) -> None:
    wakeups = Wakeups()
    keyring = Keyring((KEY,), HandTime()).forget_when_erased(wakeups)
    async with make.scope(url) as scope, ear(url) as heard:
        envelope = await sealed(scope, keyring)
        assert await keyring.open(connection, 1, PLACE, envelope) == "hunter2"

        await data_keys.erase_data_keys(connection, 1)
        for wake in await heard.wakes():
            wakeups.deliver(wake)

        with pytest.raises(KeyUnavailable):
            await keyring.open(connection, 1, PLACE, envelope)


async def test_keys_that_are_erased_while_they_are_read_are_read_again(url: str, connection: Dedicated) -> None:
    keyring = Keyring((KEY,), HandTime())
    async with make.scope(url) as scope:
        envelope = await sealed(scope, keyring)
    wanted = [(1, envelope["k"])]
    asked: list[str] = []
    with connection.query_logger(lambda query: asked.append(query.query)):
        loading = asyncio.create_task(keyring.load(connection, wanted))
        await asyncio.sleep(0)  # its query is on its way
        keyring.forget()
        await loading

    assert len([text for text in asked if "horai.data_key" in text]) == 2
    assert keyring.is_fresh(*wanted[0])


async def test_C42_a_request_reads_and_adds_data_keys_of_its_tenant_and_changes_none(
    url: str, connection: Dedicated
) -> None:
    other = await connection.fetchval("insert into horai.tenant (name) values ('second') returning id")
    keyring = Keyring((KEY,))
    async with make.scope(url) as ours:
        envelope = await sealed(ours, keyring)
        theirs = make.of_tenant(ours, other, "second")
        async with transaction(theirs.pool) as session:
            with pytest.raises(KeyUnavailable):
                await Keyring((KEY,)).open(session, 1, PLACE, envelope)
            assert await session.fetchval("select count(*) from horai.data_key") == 0
        for refused in (
            "delete from horai.data_key",
            "update horai.data_key set wrapped = ''",
            "update horai.data_key set tenant_id = 1",
            f"insert into horai.data_key (tenant_id, id, month, wrapped, kek) values ({other}, 'a', now(), '', '')",
            f"insert into horai.secret (tenant_id, name, value) values ({other}, 'a', '{{\"$enc\": 1}}')",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with transaction(ours.pool) as session:
                    await session.execute(refused)
        async with transaction(ours.pool) as session:
            assert await keyring.open(session, 1, PLACE, envelope) == "hunter2"
