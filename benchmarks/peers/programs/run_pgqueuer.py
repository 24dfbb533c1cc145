"""pgqueuer over asyncpg with uvloop: large batches, no limits on concurrency."""

# It runs where its packages are, which is not here.
# pyright: basic, reportMissingImports=false, reportFunctionMemberAccess=false, reportCallIssue=false

import json
import time
from datetime import timedelta

import asyncpg
import uvloop
from notes import ARGUMENTS, COMMAND, PAYLOAD, URL, Notes, dues, enqueue, send, single, work
from pgqueuer import AsyncpgDriver, PgQueuer, Queries

BATCH = 3000


def payload(due):
    return json.dumps({"due": due, "x": PAYLOAD}).encode()


async def main():
    connection = await asyncpg.connect(URL)
    queries = Queries(AsyncpgDriver(connection))
    if COMMAND == "schema":
        await queries.install()
    elif COMMAND == "enqueue":
        await enqueue(ARGUMENTS[0], lambda many: queries.enqueue(["noop"] * many, [payload(0)] * many, [0] * many))
    elif COMMAND == "schedule":
        times = dues(*ARGUMENTS)
        for first in range(0, len(times), 1000):
            some = times[first : first + 1000]
            waits = [timedelta(seconds=due - time.time()) for due in some]
            await queries.enqueue(["noop"] * len(some), [payload(due) for due in some], [0] * len(some), waits)
    elif COMMAND == "single":
        await single(*ARGUMENTS, lambda due: queries.enqueue("noop", payload(due), 0))
    elif COMMAND == "send":
        await send(*ARGUMENTS, lambda due: queries.enqueue("noop", payload(due), 0))
    elif COMMAND == "work":
        notes, queue = Notes(ARGUMENTS[0]), PgQueuer.from_asyncpg_connection(connection)

        @queue.entrypoint("noop")
        async def noop(job):
            notes.call(json.loads(job.payload)["due"])

        await work(queue.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=30)))


if __name__ == "__main__":
    uvloop.run(main())
