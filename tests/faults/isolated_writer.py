"""A client beside a node that may be cut off: it puts keys without a break, and prints each that was acknowledged.

A put without an answer is repeated with the same body and the same Idempotency-Key until it is acknowledged, as careful
clients do: a node that sees a row that only the cut-off primary has must not acknowledge the repeat.
"""

import http.client
import itertools
import json
import sys
import time
import urllib.error
import urllib.request

base, name = sys.argv[1:]
DUE = {"executeTime": "2026-01-01T00:00:00Z", "version": 1}


def put(number: int) -> str | None:
    """Return the id of the instance if the put was acknowledged."""
    request = urllib.request.Request(
        f"{base}/api/v1/jobs/load/instances/{name}-{number}",
        data=json.dumps(DUE).encode(),
        method="PUT",
        headers={"content-type": "application/json", "Idempotency-Key": f"{name}-{number}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=3) as response:
            return json.load(response)["instance"]["id"]
    except (OSError, urllib.error.URLError, http.client.HTTPException):
        return None


for number in itertools.count():
    while (acknowledged := put(number)) is None:
        time.sleep(0.1)
    print(json.dumps({"id": acknowledged, "at": time.time()}), flush=True)
    time.sleep(0.02)
