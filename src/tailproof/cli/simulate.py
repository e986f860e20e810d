"""The commands that simulate policies, and the command that lists all names."""

import shlex
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from rich.markup import escape

from tailproof.cli import output
from tailproof.cli.options import (
    Engine,
    Horizon,
    MostPulls,
    NoiseText,
    Out,
    Paths,
    PlainEngine,
    PolicyTexts,
    Seed,
    Workers,
    require_option,
    typed_policies,
)
from tailproof.cli.saving import prepared, save_result, save_score
from tailproof.formatting import several

__all__ = ["COMMANDS"]


FilterPulls = Annotated[
    int | None,
    typer.Option("--filter", help="Also run each policy behind a filter of this many pulls."),
]
FilterBlock = Annotated[
    int | None, typer.Option(help="Block length of that filter, by default ⌈√pulls⌉.")
]
Block = Annotated[
    int | None, typer.Option(help="Also run each policy behind medians of this many pulls.")
]
BanditText = Annotated[
    str, typer.Option(help="neutral, orthant, 'neutral(fresh=false)', 'k_armed(locations=(0, 1))'.")
]
FixedArmsText = Annotated[
    str, typer.Option(help="near_tie, 'near_tie(angle=0.1)', 'k_armed(locations=(0, 1))'.")
]
Metrics = Annotated[
    list[str],
    typer.Option(
        metavar="<metric>",
        help="Also measure share_of_best, simple_regret or mine:function. Repeatable.",
    ),
]
Plot = Annotated[bool, typer.Option("--plot", help="Also draw regret.png there.")]
Delta = Annotated[float | None, typer.Option(help="δ of every policy, by default its own.")]
ProblemNames = Annotated[
    str,
    typer.Option(
        help="report, money, moving or worlds, the same with -tuning, or names: fresh-t1,k5-t1."
    ),
]
Size = Annotated[str, typer.Option(help="quick (minutes; few paths, at most 2000 pulls) or full.")]
ProblemSeed = Annotated[
    int | None, typer.Option(help="By default the seed of the set of problems.")
]
Word = Annotated[str | None, typer.Argument(help="Only names and descriptions that contain this.")]
Kind = Annotated[
    str | None,
    typer.Option(
        help="policy, guest, estimator, aim, noise, environment, motion, figure or problem."
    ),
]


def simulate_command(
    policy: PolicyTexts = ["oful"],  # noqa: B006
    filter_pulls: FilterPulls = None,
    block: FilterBlock = None,
    noise: NoiseText = "cauchy",
    environment: BanditText = "neutral",
    horizon: Horizon = 10_000,
    paths: Paths = 100,
    metric: Metrics = [],  # noqa: B006
    seed: Seed = 0,
    workers: Workers = 1,
    engine: Engine = "processes",
    out: Out = None,
    plot: Plot = False,
) -> None:
    """Simulate policies and compare their regret.

    OFUL with and without a filter under Cauchy noise:

        tailproof simulate --policy oful --policy
        "filtered(oful(noise_scale=0.45), repeats=15, estimator=median)" --out trial --plot
    """
    from tailproof import Filtered, MeanOfMedians, recipes, simulate

    policies = typed_policies(policy)
    if filter_pulls is not None:
        estimator = MeanOfMedians(block=block)
        _add_filtered(policies, partial(Filtered, repeats=filter_pulls, estimator=estimator))
    require_option("--block", block is None or filter_pulls is not None, "--filter")
    require_option("--plot", not plot or out is not None, "--out")
    law = recipes.build("noise", noise, imports=True)
    bandit = recipes.build("environment", environment, law, imports=True)
    with prepared(out, "result.npz", "table.csv", "regret.png") as run:
        simulation = partial(simulate, policies, bandit, horizon=horizon, paths=paths, seed=seed)
        simulation = partial(simulation, metrics=_metrics(metric), workers=workers, engine=engine)
        result = run("simulating", simulation)
        _print_regret(horizon, paths, noise, result)
        _say_who_cannot_learn(policies, bandit)
        if run.folder is not None:
            save_result(result, noise, run.folder, f"{environment}, {noise}" if plot else None)


def _print_regret(horizon: int, paths: int, noise: str, result: Any) -> None:
    pulls, many = several(horizon, "pull"), several(paths, "path")
    title = f"Cumulative regret after {pulls}, {many}"
    output.console.print(output.regret_table(title, noise, result))


def _say_who_cannot_learn(policies: dict[str, Any], bandit: Any) -> None:
    """Say which policies know arms by number where a number means another arm each time."""
    from tailproof import Uniform

    lost = [
        name
        for name, policy in policies.items()
        if bandit.contexts.fresh and policy.view == "arms" and not isinstance(policy, Uniform)
    ]
    if lost:
        output.console.print(
            f"Arms are new at each decision here, so policies that know arms by number learn "
            f"nothing: {escape(', '.join(lost))}. Try --environment 'neutral(fresh=false)'.",
            soft_wrap=True,
            highlight=False,
        )


def identify_command(
    policy: PolicyTexts = ["lin_gap_e(norm_bound=2, ridge=0.1)"],  # noqa: B006
    block: Block = None,
    noise: NoiseText = "cauchy",
    environment: FixedArmsText = "near_tie",
    delta: Delta = None,
    paths: Paths = 200,
    max_pulls: MostPulls = 100_000,
    seed: Seed = 0,
    workers: Workers = 1,
    engine: PlainEngine = "processes",
    out: Out = None,
) -> None:
    """Simulate policies that find the best arm, and count pulls and errors.

    LinGapE alone and behind medians of 41 pulls, under Cauchy noise:

        tailproof identify --policy "lin_gap_e(norm_bound=2, ridge=0.1)" --block 41
    """
    from tailproof import identify, recipes
    from tailproof.bestarm import behind_filter
    from tailproof.checks import whole
    from tailproof.simulation.plan import MOST_PULLS

    whole("max_pulls", max_pulls, at_most=MOST_PULLS)
    policies, law = _at(delta, typed_policies(policy)), recipes.build("noise", noise, imports=True)
    if block is not None:
        _add_filtered(policies, partial(behind_filter, noise=law, block=block, max_pulls=max_pulls))
    bandit = recipes.build("environment", environment, law, imports=True)
    with prepared(out, "identification.npz") as run:
        race = partial(identify, policies, bandit, max_pulls=max_pulls, paths=paths, seed=seed)
        result = run("identifying", partial(race, workers=workers, engine=engine))
        title = f"Finding the best arm, {environment}, {noise}, {several(paths, 'path')}"
        output.console.print(output.identification_table(title, result))
        if run.folder is not None:
            result.save(run.folder / "identification.npz")


def gauntlet_command(
    policy: PolicyTexts = [],  # noqa: B006
    problems: ProblemNames = "report",
    size: Size = "quick",
    seed: ProblemSeed = None,
    workers: Workers = 0,
    engine: Engine = "processes",
    out: Out = None,
) -> None:
    """Run policies on hard problems: units, offsets, skew, zeros and outliers in the rewards.

    Without --policy it plays the tools that we recommend. --problems money has shops, in which most
    visitors buy nothing; --problems moving has worlds that change while they are played. Regret
    is relative to random arms. A path is stuck if its second half has over a tenth of the regret of
    random arms; a path in a shop is lost if it has over half. With --out there are also score.npz,
    gauntlet.md and a picture, gauntlet.png.

        tailproof gauntlet --policy lin_student_ucb --policy "auto_filtered(ucb1)" --out trial

    To choose settings use --problems tuning, money-tuning or moving-tuning: other problems and
    another seed.
    """
    from tailproof import gauntlet

    tools = typed_policies(policy) or gauntlet.recommended(problems)
    with prepared(out, "score.npz", "gauntlet.md", "gauntlet.png") as run:
        games = partial(gauntlet.run, tools, problems=problems, size=size, seed=seed)
        score = run("running the gauntlet", partial(games, workers=workers, engine=engine))
        for table in output.score_tables(score):
            output.console.print(table)
        if run.folder is not None:
            typed = ["tailproof", "gauntlet", "--problems", problems, "--size", size]
            typed += [word for text in policy for word in ("--policy", text)]
            typed += [] if seed is None else ["--seed", str(seed)]
            save_score(score, shlex.join(typed), run.folder)


def list_command(word: Word = None, kind: Kind = None) -> None:
    """List what can be named: policies, noise laws, environments, aims, figures and problems.

    Without a word or a kind it lists names alone; with a word or a kind, also descriptions.

        tailproof list cauchy

        tailproof list --kind policies
    """
    from tailproof.checks import require

    described = _described_names()
    plural = {"policies": "policy"} | {f"{group}s": group for group in described}
    chosen = plural.get(str(kind), kind)
    require(chosen is None or chosen in described, "kind", f"one of {', '.join(described)}", kind)
    if word is None and chosen is None:
        title = "Names for --policy, --noise, --environment, --aim, --problems and reproduce"
        table = output.empty_table(title, "kind", "names", left=2)
        for group, things in described.items():
            table.add_row(group, escape(", ".join(things)), end_section=True)
        output.console.print(table)
        output.console.print("Descriptions: tailproof list WORD, or tailproof list --kind noise")
        return
    table = output.empty_table("Names and descriptions", "kind", "name", "what it is", left=3)
    for group in [chosen] if chosen else described:
        for name, description in described[group].items():
            if word is None or word.lower() in f"{name} {description}".lower():
                table.add_row(group, escape(name), escape(description))
    if not table.row_count:
        raise ValueError(f"no name or description contains {word!r}; tailproof list shows all")
    output.console.print(table)


COMMANDS = (simulate_command, identify_command, gauntlet_command, list_command)


def _metrics(texts: list[str]) -> dict[str, Any]:
    """Return the metrics from the command line, by their text."""
    from tailproof.own_code import imported
    from tailproof.simulation.metrics import known_metric

    return {
        text.partition(":")[2] or text: imported(text) if ":" in text else known_metric(text)
        for text in texts
    }


def _add_filtered(policies: dict[str, Any], wrap: Callable[[Any], Any]) -> None:
    """Add each policy behind a filter."""
    policies |= {f"{name}, filtered": wrap(policy) for name, policy in policies.items()}


def _at(delta: float | None, policies: dict[str, Any]) -> dict[str, Any]:
    """Return the policies with another δ, if one is given."""
    from tailproof.bestarm import BestArm

    if delta is None:
        return policies
    for text, policy in policies.items():
        if not isinstance(policy, BestArm):
            raise ValueError(f"--delta needs best-arm policies without a filter, not {text}")
    return {text: policy.at(delta) for text, policy in policies.items()}


def _described_names() -> dict[str, dict[str, str]]:
    """Return the names that commands understand, each with a description, by their kind."""
    from tailproof import recipes
    from tailproof.research.gauntlet.problems import problem_sets
    from tailproof.research.paper import STUDIES

    described = {}
    for group in ("policy", "guest", "estimator", "aim", "noise", "environment", "motion"):
        things = sorted(recipes.names(group).items())
        described[group] = {name: (thing.__doc__ or "").split("\n", 1)[0] for name, thing in things}
    described["figure"] = {name: study.TITLE for name, study in STUDIES.items()}
    sets = problem_sets().values()
    described["problem"] = {p.name: p.text for problems in sets for p in problems.values()}
    return described
