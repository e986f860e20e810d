"""The filter: Algorithm 2 of the paper around any policy."""

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import Count, require
from tailproof.policies.base import Array, Policy
from tailproof.stats.calibration import calibrate_filter
from tailproof.stats.estimators import Estimator, MeanOfMedians, Median
from tailproof.stats.theory import filter_pulls, median_pulls, oful_regret
from tailproof.wrappers.base import Repeating, Wrapped, altered, innermost
from tailproof.wrappers.scaled import Scaled

__all__ = ["Filtered"]


@dataclass(frozen=True)
class Filtered(Repeating[Wrapped]):
    """Any policy A, given one robust estimate instead of ñ rewards.

    for t = 1, 2, …:  A chooses x_t;  x_t is pulled ñ times;  A learns r_t = estimator(r_1, …, r_ñ)

    Filters nest. Where A wants several rewards for a decision, each of them is filtered, so that
    `pulls` is ``A.pulls × ñ``.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    repeats : int
        ñ, the rewards behind each reward that A is given.
    estimator : Estimator
        Makes one number of these ñ rewards; by default the mean of medians with ε = ½.
    fewest : int, optional
        The fewest of the ñ rewards that are accepted where some were lost; by default more than
        half. A filter from theory takes all: its theorem bounds the error of no fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from tailproof import OFUL, Median
    >>> policy, rng = Filtered(OFUL(), repeats=15, estimator=Median()), np.random.default_rng(0)
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> arms = np.eye(2)[None]
    >>> chosen = policy.choose(state, arms, rng)
    >>> policy.learn(state, arms, chosen, rng.standard_cauchy((1, 15)))
    >>> policy.pulls, state.decisions.tolist()
    (15, [1])

    Source: Algorithm 2 of Zhong et al. 2021. Differences: any estimator may take the place of the
    mean of medians.

    Kind: around a policy.
    Needs: T, α, its constant, δ, for `Filtered.from_theory`.
    Pulls: ñ times the pulls of its policy.
    Regret: k·R_A(⌈T/k⌉), proved for `Filtered.from_theory`.
    Learns without a mean: yes, proved.
    """

    repeats: Count = field(kw_only=True)
    estimator: Estimator = field(kw_only=True, default=MeanOfMedians())
    fewest: Count | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        ok = self.fewest is None or self.fewest <= self.repeats
        require(ok, "fewest", f"at most {self.repeats}, the repeats", self.fewest)
        require(isinstance(self.estimator, Estimator), "estimator", "an estimator", self.estimator)
        self.estimator.check(self.repeats)

    @property
    def invariances(self) -> frozenset[str]:
        """The invariances of A that the estimator has too."""
        inside = self.policy.invariances
        if "increasing" in inside:
            inside |= {"units", "offset"}
        return inside - {"increasing"} if self.estimator.equivariant else frozenset()

    @property
    def least(self) -> int:
        """The fewest rewards accepted for one decision."""
        return super().least if self.fewest is None else self.policy.pulls * self.fewest

    @classmethod
    def from_theory(
        cls,
        policy: Policy[Any],
        *,
        horizon: int,
        delta: float,
        alpha: float,
        tail_constant: float = 1.0,
        constants: Literal["usable", "paper"] = "usable",
        block_exponent: float | None = None,
        dim: int = 2,
    ) -> Self:
        """Return the filter that a theorem requires, for noise with P(|η| > y) ≤ c/y^α.

        "usable": the median of `tailproof.theory.median_pulls`, with its scale passed to A; a
        policy without a noise scale raises, see `Policy.with_scale`. "paper": the mean of medians
        of the ñ rewards of Theorem 2, for ε = `block_exponent`, ½ by default, and c = 1.

        >>> from tailproof import OFUL
        >>> policy = Filtered.from_theory(OFUL(), horizon=10**6, delta=0.01, alpha=1)
        >>> policy.pulls, policy.estimator, round(policy.policy.noise_scale, 2)
        (21, Median(), 1.26)

        Warns when not even one decision fits into the horizon, and when the bound is no better than
        chance: when with A = OFUL in `dim` dimensions it is above the 2T that can be lost at most.
        """
        require(isinstance(policy, Policy), "policy", "a policy", policy)
        ok = constants in ("usable", "paper")
        require(ok, "constants", "one of usable, paper", constants)
        estimator: Estimator
        if constants == "usable":
            require(block_exponent is None, "block_exponent", "None for usable", block_exponent)
            policy.with_scale(1.0)  # raises early if it has no scale
            required = median_pulls(
                horizon=horizon, delta=delta, alpha=alpha, tail_constant=tail_constant
            )
            policy, repeats, estimator = policy.with_scale(required.scale), required.block, Median()
        else:
            require(tail_constant == 1, "tail_constant", "1 for paper", tail_constant)
            exponent = 0.5 if block_exponent is None else block_exponent
            pulls = filter_pulls(horizon=horizon, delta=delta, alpha=alpha, block_exponent=exponent)
            require(pulls < math.inf, "alpha", "large enough for a finite number of pulls", alpha)
            repeats, estimator = int(pulls), MeanOfMedians(block_exponent=exponent)
        if repeats * policy.pulls > horizon:
            warnings.warn(
                f"the theorem requires {repeats * policy.pulls} pulls for one decision, "
                f"more than the horizon of {horizon}",
                stacklevel=2,
            )
        elif (bound := repeats * _oful(horizon / repeats, dim, delta, policy)) >= 2 * horizon:
            warnings.warn(
                f"the horizon of {horizon} is too short for the theorem: it bounds the regret of "
                f"OFUL in {dim} dimensions by {bound:.3g}, and no choice can lose more than "
                f"{2 * horizon}; see Filtered.calibrated for a filter without a guarantee",
                stacklevel=2,
            )
        return cls(policy, repeats=repeats, estimator=estimator, fewest=repeats)

    @classmethod
    def calibrated(cls, policy: Policy[Any], **settings: Any) -> Self:
        """Return the filter that `calibrate_filter` chooses, around A set for the noise it leaves.

        With a noise law, A gets the scale of the filtered noise; a policy without a noise scale
        raises, see `Policy.with_scale`. With recorded rewards, any policy is wrapped in `Scaled`:
        the centre is their median, the unit the scale of the filtered noise, and the stretch the
        largest distance of an arm's median from the centre, in this unit. The prior of
        `ThompsonSampling`, which sees no arms, is stretched too.

        >>> from tailproof import OFUL, UCB1, noise
        >>> policy = Filtered.calibrated(OFUL(), noise=noise.Cauchy(), horizon=10_000, dim=10)
        >>> policy.pulls, policy.estimator, round(policy.policy.noise_scale, 3)
        (25, MeanOfMedians(block=25, block_exponent=None), 0.363)
        >>> rewards = 200 + 5 * np.random.default_rng(0).standard_cauchy(1000)
        >>> policy = Filtered.calibrated(UCB1(), rewards=rewards, pulls=21)
        >>> round(policy.policy.centre), round(policy.policy.unit, 1)
        (200, 2.2)
        """
        require(isinstance(policy, Policy), "policy", "a policy", policy)
        inside, recorded = innermost(policy), "rewards" in settings
        scaleless = not hasattr(inside, "noise_scale")
        told = policy if recorded and scaleless else policy.with_scale(1.0)  # raises early
        calibration = calibrate_filter(**settings)
        if recorded:
            centre, size = _location(settings["rewards"], settings.get("arms"))
            stretch = max(1.0, size / calibration.scale)
            if hasattr(inside, "prior_scale"):  # that of ThompsonSampling
                told = altered(told, prior_scale=stretch * inside.prior_scale)
            policy = Scaled(told, centre=centre, unit=calibration.scale, stretch=stretch)
        else:
            policy = policy.with_scale(calibration.scale)
        return cls(policy, repeats=calibration.pulls, estimator=calibration.estimator)

    def _rewards(self, state: Wrapped, rewards: Array) -> Array:
        raw = rewards.reshape(state.paths, self.policy.pulls, self.repeats)
        return self.estimator(raw)  # line 4: A receives r_t


def _oful(decisions: float, dim: int, delta: float, policy: Policy[Any]) -> float:
    """Return the bound of OFUL for the noise scale that the policy was given."""
    scale = getattr(innermost(policy), "noise_scale", 1.0)
    return oful_regret(decisions, dim=dim, delta=delta, noise_scale=scale)


def _location(rewards: ArrayLike, arms: ArrayLike | None) -> tuple[float, float]:
    """Return the median of recorded rewards, and how far the arms' medians are from it at most."""
    values = np.asarray(rewards, dtype=np.float64).reshape(-1)
    names = np.zeros(len(values)) if arms is None else np.asarray(arms).reshape(-1)
    values, names = values[~np.isnan(values)], names[~np.isnan(values)]
    medians = np.array([Median()(values[names == name]) for name in np.unique(names)])
    centre = Median()(values)
    return float(centre), float(np.abs(medians - centre).max())
