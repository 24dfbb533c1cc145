"""The process: `python -m examples.article_service.service`. It reads its settings from the environment.

ARTICLES_DATABASE_URL    its own database
ARTICLES_PORT            its port on 127.0.0.1 (0: any free port)
HORAI_SERVER             Horai's address
HORAI_WEBHOOK_SECRET     the secret that Horai signs its calls with: `whsec_…`
"""

import asyncio
import os
import signal
import socket
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager

import aiohttp
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from . import authors, callbacks
from .articles import IllegalMove
from .desk import Desk
from .messenger import Messenger
from .scheduler import AUDIT, PUBLISH, Scheduler, Unreachable
from .signatures import BadSignature
from .store import NoSuchArticle, open_store

STATUS: Mapping[type[Exception], int] = {IllegalMove: 409, NoSuchArticle: 404, BadSignature: 401}
PATIENCE = 0.5


async def declare_jobs(scheduler: Scheduler, base: str) -> None:
    """Both jobs, pointing to us. Horai may come later than we do."""
    for job, path in ((AUDIT, "/horai/audit"), (PUBLISH, "/horai/publish")):
        while True:
            try:
                await scheduler.declare(job, base + path)
                break
            except Unreachable:
                await asyncio.sleep(PATIENCE)


def create_app(desk: Desk) -> FastAPI:
    """The routes over their means."""
    app = FastAPI(title="Articles")
    app.state.desk = desk
    app.include_router(authors.router)
    app.include_router(callbacks.router)
    for kind in STATUS:
        app.add_exception_handler(kind, refused)
    return app


async def serve(environment: Mapping[str, str]) -> None:
    """Until it is told to stop."""
    listening = socket.create_server(("127.0.0.1", int(environment.get("ARTICLES_PORT", "0"))))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # an answer must not wait for an acknowledgement
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(environment["ARTICLES_DATABASE_URL"]))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        scheduler = Scheduler(session, environment["HORAI_SERVER"])
        await declare_jobs(scheduler, base)
        messenger = Messenger(store, scheduler)
        telling = asyncio.create_task(messenger.keep_telling())
        stack.callback(telling.cancel)
        app = create_app(Desk(store, messenger, environment["HORAI_WEBHOOK_SECRET"]))
        print(f"Articles are served: {base}", flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        await Server(config).serve(sockets=[listening])


class Server(uvicorn.Server):
    """Ends on a signal, and leaves it to us to end the rest."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.handle_exit, number, None)
        yield


async def refused(_: Request, error: Exception) -> JSONResponse:
    """Answer a request that is not possible; it has changed nothing."""
    return JSONResponse({"detail": str(error)}, STATUS[type(error)])


def main() -> None:
    asyncio.run(serve(os.environ))


if __name__ == "__main__":
    main()
