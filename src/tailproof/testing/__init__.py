"""The contract as checks: run them over a policy, noise or estimator of your own.

>>> from tailproof import OFUL, Filtered, Median
>>> check_policy(Filtered(OFUL(), repeats=5, estimator=Median()))

With pytest, one test for each check::

    @pytest.mark.parametrize("check", tailproof.testing.POLICY_CHECKS)
    def test_my_policy(check):
        check(MyPolicy())
"""

from tailproof.testing.estimators import ESTIMATOR_CHECKS, check_estimator
from tailproof.testing.laws import NOISE_CHECKS, check_noise
from tailproof.testing.policies import POLICY_CHECKS, check_policy

__all__ = [
    "ESTIMATOR_CHECKS",
    "NOISE_CHECKS",
    "POLICY_CHECKS",
    "check_estimator",
    "check_noise",
    "check_policy",
]


def __dir__() -> list[str]:
    return __all__
