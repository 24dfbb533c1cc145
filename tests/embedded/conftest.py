"""A place for data directories, and a data directory that is ready to be started."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_servers import ask, copied, run, running, short_lived_place


@pytest.fixture
def place() -> Iterator[Path]:
    with short_lived_place() as made:
        yield made


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A data directory as a stopped server leaves it; copying it is cheaper than initdb."""

    async def story() -> None:
        async with running(made / "data") as postgres:
            await ask(postgres.url, "CREATE TABLE kept AS SELECT 'before' AS what")

    with short_lived_place() as made:
        run(story())
        yield made / "data"


@pytest.fixture
def data_dir(place: Path, template: Path) -> Path:
    return copied(template, place / "data")
