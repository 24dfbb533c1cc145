"""The encryption key of a command: read once, in time, and shown nowhere."""

import base64
import shlex
import sys
import time
from pathlib import Path

import psutil
import pytest

from horai.core.encryption import EncryptionKeyUnusable
from horai.core.settings import EngineSettings
from horai.operations.key_command import keys_of_command
from horai.operations.keyring import keyring_of, with_process_keys

KEY = base64.b64encode(bytes(range(32))).decode()


def python(code: str) -> str:
    """Return a command that runs this code."""
    return shlex.join([sys.executable, "-c", code])


def test_C42_the_output_of_a_command_is_the_key() -> None:
    both = keys_of_command(python(f"print({KEY!r}); print({KEY!r})"))
    assert [base64.b64encode(key.key).decode() for key in both] == [KEY, KEY]


def test_C42_the_command_runs_without_a_shell(tmp_path: Path) -> None:
    with pytest.raises(EncryptionKeyUnusable):
        keys_of_command(f"echo {KEY} ; touch {tmp_path / 'made'}")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (f"print({KEY!r}); raise SystemExit(3)", "it ended with status 3"),
        ("print('not base64 at all!')", "it is not base64"),
        ("print('\\xe9')", "it is not base64"),
        ("print('c2hvcnQ=')", "a key has 5 bytes instead of 32"),
        ("pass", "it is empty"),
    ],
)
def test_C42_a_command_without_a_usable_key_is_refused_and_its_output_is_not_told(code: str, told: str) -> None:
    with pytest.raises(EncryptionKeyUnusable, match=told) as refused:
        keys_of_command(python(code))
    said = f"{refused.value} {refused.value.hint} {refused.value!r}"
    assert KEY not in said
    assert "print" not in said, "arguments may be secret"
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("command", "told"), [("", "it is empty"), ("'open", "cannot be parsed"), ("/no/such/kms a", "kms cannot")]
)
def test_C42_a_command_that_cannot_be_started_is_refused(command: str, told: str) -> None:
    with pytest.raises(EncryptionKeyUnusable, match=told):
        keys_of_command(command)


def test_C42_a_command_that_takes_too_long_ends_with_what_it_has_started(tmp_path: Path) -> None:
    marks = tmp_path / "pids"
    inner = "import time; time.sleep(600)"
    code = (
        "import os, subprocess, sys; "
        f"child = subprocess.Popen([sys.executable, '-c', {inner!r}]); "
        f"open({str(marks)!r}, 'w').write(str(child.pid)); child.wait()"
    )
    began = time.monotonic()
    with pytest.raises(EncryptionKeyUnusable, match="longer than 2 s"):
        keys_of_command(python(code), seconds=2.0)
    took = time.monotonic() - began
    child = psutil.Process(int(marks.read_text())) if psutil.pid_exists(int(marks.read_text())) else None
    try:
        assert took < 15
        assert child is None or child.wait(20) is None
    finally:
        if child is not None and child.is_running():
            child.kill()


def test_C42_a_process_of_the_sdk_takes_file_then_command_then_variable(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    command = python(f"print({KEY!r})")
    environ = {"HORAI_ENCRYPTION_KEY_COMMAND": command, "HORAI_ENCRYPTION_KEY": "broken"}
    settings = with_process_keys(EngineSettings(), environ, None)
    assert settings.encryption_key_command == command
    assert keyring_of(settings).is_on
    assert KEY not in repr(settings)
    assert command not in repr(settings)
    of_file = with_process_keys(EngineSettings(), {**environ, "HORAI_ENCRYPTION_KEY_FILE": str(file)}, None)
    assert (of_file.encryption_key_file, of_file.encryption_keys) == (str(file), ())
