"""The database computes the jitter of a job as time/jitter.py does."""

import random
from datetime import timedelta

from horai.db.pool import Platform
from horai.time.jitter import LONGEST_JITTER, offset

LONGEST = LONGEST_JITTER // timedelta(milliseconds=1)
PLACES = "select horai.spread(id, jitter) from unnest($1::bigint[], $2::int[]) with ordinality as t (id, jitter, n) order by n"


async def test_a_job_is_spread_in_sql_as_in_the_core(connection: Platform):
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    ids = [*range(1, 500), 2**31 - 1, 2**31, 2**31 + 1, 2**62, *(dice.randrange(1, 2**62) for _ in range(20_000))]
    edges = [0, 1, 2, 999, 1_000, 60_000, LONGEST - 1, LONGEST]
    jitters = [dice.choice(edges) if dice.random() < 0.3 else dice.randrange(LONGEST + 1) for _ in ids]

    places = [row[0] for row in await connection.fetch(PLACES, ids, jitters)]

    wrong = [
        (job_id, jitter, place)
        for job_id, jitter, place in zip(ids, jitters, places, strict=True)
        if place != offset(job_id, timedelta(milliseconds=jitter))
    ]
    assert wrong == [], f"seed {seed}"


async def test_the_longest_jitter_of_the_largest_place_overflows_nothing(connection: Platform):
    largest = pow(1_327_217_885, -1, 2**31) * (2**31 - 1) % 2**31

    place = await connection.fetchval("select horai.spread($1, $2)", largest, LONGEST)

    assert place == offset(largest, LONGEST_JITTER) == LONGEST_JITTER - timedelta(milliseconds=1)


async def test_a_thousand_jobs_in_a_row_fill_each_second_of_a_minute_alike(connection: Platform):
    per_second = await connection.fetch(
        "select floor(extract(epoch from horai.spread(id, 60000))) as second, count(*) as jobs"
        " from generate_series(4711, 5710) as id group by 1"
    )

    assert len(per_second) == 60
    assert all(14 <= row["jobs"] <= 18 for row in per_second)
