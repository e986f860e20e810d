"""Results to one offline page."""

import base64
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from matplotlib import rc_context

from tailproof.paper import EXHIBITS
from tailproof.paper.exhibit import Exhibit, Finding, verdict
from tailproof.paper.figure_2_3 import compare
from tailproof.paper.reproduction import Reproduction
from tailproof.result import Result

__all__ = ["Section", "write_report"]


@dataclass(frozen=True)
class Section:
    """One exhibit, drawn and judged."""

    name: str
    exhibit: Exhibit
    settings: Mapping[str, Any]
    pictures: Mapping[str, tuple[str, str]]
    """File name, to the picture as a data address and its words."""
    findings: list[Finding]
    rows: list[tuple[str, ...]]
    seconds: float

    @property
    def heading(self) -> str:
        """The title, with the numbers of the figures."""
        numbers = self.name.split("-")
        if not numbers[0].isdigit():
            return self.exhibit.TITLE
        word = "Figure" if len(numbers) == 1 else "Figures"
        return f"{word} {' and '.join(numbers)}: {self.exhibit.TITLE}"

    @property
    def verdict(self) -> str:
        """Whether the claim holds."""
        return verdict(self.findings)

    @property
    def agreeing(self) -> int:
        """How many parts of the claim do."""
        return sum(finding.holds is True for finding in self.findings)


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
    command = f"tailproof reproduce {' '.join(run.seconds)} --size {run.size} --seed {run.seed}"
    for template, target in (("page.html", "report.html"), ("verdicts.md", "verdicts.md")):
        page = environment.get_template(template).render(
            run=run, sections=sections, command=command
        )
        (out / target).write_text(page, encoding="utf-8")
    return sections


def _section(run: Reproduction, name: str) -> Section:
    exhibit, results = EXHIBITS[name], run.results(name)
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
        findings=exhibit.judge(results),
        rows=[row for key in results for row in _rows(key, results[key], exhibit)],
        seconds=run.seconds[name],
    )


def _rows(key: str, result: Result, exhibit: Exhibit) -> list[tuple[str, ...]]:
    """Return the final regrets of one result, beside the reference where there is one."""
    reference = exhibit.REFERENCE.get(key, {})
    compared = {row.policy: row for row in compare(result, reference)}
    rows: list[tuple[str, ...]] = []
    for policy, row in result.summary().items():
        beside = compared.get(policy)
        rows.append(
            (
                key,
                policy,
                f"{row['mean']:.0f}",
                "" if math.isnan(row["standard_error"]) else f"{row['standard_error']:.0f}",
                f"{row['median']:.0f}",
                f"{row['low']:.0f} – {row['high']:.0f}",
                f"{row['decisions']:.0f}",
                "" if beside is None else f"{beside.reference:.0f}",
                "" if beside is None else f"{beside.errors:+.1f}",
            )
        )
    return rows
