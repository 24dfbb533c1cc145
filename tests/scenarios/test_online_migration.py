"""A migration of a large table of live instances while nodes work: claims do not wait for it."""

import pytest
from benchmarks import migration
from databases import Superuser
from sizes import IS_LONG

ROWS = 10_000_000 if IS_LONG else 200_000
LIMIT = 1.0


@pytest.mark.early
@pytest.mark.timeout(7200 if IS_LONG else 180)
async def test_claims_go_on_while_a_large_table_is_migrated(url: str, connection: Superuser) -> None:
    """A column with a default, a check that is validated and indexes that are built concurrently, beside a steady load."""
    found = await migration.measure(url, ROWS)

    assert found.calls > migration.RATE * found.took / 2
    assert found.p99 <= LIMIT, found
    valid = "select bool_and(indisvalid) from pg_index where indexrelid::regclass::text like 'horai.%bench_%'"
    assert await connection.fetchval(valid)
