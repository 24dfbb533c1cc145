"""The browser of the visits fits the machine's architecture."""

from pathlib import Path

import pytest

from console.chromium import VARIABLE, Choice, Installable, Installed, Machine, Missing, Packaged, choose, environment

X86, ARM = 62, 183


def _program(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    path.chmod(0o755)
    return str(path)


def _elf(path: Path, machine: int) -> str:
    return _program(path, b"\x7fELF" + bytes(14) + machine.to_bytes(2, "little") + bytes(44))


def _machine(
    architecture: str,
    installed: dict[str, str] | None = None,
    *,
    system: str = "Linux",
    is_root: bool = False,
    has_apt: bool = False,
    variable: str | None = None,
) -> Machine:
    return Machine(system, architecture, is_root, has_apt, (installed or {}).get, variable)


def test_linux_on_x86_64_uses_the_browser_of_the_package() -> None:
    assert choose(_machine("x86_64")) == Packaged()


@pytest.mark.parametrize("architecture", ["aarch64", "arm64"])
def test_arm64_uses_an_installed_chromium(tmp_path: Path, architecture: str) -> None:
    script = _program(tmp_path / "chromium", b"#!/bin/sh\n")

    assert choose(_machine(architecture, {"chromium": script})) == Installed(script)


def test_arm64_skips_an_installed_browser_that_was_built_for_x86_64(tmp_path: Path) -> None:
    foreign, own = _elf(tmp_path / "chromium", X86), _elf(tmp_path / "google-chrome", ARM)

    assert choose(_machine("aarch64", {"chromium": foreign, "google-chrome": own})) == Installed(own)
    assert isinstance(choose(_machine("aarch64", {"chromium": foreign})), Missing)


def test_arm64_on_debian_as_root_installs_the_package() -> None:
    assert choose(_machine("aarch64", is_root=True, has_apt=True)) == Installable()


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        (_machine("aarch64", has_apt=True), "apt-get install chromium"),
        (_machine("arm64", system="Darwin"), "install Chromium or Chrome"),
    ],
)
def test_without_a_browser_the_reason_says_what_to_install(machine: Machine, says: str) -> None:
    choice = choose(machine)

    assert isinstance(choice, Missing)
    assert says in choice.reason


def test_the_variable_names_another_browser_and_must_fit_the_architecture(tmp_path: Path) -> None:
    own, foreign = _elf(tmp_path / "own", ARM), _elf(tmp_path / "foreign", X86)

    assert choose(_machine("aarch64", variable=own)) == Installed(own)
    assert isinstance(choose(_machine("aarch64", variable=foreign)), Missing)
    assert isinstance(choose(_machine("x86_64", variable=str(tmp_path / "absent"))), Missing)


def test_the_chosen_browser_is_passed_to_the_visits() -> None:
    def chosen(choice: Choice) -> object:
        return environment(lambda: choice)

    assert chosen(Packaged()) == {}
    assert chosen(Installed("/usr/bin/chromium")) == {VARIABLE: "/usr/bin/chromium"}
    assert chosen(Missing("none")) == Missing("none")
