"""Write results as one offline page."""

import base64
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from matplotlib import rc_context

from tailproof.paper import EXHIBITS
from tailproof.paper.exhibit import Comparison, JudgedClaim, Picture, judge_claims
from tailproof.paper.references import REFERENCES, compare
from tailproof.paper.reproduction import Reproduction
from tailproof.results.files import whole_file
from tailproof.results.identification import Identification

__all__ = ["Section", "write_report"]

_REGRET = {
    "mean": "{mean:.0f}",
    "s.e.": "{standard_error:.0f}",
    "median": "{median:.0f}",
    "10–90 %": "{low:.0f} – {high:.0f}",
    "decisions": "{decisions:.0f}",
}
_BEST_ARM = {
    "wrong": "{error:.1%}",
    "95 %": "{low:.1%} – {high:.1%}",
    "undecided": "{undecided:.0f}",
    "mean pulls": "{mean_pulls:.0f}",
}


@dataclass(frozen=True)
class Section:
    """One exhibit in the report."""

    name: str
    heading: str
    settings: str
    pictures: list[dict[str, str]]
    """The caption, data URL and description of each."""
    claims: list[JudgedClaim]
    differences: list[str]
    rows: list[dict[str, str]]
    has_reference: bool
    seconds: float


def write_report(out: Path) -> list[Section]:
    """Draw every finished exhibit of a folder and write ``report.html`` there.

    The pictures are also saved in the folder ``figures``, as PNG and SVG, and the verdicts in
    ``verdicts.md``. Nothing is simulated.
    """
    run = Reproduction.load(out)
    (out / "figures").mkdir(exist_ok=True)
    sections = [_section(run, name) for name in EXHIBITS if name in run.seconds]
    environment = Environment(
        loader=PackageLoader("tailproof.report", "."),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = _plain
    command = f"tailproof reproduce {' '.join(run.seconds)} --size {run.size} --seed {run.seed}"
    for template, target in (("page.html", "report.html"), ("verdicts.md", "verdicts.md")):
        page = environment.get_template(template)
        with whole_file(out / target) as file:
            file.write(page.render(run=run, sections=sections, command=command).encode())
    return sections


def _plain(text: object) -> str:
    r"""Escape Markdown and HTML.

    >>> print(_plain("SupBTC_mom: <b> *1* [0, 2]"))
    SupBTC_mom: \<b> \*1\* [0, 2]
    """
    return re.sub(r"[\\`*<&]|\](?=\()", r"\\\g<0>", " ".join(str(text).split()))


def _in_words(settings: Mapping[str, Any]) -> str:
    """Return settings as a reader would say them.

    >>> _in_words({"horizon": 5000, "tuning_paths": 2, "paths": {3: 10, 1.02: 3}, "df": (3, 1)})
    'horizon: 5000; tuning paths: 2; paths: 10 for df = 3, 3 for df = 1.02; df: 3, 1'
    """

    def value(given: Any) -> str:
        if isinstance(given, Mapping):
            names = {key: key if isinstance(key, str) else f"df = {key}" for key in given}
            return ", ".join(f"{number} for {names[key]}" for key, number in given.items())
        return ", ".join(map(str, given)) if isinstance(given, tuple) else str(given)

    return "; ".join(f"{name.replace('_', ' ')}: {value(own)}" for name, own in settings.items())


def _section(run: Reproduction, name: str) -> Section:
    """Draw and judge an exhibit from its stored results."""
    results = run.results(name)
    try:
        return _drawn(run, name, results)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        folder = str(run.out / "results" / name)
        raise ValueError(
            f"the results in {folder!r} are damaged or of another version; delete that folder and "
            "run tailproof reproduce again"
        ) from error


def _drawn(run: Reproduction, name: str, results: Mapping[str, Comparison]) -> Section:
    exhibit = EXHIBITS[name]
    heading, numbers = exhibit.TITLE, name.split("-")
    if numbers[0].isdigit():
        heading = f"Figure{'s' * (len(numbers) > 1)} {' and '.join(numbers)}: {heading}"
    return Section(
        name=name,
        heading=heading,
        settings=_in_words(exhibit.SETTINGS[run.size]),
        pictures=[_saved(run.out / "figures", *item) for item in exhibit.draw(results).items()],
        claims=judge_claims(exhibit.check_claims(results)),
        differences=list(exhibit.DIFFERENCES),
        rows=[row for key in results for row in _rows(name, key, results[key])],
        has_reference=name in REFERENCES,
        seconds=run.seconds[name],
    )


def _saved(folder: Path, name: str, picture: Picture) -> dict[str, str]:
    """Save a picture as PNG and SVG, and return what the page shows."""
    figure, stream = picture.figure, io.BytesIO()
    figure.savefig(folder / f"{name}.png", dpi=200)
    figure.set_layout_engine("none")  # the PNG has set the layout; keeping it saves time
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    (folder / f"{name}.svg").write_bytes(stream.getvalue())
    number = name.removeprefix("figure-")
    return {
        "caption": f"Figure {number}: {picture.caption}" if number.isdigit() else picture.caption,
        "address": "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode(),
        "alt": picture.alt,
    }


def _rows(name: str, key: str, found: Comparison) -> list[dict[str, str]]:
    """Return the numbers of each policy, next to the reference if there is one."""
    columns = _BEST_ARM if isinstance(found, Identification) else _REGRET
    rows = [
        {"result": key, "policy": policy}
        | {column: form.format(**numbers) for column, form in columns.items()}
        for policy, numbers in found.summary().items()
    ]
    if name in REFERENCES and not isinstance(found, Identification):
        references = {row.policy: row for row in compare(found, REFERENCES[name].get(key, {}))}
        for row in rows:
            other = references.get(row["policy"])
            row["reference"] = "" if other is None else f"{other.reference:.0f}"
            row["difference in s.e."] = "" if other is None else f"{other.errors:+.1f}"
    return rows
