"""Random numbers of one path: a stream is known by its seed, its purpose and its path.

A stream is two words: where it is, and its step. Number n of a stream is a hash of
start + n·step, so that it is the same on one core, on many and on a GPU, in any batch.

Source: SplitMix of Steele, Lea and Flood 2014, with its mixing functions; Stafford's variant 13
of the finaliser of MurmurHash3. Differences: start and step are hashes of the path.
"""

import math
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Words",
    "begin_stream",
    "circle",
    "exponential",
    "normal",
    "normal_pair",
    "point",
    "skip",
    "stream_keys",
    "student",
    "uniform",
    "unit",
    "word",
    "word_at",
]

Words = NDArray[np.uint64]

_PATH = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio: paths are far apart
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11, _1 = (np.uint64(bits) for bits in (30, 27, 31, 11, 1))
"""The factors and shifts of the finaliser, from the source."""
_ALTERNATING = np.uint64(0xAAAAAAAAAAAAAAAA)  # every other bit
_FEWEST_FLIPS = 24  # of the bits of a step, as in the source: regular steps are poor
_GRAIN = 2.0**-53  # the spacing of doubles below 1
_QUARTER = math.pi / 2  # a quarter turn
# Taylor's series of sin x/x and cos x in x², to 10⁻¹⁶ at π/4
_SIN = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(8))
_COS = tuple((-1) ** n / math.factorial(2 * n) for n in range(9))
_S1, _S2, _S3, _S4, _S5, _S6, _S7 = _SIN[1:]
_C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8 = _COS[1:]


def stream_keys(seed: int, purpose: str) -> Words:
    """Return the two words that all streams of a purpose share; the host computes them.

    >>> stream_keys(0, "noise").shape
    (2,)
    """
    words = np.frombuffer(sha256(purpose.encode()).digest(), dtype=">u4")
    sequence = np.random.SeedSequence(seed, spawn_key=tuple(words.tolist()))
    keys: Words = sequence.generate_state(2, np.uint64).astype(np.uint64)
    return keys


def begin_stream(g: Words, keys: Words, path: int) -> None:
    """Set a stream to its start."""
    place = np.uint64(path) * _PATH
    g[0] = _mixed(keys[0] + place)
    step = _mixed(keys[1] ^ _mixed(place + _PATH)) | _1
    flips, rest = 0, step ^ (step >> _1)
    for _ in range(64):
        flips += int(rest & _1)
        rest = rest >> _1
    if flips < _FEWEST_FLIPS:
        step = step ^ _ALTERNATING
    g[1] = step


def _mixed(z: Any) -> Any:
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


def word(g: Words) -> Any:
    """Return 64 random bits."""
    g[0] = g[0] + g[1]
    return _mixed(g[0])


def word_at(g: Words, ahead: int) -> Any:
    """Return the word that comes next but `ahead` − 1, and leave the stream where it is."""
    return _mixed(g[0] + np.uint64(ahead) * g[1])


def skip(g: Words, count: int) -> None:
    """Leave out some words."""
    g[0] = g[0] + np.uint64(count) * g[1]


def unit(bits: Any) -> float:
    """Return a number strictly between 0 and 1 for 64 bits."""
    return (float(bits >> _11) + 0.5) * _GRAIN


def uniform(g: Words) -> float:
    """Return a number strictly between 0 and 1."""
    return unit(word(g))


def exponential(g: Words) -> float:
    """Return a standard exponential number."""
    return -math.log(uniform(g))


def circle(g: Words) -> tuple[float, float]:
    """Return a point of the unit circle, all directions equally likely."""
    return point(uniform(g))


def point(u: float) -> tuple[float, float]:
    """Return the point of the unit circle at an angle of u turns.

    The angle is q + r quarter turns with |r| ≤ ½; without a call of a library, so that loops stay
    in the registers.
    """
    turn = 4.0 * u
    q = int(turn + 0.5)
    x = (turn - q) * _QUARTER
    z = x * x
    sine = x * (
        1.0 + z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * (_S6 + z * _S7))))))
    )
    cosine = 1.0 + z * (
        _C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * (_C6 + z * (_C7 + z * _C8))))))
    )
    a, b = (sine, cosine) if q & 1 else (cosine, sine)
    return (-a if (q + 1) & 2 else a), (-b if q & 2 else b)


def normal(g: Words) -> float:
    """Return a standard normal number.

    Source: Box and Muller 1958. Differences: one number of the pair.
    """
    size = math.sqrt(-2.0 * math.log(uniform(g)))
    return size * circle(g)[0]


def student(g: Words, df: float) -> float:
    """Return a number from Student's t.

    Source: Bailey 1994, who extends Box and Muller: √(df (U^(−2/df) − 1)) cos 2πV. Differences:
    the power is computed as expm1, which keeps the digits of large degrees of freedom.
    """
    log = -2.0 / df * math.log(uniform(g))
    side = circle(g)[0]
    if log > 700.0:  # the root in logarithms, as the power is too large for a float
        half = 0.5 * (log + math.log(df))
        return math.copysign(math.inf, side) if half > 709.0 else math.exp(half) * side
    return math.sqrt(df * math.expm1(log)) * side


def normal_pair(g: Words) -> tuple[float, float]:
    """Return two independent standard normal numbers.

    Source: Box and Muller 1958. Differences: none.
    """
    size = math.sqrt(-2.0 * math.log(uniform(g)))
    x, y = circle(g)
    return size * x, size * y
