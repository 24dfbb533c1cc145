"""Dramatiq over Redis: eight threads, with results kept."""

# It runs where its packages are, which is not here.
# pyright: basic, reportMissingImports=false, reportFunctionMemberAccess=false, reportCallIssue=false

import asyncio
import threading
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from notes import ARGUMENTS, COMMAND, PAYLOAD, URL, Notes, dues, end_with_the_benchmark, enqueue, send, single, tell

THREADS = 8
broker = RedisBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)
notes, noting = Notes(ARGUMENTS[0] if COMMAND == "work" else 0), threading.Lock()


@dramatiq.actor(store_results=True)
def noop(due, x=""):
    with noting:
        notes.call(due)


async def put_one(due):
    await asyncio.to_thread(noop.send, due, PAYLOAD)


async def put_many(many):
    for _ in range(many):
        noop.send(0, PAYLOAD)


def serve():
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    worker.start()
    tell("ready")
    end_with_the_benchmark().join()


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
        noop.send_with_options(args=(due, PAYLOAD), delay=max(int((due - time.time()) * 1000), 0))
