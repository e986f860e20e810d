"""Best-arm identification behind a filter: the noise scale to use, and how δ is split."""

from typing import Any

from tailproof.bestarm.base import BestArm
from tailproof.checks import require, whole
from tailproof.noise import Noise
from tailproof.stats.estimators import MeanOfMedians
from tailproof.stats.medians import median_scale
from tailproof.wrappers.filtered import Filtered

__all__ = ["behind_filter"]


def behind_filter(
    policy: BestArm[Any], noise: Noise, *, block: int, max_pulls: int, blocks: int = 1
) -> Filtered:
    """Return the policy behind a mean of medians, wrong with probability at most its δ.

    The policy gets half of δ. The other half is divided evenly among the max_pulls/block
    medians, and is the probability that any median exceeds its quantile; otherwise the filtered
    rewards are sub-Gaussian with the scale of `median_scale`, divided by √blocks.

    Parameters
    ----------
    policy : BestArm
        A policy with the total δ, whose noise scale is replaced.
    noise : Noise
        The law of the raw rewards around their location.
    block, blocks : int
        The odd length of a block, and the number of medians in each filtered reward.
    max_pulls : int
        The largest number of raw pulls.

    Examples
    --------
    >>> from tailproof.bestarm import LinGapE
    >>> from tailproof.noise import Cauchy
    >>> policy = behind_filter(LinGapE(), Cauchy(), block=41, max_pulls=10**5)
    >>> policy.pulls, policy.policy.delta, round(policy.policy.noise_scale, 3)
    (41, 0.025, 0.294)
    """
    ok = isinstance(policy, BestArm) and hasattr(policy, "noise_scale")
    require(ok, "policy", "a best-arm policy with a noise scale, such as LinGapE()", policy)
    if isinstance(noise, Noise) and not (noise.symmetric and noise.continuous):
        raise ValueError(
            f"noise must be symmetric with a density, got {noise!r}: the median of a block is then "
            "as far above as below. For skewed or discrete rewards use bestarm.QuantileLUCB(), "
            "which needs no filter"
        )
    medians = whole("max_pulls", max_pulls, at_least=whole("block", block)) // block
    share = policy.delta / 2
    scale = median_scale(noise, block=block, failure=share / medians)
    inner = policy.at(share).with_scale(scale / whole("blocks", blocks) ** 0.5)
    return Filtered(inner, repeats=block * blocks, estimator=MeanOfMedians(block=block))
