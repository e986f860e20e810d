"""RevenueUCB on one path.

It follows `tailproof.policies.revenue_ucb` and its state, which explain each step. The
histogram has BINS bins of each sign for every arm: refunds first, then gains.
"""

import math

from tailproof.compiled.forms import Form, Sizes
from tailproof.compiled.streams import Words, normal, uniform
from tailproof.compiled.student_parts import layout
from tailproof.compiled.targets import bind
from tailproof.policies import RevenueUCB
from tailproof.policies.randomised import EXCLUDED
from tailproof.policies.revenue_ucb import BONUS
from tailproof.policies.state import sales, silence
from tailproof.typing import Array

__all__ = ["revenue_ucb"]

ARMS = 1
"""A placeholder: K."""
VISITORS = BOUGHT = SUMS = SQUARES = UNIT = LOW = HIGH = MOST = DUE = USED = 0
COUNTS = MEANS = STATE = 0
"""Placeholders: where the parts of the state begin, and its length."""
BINS, OCTAVE, AGAIN, DOUBT, FIRST, PACE = (
    sales.BINS,
    sales.OCTAVE,
    sales.AGAIN,
    sales.DOUBT,
    silence.FIRST,
    silence.PACE,
)
_MIDDLE, _LARGEST = sales._MIDDLE, sales._MOST
_RATES = tuple(float(x) for x in silence._RATES)
_SURE = silence._SURE


def revenue_ucb(policy: RevenueUCB, sizes: Sizes) -> Form:
    """Return the form of RevenueUCB."""
    k = sizes.arms
    state = layout(
        VISITORS=k, BOUGHT=k, SUMS=k, SQUARES=k, UNIT=1, LOW=1, HIGH=1, MOST=1, DUE=1, USED=2,
        COUNTS=2 * BINS * k, MEANS=2 * BINS * k, STATE=0,
    )  # fmt: skip
    return Form(
        bind(start, **state),
        bind(index, **state),
        bind(learn, **state),
        (policy.share, policy.largest or math.inf),
        state=state["STATE"],
        work=2 * k,
    )


def start(s: Array, p: Array) -> None:
    for i in range(STATE):
        s[i] = 0.0
    s[DUE], s[USED], s[USED + 1] = 1.0, 2.0 * BINS, -1.0


def seen(s: Array, k: int) -> float:
    return max(s[VISITORS + k], 1.0)


def doubt(s: Array, k: int) -> float:
    """Return the factor by which an arm's b purchases count: (b + 16)/b."""
    return 1.0 + DOUBT / max(s[BOUGHT + k], 1.0)


def silent_looks(s: Array, p: Array, looks: Array) -> bool:
    """Write the probability of a look at each arm, −1 for arms that need none.

    Arms that only a look may choose have the probability plus 2. Return whether some arm is silent.
    """
    some, surely, visitors = False, -math.inf, 0.0
    for k in range(ARMS):
        n = seen(s, k)
        mean = s[SUMS + k] / n
        spread = max(s[SQUARES + k] / n - mean * mean, 0.0)
        surely = max(surely, mean - _SURE * math.sqrt(spread / n))
        visitors += n
        some = some or s[BOUGHT + k] < FIRST
    bounded = p[1] < math.inf
    most = s[MOST]
    if bounded:
        most = p[1] / s[UNIT] if s[UNIT] > 0.0 else math.inf
    later = 0.0 if bounded else min(PACE / math.sqrt(ARMS * visitors), 1.0 / ARMS)
    for k in range(ARMS):
        looks[k] = -1.0
        if s[BOUGHT + k] < FIRST:
            bound = _RATES[int(s[BOUGHT + k])] / seen(s, k) * most
            looks[k] = later if bound < surely else 2.0 + 1.0 / ARMS
    return some


def index(s: Array, p: Array, offers: Array, t: int, g: Words, values: Array, work: Array) -> None:
    """Write the indices; a look at an arm is an infinite index."""
    luck, place = abs(normal(g)), uniform(g)
    some = silent_looks(s, p, work)
    bought, squares, total, judged, even, middle = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(ARMS):
        bought += s[BOUGHT + k]
        squares += s[SQUARES + k]
        total += seen(s, k)
    lent = squares / max(bought, 1.0)
    for k in range(ARMS):
        n = seen(s, k)
        work[ARMS + k] = (s[SQUARES + k] + lent) / n
        if work[k] < 2.0:
            judged += 1.0
            even += work[ARMS + k]
            middle += s[SUMS + k] / n
    judged = max(judged, 1.0)
    even = even / judged - (middle / judged) * (middle / judged)
    for k in range(ARMS):
        n = seen(s, k)
        mean = s[SUMS + k] / n
        doubted = (s[SQUARES + k] * doubt(s, k) + lent) / n
        spread = max(doubted - mean * mean, even)
        log = math.log1p(total / (ARMS * n))
        width = math.sqrt(2.0 * BONUS * BONUS * spread * log / n)
        values[k] = EXCLUDED if work[k] >= 2.0 else mean + luck * width
    if some:
        look(values, work, place)


def look(values: Array, looks: Array, place: float) -> None:
    """Raise the index of the arm to look at, if `place` is within the probabilities of looks."""
    upto, last = 0.0, 0
    for k in range(ARMS):
        share = looks[k] - 2.0 if looks[k] >= 2.0 else max(looks[k], 0.0)
        before, upto = upto, upto + share
        if before <= place < upto:
            values[k] = math.inf
            return
        last = k if share > 0.0 else last
    if upto >= 1.0 - 1e-12:  # every visitor is a look; a rounding error left the sum below 1
        values[last] = math.inf


def learn(s: Array, p: Array, offers: Array, k: int, y: Array, t: int, work: Array) -> None:
    s[VISITORS + k] += 1.0
    reward = y[0]
    if reward == 0.0:
        return
    if s[UNIT] == 0.0 and abs(reward) < math.inf:
        s[UNIT] = abs(reward)
    x = single(min(max(reward / (s[UNIT] if s[UNIT] > 0.0 else 1.0), -_LARGEST), _LARGEST))
    s[MOST] = max(s[MOST], x)
    cut = min(max(x, s[LOW]), s[HIGH])
    s[SUMS + k] += cut
    s[SQUARES + k] += cut * cut
    s[BOUGHT + k] += 1.0
    place = OCTAVE * math.log2(abs(x)) + _MIDDLE if x != 0.0 else 0.0
    here = int(min(max(place, 0.0), BINS - 1.0))
    here = BINS + here if reward > 0.0 else BINS - 1 - here
    s[USED], s[USED + 1] = min(s[USED], float(here)), max(s[USED + 1], float(here))
    at = k * 2 * BINS + here
    s[COUNTS + at] += 1.0
    s[MEANS + at] = single(s[MEANS + at] + (x - s[MEANS + at]) / s[COUNTS + at])
    bought = 0.0
    for arm in range(ARMS):
        bought += s[BOUGHT + arm]
    if bought >= s[DUE]:
        learn_range(s, p[0], bought)


def single(x: float) -> float:
    """Round to single precision, by Dekker's splitting: 29 of 53 digits are left out."""
    high = x * 536870913.0  # 2²⁹ + 1
    return high - (high - x)


def even_count(s: Array, place: int) -> float:
    """Return the purchases in a bin, each arm weighing the same."""
    total = 0.0
    for k in range(ARMS):
        total += s[COUNTS + k * 2 * BINS + place] * (doubt(s, k) / seen(s, k))
    return total


def end_of(place: int) -> float:
    """Return the upper end of a bin, in units of the first purchase."""
    return 2.0 ** ((place + 1 - _MIDDLE) / OCTAVE)


def learn_range(s: Array, share: float, bought: float) -> None:
    first, last = int(s[USED]), int(s[USED + 1])
    total = 0.0
    for place in range(first, last + 1):
        total += even_count(s, place)
    total *= 1.0 - 1e-12
    reached, low, high = 0.0, first, first
    for place in range(first, last + 1):
        reached += even_count(s, place)
        low += 1 if reached < (1.0 - share) * total else 0
        high += 1 if reached < share * total else 0
    s[LOW] = -end_of(BINS - 1 - low) if low < BINS else 0.0
    s[HIGH] = end_of(high - BINS) if high >= BINS else 0.0
    for k in range(ARMS):
        s[SUMS + k], s[SQUARES + k] = 0.0, 0.0
        for place in range(first, last + 1):
            at = k * 2 * BINS + place
            if s[COUNTS + at] > 0.0:
                value = min(max(s[MEANS + at], s[LOW]), s[HIGH])
                s[SUMS + k] += s[COUNTS + at] * value
                s[SQUARES + k] += s[COUNTS + at] * value * value
    s[DUE] = float(max(int(AGAIN * bought), int(bought) + 1))
