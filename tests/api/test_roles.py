"""The matrix of roles: every operation of the OpenAPI document as every role, without a key and with wrong keys."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from harness import Client, node
from keys import KeyHolder, created, holder, holding

from horai.core.access_keys import new_key
from horai.core.roles import SERVES, AccessRole, may_call

ROLES = [str(role) for role in AccessRole]
REFUSED = {401, 403}


class Closed:
    """A server with a key of each role, and the operations of its document."""

    def __init__(self, api: Client, keys: dict[str, KeyHolder], operations: list[tuple[str, str, list[str]]]) -> None:
        self.api = api
        self.keys = keys
        self.operations = operations


@pytest.fixture(scope="module")
def closed(runner: asyncio.Runner, database: str) -> Iterator[Closed]:
    stack = AsyncExitStack()
    api = runner.run(stack.enter_async_context(node(database)))
    yield runner.run(_closed(api))
    runner.run(stack.aclose())


async def _closed(api: Client) -> Closed:
    document = (await api("GET", "/openapi.json")).json
    root = await holder(api, "platform-admin")
    keys = {role: await holder(root, role, "default") for role in ROLES if role != "platform-admin"}
    operations = [
        (method.upper(), re.sub(r"\{\w+\}", "7", path), operation["x-role"])
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    return Closed(api, {**keys, "platform-admin": root}, operations)


async def _status(ask: Client, method: str, path: str) -> int:
    """The status of a call without a body; an event stream is left at once."""
    async with ask.session.request(method, ask.base + path, headers=_headers(ask)) as response:
        return response.status


def _headers(ask: Client) -> dict[str, str]:
    return {"Authorization": f"Bearer {ask.key}"} if isinstance(ask, KeyHolder) else {}


@pytest.mark.parametrize("role", ROLES)
async def test_C42a_each_role_may_call_the_operations_that_the_document_declares_and_no_others(
    closed: Closed, role: str
) -> None:
    wrong: list[Any] = []
    for method, path, served in closed.operations:
        if served == ["public"]:
            continue
        status = await _status(closed.keys[role], method, path)
        allowed = may_call(AccessRole(role), [AccessRole(one) for one in served])
        if allowed == (status in REFUSED):
            wrong.append((method, path, served, status))
    assert wrong == []


async def test_without_a_key_only_public_operations_answer(closed: Closed) -> None:
    found = {(method, path): await _status(closed.api, method, path) for method, path, _ in closed.operations}
    public = {(method, path) for method, path, served in closed.operations if served == ["public"]}
    assert {place for place, status in found.items() if status != 401} <= public
    assert public == {
        ("POST", "/api/v1/session"),
        ("DELETE", "/api/v1/session"),
        ("GET", "/api/v1/session/options"),
        ("GET", "/api/v1/session/oidc"),
        ("GET", "/api/v1/session/oidc/callback"),
    }


@pytest.mark.parametrize("kind", ["revoked", "unknown"])
async def test_a_key_that_is_not_in_force_opens_no_operation(closed: Closed, kind: str) -> None:
    root = closed.keys["platform-admin"]
    key = await created(root, "admin", "default")
    if kind == "revoked":
        await root("DELETE", f"/api/v1/keys/{key['id']}")
    text = key["key"] if kind == "revoked" else new_key().text
    for method, path, served in closed.operations:
        if served != ["public"]:
            assert await _status(holding(closed.api, text), method, path) in {401, 429}, (method, path)


async def test_the_roles_are_ordered_by_what_they_include() -> None:
    for role, included in SERVES.items():
        assert role in included
    assert SERVES[AccessRole.VIEWER] < SERVES[AccessRole.OPERATOR] < SERVES[AccessRole.ADMIN]
    assert SERVES[AccessRole.PLATFORM_ADMIN].isdisjoint(SERVES[AccessRole.ADMIN])
