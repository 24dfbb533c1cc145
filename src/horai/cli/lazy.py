"""Commands that are imported when they are called: `horai --help` lists them without."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup


def new_app(about: str | None = None) -> typer.Typer:
    """A command, or a group of them. Help is plain text: rich takes 0.4 s to draw its boxes."""
    return typer.Typer(help=about, add_completion=False, rich_markup_mode=None)


def load(name: str) -> Any:
    """The command `name`, from the module of that name."""
    command = typer.main.get_command(import_module(f"horai.cli.commands.{name}").app)
    command.name = name
    return command


class LazyGroup(TyperGroup):
    """Knows its commands by name and help; the real one takes its placeholder's place when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that `args` call, loaded; typer's own words for one that does not exist."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, load(name) if name and placeholder else None, rest
