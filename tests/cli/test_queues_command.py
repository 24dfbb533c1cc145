"""`horai queues`, against a server."""

from terminal import Terminal


def test_a_queue_is_set_field_by_field_and_taken_back(horai: Terminal) -> None:
    made = horai("queues", "set", "letters", "--max-concurrency", "5", "--json")
    assert (made.code, made.err) == (0, "")
    assert (made.json["maxConcurrency"], made.json["running"], made.json["version"]) == (5, 0, 1)

    more = horai("queues", "set", "letters", "--rate", "30/m", "--priority", "high", "--json").json
    assert (more["maxConcurrency"], more["rate"], more["priority"], more["paused"]) == (5, "30/m", "high", False)

    less = horai("queues", "set", "letters", "--max-concurrency", "none", "--rate", "none", "--paused", "--json").json
    assert (less["maxConcurrency"], less["rate"], less["priority"], less["paused"]) == (None, None, "high", True)
    assert horai("queues", "show", "letters", "--json").json == less


def test_a_queue_is_paused_and_resumed_and_keeps_the_rest(horai: Terminal) -> None:
    horai("queues", "set", "parcels", "--max-concurrency", "2")

    paused = horai("queues", "pause", "parcels", "--json").json
    assert (paused["paused"], paused["maxConcurrency"]) == (True, 2)
    listed = horai("queues", "list").out
    assert listed.splitlines()[0].split() == ["NAME", "STATUS", "PRIORITY", "LIMIT", "RUNNING", "RATE"]
    assert ["parcels", "PAUSED", "normal", "2", "0", "none"] in [line.split() for line in listed.splitlines()]

    assert horai("queues", "resume", "parcels", "--json").json["paused"] is False
    shown = horai("queues", "show", "parcels").out
    assert [line.split() for line in shown.splitlines()][:4] == [
        *(["name", "parcels"], ["status", "ACTIVE"], ["priority", "normal"], ["limit", "2"])
    ]
    assert "parcels" in [queue["name"] for queue in horai("queues", "list", "--all", "--json").json["items"]]


def test_a_queue_that_is_not_there_cannot_be_paused(horai: Terminal) -> None:
    gone = horai("queues", "pause", "nobody")

    assert (gone.code, gone.out) == (1, "")
    assert gone.err.startswith("error: There is no queue 'nobody'.\nhint: ")


def test_a_wrong_value_is_refused_in_words(horai: Terminal) -> None:
    rate = horai("queues", "set", "letters", "--rate", "fast")
    assert rate.code == 1
    assert rate.err.startswith("error: rate: 'fast' is not a rate\nhint: ")

    limit = horai("queues", "set", "letters", "--max-concurrency", "many")
    assert limit.code == 2
    assert "'many' is neither a whole number nor none" in limit.err
