"""Writes console/openapi.json, from which the console's client is generated: what the application serves, to the letter."""

import json
import sys
from pathlib import Path
from typing import cast

from horai.api.app import create_app
from horai.api.context import Context

FILE = Path(__file__).resolve().parent.parent / "console" / "openapi.json"


def render() -> str:
    """The document; describing the routes takes no database."""
    return json.dumps(create_app(cast("Context", None)).openapi(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    FILE.write_text(render())
    print(f"wrote {FILE.relative_to(FILE.parents[1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
