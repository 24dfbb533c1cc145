"""docs/guides/events.md: what it types is typed, beside a real nats-server."""

import json
import re
import shlex
import time
from pathlib import Path

import pytest
from nats_server import NatsServer
from pages import Command, blocks
from typist import Typist

PAGE = "docs/guides/events.md"
CHANGES = [
    {"job": "publish", "key": "article:7", "executeTime": "2030-01-01T09:00:00+08:00"},
    {"job": "publish", "key": "article:8", "cancel": True},
    {"job": "audit", "key": "article:7", "executeTime": "2030-01-01T09:00:00+08:00"},
]


class Reader(Typist):
    """Knows where NATS is, and waits until what was published has arrived."""

    def __init__(self, directory: Path, server: NatsServer) -> None:
        super().__init__(directory)
        self._server = server

    def _meant(self, word: str) -> str:
        return super()._meant(word.replace("nats://127.0.0.1:4222", self._server.url))

    def command(self, command: Command) -> None:
        if command.text.startswith("horai source nats"):
            words = [self._meant(word) for word in shlex.split(command.text)]
            self._begin(words, command)
        elif "jsonl changes.jsonl" in command.text:
            with pytest.raises(AssertionError, match="1 lines were parked"):
                super().command(command)
        elif "history" in command.text:
            self._until_shown(command)
        else:
            super().command(command)

    def _until_shown(self, command: Command) -> None:
        deadline = time.monotonic() + 20
        while True:
            try:
                return super().command(command)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise


@pytest.mark.timeout(300)
def test_every_snippet_of_the_guide_does_what_it_says(short_place: Path, nats_server: NatsServer) -> None:
    directory = short_place / "events-guide"
    directory.mkdir()
    directory.chmod(0o755)
    (directory / "changes.jsonl").write_text("".join(json.dumps(change) + "\n" for change in CHANGES))
    reader = Reader(directory, nats_server)
    try:
        reader.command(Command("horai up", ()))
        for block in blocks(PAGE):
            if block.language == "python":
                reader.python(block)
            else:
                assert re.fullmatch("console", block.language)
                for command in block.commands:
                    reader.command(command)
        reader.stop()
    finally:
        reader.kill()
