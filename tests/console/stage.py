"""A `horai up` for the browser tests, a second one that they can stop and start again, and two that ask for keys.

One of these signs users in with an identity provider, at another host name than its own: a browser takes it for
another site.
"""

import asyncio
import json
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

from harness import HoraiProcess
from identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider


def free_port() -> int:
    """Return a port that is free now: the server must come back where it was."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Outage:
    """A second server that comes and goes, so that the tests of the first are not disturbed."""

    def __init__(self, data_dir: Path) -> None:
        self._horai = HoraiProcess(data_dir, "--port", str(free_port()))
        self.is_up = False

    def start(self) -> None:
        self._horai.start()
        self.is_up = True

    def stop(self) -> None:
        if self.is_up:
            self._horai.stop()
        self.is_up = False

    @property
    def base(self) -> str:
        """Where it is, or will be again."""
        return self._horai.base


@contextmanager
def provider() -> Generator[IdentityProvider]:
    """An identity provider in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    identities = IdentityProvider("localhost", free_port())
    asyncio.run_coroutine_threadsafe(identities.__aenter__(), loop).result(30)
    try:
        yield identities
    finally:
        asyncio.run_coroutine_threadsafe(identities.__aexit__(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def signing_in(place: Path, issuer: str) -> HoraiProcess:
    """A server that asks for keys and signs users in with the provider."""
    port = str(free_port())
    secret = place / "client-secret"
    secret.write_text(CLIENT_SECRET)
    flags = ("--oidc-issuer", issuer, "--oidc-client-id", CLIENT_ID, "--oidc-client-secret-file", str(secret))
    here = ("--port", port, "--public-url", f"http://127.0.0.1:{port}")
    return HoraiProcess(place / "users", "--require-key", *here, *flags)


def only_report(base: str) -> None:
    """Let the governor only report: visits fail attempts on purpose, and others want their backfills and retries."""
    body = json.dumps({"dryRun": True}).encode()
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{base}/api/v1/scheduler/thresholds", body, headers, method="PUT")) as response:
        assert response.status == 200


@contextmanager
def staged(place: Path, browser: Mapping[str, str]) -> Generator[dict[str, str]]:
    """Start the servers; yield the environment that tells the visits about them and about their browser."""
    horai = HoraiProcess(place / "shared").start()
    only_report(horai.base)
    outage = Outage(place / "outage")
    closed = HoraiProcess(place / "closed", "--require-key")
    opened = ExitStack()

    def start() -> str:
        outage.start()
        return outage.base

    def stop() -> str:
        outage.stop()
        return outage.base

    def start_closed() -> str:
        """Return the address and the first keys of a server that asks for keys."""
        closed.start()
        return " ".join([closed.base, *(line.split(": ")[1].strip() for line in closed.lines[:2])])

    def start_users() -> str:
        """Return the address and the first keys of a server that signs users in; the user is in the group `staff`."""
        identities = opened.enter_context(provider())
        identities.user = {"sub": "ada-1", "name": "Ada", "groups": ["staff"]}
        users = signing_in(place, identities.issuer).start()
        opened.callback(users.stop)
        return " ".join([users.base, *(line.split(": ")[1].strip() for line in users.lines[:2])])

    doings = {"/stop": stop, "/start": start, "/closed": start_closed, "/users": start_users}

    class Control(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = doings[self.path]()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(told.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Silent: pytest shows what matters."""

    control = ThreadingHTTPServer(("127.0.0.1", 0), Control)
    threading.Thread(target=control.serve_forever, daemon=True).start()
    try:
        yield {**browser, "HORAI_URL": horai.base, "HORAI_CONTROL": f"http://127.0.0.1:{control.server_port}"}
    finally:
        control.shutdown()
        control.server_close()
        outage.stop()
        opened.close()
        if closed.base:
            closed.stop()
        horai.stop()
