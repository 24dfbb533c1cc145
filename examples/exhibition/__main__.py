"""One command: Horai, a worker and the story. `python -m examples.exhibition`."""

import asyncio
import os
import time

from .. import stage


def main() -> None:
    with stage.a_directory() as directory, stage.horai(directory, "--app", "examples.exhibition.jobs:app") as horai:
        print(f"Horai, with a worker for {__package__}: {horai}", flush=True)
        os.environ["HORAI_DATABASE_URL"] = stage.database_url(directory)
        asyncio.run(told())


async def told() -> None:
    """Prints the story, with the seconds that have passed."""
    from .jobs import app  # noqa: PLC0415 — not before the environment names the database
    from .story import tell  # noqa: PLC0415

    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - begun:6.2f} s  {line}", flush=True)

    async with app:
        await tell(say)


if __name__ == "__main__":
    main()
