"""The output of a command that streams: a new file, or stdout."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from horai.cli.errors import CommandFailed
from horai.cli.show import say


def stream_to(output: Path | None, stream: Callable[[Callable[[bytes], object]], None]) -> None:
    """Call `stream` with a function that writes to a file, which must not exist, or to stdout."""
    if output is None:
        stream(sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
        return
    with _writing(output), output.open("xb") as file:
        stream(lambda part: _write(output, file, part))
    say(f"Exported to {output}.")


@contextmanager
def _writing(output: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise CommandFailed(f"{output} cannot be written: {error.strerror or error}.") from error


def _write(output: Path, file: IO[bytes], part: bytes) -> None:
    with _writing(output):  # the client would take the error for one of the connection
        file.write(part)
