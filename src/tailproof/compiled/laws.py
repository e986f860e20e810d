"""Noise laws, one number at a time.

A law is a row of a table: its kind, its scale, and up to three numbers of its own. A mixture
names the rows of its parts, so that one table holds the noise of a whole bandit.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tailproof.compiled.streams import Words, exponential, normal, student, uniform
from tailproof.compiled.targets import Bound, bind
from tailproof.noise import (
    Cauchy,
    Degenerate,
    Empirical,
    Laplace,
    LogNormal,
    Mixture,
    Noise,
    Normal,
    Pareto,
    Rademacher,
    Rounded,
    Stable,
    StudentT,
    SymmetricPareto,
    TwoPoint,
    Uniform,
    ZeroInflated,
)
from tailproof.noise.stable import _shift
from tailproof.typing import Array

__all__ = ["LawTable"]

_WIDTH = 6
"""Room for the numbers of a row."""
KIND = -1.0
"""A placeholder: the kind that `first` draws from."""


class LawTable:
    """The laws of a bandit as rows of numbers, and the function that draws from a row.

    The function of a `general` table knows every law, so that a policy whose code takes long to
    compile is compiled once for all of them.

    >>> from tailproof.compiled.streams import begin_stream, stream_keys
    >>> from tailproof.compiled.targets import compile_for
    >>> table = LawTable([Cauchy(), Mixture((Normal(), Normal(100)), (0.95, 0.05))])
    >>> draw, g = compile_for("python", table.draw), np.zeros(2, np.uint64)
    >>> with np.errstate(over="ignore"):
    ...     begin_stream(g, stream_keys(0, "noise"), path=0)
    ...     [float(draw(g, table.rows, row, table.values)) != 0 for row in (0, 1)]
    [True, True]
    """

    def __init__(self, laws: Sequence[Noise], *, general: bool = False) -> None:
        self._kinds, self._rows, self._values = list(_FAMILIES), list[list[float]](), [0.0]
        self._known: dict[Noise, int] = {}
        for law in laws:
            refuse_unknown(law)
        self.of = [self._add(law) for law in laws]
        """The row of each law."""
        self.rows: Array = np.array(self._rows)
        self.values: Array = np.array(self._values)
        shallow = all(not _parts(part) for law in laws for part in _parts(law))
        self.draw = bind(any_law) if general and shallow else _drawing(laws)

    def _add(self, law: Noise) -> int:
        if law not in self._known:
            kind = type(law)
            parameters = _FAMILIES[kind][1](law, self)
            row = [float(self._kinds.index(kind)), law.scale, *parameters]
            self._known[law] = len(self._rows)
            self._rows.append(row + [0.0] * (_WIDTH - len(row)))
        return self._known[law]

    def _mixed(self, law: Mixture) -> list[float]:
        """Return where the parts of a mixture are: pairs of cumulated weight and row."""
        pairs = list(zip(np.cumsum(law.weights), map(self._add, law.laws), strict=True))
        return [float(len(pairs)), self._keep([float(x) for pair in pairs for x in pair])]

    def _keep(self, numbers: Sequence[float]) -> float:
        """Store numbers of a law, and return where they begin."""
        place = len(self._values)
        self._values += numbers
        return float(place)


def refuse_unknown(law: Noise) -> None:
    """Raise for a law without a compiled form, at any depth."""
    if type(law) not in _FAMILIES:
        names = ", ".join(kind.__name__ for kind in _FAMILIES)
        raise ValueError(f"noise {law!r} has no compiled form; these have one: {names}")
    for part in _parts(law):
        refuse_unknown(part)


def _parts(law: Noise) -> tuple[Noise, ...]:
    if isinstance(law, Mixture):
        return law.laws
    return (law.law,) if isinstance(law, Rounded | ZeroInflated) else ()


def _drawing(laws: Sequence[Noise]) -> Bound:
    """Return the function that draws from any of these laws."""
    kinds = list(dict.fromkeys(type(law) for law in laws))
    functions: list[Bound] = []
    for kind in kinds:
        inner = [part for law in laws if type(law) is kind for part in _parts(law)]
        function = _FAMILIES[kind][0]
        functions.append(bind(function, component=_drawing(inner)) if inner else bind(function))
    drawing = functions[-1]
    for kind, draw in zip(kinds[-2::-1], functions[-2::-1], strict=True):
        number = float(list(_FAMILIES).index(kind))
        drawing = bind(either, KIND=number, first=draw, rest=drawing)
    return drawing


def first(g: Words, laws: Array, row: int, values: Array) -> float:
    """Draw from a row of kind `KIND`; a placeholder."""
    raise NotImplementedError


def rest(g: Words, laws: Array, row: int, values: Array) -> float:
    """Draw from a row of another kind; a placeholder."""
    raise NotImplementedError


def component(g: Words, laws: Array, row: int, values: Array) -> float:
    """Draw from a part of a law; a placeholder."""
    raise NotImplementedError


def either(g: Words, laws: Array, row: int, values: Array) -> float:
    if laws[row, 0] == KIND:
        return first(g, laws, row, values)
    return rest(g, laws, row, values)


def cauchy(g: Words, laws: Array, row: int, values: Array) -> float:
    return laws[row, 1] * math.tan(math.pi * (uniform(g) - 0.5))


def student_t(g: Words, laws: Array, row: int, values: Array) -> float:
    return laws[row, 1] * student(g, laws[row, 2])


def symmetric_pareto(g: Words, laws: Array, row: int, values: Array) -> float:
    u = 2.0 * uniform(g) - 1.0  # 1 − |u| is uniform, too
    return laws[row, 1] * math.copysign(power(1.0 - abs(u), -1.0 / laws[row, 2]), u)


def gaussian(g: Words, laws: Array, row: int, values: Array) -> float:
    return laws[row, 1] * normal(g)


def laplace(g: Words, laws: Array, row: int, values: Array) -> float:
    u = 2.0 * uniform(g) - 1.0
    return laws[row, 1] * math.copysign(-math.log(1.0 - abs(u)), u)


def even(g: Words, laws: Array, row: int, values: Array) -> float:
    return laws[row, 1] * (2.0 * uniform(g) - 1.0)


def nothing(g: Words, laws: Array, row: int, values: Array) -> float:
    return 0.0


def two_point(g: Words, laws: Array, row: int, values: Array) -> float:
    return laws[row, 1] * (laws[row, 2] if uniform(g) < laws[row, 4] else laws[row, 3])


def log_normal(g: Words, laws: Array, row: int, values: Array) -> float:
    return laws[row, 1] * (math.exp(laws[row, 2] * normal(g)) - laws[row, 3])


def pareto(g: Words, laws: Array, row: int, values: Array) -> float:
    return laws[row, 1] * (power(uniform(g), -1.0 / laws[row, 2]) - laws[row, 3])


def stable(g: Words, laws: Array, row: int, values: Array) -> float:
    """Draw as Chambers, Mallows and Stuck 1976 do, in logarithms."""
    alpha, shift, angle = laws[row, 2], laws[row, 3], math.pi * (uniform(g) - 0.5)
    turned = alpha * (angle + shift)
    size = math.log(max(abs(math.sin(turned)), 1e-300))
    size -= (math.log(math.cos(angle)) + laws[row, 4]) / alpha
    spread = math.log(math.cos(angle - turned)) - math.log(exponential(g))
    return laws[row, 1] * math.copysign(exp(size + (1.0 - alpha) / alpha * spread), turned)


def recorded(g: Words, laws: Array, row: int, values: Array) -> float:
    place = int(uniform(g) * laws[row, 2])
    return laws[row, 1] * values[int(laws[row, 3]) + place]


def mixed(g: Words, laws: Array, row: int, values: Array) -> float:
    at, u, last = int(laws[row, 3]), uniform(g), int(laws[row, 2]) - 1
    part = 0
    while part < last and u >= values[at + 2 * part]:
        part += 1
    return laws[row, 1] * component(g, laws, int(values[at + 2 * part + 1]), values)


def rounded(g: Words, laws: Array, row: int, values: Array) -> float:
    x = component(g, laws, int(laws[row, 3]), values)
    return laws[row, 1] * to_step(x, laws[row, 2])


def inflated(g: Words, laws: Array, row: int, values: Array) -> float:
    if uniform(g) < laws[row, 2]:
        return 0.0
    return laws[row, 1] * component(g, laws, int(laws[row, 3]), values)


def any_law(g: Words, laws: Array, row: int, values: Array) -> float:
    """Draw from a row of any kind."""
    kind = laws[row, 0]
    if kind < _COMPOSITE:
        return any_simple(g, laws, row, values)
    scale = laws[row, 1]
    if kind == _MIXTURE:
        at, u, last = int(laws[row, 3]), uniform(g), int(laws[row, 2]) - 1
        part = 0
        while part < last and u >= values[at + 2 * part]:
            part += 1
        return scale * any_simple(g, laws, int(values[at + 2 * part + 1]), values)
    if kind == _ROUNDED:
        return scale * to_step(any_simple(g, laws, int(laws[row, 3]), values), laws[row, 2])
    if uniform(g) < laws[row, 2]:
        return 0.0
    return scale * any_simple(g, laws, int(laws[row, 3]), values)


def any_simple(g: Words, laws: Array, row: int, values: Array) -> float:
    """Draw from a row of any kind without parts; the names are in the order of `_FAMILIES`."""
    kind = int(laws[row, 0])
    if kind < 4:
        if kind == 0:
            return cauchy(g, laws, row, values)
        if kind == 1:
            return student_t(g, laws, row, values)
        return (
            symmetric_pareto(g, laws, row, values) if kind == 2 else gaussian(g, laws, row, values)
        )
    if kind < 7:
        if kind == 4:
            return laplace(g, laws, row, values)
        return even(g, laws, row, values) if kind == 5 else 0.0
    if kind < 10:
        return log_normal(g, laws, row, values) if kind == 9 else two_point(g, laws, row, values)
    if kind == 10:
        return pareto(g, laws, row, values)
    return stable(g, laws, row, values) if kind == 11 else recorded(g, laws, row, values)


def to_step(x: float, step: float) -> float:
    """Round to a multiple of a step."""
    if abs(x) > step * 4503599627370496.0:  # from 2⁵² on floats are whole numbers
        return x
    return step * math.floor(x / step + 0.5)


def exp(x: float) -> float:
    """Return eˣ, or +inf where it is too large for a float."""
    return math.inf if x > 709.78 else math.exp(x)


def power(x: float, exponent: float) -> float:
    """Return x to a power for x > 0, or +inf where it is too large for a float."""
    return exp(exponent * math.log(x))


def _stable_numbers(law: Stable) -> tuple[float, float, float]:
    shift = _shift(law.index, law.skewness)
    return law.index, shift, math.log(math.cos(law.index * shift))


_Own = Callable[[Any, LawTable], Sequence[float]]
_FAMILIES: dict[type[Noise], tuple[Callable[..., float], _Own]] = {
    Cauchy: (cauchy, lambda law, table: ()),
    StudentT: (student_t, lambda law, table: (law.df,)),
    SymmetricPareto: (symmetric_pareto, lambda law, table: (law.index,)),
    Normal: (gaussian, lambda law, table: ()),
    Laplace: (laplace, lambda law, table: ()),
    Uniform: (even, lambda law, table: ()),
    Degenerate: (nothing, lambda law, table: ()),
    TwoPoint: (two_point, lambda law, table: (law.high, law.low, law.p)),
    Rademacher: (two_point, lambda law, table: (law.high, law.low, law.p)),
    LogNormal: (log_normal, lambda law, table: (law.sigma, law._zero)),
    Pareto: (pareto, lambda law, table: (law.index, law._zero)),
    Stable: (stable, lambda law, table: _stable_numbers(law)),
    Empirical: (recorded, lambda law, table: (len(law.values), table._keep(law.values.tolist()))),
    Mixture: (mixed, lambda law, table: table._mixed(law)),
    Rounded: (rounded, lambda law, table: (law.step, table._add(law.law))),
    ZeroInflated: (inflated, lambda law, table: (law.share, table._add(law.law))),
}
"""The function that draws, and the numbers of a law behind its kind and scale."""
_COMPOSITE, _MIXTURE, _ROUNDED = (
    float(list(_FAMILIES).index(kind)) for kind in (Mixture, Mixture, Rounded)
)
