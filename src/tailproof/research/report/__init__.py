"""Write results as one offline page."""

import base64
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from matplotlib import rc_context

from tailproof.research.paper import STUDIES
from tailproof.research.paper.claims import (
    MANY,
    JudgedClaim,
    Kind,
    Picture,
    StudyResult,
    judge_claims,
)
from tailproof.research.paper.references import REFERENCES, compare
from tailproof.research.paper.reproduction import Reproduction
from tailproof.results.files import whole_file
from tailproof.results.identification import Identification

__all__ = ["Section", "decided", "write_report"]

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


_PHRASES = {
    "horizon": "{} pulls a path",
    "horizons": "pulls a path: {}",
    "paths": "{} paths",
    "paths_of_fast_algorithms": "{} paths of the fast algorithms",
    "paths_of_slow_algorithms": "{} paths of the slow algorithms",
    "tuning_paths": "{} paths to tune on",
    "multipliers": "multipliers {}",
    "filter_horizon": "{} pulls a path for the filter",
    "filter_paths": "{} paths for the filter",
    "two_arms_horizon": "{} pulls a path with two arms",
    "max_pulls": "at most {} pulls",
    "cut_at": "at most {} pulls in each problem of the gauntlet",
    "problems": "problems of the gauntlet: {}",
    "delta": "δ = {}",
    "deltas": "δ = {}",
    "df": "df = {}",
    "angles": "angles of {}",
}
"""Settings as a reader would say them."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Section:
    """One study in the report."""

    name: str
    heading: str
    settings: str
    pictures: list[dict[str, str]]
    """The name, caption, data URL, description and width in pixels of each."""
    claims: list[JudgedClaim]
    differences: list[str]
    rows: list[dict[str, str]]
    has_reference: bool
    seconds: float


def write_report(out: Path) -> list[Section]:
    """Draw every finished study of a folder and write ``report.html`` there.

    The pictures are also saved in the folder ``figures``, as PNG and SVG, and the verdicts in
    ``verdicts.md``. Nothing is simulated.
    """
    run = Reproduction.load(out)
    (out / "figures").mkdir(exist_ok=True)
    sections = [_section(run, name) for name in STUDIES if name in run.seconds]
    environment = Environment(
        loader=PackageLoader("tailproof.research.report", "."),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": _plain, "tally": _tally}
    claims = [judged for section in sections for judged in section.claims]
    paper = [judged for judged in claims if judged.claim.whose.startswith("the paper")]
    groups = {
        "claims of the paper": paper,
        "questions of our own": [judged for judged in claims if judged not in paper],
    }
    command = f"tailproof reproduce {' '.join(run.seconds)} --size {run.size} --seed {run.seed}"
    for template, target in (("page.html", "report.html"), ("verdicts.md", "verdicts.md")):
        page = environment.get_template(template)
        with whole_file(out / target) as file:
            given = {"run": run, "sections": sections, "command": command, "groups": groups}
            text = page.render(**given, decided=decided(sections))
            file.write(text.encode())
    return sections


def decided(sections: Iterable[Section]) -> str:
    """Return how many claims these sections decide, and which size decides the others."""
    claims = [(section.name, judged) for section in sections for judged in section.claims]
    count = _tally(judged for _, judged in claims)
    told = (
        f"{len(claims) - count['open'] - count['by few decisions']} of {len(claims)} claims decided"
    )
    if few := count["by few decisions"]:
        told += (
            f", {few} more by fewer than {MANY} decisions a path, which more paths do not change"
        )
    if count["open"]:
        names = dict.fromkeys(name for name, judged in claims if judged.kind == "open")
        told += (
            f"; {count['open']} open, since intervals on these paths leave room for both answers: "
            f"tailproof reproduce {' '.join(names)} --size paper"
        )
    return f"{told}."


def _plain(text: object) -> str:
    r"""Escape Markdown and HTML.

    >>> print(_plain("SupBTC_mom: <b> *1* [0, 2]"))
    SupBTC_mom: \<b> \*1\* [0, 2]
    """
    return re.sub(r"[\\`*<&|]|\](?=\()", r"\\\g<0>", " ".join(str(text).split()))


def _in_words(settings: Mapping[str, Any]) -> str:
    """Return settings as a reader would say them.

    >>> _in_words({"horizon": 50_000, "paths": {3: 10, 1: 10, 0.5: 3}, "df": (3, 1)})
    '50 000 pulls a path; 10 (df = 3, 1) or 3 (df = 0.5) paths; df = 3, 1'
    """

    def value(given: Any) -> str:
        if isinstance(given, Mapping):
            keys: dict[Any, list[Any]] = {}
            for key, item in given.items():
                keys.setdefault(item, []).append(key)
            return " or ".join(
                f"{value(item)} ({'' if isinstance(names[0], str) else 'df = '}"
                f"{', '.join(map(str, names))})"
                for item, names in keys.items()
            )
        if isinstance(given, tuple):
            return ", ".join(map(value, given))
        return f"{given:,}".replace(",", " ") if isinstance(given, int) else str(given)

    return "; ".join(_PHRASES[name].format(value(item)) for name, item in settings.items())


def _tally(claims: Iterable[JudgedClaim]) -> dict[Kind, int]:
    """Return how many claims have each kind of verdict."""
    count = Counter(judged.kind for judged in claims)
    return {kind: count[kind] for kind in KINDS}


def _section(run: Reproduction, name: str) -> Section:
    """Draw and judge a study from its stored results."""
    results = run.results(name)
    try:
        return _drawn(run, name, results)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        folder = str(run.out / "results" / name)
        raise ValueError(
            f"the results in {folder!r} are damaged or of another version; delete that folder and "
            "run tailproof reproduce again"
        ) from error


def _drawn(run: Reproduction, name: str, results: Mapping[str, StudyResult]) -> Section:
    study = STUDIES[name]
    heading, numbers = study.TITLE, name.split("-")
    if numbers[0].isdigit():
        heading = f"Figure{'s' * (len(numbers) > 1)} {' and '.join(numbers)}: {heading}"
    return Section(
        name=name,
        heading=heading,
        settings=_in_words(study.SETTINGS[run.size]),
        pictures=[_saved(run.out / "figures", *item) for item in study.draw(results).items()],
        claims=judge_claims(study.check_claims(results)),
        differences=list(study.DIFFERENCES),
        rows=[row for key in results for row in _rows(name, key, results[key])],
        has_reference=name in REFERENCES,
        seconds=run.seconds[name],
    )


def _saved(folder: Path, name: str, picture: Picture) -> dict[str, str]:
    """Save a picture as PNG and SVG, and return its HTML."""
    figure, stream = picture.figure, io.BytesIO()
    figure.savefig(folder / f"{name}.png", dpi=200)
    figure.set_layout_engine("none")  # the PNG has set the layout; keeping it saves time
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    (folder / f"{name}.svg").write_bytes(stream.getvalue())
    number = name.removeprefix("figure-")
    return {
        "name": name,
        "width": f"{96 * figure.get_figwidth():.0f}",
        "caption": f"Figure {number}: {picture.caption}" if number.isdigit() else picture.caption,
        "address": "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode(),
        "alt": picture.alt,
    }


def _rows(name: str, key: str, result: StudyResult) -> list[dict[str, str]]:
    """Return the numbers of each policy, next to the reference if there is one."""
    columns = _BEST_ARM if isinstance(result, Identification) else _REGRET
    rows = [
        {"result": key, "policy": policy}
        | {column: form.format(**numbers) for column, form in columns.items()}
        for policy, numbers in result.summary().items()
    ]
    if name in REFERENCES and not isinstance(result, Identification):
        references = {row.policy: row for row in compare(result, REFERENCES[name].get(key, {}))}
        for row in rows:
            reference = references.get(row["policy"])
            row["reference"] = "" if reference is None else f"{reference.reference:.0f}"
            row["difference in s.e."] = "" if reference is None else f"{reference.errors:+.1f}"
    return rows
