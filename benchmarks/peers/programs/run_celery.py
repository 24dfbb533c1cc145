"""Celery over Redis: one process without a pool, which is its fastest way for short tasks, with results kept."""

# It runs where its packages are, which is not here.
# pyright: basic, reportMissingImports=false, reportFunctionMemberAccess=false, reportCallIssue=false

import asyncio
from datetime import UTC, datetime

from celery import Celery
from notes import ARGUMENTS, COMMAND, PAYLOAD, URL, Notes, dues, end_with_the_benchmark, enqueue, send, single, tell

notes = Notes(ARGUMENTS[0] if COMMAND == "work" else 0)
app = Celery(
    "peer", broker=URL.replace("unix://", "redis+socket://"), backend=URL.replace("unix://", "redis+socket://")
)
app.conf.update(worker_prefetch_multiplier=1000, broker_connection_retry_on_startup=True, task_acks_late=True)


@app.task(name="noop")
def noop(due, x=""):
    notes.call(due)


async def put_one(due):
    await asyncio.to_thread(noop.delay, due, PAYLOAD)


async def put_many(many):
    with app.producer_or_acquire() as producer:
        for _ in range(many):
            noop.apply_async((0, PAYLOAD), producer=producer)


def serve():
    end_with_the_benchmark()
    quiet = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
    app.WorkController(
        pool="solo", ready_callback=lambda _: tell("ready"), **quiet
    ).start()  # `app.Worker` prints a banner


if COMMAND == "work":
    serve()
elif COMMAND == "enqueue":
    asyncio.run(enqueue(ARGUMENTS[0], put_many))
elif COMMAND == "single":
    asyncio.run(single(*ARGUMENTS, put_one))
elif COMMAND == "send":
    asyncio.run(send(*ARGUMENTS, put_one))
elif COMMAND == "schedule":
    for due in dues(*ARGUMENTS):
        noop.apply_async((due, PAYLOAD), eta=datetime.fromtimestamp(due, UTC))
