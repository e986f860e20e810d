"""The commands that simulate policies, and the one that lists what they can be given."""

import shlex
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from rich.markup import escape

from tailproof.cli import output
from tailproof.cli.options import Engine, NoiseText, Out, Paths, PolicyTexts, Seed, Workers
from tailproof.cli.saving import prepared, write_table

__all__ = ["COMMANDS"]


def simulate_command(
    policy: PolicyTexts = ["oful"],  # noqa: B006
    filter_pulls: Annotated[
        int | None,
        typer.Option("--filter", help="Also run each policy behind a filter of this many pulls."),
    ] = None,
    block: Annotated[
        int | None, typer.Option(help="Block length of that filter, by default ⌈√pulls⌉.")
    ] = None,
    noise: NoiseText = "cauchy",
    environment: Annotated[
        str,
        typer.Option(help="neutral, orthant, 'neutral(fresh=false)', 'k_armed(locations=(0, 1))'."),
    ] = "neutral",
    horizon: Annotated[int, typer.Option(help="Pulls per path.")] = 10_000,
    paths: Paths = 100,
    seed: Seed = 0,
    workers: Workers = 1,
    engine: Engine = "processes",
    out: Out = None,
    plot: Annotated[bool, typer.Option("--plot", help="Also draw regret.png there.")] = False,
) -> None:
    """Simulate policies and compare their regret.

    OFUL with and without a filter under Cauchy noise:

        tailproof simulate --policy oful --policy
        "filtered(oful(noise_scale=0.45), repeats=15, estimator=median)" --out trial --plot
    """
    from tailproof import Filtered, MeanOfMedians, recipes, simulate

    policies = _policies(policy)
    if filter_pulls is not None:
        estimator = MeanOfMedians(block=block)
        _add_filtered(policies, partial(Filtered, repeats=filter_pulls, estimator=estimator))
    elif block is not None:
        raise ValueError("--block needs --filter")
    if plot and out is None:
        raise ValueError("--plot needs --out")
    bandit = recipes.build("environment", environment, recipes.build("noise", noise))
    settings = {"paths": paths, "seed": seed, "workers": workers, "engine": engine}

    with prepared(out, "result.npz", "table.csv", "regret.png") as run:
        result = run("simulating", simulate, policies, bandit, horizon=horizon, **settings)
        title = f"Cumulative regret after {horizon} pulls, {paths} paths"
        output.console.print(output.regret_table(title, noise, result))
        if run.folder is not None:
            result.save(run.folder / "result.npz")
            write_table(noise, result, run.folder / "table.csv")
            if plot:
                from tailproof.figures import regret_figure

                picture = regret_figure({f"{environment}, {noise}": result})
                picture.savefig(run.folder / "regret.png")


def identify_command(
    policy: PolicyTexts = ["lin_gap_e(norm_bound=2, ridge=0.1)"],  # noqa: B006
    block: Annotated[
        int | None,
        typer.Option(help="Also run each policy behind medians of this many pulls."),
    ] = None,
    noise: NoiseText = "cauchy",
    environment: Annotated[
        str, typer.Option(help="near_tie, 'near_tie(angle=0.1)', 'k_armed(locations=(0, 1))'.")
    ] = "near_tie",
    delta: Annotated[
        float | None, typer.Option(help="δ of every policy, by default its own.")
    ] = None,
    paths: Paths = 200,
    max_pulls: Annotated[int, typer.Option(help="Most pulls per path.")] = 100_000,
    seed: Seed = 0,
    workers: Workers = 1,
    engine: Engine = "processes",
    out: Out = None,
) -> None:
    """Simulate policies that find the best arm, and count pulls and errors.

    LinGapE alone and behind medians of 41 pulls, under Cauchy noise:

        tailproof identify --policy "lin_gap_e(norm_bound=2, ridge=0.1)" --block 41
    """
    from tailproof import bestarm, identify, recipes
    from tailproof.checks import whole
    from tailproof.simulation.plan import MOST_PULLS

    whole("max_pulls", max_pulls, at_most=MOST_PULLS)
    law = recipes.build("noise", noise)
    policies = _policies(policy)
    if delta is not None:
        for text, recipe in policies.items():
            if not isinstance(recipe, bestarm.BestArm):
                raise ValueError(f"--delta needs best-arm policies without a filter, not {text}")
            policies[text] = recipe.at(delta)
    if block is not None:
        wrap = partial(bestarm.behind_filter, noise=law, block=block, max_pulls=max_pulls)
        _add_filtered(policies, wrap)
    bandit = recipes.build("environment", environment, law)
    settings = {"paths": paths, "seed": seed, "workers": workers, "engine": engine}

    with prepared(out, "identification.npz") as run:
        found = run("identifying", identify, policies, bandit, max_pulls=max_pulls, **settings)
        title = f"Finding the best arm, {environment}, {noise}, {paths} paths"
        output.console.print(output.identification_table(title, found))
        if run.folder is not None:
            found.save(run.folder / "identification.npz")


def gauntlet_command(
    policy: PolicyTexts = [],  # noqa: B006
    problems: Annotated[
        str,
        typer.Option(
            help="report, money or moving, tuning, money-tuning or moving-tuning, or names: "
            "fresh-t1,k5-t1."
        ),
    ] = "report",
    size: Annotated[
        str, typer.Option(help="quick (minutes; few paths, at most 2000 pulls) or full.")
    ] = "quick",
    seed: Annotated[
        int | None, typer.Option(help="By default the seed of the set of problems.")
    ] = None,
    workers: Workers = 0,
    engine: Engine = "processes",
    out: Out = None,
) -> None:
    """Run policies on hard problems: units, offsets, skew, zeros and outliers in the rewards.

    Without --policy these are the ones we recommend. --problems money has shops, in which most
    visitors buy nothing; --problems moving has worlds that change while they are played. Regret is
    relative to random arms; a path is stuck if its second half still has over a tenth of theirs,
    and lost, in a shop, if it has over half of theirs. With --out there are also score.npz,
    gauntlet.md and a picture, gauntlet.png.

        tailproof gauntlet --policy lin_student_ucb --policy "auto_filtered(ucb1)" --out trial

    To choose settings use --problems tuning, money-tuning or moving-tuning: other problems and
    another seed.
    """
    from tailproof import gauntlet

    typed = ["tailproof", "gauntlet", "--problems", problems, "--size", size]
    for text in policy:
        typed += ["--policy", text]
    if seed is not None:
        typed += ["--seed", str(seed)]
    tools = _policies(policy) or gauntlet.recommended(problems)
    settings = {"size": size, "seed": seed, "workers": workers, "engine": engine}

    with prepared(out, "score.npz", "gauntlet.md", "gauntlet.png") as run:
        score = run("running the gauntlet", gauntlet.run, tools, problems=problems, **settings)
        output.console.print(output.gauntlet_table(score))
        for block, part in score.parts().items():
            output.console.print(output.summary_table(part, block))
        if size == "full":
            output.console.print(output.targets_table(gauntlet.check_targets(score)))
        if run.folder is not None:
            score.save(run.folder / "score.npz")
            page = score.to_markdown(shlex.join(typed))
            (run.folder / "gauntlet.md").write_text(page, encoding="utf-8")
            score.plot().savefig(run.folder / "gauntlet.png")


def list_command(
    word: Annotated[
        str | None, typer.Argument(help="Only names and descriptions that contain this.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="policy, guest, estimator, aim, noise, environment, motion, figure or problem."
        ),
    ] = None,
) -> None:
    """List what can be named: policies, noise laws, environments, aims, figures and problems.

    Without a word or a kind the names alone; with one of them, also what each is.

        tailproof list cauchy

        tailproof list --kind policies
    """
    from tailproof import recipes
    from tailproof.checks import require
    from tailproof.research.gauntlet.problems import problem_sets
    from tailproof.research.paper import EXHIBITS

    rows: dict[str, list[tuple[str, str]]] = {}
    for group in ("policy", "guest", "estimator", "aim", "noise", "environment", "motion"):
        known = sorted(recipes.names(group).items())
        rows[group] = [(name, (thing.__doc__ or "").split("\n", 1)[0]) for name, thing in known]
    rows["figure"] = [(name, exhibit.TITLE) for name, exhibit in EXHIBITS.items()]
    rows["problem"] = [(p.name, p.text) for own in problem_sets().values() for p in own.values()]
    plural = {"policies": "policy"} | {f"{group}s": group for group in rows}
    chosen = plural.get(str(kind), kind)
    require(chosen is None or chosen in rows, "kind", f"one of {', '.join(rows)}", kind)
    if word is None and chosen is None:
        title = "Names for --policy, --noise, --environment, --aim, --problems and reproduce"
        table = output.empty_table(title, "kind", "names", left=2)
        for group, own in rows.items():
            table.add_row(group, escape(", ".join(name for name, _ in own)), end_section=True)
        output.console.print(table)
        output.console.print("What they are: tailproof list WORD, or tailproof list --kind noise")
        return
    table = output.empty_table("Names and what they are", "kind", "name", "what it is", left=3)
    for group in [chosen] if chosen else rows:
        for name, what in rows[group]:
            if word is None or word.lower() in f"{name} {what}".lower():
                table.add_row(group, escape(name), escape(what))
    if not table.row_count:
        raise ValueError(f"no name or description contains {word!r}; tailproof list shows all")
    output.console.print(table)


COMMANDS = (simulate_command, identify_command, gauntlet_command, list_command)


def _policies(texts: list[str]) -> dict[str, Any]:
    """Return the policies from the command line, by their text."""
    from tailproof import recipes
    from tailproof.checks import require

    found: dict[str, Any] = {}
    for text in texts:
        require(text not in found, "policy", "given only once", text)
        found[text] = recipes.build("policy", text)
    return found


def _add_filtered(policies: dict[str, Any], wrap: Callable[[Any], Any]) -> None:
    """Add each policy behind a filter."""
    policies |= {f"{name}, filtered": wrap(policy) for name, policy in policies.items()}
