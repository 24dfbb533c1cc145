"""What the engine knows of jobs: definitions at most a second old, read for a whole batch at once."""

import time
from collections.abc import Iterable

from horai.db import jobs
from horai.db.jobs import Runnable
from horai.db.pool import Connection

FRESH_SECONDS = 1.0
LIMIT = 10_000


class JobBook:
    """A small cache. A pause or a change is seen after a second at the latest."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, Runnable]] = {}

    async def get(self, connection: Connection, job_ids: Iterable[int]) -> dict[int, Runnable]:
        """The jobs by id; one whose row is gone for good is absent."""
        wanted = set(job_ids)
        fresh_after = time.monotonic() - FRESH_SECONDS
        known = {i: self._known[i][1] for i in wanted if i in self._known and self._known[i][0] >= fresh_after}
        if missing := wanted - known.keys():
            read = await jobs.jobs_to_run(connection, sorted(missing))
            if len(self._known) + len(read) > LIMIT:
                self._known.clear()
            now = time.monotonic()
            self._known |= {job_id: (now, job) for job_id, job in read.items()}
            known |= read
        return known
