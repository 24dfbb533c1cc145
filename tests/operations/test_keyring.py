"""The keyring of a process: for how long it opens values, what it forgets when keys are erased, and its digests."""

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

import asyncpg
import make
import pytest
from ears import ear

from horai.core.encryption import KeyEncryptionKey
from horai.core.errors import Invalid, KeyUnavailable
from horai.db import data_keys
from horai.db.idempotency import KeptAnswer
from horai.db.pool import Platform, acquire
from horai.db.wakeups import Wakeups
from horai.operations.idempotency import Keyed, RepeatedRequest
from horai.operations.keyring import REMEMBERED_SECONDS, Keyring
from horai.operations.request_keys import Once
from horai.operations.scope import Scope

KEY = KeyEncryptionKey(bytes(range(32)))
PLACE = ("test",)
ANSWER = KeptAnswer(200, {}, b"{}")


class HandTime:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def sealed(scope: Scope, keyring: Keyring) -> dict[str, Any]:
    async with scope.write() as connection:
        return await keyring.seal(connection, scope.tenant_id, PLACE, "hunter2")


async def test_C42c_a_keyring_opens_with_an_erased_key_for_five_seconds_at_most(url: str, connection: Platform) -> None:
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


async def test_C42c_an_erasure_makes_the_keyrings_of_other_processes_forget(url: str, connection: Platform) -> None:
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


async def test_keys_that_are_erased_while_they_are_read_are_read_again(url: str, connection: Platform) -> None:
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


async def test_C42b_a_request_reads_and_adds_data_keys_of_its_tenant_and_changes_none(
    url: str, connection: Platform
) -> None:
    other = await connection.fetchval("insert into horai.tenant (name) values ('second') returning id")
    keyring = Keyring((KEY,))
    async with make.scope(url) as ours:
        envelope = await sealed(ours, keyring)
        theirs = make.of_tenant(ours, other, "second")
        async with theirs.write() as session:
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
                async with ours.write() as session:
                    await session.execute(refused)
        async with ours.write() as session:
            assert await keyring.open(session, 1, PLACE, envelope) == "hunter2"


async def test_the_digests_of_a_tenant_cost_one_query_in_five_seconds(url: str, connection: Platform) -> None:
    time = HandTime()
    keyring = Keyring((KEY,), time)
    async with make.scope(url) as scope:
        await sealed(scope, keyring)
    asked: list[str] = []
    with connection.query_logger(lambda query: asked.append(query.query)):
        digests = [await keyring.digest(connection, 1, PLACE, b"body") for _ in range(3)]
        time.now += REMEMBERED_SECONDS
        digests += [await keyring.digest(connection, 1, PLACE, b"body") for _ in range(3)]
        await connection.execute("select 1")  # the logger is called after the queries before it

    assert len([text for text in asked if "horai.data_key" in text]) == 2
    (digest,) = set(digests)
    assert digest is not None
    assert await keyring.has_digest(connection, 1, PLACE, b"body", digest)
    assert not await keyring.has_digest(connection, 1, PLACE, b"another", digest)
    assert await Keyring().digest(connection, 1, PLACE, b"body") is None


async def test_a_data_key_that_a_rolled_back_request_made_signs_no_later_digest(url: str, connection: Platform) -> None:
    keyring = Keyring((KEY,), HandTime())
    made = connection.transaction()
    await made.start()
    lost = await keyring.digest(connection, 1, PLACE, b"body")
    await made.rollback()

    digest = await keyring.digest(connection, 1, PLACE, b"body")

    assert digest is not None
    assert digest != lost
    assert await keyring.has_digest(connection, 1, PLACE, b"body", digest)


async def test_C42c_of_a_body_with_a_secret_only_a_keyed_digest_is_stored(url: str, connection: Platform) -> None:
    body, stored = b'{"value": "hunter2"}', "select request_hash from horai.idempotency_key"
    async with make.scope(url) as plain:
        scope = replace(plain, keyring=Keyring((KEY,)))
        async with Keyed("PUT /secrets", lambda: Once("key", body)) as work:
            await make.job(work.bind(scope))
            await work.keep(ANSWER)

        assert hashlib.sha256(body).digest() not in await connection.fetchval(stored)
        assert await repeated(scope, body) == ANSWER
        with pytest.raises(Invalid):
            await repeated(scope, b'{"value": "hunter3"}')
        with pytest.raises(KeyUnavailable):
            await repeated(plain, body)  # a process without the key can tell nothing about the body
        await data_keys.erase_data_keys(connection, 1)
        scope.keyring.forget()
        with pytest.raises(KeyUnavailable):
            await repeated(scope, body)


async def test_C42c_a_repeat_is_recognised_by_the_digest_of_a_process_without_a_key(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as plain:
        async with Keyed("PUT /secrets", lambda: Once("key", b"body")) as work:
            await make.job(work.bind(plain))
            await work.keep(ANSWER)
        stored = await connection.fetchval("select request_hash from horai.idempotency_key")
        assert stored == hashlib.sha256(b"body").digest(), "as earlier versions store it"

        scope = replace(plain, keyring=Keyring((KEY,)))
        assert await repeated(scope, b"body") == ANSWER
        with pytest.raises(Invalid):
            await repeated(scope, b"another")


async def repeated(scope: Scope, body: bytes) -> KeptAnswer:
    """Return the answer to a repeat of the request, which does nothing."""
    with pytest.raises(RepeatedRequest) as caught:
        async with Keyed("PUT /secrets", lambda: Once("key", body)) as work, acquire(work.bind(scope).pool):
            raise AssertionError("the request was served again")
    return caught.value.answer
