"""`horai secrets`, against a server."""

from terminal import Terminal


def test_S5_secrets_are_listed_and_rotated(horai: Terminal) -> None:
    (before,) = horai("secrets", "list", "--json").json["items"]

    rotated = horai("secrets", "rotate", "--expire-old", "1h")

    assert (rotated.code, rotated.err) == (0, "")
    heading, newest, old = (line.split() for line in rotated.out.splitlines())
    assert heading == ["ID", "SECRET", "CREATED", "EXPIRES"]
    assert old[:2] == [before["id"], before["secret"]]
    assert newest[1].startswith("whsec_")
    assert len(horai("secrets", "rotate", "--expire-old", "0s", "--json").json["items"]) == 1
    refused = horai("secrets", "rotate", "--expire-old", "soon")
    assert refused.code == 1
    assert "expireOld" in refused.err
