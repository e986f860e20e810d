"""The square-root regression beside exact arithmetic, for arms that are hard on rounding."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from tailproof import OFUL
from tailproof.policies.state.regression import squared_norms
from tailproof.typing import Array

ARMS, DIM, RIDGE = 6, 4, 1e-8
BARS = {"1": 1e-6, "0.001": 1e-6, "1000": 1e-6, "collinear": 1e-2, "mixed": 1e-2}
"""The largest relative error of a squared width, by what is peculiar about the arms."""


def hard_arms(kind: str, rng: np.random.Generator) -> Array:
    """Return arms of the given length, collinear to 10⁻⁶, or of lengths from 10⁻³ to 10³."""
    x: Array = rng.standard_normal((ARMS, DIM))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    if kind == "collinear":
        return x[:1] + 1e-6 * x
    return x * (10 ** rng.uniform(-3, 3, (ARMS, 1)) if kind == "mixed" else float(kind))


def exact_squares(arms: Array, counts: NDArray[np.int64]) -> Array:
    """Return xᵀ(λI + Σ n x xᵀ)⁻¹x for every arm, by elimination with fractions."""
    x = [[Fraction(entry) for entry in row] for row in arms.tolist()]
    rows = [
        [
            Fraction(RIDGE) * (i == j)
            + sum(int(n) * a[i] * a[j] for n, a in zip(counts, x, strict=True))
            for j in range(DIM)
        ]
        + [a[i] for a in x]
        for i in range(DIM)
    ]
    for i in range(DIM):
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for j in set(range(DIM)) - {i}:
            rows[j] = [b - rows[j][i] * a for a, b in zip(rows[i], rows[j], strict=True)]
    return np.array(
        [float(sum(a[i] * rows[i][DIM + k] for i in range(DIM))) for k, a in enumerate(x)]
    )


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("updates", [5_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_widths_stay_exact(updates: int, optimistic: bool) -> None:
    rng = np.random.default_rng(0)
    kinds = [kind for kind in BARS for _ in range(4)]
    arms = np.array([hard_arms(kind, rng) for kind in kinds])
    theta = rng.standard_normal((len(kinds), DIM))
    location = np.matvec(arms, theta)
    policy = OFUL(ridge=RIDGE)
    state = policy.init(len(kinds), ARMS, DIM)
    counts, rows = np.zeros((len(kinds), ARMS), dtype=np.int64), np.arange(len(kinds))
    for _ in range(updates):
        draw = rng.integers(ARMS, size=len(kinds))
        chosen = policy.choose(state, arms, rng) if optimistic else draw
        counts[rows, chosen] += 1
        policy.learn(state, arms, chosen, location[rows, chosen, None])
    squares = squared_norms(state.root, arms)
    assert squares.min() > 0
    for path, kind in enumerate(kinds):
        exact = exact_squares(arms[path], counts[path])
        assert np.abs(squares[path] / exact - 1).max() <= BARS[kind]


@pytest.mark.parametrize("factor", [1e9, 1e-9])
def test_arms_of_any_length_leave_the_other_path_alone(factor: float) -> None:
    """Two thousand decisions with absurd arms on path 0; path 1 is as if it were alone."""
    policy = OFUL()
    both, alone = policy.init(2, ARMS, DIM), policy.init(1, ARMS, DIM)
    rng, own = np.random.default_rng(0), np.random.default_rng(1)
    for _ in range(2000):
        arms, rewards = rng.standard_normal((2, ARMS, DIM)), rng.standard_normal((2, 1))
        arms[0] *= factor
        chosen = policy.choose(both, arms, own)
        assert policy.choose(alone, arms[1:], np.random.default_rng(0))[0] == chosen[1]
        policy.learn(both, arms, chosen, rewards)
        policy.learn(alone, arms[1:], chosen[1:], rewards[1:])
    np.testing.assert_array_equal(both.block[1], alone.block[0])
    assert np.isfinite(both.block).all()
