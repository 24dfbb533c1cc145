"""A worker to be killed: it runs one call in a process of its own, and says what the function tells."""

import asyncio
import sys

from isolated_calls import call

from horai.core.calls import Call
from horai.isolation.pool import IsolatedFunctions


class Aloud:
    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        print(message, flush=True)


async def main(handler: str) -> None:
    functions = IsolatedFunctions("isolated_app:app", 1)
    functions.notes = Aloud()
    await functions.run(call(handler))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
