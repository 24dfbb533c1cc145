"""Procrastinate over psycopg: eight jobs at once, finished ones kept; it finds scheduled ones by polling, here ten times a second."""

# It runs where its packages are, which is not here.
# pyright: basic, reportMissingImports=false, reportFunctionMemberAccess=false, reportCallIssue=false

import logging
from datetime import UTC, datetime

import procrastinate
import uvloop
from notes import ARGUMENTS, COMMAND, PAYLOAD, URL, Notes, dues, enqueue, send, single, work
from procrastinate.jobs import Job

AT_ONCE = 8
POLL = 0.1
logging.getLogger("procrastinate").setLevel(logging.ERROR)  # it warns of an app in the main module
notes = Notes(ARGUMENTS[0] if COMMAND == "work" else 0)
connector = procrastinate.PsycopgConnector(conninfo=URL, min_size=AT_ONCE, max_size=AT_ONCE)
app = procrastinate.App(connector=connector)


@app.task(name="noop", queue="default")
async def noop(due, x=""):
    notes.call(due)


def job_at(due):
    at = datetime.fromtimestamp(due, UTC)
    return Job(
        id=None,
        queue="default",
        lock=None,
        queueing_lock=None,
        task_name="noop",
        task_kwargs={"due": due},
        scheduled_at=at,
    )


async def main():
    async with app.open_async():
        if COMMAND == "schema":
            await app.schema_manager.apply_schema_async()
        elif COMMAND == "enqueue":
            await enqueue(ARGUMENTS[0], lambda many: noop.batch_defer_async(*[{"due": 0, "x": PAYLOAD}] * many))
        elif COMMAND == "schedule":
            times = dues(*ARGUMENTS)
            for first in range(0, len(times), 1000):
                await app.job_manager.batch_defer_jobs_async([job_at(due) for due in times[first : first + 1000]])
        elif COMMAND == "single":
            await single(*ARGUMENTS, lambda due: noop.defer_async(due=due, x=PAYLOAD))
        elif COMMAND == "send":
            await send(*ARGUMENTS, lambda due: noop.defer_async(due=due, x=PAYLOAD))
        elif COMMAND == "work":
            await work(
                app.run_worker_async(
                    concurrency=AT_ONCE,
                    fetch_job_polling_interval=POLL,
                    delete_jobs="never",
                    install_signal_handlers=False,
                )
            )


if __name__ == "__main__":
    uvloop.run(main())
