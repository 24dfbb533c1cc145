"""The state file: the highest timeline of a cluster is remembered, and a damaged file never stops a start."""

from pathlib import Path

import pytest

from horai.db.route import DatabaseServer, Route, ServerUnfit
from horai.db.sightings import FILE, Sighting, Sightings

BOTH, ONE = "postgresql://a:1,b:2/db", "postgresql://a:1/db"


def server(system: str = "7001", timeline: int = 2) -> DatabaseServer:
    return DatabaseServer(is_standby=False, is_read_only=False, system=system, timeline=timeline, has_settings=True)


def route(url: str, state: Path) -> Route:
    return Route(url, {"HORAI_STATE_DIR": str(state)})


def test_a_timeline_never_goes_down(tmp_path: Path) -> None:
    seen = Sightings(tmp_path)
    seen.note("a:1/db", Sighting("7001", 3))
    seen.note("a:1/db", Sighting("7001", 2))

    assert seen.claim_revoker("a:1/db") == Sighting("7001", 3)


def test_a_cluster_is_recognised_under_another_url(tmp_path: Path) -> None:
    Sightings(tmp_path).note("a:1/db", Sighting("7001", 3))

    with pytest.raises(ServerUnfit, match=r"is on timeline 2 of the cluster 7001.*promoted to timeline 3"):
        route("postgresql://c:3/db", tmp_path).judge(None, server(timeline=2))


def test_an_earlier_timeline_is_refused_also_with_one_host(tmp_path: Path) -> None:
    Sightings(tmp_path).note("a:1/db", Sighting("7001", 3))
    known = route(ONE, tmp_path)

    known.judge(known.hosts[0], server(timeline=3))
    known.judge(known.hosts[0], server(timeline=4))
    with pytest.raises(ServerUnfit) as refused:
        known.judge(known.hosts[0], server(timeline=2))

    assert str(tmp_path / FILE) in refused.value.hint


def test_another_cluster_is_refused_among_several_hosts_and_accepted_as_the_only_one(tmp_path: Path) -> None:
    for place in ("a:1,b:2/db", "a:1/db"):
        Sightings(tmp_path).note(place, Sighting("7001", 3))
    several = route(BOTH, tmp_path)

    with pytest.raises(ServerUnfit, match=r"a:1 belongs to the cluster .* 7002; .* the cluster 7001 before"):
        several.judge(several.hosts[0], server("7002", 1))
    route(ONE, tmp_path).judge(None, server("7002", 1))


def test_a_standby_and_a_read_only_server_are_refused_among_several_hosts_only(tmp_path: Path) -> None:
    standby = DatabaseServer(is_standby=True, is_read_only=True, system="7001", timeline=None, has_settings=True)
    read_only = DatabaseServer(is_standby=False, is_read_only=True, system="7001", timeline=2, has_settings=True)

    for unfit in (standby, read_only):
        with pytest.raises(ServerUnfit) as refused:
            route(BOTH, tmp_path).judge(None, unfit)
        assert refused.value.may_pass
        route(ONE, tmp_path).judge(None, unfit)
        route(f"{BOTH}?target_session_attrs=any", tmp_path).judge(None, unfit)
        with pytest.raises(ServerUnfit):
            route(f"{ONE}?target_session_attrs=read-write", tmp_path).judge(None, unfit)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a:1/db": 3}', '{"a:1/db": {"system": "x", "timeline": "y"}}'])
def test_a_damaged_state_file_is_replaced_by_the_next_sighting(content: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content)
    seen = Sightings(tmp_path)

    assert seen.claim_revoker("a:1/db") is None
    seen.note("a:1/db", Sighting("7001", 2))
    assert seen.claim_revoker("a:1/db") == Sighting("7001", 2)


def test_a_state_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    seen = Sightings(tmp_path / "file" / "state")

    seen.note("a:1/db", Sighting("7001", 2))

    assert seen.claim_revoker("a:1/db") is None
