"""Horai as the service knows it: a handful of requests of its REST API, and nothing of its tables."""

from typing import Any

import aiohttp

from .articles import Article, Status

AUDIT, PUBLISH = "article_audit", "article_publish"
TIMEOUT = aiohttp.ClientTimeout(total=5)


class Unreachable(Exception):
    """Horai did not take it in; it can be told again."""


class Scheduler:
    """Tells Horai what the service wants it to try, and when."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session = session
        self._server = server

    async def declare(self, job: str, url: str) -> None:
        """A job that calls `url`. One that is there already is pointed to it."""
        target = {"type": "http", "url": url}
        if await self._request("POST", "/api/v1/jobs", {"name": job, "target": target, "timeout": "5s"}) == 409:
            await self._request("PATCH", f"/api/v1/jobs/{job}", {"target": target})

    async def tell(self, article: Article) -> None:
        """Tell Horai the current intent for an article. The request is idempotent: ten calls have the effect of one.

        The publish task of an article is one unit, `(article:42, article_publish)`. Its version is the article's: of
        two changes that overtake each other the later one stays. `again`, because the article and not the last call
        says whether there is something left to do: that one may have come for an older version, and done nothing.
        """
        key = f"article:{article.id}"
        payload = {"articleId": article.id, "version": article.version}
        wish: dict[str, Any] = {"payload": payload, "version": article.version, "again": True}
        match article.status:
            case Status.AUDITING:
                await self._request("PUT", f"/api/v1/jobs/{AUDIT}/instances/{key}", wish)
            case Status.AUDIT_SUCCESS:
                wish["executeTime"] = article.publish_at.isoformat()
                await self._request("PUT", f"/api/v1/jobs/{PUBLISH}/instances/{key}", wish)
            case Status.WITHDRAWN:  # 404: there is nothing to cancel
                for job in (AUDIT, PUBLISH):
                    await self._request("DELETE", f"/api/v1/jobs/{job}/instances/{key}")
            case _:
                return

    async def _request(self, method: str, path: str, body: Any = None) -> int:
        try:
            async with self._session.request(method, self._server + path, json=body, timeout=TIMEOUT) as response:
                if response.status >= 500 or response.status in {400, 401, 403, 422, 429}:
                    raise Unreachable(f"{method} {path} was answered with {response.status}: {await response.text()}")
                return response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unreachable(f"{method} {path} was not answered: {error!r}") from error
