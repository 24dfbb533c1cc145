"""An intake in a process of its own that dies by kill -9 between a commit and its acknowledgement."""

import asyncio
import os
import signal
import sys

import make

from horai.features.events.intake import Intake, IntakeSettings
from horai.features.events.nats import NatsSettings, NatsSource
from horai.features.events.source import Message


class Dying(NatsSource):
    async def ack(self, message: Message) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, server: str, stream: str, subject: str) -> None:
    async with make.scope(url) as scope:
        source = Dying(NatsSettings((server,), stream, subject, creates_stream=True))
        await source.open()
        await Intake(scope, source, IntakeSettings(job="publish")).run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
