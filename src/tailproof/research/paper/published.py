"""The algorithms as set for the published curves: no layers, bonuses far below the theory's."""

from typing import Any

from tailproof.policies import CRT, MENU, TOFU, MoM, Policy, SupBMM, SupBTC, Uniform
from tailproof.wrappers.compositions import sup_bmm_filtered, sup_btc_filtered

__all__ = ["BASELINES", "FLAT_BMM", "FLAT_BTC", "policies"]

_FLAT: dict[str, Any] = {"layered": False, "width": "experiments"}
FLAT_BMM = _FLAT | {"replicates": 31, "bonus": 0.01 / 6}
FLAT_BTC = _FLAT | {"threshold": "euclidean", "bonus": 0.01 / 3}
BASELINES = ("MoM", "CRT", "MENU", "TOFU", "SupBMM", "SupBTC")


def policies(df: float, horizon: int = 10_000) -> dict[str, Policy[Any]]:
    """Return the algorithms with the settings of the published curves for Student-t noise."""
    if df > 1:
        epsilon = min((df - 1) / 2, 1.0)
        v = 3.0 if df == 3 else 65.19
    else:
        epsilon, v = 0.01, 1e4  # chosen by hand: no moment of order 1 + ε exists
    extra_decisions = 100 if df <= 1 else 0
    flat_bmm, flat_btc = ({"horizon": horizon} | flat for flat in (FLAT_BMM, FLAT_BTC))
    return {
        "MoM": MoM(
            horizon=horizon,
            decisions=min(
                horizon ** (2 * epsilon / (1 + 3 * epsilon)) + extra_decisions, horizon / 42
            ),
            blocks=42,
            bonus=1 / 40,
            epsilon=epsilon,
            moment_bound=v,
        ),
        "CRT": CRT(bonus=1 / 10, epsilon=epsilon, moment_bound=v),
        "MENU": MENU(horizon=horizon, replicates=51, bonus=1 / 50, epsilon=epsilon, moment_bound=v),
        "TOFU": TOFU(horizon=horizon, exponent=0.5, bonus=1 / 5, epsilon=epsilon, moment_bound=v),
        "SupBMM": SupBMM(epsilon=epsilon, moment_bound=v, **flat_bmm),
        "SupBTC": SupBTC(epsilon=epsilon, moment_bound=v, **flat_btc),
        "SupBMM_mom": sup_bmm_filtered(
            repeats=256 if df == 0.5 else 64, moment_bound=1, **flat_bmm
        ),
        "SupBTC_mom": sup_btc_filtered(
            repeats=400 if df == 0.5 else 256, moment_bound=0.5, **flat_btc
        ),
        "uniform": Uniform(),
    }
