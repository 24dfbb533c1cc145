"""A client beside a node that may be cut off: it puts keys without a break, and prints each that was acknowledged."""

import http.client
import itertools
import json
import sys
import time
import urllib.error
import urllib.request

base = sys.argv[1]
for number in itertools.count():
    request = urllib.request.Request(
        f"{base}/api/v1/jobs/load/instances/isolated-{number}",
        data=b"{}",
        method="PUT",
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            told = json.load(response)
    except (OSError, urllib.error.URLError, http.client.HTTPException):
        time.sleep(0.1)
        continue
    print(json.dumps({"id": told["instance"]["id"]}), flush=True)
    time.sleep(0.02)
