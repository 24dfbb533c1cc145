"""What `horai source nats` serves: a consumer, until it is told to stop."""

import asyncio

import structlog

from horai.cli.commands.source_file import opened_scope
from horai.cli.serve import Ready, Service
from horai.db.database_location import DatabaseLocation
from horai.embedded.visit import require_url
from horai.features.events.intake import Intake, IntakeSettings, summary_of
from horai.features.events.nats import NatsSettings, NatsSource

log = structlog.get_logger(__name__)


def taking_from_nats(place: DatabaseLocation, consumer: NatsSettings, settings: IntakeSettings) -> Service:
    """Takes what a consumer delivers until it is told to stop."""
    require_url(place)

    async def take(stop: asyncio.Event, ready: Ready) -> None:
        source = NatsSource(consumer)
        try:
            await source.open()
            async with opened_scope(place) as scope:
                intake = Intake(scope, source, settings)
                whose = f" for job {settings.job}" if settings.job else ""
                ready(f"source {source.name}, {consumer.subject} as {consumer.consumer}{whose}")
                await intake.run(stop)
                log.info("What came.", told=summary_of(intake.counts))
        finally:
            await source.close()

    return take
