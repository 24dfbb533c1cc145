"""`horai calendars`, and the flags that name a calendar."""

from pathlib import Path

from terminal import Terminal

ICS = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20261001
DTEND;VALUE=DATE:20261008
SUMMARY:National Day
END:VEVENT
END:VCALENDAR
"""


def test_a_calendar_is_put_imported_shown_previewed_followed_and_deleted(horai: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "cn.ics"
    file.write_text(ICS)

    made = horai("calendars", "put", "cn", "--workday", "2026-10-10", "--hours", "09:00-18:00")
    imported = horai("calendars", "import", "cn", str(file), "--json").json
    shown = horai("calendars", "show", "cn")
    days = horai("calendars", "preview", "cn", "--from", "2026-10-07", "--days", "5")
    listed = horai("calendars", "list")

    assert (made.code, made.err) == (0, "")
    assert imported["holidays"] == [{"date": "2026-10-01/2026-10-07", "name": "National Day"}]
    assert (imported["workdays"], imported["hours"]) == (["2026-10-10"], {"default": "09:00-18:00"})
    assert "2026-10-01/2026-10-07 National Day" in shown.out
    assert [line.split()[:3] for line in days.out.splitlines()[1:]] == [
        ["2026-10-07", "wed", "HOLIDAY"],
        ["2026-10-08", "thu", "WORKDAY"],
        ["2026-10-09", "fri", "WORKDAY"],
        ["2026-10-10", "sat", "MAKE_UP"],
        ["2026-10-11", "sun", "WEEKEND"],
    ]
    assert "sat,sun" in listed.out
    first = ("--cron", "0 9 1 * *", "--timezone", "Asia/Shanghai", "--calendar", "cn", "--on-holiday", "after")
    preview = horai("schedules", "preview", *first, "--from", "2026-09-15T00:00:00Z", "--count", "1")
    assert "2026-10-08T09:00:00+08:00" in preview.out
    assert "National Day" in preview.out
    job = horai("jobs", "create", "monthly", *first)
    assert "on holiday" in job.out
    refused = horai("calendars", "delete", "cn")
    assert (refused.code, "monthly" in refused.err) == (1, True)
    assert horai("jobs", "delete", "monthly", "--yes").code == 0
    assert horai("calendars", "delete", "cn").code == 0
    assert "horai calendars list" in horai("calendars", "show", "cn").err


def test_flags_replace_only_their_fields_and_none_removes(horai: Terminal) -> None:
    horai("calendars", "put", "eu", "--holiday", "12-25,12-26", "--hours", "09:00-17:00")

    changed = horai("calendars", "put", "eu", "--weekend", "none", "--hours", "none", "--json").json
    unknown = horai("schedules", "preview", "--cron", "0 9 * * *", "--calendar", "nowhere")
    stray = horai("schedules", "preview", "--cron", "0 9 * * *", "--on-holiday", "after")

    assert [day["date"] for day in changed["holidays"]] == ["12-25", "12-26"]
    assert (changed["weekend"], changed["hours"]) == ([], None)
    assert "horai calendars put NAME" in unknown.err
    assert stray.code == 2
    assert horai("calendars", "import", "eu", "/nonexistent.ics").code == 2
