"""A source that is read over HTTP: one GET per page, with the same address rules as callbacks.

Messages name the problem, never a URL, a header or a part of the response: any of them may contain a secret.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
from yarl import URL

from horai.core.addresses import TenantReach, why_refused
from horai.core.jsontext import JsonError, parse_json
from horai.core.limits import BATCH_BODY_LIMIT
from horai.engine.executors.dial import AddressRefused
from horai.features.reconcile.definition import HttpSource
from horai.features.reconcile.rules import Faulty, Row, read_row
from horai.features.reconcile.sql_source import SourceFault

TIMEOUT = 30.0
CURSOR_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class SourceReach:
    """The tenant of a reconciler, and the addresses that its sources may have."""

    tenant: str
    reach: TenantReach

    def why_refused(self, refused: AddressRefused) -> str:
        """Return why the address of a source was refused."""
        return why_refused(self.tenant, self.reach, refused.is_loopback)


class PagedAddress:
    """A source that reads its rows from an HTTP address, page by page."""

    def __init__(self, session: aiohttp.ClientSession, source: HttpSource, reach: SourceReach) -> None:
        self._session = session
        self._source = source
        self._reach = reach

    async def page(self, cursor: str | None, limit: int) -> tuple[list[Row], str | None]:
        """Return the rows after `cursor`, and the next cursor; None after the last page."""
        try:
            async with asyncio.timeout(TIMEOUT):
                status, body = await self._get(cursor, limit)
        except TimeoutError as error:
            raise SourceFault(f"the source did not answer in full within {TIMEOUT:g} s") from error
        except AddressRefused as error:
            raise SourceFault(f"the source {self._reach.why_refused(error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise SourceFault(f"the source could not be read: {type(error).__name__}") from error
        if status != 200:
            raise SourceFault(f"the source answered {status}")
        return await asyncio.to_thread(_read, body, cursor, limit)

    async def _get(self, cursor: str | None, limit: int) -> tuple[int, bytes]:
        asked = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
        url = URL(self._source.url, encoded=True).update_query(asked)
        headers = {**self._source.headers, "Accept": "application/json", "Accept-Encoding": "identity"}
        async with self._session.get(url, headers=headers, allow_redirects=False) as response:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > BATCH_BODY_LIMIT:
                    raise SourceFault(f"a page is larger than {BATCH_BODY_LIMIT} bytes")
            return response.status, bytes(body)


def _read(body: bytes, cursor: str | None, limit: int) -> tuple[list[Row], str | None]:
    try:
        answer = parse_json(body)
    except JsonError as error:
        raise SourceFault(f"the response cannot be read: {error}") from error
    items: Any = cast("dict[str, Any]", answer).get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise SourceFault("the response is not an object with a list `items`")
    rows = cast("list[Any]", items)
    if len(rows) > limit:
        raise SourceFault(f"a page has more than the {limit} items requested")
    following = cast("dict[str, Any]", answer).get("nextCursor")
    return [_row(item) for item in rows], _next(following, cursor)


def _next(following: object, cursor: str | None) -> str | None:
    if following is None:
        return None
    if not isinstance(following, str) or not 0 < len(following) <= CURSOR_LIMIT:
        raise SourceFault(f"nextCursor is not a string of 1 to {CURSOR_LIMIT} characters")
    if following == cursor:
        raise SourceFault("nextCursor is the cursor of the page itself: the source does not advance")
    return following


def _row(item: object) -> Row:
    if not isinstance(item, dict):
        return Faulty(None, "is not an object")
    return read_row(cast("dict[str, Any]", item))
