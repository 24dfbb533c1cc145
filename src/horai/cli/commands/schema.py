"""`horai schema`: the JSON Schema of definitions, for editors."""

import json
import sys

from horai.cli.lazy import new_app

app = new_app()


@app.command()
def schema() -> None:
    """Print the JSON Schema of the definitions that `horai apply` reads, for editors. Needs no server."""
    from horai.api.routes.definitions import schema_of  # noqa: PLC0415 - takes half a second
    from horai.app import definition_kinds  # noqa: PLC0415

    sys.stdout.write(json.dumps(schema_of(definition_kinds().values()), indent=2, ensure_ascii=False) + "\n")
