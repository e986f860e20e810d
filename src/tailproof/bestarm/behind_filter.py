"""A best-arm recipe behind the filter: which scale to use, and how δ is shared."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import betaincinv, expit, log_expit, logit, logsumexp

from tailproof.bestarm.base import BestArm
from tailproof.checks import number, require, whole
from tailproof.estimators import MeanOfMedians
from tailproof.filters import Filtered
from tailproof.noise import Noise

__all__ = ["behind_filter", "median_scale"]


def median_scale(noise: Noise, *, block: int, failure: float) -> float:
    """Return the sub-Gaussian scale of block medians, rare ones left out.

    σ² = sup_h 2 ln E[cosh(hM) | |M| ≤ q]/h²,  P(|M| > q) = failure,  M the median of the block

    This is exact: given |M| ≤ q, E exp(hM) ≤ exp(σ²h²/2) for every h. Without the condition there
    is no such σ, since the tail of M is a power of index α(block + 1)/2.

    Parameters
    ----------
    noise : Noise
    block : int
        The length of a block, odd.
    failure : float
        The probability that one median is among the rare ones.

    Examples
    --------
    >>> from tailproof.noise import Cauchy
    >>> round(41 * median_scale(Cauchy(), block=41, failure=1e-5) ** 2, 2)
    3.56

    Source: our own; the law of M is that of `tailproof.noise.Noise.sample_median`.
    Differences: none.
    """
    require(whole("block", block) % 2 == 1, "block", "odd", block)
    number("failure", failure, above=0, below=1)
    half = (block + 1) / 2
    s = np.linspace(0, -logit(betaincinv(half, half, failure / 2)), 2001)
    log_mass = half * (log_expit(s) + log_expit(-s))  # the density of the logit of Beta
    log_mass[[0, -1]] -= np.log(2)  # the ends of the trapezoidal rule
    log_mass -= logsumexp(log_mass)
    size = noise.ppf(expit(s))
    h = np.geomspace(1e-2, 1e3, 300)[:, None] / size[-1]
    log_cosh = np.logaddexp(h * size, -h * size) - np.log(2)
    return float(np.sqrt((2 * logsumexp(log_mass + log_cosh, axis=1) / h[:, 0] ** 2).max()))


def behind_filter(
    policy: BestArm[Any], noise: Noise, *, block: int, max_pulls: int, blocks: int = 1
) -> Filtered[Any]:
    """Return the recipe behind a mean of medians, wrong with probability at most its δ.

    Half of δ is the recipe's. The other half is for the event that any of the max_pulls/block
    medians is larger than the quantile that goes with its share; on the opposite event the
    filtered rewards are sub-Gaussian with the scale of `median_scale`, divided by √blocks.

    Parameters
    ----------
    policy : BestArm
        The recipe, with the δ that is wanted in all; its noise scale is replaced.
    noise : Noise
        The law of the raw rewards around their location.
    block : int
        The length of a block, odd.
    max_pulls : int
        The raw pulls that are made at most.
    blocks : int
        The medians behind each filtered reward.

    Examples
    --------
    >>> from tailproof.bestarm import LinGapE
    >>> from tailproof.noise import Cauchy
    >>> policy = behind_filter(LinGapE(), Cauchy(), block=41, max_pulls=10**5)
    >>> policy.pulls, policy.policy.delta, round(policy.policy.noise_scale, 3)
    (41, 0.025, 0.294)

    Source: our own. Differences: none.
    """
    require(isinstance(policy, BestArm), "policy", "a best-arm recipe", policy)
    medians = whole("max_pulls", max_pulls, at_least=whole("block", block)) // block
    share = policy.delta / 2
    scale = median_scale(noise, block=block, failure=share / medians)
    inner = replace(policy, delta=share, noise_scale=scale / whole("blocks", blocks) ** 0.5)
    return Filtered(inner, pulls=block * blocks, estimator=MeanOfMedians(block=block))
