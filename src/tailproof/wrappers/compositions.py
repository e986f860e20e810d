"""The paper's filtered algorithms by name: each is a policy behind the mean of medians.

The functions have readable names, and `LABELS` has the paper's. Each takes `repeats` and the
settings of its algorithm.

>>> menu_filtered(repeats=64, horizon=10_000, moment_bound=1, replicates=51).pulls
3264
>>> LABELS["menu_filtered"]
'MENU_mom'

Source: section 5 and appendix A of Zhong et al. 2021, where the wrapped algorithm is given ε = 1.
Differences: ε may be given.
"""

from collections.abc import Callable
from typing import Any

from tailproof.policies import CRT, MENU, TOFU, MoM, Policy, SupBMM, SupBTC
from tailproof.wrappers.filtered import Filtered

__all__ = [
    "LABELS",
    "crt_filtered",
    "menu_filtered",
    "mom_filtered",
    "sup_bmm_filtered",
    "sup_btc_filtered",
    "tofu_filtered",
]


def _behind_filter(algorithm: Callable[..., Policy[Any]], name: str) -> Callable[..., Filtered]:
    def composed(*, repeats: int, epsilon: float = 1, **settings: Any) -> Filtered:
        return Filtered(algorithm(epsilon=epsilon, **settings), repeats=repeats)

    composed.__name__ = composed.__qualname__ = name
    composed.__doc__ = f"Return {algorithm.__name__} behind a mean of medians of `repeats` pulls."
    return composed


mom_filtered = _behind_filter(MoM, "mom_filtered")
crt_filtered = _behind_filter(CRT, "crt_filtered")
menu_filtered = _behind_filter(MENU, "menu_filtered")
tofu_filtered = _behind_filter(TOFU, "tofu_filtered")
sup_bmm_filtered = _behind_filter(SupBMM, "sup_bmm_filtered")
sup_btc_filtered = _behind_filter(SupBTC, "sup_btc_filtered")

LABELS: dict[str, str] = {
    "mom_filtered": "MoM_mom",
    "crt_filtered": "CRT_mom",
    "menu_filtered": "MENU_mom",
    "tofu_filtered": "TOFU_mom",
    "sup_bmm_filtered": "SupBMM_mom",
    "sup_btc_filtered": "SupBTC_mom",
}
"""The paper's name of each composition: ``sup_btc_filtered`` is its SupBTC_mom."""
