"""Writes console/openapi.json, from which the console's client is generated: what the application serves, to the letter."""

import json
import sys
from pathlib import Path
from typing import cast

from horai.api.context import Context
from horai.app import create_app
from horai.core.health import EngineHealth
from horai.db.pool import Pool
from horai.db.wakeups import Wakeups

FILE = Path(__file__).resolve().parent.parent / "console" / "openapi.json"


def render() -> str:
    """The document; describing the routes takes no database."""
    without_database = Context(cast("Pool", None), Wakeups(), EngineHealth(), 0, "default", ())
    return json.dumps(create_app(without_database).openapi(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    FILE.write_text(render())
    print(f"wrote {FILE.relative_to(FILE.parents[1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
