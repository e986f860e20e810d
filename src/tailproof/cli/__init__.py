"""The command line: the library's own calls, typed.

A command imports what it needs when it runs, so that ``--help`` answers at once.
"""

import inspect
import io
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tailproof.cli import calibrate, judge, live, paper, simulate
from tailproof.cli.output import clear_errors

__all__ = ["app", "main"]


def _plain(kind: Any) -> Any:
    """Return a kind of command whose help shows flags without ``<bool>``."""

    class Plain(kind):  # type: ignore[misc]
        def get_params(self, ctx: Any) -> Any:
            params = super().get_params(ctx)
            for flag in params:
                if getattr(flag, "is_flag", False):
                    flag.metavar = ""
            return params

    return Plain


def _wrapped(command: Any) -> str:
    """Return a command's help with each paragraph on one line, so that it fills the terminal."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(
        text if text.startswith("    ") else text.replace("\n", " ") for text in paragraphs
    )


app = typer.Typer(
    help="Bandits whose rewards may have no mean.",
    cls=_plain(TyperGroup),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Your own decisions": (*calibrate.COMMANDS, *live.COMMANDS, *judge.COMMANDS),
    "Journals of live decisions": live.JOURNALS,
    "Simulations": simulate.COMMANDS,
    "The paper": paper.COMMANDS,
}
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        _name = _command.__name__.removesuffix("_command")
        _add = app.command(
            _name, help=_wrapped(_command), cls=_plain(TyperCommand), rich_help_panel=_panel
        )
        _add(clear_errors(_command))


def main() -> None:
    """Run the command; characters that the terminal cannot print become question marks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()


def _show_version(asked: bool) -> None:
    if asked:
        from tailproof import __version__

        print(f"tailproof {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    pass
