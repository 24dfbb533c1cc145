"""A real HTTP target for tests: it logs every hit, answers as scripted, and counts what took effect.

In the test's own loop:

    async with Receiver() as receiver:
        receiver.on("/hook", Answer(503), Answer(200))     # in this order; the last one repeats
        ...
        await receiver.wait_for(2)
        assert receiver.duplicates == []

As a process of its own, for fault tests: `python -m tests.support.receiver --port 0 --log hits.jsonl` prints its port and
appends one JSON line per hit. A path without a script answers as its query asks: `/hook?status=503&delay=0.2`,
`/hook?manner=hang`.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO, cast
from urllib.parse import unquote

from aiohttp import web

Manner = Literal["answer", "hang", "hold", "drop", "drip"]


@dataclass(frozen=True)
class Answer:
    """The answer of the receiver to one hit: after `delay` seconds, in its `manner`."""

    status: int = 200
    json: object = None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    manner: Manner = "answer"

    @property
    def is_success(self) -> bool:
        """Return true if the work is done at this hit (202: not yet)."""
        result = self.json.get("result") if isinstance(self.json, dict) else None
        failed = isinstance(result, str) and result.startswith("FAIL")
        return self.manner != "drop" and 200 <= self.status < 300 and self.status != 202 and not failed

    def content(self) -> bytes:
        return self.body if self.json is None else json.dumps(self.json).encode()


HANG = Answer(manner="hang", status=504)
"""Never answers, and does nothing."""
HOLD = Answer(manner="hold")
"""Answers when the test calls `let_go`."""
DROP = Answer(manner="drop")
"""Closes the connection without an answer."""
DRIP = Answer(manner="drip")
"""Sends its headers, then a byte now and then, for ever."""


def redirect(to: str) -> Answer:
    return Answer(307, headers={"Location": to})


@dataclass(frozen=True)
class Hit:
    """One request, as it came. `headers` have lower-case names; `peer` is the port it came from."""

    at: float
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    peer: int
    status: int
    is_effective: bool

    @property
    def unit(self) -> str:
        return unquote(self.headers.get("horai-unit", ""))

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def line(self) -> str:
        names = {"key": "idempotency-key", "attempt": "horai-attempt", "fence": "horai-fence"}
        told = {name: self.headers.get(header) for name, header in names.items()}
        mine = {"at": self.at, "path": self.path, "unit": self.unit, "status": self.status}
        return json.dumps(mine | told | {"effective": self.is_effective})


class Receiver:
    """A receiver on 127.0.0.1, while it is entered. It decides, counts and logs its answer as a hit arrives."""

    def __init__(self, *, port: int = 0, log: TextIO | None = None) -> None:
        self.hits: list[Hit] = []
        self.effective: dict[str, Hit] = {}
        """By unit: the first success, the one that counts."""
        self.duplicates: list[Hit] = []
        """Further successes of a unit that had one."""
        self.port = port
        self._log = log
        self._scripts: dict[str, list[Answer]] = {}
        self._arrived = asyncio.Condition()
        self._closing = asyncio.Event()
        self._is_let_go = asyncio.Event()
        self._runner: web.AppRunner | None = None

    def on(self, path: str, *answers: Answer) -> None:
        """Script `path`: the answers in turn, the last one for good."""
        self._scripts[path] = list(answers)

    def let_go(self) -> None:
        """Answer what is held, and from now on at once."""
        self._is_let_go.set()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def wait_for(self, hits: int, timeout: float = 30.0) -> list[Hit]:
        """The hits, as soon as there are that many."""
        async with asyncio.timeout(timeout), self._arrived:
            await self._arrived.wait_for(lambda: len(self.hits) >= hits)
        return self.hits

    async def __aenter__(self) -> "Receiver":
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        self.let_go()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        answer = self._answer_to(request)
        await self._count(request, body, answer)
        await self._pause(answer.delay if answer.manner != "hang" else None)
        if answer.manner == "hold":
            await self._is_let_go.wait()
        match answer.manner:
            case "answer" | "hang" | "hold":
                kind = {} if answer.json is None else {"Content-Type": "application/json"}
                return web.Response(status=answer.status, body=answer.content(), headers={**kind, **answer.headers})
            case "drop":
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            case "drip":
                return await self._drip(request, answer)

    def _answer_to(self, request: web.Request) -> Answer:
        script = self._scripts.get(request.path)
        if script:
            return script.pop(0) if len(script) > 1 else script[0]
        asked = request.query
        manner = cast("Manner", asked.get("manner", "answer"))
        return Answer(int(asked.get("status", "200")), delay=float(asked.get("delay", "0")), manner=manner)

    async def _count(self, request: web.Request, body: bytes, answer: Answer) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        unit = unquote(headers.get("horai-unit", ""))
        effective = answer.is_success and unit not in self.effective
        peer = request.transport.get_extra_info("peername")[1] if request.transport is not None else 0
        hit = Hit(time.time(), request.method, request.raw_path, headers, body, peer, answer.status, effective)
        if effective:
            self.effective[unit] = hit
        elif answer.is_success:
            self.duplicates.append(hit)
        async with self._arrived:
            self.hits.append(hit)
            self._arrived.notify_all()
        if self._log is not None:
            self._log.write(hit.line() + "\n")
            self._log.flush()

    async def _pause(self, seconds: float | None) -> None:
        """Sleep, for ever without `seconds`; closing ends it."""
        if seconds == 0:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _drip(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        await response.prepare(request)
        while not self._closing.is_set():
            try:
                await response.write(b" ")
            except ConnectionError:
                break
            await self._pause(0.05)
        return response


async def serve(port: int, log: Path) -> None:
    """Until killed."""
    with log.open("a") as lines:
        async with Receiver(port=port, log=lines) as receiver:
            print(receiver.port, flush=True)
            await asyncio.Event().wait()


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.receiver")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args(list(arguments) if arguments is not None else None)
    asyncio.run(serve(options.port, options.log))


if __name__ == "__main__":
    main()
