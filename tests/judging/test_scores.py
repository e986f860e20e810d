"""Scores of rules: what is subtracted to make them steadier has mean zero."""

from typing import Any

import numpy as np

from tailproof.judging.scores import Weighted
from tailproof.typing import Array


class Known:
    """A model that predicts the same rewards of the arms in every row."""

    def predict(self, score: Array, low: float, high: float) -> Array:
        return np.tile([1.0, 2.0, 5.0], (len(score), 1))


def test_a_control_has_mean_zero_under_the_log() -> None:
    """Rows whose arms are exactly as frequent as their probabilities: the mean is no estimate."""
    arm, rule = np.array([0, 0, 1, 2]), np.array([0.1, 0.2, 0.7])
    logged = np.array([0.5, 0.25, 0.25])
    model: Any = Known()
    weighted = Weighted(
        reward=np.array([1.0, 1.5, 2.0, 6.0]),
        raw=(rule / logged)[arm],
        steady=1.0,
        probabilities=np.tile(rule, (4, 1)),
        arm=arm,
        unit=None,
        model=model,
    )
    control = weighted.control(weighted.reward, 0.0, 6.0)
    assert np.abs(control).min() > 0.1
    assert abs(control.sum()) < 1e-12
