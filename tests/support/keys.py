"""Keys of a node under test, and clients that send them."""

from dataclasses import dataclass
from typing import Any

from harness import Client, Reply


@dataclass(frozen=True, slots=True)
class KeyHolder(Client):
    """A client that sends a key with every request."""

    key: str

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        return await Client.__call__(self, method, path, body, **{"Authorization": f"Bearer {self.key}", **headers})

    async def raw(self, method: str, path: str, body: bytes, **headers: str) -> Reply:
        return await Client.raw(self, method, path, body, **{"Authorization": f"Bearer {self.key}", **headers})


def holding(api: Client, key: str) -> KeyHolder:
    """A client of the same server that sends this key."""
    return KeyHolder(api.base, api.session, key)


async def created(ask: Client, role: str, tenant: str | None = None, **fields: Any) -> dict[str, Any]:
    """A new key, as its creator sees it."""
    body = {"role": role, **({} if tenant is None else {"tenant": tenant}), **fields}
    reply = await ask("POST", "/api/v1/keys", body)
    assert reply.status == 201, reply.json
    return reply.json


async def holder(ask: Client, role: str, tenant: str | None = None) -> KeyHolder:
    """A client with a new key of this role."""
    return holding(ask, (await created(ask, role, tenant))["key"])
