"""The command-line reference, generated from the commands."""

import re
from typing import Any

import typer

from tailproof.cli import app

__all__ = ["MARK", "commands", "fill", "page"]

MARK = "<!-- commands -->"


def commands() -> dict[str, Any]:
    """Return the commands by name, in the order of ``tailproof --help``."""
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def fill(_app: Any, _document: str, source: list[str]) -> None:
    """Replace the mark in a page with the commands."""
    source[0] = source[0].replace(MARK, page())


def page() -> str:
    """Return the description and options of every command, as Markdown."""
    return "\n\n".join(_section(name, command) for name, command in commands().items())


def _section(name: str, command: Any) -> str:
    told = [_told(text) for text in (command.help or "").split("\n\n")]
    arguments = " ".join(
        _usage(parameter) for parameter in command.params if _is_argument(parameter)
    )
    usage = f"```sh\ntailproof {name} [OPTIONS] {arguments}".rstrip() + "\n```"
    rows = [_row(parameter) for parameter in command.params]
    table = "\n".join(["| option | meaning | default |", "|---|---|---|", *rows])
    return "\n\n".join([f"## tailproof {name}", *told, usage, *([table] if rows else [])])


def _told(paragraph: str) -> str:
    """Return a paragraph of a help text; an indented one is a file, or commands in long lines."""
    if paragraph.startswith("    "):
        lines = [line.strip().replace("\\[", "[") for line in paragraph.split("\n")]
        if lines[0].startswith("["):
            return "\n".join(["```toml", *lines, "```"])
        typed = re.sub(" (?=(tailproof|curl) )", "\n", " ".join(lines))
        return f"```sh\n{typed}\n```"
    return paragraph


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _usage(parameter: Any) -> str:
    name = parameter.name.upper() + ("…" if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _row(parameter: Any) -> str:
    if _is_argument(parameter):
        names = f"`{parameter.name.upper()}`"
    else:
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    told = (parameter.help or "").replace("|", r"\|")
    return f"| {names} | {told} | {_default(parameter)} |"


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or value is False or value == []:
        return ""
    values = value if isinstance(value, list | tuple) else [value]
    return ", ".join(f"`{item}`" for item in values)
