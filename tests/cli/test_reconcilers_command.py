"""`horai reconcilers`, against a server."""

import json

from harness import HoraiProcess
from terminal import Terminal

QUERY = "select key, execute_time from article where key > $1 order by key limit $2"


def lines(out: str) -> list[list[str]]:
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in out.splitlines()]


def test_C5_B16_a_reconciler_is_created_listed_shown_run_and_deleted(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "watched", "--url", f"{server.base}/healthz")
    source = ("--query", QUERY, "--source", "nowhere")

    made = horai("reconcilers", "create", "watcher", "--job", "watched", *source, "--every", "1h")
    assert (made.code, made.err) == (0, "")
    assert ["when", "every 1h"] in lines(made.out)
    heading, *rows = lines(horai("reconcilers", "list").out)
    (row,) = (each for each in rows if each[1] == "watcher")  # other tests use the server, too
    assert heading[:7] == ["ID", "NAME", "JOB", "STATUS", "SOURCE", "WHEN", "NEXT"]
    assert row[1:6] == ["watcher", "watched", "ACTIVE", "sql", "every 1h"]
    assert horai("reconcilers", "show", "watcher", "--json").json["source"]["source"] == "nowhere"

    run = horai("reconcilers", "run", "watcher", "--json")
    assert run.err.startswith("Idempotency-Key: ")
    again = horai("reconcilers", "run", "watcher", "--idempotency-key", run.err.split()[1])
    assert again.code == 1
    assert horai("reconcilers", "reports", "watcher").code == 0
    assert horai("reconcilers", "delete", "watcher").code == 0
    assert horai("reconcilers", "show", "watcher").code == 1


def test_C5_B16_a_reconciler_is_paused_resumed_and_changed(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "held", "--url", f"{server.base}/healthz")
    source = ("--query", QUERY, "--source", "nowhere")
    horai("reconcilers", "create", "holder", "--job", "held", *source, "--every", "1h")

    held = horai("reconcilers", "pause", "holder", "--note", "moving house")
    assert ["status", "PAUSED"] in lines(held.out)
    assert ["note", "moving house"] in lines(held.out)
    assert ["status", "ACTIVE"] in lines(horai("reconcilers", "resume", "holder").out)
    changed = horai("reconcilers", "change", "holder", "--every", "2h", "--source-url", "https://example.com/w")
    assert ["when", "every 2h"] in lines(changed.out)
    assert horai("reconcilers", "change", "holder", "--on-demand", "--json").json["nextFire"] is None
    by_file = horai("reconcilers", "change", "holder", "-f", "-", "--json", stdin=json.dumps({"cron": "0 3 * * *"}))
    assert (by_file.json["cron"], by_file.json["source"]["type"]) == ("0 3 * * *", "http")
    assert horai("reconcilers", "change", "holder").code == 2
    assert horai("reconcilers", "delete", "holder").code == 0


def test_C5_B16_a_reconciler_is_created_from_a_document(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "documented", "--url", f"{server.base}/healthz")
    source = {"type": "http", "url": "https://example.com/wanted"}
    document = json.dumps({"name": "by-file", "job": "documented", "source": source})

    made = horai("reconcilers", "create", "-f", "-", "--cron", "0 3 * * *", "--json", stdin=document)

    assert (made.json["name"], made.json["cron"], made.json["source"]) == ("by-file", "0 3 * * *", source)
    assert horai("reconcilers", "create").code == 2
    assert horai("reconcilers", "delete", "by-file").code == 0
