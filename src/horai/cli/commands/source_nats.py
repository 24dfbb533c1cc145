"""The service of `horai source nats`."""

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
    """Return a service that applies the changes of a consumer until it is asked to stop."""
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
                log.info("Import finished.", summary=summary_of(intake.counts))
        finally:
            await source.close()

    return take
