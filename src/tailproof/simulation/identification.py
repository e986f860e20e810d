"""The loop for naming the best arm: all paths at once, until each has its answer."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from tailproof.bestarm import FixedConfidence, NearBestArm
from tailproof.checks import number, require, whole
from tailproof.policies.base import Policy
from tailproof.results import Identification, Verdicts, provenance
from tailproof.simulation.arm_sets import UnitBall
from tailproof.simulation.environments import LinearBandit, World
from tailproof.simulation.plan import CHUNK, absorbed
from tailproof.simulation.streams import stream
from tailproof.wrappers.base import innermost

__all__ = ["identify"]


def identify(
    policies: Mapping[str, Policy[Any]],
    environment: LinearBandit,
    *,
    paths: int,
    max_pulls: int,
    delta: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Identification:
    """Let each policy name the best arm on many independent paths.

    A path that has its answer drops out of the work. A path whose budget has no room for another
    decision is left undecided: it names arm −1, whatever it might have guessed.

    Parameters
    ----------
    policies : mapping from names to policies that name a best arm
        See `tailproof.bestarm`. Each random stream depends on the policy's name alone, so adding
        a policy changes no other's answers.
    environment : LinearBandit
        With arms that stay the same, and one best among them.
    paths : int
    max_pulls : int
        The budget of each path, in raw pulls.
    delta : float, optional
        δ for every recipe, in place of its own. A filter is calibrated for the δ of the recipe
        inside, see `bestarm.behind_filter`, so filtered recipes keep theirs and refuse this one.
    seed : int
    progress : callable, optional
        Called with the paths done and their total.

    Examples
    --------
    >>> from tailproof import bestarm, environments, noise
    >>> law = noise.Cauchy()
    >>> policy = bestarm.behind_filter(
    ...     bestarm.LinGapE(norm_bound=2, ridge=0.1), law, block=41, max_pulls=10**5
    ... )
    >>> found = identify(
    ...     {"LinGapE": policy}, environments.near_tie(law, angle=1.0), paths=20, max_pulls=10**5
    ... )
    >>> found.errors("LinGapE"), found.undecided("LinGapE")
    (0, 0)
    """
    require(len(policies) > 0, "policies", "at least one policy", policies)
    paths, seed = whole("paths", paths), whole("seed", seed, at_least=0)
    require(isinstance(environment, LinearBandit), "environment", "a linear bandit", environment)
    contexts = environment.contexts
    fixed = not contexts.fresh and not isinstance(contexts, UnitBall)
    require(fixed, "environment", "one whose arms stay the same", environment)
    recipes = {name: _ready(name, policy, delta) for name, policy in policies.items()}
    for recipe in recipes.values():  # a recipe that does not fit fails before the work begins
        recipe.recommend(recipe.init(1, contexts.arms, contexts.dim))
        whole("max_pulls", max_pulls, at_least=recipe.pulls)
    sizes = [min(CHUNK, paths - start) for start in range(0, paths, CHUNK)]
    settings = {
        "seed": seed,
        "paths": paths,
        "max_pulls": max_pulls,
        "delta": delta,
        "chunk": CHUNK,
        "environment": repr(environment),
        "policies": {name: repr(recipe) for name, recipe in recipes.items()},
        "versions": provenance(),
    }
    verdicts, done = {}, 0

    def report(finished: int) -> None:
        nonlocal done
        done += finished
        if progress is not None and finished:
            progress(done, paths * len(recipes))

    for name, recipe in recipes.items():
        parts = []
        for chunk, size in enumerate(sizes):
            world = environment.start(size, stream(seed, "environment", chunk))
            own, noise = (stream(seed, f"{kind} {name}", chunk) for kind in ("policy", "noise"))
            parts.append(_run(recipe, environment, world, max_pulls, own, noise, report))
        verdicts[name] = Verdicts(
            **{
                part.name: np.concatenate([getattr(found, part.name) for found in parts])
                for part in fields(Verdicts)
            }
        )
    return Identification(verdicts=verdicts, settings=settings)


def _ready(name: str, policy: Policy[Any], delta: float | None) -> Policy[Any]:
    """Return the policy, with the δ that is asked for."""
    require(isinstance(policy, Policy), f"policies[{name!r}]", "a policy", policy)
    if delta is None:
        return policy
    number("delta", delta, above=0, below=1)
    if not isinstance(policy, FixedConfidence):
        rule = "a best-arm recipe without a filter when delta is given"
        raise ValueError(f"policies[{name!r}] must be {rule}, got {policy!r}")
    return policy.at(delta)


def _run(
    policy: Policy[Any],
    environment: LinearBandit,
    world: World,
    max_pulls: int,
    own: np.random.Generator,
    noise_rng: np.random.Generator,
    report: Callable[[int], None],
) -> Verdicts:
    """Play one policy on one chunk of paths until each has its answer."""
    margin = _margin(policy)
    gaps = world.best[:, None] - world.locations
    tied = bool(((gaps <= margin).sum(axis=1) > 1).any())
    require(margin > 0 or not tied, "environment", "one with a single best arm", environment)
    policy, noise, price = absorbed(policy, environment.noise)
    cost = policy.pulls * price
    paths = len(gaps)
    recommended, decisions = np.full(paths, -1), np.full(paths, max_pulls // cost)
    state = policy.init(paths, world.arms.shape[1], world.arms.shape[2])
    racing, arms, locations = np.arange(paths), world.arms, world.locations
    for decision in range(1, max_pulls // cost + 1):
        chosen = policy.choose(state, arms, own)
        location = locations[np.arange(len(racing)), chosen]
        rewards = location[:, None] + noise.sample(noise_rng, (len(racing), policy.pulls))
        policy.learn(state, arms, chosen, rewards)
        stopped = policy.stopped(state)
        if stopped.any():
            done = racing[stopped]
            recommended[done], decisions[done] = policy.recommend(state)[stopped], decision
            report(len(done))
            state, racing = state.take(~stopped), racing[~stopped]
            arms, locations = world.arms[racing], world.locations[racing]
            arms.flags.writeable = False  # arms that nobody can change are measured once
            if not len(racing):
                break
    report(len(racing))
    correct = (recommended >= 0) & (gaps[np.arange(paths), recommended] <= margin)
    return Verdicts(
        recommended=recommended, correct=correct, pulls=decisions * cost, decisions=decisions
    )


def _margin(policy: Policy[Any]) -> float:
    """Return the ε with which the recipe inside is content."""
    recipe = innermost(policy)
    return recipe.gap_tolerance if isinstance(recipe, NearBestArm) else 0.0
