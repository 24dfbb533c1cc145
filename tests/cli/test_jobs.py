"""`horai jobs`, against a server."""

import json
import os
import pty
import subprocess
from pathlib import Path

from forked import HORAI, ForkedPopen
from harness import HoraiProcess
from terminal import Terminal


def test_a_job_lives_from_create_to_delete(horai: Terminal) -> None:
    made = horai(
        *("jobs", "create", "story", "--cron", "0 5 * * *", "--timezone", "Asia/Shanghai", "--queue", "slow"),
        *("--url", "http://127.0.0.1:9/hook", "--method", "put", "--header", "X-Shop: 7", "--tag", "a,b"),
        *("--payload", '{"n": 1.10}', "--priority", "core", "--max-retry", "2", "--timeout", "3s", "--json"),
    )
    assert (made.code, made.err) == (0, "")
    assert made.json["target"] == {
        "type": "http",
        "url": "http://127.0.0.1:9/hook",
        "method": "PUT",
        "headers": {"X-Shop": "***"},
    }
    assert [made.json[field] for field in ("timezone", "queue", "priority", "timeout", "tags")] == [
        *("Asia/Shanghai", "slow", "core", "3s", ["a", "b"])
    ]
    assert made.json["retry"]["maxRetry"] == 2
    assert '"payload":{"n": 1.10}' in made.out

    assert horai("jobs", "show", "story", "--json").json == made.json
    paused = horai("jobs", "pause", "story", "--note", "stock-taking", "--json").json
    assert (paused["status"], paused["note"]) == ("PAUSED", "stock-taking")
    assert "story" in [job["name"] for job in horai("jobs", "list", "--status", "paused", "--json").json["items"]]
    assert horai("jobs", "resume", made.json["id"], "--json").json["status"] == "ACTIVE"
    shown = horai("jobs", "show", "story").out
    assert "cron 0 5 * * * (Asia/Shanghai)" in shown
    assert "X-Shop" in shown

    deleted = horai("jobs", "delete", "story", "--yes")
    assert (deleted.code, deleted.out, deleted.err) == (0, "", "Deleted story.\n")
    gone = horai("jobs", "show", "story")
    assert (gone.code, gone.out) == (1, "")
    assert gone.err.startswith("error: There is no job 'story'.\nhint: ")


def test_C5_jobs_with_a_tag_are_paused_and_resumed_together(horai: Terminal) -> None:
    for name in ("tagged-1", "tagged-2"):
        horai("jobs", "create", name, "--tag", "together")
    assert horai("jobs", "pause", "--tag", "together").err == "Jobs paused: 2.\n"
    assert horai("jobs", "resume", "--tag", "together", "--json").json == {"changed": 2, "held": 0}
    for wrong in ([], ["tagged-1", "--tag", "together"]):
        refused = horai("jobs", "pause", *wrong)
        assert refused.code == 2
        assert "takes a job, or --tag, --queue and --owner" in refused.err


def test_a_definition_comes_from_a_file_or_stdin_and_flags_win(horai: Terminal, tmp_path: Path) -> None:
    document = {
        "name": "filed",
        "every": "1h",
        "retry": {"base": "1s"},
        "target": {"type": "http", "url": "http://a.test/"},
    }
    file = tmp_path / "job.json"
    file.write_text(json.dumps(document))

    from_file = horai("jobs", "create", "--json", "-f", str(file), "--max-retry", "1", "--method", "GET").json
    from_stdin = horai("jobs", "create", "piped", "--json", "-f", "-", stdin=json.dumps(document)).json

    assert from_file["name"] == "filed"
    assert (from_file["retry"]["base"], from_file["retry"]["maxRetry"]) == ("1s", 1)
    assert (from_file["target"]["url"], from_file["target"]["method"]) == ("http://a.test/", "GET")
    assert (from_stdin["name"], from_stdin["every"]) == ("piped", "1h")


def test_an_unreadable_file_or_payload_is_bad_usage(horai: Terminal, tmp_path: Path) -> None:
    absent = tmp_path / "absent.json"

    assert horai("jobs", "create", "-f", str(absent)).failed_with(
        2, f"error: {absent} cannot be read: No such file or directory."
    )
    no_json = horai("jobs", "create", "-f", "-", stdin="name: yaml")
    assert (no_json.code, no_json.err.startswith("error: stdin is not a JSON object: ")) == (2, True)
    no_payload = horai("jobs", "trigger", "any", "--payload", "{oops")
    assert no_payload.code == 2
    assert "error: Invalid value for '--payload': is not JSON" in no_payload.err
    assert horai("jobs", "create").code == 2


def test_a_refused_definition_tells_field_and_hint(horai: Terminal) -> None:
    refused = horai("jobs", "create", "wrong", "--cron", "every day")

    assert (refused.code, refused.out) == (1, "")
    assert [line.split(":")[0] for line in refused.err.splitlines()] == ["error", "hint"]
    assert refused.err.startswith("error: cron: ")


def test_a_repeated_create_with_its_key_is_told_apart(horai: Terminal) -> None:
    create = ("jobs", "create", "once", "--idempotency-key", "k1")

    assert horai(*create, "--json").code == 0
    assert horai(*create).err.startswith("error: The Idempotency-Key 'k1' was used before")


def test_a_trigger_waits_for_success(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "works", "--url", f"{server.base}/healthz", "--method", "GET")

    run = horai("jobs", "trigger", "works", "--payload", '{"x": 1}', "--wait", "--timeout", "20s", "--json")

    assert run.code == 0
    assert (run.json["instance"]["state"], run.json["instance"]["payload"]) == ("SUCCESS", {"x": 1})
    assert run.err.startswith("Idempotency-Key: ")
    shown = horai("instances", "show", run.json["instance"]["id"])
    assert "INSTANCE_DONE" in shown.out


def test_a_unique_trigger_shows_the_instance_of_the_first(horai: Terminal) -> None:
    horai("jobs", "create", "shared", "--handler", "nobody")
    trigger = ("jobs", "trigger", "shared", "--payload", "[1]", "--json", "--unique")

    first, live, windowed = horai(*trigger, "live"), horai(*trigger, "live"), horai(*trigger, "10m")

    assert (first.code, live.code, windowed.code) == (0, 0, 0)
    assert {run.json["instance"]["id"] for run in (live, windowed)} == {first.json["instance"]["id"]}
    wrong = horai(*trigger, "soon")
    assert wrong.code == 2
    assert "'--unique': 'soon' is not a duration" in wrong.err


def test_a_trigger_and_a_put_have_a_concurrency_key(horai: Terminal) -> None:
    created = horai("jobs", "create", "keyed", "--handler", "absent", "--concurrency-per-key", "3", "--json")
    triggered = horai("jobs", "trigger", "keyed", "--concurrency-key", "customer-7", "--json")
    put = horai("instances", "put", "keyed", "article:1", "--concurrency-key", "customer-8", "--json")

    assert created.json["concurrencyPerKey"] == 3
    assert triggered.json["instance"]["concurrencyKey"] == "customer-7"
    assert put.json["instance"]["concurrencyKey"] == "customer-8"
    assert "customer-8" in horai("instances", "show", put.json["instance"]["id"]).out


def test_a_trigger_and_a_put_have_a_queue_a_priority_and_an_expiry(horai: Terminal) -> None:
    horai("jobs", "create", "placed", "--handler", "absent")
    horai("queues", "set", "bulk")
    own = ("--queue", "bulk", "--priority", "low", "--expires", "10m")

    triggered = horai("jobs", "trigger", "placed", *own, "--json").json["instance"]
    put = horai("instances", "put", "placed", "article:1", *own, "--json").json["instance"]
    refused = horai("jobs", "trigger", "placed", "--queue", "nowhere")

    for made in (triggered, put):
        assert (made["queue"], made["priority"], made["expiresAt"] is not None) == ("bulk", "low", True)
    assert "expires at" in horai("instances", "show", put["id"]).out
    assert (refused.code, "horai queues set nowhere" in refused.err) == (1, True)


def test_a_trigger_that_ends_dead_fails(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "dies", "--url", f"{server.base}/nowhere")

    run = horai("jobs", "trigger", "dies", "--idempotency-key", "mine", "--wait")

    assert run.code == 1
    assert "Idempotency-Key: mine\n" in run.err
    assert "ended DEAD." in run.err.splitlines()[-2]
    assert run.err.splitlines()[-1].startswith("hint: horai instances show ")


def test_a_wait_has_an_end(horai: Terminal) -> None:
    horai("jobs", "create", "nobody", "--handler", "nobody")

    run = horai("jobs", "trigger", "nobody", "--wait", "--timeout", "10ms", "--json")

    assert (run.code, run.out) == (1, "")
    assert "is still INIT after 10ms." in run.err


def test_deleting_asks_first(horai: Terminal) -> None:
    horai("jobs", "create", "kept")
    assert horai("jobs", "delete", "kept").failed_with(
        2, "error: Deleting kept needs confirmation, and stdin is not a terminal.", "hint: Add --yes."
    )

    assert answered(horai, "n\n", "delete", "kept") == 1
    assert horai("jobs", "show", "kept").code == 0
    assert answered(horai, "y\n", "delete", "kept") == 0
    assert horai("jobs", "show", "kept").code == 1


def test_deleting_and_running_many_jobs_asks_first(horai: Terminal) -> None:
    horai("jobs", "create", "kept-too", "--tag", "kept", "--handler", "absent")
    for verb in ("trigger", "delete"):
        assert answered(horai, "n\n", verb, "--tag", "kept") == 1
    assert horai("instances", "list", "--job", "kept-too", "--json").json["items"] == []
    assert answered(horai, "y\n", "trigger", "--tag", "kept") == 0
    assert len(horai("instances", "list", "--job", "kept-too", "--json").json["items"]) == 1
    assert answered(horai, "y\n", "delete", "--tag", "kept") == 0
    assert horai("jobs", "show", "kept-too").code == 1


def answered(horai: Terminal, answer: str, *arguments: str) -> int:
    """Return the exit code of `horai jobs` at a terminal where a user types `answer`."""
    ours, theirs = pty.openpty()
    try:
        asking = ForkedPopen(
            [HORAI, "jobs", *arguments],
            env=horai.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.write(ours, answer.encode())
        asking.communicate(timeout=30)
        return asking.returncode
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_list_follows_its_pages_and_never_wraps_in_a_pipe(horai: Terminal) -> None:
    names = [f"page-{number}-{'x' * 80}" for number in range(3)]
    for name in names:
        horai("jobs", "create", name, "--tag", "paged", "--url", "https://example.com/" + "y" * 200)
    listing = ("jobs", "list", "--tag", "paged")

    first = horai(*listing, "--limit", "2", "--json").json
    everything = horai(*listing, "--limit", "2", "--all", "--json").json
    rows = horai(*listing, "--limit", "2")

    assert [job["name"] for job in first["items"]] == names[:2]
    assert first["nextCursor"]
    assert [job["name"] for job in everything["items"]] == names
    assert everything["nextCursor"] is None
    assert [line.split()[0] for line in rows.out.splitlines()] == ["NAME", *names[:2]]
    assert rows.err == "There may be more: --all shows them.\n"
