"""Judgements as tables, text, JSON and pictures."""

import json

import numpy as np
import pytest

import tailproof as tp
from tailproof.judging import Judgement
from tailproof.tables import records


@pytest.fixture(scope="module")
def found() -> Judgement:
    rng = np.random.default_rng(0)
    arm = rng.choice(["A", "B", "$C_1$"], 900, p=[0.6, 0.39, 0.01])
    share = {"A": 0.6, "B": 0.39, "$C_1$": 0.01}
    log = records(
        arm=arm,
        reward=rng.standard_cauchy(900) + (arm == "B"),
        propensity=[share[own] for own in arm],
    )
    return tp.judge(log, ["B", "$C_1$"], tp.CappedMean(0.9), control="A")


def test_the_table_has_a_row_for_each_rule(found: Judgement) -> None:
    frame = found.to_frame().set_index("rule")
    assert list(frame.index) == ["as logged", "always A", "always B", "always $C_1$"]
    assert frame.loc["always $C_1$", "verdict"] == "refused"
    assert frame["estimate"].isna().tolist() == [False, False, False, True]
    to = found["always B"].to_control
    assert to is not None
    assert frame.loc["always B", "to_control_p"] == to.p
    assert frame.loc["always B", "to_control_low"] == to.low


def test_it_is_valid_json(found: Judgement) -> None:
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["rules"]["always $C_1$"]["estimate"] is None
    assert told["rules"]["always B"]["to_control"]["value"] == found["always B"].to_control[0]  # type: ignore[index]
    assert told["cap"] == list(found.cap or ())


def test_the_text_says_why_and_who_is_better(found: Judgement) -> None:
    text = found.text()
    assert "always $C_1$: refused, the log is worth only" in text
    assert "always B earns" in text
    assert "nan" not in text
    assert len(found.cells()) == 5


def test_the_picture_has_all_rules(found: Judgement) -> None:
    figure = found.plot()
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()][::-1] == list(found.values)
    assert right.get_xlabel() == "more than always A"
    figure.canvas.draw()


@pytest.mark.parametrize("by_unit", [False, True])
def test_refunds_that_the_cap_leaves_out_may_outweigh_a_difference(by_unit: bool) -> None:
    """B sells a fifth more, and two of its customers give back all of that."""
    sold = np.repeat([0.0, 10.0, 0.0, 10.0], [5000, 500, 4900, 600])
    arm = np.repeat([0, 1], 5500)

    def verdicts(refund: float, *, of: int = 1, costs: bool = False) -> list[str]:
        total = sold.copy()
        total[np.flatnonzero(arm == of)[:2]] = -refund
        log = tp.records(
            arm=np.array(["A", "B"])[arm],
            reward=total,
            propensity=np.full(11_000, 0.5),
            unit=np.arange(11_000) if by_unit else None,
        )
        judged = tp.judge(log, ["A", "B"], tp.CappedMean(0.99), control="A", costs=costs)
        if judged["always B"].verdict == "beware":
            assert judged["always B"].reason == (
                "refunds that count as 0 may outweigh its difference from what was done"
            )
        return [judged[rule].verdict for rule in ("as logged", "always A", "always B")]

    assert verdicts(10.0) == ["trust"] * 3
    assert verdicts(900.0, of=0) == ["trust"] * 3
    assert verdicts(600.0) == ["beware"] * 3
    assert verdicts(600.0, costs=True) == ["trust"] * 3


def test_the_cap_is_of_totals_only_where_units_have_several_rows() -> None:
    rng = np.random.default_rng(1)
    arm, reward = rng.choice(["A", "B"], 400), rng.lognormal(size=400)
    logs = [records(arm=arm, reward=reward, unit=np.arange(400) // rows) for rows in (1, 2)]
    alone, several = (tp.judge(log, "A", tp.CappedMean(0.99)).title for log in logs)
    assert "capped_mean(0.99) of rewards capped at" in alone
    assert "capped_mean(0.99) per row, totals of units capped at" in several


def test_the_bound_that_nobody_named_is_that_of_the_log() -> None:
    spent = np.repeat([0.0, 10.0, -5.0], [200, 100, 100])
    log = records(arm=["A", "B"] * 200, reward=spent, propensity=[0.5] * 400)
    named = tp.judge(log, "A", tp.Mean(), largest=50_000.0).title
    assert "rewards of at most 50,000, as you said, and at least -5, as here" in named
    both = tp.judge(log, "A", tp.Mean(), largest=500.0, smallest=-9.0).title
    assert "rewards between -9 and 500, as you said" in both
