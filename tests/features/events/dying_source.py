"""An intake in a process of its own that dies by kill -9 between a commit and its acknowledgement."""

import asyncio
import os
import signal
from collections.abc import Sequence

import make

from horai.features.events.intake import Intake, IntakeSettings
from horai.features.events.nats import NatsSettings, NatsSource
from horai.features.events.source import Message


class Dying(NatsSource):
    async def ack(self, message: Message) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


async def take(url: str, server: str, stream: str, subject: str) -> None:
    async with make.scope(url) as scope:
        source = Dying(NatsSettings((server,), stream, subject, creates_stream=True))
        await source.open()
        await Intake(scope, source, IntakeSettings(job="publish")).run(asyncio.Event())


def main(arguments: Sequence[str]) -> None:
    url, server, stream, subject = arguments
    asyncio.run(take(url, server, stream, subject))
