"""Misspelled settings in Python are answered with those there are."""

import copy
import pickle
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

import tailproof as tp
from tailproof import noise


class Plain(noise.Normal):
    """A law of a user's, without fields of its own."""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tp.OFUL(noise_scal=1), "no setting noise_scal; did you mean noise_scale?"),  # type: ignore[call-arg]
        (lambda: tp.UCB1(2.0), r"takes its settings by name, such as UCB1\(bonus=2.0\)"),  # type: ignore[call-arg]
        (lambda: tp.Filtered(tp.UCB1(), repeat=3), "did you mean repeats?"),  # type: ignore[call-arg]
        (lambda: noise.StudentT(1, 2, 3), "StudentT takes 2 settings by place, got 3"),  # type: ignore[call-arg]
        (lambda: Plain(scal=3), "Plain has no setting scal; did you mean scale?"),  # type: ignore[call-arg]
        (lambda: tp.Median(3), "Median takes no settings by place, got 1"),  # type: ignore[call-arg]
        (lambda: noise.StudentT(), "missing 1 required positional argument: 'df'"),  # type: ignore[call-arg]
    ],
)
def test_wrong_settings_are_named(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make()


def test_everything_else_is_as_before() -> None:
    policy = tp.Filtered(tp.UCB1(bonus=2), repeats=3, estimator=tp.Median())
    assert pickle.loads(pickle.dumps(policy)) == copy.deepcopy(policy) == policy
    assert list(signature(tp.UCB1).parameters) == ["bonus", "random"]
    assert list(signature(tp.Median()).parameters) == ["x", "axis"]
    with pytest.raises(TypeError, match="abstract"):
        noise.Noise()  # type: ignore[abstract]
