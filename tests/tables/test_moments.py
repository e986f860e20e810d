"""Times as shops and platforms write them, and two tables whose clocks differ."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tailproof import Judging, records
from tailproof.judging.question import Question
from tailproof.stats.aims import CappedMean

MARCH = pd.Timestamp("2026-03-12T20:05:00").timestamp()
DAY = 86_400


@pytest.mark.parametrize(
    ("text", "later", "shift"),
    [
        ("2026-03-12 20:05:00", "2026-03-25 20:05:00", 0),
        ("2026-03-12 20:05:00 UTC", "2026-03-25 20:05:00 UTC", 0),
        ("2026-03-12 20:05:00.000000 GMT", "2026-03-25 20:05:00.000000 GMT", 0),
        ("2026-03-12T21:05:00+01:00", "2026-03-25T21:05:00+01:00", 0),
        ("03/12/2026 8:05 PM", "03/25/2026 8:05 PM", 0),
        ("3/12/2026, 8:05:00 p.m.", "3/25/2026, 8:05:00 p.m.", 0),
        ("03/12/2026 12:05 AM", "03/25/2026 12:05 AM", -20 * 3600),
        ("12-03-2026 20:05", "25-03-2026 20:05", 0),
        ("12.03.2026, 20:05", "25.03.2026, 20:05", 0),
        ("12 Mar 2026 20:05", "25 Mar 2026 20:05", 0),
        ("Mar 12, 2026, 8:05 PM", "March 25, 2026, 8:05\u202fPM", 0),
        ("Thu, 12 Mar 2026 21:05:00 +0100", "Wed, 25 Mar 2026 21:05:00 +0100", 0),
        ("12-MAR-2026", "25-MAR-2026", -(20 * 3600 + 300)),
        ("20260312200500", "20260325200500", 0),
        ("20260312", "20260325", -(20 * 3600 + 300)),
    ],
)
def test_forms_of_times(text: str, later: str, shift: float) -> None:
    found = records(arm=["a", "b"], reward=[1, 2], time=[text, later])
    assert found.time is not None
    assert found.time.tolist() == [MARCH + shift, MARCH + shift + 13 * DAY]


@pytest.mark.parametrize(
    "text", ["13/25/2026 13:05 PM", "03/25/2026 0:05 AM", "31/31/2026", "12 Mai 2026"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"must have times as in|is ambiguous"):
        records(arm=["a", "b"], reward=[1, 2], time=["03/25/2026 8:00 AM", text])


def test_numbers_that_are_no_dates_stay_numbers() -> None:
    """20261399 has no month 13: these count something else."""
    found = records(arm=["a", "b"], reward=[1, 2], time=[20260312, 20261399])
    assert found.time is not None
    assert found.time.tolist() == [20260312, 20261399]


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three customers of Paris in summer who buy half an hour after their visit, by UTC's clock."""
    visits = pd.DataFrame(
        {"user": list("uvw"), "arm": list("aba"), "at": [f"2026-06-0{d} 12:00" for d in (1, 2, 9)]}
    )
    orders = pd.DataFrame(
        {"user": list("uv"), "spent": [5, 6], "at": [f"2026-06-0{d}T10:30:00Z" for d in (1, 2)]}
    )
    return visits, orders


def joined(visits: Any, orders: Any, **more: Any) -> Any:
    return records(visits, events=orders, reward="spent", unit="user", window="1d", **more)


def test_two_tables_with_other_clocks_are_not_joined_without_a_zone() -> None:
    visits, orders = tables()
    words = r"exposures name no time zone \(2026-06-01 12:00\), but times of the events do"
    with pytest.raises(ValueError, match=words):
        joined(visits, orders)
    found = joined(visits, orders, zone="Europe/Paris")
    assert found.reward.tolist() == [5, 6]
    assert found.notes == ("1 unit is left out, as less than 1 day passed since the exposure.",)
    assert "2 before the first exposure" in joined(visits, orders, zone="UTC").notes[0]
    with pytest.raises(ValueError, match="zone must be a time zone such as Europe/Paris or UTC"):
        joined(visits, orders, zone="Paris")


def test_frames_tell_their_zone() -> None:
    visits, orders = (table.assign(at=pd.to_datetime(table["at"])) for table in tables())
    with pytest.raises(ValueError, match="exposures name no time zone, but times of the events do"):
        joined(visits, orders)
    assert joined(visits, orders, zone="Europe/Paris").reward.tolist() == [5, 6]
    utc = visits.rename(columns={"at": "seen_utc"})
    found = joined(utc, orders, time=("seen_utc", "at"))
    assert "2 before the first exposure" in found.notes[0]


def test_clocks_that_differ_unseen_leave_a_trace() -> None:
    """Neither table names a zone, and all orders come 90 minutes before their visits."""
    user = np.arange(60)
    visits = pd.DataFrame({"user": user, "arm": ["a", "b"] * 30, "at": 3600.0 * user + DAY})
    orders = pd.DataFrame({"user": user, "spent": 5.0, "at": 3600.0 * user + DAY - 5400})
    hint = "Most events before an exposure came less than 14 hours before it"
    assert any(note.startswith(hint) for note in joined(visits, orders).notes)
    earlier = orders.assign(at=orders["at"] - 3600 * np.arange(0, 600, 10))
    assert not any(note.startswith(hint) for note in joined(visits, earlier).notes)


def test_orders_of_which_only_the_day_is_known_follow_the_visit_of_that_day() -> None:
    visits, orders = tables()
    orders["at"] = orders["at"].str[:10]
    found = joined(visits, orders)
    assert found.reward.tolist()[:2] == [5, 6]
    assert found.notes[0] == (
        "Events have no time of day: each is taken to be at the end of its day."
    )


def test_the_clock_is_set_twice_a_year() -> None:
    """An hour that Paris leaves out in spring is the next; one that it has twice is its first."""
    when = ["2026-03-29 02:30", "2026-10-25 02:30", "2026-07-01 00:00"]
    found = records(arm=list("aba"), reward=[1, 2, 3], time=when, zone="Europe/Paris")
    expected = pd.to_datetime(["2026-03-29T01:00Z", "2026-06-30T22:00Z", "2026-10-25T00:30Z"])
    assert found.time is not None
    np.testing.assert_array_equal(found.time, [x.timestamp() for x in expected])


def test_since_is_a_day_of_the_same_zone() -> None:
    for zone, hours in ((None, 0), ("Europe/Paris", -2)):
        options: Judging = {"since": "2026-06-02", "zone": zone}
        question, left = Question.of(CappedMean(), options)
        assert question.since == pd.Timestamp("2026-06-02").timestamp() + hours * 3600
        assert left == {"zone": zone}
