"""Keys that `horai login` has stored, by the address of their server, in a file that only its owner can read."""

import json
import os
from contextlib import suppress
from pathlib import Path

from horai.cli.errors import CommandFailed

MODE = 0o600


def credentials_file() -> Path:
    """Return the place of the file: $XDG_CONFIG_HOME/horai, or ~/.config/horai."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "horai" / "credentials.json"


def stored_key(server: str) -> str | None:
    """Return the key stored for this server, or None. Raise `CommandFailed` if others can read the file."""
    file = credentials_file()
    try:
        if file.stat().st_mode & 0o077:
            raise CommandFailed(f"{file} can be read by other users.", f"chmod 600 {file}")
        return json.loads(file.read_text("utf-8")).get(server)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:
        raise CommandFailed(f"{file} cannot be read: {error}.", "Delete it and sign in again: horai login.") from error


def store_key(server: str, key: str | None) -> None:
    """Store the key of a server, or remove it. The file is replaced as a whole."""
    file = credentials_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    known = dict[str, str]()
    if file.exists():
        with suppress(ValueError):
            known.update(json.loads(file.read_text("utf-8")))
    known.pop(server, None)
    if key is not None:
        known[server] = key
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        json.dump(known, opened, indent=2)
    draft.replace(file)
