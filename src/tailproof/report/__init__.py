"""Results to one offline page."""

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
from tailproof.paper.exhibit import Comparison, Exhibit, JudgedClaim, judge_claims
from tailproof.paper.references import compare
from tailproof.paper.reproduction import Reproduction
from tailproof.results.files import whole_file
from tailproof.results.identification import Identification

__all__ = ["Section", "write_report"]


@dataclass(frozen=True)
class Section:
    """One exhibit, drawn and judged."""

    name: str
    exhibit: Exhibit
    settings: Mapping[str, Any]
    pictures: Mapping[str, tuple[str, str]]
    """File name, to the picture as a data address and its words."""
    claims: list[JudgedClaim]
    rows: list[dict[str, str]]
    seconds: float

    @property
    def heading(self) -> str:
        """The title, with the numbers of the figures."""
        numbers = self.name.split("-")
        if not numbers[0].isdigit():
            return self.exhibit.TITLE
        word = "Figure" if len(numbers) == 1 else "Figures"
        return f"{word} {' and '.join(numbers)}: {self.exhibit.TITLE}"


def write_report(out: Path) -> list[Section]:
    """Draw every finished exhibit of a folder and write ``report.html`` there.

    The pictures are also left in the folder ``figures``, as PNG and SVG, and the verdicts in
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
        page = environment.get_template(template).render(
            run=run, sections=sections, command=command
        )
        with whole_file(out / target) as file:
            file.write(page.encode())
    return sections


def _plain(text: object) -> str:
    r"""Keep a text from being read as Markdown or HTML.

    >>> print(_plain("SupBTC_mom: <b> *1* [0, 2]"))
    SupBTC_mom: \<b> \*1\* [0, 2]
    """
    return re.sub(r"[\\`*<&]|\](?=\()", r"\\\g<0>", " ".join(str(text).split()))


def _section(run: Reproduction, name: str) -> Section:
    """Draw and judge an exhibit from the results that were kept."""
    results = run.results(name)
    try:
        return _drawn(run, name, results)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        folder = run.out / "results" / name
        raise ValueError(
            f"out must be a folder whose results are as tailproof reproduce wrote them, "
            f"but those in {str(folder)!r} do not fit: type reproduce again"
        ) from error


def _drawn(run: Reproduction, name: str, results: Mapping[str, Comparison]) -> Section:
    exhibit = EXHIBITS[name]
    pictures = {}
    for file, (figure, alt) in exhibit.draw(results).items():
        figure.savefig(run.out / "figures" / f"{file}.png", dpi=200)
        figure.set_layout_engine("none")  # it is laid out; once is enough
        stream = io.BytesIO()
        with rc_context({"svg.hashsalt": file}):
            figure.savefig(stream, format="svg", metadata={"Date": None})
        (run.out / "figures" / f"{file}.svg").write_bytes(stream.getvalue())
        address = "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode()
        pictures[file] = (address, alt)
    return Section(
        name=name,
        exhibit=exhibit,
        settings=exhibit.SETTINGS[run.size],
        pictures=pictures,
        claims=judge_claims(exhibit.check_claims(results)),
        rows=[row for key in results for row in _rows(key, results[key], exhibit)],
        seconds=run.seconds[name],
    )


def _rows(key: str, found: Comparison, exhibit: Exhibit) -> list[dict[str, str]]:
    """Return what each policy came to, beside the reference where there is one."""
    if isinstance(found, Identification):
        return [
            {
                "result": key,
                "policy": policy,
                "wrong": f"{row['error']:.1%}",
                "95 %": f"{row['low']:.1%} – {row['high']:.1%}",
                "undecided": f"{row['undecided']:.0f}",
                "mean pulls": f"{row['mean_pulls']:.0f}",
            }
            for policy, row in found.summary().items()
        ]
    rows = [
        {
            "result": key,
            "policy": policy,
            "mean": f"{row['mean']:.0f}",
            "s.e.": f"{row['standard_error']:.0f}",
            "median": f"{row['median']:.0f}",
            "10–90 %": f"{row['low']:.0f} – {row['high']:.0f}",
            "decisions": f"{row['decisions']:.0f}",
        }
        for policy, row in found.summary().items()
    ]
    if exhibit.REFERENCE:
        beside = {row.policy: row for row in compare(found, exhibit.REFERENCE.get(key, {}))}
        for row in rows:
            other = beside.get(row["policy"])
            row["reference"] = "" if other is None else f"{other.reference:.0f}"
            row["difference in s.e."] = "" if other is None else f"{other.errors:+.1f}"
    return rows
