"""The checks of an estimator."""

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import kstest

from tailproof.checks import require
from tailproof.noise import Laplace
from tailproof.stats.estimators import Estimator
from tailproof.testing.asserting import FALSE_ALARM, assert_raises, recipe_is_frozen

__all__ = ["ESTIMATOR_CHECKS", "check_estimator"]


def check_estimator(estimator: Estimator) -> None:
    """Raise ``AssertionError`` unless the estimator passes all `ESTIMATOR_CHECKS`."""
    require(
        isinstance(estimator, Estimator), "estimator", "an estimator, such as Median()", estimator
    )
    for check in ESTIMATOR_CHECKS:
        check(estimator)


def last_axis_is_reduced(estimator: Estimator) -> None:
    """Any axis can be reduced; the others stay."""
    x = np.random.default_rng(0).standard_cauchy((4, 40, 3))
    along = estimator(x, axis=1)
    assert along.shape == (4, 3)
    np.testing.assert_array_equal(along, estimator(np.moveaxis(x, 1, -1)))
    np.testing.assert_allclose(along[2, 1], estimator(x[2, :, 1]), rtol=1e-12)


def estimator_refuses_nan(estimator: Estimator) -> None:
    """A NaN anywhere, or no sample at all, is refused; infinities are not."""
    x = np.random.default_rng(0).standard_normal((2, 40))
    for place in (0, 17, 39):
        spoiled = x.copy()
        spoiled[1, place] = np.nan
        assert_raises(estimator, spoiled)
    assert_raises(estimator, np.empty(0))
    x[:, ::7] = math.inf
    x[0, ::5] = -math.inf
    assert not np.isnan(estimator(x)).any()


def shift_is_as_declared(estimator: Estimator) -> None:
    """An equivariant estimator follows shifts and units; others do not."""
    x = np.random.default_rng(0).standard_cauchy((50, 40))
    follows = np.allclose(estimator(8 * x + 64), 8 * estimator(x) + 64)
    assert follows == estimator.equivariant


def draw_has_the_law(estimator: Estimator) -> None:
    """Direct draws have the same law as estimates from raw samples."""
    rng, noise = np.random.default_rng(2021), Laplace()
    drawn = estimator.draw(noise, rng, (4000, 40))
    assert drawn.shape == (4000,)
    assert kstest(drawn, estimator(noise.sample(rng, (4000, 40)))).pvalue > FALSE_ALARM


ESTIMATOR_CHECKS: tuple[Callable[[Estimator], None], ...] = (
    recipe_is_frozen,
    last_axis_is_reduced,
    estimator_refuses_nan,
    shift_is_as_declared,
    draw_has_the_law,
)
"""The checks of an estimator, one function each."""
