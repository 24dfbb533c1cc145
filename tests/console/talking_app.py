"""An application whose function writes lines of all levels and fails inside a library, for the visits of logs."""

import json
from typing import Any

from horai import Horai, Instance, Unrecoverable

app = Horai("talking")


def read_order(text: str) -> Any:
    """Read what is no JSON: the innermost frames are those of the library."""
    return json.loads(text)


@app.job
def talk(instance: Instance[Any]) -> None:
    instance.log("looking for the order", "DEBUG")
    for number in range(40):
        instance.log(f"row {number} of the order")
    instance.log("the ledger answers slowly", "WARNING")
    instance.log('it failed before:\n  File "/app/shop/jobs.py", line 12, in charge\n    pay(order)', "ERROR")
    try:
        read_order("{")
    except ValueError as error:
        raise Unrecoverable("the order is no JSON").with_traceback(error.__traceback__) from error
