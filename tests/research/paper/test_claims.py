"""What claims compare and how they are judged, on results made by hand."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from tailproof import Curves, Identification, Result, Verdicts
from tailproof.noise import Cauchy, StudentT
from tailproof.research.paper import (
    figure_1,
    figure_2_3,
    figure_4_5,
    figure_6,
    published,
    statements,
)
from tailproof.research.paper.claims import Claim, Measured, Ratio, Share, judge_claims, ratio
from tailproof.research.paper.experiments import choices, decision_set, pulls
from tailproof.research.paper.references import compare
from tailproof.research.paper.reproduction import Reproduction, reproduce
from tailproof.research.report import _rows
from tailproof.results.identification import binomial_interval
from tailproof.results.provenance import provenance
from tailproof.wrappers.base import innermost


def handmade(**regrets: list[float]) -> Result:
    curves = {
        name: Curves(regret=np.array(regret)[:, None], decisions=np.array([3]))
        for name, regret in regrets.items()
    }
    paths = len(next(iter(regrets.values())))
    return Result(pulls=np.array([9]), curves=curves, settings={"paths": paths})


def test_a_share_is_a_whole_number_of_paths() -> None:
    assert Share("", 0.29, 0, 1, 100).interval(0.95) == binomial_interval(29, 100, 0.95)


def test_the_interval_of_a_ratio_is_a_factor_around_it() -> None:
    low, high = Ratio("", 4.0, 0, 9, error=0.1, paths=10).interval(0.95)
    assert low < 4 < high
    assert low * high == pytest.approx(16)


def test_a_ratio_is_of_paired_paths() -> None:
    x = np.array([1.0, 5.0, 2.0])
    assert ratio("", 2 * x, x).interval(0.95) == pytest.approx((2, 2))


def test_the_deciding_part_is_the_nearest_in_widths_of_its_interval() -> None:
    """Their distances are 0.5 and 0.1, and the second interval is a tenth of the first."""
    parts = [Measured("wide", 0.5, 0, 1, 0.02, 1000), Measured("narrow", 0.1, 0, 1, 0.002, 1000)]
    (judged,) = judge_claims([Claim("", "", parts)])
    assert judged.verdict == "holds"
    assert judged.deciding.startswith("wide")


def test_a_verdict_on_few_paths_says_so() -> None:
    few, many = Measured("", 0.5, 0, 1, 0.01, 9), Measured("", 0.5, 0, 1, 0.01, 10)
    told = [judge_claims([Claim("", "", parts)])[0].caveat for parts in ([few, many], [many])]
    assert told == ["on 9 paths", ""]
    refuted = Measured("", 5, 0, 1, 0.01, 100)  # which decides, so that the nine do not matter
    assert judge_claims([Claim("", "", [few, refuted])])[0].caveat == ""


def test_runs_that_were_cut_short_decide_nothing() -> None:
    """The regret is a tenth of the rival's, but at 3 of 10 000 pulls; at full length it counts."""
    regrets = {choices.SINGLE: [1.0, 1.1], choices.CHANCE: [10.0, 11.0]}
    short = handmade(**regrets)
    for problem, length in (("fresh-t1", 3), ("fixed-d1", 2000)):
        result = replace(short, pulls=np.array([length]))
        results = {f"gauntlet: {problem}": result, "df = 1": result}
        _, judged = judge_claims(choices.check_claims(results))
        assert judged.verdict == ("open" if length == 3 else "holds")
        assert judged.caveat == ("runs cut short" if length == 3 else "on 2 paths")


def test_a_reference_has_ten_paths_of_its_own() -> None:
    """Ours are 1 and 3: a variance of 2 over two paths; the reference has 100 over ten."""
    (row,) = compare(handmade(a=[1, 3]), {"a": (0.0, 10.0)})
    assert row.errors == pytest.approx(2 / math.sqrt(2 / 2 + 100 / 10))


def test_the_computed_claims() -> None:
    """The tails have the paper's slopes, and heavier ones a smaller ε."""
    assert [found.verdict for found in judge_claims(figure_1.check_claims({}))] == ["holds"]
    assert judge_claims(figure_6.check_claims({}))[1].verdict == "holds"


def test_the_filtered_algorithms_are_compared_with_the_others() -> None:
    """The regret of SupBTC_mom is the smallest, then that of SupBMM_mom."""
    names = [*published.BASELINES, "uniform"]
    regrets = {name: [50.0, 60.0] for name in names}
    result = handmade(**regrets, SupBMM_mom=[20.0, 30.0], SupBTC_mom=[1.0, 11.0])
    results = {f"{more}df = {df}": result for df in figure_2_3.DFS for more in ("", "more paths, ")}
    found = judge_claims(figure_2_3.check_claims(results))
    assert [each.verdict for each in found] == ["holds", "open", *["holds"] * 5]  # on two paths
    assert {each.kind for each in found} == {"by few decisions", "open"}  # of three


def test_perfectly_well_is_at_most_half_of_chance() -> None:
    """With 100 paths: a baseline at chance agrees, one far below it does not, nor does 0.7."""
    base = np.linspace(95, 105, 100)
    regrets = dict.fromkeys(published.BASELINES, base * 1.3) | {"uniform": base}
    cases = (((0.3, 0.4), "holds"), ((0.7, 0.4), "mixed"))
    for (bmm, btc), wanted in cases:
        ours = {"SupBMM_mom": base * bmm, "SupBTC_mom": base * btc}
        result = handmade(**{name: list(own) for name, own in (regrets | ours).items()})
        keys = [f"{more}df = {df}" for df in figure_2_3.DFS for more in ("", "more paths, ")]
        judged = judge_claims(figure_2_3.check_claims(dict.fromkeys(keys, result)))[1]
        assert judged.verdict == wanted


def test_comparably_good_is_at_most_half_as_much_again_as_with_df_3() -> None:
    """At df = 0.5 one of our algorithms has twice its regret at df = 3: one part of four."""
    base = np.linspace(95, 105, 100)
    names = [*published.BASELINES, "uniform", "SupBMM_mom", "SupBTC_mom"]
    for worst, wanted in ((1.2, "holds"), (2.0, "mixed")):
        tame = handmade(**{name: list(base) for name in names})
        wild = handmade(**{name: list(base * (worst if "BMM_" in name else 1)) for name in names})
        results = {f"{more}df = {df}": tame for df in (3, 1.02, 1) for more in ("", "more paths, ")}
        results |= {f"{more}df = 0.5": wild for more in ("", "more paths, ")}
        (judged,) = (
            judged
            for judged in judge_claims(figure_2_3.check_claims(results))
            if "comparably good" in judged.claim.text
        )
        assert (len(judged.agreement), judged.verdict) == (4, wanted)


def test_every_rival_of_a_decision_set_is_compared_on_that_set() -> None:
    """Also those that are slow; here our algorithms lose on the fixed set alone."""
    base = np.linspace(95, 105, 100)
    results = {}
    for df in decision_set.DFS:
        for kind, factor in (("drawn each round", 0.5), ("fixed", 2.0)):
            ours = {name: list(base * factor) for name in decision_set.OURS}
            for start, rivals in (("", decision_set.RIVALS), ("slow, ", decision_set.SLOW)):
                played = {name: list(base) for name in rivals}
                results[f"{start}{kind}, df = {df}"] = handmade(**played, **ours)
    fresh, fixed = judge_claims(decision_set.check_claims(results))
    assert (fresh.verdict, fixed.verdict) == ("holds", "does not hold")
    pairs = 2 * 2 * (len(decision_set.RIVALS) + len(decision_set.SLOW))
    assert [len(judged.agreement) for judged in (fresh, fixed)] == [pairs, pairs]
    assert "TOFU" in fresh.claim.text
    few = {name: result for name, result in results.items() if not name.startswith("slow")}
    assert "TOFU" not in decision_set.check_claims(few)[0].text


@pytest.mark.parametrize(("decisions", "kind"), [(1, "by few decisions"), (30, "holds")])
def test_a_verdict_by_few_decisions_is_a_kind_of_its_own(decisions: int, kind: str) -> None:
    """Parts that do not decide do not count."""
    few = Measured("", 0.5, 0, 1, 0.01, 100, decisions=decisions)
    many = Measured("", 0.5, 0, 1, 0.01, 100, decisions=500)
    judged, refuted = judge_claims(
        [Claim("", "", [many, few]), Claim("", "", [few, replace(many, value=5.0)])]
    )
    assert (judged.verdict, judged.kind, judged.decisions) == ("holds", kind, decisions)
    assert judged.caveat == ("by 1 decision" if decisions == 1 else "")
    assert [row[2] for row in judged.rows()] == ["500", str(decisions)]
    # one part of few decisions agrees, and one of many disagrees: refuted, but mixed by few
    wanted = ("by few decisions", 1) if decisions == 1 else ("mixed", 30)
    assert (refuted.kind, refuted.decisions) == wanted
    wrong = [replace(few, value=5.0), replace(many, value=5.0)]
    (refuted,) = judge_claims([Claim("", "", wrong)])
    assert (refuted.kind, refuted.decisions) == ("does not hold", 500)


def test_settings_of_the_published_curves() -> None:
    for df, epsilon in ((3, 1.0), (2, 0.5), (1.02, 0.01), (0.5, 0.01)):
        crt: Any = published.policies(df)["CRT"]
        assert crt.epsilon == pytest.approx(epsilon)
    for name, told in (("TOFU", 100), ("SupBMM", 40_000)):  # TOFU is behind 400 pulls
        assert innermost(figure_4_5.filtered(name, 40_000)).horizon == told


def test_pulls_that_are_needed() -> None:
    """A median of k is beyond ±1 if (k + 1)/2 samples are, on the same side."""
    k = pulls.needed(Cauchy())  # a quarter of which is beyond 1
    beyond = [2 * binom.sf((n - 1) // 2, n, 0.25) for n in (k - 2, k)]
    assert beyond[1] <= pulls.DELTA / pulls.HORIZON < beyond[0]


def test_moments_of_students_t() -> None:
    assert statements._absolute_moment(StudentT(3), 1) == pytest.approx(2 * math.sqrt(3) / math.pi)


def test_a_folder_keeps_its_seed_and_its_first_times(tmp_path: Path) -> None:
    run = Reproduction(out=tmp_path, size="smoke", seed=0, versions=provenance())
    for seconds in (5.0, 9.0):
        run.store("6", {}, seconds)
    assert Reproduction.load(tmp_path).seconds == {"6": 5.0}
    with pytest.raises(ValueError, match="holds results of seed 0, not 1"):
        reproduce(["6"], tmp_path, size="smoke", seed=1, engine="serial")


def test_rows_of_the_report() -> None:
    (row,) = _rows("7", "df = 1", handmade(a=[float(x) for x in range(11)]))
    assert (row["mean"], row["10–90 %"], row["decisions"]) == ("5", "1 – 9", "3")
    right = np.arange(200) >= 5
    verdicts = Verdicts(right * 1, right, right * 9, right * 9)
    (row,) = _rows("best-arm", "", Identification({"a": verdicts}, settings={}))
    assert (row["wrong"], row["95 %"], row["undecided"]) == ("2.5%", "0.8% – 5.7%", "0")
