"""The flags of the settings of one call: `horai jobs trigger` and `horai instances put` share them."""

from typing import Annotated

from horai.cli.flags import flag

ConcurrencyKey = Annotated[
    str | None,
    flag(
        "--concurrency-key",
        about="Run at most as many instances with this key at once as the job allows (1).",
        metavar="KEY",
    ),
]
CallQueue = Annotated[
    str | None, flag("--queue", about="Run it in this queue instead of that of the job.", metavar="QUEUE")
]
CallPriority = Annotated[
    str | None, flag("--priority", about="Run it as core, high, normal or low.", metavar="PRIORITY")
]
CallExpires = Annotated[
    str | None,
    flag(
        "--expires",
        about="Begin no attempt later: a time with an offset, or a duration such as 10m after its time.",
        metavar="WHEN",
    ),
]


def settings_of(
    concurrency_key: str | None, queue: str | None, priority: str | None, expires: str | None
) -> dict[str, str]:
    """Return the members of the settings that are given."""
    given = {"concurrencyKey": concurrency_key, "queue": queue, "priority": priority, "expires": expires}
    return {name: value for name, value in given.items() if value is not None}
