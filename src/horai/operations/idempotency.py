"""A write with an Idempotency-Key: its key, its effect and its answer are one transaction.

The transaction begins with the first statement of the request, and takes the key first. The rest of the request happens
within it: its own transactions become savepoints, and its wakes wait for the commit. So a crash, a lost connection or a
lost answer to COMMIT leaves all three or none of them, and a repeat finds out which.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from horai.core.encryption import Place
from horai.core.errors import Conflict, Duplicate
from horai.core.sealed_values import envelope_in, envelope_text
from horai.db import idempotency
from horai.db.idempotency import KeptAnswer, RequestKey
from horai.db.pool import AnyRead, AnyWrite, Lender, Plans
from horai.db.wakeups import HeldWakeups
from horai.operations import request_keys
from horai.operations.readable_values import may_read
from horai.operations.request_keys import Once
from horai.operations.scope import AnyScope, PlatformScope, Scope
from horai.text import Hint, Refused

SEALED_ANSWER = "horai-sealed"
"""The stored header of an answer whose body is an envelope. It is never sent."""
LONGEST = 2.0
"""Seconds after which a keyed request takes no further pages: its locks are held until its end."""


S = TypeVar("S", Scope, PlatformScope)


class RepeatedRequest(Exception):
    """The key was used before, by a request that has ended."""

    def __init__(self, answer: KeptAnswer) -> None:
        super().__init__()
        self.answer = answer


class Keyed:
    """The one transaction of a request. It commits on exit, or rolls back after an exception.

    `sent` is called with the first statement, when the request has been read. It returns None if the request writes
    nothing and needs no key.
    """

    def __init__(self, verb: str, sent: Callable[[], Once | None]) -> None:
        self._verb = verb
        self._sent = sent
        self._stack = AsyncExitStack()
        self._open: tuple[AnyWrite, RequestKey] | None = None
        self._scope: AnyScope | None = None
        self._wakeups: HeldWakeups | None = None

    def bind(self, scope: S) -> S:
        """Return a copy of the caller's scope whose statements all run in this transaction."""
        self._wakeups, self._scope = HeldWakeups(scope.wakeups), scope
        return replace(scope, pool=_Lender(scope, self), wakeups=self._wakeups, longest=min(LONGEST, scope.longest))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
        if error is None and self._wakeups is not None:
            self._wakeups.release()

    async def connection(self, scope: AnyScope) -> AnyWrite | None:
        """Return the transaction's connection, and begin it if needed. Return None if the request writes nothing."""
        if self._open is None and (once := self._sent()) is not None:
            self._open = await self._begin(scope, request_keys.request_key(scope, self._verb, once))
        return None if self._open is None else self._open[0]

    async def _begin(self, scope: AnyScope, request: RequestKey) -> tuple[AnyWrite, RequestKey]:
        connection = await self._stack.enter_async_context(scope.write(Plans.FRESH))
        if not await request_keys.take(connection, scope, request):
            raise RepeatedRequest(await _first_answer(connection, scope, request))
        return connection, request

    async def keep(self, answer: KeptAnswer) -> None:
        """Store the answer with the key, sealed if it has values of encrypted jobs. Do nothing without a key."""
        if self._open is not None:
            connection, request = self._open
            if self._scope is not None and self._scope.disclosure.is_made:
                answer = await _sealed(connection, self._scope, request, answer)
            await idempotency.keep_answer(connection, request, answer)


class _Lender(Lender[AnyWrite]):
    """A stand-in for the pool of a scope that lends the connection of the transaction."""

    def __init__(self, scope: AnyScope, keyed: Keyed) -> None:
        self._scope = scope
        self._keyed = keyed

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[AnyWrite]:
        shared = await self._keyed.connection(self._scope)
        if shared is not None:
            yield shared
            return
        async with self._scope.write(Plans.FRESH, autocommit=True) as connection:
            yield connection


async def _first_answer(connection: AnyRead, scope: AnyScope, request: RequestKey) -> KeptAnswer:
    first = await idempotency.key_holder(connection, request)
    if first is not None and not await request_keys.has_its_body(connection, scope, request, first):
        raise request_keys.another_body(request)
    if first is None or first.answer is None:  # it expired between two statements
        raise Conflict(Refused.KEY_IN_FLIGHT(key=request.key), Hint.REPEAT_SOON(), extra={"retryAfter": "1"})
    return await _opened(connection, scope, request, first.answer)


def _place(request: RequestKey) -> Place:
    return ("idempotency key", request.scope, request.key)


async def _sealed(connection: AnyWrite, scope: AnyScope, request: RequestKey, answer: KeptAnswer) -> KeptAnswer:
    envelope = await scope.keyring.seal(connection, scope.tenant_id, _place(request), answer.body.decode())
    return replace(answer, headers={**answer.headers, SEALED_ANSWER: "1"}, body=envelope_text(envelope).encode())


async def _opened(connection: AnyRead, scope: AnyScope, request: RequestKey, answer: KeptAnswer) -> KeptAnswer:
    """Return a stored answer. Raises `KeyUnavailable` if it is sealed and its data key was erased."""
    if SEALED_ANSWER not in answer.headers:
        return answer
    if not may_read(scope):  # the first request was that of a caller who may see more
        raise Duplicate(Refused.KEY_USED(key=request.key), Hint.NOTHING_AGAIN(), extra={"idempotencyKey": request.key})
    text = await scope.keyring.open(connection, scope.tenant_id, _place(request), envelope_in(answer.body.decode()))
    headers = {name: value for name, value in answer.headers.items() if name != SEALED_ANSWER}
    return replace(answer, headers=headers, body=text.encode())
