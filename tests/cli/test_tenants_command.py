"""`horai tenants`: the commands of the guide, and what they print."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import HoraiProcess
from pages import blocks
from terminal import Terminal


@pytest.fixture(scope="module")
def platform(short_place: Path) -> Iterator[Terminal]:
    """The command line with a key of the platform."""
    running = HoraiProcess(short_place / "tenants").start()
    key = Terminal()("keys", "create", "--role", "platform-admin", "--server", running.base).out.strip()
    yield Terminal(HORAI_SERVER=running.base, HORAI_API_KEY=key)
    assert running.stop() == 0


def test_the_commands_of_the_guide_tenants_md_do_what_it_says(platform: Terminal, tmp_path: Path) -> None:
    typed = [command.text for block in blocks("docs/guides/tenants.md") for command in block.commands]
    assert len(typed) == 9
    printed = dict[str, str]()
    for text in typed:
        if "export" in text:  # by an admin of the tenant
            text = text.replace("market.jsonl", str(tmp_path / "market.jsonl"))  # noqa: PLW2901
            assert platform(*shlex.split(text)[1:]).code == 1
            key = platform("keys", "create", "--tenant", "market", "--role", "admin").out.strip()
            (tmp_path / "market.jsonl").unlink(missing_ok=True)
            done = platform(*shlex.split(text)[1:], HORAI_API_KEY=key)
            assert done.code == 0, done.err
            last = json.loads((tmp_path / "market.jsonl").read_text().splitlines()[-1])
            assert (last["kind"], last["counts"]["audit"]) == ("end", 1)
        else:
            done = platform(*shlex.split(text)[1:])
        assert done.code == 0, f"{text}\n{done.err}"
        printed[text] = " ".join(done.out.split())
    shown = printed["horai tenants show market"]
    for part in (
        "weight 2",
        "jobs 0 of 200",
        "live instances 0 of 100000",
        "new per second 500",
        "payload bytes 65536",
        "running 0 of 50",
    ):
        assert part in shown, shown
    assert "callback networks 10.1.0.0/16, 203.0.113.0/24" in shown
    assert "status paused" in printed["horai tenants pause market"]
    assert "status active" in printed["horai tenants resume market"]
    assert "status deleting" in printed["horai tenants delete market --confirm market"]


def test_none_removes_a_quota_and_wrong_values_name_their_flag(platform: Terminal) -> None:
    assert platform("tenants", "set", "default", "--jobs", "7", "--callback-network", "10.0.0.0/8").code == 0
    after = platform("tenants", "set", "default", "--jobs", "none", "--callback-network", "none", "--json").json
    assert (after["quotas"]["jobs"], after["quotas"]["callbackNetworks"]) == (None, None)
    wrong = platform("tenants", "set", "default", "--jobs", "many")
    assert (wrong.code, "--jobs" in wrong.err) == (2, True)
    unconfirmed = platform("tenants", "delete", "default")
    assert (unconfirmed.code, "--confirm default" in unconfirmed.err) == (2, True)
    stays = platform("tenants", "delete", "default", "--confirm", "default")
    assert (stays.code, "cannot be deleted" in stays.err) == (1, True)


def test_a_key_of_a_tenant_shows_its_own_tenant(platform: Terminal) -> None:
    key = platform("keys", "create", "--tenant", "default", "--role", "viewer").out.strip()
    own = platform("tenants", "show", HORAI_API_KEY=key)
    assert (own.code, "default" in own.out, "of no limit" in own.out) == (0, True, True)
    assert platform("tenants", "show", "default", HORAI_API_KEY=key).code == 1


def test_a_tenant_gets_its_times_and_none_removes_one(platform: Terminal) -> None:
    done = platform("tenants", "set", "default", "--keep-history", "7d", "--keep-dead-letters", "30d", "--json")
    assert (done.code, done.json["keepHistory"], done.json["keepDeadLetters"]) == (0, "7d", "30d")
    done = platform("tenants", "set", "default", "--keep-history", "none", "--json")
    assert (done.json["keepHistory"], done.json["keepDeadLetters"]) == (None, "30d")
    shown = " ".join(platform("tenants", "show", "default").out.split())
    assert "history kept for the time of the nodes dead letters kept for 30d" in shown
    wrong = platform("tenants", "set", "default", "--keep-history", "90m")
    assert (wrong.code, "keepHistory: is not between 1d and 3650d" in wrong.err) == (1, True)
