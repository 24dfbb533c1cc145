"""`horai keys`, `horai tenants` and `horai login`, and a server that asks for keys."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest
from harness import HoraiProcess
from pages import blocks
from terminal import Terminal

from horai.core.access_keys import id_of


@pytest.fixture(scope="module")
def closed(module_place: Path) -> Iterator[tuple[HoraiProcess, Terminal, str]]:
    """A server with a key of the platform, which the embedded database was given before its first start."""
    running = HoraiProcess(module_place / "data").start()
    first = Terminal()("keys", "create", "--role", "platform-admin", "--server", running.base)
    assert (first.code, id_of(first.out.strip()) is not None) == (0, True), first
    yield running, Terminal(HORAI_SERVER=running.base), first.out.strip()
    assert running.stop() == 0


def test_without_a_key_every_command_is_refused_with_the_way_in(closed: tuple[HoraiProcess, Terminal, str]) -> None:
    _, horai, _ = closed
    refused = horai("jobs", "list")
    assert refused.code == 1
    assert "error: The request has no key" in refused.err
    assert "hint: Give --api-key or set HORAI_API_KEY, or sign in: `horai login`." in refused.err


def test_a_tenant_gets_its_first_key_from_the_platform(closed: tuple[HoraiProcess, Terminal, str]) -> None:
    _, horai, root = closed
    made = horai("tenants", "create", "north", "--json", HORAI_API_KEY=root)
    assert (made.code, made.json["name"]) == (0, "north")
    created = horai("keys", "create", "--role", "admin", "--tenant", "north", "--name", "deploy", HORAI_API_KEY=root)
    assert created.code == 0
    assert "with the role admin of the tenant north. It is not shown again." in created.err
    admin = created.out.strip()

    assert horai("jobs", "create", "nightly", HORAI_API_KEY=admin).code == 0
    assert [job["name"] for job in horai("jobs", "list", "--json", HORAI_API_KEY=admin).json["items"]] == ["nightly"]
    assert "deploy" in horai("keys", "list", HORAI_API_KEY=admin).out
    assert "north" in horai("tenants", "list", HORAI_API_KEY=root).out
    assert "north" in horai("tenants", "show", "north", HORAI_API_KEY=root).out
    refused = horai("tenants", "list", HORAI_API_KEY=admin)
    assert (refused.code, "needs the role platform-admin" in refused.err) == (1, True)


def test_a_revoked_key_is_refused(closed: tuple[HoraiProcess, Terminal, str]) -> None:
    _, horai, root = closed
    key = horai("keys", "create", "--tenant", "default", "--expires-in", "90d", "--json", HORAI_API_KEY=root).json
    assert key["expiresAt"] is not None
    assert horai("jobs", "list", HORAI_API_KEY=key["key"]).code == 0
    revoked = horai("keys", "revoke", key["id"], HORAI_API_KEY=root)
    assert (revoked.code, revoked.err.strip()) == (0, f"The key {key['id']} is revoked.")
    assert horai("jobs", "list", HORAI_API_KEY=key["key"]).code == 1


def test_the_operator_of_the_database_creates_a_key_without_one(closed: tuple[HoraiProcess, Terminal, str]) -> None:
    running, horai, _ = closed
    made = Terminal()("keys", "create", "--data-dir", str(running.data_dir), "--name", "rescue", "--json")
    assert (made.code, made.json["tenant"], made.json["role"]) == (0, "default", "admin"), made.err
    assert horai("jobs", "list", HORAI_API_KEY=made.json["key"]).code == 0
    wrong = Terminal()("keys", "create", "--data-dir", str(running.data_dir), "--tenant", "nowhere")
    assert (wrong.code, "There is no tenant 'nowhere'." in wrong.err) == (1, True)


def test_login_stores_a_checked_key_that_only_its_owner_can_read(
    closed: tuple[HoraiProcess, Terminal, str], tmp_path: Path
) -> None:
    running, _, root = closed
    horai = Terminal(HORAI_SERVER=running.base, XDG_CONFIG_HOME=str(tmp_path))
    file = tmp_path / "horai" / "credentials.json"
    assert horai("login", stdin="hk_wrong\n").code == 1
    assert not file.exists()

    signed_in = horai("login", stdin=f"{root}\n")
    assert (signed_in.code, "as platform-admin" in signed_in.err) == (0, True)
    assert S_IMODE(file.stat().st_mode) == 0o600
    assert horai("tenants", "list").code == 0
    assert horai("tenants", "list", "--server", "http://127.0.0.1:1").code == 1

    file.chmod(0o644)
    exposed = horai("tenants", "list")
    assert (exposed.code, f"hint: chmod 600 {file}" in exposed.err) == (1, True)
    file.chmod(0o600)
    assert horai("login", "--remove").code == 0
    assert horai("tenants", "list").code == 1


def test_the_commands_of_the_guide_securing_md_do_what_it_says(closed: tuple[HoraiProcess, Terminal, str]) -> None:
    """All but `horai up`, which tests/cli/test_network.py types, and those on a database of one's own, by test_plain_login.py."""
    running, horai, root = closed
    typed = [command.text for block in blocks("docs/guides/securing.md") for command in block.commands]
    own = [text for text in typed if "@db/horai" in text]
    assert (len(typed), len(own)) == (8, 3)
    for text in typed:
        if not text.startswith("horai up") and text not in own:
            done = horai(*shlex.split(text)[1:], HORAI_API_KEY=root, HORAI_DATA_DIR=str(running.data_dir))
            assert done.code == 0, f"{text}\n{done.err}"


def test_require_key_prints_the_first_keys_once_and_serves_no_request_without_one(short_place: Path) -> None:
    running = HoraiProcess(short_place / "required", "--require-key").start()
    try:
        assert [line.split(":")[0] for line in running.lines[:2]] == [
            "Key of the platform-admin, shown only now",
            "Key of the admin of the tenant default, shown only now",
        ]
        admin = running.lines[1].split(": ")[1].strip()
        horai = Terminal(HORAI_SERVER=running.base)
        assert horai("jobs", "list").code == 1
        assert horai("jobs", "list", "--api-key", admin).code == 0
    finally:
        assert running.stop() == 0
    again = HoraiProcess(short_place / "required", "--require-key").start()
    try:
        assert not [line for line in again.lines if line.startswith("Key of")]
        assert Terminal(HORAI_SERVER=again.base)("jobs", "list", "--api-key", admin).code == 0
    finally:
        assert again.stop() == 0
