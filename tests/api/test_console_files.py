"""The console's files: how they are kept, what a page may do, and what is served without them."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import Client
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import Message
from structlog.testing import capture_logs

from api import expect
from horai.api.console import Console

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Headers
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def policy(self) -> dict[str, str]:
        words = (part.partition(" ") for part in self.headers["content-security-policy"].split("; "))
        return {name: value for name, _, value in words}


class Site:
    """The console of a folder, asked as uvicorn would."""

    def __init__(self, folder: Path) -> None:
        self._app = Starlette()
        self._app.router.default = Console(folder, otherwise=self._app.router.not_found)

    async def __call__(self, path: str, method: str = "GET", **headers: str) -> Answer:
        given = {"accept": BROWSER, **{name.replace("_", "-"): value for name, value in headers.items()}}
        scope = {
            "type": "http", "method": method, "path": path, "query_string": b"", "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }  # fmt: skip
        sent: list[Message] = []

        async def receive() -> Message:
            await asyncio.Event().wait()  # a client that stays
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], Headers(raw=sent[0]["headers"]), body)


@pytest.fixture
def built(tmp_path: Path) -> Site:
    (tmp_path / "static").mkdir()
    (tmp_path / "index.html").write_text('<meta nonce="HORAI_NONCE"><script src="/static/main-1a2b.js"></script>')
    (tmp_path / "static" / "main-1a2b.js").write_text("plain")
    (tmp_path / "static" / "main-1a2b.js.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "static" / "main-1a2b.js.br").write_bytes(b"\x1b")
    (tmp_path / "icon.svg").write_text("<svg/>")
    return Site(tmp_path)


async def test_files_with_a_hash_in_their_name_are_kept_for_good_and_the_page_never(built: Site) -> None:
    assert (await built("/static/main-1a2b.js")).headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (await built("/icon.svg")).headers["cache-control"] == "no-cache"
    assert (await built("/")).headers["cache-control"] == "no-store"


async def test_every_address_that_no_route_has_is_the_page(built: Site) -> None:
    for path in ("/", "/jobs", "/jobs/report.daily", "/instances/12", "/assets", "/assets/s3://lake/sales.json"):
        assert "main-1a2b.js" in (await built(path)).text


async def test_an_unknown_path_or_method_of_the_console_gets_404(built: Site) -> None:
    for path in ("/api/v1/nothing", "/static/gone-99.js", "/static/../../app.py", "/index.html.gz"):
        assert (await built(path, accept="*/*")).status == 404
    assert (await built("/static/gone-99.js")).status == 404
    assert (await built("/jobs", "POST")).status == 404
    assert (await built("/", "HEAD")).status == 200


async def test_no_script_but_our_files_runs_and_no_style_element_without_the_nonce(built: Site) -> None:
    page = await built("/jobs")
    policy = page.policy

    assert policy["script-src"] == "'self'"
    assert (policy["default-src"], policy["base-uri"], policy["frame-ancestors"]) == ("'none'",) * 3
    assert "unsafe" not in page.headers["content-security-policy"]
    (nonce,) = re.findall(r'nonce="([^"]+)"', page.text)
    assert policy["style-src"] == f"'self' 'nonce-{nonce}'"
    assert nonce not in (await built("/jobs")).text


@pytest.mark.parametrize(
    ("accepted", "body", "encoding"),
    [
        ("gzip, br", b"\x1b", "br"),
        ("gzip, deflate", b"\x1f\x8b", "gzip"),
        ("br;q=0, gzip;q=0.5", b"\x1f\x8b", "gzip"),
        ("gzip; q=0.000, Br; q=1", b"\x1b", "br"),
    ],
)
async def test_a_browser_that_can_unpack_gets_the_smallest_file_that_it_accepts(
    built: Site, accepted: str, body: bytes, encoding: str
) -> None:
    packed = await built("/static/main-1a2b.js", accept_encoding=accepted)
    plain = await built("/static/main-1a2b.js", accept_encoding="gzip;q=0, zstd")

    assert (packed.body, packed.headers["content-encoding"]) == (body, encoding)
    assert packed.headers["content-type"].startswith("text/javascript")
    assert (plain.text, plain.headers["vary"]) == ("plain", "Accept-Encoding")
    assert "content-encoding" not in plain.headers


async def test_a_console_that_is_replaced_under_its_server_is_served_as_it_was(tmp_path: Path) -> None:
    script = tmp_path / "static" / "index-1a2b.js"
    script.parent.mkdir()
    script.write_text("first")
    (tmp_path / "index.html").write_text("<title>first</title>")
    site = Site(tmp_path)

    script.unlink()
    (tmp_path / "index.html").write_text("<title>second</title>")

    assert "first" in (await site("/")).text
    assert (await site("/static/index-1a2b.js")).text == "first"


async def test_without_a_build_the_log_and_the_first_page_name_the_command_and_lead_to_what_there_is(
    api: Client, tmp_path: Path
) -> None:
    with capture_logs() as said:
        page = await Site(tmp_path / "nothing")("/")

    assert "make install" in page.text
    assert [("warning", "make install" in line["hint"]) for line in said] == [("warning", True)]
    for link in ("/api/v1/scheduler/health", "/api/v1/jobs", "/api/v1/instances", "/openapi.json"):
        assert f'href="{link}"' in page.text
        assert (await api("GET", link)).status == 200


async def test_an_unknown_path_of_the_api_stays_a_problem(api: Client) -> None:
    for method, path in (("GET", "/api/v1/nothing"), ("POST", "/api/v1/nothing"), ("GET", "/nothing")):
        expect.problem(await api(method, path), 404, "SCH_404_NOT_FOUND")
