"""Failed attempts, dead letters and the functions' own `logging` on stderr, as text and as JSON, of real processes."""

import json
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from receiver import Answer, Receiver
from terminal import Terminal
from workers import Shop, WorkerProcess, elsewhere, until

SOURCE = """
import logging

from horai import Horai, Retry, Unrecoverable

app = Horai("shop")
log = logging.getLogger("shop.orders")
once_more = Retry(max=1, base="10ms", jitter="none")


def look_up(order):
    log.info("looking an order up")
    log.debug("in the table of orders")
    raise KeyError("no such order")


@app.job(retry=once_more)
async def waits(order: str) -> None:
    look_up(order)


@app.job(retry=once_more)
def blocks(order: str) -> None:
    look_up(order)


@app.job(retry=once_more, isolation="process")
def apart(order: str) -> None:
    look_up(order)


@app.job
async def refuses(order: str) -> None:
    try:
        look_up(order)
    except KeyError as error:
        raise Unrecoverable("not sold here", tags=["catalogue"]) from error


@app.job
async def works(order: str) -> None:
    return None
"""
SECRET = "card-4111"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop", SOURCE)


def lines_of(worker: WorkerProcess) -> list[dict[str, Any]]:
    """Every line of the log, which must be a JSON object; the last may not be complete yet."""
    return [json.loads(line) for line in worker.log.splitlines(keepends=True) if line.endswith("\n")]


def about(worker: WorkerProcess, job: str, event: str) -> list[dict[str, Any]]:
    return [line for line in lines_of(worker) if line["event"] == event and line.get("job") == job]


@pytest.mark.parametrize("job", ["waits", "blocks", "apart"])
async def test_failed_attempts_and_dead_letters_appear_in_the_json_log_with_traceback(
    url: str, shop: Shop, job: str
) -> None:
    async with elsewhere(url) as jobs:
        with shop.worker(url, "--log-format", "json", "--isolated", "1") as worker:
            worker.started()
            handle = await jobs(job).enqueue(SECRET)
            await until(lambda: about(worker, job, "dead letter"))

            (failed,), (dead,) = about(worker, job, "attempt failed"), about(worker, job, "dead letter")
            own = about(worker, job, "looking an order up")
    assert (failed["level"], failed["attempt"], dead["level"], dead["attempt"]) == ("warning", 1, "error", 2)
    for line in (failed, dead):
        assert line["instance"] == handle.id
        assert line["code"] == "KeyError"
        assert line["error"] == "KeyError: 'no such order'"
        assert "in look_up" in line["exception"]
        assert line["exception"].startswith("Traceback (most recent call last):")
    assert [line["attempt"] for line in own] == [1, 2]
    assert {line["level"] for line in own} == {"info"}
    assert {line["trace"] for line in (failed, dead, *own)} == {failed["trace"]}, "the idempotency key ties them"
    assert SECRET not in worker.log


async def test_failed_attempts_and_dead_letters_appear_in_the_text_log_with_traceback(url: str, shop: Shop) -> None:
    async with elsewhere(url) as jobs:
        with shop.worker(url) as worker:
            worker.started()
            handle = await jobs("blocks").enqueue(SECRET)
            await until(lambda: "dead letter" in worker.log)
            await until(lambda: worker.log.count("KeyError: 'no such order'\n") == 2)
            text = worker.log
    assert "[warning  ] attempt failed" in text
    assert "[error    ] dead letter" in text
    assert text.count("Traceback (most recent call last):") == 2
    assert "looking an order up" in text
    assert "in the table of orders" not in text, "that is debug"
    for line in text.splitlines():
        if "attempt failed" in line or "dead letter" in line or "looking an order up" in line:
            assert f"instance={handle.id}" in line
            assert "job=blocks" in line
            assert "trace=" in line
    assert SECRET not in text


async def test_a_dead_letter_carries_the_errors_that_led_to_it(url: str, shop: Shop) -> None:
    async with elsewhere(url) as jobs:
        with shop.worker(url, HORAI_LOG_FORMAT="json") as worker:
            worker.started()
            await jobs("refuses").enqueue(SECRET)
            await until(lambda: about(worker, "refuses", "dead letter"))

            (dead,) = about(worker, "refuses", "dead letter")
    assert dead["error"] == "horai.sdk.outcomes.Unrecoverable: not sold here"
    assert "KeyError: 'no such order'" in dead["exception"]


@pytest.mark.parametrize(("level", "events"), [("error", {"dead letter"}), ("debug", {"in the table of orders"})])
async def test_the_log_level_bounds_what_is_written(url: str, shop: Shop, level: str, events: set[str]) -> None:
    async with elsewhere(url) as jobs:
        with shop.worker(url, "--log-level", level, "--log-format", "json") as worker:
            worker.started()
            await jobs("waits").enqueue(SECRET)
            await until(lambda: about(worker, "waits", "dead letter"))
            seen = lines_of(worker)
    assert events <= {line["event"] for line in seen}
    if level == "error":
        assert {line["level"] for line in seen} == {"error"}


async def test_a_success_writes_no_line(url: str, shop: Shop) -> None:
    async with elsewhere(url) as jobs:
        with shop.worker(url, "--log-format", "json") as worker:
            worker.started()
            handle = await jobs("works").enqueue(SECRET)
            await handle.result(timeout=30)
            worker.signal(signal.SIGTERM)
            assert worker.ends() == 0
            assert [line["event"] for line in lines_of(worker)] == ["Jobs declared.", "Stopping.", "Stopped."]


@contextmanager
def up(shop: Shop, url: str) -> Generator[tuple[WorkerProcess, str]]:
    """`horai up --app shop` with a JSON log, and the address of its API."""
    arguments = ["up", "--port", "0", "--app", "shop", "--log-format", "json"]
    process = WorkerProcess(shop.place, arguments, {"HORAI_DATABASE_URL": url})
    try:
        yield process, process.ready().removeprefix("Horai is ready: ")
    finally:
        process.kill()


async def test_everything_that_horai_up_writes_is_json_and_a_404_is_a_dead_letter_without_body_or_query(
    url: str, shop: Shop
) -> None:
    async with Receiver() as receiver, elsewhere(url) as jobs, aiohttp.ClientSession() as session:
        receiver.on("/missing", Answer(404, body=b"the body of the answer"))
        receiver.on("/later", Answer(202))
        with up(shop, url) as (process, base):
            await until(lambda: any(line["event"] == "Ready." for line in lines_of(process)))
            await jobs("apart").enqueue(SECRET)
            for name in ("missing", "later"):
                url_of = receiver.url(f"/{name}?token=hidden")
                target = {"type": "http", "url": url_of, "headers": {"Authorization": "Bearer hidden"}}
                job = {"name": name, "target": target, "timeout": "60s", "payload": {"card": SECRET}}
                async with session.post(f"{base}/api/v1/jobs", json=job) as answer:
                    assert answer.status == 201, await answer.text()
                trigger, headers = f"{base}/api/v1/jobs/{name}/trigger", {"Idempotency-Key": name}
                async with session.post(trigger, json={}, headers=headers) as answer:
                    assert answer.status < 300, await answer.text()
            await receiver.wait_for(2)
            (hit,) = [hit for hit in receiver.hits if hit.path.startswith("/later")]
            instance_id = hit.headers["idempotency-key"].rpartition(":")[2]
            told = {"fence": int(hit.headers["horai-fence"]), "result": "FAIL_UNRECOVERABLE", "message": "sold out"}
            async with session.post(f"{base}/api/v1/instances/{instance_id}/outcome", json=told) as answer:
                assert answer.status < 300, await answer.text()
            await until(lambda: all(about(process, job, "dead letter") for job in ("apart", "missing", "later")))

            (missing,), (later,) = about(process, "missing", "dead letter"), about(process, "later", "dead letter")
            log = process.log
    assert missing["code"] == "HTTP_404"
    assert missing["error"] == "the target answered 404 Not Found"
    assert later["error"] == "sold out"
    assert later["trace"] == hit.headers["idempotency-key"]
    for hidden in (SECRET, "hidden", "the body of the answer"):
        assert hidden not in log


@pytest.mark.parametrize("command", ["up", "node", "worker"])
def test_an_unknown_level_or_format_is_refused_with_the_choices(alone: Terminal, command: str) -> None:
    arguments = (command, "shop") if command == "worker" else (command,)
    ended = alone(*arguments, "--log-level", "loud")
    assert ended.code == 2
    assert "debug" in ended.err
    assert alone(*arguments, HORAI_LOG_FORMAT="xml").code == 2
