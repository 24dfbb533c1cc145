"""JSON that users give on the command line, in a file or on stdin. Values are passed on unchanged."""

import sys
from pathlib import Path

import msgspec

from horai.cli.errors import BadUsage, refuse_flag

Members = dict[str, msgspec.Raw]


def payload_of(text: str | None) -> Members:
    """Return the member `payload`, or no member without a payload."""
    return {} if text is None else {"payload": json_of("--payload", text)}


def json_of(name: str, text: str) -> msgspec.Raw:
    """Return the value of a flag that is JSON."""
    try:
        raw = text.encode("utf-8")
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        refuse_flag(name, f"is not JSON: {error}; quote it for the shell: {name} '{{\"n\": 1}}'")
    return msgspec.Raw(raw)


def read_document(file: Path) -> Members:
    """Return the members of the JSON object in a file; `-` is stdin."""
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise BadUsage(f"{file} cannot be read: {error.strerror}.") from error
    try:
        return msgspec.json.decode(text, type=Members)
    except msgspec.DecodeError as error:
        where = "stdin" if str(file) == "-" else str(file)
        raise BadUsage(f"{where} is not a JSON object: {error}.", "One job is one object.") from error
