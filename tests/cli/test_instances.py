"""`horai instances`, against a server."""

from datetime import UTC, datetime, timedelta

import make
from harness import HoraiProcess
from terminal import Terminal

from horai.core.progress import ProgressNote
from horai.core.shards import Role
from horai.db import nodes
from horai.db import progress as notes
from horai.db.pool import connect
from horai.embedded import url_of


def test_F6b_a_key_is_put_moved_listed_and_cancelled(horai: Terminal) -> None:
    horai("jobs", "create", "publish", "--handler", "publish", "--tag", "articles")
    put = ("instances", "put", "publish", "article/42 é")

    inserted = horai(*put, "--in", "1h", "--payload", '{"n": 1.10}', "--version", "2", "--json")
    moved = horai(*put, "--at", "2100-01-01T00:00:00+08:00", "--version", "3")
    ignored = horai(*put, "--version", "1", "--json")

    assert (inserted.json["decision"], '"payload":{"n": 1.10}' in inserted.out) == ("INSERTED", True)
    wait = datetime.fromisoformat(inserted.json["instance"]["executeTime"]) - datetime.now(UTC)
    assert timedelta(minutes=59) < wait < timedelta(minutes=61)
    assert "UPDATED" in moved.out
    assert "2099-12-31T16:00:00Z" in moved.out
    assert ignored.json["decision"] == "IGNORED"

    only = (
        "--job",
        "publish",
        "--key",
        "article/42 é",
        "--queue",
        "default",
        "--tag",
        "articles",
        "--state",
        "PENDING",
    )
    between = ("--from", "2099-12-31T00:00:00Z", "--to", "2100-01-02T00:00:00Z", "--all")
    listed = horai("instances", "list", *only, *between, "--json").json
    assert [item["id"] for item in listed["items"]] == [inserted.json["instance"]["id"]]
    assert "article/42 é" in horai("instances", "list", *only).out

    cancelled = horai("instances", "cancel", "--job", "publish", "--key", "article/42 é", "--json").json["instance"]
    assert (cancelled["state"], cancelled["reason"]) == ("CANCELLED", "USER")
    shown = horai("instances", "show", cancelled["id"])
    assert "INSTANCE_CANCELLED" in shown.out


def test_an_instance_is_cancelled_by_its_id(horai: Terminal) -> None:
    horai("jobs", "create", "by-id", "--handler", "by-id")
    made = horai("instances", "put", "by-id", "k", "--in", "1h", "--json").json["instance"]["id"]

    cancelled = horai("instances", "cancel", made)

    assert (cancelled.code, cancelled.out, cancelled.err) == (0, "", f"Cancelled instance {made} of by-id.\n")
    assert horai("instances", "cancel", "999999").err.startswith("error: There is no instance")


async def test_an_instance_is_cancelled_after_its_steps_are_compensated(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "durable", "--handler", "durable")
    plain, owing = (
        horai("instances", "put", "durable", key, "--in", "1h", "--json").json["instance"]["id"] for key in "ab"
    )
    connection = await connect(url_of(server.data_dir), "horai test")
    await connection.execute(
        """
        insert into horai.step (instance_id, tenant_id, kind, progress, n, fence, started_at, finished_at, name)
        select live.id, live.tenant_id, record.kind, record.progress, 1, 0, now(), case when progress = 1 then now() end, 'charge'
        from horai.instance_live live, (values (1, 1), (4, 0)) as record(kind, progress) where live.id = $1
        """,
        int(owing),
    )
    connection.terminate()

    assert horai("instances", "cancel", plain, "--compensate").err == (
        f"Cancelled instance {plain} of durable: it has no finished step to compensate.\n"
    )
    told = f"Instance {owing} of durable is cancelled after its steps charge#1 are compensated.\n"
    assert horai("instances", "cancel", owing, "--compensate").err == told
    again = horai("instances", "cancel", "--job", "durable", "--key", "b", "--compensate", "--json").json
    assert (again["instance"]["state"], again["compensates"]) == ("INIT", ["charge#1"])
    assert horai("instances", "cancel", owing).err == f"Cancelled instance {owing} of durable.\n"


async def test_progress_and_log_lines_of_a_function_are_shown_with_their_attempt(
    horai: Terminal, server: HoraiProcess
) -> None:
    horai("jobs", "create", "talker", "--handler", "talker")
    instance = horai("instances", "put", "talker", "k", "--json").json["instance"]["id"]
    connection = await connect(url_of(server.data_dir), "horai test")
    talker, _ = await nodes.register_node(connection, "talker", "test", 1, "test", timedelta(minutes=1), {Role.worker})
    (held,) = [row.held for row in await make.claim(connection, talker) if row.key == "k"]
    now = await nodes.database_time(connection)
    said = [(0.1, "begun"), (0.333, None), (None, "still at \x1b[31mit\nall day")]
    await notes.insert_notes(
        connection,
        [
            ProgressNote(held.id, held.fence, n, now, held.node, 1, progress, line, "default")
            for n, (progress, line) in enumerate(said)
        ],
    )
    connection.terminate()

    shown = horai("instances", "show", instance).out

    lines = [line.split() for line in shown.splitlines()]
    assert ["progress", "33.3%"] in lines
    assert ["1", "RUNNING", "33.3%"] in [line[:3] for line in lines]
    assert [line[1:] for line in lines if line[-1:] == ["begun"]] == [["1", "10%", "INFO", "begun"]]
    assert "still at \\x1b[31mit all day" in shown


def test_missing_conflicting_or_invalid_options_are_bad_usage(alone: Terminal) -> None:
    assert alone("instances", "cancel", "--job", "a").failed_with(
        2, "error: Which instance?", "hint: Give its id, or --job and --key."
    )
    assert alone("instances", "put", "a", "k", "--at", "2100-01-01T00:00:00Z", "--in", "1h").code == 2
    assert alone("instances", "put", "a", "k", "--in", "soon").err.startswith("error: Invalid value for '--in': 'soon'")


def test_a_wrong_filter_is_told_with_what_is_known(horai: Terminal) -> None:
    refused = horai("instances", "list", "--state", "SLEEPING")

    assert refused.code == 1
    assert refused.err.splitlines()[0] == "error: state: 'SLEEPING' is not a state"
    assert refused.err.splitlines()[1].startswith("hint: Known: INIT")


def test_an_empty_list_says_so_on_stderr(horai: Terminal) -> None:
    ended = horai("instances", "list", "--tag", "no-such-tag")

    assert (ended.code, ended.out, ended.err) == (0, "", "None.\n")
