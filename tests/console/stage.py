"""A `horai up` for the browser tests, a second one that they can stop and start again, one alone, and two that ask for keys.

One of these signs users in with an identity provider, at another host name than its own: a browser takes it for
another site.
"""

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.request import Request, urlopen

import archive_yard as yard
import make
import psycopg
from databases import superuser
from harness import HoraiProcess, Launched, start_interpreter
from identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider

from horai.embedded import url_of
from horai.embedded.admin import admin_url
from horai.features.archive.archiving import archive_partition


def free_port() -> int:
    """Return a port that is free now: the server must come back where it was."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Worker:
    """A process that runs the functions of `talking_app`."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self._arguments = ("worker", "talking_app:app", "--data-dir", str(data_dir))
        self._log = data_dir.parent / "worker.log"
        self._environment = {**os.environ, **environment}
        self._process: Launched | None = None

    def start(self) -> Self:
        self._process = start_interpreter(self._arguments, self._environment, self._log)
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)
            if self._process.stdout is not None:
                self._process.stdout.close()


class Outage:
    """A second server that comes and goes, so that the tests of the first are not disturbed."""

    def __init__(self, data_dir: Path) -> None:
        self._horai = HoraiProcess(data_dir, "--port", str(free_port()))
        self.is_up = False

    def start(self) -> None:
        """Start the server, unless an earlier test has left it running."""
        if not self.is_up:
            self._horai.start()
        self.is_up = True

    def stop(self) -> None:
        if self.is_up:
            self._horai.stop()
        self.is_up = False

    def let_write(self, *, may_write: bool) -> None:
        """Make the database of the server read-only, as that of a demoted primary is, or writable again."""
        with psycopg.connect(admin_url(url_of(self._horai.data_dir)), autocommit=True) as connection:
            connection.execute(f"alter system set default_transaction_read_only = {'off' if may_write else 'on'}")
            connection.execute("select pg_reload_conf()")

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


def archived_day(horai: HoraiProcess, root: Path) -> date:
    """Archive a day of the past with 25 instances of the job `publish`."""
    day = yard.ago(20)

    async def archive() -> None:
        url = url_of(horai.data_dir)
        connection = await superuser(admin_url(url), "horai visits")
        async with make.scope(url) as scope:
            part = await yard.history(connection, await make.job(scope), day, 25)
        await archive_partition(connection, await yard.place(connection, root), part)
        await connection.execute(f"drop table horai.instance_history_{day:%Y%m%d}")
        await connection.close()

    asyncio.run(archive())
    return day


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

    def make_read_only() -> str:
        outage.let_write(may_write=False)
        return outage.base

    def make_writable() -> str:
        outage.let_write(may_write=True)
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

    def start_alone() -> str:
        """Return the address of a server for tests that look at everything on it."""
        alone = HoraiProcess(place / "alone").start()
        opened.callback(alone.stop)
        only_report(alone.base)
        return alone.base

    def start_worker() -> str:
        """Run the functions of `talking_app` on the database of the shared server; return the name of its job."""
        worker = Worker(place / "shared", PYTHONPATH=str(Path(__file__).parent)).start()
        opened.callback(worker.stop)
        return "talk"

    def start_durable() -> str:
        """Return the address of a server that also runs durable functions."""
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        durable = HoraiProcess(place / "durable", "--app", "console.durable_app:app", PYTHONPATH=path).start()
        opened.callback(durable.stop)
        only_report(durable.base)
        return durable.base

    def start_archive() -> str:
        """Return the address of a server with an archive, and a day that it has 25 instances of."""
        kept = HoraiProcess(place / "archived", "--archive-dir", str(place / "archive")).start()
        opened.callback(kept.stop)
        return f"{kept.base} {archived_day(kept, place / 'archive')}"

    doings = {
        "/stop": stop,
        "/start": start,
        "/read-only": make_read_only,
        "/writable": make_writable,
        "/closed": start_closed,
        "/users": start_users,
        "/alone": start_alone,
        "/worker": start_worker,
        "/durable": start_durable,
        "/archive": start_archive,
    }

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
