"""Commands that are imported when they are called: `horai --help` lists them without importing them."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup


def new_app(about: str | None = None) -> typer.Typer:
    """Return a command or a group of commands. Help is plain text: rich takes 0.4 s to draw its boxes."""
    return typer.Typer(help=about, add_completion=False, rich_markup_mode=None)


def load(name: str) -> Any:
    """Return the command `name`, from the module of that name."""
    command = typer.main.get_command(import_module(f"horai.cli.commands.{name}").app)
    command.name = name
    return command


class LazyGroup(TyperGroup):
    """A group that knows only the name and the help of each command, and loads a command when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load and return the command that `args` call. For an unknown command typer raises its own error."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, load(name) if name and placeholder else None, rest
