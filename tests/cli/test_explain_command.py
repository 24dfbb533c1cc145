"""`horai jobs explain`, against a server."""

from terminal import Terminal

CRON = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin")


def test_a_slot_is_explained_in_fields_and_in_json(horai: Terminal) -> None:
    horai("jobs", "create", "explained", *CRON, "--url", "http://127.0.0.1:9/hook")

    shown = horai("jobs", "explain", "explained", "2999-06-01T02:30:00+02:00")
    assert (shown.code, shown.err) == (0, "")
    lines = {line.split(maxsplit=1)[0]: line.split(maxsplit=1)[1].strip() for line in shown.out.splitlines()}
    assert (lines["verdict"], lines["at"], lines["local"]) == (
        *("COMING", "2999-06-01T00:30:00Z", "2999-06-01T02:30:00+02:00"),
    )
    assert (lines["previous"], lines["next"]) == ("2999-05-31T00:30:00Z", "2999-06-02T00:30:00Z")
    assert lines["why"].startswith("Due in ")
    assert "instance" not in lines
    assert horai("jobs", "explain", "explained", "2999-06-01T02:30", "--json").json["verdict"] == "COMING"


def test_a_time_that_comes_twice_is_shown_twice(horai: Terminal) -> None:
    horai("jobs", "create", "repeated", *CRON, "--url", "http://127.0.0.1:9/hook")

    shown = horai("jobs", "explain", "repeated", "2999-10-27 02:30").out

    assert [line.split()[1] for line in shown.splitlines() if line.startswith("verdict")] == ["COMING", "NOT_A_SLOT"]


def test_a_failed_explanation_prints_one_error_line_and_a_hint(horai: Terminal) -> None:
    horai("jobs", "create", "asked", "--every", "1h", "--url", "http://127.0.0.1:9/hook")

    odd = horai("jobs", "explain", "asked", "tomorrow")
    assert odd.failed_with(
        1,
        "error: at: is neither an instant nor a time of day",
        "hint: Write an instant such as 2026-03-29T02:30:00+01:00, or the time of the job's zone without an offset: 2026-03-29T02:30.",
    )
    assert horai("jobs", "explain", "absent-job", "2026-03-29T02:30").code == 1
    assert horai("jobs", "explain", "asked").code == 2


def test_an_instance_says_why_it_waits(horai: Terminal) -> None:
    horai("jobs", "create", "waiting", "--url", "http://127.0.0.1:9/hook")
    made = horai("instances", "put", "waiting", "order:1", "--in", "1h", "--json").json
    horai("jobs", "pause", "waiting", "--note", "stock-taking")

    shown = horai("instances", "why", made["instance"]["id"])
    assert (shown.code, shown.err) == (0, "")
    lines = {line.split(maxsplit=1)[0]: line.split(maxsplit=1)[1].strip() for line in shown.out.splitlines() if line}
    assert (lines["instance"], lines["job"], lines["state"]) == (made["instance"]["id"], "waiting", "INIT")
    assert "stock-taking" in lines["why"]
    assert "stock-taking" in lines["JOB_PAUSED"]
    assert horai("instances", "why", made["instance"]["id"], "--json").json["verdict"] == lines["verdict"]
    assert horai("instances", "why", "999999999").code == 1
