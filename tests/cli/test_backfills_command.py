"""`horai jobs backfill` and `horai backfills`, against a server."""

from harness import HoraiProcess
from terminal import Terminal

HOUR = ("--from", "2026-01-10T00:00:00Z", "--to", "2026-01-10T01:00:00Z")


def lines(out: str) -> list[list[str]]:
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in out.splitlines()]


def made(horai: Terminal, server: HoraiProcess, name: str) -> None:
    target = ("--url", f"{server.base}/healthz", "--method", "GET")
    assert horai("jobs", "create", name, "--every", "1m", *target).code == 0


def test_C1h_C5_C21_a_dry_run_counts_and_a_run_is_waited_for(horai: Terminal, server: HoraiProcess) -> None:
    made(horai, server, "filled")

    plan = horai("jobs", "backfill", "filled", *HOUR, "--dry-run")
    assert (plan.code, plan.err) == (0, "")
    for line in (["slots", "60"], ["would run", "60"], ["first", "2026-01-10T00:00:00Z"], ["at once", "10"]):
        assert line in lines(plan.out)
    assert horai("jobs", "backfill", "filled", *HOUR, "--dry-run", "--json").json["total"] == 60

    done = horai("jobs", "backfill", "filled", *HOUR, "--rate", "500/s", "--max-concurrency", "30", "--wait", "--json")
    assert done.code == 0, done.err
    assert (done.json["status"], done.json["progress"]["succeeded"]) == ("DONE", 60)
    assert done.err.startswith("Idempotency-Key: ")
    left = horai("jobs", "backfill", "filled", *HOUR, "--dry-run", "--json").json
    assert (left["total"], left["skipped"]) == (0, 60)


def test_C5_C21_a_backfill_is_listed_shown_paused_resumed_and_cancelled(horai: Terminal, server: HoraiProcess) -> None:
    made(horai, server, "slow-fill")
    begun = horai("jobs", "backfill", "slow-fill", *HOUR, "--rate", "1/h", "--idempotency-key", "k", "--json").json
    again = horai("jobs", "backfill", "slow-fill", *HOUR, "--rate", "1/h", "--idempotency-key", "k", "--json").json
    number = begun["id"]
    assert again["id"] == number

    paused = horai("backfills", "pause", number, "--note", "later", "--json").json
    assert (paused["status"], paused["note"]) == ("PAUSED", "later")
    heading, row = lines(horai("backfills", "list", "--job", "slow-fill", "--status", "paused").out)
    assert heading[:4] == ["ID", "JOB", "STATUS", "MODE"]
    assert row[:4] == [number, "slow-fill", "PAUSED", "missing"]
    assert horai("backfills", "resume", number, "--json").json["status"] == "RUNNING"
    assert ["status", "CANCELLED"] in lines(horai("backfills", "cancel", number).out)
    shown = lines(horai("backfills", "show", number).out)
    for line in (["job", "slow-fill"], ["rate", "1/h"], ["to run", "60 of 60 slots"], ["status", "CANCELLED"]):
        assert line in shown
    refused = horai("backfills", "resume", number)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"error: The backfill {number} is CANCELLED")


def test_C21_a_backfill_that_fails_is_an_error_after_the_waiting(horai: Terminal, server: HoraiProcess) -> None:
    target = ("--url", f"{server.base}/nothing/here", "--method", "GET")
    horai("jobs", "create", "failing-fill", "--every", "1m", *target)

    ended = horai("jobs", "backfill", "failing-fill", "--from", HOUR[1], "--to", "2026-01-10T00:02:00Z", "--wait")

    assert ended.code == 1
    assert "2 failed" in ended.err
    assert "--mode failed" in ended.err


def test_a_range_that_makes_no_sense_is_told(horai: Terminal) -> None:
    horai("jobs", "create", "backfilled-on-demand")

    refused = horai("jobs", "backfill", "backfilled-on-demand", *HOUR)

    assert (refused.code, refused.out) == (1, "")
    assert "error: The job has no schedule, so it has no slots to backfill." in refused.err
    assert horai("jobs", "backfill", "backfilled-on-demand").code == 2
    assert horai("backfills", "show", "0").code == 1
