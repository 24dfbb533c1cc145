"""`horai source nats` as a process: it says when it is ready, ends cleanly, and may die at any moment."""

import asyncio
import os
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import make
from adapters import NatsAdapter
from changes_made import START, move, planned, until
from forked import Forked
from nats_server import NatsServer, publisher

from horai.db.pool import Platform
from horai.db.verify import verify

ACK_WAIT = timedelta(seconds=1)
"""After which the server delivers again what a dead source has not acknowledged."""


@contextmanager
def forked(arguments: Sequence[str], log: Path, script: str | None = None, **environment: str) -> Generator[Forked]:
    """A process that is gone in the end."""
    log.touch()
    process = Forked(arguments, {**os.environ, **environment}, log, script)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def first_line(process: Forked) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@contextmanager
def source_process(url: str, adapter: NatsAdapter, *arguments: str, log: Path) -> Generator[Forked]:
    """Returns when it is ready; nothing is left behind."""
    where = ("--url", adapter.server.url, "--stream", adapter.stream, "--subject", adapter.settings.subject)
    command = ("source", "nats", *where, "--job", "publish", *arguments)
    with forked(command, log, HORAI_DATABASE_URL=url) as process:
        assert first_line(process) == (
            f"Horai is ready: source nats:{adapter.stream}, {adapter.settings.subject} "
            f"as {adapter.settings.consumer} for job publish\n"
        ), log.read_text()
        yield process


async def test_a_source_killed_between_commit_and_acknowledgement_repeats_nothing(
    url: str, connection: Platform, nats_server: NatsServer, stream: str, tmp_path: Path
) -> None:
    adapter = NatsAdapter(nats_server, stream, ack_wait=ACK_WAIT)
    async with adapter.opened():
        """The consumer is made with a short patience."""
    async with make.scope(url) as scope:
        await make.job(scope)
    await adapter.publish([{"key": "a", "executeTime": (START + timedelta(minutes=n)).isoformat()} for n in range(5)])
    arguments = (url, nats_server.url, stream, adapter.settings.subject)
    with forked(arguments, tmp_path / "log", "dying_source", PYTHONPATH=str(Path(__file__).parent)) as dying:
        assert await asyncio.to_thread(dying.wait, 30) == -signal.SIGKILL
    assert await planned(connection) == {"a": 4}
    told = await connection.fetchval("select count(*) from horai.event")

    with source_process(url, adapter, log=tmp_path / "log"):

        async def is_done() -> bool:
            async with publisher(nats_server) as jetstream:
                known = await jetstream.consumer_info(stream, adapter.settings.consumer)
            return (known.num_pending, known.num_ack_pending) == (0, 0)

        await until(is_done)

    assert await planned(connection) == {"a": 4}
    assert await connection.fetchval("select count(*) from horai.event") == told


async def test_a_source_killed_again_and_again_loses_no_change(
    url: str, connection: Platform, nats_server: NatsServer, stream: str, tmp_path: Path
) -> None:
    adapter = NatsAdapter(nats_server, stream, ack_wait=ACK_WAIT)
    async with adapter.opened():
        """The consumer is made with a short patience."""
    async with make.scope(url) as scope:
        await make.job(scope)
    changes = [move(f"k{key}", version) for version in range(1, 11) for key in range(100)]
    for part in range(3):
        await adapter.publish(changes[part * 333 : (part + 1) * 333 + part // 2])
        with source_process(url, adapter, "--batch", "20", log=tmp_path / "log") as process:

            async def has_begun() -> bool:
                count = await connection.fetchval("select count(*) from horai.source_event")
                return count > part * 333  # noqa: B023

            await until(has_begun)
            process.send_signal(signal.SIGKILL)
    with source_process(url, adapter, log=tmp_path / "log") as process:

        async def is_done() -> bool:
            return await connection.fetchval("select count(*) from horai.source_event") == 1000

        await until(is_done)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0

    assert await planned(connection) == {f"k{key}": 10 for key in range(100)}
    assert not [finding for finding in await verify(connection) if finding.violations]


def test_a_source_without_its_stream_says_what_to_do(
    url: str, nats_server: NatsServer, stream: str, tmp_path: Path
) -> None:
    flags = ("--url", nats_server.url, "--stream", stream, "--subject", "a", "--database-url", url)
    with forked(("source", "nats", *flags), tmp_path / "log") as process:
        assert first_line(process) == ""
        assert process.wait(timeout=30) == 1

    assert (tmp_path / "log").read_text().splitlines()[-2:] == [
        f"error: There is no stream {stream!r}.",
        "hint: Create it, or use --create-stream.",
    ]


async def test_the_secret_in_an_address_may_come_from_a_file(
    url: str, nats_server: NatsServer, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "url").write_text(nats_server.url + "\n")
    environment = {"HORAI_DATABASE_URL": url, "HORAI_NATS_URL_FILE": str(tmp_path / "url")}
    command = ("source", "nats", "--stream", stream, "--subject", f"{stream}.a", "--create-stream")
    with forked(command, tmp_path / "log", **environment) as process:
        assert first_line(process).startswith("Horai is ready: source ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
