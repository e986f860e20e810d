"""Compiled noise has the law that it is named after, and streams are independent."""

import numpy as np
import pytest
from scipy import stats

from tailproof import noise
from tailproof.compiled.laws import LawTable
from tailproof.compiled.streams import begin_stream, normal_pair, stream_keys, uniform
from tailproof.compiled.targets import compile_for
from tailproof.typing import Array

LAWS: list[noise.Noise] = [
    noise.Cauchy(2.0),
    noise.StudentT(0.5),
    noise.StudentT(3.0, 2.0),
    noise.SymmetricPareto(0.7),
    noise.Normal(3.0),
    noise.Laplace(0.5),
    noise.Uniform(2.0),
    noise.Stable(1.2),
    noise.Stable(0.6),
    noise.Stable(1.5, skewness=-0.7),
    noise.Stable(0.7, skewness=1.0),
    noise.LogNormal(1.0, "mean"),
    noise.Pareto(1.5, "none", 3.0),
    noise.Mixture((noise.Normal(), noise.Cauchy(9.0)), (0.7, 0.3), 2.0),
]
ATOMS: list[noise.Noise] = [
    noise.TwoPoint(9.0, -1.0, 0.2),
    noise.Rademacher(2.0),
    noise.Rounded(noise.StudentT(1.0), 0.5),
    noise.ZeroInflated(noise.Rounded(noise.Normal(3.0), 1.0), 0.4),
    noise.Empirical(np.array([1.0, 2.0, 2.0, 7.0])),
    noise.Degenerate(),
]
TABLE = LawTable(LAWS + ATOMS)
SHALLOW = [law for law in LAWS + ATOMS if law is not ATOMS[3]]  # ZeroInflated of Rounded
_DRAWS = 2000
_FALSE_ALARM = 1e-4  # of each test; the seed is fixed


def _sample(law: noise.Noise) -> Array:
    """Draw 50 numbers from each of many paths."""
    draw, row = compile_for("python", TABLE.draw), TABLE.of[(LAWS + ATOMS).index(law)]
    g, keys, drawn = np.empty(2, np.uint64), stream_keys(5, repr(law)), []
    with np.errstate(all="ignore"):
        for path in range(_DRAWS // 50):
            begin_stream(g, keys, path)
            drawn += [float(draw(g, TABLE.rows, row, TABLE.values)) for _ in range(50)]
    return np.array(drawn)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_law_with_a_density_has_its_distribution_function(law: noise.Noise) -> None:
    assert stats.kstest(law.cdf(_sample(law)), "uniform").pvalue > _FALSE_ALARM


@pytest.mark.parametrize("law", ATOMS, ids=repr)
def test_a_law_with_atoms_has_the_probability_of_each(law: noise.Noise) -> None:
    values, counts = np.unique(_sample(law), return_counts=True)
    largest = values[np.argsort(-counts)[:4]]
    for value in largest:
        p = float(law.cdf(value) - law.cdf(value - 1e-6))
        seen = int(counts[values == value][0])
        assert stats.binomtest(seen, _DRAWS, min(p, 1.0)).pvalue > _FALSE_ALARM / 4


def test_code_for_all_laws_draws_what_the_code_for_some_draws() -> None:
    general, few = LawTable(SHALLOW, general=True), LawTable(SHALLOW)
    draws = [compile_for("python", table.draw) for table in (general, few)]
    assert general.draw != few.draw
    with np.errstate(all="ignore"):
        for row in general.of:
            for path in range(20):
                found = []
                for draw in draws:
                    begin_stream(g := np.empty(2, np.uint64), stream_keys(1, "it"), path)
                    found.append(draw(g, general.rows, row, general.values))
                assert found[0] == found[1], SHALLOW[general.of.index(row)]


def test_streams_of_neighbouring_paths_are_uniform_and_uncorrelated() -> None:
    g, keys = np.empty(2, np.uint64), stream_keys(0, "noise")
    x = np.empty((400, 10))
    with np.errstate(over="ignore"):
        for path in range(400):
            begin_stream(g, keys, path)
            x[path] = [uniform(g) for _ in range(10)]
    assert stats.kstest(x.ravel(), "uniform").pvalue > _FALSE_ALARM
    rows, columns = np.corrcoef(x[:-1].ravel(), x[1:].ravel()), np.corrcoef(x.T)
    assert abs(rows[0, 1]) < 4.5 / np.sqrt(x[1:].size)  # a false alarm in 10⁵
    assert np.abs(columns - np.eye(10)).max() < 5.5 / np.sqrt(400)


def test_pairs_of_normal_numbers_are_normal_and_independent() -> None:
    g = np.empty(2, np.uint64)
    with np.errstate(over="ignore"):
        begin_stream(g, stream_keys(0, "pairs"), 0)
        pairs = np.array([normal_pair(g) for _ in range(2000)])
    assert stats.kstest(pairs.ravel(), "norm").pvalue > _FALSE_ALARM
    angles = np.arctan2(pairs[:, 1], pairs[:, 0]) / (2 * np.pi) % 1
    assert stats.kstest(angles, "uniform").pvalue > _FALSE_ALARM


def test_a_law_without_a_compiled_form_is_named() -> None:
    class Own(noise.Normal):
        pass

    with pytest.raises(ValueError, match=r"Own.* has no compiled form; these have one: Cauchy"):
        LawTable([noise.Mixture((Own(), noise.Normal()), (0.5, 0.5))])
