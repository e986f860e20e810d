"""The pages of the API reference, written at each build from the public names of the rooms."""

import ast
import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from policy_tables import labels

import tailproof
from tailproof.policies import Policy

__all__ = ["HANDLES", "PAGES", "Page", "entries", "public_names", "write"]

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network at import


@dataclass(frozen=True)
class Page:
    """A page of the reference: its title, a sentence, and the rooms whose names it lists."""

    title: str
    intro: str
    rooms: tuple[str, ...]


PAGES = {
    "policies": Page(
        "Policies",
        "A policy is a frozen dataclass of settings with four main methods: ``init``, ``choose``, "
        "``learn`` and\n``restore``. What it has learned is a separate :obj:`tailproof.State`. "
        ":doc:`/algorithms` compares the\npolicies, and :doc:`/choosing` helps you pick one.",
        ("policies",),
    ),
    "wrappers": Page(
        "Filters and other wrappers",
        "A wrapper is a policy around another policy; wrappers nest in any order. "
        ":doc:`/how-to/drift` is about worlds that move.",
        ("wrappers", "wrappers.compositions"),
    ),
    "estimators": Page(
        "Estimators and aims",
        "An estimator reduces many rewards to one number. An aim says what to maximise: see "
        ":doc:`/aims`.\nSome classes are both.",
        ("stats",),
    ),
    "intervals": Page("Intervals and evidence", "", ("stats.intervals",)),
    "records": Page(
        "Records",
        "One checked table for every tool, from files, data frames, journals or arrays.",
        ("tables",),
    ),
    "calibrate": Page(
        "Calibration and advice",
        "Choose pulls, block and policy from recorded rewards or from a known distribution. See\n"
        ":doc:`/tutorials/rewards-in-a-file`.",
        ("advice",),
    ),
    "judging": Page(
        "Judging a log",
        "What would another rule have earned? See :doc:`/tutorials/what-would-have-been`, and "
        ":doc:`/judging` for what the\nanswers rest on.",
        ("judging",),
    ),
    "features": Page("Features of visitors", "", ("features",)),
    "noise": Page(
        "Noise distributions", ":doc:`/how-to/noise` shows how to write your own.", ("noise",)
    ),
    "environments": Page(
        "Environments",
        ":doc:`/how-to/environments` and :doc:`/how-to/arm-sets` show how to make your own, and\n"
        ":doc:`/how-to/drift` how to let it move.",
        (
            "environments",
            "environments.arm_sets",
            "environments.motions",
            "environments.shops",
        ),
    ),
    "simulation": Page(
        "Simulations, sweeps and results",
        "Run policies in environments on many paths at once, and save the results.",
        ("simulation", "results"),
    ),
    "bestarm": Page(
        "Finding the best arm",
        ":doc:`/best-arm` compares them with measured figures.",
        ("bestarm",),
    ),
    "gauntlet": Page(
        "The gauntlet",
        ":doc:`/tutorials/add-a-policy` runs a new policy through it.",
        ("research.gauntlet",),
    ),
    "live": Page(
        "Live use",
        ":doc:`/tutorials/live` puts a bandit into a running product, :doc:`/how-to/routing` "
        "routes calls between\nservers and LLM providers, and :doc:`/how-to/history` starts from "
        "past decisions.",
        ("live", "service", "integrations.routing"),
    ),
    "guests": Page(
        "Bandits from other libraries",
        ":doc:`/guests` has an example for each library, :doc:`/tutorials/keep-your-bandit` a "
        "tutorial.",
        ("integrations.guests", "integrations.hosts"),
    ),
    "figures": Page("Figures", ":doc:`/how-to/figures` prepares them for print.", ("figures",)),
    "theory": Page(
        "Theory",
        "The theorems as functions. :doc:`/theory` states and proves them.",
        ("stats.theory",),
    ),
    "testing": Page("Contract checks", "", ("testing",)),
    "recipes": Page("Recipes as text", "", ("recipes",)),
    "checks": Page("Checked parameters", "", ("checks",)),
}
"""The pages by the name of their file. A name in several rooms is on the first page."""
ROOT = Path(tailproof.__file__).parent


def _handles() -> dict[str, str]:
    """Return the public name of each room by the name of its file: names of the library first."""
    handles = dict.fromkeys(tailproof._ROOMS, "tailproof")
    handles |= {file: f"tailproof.{name}" for name, file in tailproof._MODULES.items()}
    for room in tailproof._ROOMS:
        module = import_module(f"tailproof.{room}")
        for name in module.__all__:
            if inspect.ismodule(getattr(module, name)):
                handles[f"{room}.{name}"] = f"tailproof.{name}"
    return handles


HANDLES = _handles()
"""The public module of each room that is known by another name than that of its file."""


def entries(page: Page) -> Iterator[tuple[str, str, Any]]:
    """Yield the room, the public name and the object of everything in the rooms of a page."""
    for room in page.rooms:
        module = import_module(f"tailproof.{room}")
        for name in module.__all__:
            try:
                thing = getattr(module, name)
            except ImportError:  # what is made of another library that is not installed
                thing = None
            if not inspect.ismodule(thing):
                yield room, f"{HANDLES.get(room, f'tailproof.{room}')}.{name}", thing


def public_names() -> dict[str, Any]:
    """Return every public object by the name of its page, without aliases."""
    names: dict[str, Any] = {"tailproof.__version__": tailproof.__version__}
    for page in PAGES.values():
        for _, name, thing in entries(page):
            if not any(thing is other for other in names.values() if callable(thing)):
                names[name] = thing
    return names


def write(folder: Path) -> None:
    """Write the pages, and the page that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    public = public_names()
    for file, page in PAGES.items():
        _write(folder / f"{file}.rst", _text(page, public))
    listed = "\n".join(f"   {file}" for file in PAGES)
    _write(
        folder / "index.rst",
        f"{_heading('API reference', '=')}\n"
        "Every public name, by module. Each page has a summary, the equation, the parameters, a "
        "tested example, the\nsource, and how our version differs from it. ``import tailproof as "
        "tp`` gives access to everything named\n``tailproof.…``.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{listed}\n\n"
        ".. py:data:: __version__\n   :module: tailproof\n\n   The version of this library.\n",
    )


def _write(path: Path, text: str) -> None:
    """Write a file if it changes, so that a second build has less to do."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _heading(words: str, line: str) -> str:
    return f"{words}\n{line * len(words)}\n"


def _text(page: Page, public: dict[str, Any]) -> str:
    parts = [_heading(page.title, "="), *([page.intro + "\n"] if page.intro else [])]
    for room in page.rooms:
        handle = HANDLES.get(room, f"tailproof.{room}")
        if handle != "tailproof":
            parts.append(f".. automodule:: {handle}\n   :no-members:\n")
        things = {
            name.rpartition(".")[2]: thing
            for own, name, thing in entries(page)
            if own == room and name in public
        }
        for heading, names in _sections(things).items():
            short = room.rpartition(".")[2].replace("_", " ").capitalize()
            title = heading if room == page.rooms[0] else f"{short}: {heading.lower()}"
            parts += [_heading(title, "-"), f".. currentmodule:: {handle}\n"]
            if heading == "Constants":
                parts += [_constant(room, handle, name) for name in names]
            else:
                listed = "".join(f"   {name}\n" for name in names)
                parts.append(
                    f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{listed}"
                )
    return "\n".join(parts)


def _sections(things: dict[str, Any]) -> dict[str, list[str]]:
    """Return the headings of a room in order, and the names below each of them."""
    sections: dict[str, list[str]] = {}
    for name, thing in sorted(things.items(), key=lambda item: item[0].lower()):
        sections.setdefault(_section(thing), []).append(name)
    last = ("Base classes", "Functions", "Constants")
    return dict(sorted(sections.items(), key=lambda item: (item[0] in last, item[0])))


def _section(thing: Any) -> str:
    """Return the heading that a public object is listed under."""
    if inspect.isclass(thing):
        concrete = issubclass(thing, Policy) and thing is not tailproof.Wrapper
        if inspect.isabstract(thing) or thing in (tailproof.State, tailproof.Wrapper):
            return "Base classes"
        kind = labels(thing)["Kind"] if concrete else "classes"
        return kind[0].upper() + kind[1:]
    missing = thing is None  # the class of a library that is not installed
    return "Classes" if missing else "Functions" if inspect.isroutine(thing) else "Constants"


def _constant(room: str, handle: str, name: str) -> str:
    """Return the entry of a constant: the text below its assignment, best in a file of its room."""
    source = ROOT / room.replace(".", "/")
    files = sorted(source.glob("*.py")) if source.is_dir() else [source.with_suffix(".py")]
    for file in [*files, *sorted(ROOT.glob("*.py"))]:
        lines = ast.parse(file.read_text(encoding="utf-8")).body
        for line, after in zip(lines, [*lines[1:], None], strict=True):
            target = (
                line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
            )
            if isinstance(target, ast.Name) and target.id == name and isinstance(after, ast.Expr):
                told = inspect.cleandoc(str(ast.literal_eval(after.value)))
                text = "".join(f"   {row}\n" if row else "\n" for row in told.splitlines())
                return f".. py:data:: {name}\n   :module: {handle}\n\n{text}"
    raise ValueError(f"{handle}.{name} needs a sentence below its assignment, in three quotes")
