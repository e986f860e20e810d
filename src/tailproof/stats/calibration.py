"""Choose the pulls per decision and the block length of a filter of medians."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from numpy.typing import ArrayLike

from tailproof.checks import number, require, whole
from tailproof.noise import Noise
from tailproof.stats.diagnostics import SAFE_TAIL_INDEX, Rewards
from tailproof.stats.estimators import MeanOfMedians
from tailproof.stats.medians import MedianLaw, NoiseMedian, SampleMedian, exceedance, scale
from tailproof.typing import Array

__all__ = ["Calibration", "calibrate_filter"]

_BLOCKS = (*range(1, 42, 2), 51, 61, 71, 81, 91, 101)
"""The block lengths to choose from; 101 gives a variance to tail indices from 0.04 on."""
_NEAR_BEST = 0.8
"""The share of the best block's efficiency that a shorter block must have."""
_MAX_COST_RATIO = 3
"""A mean that needs more than this many times the pulls of the best block is not advised."""

Source = Noise | Rewards
Costs = Mapping[int, float]  # variance × pulls by block


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """A number of pulls, a block length, and the noise that a filter with them leaves.

    With k = block, k' = ⌊pulls/k⌋ and M the median of k samples, the error of the filter is the
    mean of k' independent copies of M: the mean for k = 1, the median for k = pulls.

    Attributes
    ----------
    source : Noise or Rewards
        The noise law or recorded rewards of the calibration.
    pulls, block : int
    delta : float
        The level of `scale`.
    reason : str
        Why these pulls and this block.
    costs : mapping
        Variance × pulls of every block length considered.

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
        """The estimator of the filter."""
        return MeanOfMedians(block=self.block)

    @property
    def tail_index(self) -> float:
        """α⌈k/2⌉, an estimate for rewards: the filtered noise has all moments below this order."""
        return _tail_index(self.source, self.block)

    @property
    def variance(self) -> float:
        """The variance of the filtered noise; for rewards, of samples drawn from them."""
        return self.law.variance / self.blocks

    @cached_property
    def scale(self) -> float:
        """The standard deviation of the normal noise with the same error quantile at level δ."""
        return scale(self.law, self.blocks, self.delta)

    @property
    def efficiency(self) -> float:
        """The efficiency 1/(I · pulls · variance), relative to the Cramér–Rao bound.

        For rewards, whose Fisher information I is unknown, it is relative to the best block.
        """
        return self._bound / (self.pulls * self.variance)

    @cached_property
    def _bound(self) -> float:
        return _least_cost(self.source, self.costs)

    def exceedance(self, z: ArrayLike) -> Array:
        """Return P(|error| > z) of the filtered noise.

        >>> from tailproof.noise import Cauchy
        >>> calibrate_filter(noise=Cauchy(), pulls=21).exceedance([0.5, 1]).round(3).tolist()
        [0.161, 0.013]
        """
        return exceedance(self.law, self.blocks, z)

    def table(self) -> list[dict[str, float]]:
        """Return one row for each block length considered."""
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
        """Return the choice in words, after the verdict on recorded rewards."""
        if not isinstance(self.source, Rewards):
            return self.choice
        missing = f" {self.source.missing} missing rewards were left out."
        return f"{self.source.verdict} {self.choice}{missing if self.source.missing else ''}"

    @property
    def choice(self) -> str:
        """Pulls and block, with a reason and the expected errors."""
        if self.block == 1:
            estimate = "the mean of the rewards"
        elif self.blocks == 1:
            of = "the rewards" if self.block == self.pulls else f"{self.block} rewards"
            estimate = f"the median of {of}"
        else:
            estimate = f"the mean of {self.blocks} medians of {self.block} rewards"
        pull = "once" if self.pulls == 1 else f"{self.pulls} times and use {estimate}"
        best = "the best block" if isinstance(self.source, Rewards) else "the Cramér–Rao bound"
        return (
            f"Pull each chosen arm {pull}: {self.reason}. "
            f"Expect noise of scale {self.scale:.3g} (level {self.delta:g}), tail index "
            f"{self.tail_index:.3g} and efficiency {self.efficiency:.2f} relative to {best}."
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
    """Choose the pulls and the block length of a filter, for a noise law or recorded rewards.

    Pass at most one target: pulls and block, `scale`, `efficiency`, or horizon and dim. Without a
    target, the result is the shortest block with 0.8 of the efficiency of the best.

    Parameters
    ----------
    noise : Noise
        The law of the noise; or instead
    rewards, arms : arrays
        Recorded rewards, NaN if missing, and the arm of each. Arms are centred at their medians.
    pulls, block : int, optional
        Used as given. With pulls alone, the best block; with block alone, a single block.
    scale : float, optional
        Find the fewest pulls that bring the filtered noise to this scale at level δ.
    efficiency : float, optional
        Find the fewest pulls with this efficiency.
    horizon, dim : int, optional
        Minimise d·pulls + d·scale·√(pulls·T): d uninformed decisions between locations of size
        one, plus the regret of OFUL under the filtered noise. T must have room for 2d decisions.
    delta : float
        δ, the level of `scale`.

    Examples
    --------
    >>> from tailproof.noise import Cauchy
    >>> print(calibrate_filter(noise=Cauchy(), horizon=10_000, dim=10).explain())
    Pull each chosen arm 25 times and use the median of the rewards: this balances the cost of a
    decision against its noise over 10000 pulls in 10 dimensions. Expect noise of scale 0.363 (level
    0.01), tail index 13 and efficiency 0.72 relative to the Cramér–Rao bound.
    """
    number("delta", delta, above=0, below=1)
    _check_targets(pulls or block, scale, efficiency, horizon, dim)
    source = _source(noise, rewards, arms)
    costs = {k: k * _median(source, k).variance for k in _candidate_blocks(source)}
    if pulls is not None or block is not None:
        choice = _as_requested(source, costs, pulls, block)
    elif scale is not None:
        choice = _for_scale(source, costs, scale, delta)
    elif dim is not None:
        choice = _for_horizon(source, costs, whole("horizon", horizon), whole("dim", dim), delta)
    else:
        choice = _for_efficiency(source, costs, efficiency)
    pulls, block, reason = choice
    return Calibration(
        source=source, pulls=pulls, block=block, delta=delta, reason=reason, costs=costs
    )


def _check_targets(
    pulls: int | None,
    scale: float | None,
    efficiency: float | None,
    horizon: int | None,
    dim: int | None,
) -> None:
    """Refuse two targets at once, and a target of which half is missing."""
    targets = {"pulls": pulls, "scale": scale, "efficiency": efficiency, "dim": dim}
    given = [name for name, target in targets.items() if target is not None]
    if len(given) > 1:
        raise ValueError(f"pass only one of {' and '.join(given)}: each determines the pulls")
    if (horizon is None) != (dim is None):
        raise ValueError(f"pass horizon and dim together, got horizon={horizon}, dim={dim}")


def _source(
    noise: Noise | None, rewards: ArrayLike | Rewards | None, arms: ArrayLike | None
) -> Source:
    """Return the noise law, or recorded rewards in its place."""
    if (noise is None) == (rewards is None):
        raise ValueError("pass either noise or rewards, and not both")
    if noise is not None:
        if arms is not None:
            raise ValueError(
                "arms was given without rewards; pass the arm of each reward with them"
            )
        require(isinstance(noise, Noise), "noise", "a noise law such as Cauchy()", noise)
        return noise
    return rewards if isinstance(rewards, Rewards) else Rewards.of(rewards, arms)  # type: ignore[arg-type]


Choice = tuple[int, int, str]  # pulls, block and the reason


def _as_requested(source: Source, costs: Costs, pulls: int | None, block: int | None) -> Choice:
    if block is not None:
        whole("block", block)
        if isinstance(source, Rewards):
            most = len(source.errors) // 5
            require(block % 2 == 1, "block", "odd for recorded rewards", block)
            require(block <= most, "block", f"at most {most}, a fifth of the rewards", block)
        many = block if pulls is None else whole("pulls", pulls)
        require(block <= many, "block", f"at most {many}, the number of pulls", block)
        return many, block, "as requested"
    many = whole("pulls", pulls)
    fit = [k for k in costs if k <= many]
    rule = f"at least {min(costs)} for a median with finite variance"
    require(bool(fit), "pulls", rule, many)
    best = min(fit, key=lambda k: costs[k] / (many // k * k))
    return many, best, f"no other block for {many} pulls has a smaller variance"


def _for_efficiency(source: Source, costs: Costs, share: float | None) -> Choice:
    mean = ""
    if share is None and isinstance(source, Rewards) and source.mean_is_safe:
        times = costs[1] / min(costs.values()) if min(costs.values()) > 0 else 1.0
        if times <= _MAX_COST_RATIO or source.mostly_equal or source.bounded:
            return 1, 1, "no filter is needed"
        mean = f"; a mean needs {times:.3g} times the pulls of the best block"
    if share is None:
        needed = min(costs.values()) / _NEAR_BEST
        reason = f"this is the shortest block with {_NEAR_BEST:g} of the best efficiency{mean}"
    else:
        number("efficiency", share, above=0, at_most=1)
        needed = _least_cost(source, costs) / share
        reason = f"this is the shortest block with an efficiency of {share:g}"
    enough = [k for k, cost in costs.items() if cost <= needed]
    if not enough:
        most = _least_cost(source, costs) / min(costs.values())
        require(False, "efficiency", f"at most {most:.3f}, the efficiency of the best block", share)
    return enough[0], enough[0], reason


def _for_scale(source: Source, costs: Costs, target: float, delta: float) -> Choice:
    """Count pulls exactly for the six blocks that need the fewest according to their variance."""
    number("scale", target, above=0)
    least = 1e-6 * math.sqrt(min(costs.values()))
    require(target >= least, "scale", f"at least {least:.3g}, which takes 10¹² pulls", target)
    need = {k: math.ceil(cost / k / target**2) for k, cost in costs.items() if cost < math.inf}
    choices = []
    for k in sorted(need, key=lambda k: k * need[k])[:6]:
        count = need[k]
        while (reached := scale(_median(source, k), count, delta)) > target:
            count = max(count + 1, int(count * (reached / target) ** 2))
        choices.append((k * count, k))
    pulls, block = min(choices)
    return pulls, block, f"these are the fewest pulls found for a scale of {target:g}"


def _for_horizon(source: Source, costs: Costs, horizon: int, dim: int, delta: float) -> Choice:
    regrets = {
        k: k + scale(_median(source, k), 1, delta) * math.sqrt(k * horizon)
        for k in costs
        if 2 * dim * k <= horizon
    }
    rule = f"at least {2 * dim * min(costs)}, two decisions for each dimension"
    require(bool(regrets), "horizon", rule, horizon)
    best = min(regrets, key=lambda k: regrets[k])
    over = f"over {horizon} pulls in {dim} dimensions"
    return best, best, f"this balances the cost of a decision against its noise {over}"


def _median(source: Source, block: int) -> MedianLaw:
    if isinstance(source, Rewards):
        return SampleMedian(source.errors, block)
    return NoiseMedian(source, block)


def _tail_index(source: Source, block: int) -> float:
    alpha = source.tail.alpha if isinstance(source, Rewards) else source.alpha
    return alpha * ((block + 1) // 2)


def _candidate_blocks(source: Source) -> list[int]:
    """Return the blocks whose median has finite variance, and at most a fifth of the rewards."""
    if isinstance(source, Rewards):
        if source.mostly_equal:
            if source.mean_is_safe:
                return [1]
            raise ValueError(
                "medians cannot tell arms apart, as most rewards equal the median of their arm. "
                f"{source.verdict} Next: maximise a capped mean, RevenueUCB(), or a quantile "
                "above the common value, OrderStatisticUCB(quantile=…)"
            )
        most, low = len(source.errors) // 5, max(source.tail.low, source.tail.robust_low)
        blocks = [k for k in _BLOCKS if k <= most and low * (k + 1) / 2 > SAFE_TAIL_INDEX]
        if source.mean_is_safe and 1 not in blocks:  # bounded, whatever lies in between
            blocks = [1, *blocks]
        if not blocks:
            raise ValueError(
                f"{len(source.errors)} rewards are too few for a tail index of {low:.2g}: a block "
                f"would take more than a fifth of them. {source.verdict} Next: OrderStatisticUCB() "
                "compares rewards and needs no block"
            )
        return blocks
    blocks = [k for k in _BLOCKS if source.alpha * (k + 1) / 2 > 2]
    rule = f"a law with a tail index above {4 / (_BLOCKS[-1] + 1):.3g}"
    require(bool(blocks), "noise", rule, source)
    return blocks


def _least_cost(source: Source, costs: Costs) -> float:
    """Return the smallest variance × pulls: the Cramér–Rao bound, or the best block's."""
    return min(costs.values()) if isinstance(source, Rewards) else 1 / source.fisher_information
