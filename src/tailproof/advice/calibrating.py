"""`calibrate`: advice from recorded rewards."""

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from tailproof.advice.advice import Advice
from tailproof.checks import number, require, whole
from tailproof.stats.aims import Aim, check_aim
from tailproof.stats.calibration import Calibration, calibrate_filter
from tailproof.stats.diagnostics import Rewards
from tailproof.stats.soundness import planned_shares
from tailproof.stats.standing import Looks
from tailproof.tables import Reading, Records, records

__all__ = ["calibrate"]


def calibrate(
    table: Any = None,
    *,
    arm: Any = "arm",
    reward: Any = "reward",
    unit: Any = "unit",
    time: Any = "time",
    propensity: Any = "propensity",
    features: Any = None,
    aim: Aim | None = None,
    costs: bool = False,
    looks: Looks = "one",
    control: str | None = None,
    split: str | Mapping[str, float] | None = None,
    largest: float | None = None,
    smallest: float | None = None,
    horizon: int | None = None,
    dim: int | None = None,
    pulls: int | None = None,
    block: int | None = None,
    scale: float | None = None,
    efficiency: float | None = None,
    delta: float = 0.01,
    **reading: Unpack[Reading],
) -> Advice:
    """Advise which policy to run, from recorded rewards.

    Parameters
    ----------
    table : path, data frame, journal or Records, optional
        See `tailproof.records`, which also takes the other columns and ``**reading``: ``id=``,
        ``group=``, ``sheet=``, ``decimal=``, ``spelling=``, ``missing=``, ``skip_bad=``.
    arm, reward, unit, time, propensity, features : str or array
        Names of columns, or arrays if there is no table.
    aim : Aim, optional
        What to maximise: `Median`, `Quantile`, `Mean` or `CappedMean`.
    costs : bool
        Whether smaller rewards are better.
    looks : "one" or "any"
        Whether the file is looked at once, as a planned test is, or again and again as it grows.
    control : str, optional
        An arm that all others are compared with.
    split : "even", mapping or str, optional
        The planned shares of the arms, such as ``"A=0.5,B=0.5"``, which are then checked.
    largest, smallest : float, optional
        The largest and the smallest total that a customer (without units: a row) can bring, if you
        know them: then a mean has an interval without a cap.
    horizon, dim, pulls, block, scale, efficiency, delta :
        Targets of a filter of medians, see `tailproof.calibrate_filter`. Pass `dim` if arms have
        feature vectors.

    Examples
    --------
    >>> wild = 5 + np.random.default_rng(0).standard_cauchy(1000)
    >>> calibrate(reward=wild).policy().intercept
    True
    >>> import pandas as pd
    >>> sales = pd.DataFrame({"variant": ["a", "b"] * 500, "revenue": wild})
    >>> calibrate(sales, reward="revenue", arm="variant").leaders["median"].arm
    'b'
    """
    if aim is not None:
        check_aim("aim", aim)
    require(isinstance(costs, bool), "costs", "True or False", costs)
    number("delta", delta, above=0, below=1)
    columns = {"arm": arm, "reward": reward, "unit": unit, "time": time, "propensity": propensity}
    require(looks in ("one", "any"), "looks", "'one' or 'any'", looks)
    known = records(table, **columns, features=features, **reading)
    rewards = Rewards.grouped(known.reward, known.arm, known.arms)
    names = [arm.name for arm in rewards.arms]
    require(control is None or control in names, "control", f"one of {', '.join(names)}", control)
    planned_shares(split, names)
    filters = {"pulls": pulls, "block": block, "scale": scale, "efficiency": efficiency}
    asked = any(filters.values())
    horizon = None if horizon is None else whole("horizon", horizon)
    dim = None if dim is None else whole("dim", dim)
    if horizon is not None and dim is not None:
        filters |= {"horizon": horizon, "dim": dim}
    calibration, refusal = _filter(rewards, asked=asked, delta=delta, **filters)
    varying, constant = _features(known)
    return Advice(
        rewards=rewards,
        records=known,
        features=varying,
        constant=constant,
        aim=aim,
        costs=costs,
        horizon=horizon,
        dim=dim,
        calibration=calibration,
        refusal=refusal,
        asked=asked,
        looks=looks,
        control=control,
        split=split,
        largest=largest,
        smallest=smallest,
    )


def _filter(rewards: Rewards, *, asked: bool, **targets: Any) -> tuple[Calibration | None, str]:
    """Return a suitable filter of medians, or why there is none."""
    try:
        return calibrate_filter(rewards=rewards, **targets), ""
    except ValueError as error:
        if asked:
            raise
        return None, str(error)


def _features(known: Records) -> tuple[int, int]:
    """Return how many features differ between visitors, and how many do not."""
    if known.features is None:
        return 0, 0
    varying = int(np.count_nonzero(np.ptp(known.features, axis=0)))
    return varying, known.features.shape[1] - varying
