"""The slow part of publishing, which can be held up: calls that publish meanwhile wait inside."""

import asyncio


class Press:
    """Prints at once, unless it is held."""

    def __init__(self) -> None:
        self._runs = asyncio.Event()
        self._runs.set()

    def hold(self) -> None:
        """Nothing is printed until `release`."""
        self._runs.clear()

    def release(self) -> None:
        """All that waits is printed."""
        self._runs.set()

    async def print(self) -> None:
        """Returns when it is printed."""
        await self._runs.wait()
