"""Encryption keys from a command of the operator, such as one that asks a key management service.

The command writes the keys to its standard output, as a file would have them. They stay in the memory of this process: they are no
argument, no environment variable and no part of a log line. Errors name the program without its arguments.
"""

import os
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from horai.core.encryption import EncryptionKeyUnusable, KeyEncryptionKey, read_encryption_keys

COMMAND_SECONDS = 30.0
"""The time that the command may take."""


def keys_of_command(command: str, seconds: float = COMMAND_SECONDS) -> tuple[KeyEncryptionKey, ...]:
    """Run the command without a shell, and return the keys that it writes. Raises `EncryptionKeyUnusable`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _unusable("", f"its text cannot be parsed: {error}") from None
    if not words:
        raise _unusable("", "it is empty")
    program = Path(words[0]).name
    try:
        # In a session of its own: what it has started ends with it after the timeout.
        running = subprocess.Popen(  # noqa: S603 — the operator gives it
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise _unusable(program, f"it cannot be started: {error.strerror}") from None
    with running:
        try:
            written, _ = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _end(running)
            raise _unusable(program, f"it took longer than {seconds:g} s") from None
    if running.returncode != 0:
        raise _unusable(program, f"it ended with status {running.returncode}")
    return read_encryption_keys(written.decode("ascii", "replace"), f"the command {program}")


def _end(running: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    if running.stdout is not None:
        running.stdout.close()


def _unusable(program: str, reason: str) -> EncryptionKeyUnusable:
    return EncryptionKeyUnusable(
        f"The encryption key of the command {program} cannot be used: {reason}.".replace("  ", " "),
        "Run the command by hand: it has to write the key, 32 bytes in base64, to its standard output.",
    )
