"""The paper's filtered algorithms by name: each is a policy behind the mean of medians.

The readable name is the function's, the label of the paper is in `LABELS`.

>>> menu_filtered(pulls=64, horizon=10_000, c=1, replicates=51).pulls
3264
>>> LABELS["menu_filtered"]
'MENU_mom'

Source: section 5 and appendix A of Zhong et al. 2021, where the wrapped algorithm is given ε = 1.
Differences: ε may be given.
"""

from typing import Any

from tailproof.filters import Filtered
from tailproof.policies import CRT, MENU, TOFU, MoM, SupBMM, SupBTC

__all__ = [
    "LABELS",
    "crt_filtered",
    "menu_filtered",
    "mom_filtered",
    "sup_bmm_filtered",
    "sup_btc_filtered",
    "tofu_filtered",
]


def mom_filtered(*, pulls: int, epsilon: float = 1, **settings: Any) -> Filtered[Any]:
    """Return MoM behind a mean-of-medians filter of `pulls` pulls."""
    return Filtered(MoM(epsilon=epsilon, **settings), pulls=pulls)


def crt_filtered(*, pulls: int, epsilon: float = 1, **settings: Any) -> Filtered[Any]:
    """Return CRT behind a mean-of-medians filter of `pulls` pulls."""
    return Filtered(CRT(epsilon=epsilon, **settings), pulls=pulls)


def menu_filtered(*, pulls: int, epsilon: float = 1, **settings: Any) -> Filtered[Any]:
    """Return MENU behind a mean-of-medians filter of `pulls` pulls."""
    return Filtered(MENU(epsilon=epsilon, **settings), pulls=pulls)


def tofu_filtered(*, pulls: int, epsilon: float = 1, **settings: Any) -> Filtered[Any]:
    """Return TOFU behind a mean-of-medians filter of `pulls` pulls."""
    return Filtered(TOFU(epsilon=epsilon, **settings), pulls=pulls)


def sup_bmm_filtered(*, pulls: int, epsilon: float = 1, **settings: Any) -> Filtered[Any]:
    """Return SupBMM behind a mean-of-medians filter of `pulls` pulls."""
    return Filtered(SupBMM(epsilon=epsilon, **settings), pulls=pulls)


def sup_btc_filtered(*, pulls: int, epsilon: float = 1, **settings: Any) -> Filtered[Any]:
    """Return SupBTC behind a mean-of-medians filter of `pulls` pulls."""
    return Filtered(SupBTC(epsilon=epsilon, **settings), pulls=pulls)


LABELS: dict[str, str] = {
    "mom_filtered": "MoM_mom",
    "crt_filtered": "CRT_mom",
    "menu_filtered": "MENU_mom",
    "tofu_filtered": "TOFU_mom",
    "sup_bmm_filtered": "SupBMM_mom",
    "sup_btc_filtered": "SupBTC_mom",
}
