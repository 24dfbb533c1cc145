"""The named statements: each parses, each is known to PostgreSQL."""

import pytest

from horai.db import catalog
from horai.db.catalog import CATALOG, sql
from horai.db.pool import STATEMENTS_KEPT, Platform


async def test_every_statement_is_one_that_postgresql_understands(connection: Platform):
    for name, statement in CATALOG.items():
        await connection.prepare(statement.text)
        assert name in statement.text, "the name travels with the statement into the server's log"


def test_a_statement_reaches_to_the_next_name():
    found = catalog._parse(
        "f.sql", "-- intro\n-- name: one\n-- moves: A -> B\nselect 1;\n\n-- name: two\n-- why\nselect 2;\n"
    )

    assert list(found) == ["one", "two"]
    assert found["one"].text.endswith("select 1")
    assert (found["one"].moves, found["two"].moves) == ("A -> B", None)
    assert "select 2" not in found["one"].text


def test_a_list_of_columns_stands_for_its_names_with_or_without_a_prefix():
    found = catalog._parse(
        "f.sql", "-- name: one\nselect {{carried}} from a;\n-- name: two\nselect {{a.read}} from a;\n"
    )

    assert found["one"].text.endswith(f"select {', '.join(catalog.COLUMNS['carried'])} from a")
    assert "select a.id, a.job_id, a.key, " in found["two"].text


async def test_the_lists_name_every_column_that_both_tables_of_instances_have(connection: Platform):
    """A column that is left out would be lost when an instance ends."""
    shared = """select array_agg(attname::text) from (
        select attname from pg_attribute where attrelid = 'horai.instance_live'::regclass and attnum > 0 and not attisdropped
        intersect
        select attname from pg_attribute where attrelid = 'horai.instance_history'::regclass and attnum > 0 and not attisdropped
    ) both_have"""
    written_by_each = {"state", "retry_count", "events", "error_code", "error_msg"}

    assert set(await connection.fetchval(shared)) == {*catalog.COLUMNS["carried"], *written_by_each}


def test_a_pooled_connection_keeps_every_statement_prepared():
    assert len(CATALOG) < STATEMENTS_KEPT


def test_an_unknown_name_is_an_error_at_once():
    with pytest.raises(KeyError):
        sql("no_such_statement")


GUARD = ("live.state = 1", "live.attempt = report.attempt", "live.fence = report.fence")
OF_ITS_NODE = ("live.node = report.node", "live.node = $4")
SKIPS = "for update of live skip locked"
"""The clause by which a batch passes over rows that another transaction has locked."""


def test_each_statement_is_named_after_what_guards_it():
    guarded = {s.name for s in CATALOG.values() if "live.fence = report.fence" in s.text}

    assert guarded == {name for name in CATALOG if name.endswith("_if_running")} | {"finish_if_free"}
    for name in guarded:
        text = CATALOG[name].text
        assert all(part in text for part in GUARD), name
        assert any(node in text for node in OF_ITS_NODE), name


def test_every_end_of_a_claim_is_guarded():
    """Two statements need no report: a put supersedes and a user cancels a RUNNING row, under the row's lock."""
    ends = {s.name for s in CATALOG.values() if s.moves is not None and "RUNNING" in s.moves.partition("->")[0]}

    assert {n for n in ends if not n.endswith(("_if_running", "_if_free"))} == {"supersede_running", "cancel_live"}


def test_no_batch_waits_for_a_row_but_the_finish_that_has_a_timeout_for_it():
    waits = {name for name in CATALOG if name.endswith(("_if_running", "_if_free")) and SKIPS not in CATALOG[name].text}

    assert waits == {"finish_if_running"}


def test_every_claim_is_ordered_against_the_fencing_of_its_node_and_skips_what_is_locked():
    claiming = {s.name for s in CATALOG.values() if s.moves is not None and s.moves.endswith("-> RUNNING")}

    assert claiming == {"claim_due", "claim_keyed", "claim_limited"}
    for name in claiming:
        text = CATALOG[name].text
        assert "where incarnation = $1 and fenced_at is null and stopped_at is null for key share" in text, name
        assert "skip locked" in text, name
        assert "live.due <= statement_timestamp()" in text, name


def test_a_claim_at_birth_is_ordered_against_the_fencing_of_its_node_and_enters_open_queues_only():
    text = CATALOG["enqueue_running"].text

    assert "where incarnation = $1 and fenced_at is null and stopped_at is null for key share" in text
    assert "horai.open_lanes(array[$7::integer])" in text
    assert "deleted_at is null and not encrypted for key share" in text


def test_all_claims_bring_the_same_columns():
    """The claims that check keys bring the key behind the others."""
    named = ("claim_due", "claim_keyed", "claim_limited")
    brought = {name: CATALOG[name].text.partition("returning ")[2] for name in named}
    columns = {name: " ".join(text.partition("has_large_payload")[0].split()) for name, text in brought.items()}

    assert columns["claim_due"] == columns["claim_limited"] == columns["claim_keyed"] != ""
    assert "claimed.lost, claimed.concurrency_key" in brought["claim_keyed"]
    assert "claimed.lost, claimed.concurrency_key" in brought["claim_limited"]


@pytest.mark.parametrize(
    "name", ["next_due", "left_behind", "payload_of", "still_running", "ended_claims", "is_awaited", "running_of_node"]
)
def test_read_only_statements_lock_no_row(name: str):
    assert CATALOG[name].moves is None
    assert "for update" not in CATALOG[name].text
