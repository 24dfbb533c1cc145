"""`horai capacity`: the figures of a load, and beside them those of this machine or of a database."""

import json
from pathlib import Path

import asyncpg
import pytest
import rows
from databases import Superuser, analyze
from terminal import Terminal

from horai.cli.commands.capacity import decimal_size
from horai.core.states import State

STORED = """
select sum(pg_total_relation_size(oid))::bigint from pg_class
where relnamespace = 'horai'::regnamespace and relkind = 'r' and relname ~ '^(instance_history|attempt|event|note)_'
"""
"""Bytes of finished instances, their attempts, events and notes: all partitions."""


def test_the_defaults_are_the_estimate_of_the_seed(alone: Terminal) -> None:
    shown, kept = alone("capacity"), alone("capacity", "--json")

    assert (shown.code, shown.err) == (0, "")
    lines = {line[:23].strip(): line[23:].strip() for line in shown.out.splitlines()}
    assert lines["average rate"] == "9,259/s"
    assert (lines["hot storage, 14 days"], lines["cold storage, 90 days"]) == ("7.8 TB", "50 TB")
    assert (lines["nodes at the peak"], lines["nodes to deploy"]) == ("8", "12")
    assert kept.json["figures"] == {
        "averagePerSecond": 9259,
        "peakPerSecond": 55556,
        "bytesPerDay": 560_000_000_000,
        "hotBytes": 7_840_000_000_000,
        "coldBytes": 50_400_000_000_000,
        "leastNodes": 8,
        "deployedNodes": 12,
    }
    assert kept.json["inputs"]["firesPerDay"] == 800_000_000
    assert kept.json["measured"] is None


def test_every_input_is_a_flag(alone: Terminal) -> None:
    given = ("--definitions", "7", "--fires-per-day", "86400", "--peak-factor", "2", "--record-bytes", "1000")
    more = ("--hot-days", "2", "--cold-days", "3", "--node-rate", "1", "--spare-nodes", "2", "--headroom", "2")

    kept = alone("capacity", *given, *more, "--json").json

    figures = kept["figures"]
    assert (figures["averagePerSecond"], figures["peakPerSecond"]) == (1, 2)
    assert (figures["bytesPerDay"], figures["hotBytes"], figures["coldBytes"]) == (86_400_000, 172_800_000, 259_200_000)
    assert (figures["leastNodes"], figures["deployedNodes"]) == (4, 8)
    assert kept["inputs"]["definitions"] == 7


def test_a_flag_out_of_range_is_bad_usage(alone: Terminal) -> None:
    refused = alone("capacity", "--peak-factor", "0")

    assert (refused.code, refused.out) == (2, "")
    assert "'--peak-factor'" in refused.err
    assert alone("capacity", "--measure", "--from-database").code == 2


@pytest.mark.early
def test_C11b_a_measurement_reports_bytes_per_instance_against_the_assumed_ones(
    alone: Terminal, short_place: Path
) -> None:
    """On a database of its own: the one that the environment names is not even started."""
    untouched = short_place / "untouched"
    measured = alone("capacity", "--measure", "--instances", "3000", "--json", HORAI_DATA_DIR=str(untouched))

    assert measured.code == 0, measured.err
    found = measured.json["measured"]
    assert found["instances"] == 3000
    assert 150 < found["bytesPerFinishedInstance"] < 1500
    assert 150 < found["bytesPerWaitingInstance"] < 2500
    assert found["instancesPerSecond"] > 100
    assert found["figures"]["bytesPerDay"] == pytest.approx(
        800_000_000 * found["bytesPerFinishedInstance"], abs=800_000_000
    )
    assert measured.json["inputs"]["recordBytes"] == 700, "both are printed"
    assert measured.json["figures"]["leastNodes"] == 8
    assert not untouched.exists()


async def test_a_database_in_use_is_measured_without_a_write(alone: Terminal, url: str, connection: Superuser) -> None:
    empty = alone("capacity", "--from-database", "--json", "--database-url", url)
    assert (empty.code, empty.json["measured"]["instances"]) == (0, 0)
    assert empty.json["measured"]["bytesPerFinishedInstance"] is None
    assert empty.json["measured"]["figures"] == empty.json["figures"]

    await rows.instance(connection, State.SUCCESS)
    await analyze(connection)
    found = alone("capacity", "--from-database", "--json", "--database-url", url).json["measured"]
    stored = await connection.fetchval(STORED)

    assert found["instances"] == 1
    assert found["bytesPerFinishedInstance"] == stored
    assert (found["bytesPerWaitingInstance"], found["instancesPerSecond"]) == (None, None)
    shown = alone("capacity", "--from-database", "--database-url", url)
    lines = {line[:23].strip(): line[23:].split() for line in shown.out.splitlines()}
    assert lines["bytes per instance"] == ["700", "B", f"{stored:,}", "B"]
    assert lines["nodes at the peak"] == ["8"], "no rate was measured"


async def test_a_database_without_horai_is_refused(alone: Terminal, url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("drop schema horai cascade")
    await connection.close()

    refused = alone("capacity", "--from-database", "--json", "--database-url", url)

    assert refused.code == 1
    assert json.loads(refused.err)["hint"] == "horai migrate applies them."


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (9_949, "9.9 kB"), (560e9, "560 GB"), (7.84e12, "7.8 TB")],
)
def test_sizes_are_decimal_with_one_figure_below_ten(size: float, text: str) -> None:
    assert decimal_size(size) == text
