"""The built console: every path without a route is a page of it.

The build is not in git. Without it the API still runs, and `/` and the log name the command that builds it.
"""

import mimetypes
import secrets
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import structlog
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

log = structlog.get_logger(__name__)

BUILT = Path(__file__).resolve().parent.parent / "console"
NONCE = "HORAI_NONCE"
"""The placeholder in index.html for the nonce of a response (console/vite.config.ts)."""

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' 'nonce-{NONCE}'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
"""Allow only our own scripts and styles; the few style elements made at run time carry the nonce of the page."""

MISSING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Horai</title></head>
<body><h1>Horai</h1><p>The scheduler is running, but its console has not been built.</p>
<p>In a clone of the repository, <code>make install</code> builds it; then start Horai again. Until then:</p>
<ul><li><a href="/api/v1/scheduler/health">health</a></li><li><a href="/api/v1/jobs">jobs</a></li>
<li><a href="/api/v1/instances">instances</a></li><li><a href="/openapi.json">openapi.json</a></li></ul></body></html>
"""


SUFFIXES = {"br": ".br", "gzip": ".gz"}
"""The content encodings of packed copies and the suffixes of their files, smallest first."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the console, plain and packed. Only names in static/ carry a hash of their content."""

    body: bytes
    packed: Mapping[str, bytes]
    """The packed copies by their content encodings, smallest first."""
    media_type: str
    is_hashed: bool


class Console:
    """The application that answers when no route matches.

    All files are read at the start: no path can lead out of the folder, and a process serves the console of its own
    version, even after another version is installed in the same place.
    """

    def __init__(self, folder: Path | None = None, *, otherwise: ASGIApp) -> None:
        self._files = dict(_built() if folder is None else _files_in(folder))
        index = self._files.pop("/index.html", None)
        self._page = None if index is None else index.body.decode()
        if self._page is None:
            log.warning("The console has not been built.", hint="`make install` in a clone of the repository builds it")
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a file or the page, or pass the request on to `otherwise`."""
        answer = self._answer(scope) if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} else None
        await (answer or self._otherwise)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        path, headers = scope["path"], Headers(scope=scope)
        if path in self._files:
            return _file(self._files[path], _accepted(headers.get("accept-encoding", "")))
        is_page = path == "/" or "text/html" in headers.get("accept", "")
        if not is_page or path.startswith(("/api/", "/static/")):
            return None
        return HTMLResponse(MISSING, headers={"Cache-Control": "no-store"}) if self._page is None else _page(self._page)


@cache
def _built() -> dict[str, _File]:
    """Return the files of the build, read once per process."""
    return _files_in(BUILT)


def _files_in(folder: Path) -> dict[str, _File]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in SUFFIXES.values())
    return {f"/{path.relative_to(folder).as_posix()}": _read(path) for path in found}


def _read(path: Path) -> _File:
    copies = {encoding: path.with_name(path.name + suffix) for encoding, suffix in SUFFIXES.items()}
    packed = {encoding: copy.read_bytes() for encoding, copy in copies.items() if copy.exists()}
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return _File(path.read_bytes(), packed, media_type, path.parent.name == "static")


def _accepted(header: str) -> set[str]:
    """Return the content encodings that an Accept-Encoding header names, without those that it refuses by `q=0`."""
    named = [entry.replace(" ", "").lower().partition(";q=") for entry in header.split(",")]
    return {encoding for encoding, _, weight in named if not weight or set(weight) - {"0", "."}}


def _page(text: str) -> Response:
    """Return the one page of the console. Browsers may not cache it: it names the files of this version."""
    nonce = secrets.token_urlsafe(18)
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": POLICY.replace(NONCE, nonce)}
    return HTMLResponse(text.replace(NONCE, nonce), headers=headers)


def _file(file: _File, accepted: Container[str]) -> Response:
    """Return a file. Browsers cache names with a hash for a year and revalidate the others."""
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if file.is_hashed else "no-cache",
        "Vary": "Accept-Encoding",
    }
    for encoding, packed in file.packed.items():
        if encoding in accepted:
            return Response(packed, headers=headers | {"Content-Encoding": encoding}, media_type=file.media_type)
    return Response(file.body, headers=headers, media_type=file.media_type)
