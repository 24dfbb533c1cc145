"""`horai alerts` and `horai heartbeats`, against a server and a real receiver."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from receiver import Answer, Receiver
from terminal import Terminal

from horai.cli.views import Document

Found = TypeVar("Found")


@contextmanager
def receiving(*answers: Answer) -> Generator[Receiver]:
    """A receiver in a thread of its own: the terminal waits for its command."""
    ready, done, receiver = threading.Event(), asyncio.Event(), Receiver()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with receiver:
            receiver.on("/hook", *answers)
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield receiver
    finally:
        loops[0].call_soon_threadsafe(done.set)
        thread.join()


def test_a_channel_is_set_tested_and_deleted(horai: Terminal) -> None:
    with receiving(Answer(200), Answer(500)) as receiver:
        made = horai("alerts", "set-channel", "cli", "slack", "--url-file", "-", "--json", stdin=receiver.url("/hook"))
        assert (made.code, made.json["url"], made.json["host"]) == (0, "***", f"127.0.0.1:{receiver.port}")
        sent = horai("alerts", "test", "cli", "--json")
        assert (sent.code, sent.json["status"]) == (0, "DELIVERED")
        failed = horai("alerts", "test", "cli")
        assert (failed.code, failed.err) == (1, "error: The message was not delivered: HTTP 500.\n")
        assert len(receiver.hits) == 2
    changed = horai("alerts", "set-channel", "cli", "slack", "language=zh-CN", "--url-file", "-", "--json", stdin="***")
    assert (changed.json["language"], changed.json["version"]) == ("zh-CN", 2)
    lines = [line.split() for line in horai("alerts", "deliveries", "--channel", "cli").out.splitlines()]
    assert [line[4] for line in lines[1:]] == ["FAILED", "DELIVERED"]
    assert horai("alerts", "delete-channel", "cli").code == 0
    gone = horai("alerts", "delete-channel", "cli")
    assert (gone.code, gone.err) == (
        1, "error: There is no channel 'cli'.\nhint: `horai alerts channels` lists them.\n",
    )  # fmt: skip


def test_a_rule_is_set_and_replaced_with_the_fields_of_its_kind(horai: Terminal) -> None:
    horai("alerts", "set-channel", "rules", "slack", "--url-file", "-", stdin="http://127.0.0.1:9/")
    words = ("alerts", "set-rule", "night", "NOT_SUCCESS_BY", "--channel", "rules", "--json")
    made = horai(*words, "job=report", "by=06:00", "weekdays=MON,TUE").json
    assert (made["by"], made["timezone"], made["weekdays"], made["version"]) == ("06:00", "UTC", ["MON", "TUE"], 1)
    assert horai(*words, "job=report", "by=07:00", "--disabled").json["enabled"] is False
    wrong = horai("alerts", "set-rule", "late", "JOB_LATE", "queue=x", "--channel", "rules")
    assert (wrong.code, "does not belong to a rule of kind JOB_LATE" in wrong.err) == (1, True)
    assert horai("alerts", "set-rule", "late", "JOB_LATE", "job", "--channel", "rules").code == 2
    assert horai("alerts", "set-rule", "burn", "BUDGET_BURN", "burnRate=fast", "--channel", "rules").code == 2
    assert "night" in horai("alerts", "rules").out
    for what, name in (("rule", "night"), ("channel", "rules")):
        assert horai("alerts", f"delete-{what}", name).code == 0


def test_a_silence_and_a_heartbeat_begin_and_end(horai: Terminal) -> None:
    silence = horai("alerts", "silence", "--for", "1h", "--job", "none", "--json").json
    assert silence["id"] in horai("alerts", "silences").out
    assert horai("alerts", "unsilence", silence["id"]).code == 0
    assert horai("alerts", "unsilence", silence["id"]).code == 1
    assert horai("heartbeats", "set", "backup", "--every", "1d", "--json").json["beats"] == 0
    assert horai("heartbeats", "beat", "backup", "--json").json["beats"] == 1
    assert "backup" in horai("heartbeats", "list").out
    assert horai("heartbeats", "delete", "backup").code == 0
    assert horai("heartbeats", "beat", "backup").code == 1


def test_an_alert_is_acknowledged_and_a_message_sent_again(horai: Terminal) -> None:
    with receiving(Answer(200)) as receiver:
        horai("alerts", "set-channel", "acts", "slack", "--url-file", "-", stdin=receiver.url("/hook"))
        horai("alerts", "set-rule", "acts", "INSTANCE_DEAD", "--channel", "acts", "--group-wait", "0s", "job=dying")
        body = {"name": "dying", "target": {"type": "http", "url": "http://127.0.0.1:9/"}, "retry": {"maxRetry": 0}}
        assert horai("jobs", "create", "--file", "-", stdin=json.dumps(body)).code == 0
        assert horai("jobs", "trigger", "dying").code == 0
        (alert,) = until(lambda: [one for one in listed(horai, "firing") if one["rule"] == "acts"])
        done = horai("alerts", "acknowledge", alert["id"], "--note", "ticket 4711", "--json").json
        assert (done["acknowledgedNote"], done["acknowledgedAt"] is None) == ("ticket 4711", False)
        table = horai("alerts", "firing").out.splitlines()
        assert table[0].split()[-1] == "ACKNOWLEDGED"
        unknown = horai("alerts", "acknowledge", "0")
        listing = "hint: `horai alerts firing` lists them.\n"
        assert (unknown.code, unknown.err) == (1, f"error: There is no alert '0'.\n{listing}")

        (first,) = until(lambda: [one for one in listed(horai, "deliveries") if one["status"] == "DELIVERED"])
        again = horai("alerts", "redeliver", first["id"], "--json").json
        assert (again["redeliveryOf"], again["channel"]) == (first["id"], "acts")
        until(lambda: len(receiver.hits) == 2)
    assert "`horai alerts deliveries` lists them." in horai("alerts", "redeliver", "0").err
    for what in ("rule", "channel"):
        assert horai("alerts", f"delete-{what}", "acts").code == 0


def listed(horai: Terminal, what: str) -> list[Document]:
    """Return the items of a list of `horai alerts` about the rule or the channel `acts`."""
    items: list[Document] = horai("alerts", what, "--json").json["items"]
    return [one for one in items if "acts" in {one["rule"], one.get("channel")}]


def until(look: Callable[[], Found]) -> Found:
    """Look until there is something, for 30 seconds."""
    deadline = time.monotonic() + 30
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found
