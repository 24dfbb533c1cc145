"""`--title`, `--description` and `--owner` of jobs."""

from terminal import Terminal


def test_a_job_gets_its_labels_by_flags_shows_them_and_is_listed_by_its_owner(horai: Terminal) -> None:
    labels = ("--title", "发放优惠券", "--description", "每五分钟一次", "--owner", "市场部")
    made = horai("jobs", "create", "labelled", *labels, "--json")
    assert (made.code, made.json["title"], made.json["owner"]) == (0, "发放优惠券", "市场部")
    horai("jobs", "create", "unlabelled")

    shown = " ".join(horai("jobs", "show", "labelled").out.split())
    assert "title 发放优惠券 description 每五分钟一次 owner 市场部" in shown
    assert "title" not in horai("jobs", "show", "unlabelled").out
    assert [job["name"] for job in horai("jobs", "list", "--owner", "市场部", "--json").json["items"]] == ["labelled"]


def test_a_label_with_a_line_break_is_refused_with_a_hint(horai: Terminal) -> None:
    wrong = horai("jobs", "create", "two-lines", "--title", "one\ntwo")
    assert (wrong.code, "title: has a line break" in wrong.err, "description" in wrong.err) == (1, True, True)


def test_a_queue_is_paused_with_a_reason_and_keeps_its_labels(horai: Terminal) -> None:
    horai("queues", "set", "reports", "--title", "报表", "--owner", "财务", "--max-concurrency", "3")

    paused = horai("queues", "pause", "reports", "--note", "the warehouse moves", "--json")
    shown = " ".join(horai("queues", "show", "reports").out.split())
    resumed = horai("queues", "resume", "reports", "--json")

    assert (paused.code, paused.json["paused"], paused.json["note"]) == (0, True, "the warehouse moves")
    assert "title 报表 owner 财务 note the warehouse moves status PAUSED" in shown
    assert (resumed.json["paused"], resumed.json["note"], resumed.json["title"]) == (False, None, "报表")
    bare = horai("queues", "set", "reports", "--title", "none", "--json")
    assert (bare.json["title"], bare.json["owner"]) == (None, "财务")
