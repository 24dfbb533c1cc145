"""Published heads of the audit log: a log line for each seal, a line in a file, and a POST to a URL.

A head covers all seals before it. So the URL needs the newest head only: if it does not answer, the next try sends the
newest one. A file or URL that fails stops no sealing.
"""

import json
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import structlog

from horai.features.audit.store import StoredSeal

log = structlog.get_logger(__name__)

POST_TIMEOUT = aiohttp.ClientTimeout(total=5)
PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)


class HeadPublisher:
    """Publishes the heads that one process has sealed."""

    def __init__(self, file: str | None, url: str | None) -> None:
        self._file = file
        self._url = url
        self._unsent: str | None = None
        self._pause = PAUSE
        self._ready_at: datetime | None = None

    def publish(self, made: StoredSeal) -> None:
        """Log the head, add it to the file, and remember it for the URL."""
        seal, signed = made.seal, None if made.signature is None else f"{made.key_id}:{made.signature.hex()}"
        log.info("audit rows sealed", head=seal.head, rows=seal.rows, signature=signed)
        line = json.dumps(
            {"head": seal.head, "rows": seal.rows, "sealedAt": seal.sealed_at.isoformat(), "signature": signed}
        )
        if self._file is not None:
            self._add_to_file(self._file, line, seal.head)
        if self._url is not None:
            self._unsent = line

    def _add_to_file(self, file: str, line: str, head: str) -> None:
        try:
            with Path(file).open("a", encoding="utf-8") as heads:
                heads.write(line + "\n")
        except OSError as error:
            log.error("audit head not written to its file", file=file, head=head, error=str(error))

    async def send(self, now: datetime) -> datetime | None:
        """Send the newest head to the URL. Return the time of the next try; None if no head is left to send."""
        if self._url is None or self._unsent is None:
            return None
        if self._ready_at is not None and now < self._ready_at:
            return self._ready_at
        failure = await _post(self._url, self._unsent)
        if failure is None:
            self._unsent, self._ready_at, self._pause = None, None, PAUSE
            return None
        log.error("audit head not sent to its URL", host=urlsplit(self._url).hostname, error=failure)
        self._ready_at = now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return self._ready_at


async def _post(url: str, line: str) -> str | None:
    """Return the reason of a failure. The URL may hold a password: the reason does not name it."""
    headers = {"Content-Type": "application/json"}
    try:
        async with (
            aiohttp.ClientSession(timeout=POST_TIMEOUT) as session,
            session.post(url, data=line, headers=headers, allow_redirects=False) as answer,
        ):
            return None if 200 <= answer.status < 300 else f"HTTP {answer.status}"
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        return type(error).__name__
