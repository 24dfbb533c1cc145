"""One command: the stock system as a process of its own, and the story. `python -m examples.inventory_sync`."""

import asyncio
import os
import sys

from .. import stage
from .story import tell


def main() -> None:
    command = [sys.executable, "-m", "examples.inventory_sync.stock"]
    with stage.a_directory() as directory:
        with stage.running(command, "Stock is served: ", {}, directory / "stock.log") as stock:
            print(f"the stock system: {stock}", flush=True)
            os.environ["STOCK_URL"] = stock
            asyncio.run(tell(lambda line: print(line, flush=True)))


if __name__ == "__main__":
    main()
