"""`horai groups`, and the flags of the identity provider."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from harness import HoraiProcess
from pages import blocks
from terminal import Terminal

from horai.cli.errors import BadUsage
from horai.cli.oidc_flags import OidcFlags, with_oidc
from horai.core.settings import ServerAccess

GUIDE = [command.text for block in blocks("docs/guides/sign-in.md") for command in block.commands]
SECRET = "canary-secret"
PUBLIC = ServerAccess(public_url="https://horai.example.com")


@pytest.fixture(scope="module")
def users(module_place: Path) -> Iterator[tuple[HoraiProcess, Terminal]]:
    """A server with the flags of the guide, and a terminal with the key of the platform that it prints."""
    secret = module_place / "client-secret"
    secret.write_text(f"{SECRET}\n")
    flags = [str(secret) if word == "client-secret" else word for word in shlex.split(GUIDE[0])[2:]]
    running = HoraiProcess(module_place / "data", *flags).start()
    root = running.lines[0].split(": ")[1].strip()
    yield running, Terminal(HORAI_SERVER=running.base, HORAI_API_KEY=root)
    assert running.stop() == 0


def test_the_commands_of_the_guide_sign_in_md_do_what_it_says(users: tuple[HoraiProcess, Terminal]) -> None:
    _, horai = users
    assert [text.split()[1] for text in GUIDE] == ["up", "groups", "groups", "groups"]
    listed = ""
    for text in GUIDE[1:]:
        done = horai(*shlex.split(text)[1:])
        assert done.code == 0, f"{text}\n{done.err}"
        listed = done.out
    assert [word in listed for word in ("horai-operators", "operator", "horai-platform", "platform-admin")] == [
        True
    ] * 4


def test_a_group_is_mapped_once_and_its_role_can_be_taken(users: tuple[HoraiProcess, Terminal]) -> None:
    _, horai = users
    made = horai("groups", "create", "staff", "--tenant", "default", "--json")
    assert (made.code, made.json["role"]) == (0, "viewer")
    again = horai("groups", "create", "staff", "--role", "admin", "--tenant", "default")
    assert (again.code, f"hint: Delete it first: `horai groups delete {made.json['id']}`." in again.err) == (1, True)
    gone = horai("groups", "delete", made.json["id"])
    assert gone.err.strip() == "The group staff no longer has the role viewer in the tenant default."
    absent = horai("groups", "delete", made.json["id"])
    assert (absent.code, "hint: `horai groups list` lists them." in absent.err) == (1, True)
    assert horai("groups", "create", "staff").code == 1


def test_a_provider_is_refused_on_a_server_without_keys(short_place: Path) -> None:
    refused = Terminal(HORAI_OIDC_CLIENT_SECRET=SECRET)(
        "up", "--port", "0", "--data-dir", str(short_place / "keyless"), "--public-url", "https://horai.example.com",
        "--oidc-issuer", "https://id.example.com", "--oidc-client-id", "horai",
    )  # fmt: skip
    assert refused.code == 1
    assert "error: Refusing to serve --oidc-issuer without a key" in refused.err
    assert "hint: Add --require-key" in refused.err
    assert SECRET not in refused.err + refused.out


def flags(**changes: str | Path | None) -> OidcFlags:
    given = {
        "issuer": "https://id.example.com", "client_id": "horai", "secret_file": None, "groups_claim": "groups",
        "scopes": "openid profile email",
    }  # fmt: skip
    return OidcFlags(**{**given, **changes})  # pyright: ignore[reportArgumentType]


def test_the_secret_comes_from_a_file_or_the_environment_and_is_in_no_repr(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(" from-file\n")
    environ = {"HORAI_OIDC_CLIENT_SECRET": SECRET}
    by_file = with_oidc(PUBLIC, flags(secret_file=tmp_path / "secret"), environ).oidc
    by_variable = with_oidc(PUBLIC, flags(scopes="openid,groups"), environ).oidc
    assert by_file is not None
    assert by_variable is not None
    assert (by_file.client_secret, by_file.scopes) == ("from-file", ("openid", "profile", "email"))
    assert (by_variable.client_secret, by_variable.scopes) == (SECRET, ("openid", "groups"))
    assert SECRET not in repr(by_variable)
    assert with_oidc(PUBLIC, flags(issuer=None, client_id=None), environ) is PUBLIC


@pytest.mark.parametrize(
    ("changes", "public_url", "told"),
    [
        ({"issuer": None}, "https://h.example", "--oidc-client-id and --oidc-client-secret-file belong to it"),
        ({"issuer": "http://id.example.com"}, "https://h.example", "must be an https address"),
        ({"issuer": "https://id.example.com?x=1"}, "https://h.example", "must be an https address"),
        ({"issuer": "https://a:b@id.example.com"}, "https://h.example", "must be an https address"),
        ({"issuer": "id.example.com"}, "https://h.example", "must be an https address"),
        ({"client_id": None}, "https://h.example", "--oidc-issuer needs it"),
        ({}, None, "the provider sends browsers back to it"),
        ({}, "http://horai.example.com", "must begin with https://"),
        ({"scopes": "profile"}, "https://h.example", "must contain openid"),
        ({"secret_file": Path("/nonexistent")}, "https://h.example", "cannot be read"),
        ({"secret_file": Path("/dev/null")}, "https://h.example", "is empty"),
    ],
)
def test_incomplete_flags_of_a_provider_are_refused(
    changes: dict[str, str | Path | None], public_url: str | None, told: str
) -> None:
    with pytest.raises(typer.BadParameter, match=told):
        with_oidc(ServerAccess(public_url=public_url), flags(**changes), {"HORAI_OIDC_CLIENT_SECRET": SECRET})


def test_a_provider_without_a_client_secret_is_refused() -> None:
    with pytest.raises(BadUsage, match="needs the client secret"):
        with_oidc(PUBLIC, flags(), {})


def test_a_provider_on_this_machine_may_speak_http() -> None:
    local = ServerAccess(public_url="http://127.0.0.1:8470")
    assert (
        with_oidc(local, flags(issuer="http://localhost:9/realm"), {"HORAI_OIDC_CLIENT_SECRET": "s"}).oidc is not None
    )
