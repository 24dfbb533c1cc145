"""`horai sinks` over a running server."""

from terminal import Terminal


def test_a_sink_is_paused_and_resumed_with_a_note_that_the_audit_log_keeps(horai: Terminal) -> None:
    assert horai("sinks", "set", "pausable", "--kind", "log").code == 0

    assert "PAUSED" in horai("sinks", "pause", "pausable", "--note", "the receiver moves").out
    assert horai("sinks", "resume", "pausable", "--note", "it has moved").code == 0
    assert horai("sinks", "pause", "pausable").code == 0

    entries = horai("audit", "list", "--object", "pausable", "--json").json["items"]
    notes = [(entry["after"] or {}).get("note") for entry in entries]
    assert notes[:3] == [None, "it has moved", "the receiver moves"]
    assert horai("sinks", "delete", "pausable").code == 0
