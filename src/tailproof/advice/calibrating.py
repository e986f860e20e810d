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
from tailproof.tables.reading import check_options

__all__ = ["Targets", "calibrate"]


class Targets(Reading, total=False):
    """Options of `calibrate` for a filter of medians, beside those of `Reading`.

    Attributes
    ----------
    horizon, dim, pulls, block, scale, efficiency, delta :
        See `tailproof.calibrate_filter`. Pass `dim` if arms have feature vectors.

    Examples
    --------
    >>> import tailproof as tp
    >>> how: tp.Targets = {"pulls": 9}
    >>> wild = 5 + np.random.default_rng(0).standard_cauchy(1000)
    >>> tp.calibrate(reward=wild, **how).policy().repeats
    9
    """

    horizon: int | None
    dim: int | None
    pulls: int | None
    block: int | None
    scale: float | None
    efficiency: float | None
    delta: float


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
    **options: Unpack[Targets],
) -> Advice:
    """Advise which policy to run, from recorded rewards.

    Parameters
    ----------
    table : path, data frame, journal or Records, optional
        See `tailproof.records`, also for the next six.
    arm, reward, unit, time, propensity, features : str or array
    aim : Aim, optional
        What to maximise: `Median`, `Quantile`, `Mean`, `CappedMean` or `Location`.
    costs : bool
        Whether smaller rewards are better.
    looks : "one" or "any"
        Whether the file is looked at once, as a planned test is, or again and again as it grows.
    control : str, optional
        An arm that all others are compared with.
    split : "even", mapping or str, optional
        The planned shares of the arms, such as ``"A=0.5,B=0.5"``, which are then checked.
    largest, smallest : float, optional
        The ends of what a customer can bring in all (without units: a row), if you know them.
    **options :
        See `Targets` and `Reading`: ``pulls=``, ``skip_bad=``, ``events=``, …

    Examples
    --------
    >>> wild = 5 + np.random.default_rng(0).standard_cauchy(1000)
    >>> sales = {"variant": ["a", "b"] * 500, "revenue": wild}
    >>> calibrate(arm=sales["variant"], reward=sales["revenue"]).leaders["median"].arm
    'b'
    """
    columns = {"arm": arm, "reward": reward, "unit": unit, "time": time, "propensity": propensity}
    columns["features"] = features
    stated = {"aim": aim, "costs": costs, "looks": looks, "control": control, "split": split}
    return _advice(table, columns, stated | {"largest": largest, "smallest": smallest}, options)


def _advice(
    table: Any, columns: dict[str, Any], stated: dict[str, Any], options: Targets
) -> Advice:
    """Check the options, read the table, and return the advice."""
    check_options(options, [*columns, *stated, *sorted(Targets.__annotations__)])
    given: dict[str, Any] = dict(options)
    filters = {name: given.pop(name, None) for name in ("pulls", "block", "scale", "efficiency")}
    delta = number("delta", given.pop("delta", 0.01), above=0, below=1)
    sizes = {name: given.pop(name, None) for name in ("horizon", "dim")}
    sizes = {name: None if x is None else whole(name, x) for name, x in sizes.items()}
    if stated["aim"] is not None:
        check_aim("aim", stated["aim"])
    require(isinstance(stated["costs"], bool), "costs", "True or False", stated["costs"])
    require(stated["looks"] in ("one", "any"), "looks", "'one' or 'any'", stated["looks"])
    log = records(table, **columns, **given)
    behind = log.rows or log
    rewards = Rewards.grouped(behind.reward, behind.arm, behind.arms)
    names, control = [arm.name for arm in rewards.arms], stated["control"]
    require(control is None or control in names, "control", f"one of {', '.join(names)}", control)
    planned_shares(stated["split"], names)
    asked = any(filters.values())
    if None not in sizes.values():
        filters |= sizes
    calibration, refusal = _filter(rewards, asked=asked, delta=delta, **filters)
    varying, constant = _features(log)
    return Advice(
        rewards=rewards,
        records=log,
        features=varying,
        constant=constant,
        calibration=calibration,
        refusal=refusal,
        asked=asked,
        window=options.get("window"),
        events=options.get("events") is not None,
        **stated,
        **sizes,
    )


def _filter(rewards: Rewards, *, asked: bool, **targets: Any) -> tuple[Calibration | None, str]:
    """Return a suitable filter of medians, or why there is none."""
    try:
        return calibrate_filter(rewards=rewards, **targets), ""
    except ValueError as error:
        if asked:
            raise
        return None, str(error)


def _features(log: Records) -> tuple[int, int]:
    """Return how many features differ between visitors, and how many do not."""
    if log.features is None:
        return 0, 0
    varying = int(np.count_nonzero(np.ptp(log.features, axis=0)))
    return varying, log.features.shape[1] - varying
