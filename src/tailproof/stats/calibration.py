"""How many pulls for a decision, and which block: from a law, or from recorded rewards."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from numpy.typing import ArrayLike

from tailproof.checks import number, require, whole
from tailproof.noise import Noise
from tailproof.stats.diagnostics import SAFE, Rewards
from tailproof.stats.estimators import MeanOfMedians
from tailproof.stats.medians import MedianLaw, NoiseMedian, SampleMedian, exceedance, scale
from tailproof.typing import Array

__all__ = ["Calibration", "calibrate_filter"]

_BLOCKS = (*range(1, 42, 2), 51, 61, 71, 81, 91, 101)
_NEAR_BEST = 0.8
_WORTH_A_FILTER = 3
"""Where a mean needs more than this many times the pulls of the best block, it is not advised."""

Source = Noise | Rewards
Costs = Mapping[int, float]  # variance × pulls by block


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """A number of pulls and a block length, and what they do to the noise.

    With k = block, k' = ⌊pulls/k⌋ and M the median of k samples, the error of the filter is the
    mean of k' independent copies of M. The block is the dial between the mean (k = 1) and the
    median (k = pulls).

    Attributes
    ----------
    source : Noise or Rewards
        What was calibrated for.
    pulls, block : int
    delta : float
        The level at which `scale` is taken.
    reason : str
        Why these pulls and this block.
    costs : mapping
        Variance × pulls of every block length that was considered.

    Examples
    --------
    >>> from tailproof.noise import Cauchy
    >>> chosen = calibrate_filter(noise=Cauchy(), pulls=21, block=21)
    >>> round(21 * chosen.variance, 3), round(chosen.efficiency, 2), chosen.tail_index
    (2.87, 0.7, 11.0)

    Source: order statistics; the filter is Algorithm 2 of Zhong et al. 2021.
    Differences: exact laws in place of the constants of Theorem 2.
    """

    source: Source
    pulls: int
    block: int
    delta: float
    reason: str
    costs: Costs = field(repr=False)

    @cached_property
    def law(self) -> MedianLaw:
        """The law of one block median."""
        return _median(self.source, self.block)

    @property
    def blocks(self) -> int:
        """The number k' = ⌊pulls/k⌋ of block medians."""
        return self.pulls // self.block

    @property
    def estimator(self) -> MeanOfMedians:
        """The estimator for a filter."""
        return MeanOfMedians(block=self.block)

    @property
    def tail_index(self) -> float:
        """α⌈k/2⌉: the filtered noise has moments below this order. From rewards, an estimate."""
        return _tail_index(self.source, self.block)

    @property
    def variance(self) -> float:
        """The variance of the filtered noise; from rewards, that of draws from themselves."""
        return self.law.variance / self.blocks

    @cached_property
    def scale(self) -> float:
        """The standard deviation of the normal noise that is as often this far off at level δ."""
        return scale(self.law, self.blocks, self.delta)

    @property
    def efficiency(self) -> float:
        """The share of the information in the pulls that the filter keeps.

        1/(I · pulls · variance), the Cramér–Rao bound beside the variance; for rewards, whose
        Fisher information I is not known, the best block takes the place of the bound.
        """
        return self._bound / (self.pulls * self.variance)

    @cached_property
    def _bound(self) -> float:
        return _least_cost(self.source, self.costs)

    def exceedance(self, z: ArrayLike) -> Array:
        """Return P(|error| > z) of the filtered noise, see `tailproof.stats.medians.exceedance`.

        >>> from tailproof.noise import Cauchy
        >>> calibrate_filter(noise=Cauchy(), pulls=21).exceedance([0.5, 1]).round(3).tolist()
        [0.161, 0.013]
        """
        return exceedance(self.law, self.blocks, z)

    def table(self) -> list[dict[str, float]]:
        """Return one row for each block length that was considered."""
        return [
            {
                "block": block,
                "tail index": _tail_index(self.source, block),
                "variance × pulls": cost,
                "efficiency": self._bound / cost,
            }
            for block, cost in self.costs.items()
        ]

    def explain(self) -> str:
        """Return the choice in plain words, after the verdict on recorded rewards."""
        if not isinstance(self.source, Rewards):
            return self.choice
        parts = [self.source.verdict, self.choice]
        if self.source.missing:
            parts.append(f"{self.source.missing} missing rewards were left out.")
        return " ".join(parts)

    @property
    def choice(self) -> str:
        """Pulls and block, why, and what to expect."""
        pulls = "1 pull" if self.pulls == 1 else f"{self.pulls} pulls"
        if self.block == 1:
            then = " and take their mean" if self.pulls > 1 else ""
        elif self.blocks == 1:
            of = "their median" if self.block == self.pulls else f"the median of {self.block}"
            then = f" and take {of}"
        else:
            then = f" and take the mean of {self.blocks} medians of {self.block}"
        share = "of the best block" if isinstance(self.source, Rewards) else "of what is possible"
        return (
            f"Hold each choice for {pulls}{then}: {self.reason}. "
            f"Expect a noise of scale {self.scale:.3g} (level {self.delta:g}), tail index "
            f"{self.tail_index:.3g} and efficiency {self.efficiency:.2f} {share}."
        )


def calibrate_filter(
    *,
    noise: Noise | None = None,
    rewards: ArrayLike | Rewards | None = None,
    arms: ArrayLike | None = None,
    pulls: int | None = None,
    block: int | None = None,
    scale: float | None = None,
    efficiency: float | None = None,
    horizon: int | None = None,
    dim: int | None = None,
    delta: float = 0.01,
) -> Calibration:
    """Choose pulls and block for a law, or for recorded rewards, and say what to expect.

    Parameters
    ----------
    noise : Noise
        The law of the noise; or else
    rewards, arms : arrays
        Recorded rewards, NaN where missing, and the arm of each. Every arm's median is taken off.
    pulls, block : int, optional
        Taken as they are; the best block for given pulls, one block of the length given.
    scale : float, optional
        The fewest pulls that bring the filtered noise to this scale at level δ.
    efficiency : float, optional
        The fewest pulls that keep this share of the information.
    horizon, dim : int, optional
        The pulls that make d·pulls + d·scale·√(pulls·T) smallest: d decisions that know nothing
        of locations of size one, and the regret of OFUL with the filtered noise. Two decisions
        for each dimension must fit.
    delta : float
        δ, the level of `scale`.

    Without a target, the shortest block with 0.8 of the efficiency of the best.

    Examples
    --------
    >>> from tailproof.noise import Cauchy
    >>> print(calibrate_filter(noise=Cauchy(), horizon=10_000, dim=10).explain())
    Hold each choice for 25 pulls and take their median: it balances the cost of a decision
    against its noise over 10000 pulls in 10 dimensions. Expect a noise of scale 0.363 (level
    0.01), tail index 13 and efficiency 0.72 of what is possible.
    >>> import numpy as np
    >>> seen = calibrate_filter(rewards=5 + np.random.default_rng(0).standard_cauchy(1000))
    >>> seen.source.mean_is_safe
    False
    """
    require((noise is None) != (rewards is None), "noise", "given, or rewards in its place", noise)
    require(rewards is not None or arms is None, "arms", "given together with rewards", arms)
    number("delta", delta, above=0, below=1)
    source: Source
    if noise is not None:
        require(isinstance(noise, Noise), "noise", "a noise", noise)
        source = noise
    else:
        source = rewards if isinstance(rewards, Rewards) else Rewards.of(rewards, arms)  # type: ignore[arg-type]
    targets = {"pulls": pulls or block, "scale": scale, "efficiency": efficiency, "dim": dim}
    given = [name for name, target in targets.items() if target is not None]
    require(len(given) < 2, given[0] if given else "pulls", "the only target", given)
    require((horizon is None) == (dim is None), "horizon", "given together with dim", horizon)
    costs = {k: k * _median(source, k).variance for k in _tame_blocks(source)}
    if pulls is not None or block is not None:
        found = _as_given(source, costs, pulls, block)
    elif scale is not None:
        found = _for_scale(source, costs, number("scale", scale, above=0), delta)
    elif dim is not None:
        found = _for_horizon(source, costs, whole("horizon", horizon), whole("dim", dim), delta)
    else:
        share = None if efficiency is None else number("efficiency", efficiency, above=0, at_most=1)
        found = _for_efficiency(source, costs, share)
    many, length, reason = found
    return Calibration(
        source=source, pulls=many, block=length, delta=delta, reason=reason, costs=costs
    )


Choice = tuple[int, int, str]  # pulls, block and the reason


def _as_given(source: Source, costs: Costs, pulls: int | None, block: int | None) -> Choice:
    if block is not None:
        whole("block", block)
        if isinstance(source, Rewards):
            most = len(source.errors) // 5
            require(block % 2 == 1, "block", "odd where rewards are given", block)
            require(block <= most, "block", f"at most {most}, a fifth of the rewards", block)
        many = block if pulls is None else whole("pulls", pulls)
        require(block <= many, "block", f"at most {many}, the number of pulls", block)
        return many, block, "as asked"
    many = whole("pulls", pulls)
    fit = [k for k in costs if k <= many]
    require(bool(fit), "pulls", f"at least {min(costs)} for a tame median", many)
    best = min(fit, key=lambda k: costs[k] / (many // k * k))
    return many, best, f"no other block of {many} pulls has a smaller variance"


def _for_efficiency(source: Source, costs: Costs, share: float | None) -> Choice:
    worth = ""
    if share is None and isinstance(source, Rewards) and source.mean_is_safe:
        times = costs[1] / min(costs.values()) if min(costs.values()) > 0 else 1.0
        if times <= _WORTH_A_FILTER or source.mostly_equal or source.bounded:
            return 1, 1, "no filter is needed"
        worth = f"; a mean alone would take {times:.3g} times the pulls of the best block"
    if share is None:
        needed = min(costs.values()) / _NEAR_BEST
        reason = f"the shortest block with {_NEAR_BEST:g} of the efficiency of the best{worth}"
    else:
        needed = _least_cost(source, costs) / share
        reason = f"the shortest block with an efficiency of {share:g}"
    enough = [k for k, cost in costs.items() if cost <= needed]
    if not enough:
        most = _least_cost(source, costs) / min(costs.values())
        require(False, "efficiency", f"at most {most:.3f}, that of the best block", share)
    return enough[0], enough[0], reason


def _for_scale(source: Source, costs: Costs, target: float, delta: float) -> Choice:
    """Try the blocks whose variance promises the fewest pulls, and count them exactly."""
    least = 1e-6 * math.sqrt(min(costs.values()))
    require(target >= least, "scale", f"at least {least:.3g}, which takes 10¹² pulls", target)
    need = {k: math.ceil(cost / k / target**2) for k, cost in costs.items() if cost < math.inf}
    found = []
    for k in sorted(need, key=lambda k: k * need[k])[:6]:
        count = need[k]
        while (reached := scale(_median(source, k), count, delta)) > target:
            count = max(count + 1, int(count * (reached / target) ** 2))
        found.append((k * count, k))
    pulls, block = min(found)
    return pulls, block, f"no fewer were found to bring the scale to {target:g}"


def _for_horizon(source: Source, costs: Costs, horizon: int, dim: int, delta: float) -> Choice:
    regrets = {
        k: k + scale(_median(source, k), 1, delta) * math.sqrt(k * horizon)
        for k in costs
        if 2 * dim * k <= horizon
    }
    least = 2 * dim * min(costs)
    require(
        bool(regrets), "horizon", f"at least {least}, two decisions for each dimension", horizon
    )
    best = min(regrets, key=lambda k: regrets[k])
    over = f"over {horizon} pulls in {dim} dimensions"
    return best, best, f"it balances the cost of a decision against its noise {over}"


def _median(source: Source, block: int) -> MedianLaw:
    if isinstance(source, Rewards):
        return SampleMedian(source.errors, block)
    return NoiseMedian(source, block)


def _tail_index(source: Source, block: int) -> float:
    alpha = source.tail.alpha if isinstance(source, Rewards) else source.alpha
    return alpha * ((block + 1) // 2)


def _tame_blocks(source: Source) -> list[int]:
    """Return the blocks whose median has a variance, and for which there are enough rewards."""
    if isinstance(source, Rewards):
        if source.mostly_equal:
            if source.mean_is_safe:
                return [1]
            raise ValueError(
                "rewards must differ from the median of their arm more often than not, as medians "
                f"cannot tell arms apart otherwise. {source.verdict} Next: maximise a capped mean, "
                "Capped(UCB1()), or a quantile above the common value, OrderStatisticUCB()"
            )
        most, low = len(source.errors) // 5, max(source.tail.low, source.tail.bulk)
        tame = [k for k in _BLOCKS if k <= most and low * (k + 1) / 2 > SAFE]
        if source.mean_is_safe and 1 not in tame:  # bounded, whatever the rest between looks like
            tame = [1, *tame]
        if not tame:
            raise ValueError(
                f"rewards must be more than {len(source.errors)} for a tail index of {low:.2g}, as "
                f"a tame block is longer than a fifth of them. {source.verdict} Next: a policy "
                "that compares rewards and needs no block, OrderStatisticUCB()"
            )
        return tame
    tame = [k for k in _BLOCKS if source.alpha * (k + 1) / 2 > 2]
    require(bool(tame), "noise", f"of tail index above {4 / (_BLOCKS[-1] + 1):.3g}", source)
    return tame


def _least_cost(source: Source, costs: Costs) -> float:
    """Return the smallest possible variance × pulls: the Cramér–Rao bound, or the best block."""
    return min(costs.values()) if isinstance(source, Rewards) else 1 / source.fisher_information
