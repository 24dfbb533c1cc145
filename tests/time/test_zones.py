"""Zones come from the package `tzdata` and from nowhere else."""

import os
import zoneinfo
from datetime import UTC, datetime
from pathlib import Path

import pytest
import tzdata
from zone_rules import HOUR, Clock, Edition, at

from horai.time import zones
from horai.time.schedule import CronSchedule, next_after

SUMMER = datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_the_version_is_that_of_the_package():
    assert zones.version() == tzdata.IANA_VERSION


def test_a_zone_knows_its_name_and_its_offset():
    berlin = zones.zone("Europe/Berlin")

    assert berlin.key == "Europe/Berlin"
    assert SUMMER.astimezone(berlin).utcoffset() == 2 * HOUR


def test_every_listed_zone_can_be_read_and_says_the_same_as_the_packages_own_file():
    place = Path(tzdata.__file__).parent
    names = sorted(set((place / "zones").read_text().split()) - {"Factory"})
    assert len(names) > 400
    for name in names:
        with (place / "zoneinfo" / name).open("rb") as file:
            written = zoneinfo.ZoneInfo.from_file(file)
        assert SUMMER.astimezone(zones.zone(name)).utcoffset() == SUMMER.astimezone(written).utcoffset()


def test_files_of_the_system_are_not_looked_at(tmp_path: Path):
    """Each machine has its own files; code that asks the system first would see the wrong one here."""
    (tmp_path / "Pacific").mkdir()
    (tmp_path / "Pacific" / "Guam").write_bytes(Clock(5 * HOUR).tzif())
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([tmp_path])
    try:
        assert SUMMER.astimezone(zoneinfo.ZoneInfo.no_cache("Pacific/Guam")).utcoffset() == 5 * HOUR
        assert SUMMER.astimezone(zones.zone("Pacific/Guam")).utcoffset() == 10 * HOUR
    finally:
        zoneinfo.reset_tzpath(before)


def test_asking_for_a_zone_leaves_the_process_as_it_was():
    before = (zoneinfo.TZPATH, os.environ.get("TZ"), zoneinfo.ZoneInfo("Europe/Paris"))

    assert zones.zone("Europe/Paris") is not before[2]

    assert (zoneinfo.TZPATH, os.environ.get("TZ"), zoneinfo.ZoneInfo("Europe/Paris")) == before


@pytest.mark.parametrize(
    "name", ["Factory", "localtime", "posixrules", "../zones", "Europe", "Europe/", "europe/berlin"]
)
def test_an_invalid_zone_name_is_refused_before_any_file_is_opened(name: str):
    edition = Edition("test", {"Europe/Berlin": Clock(HOUR), "Factory": Clock(HOUR)})
    with zones.use(edition), pytest.raises(ValueError, match="unknown time zone"):
        zones.zone(name)

    assert not edition.opened
    with pytest.raises(ValueError, match="unknown time zone"):
        zones.zone(name)


def test_a_zone_is_read_once_per_edition():
    edition = Edition("test", {"Europe/Berlin": Clock(HOUR)})
    with zones.use(edition):
        assert zones.zone("Europe/Berlin") is zones.zone("Europe/Berlin")

    assert edition.opened == ["Europe/Berlin"]


def test_other_rules_hold_inside_the_block_and_nowhere_else():
    nine = CronSchedule("0 9 * * *", "Europe/Berlin")
    with zones.use(Edition("test", {"Europe/Berlin": Clock(5 * HOUR)})):
        assert zones.version() == "test"
        assert next_after(nine, SUMMER) == at("2026-07-02 04:00")
        with pytest.raises(ValueError, match=r"unknown time zone 'Europe/Paris': did you mean Europe/Berlin\?"):
            zones.zone("Europe/Paris")

    assert zones.version() == tzdata.IANA_VERSION
    assert next_after(nine, SUMMER) == at("2026-07-02 07:00")


def test_a_made_up_clock_changes_when_it_says():
    """Of the tests' own rules: a wrong file would prove nothing."""
    forward = Clock(HOUR, [("2027-03-28T01:00Z", 2 * HOUR), ("2027-10-31T01:00Z", HOUR)])
    with zones.use(Edition("test", {"A/B": forward})):
        place = zones.zone("A/B")
        seen = [at(text).astimezone(place).utcoffset() for text in ("2027-03-28 00:59", "2027-03-28 01:00")]
        later = [
            at(text).astimezone(place).utcoffset() for text in ("2027-10-31 00:59", "2027-10-31 01:00", "2090-07-01")
        ]

    assert seen == [HOUR, 2 * HOUR]
    assert later == [2 * HOUR, HOUR, HOUR]
