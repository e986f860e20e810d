"""What `judge` answers: against plain references, in any unit, and never without a reason."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import stdtrit

import tailproof as tp
from tailproof import Location
from tailproof.environments.traffic import FewPrices, Returning, Stretched
from tailproof.stats.customers import Customers, cap_of_totals
from tailproof.tables import Records, records
from tailproof.typing import Array

ARMS = np.array(["A", "B", "C"])
SHARES = np.array([0.5, 0.3, 0.2])


def some_log(seed: int = 0, n: int = 400, **more: Any) -> Records:
    """Return a log of three arms, whose rewards are Cauchy around 0, 1 and 2."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(3, n, p=SHARES)
    columns: dict[str, Any] = {
        "arm": ARMS[arm],
        "reward": arm + rng.standard_cauchy(n),
        "propensities": np.tile(SHARES, (n, 1)),
        "propensity": None,
    }
    return records(**(columns | more))


MIX = {"A": 0.2, "B": 0.3, "C": 0.5}


def weights(log: Records) -> Array:
    share = np.array([MIX[name] for name in log.arms])
    return np.asarray(share[log.arm] / log.known_propensity)


def test_the_estimates_are_weighted_ones() -> None:
    log = some_log()
    w, y = weights(log), log.reward
    order = np.argsort(y)
    below = np.cumsum(w[order])
    for tau in (0.25, 0.5, 0.9):
        found = tp.judge(log, {"mix": MIX}, tp.Quantile(tau), model=False)["mix"]
        assert found.estimate == y[order][np.searchsorted(below, tau * below[-1])]
    capped = tp.judge(log, {"mix": MIX}, tp.CappedMean(0.9), model=False)
    assert capped.cap is not None
    cut = np.clip(y, *capped.cap)
    assert capped["mix"].estimate == pytest.approx(w @ cut / w.sum())
    share = np.array([MIX[name] for name in log.arms])
    sizes = w.sum() ** 2 / (w @ w), log.n / (share**2 / SHARES).sum()
    assert capped["mix"].effective_size == pytest.approx(min(sizes))
    assert capped.values["as logged"].estimate == pytest.approx(cut.mean())


def test_the_interval_of_a_quantile_has_all_values_that_the_test_accepts() -> None:
    """The definition, with every value tried: each end with one made-up reward beyond it."""
    log = some_log(1)
    w, y, tau = weights(log), log.reward, 0.5
    found = tp.judge(log, {"mix": MIX}, tp.Median(), model=False)["mix"]
    z = w * ((y <= found.estimate) - tau)
    bar, typical = student(z, 0.96), float(w @ w / w.sum())  # with a margin of a fifth

    def t(q: float, extra: float) -> float:
        own = w * np.where(y <= q, 1 - tau, -tau)
        return float((own.sum() + extra) / math.sqrt(own @ own + extra**2))

    values: list[float] = np.sort(y).tolist()
    assert found.low == min(q for q in values if t(q, typical * (1 - tau)) > -bar)
    assert found.high == min(q for q in values if t(q, -typical * tau) > bar)


def student(z: Array, level: float = 0.95) -> float:
    """Return the critical value with Satterthwaite's degrees of freedom."""
    s2, s4 = float((z**2).sum()), float((z**4).sum())
    return float(stdtrit(2 * s2**2 / (s4 - s2**2 / len(z)), (1 + level) / 2))


def test_the_interval_of_a_capped_mean_ends_where_the_test_is_undecided() -> None:
    log = some_log(2)
    w, cap = weights(log), (-3.0, 5.0)
    v = np.clip(log.reward, *cap)
    found = tp.judge(log, {"mix": MIX}, tp.CappedMean(), cap=cap, model=False)["mix"]
    bar, typical = student(w * (v - found.estimate)), w @ w / w.sum()
    for theta, end in ((found.low, cap[0]), (found.high, cap[1])):
        z = np.append(w * (v - theta), typical * (end - theta))
        assert abs(z.sum()) / math.sqrt(z @ z) == pytest.approx(bar, rel=1e-6)


def test_a_model_of_what_arms_earn_makes_intervals_narrower() -> None:
    rng = np.random.default_rng(3)
    n = 4000
    x, arm = rng.standard_normal((n, 2)), rng.integers(0, 2, n)
    reward = 3 * x[:, 0] * (2 * arm - 1) + rng.standard_normal(n)
    log = records(arm=arm, reward=reward, propensity=np.full(n, 0.5), features=x)
    width = {}
    for model in (False, True):
        found = tp.judge(log, {"b": "1"}, tp.Median(), model=model)["b"]
        assert found.low < 0 < found.high
        width[model] = found.high - found.low
    assert width[True] < 0.95 * width[False]


@pytest.mark.parametrize("aim", [tp.Median(), tp.Quantile(0.8), tp.CappedMean(0.9), Location()])
def test_the_same_rule_twice_differs_by_exactly_nothing(aim: Any) -> None:
    rules = {"one": MIX, "two": dict(reversed(MIX.items()))}
    found = tp.judge(some_log(), rules, aim, control="one")
    assert found["two"].to_control == (0.0, 0.0, 0.0, 0.5)


@given(st.floats(1e-6, 1e6), st.floats(-1e3, 1e3), st.integers(0, 5))
@settings(deadline=None, max_examples=20)
def test_units_of_rewards_do_not_matter(factor: float, shift: float, seed: int) -> None:
    log = some_log(seed)
    aims: list[tuple[Any, float]] = [
        (tp.Median(), shift),
        (tp.Quantile(0.8), shift),
        (Location(), shift),
        (tp.CappedMean(0.9), 0.0),
    ]  # zero has a meaning for a capped mean
    for aim, by in aims:
        other = log.filled(factor * (log.reward + by))
        plain, moved = (tp.judge(own, {"mix": MIX}, aim)["mix"] for own in (log, other))
        ends = np.array([plain.estimate, plain.low, plain.high])
        got = np.array([moved.estimate, moved.low, moved.high])
        np.testing.assert_allclose(got, factor * (ends + by), rtol=1e-5, atol=1e-5 * factor)
        assert moved.verdict == plain.verdict


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_neither_the_order_of_rows_nor_names_matter(seed: int) -> None:
    log = some_log()
    rows = np.random.default_rng(seed).permutation(log.n)
    names = {"A": "z", "B": "y", "C": "x"}
    renamed = records(
        arm=[names[log.arms[a]] for a in log.arm[rows]],
        reward=log.reward[rows],
        propensity=log.known_propensity[rows],
    )
    rule = {names[arm]: share for arm, share in MIX.items()}
    for aim in (tp.Median(), tp.CappedMean(0.9)):
        a = tp.judge(log, {"mix": MIX}, aim, model=False)["mix"]
        b = tp.judge(renamed, {"mix": rule}, aim, model=False)["mix"]
        assert [b.estimate, b.low, b.high] == pytest.approx([a.estimate, a.low, a.high])


def test_rows_decided_together_are_one() -> None:
    """Each reward five times, as units of five, says as much as once."""
    log = some_log(n=300)
    again = log.take(np.repeat(np.arange(300), 5))
    alone = tp.judge(log, {"mix": MIX}, tp.CappedMean(0.9), model=False)["mix"]
    units = records(
        arm=ARMS[again.arm],
        reward=again.reward,
        propensity=again.propensity,
        unit=np.repeat(np.arange(300), 5),
    )
    held = tp.judge(units, {"mix": MIX}, tp.CappedMean(0.9), model=False)["mix"]
    naive = tp.judge(again, {"mix": MIX}, tp.CappedMean(0.9), model=False)["mix"]
    assert held.high - held.low == pytest.approx(alone.high - alone.low, rel=0.05)
    assert naive.high - naive.low < 0.5 * (held.high - held.low)


def test_propensities_are_estimated_within_groups() -> None:
    """Visitors of one group get B mostly, and spend more: counts within groups undo that."""
    rng = np.random.default_rng(4)
    rich = rng.random(6000) < 0.5
    arm = np.where(rng.random(6000) < np.where(rich, 0.8, 0.2), "B", "A")
    reward = 10.0 * rich + rng.standard_normal(6000)
    group = np.where(rich, "rich", "poor")
    fair = tp.judge(records(arm=arm, reward=reward, group=group), "B", tp.CappedMean(0.99))
    naive = tp.judge(records(arm=arm, reward=reward), "B", tp.CappedMean(0.99))
    assert fair["always B"].low < 5 < fair["always B"].high
    assert naive["always B"].low > 6
    wrong = records(arm=arm, reward=reward, propensity=np.full(6000, 0.5), group=group)
    verdict = tp.judge(wrong, "B", tp.CappedMean(0.99))["always B"]
    assert verdict.verdict == "beware"
    assert "propensities are wrong" in verdict.reason


def test_wrong_propensities_are_noticed() -> None:
    log = some_log(n=2000)
    off = records(arm=ARMS[log.arm], reward=log.reward, propensity=np.full(2000, 0.3))
    found = tp.judge(off, "C", tp.Median())["always C"]
    assert found.verdict == "beware"
    assert "one on average" in found.reason


def test_unknown_rewards_are_alike_or_the_worst() -> None:
    log = some_log(n=1000)
    reward = np.where(np.arange(1000) % 10 == 0, np.nan, log.reward)
    some = log.filled(reward)
    alike = tp.judge(some, "B", tp.Median())["always B"]
    worst = tp.judge(some, "B", tp.Median(), unknown="worst")["always B"]
    assert alike.verdict == "beware"
    assert "10.0% of the rewards are not known" in alike.reason
    assert worst.verdict == "trust"
    assert worst.low < alike.low
    assert worst.high > alike.high
    quiet = records(arm=ARMS[log.arm], reward=reward, propensity=log.known_propensity, silence=0.0)
    assert quiet.unknown == 0


def test_infinite_rewards_have_quantiles_and_no_mean() -> None:
    log = some_log()
    infinite = log.filled(np.where(log.reward > 8, math.inf, log.reward))
    plain = tp.judge(log, "B", tp.Median())["always B"]
    assert tp.judge(infinite, "B", tp.Median())["always B"].estimate == plain.estimate
    for aim, word in ((tp.Mean(), "no mean"), (tp.CappedMean(0.999), "no cap")):
        found = tp.judge(infinite, "B", aim)["always B"]
        assert found.verdict == "refused"
        assert word in found.reason
        assert math.isnan(found.estimate)


def test_a_mean_without_one_is_not_trusted() -> None:
    for seed in range(5):
        found = tp.judge(some_log(seed, n=2000), "B", tp.Mean())["always B"]
        assert found.verdict == "beware"
        assert "tail index" in found.reason
    rng = np.random.default_rng(0)
    tame = some_log(n=2000).filled(rng.standard_normal(2000))
    assert tp.judge(tame, "B", tp.Mean())["always B"].verdict == "trust"


def test_equal_rewards_and_no_overlap_get_an_answer() -> None:
    log = some_log()
    equal = log.filled(np.full(log.n, 3.0))
    median = tp.judge(equal, "B", tp.Median())["always B"]
    assert (median.estimate, median.low, median.high) == (3, 3, 3)
    assert tp.judge(equal, "B", Location())["always B"].verdict == "refused"
    assert tp.judge(equal, "B", tp.CappedMean())["always B"].estimate == pytest.approx(3)
    nothing = tp.judge(log.filled(np.zeros(log.n)), "B", tp.CappedMean())["always B"]
    assert "all rewards are zero" in nothing.reason
    only = records(arm=["A"] * 50, arms=["A", "B"], reward=np.arange(50.0), propensity=[1.0] * 50)
    found = tp.judge(only, "B", tp.Median())["always B"]
    assert (found.verdict, "no overlap" in found.reason) == ("refused", True)


def test_few_rewards_of_a_rule_are_refused() -> None:
    found = tp.judge(some_log(n=60), "C", tp.Median())["always C"]
    assert found.verdict == "refused"
    assert "30 are needed" in found.reason
    high = tp.judge(some_log(n=300), "C", tp.Quantile(0.95))["always C"]
    assert "beyond this quantile" in high.reason
    held = some_log(n=400, unit=np.arange(400) // 80)
    assert "decisions of this rule" in tp.judge(held, "A", tp.Median())["always A"].reason


def test_an_interval_without_an_end_is_an_answer_too() -> None:
    """Worst cases of many unknown rewards: an end is infinite, and differences have no interval."""
    log = some_log(n=600)
    some = log.filled(np.where(np.arange(600) % 2 == 0, np.nan, log.reward))
    found = tp.judge(some, ["B", "C"], tp.Quantile(0.7), unknown="worst", control="B")
    assert found["always C"].high == math.inf
    assert found["always C"].to_control is not None
    assert found["always C"].to_control.high == math.inf
    assert "inf" in found.text()
    found.plot().canvas.draw()


def test_an_arm_too_rare_to_have_been_seen_is_not_forgotten() -> None:
    """Half of the rule's choices had one chance in 10 000: weights seen say nothing about them."""
    rng = np.random.default_rng(0)
    arm = np.where(rng.random(2000) < 0.5, "A", "B")
    arm[0] = "C"
    share = {"A": 0.49995, "B": 0.49995, "C": 0.0001}
    log = records(arm=arm, reward=rng.normal(size=2000), propensity=[share[own] for own in arm])
    found = tp.judge(log, {"rare": {"A": 0.5, "C": 0.5}}, tp.Median())["rare"]
    assert found.verdict == "refused"
    assert found.effective_size < 1


def test_skewed_errors_have_no_location() -> None:
    rng = np.random.default_rng(0)
    log = some_log(n=3000).filled(rng.lognormal(0, 1, 3000))
    assert "not symmetric" in tp.judge(log, "B", Location())["always B"].reason


def test_control_is_added_and_compared_with() -> None:
    found = tp.judge(some_log(n=3000), ["C"], tp.Median(), control="A")
    to = found["always C"].to_control
    assert found.control == "always A"
    assert found["always A"].to_control is None
    assert to is not None
    assert to.low < 2 < to.high
    assert to.p < 0.001
    costs = tp.judge(some_log(n=3000), ["C"], tp.Median(), control="A", costs=True)
    assert costs["always C"].to_control == pytest.approx((*to[:3], 1 - to.p))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"propensity": [0.5, 0.0, 0.5]}, r"cannot have been chosen\), got 0 in row 2"),
    ({"propensity": [0.5, np.nan, 0.5]}, "column propensity has no propensity in row 2"),
    ({"propensity": [50.0, 50.0, 50.0]}, "is it in per cent"),
    ({"propensity": [0.5, 0.5]}, "of shape"),
    ({"propensities": [[0.5, 0.6]] * 3}, "add up to 1"),
    ({"arm": [], "reward": [], "propensity": []}, "no rows"),
    ({"arm": ["A", None, "B"]}, "column arm names no arm in row 2"),
    ({"arms": ["A"]}, "arm must be one of A, got 'B' in row 2"),
    ({"offered": [[True, False]] * 3}, "the arm was not offered: B in row 2, B in row 3"),
    ({"features": [[1.0], [np.inf], [0.0]]}, "features must be finite"),
    ({"floor": 0.6}, "floor is 0.6, but a propensity is 0.5"),
    ({"wait": 3.0}, "wait needs the time"),
    ({"reward": ["x", "y", "z"]}, "reward must contain numbers, got 'x' in row 1, 'y' in row 2, "),
    ({"propensity": None, "adaptive": True}, "counts cannot stand for them"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_bad_logs_are_refused_in_one_sentence(change: dict[str, Any], words: str) -> None:
    columns: dict[str, Any] = {"arm": ["A", "B", "B"], "reward": [1, 2, 3], "propensity": [0.5] * 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=words) as error:
            tp.judge(records(**(columns | change)), "A", tp.Median())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("D", "no arm 'D' in the log; it has A, B, C"),
        ({"A": 0.5, "B": 0.6}, "add up to 1"),
        ({"A": 1.5, "B": -0.5}, "at least 0"),
        ({"table": {"mobile": "A"}}, "no column group"),
        (lambda x: np.ones((3, 2)), "probabilities of shape"),
        ({"named": np.full((400, 3), np.nan)}, "add up to 1"),
        ([], "at least one rule"),
        ((tp.UCB1(), None), "the state of one path"),
        ((tp.UCB1(), tp.UCB1().init(1, 2, 2)), "knows 2 arms, the log has 3"),
    ],
)
def test_bad_rules_are_refused_in_one_sentence(rule: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tp.judge(some_log(), rule, tp.Median())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"aim": "median"}, "aim must be an aim such as Median"),
        ({"interval": "wide"}, "interval must be one of"),
        ({"aim": tp.Mean(), "interval": "exact"}, "needs a bounded score"),
        ({"aim": tp.CappedMean(), "interval": "exact"}, "needs cap="),
        ({"aim": tp.Mean(), "unknown": "worst"}, "has no bound"),
        ({"cap": (0, 1)}, "cap must be None unless"),
        ({"level": 1.0}, "level must be"),
    ],
)
def test_bad_questions_are_refused_in_one_sentence(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tp.judge(some_log(), "B", **({"aim": tp.Median()} | more))


def test_intervals_cover() -> None:
    """Of 120 logs each, 95 % intervals cover in 88 % or more: false alarms in 1 of 500 runs."""
    aims: list[Any] = [tp.Median(), Location(), tp.CappedMean()]
    covered = np.zeros((120, 3))
    for i in range(120):
        log = some_log(1000 + i, n=300)
        for place, aim in enumerate(aims):
            more: dict[str, Any] = {"cap": (-5.0, 5.0)} if place == 2 else {}
            found = tp.judge(log, "B", aim, **more)["always B"]
            right = 1.0 if place < 2 else _CAPPED
            covered[i, place] = found.low <= right <= found.high
    assert covered.mean(axis=0).min() >= 0.88


_GRID = np.tan(math.pi * ((np.arange(200_000) + 0.5) / 200_000 - 0.5))
_CAPPED = float(np.clip(1 + _GRID, -5, 5).mean())


def odd_rewards(n: int = 120) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(n)
    return {
        "infinite": np.where(rng.random(n) < 0.1, math.inf, normal),
        "of both signs": np.where(rng.random(n) < 0.2, np.sign(normal) * math.inf, normal),
        "all infinite": np.full(n, math.inf),
        "huge": 1e300 * normal,
        "largest": np.sign(normal) * 1.7e308,
        "tiny": 1e-300 * normal,
        "smallest": np.where(normal > 0, 5e-324, 0.0),
        "equal": np.full(n, 7.0),
        "one buyer": np.append(np.zeros(n - 1), 5.0),
        "half unknown": np.where(rng.random(n) < 0.5, math.nan, normal),
        "unknown": np.full(n, math.nan),
        "clicks": (normal > 1).astype(np.float64),
    }


@pytest.mark.parametrize("name", odd_rewards())
def test_any_rewards_get_an_answer_and_no_warning(name: str) -> None:
    rng = np.random.default_rng(1)
    reward = odd_rewards()[name]
    arm, x = rng.integers(0, 2, len(reward)), rng.standard_normal((len(reward), 1))
    aims = (tp.Median(), tp.Quantile(0.1), tp.CappedMean(0.99), tp.Mean(), Location())
    columns: dict[str, Any] = {"propensity": np.full(len(arm), 0.5), "floor": 0.5}
    for features, aim in ((f, a) for f in (None, x) for a in aims):
        log = records(arm=arm, reward=reward, features=features, **columns)
        bounded = not isinstance(aim, tp.Mean | Location)
        kinds: list[dict[str, Any]] = [{}, {"unknown": "worst"}] if bounded else [{}]
        if isinstance(aim, tp.CappedMean):
            kinds.append({"interval": "anytime", "cap": (-1.0, 1.0)})
        for more in kinds:
            found = tp.judge(log, {"b": "1", "ucb": tp.UCB1()}, aim, control="0", **more)
            assert "nan" not in found.text()
            for value in found.values.values():
                assert (value.verdict == "trust") == (value.reason == "")


def test_a_unit_beyond_the_cap_is_scaled_as_a_whole_and_made_up_once() -> None:
    """Narrow as the delta method by customers, times 1.2 at most; twice that if a made-up customer
    were at the cap in every visit."""
    rows = Returning(heavy=400, their_share=0.3, eager=3).draw(np.random.default_rng(0))
    found = tp.judge(
        tp.records(
            arm=np.array(["A", "B"])[rows.arm],
            reward=rows.reward,
            unit=rows.unit,
            propensity=np.full(len(rows.arm), 0.5),
        ),
        "B",
        tp.CappedMean(0.99),
        model=False,
    )
    own = Customers.of(arm=rows.arm, reward=rows.reward, unit=rows.unit)
    low, high = cap_of_totals(own.total)
    assert found.cap == (low, high)
    assert "totals of units capped at" in found.title
    mine = own.arm == 1
    total, visits = np.clip(own.total, low, high)[mine], own.visits[mine]
    mean = total.sum() / visits.sum()
    error = math.sqrt(np.square(total - mean * visits).sum()) / visits.sum()
    value = found["always B"]
    assert value.estimate == pytest.approx(mean, rel=0.02)
    assert value.high - value.low < 1.2 * 2 * 1.96 * error


def test_a_mean_of_few_prices_is_trusted_only_within_named_bounds() -> None:
    """499 has not been sold yet in about one of eight such logs, and nobody can know it."""
    rng, trusted = np.random.default_rng(0), 0
    for _ in range(20):
        rows = FewPrices().draw(rng)
        log = tp.records(arm=rows.arm.astype(str), reward=rows.reward, propensity=rows.propensity)
        value = tp.judge(log, {"one": "1"}, tp.Mean(), model=False)["one"]
        trusted += value.verdict == "trust"
        assert "name the largest possible one" in value.reason
        known = tp.judge(log, {"one": "1"}, tp.Mean(), model=False, largest=499.0)["one"]
        assert known.verdict == "trust"
        assert known.high > 499 / 500  # one more such sale is possible
    assert trusted == 0
    clicks = tp.records(arm=["A", "B"] * 200, reward=[0, 0, 1, 1] * 100, propensity=[0.5] * 400)
    assert tp.judge(clicks, "A", tp.Mean())["always A"].verdict == "trust"
    with pytest.raises(ValueError, match="largest must be a finite number at least 1"):
        tp.judge(clicks, "A", tp.Mean(), largest=0.5)


def test_estimated_propensities_are_those_of_the_day_where_shares_moved() -> None:
    """Arms are equal at every moment; shares of the whole file would call them different."""
    rng = np.random.default_rng(0)
    world = Stretched(rows=8000, start=0.05, end=0.5, growth=3, buyers=0.1)
    found = 0
    for _ in range(20):
        rows = world.draw(rng)
        about: dict[str, Any] = {"arm": ARMS[rows.arm], "reward": rows.reward}
        said = tp.judge(records(**about, time=rows.time), "B", tp.CappedMean(0.99), control="A")
        to = said["always B"].to_control
        assert to is not None
        found += not to.low <= 0 <= to.high
        assert said["always B"].verdict == "trust"
    assert found <= 4
    blind = tp.judge(records(**about), "B", tp.CappedMean(0.99))["always B"]
    assert blind.verdict == "beware"
    assert "give the times" in blind.reason


def test_a_misspelled_option_is_answered_with_the_one_meant() -> None:
    log = tp.records(arm=["A", "B"] * 30, reward=range(60))
    with pytest.raises(ValueError, match="contrl is no option here: did you mean control"):
        tp.judge(log, "A", tp.Median(), contrl="A")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="contrl is no option here: did you mean control"):
        tp.calibrate(log, contrl="A")  # type: ignore[call-arg]
