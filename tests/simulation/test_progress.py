"""The bar for those who wait in Python."""

import io
import sys
from typing import Any

import pytest

import tailproof as tp
from tailproof import environments, noise
from tailproof.simulation import progress

BANDIT = environments.k_armed(noise.Normal(), locations=(0.0, 1.0))


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def written(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, **settings: Any) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    policies: dict[str, Any] = {"a": tp.UCB1(), "b": tp.Uniform()}
    plan = tp.Plan(policies=policies, environment=BANDIT, horizon=20, paths=3)
    tp.sweep({"": plan}, engine="serial", **settings)
    return stream.getvalue()


def test_true_shows_a_bar_and_takes_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = written(monkeypatch, Terminal(), progress=True)
    assert "0/2 cells" in text
    assert "2/2 cells" in text
    assert text.endswith("\r")
    assert not text.split("\r")[-2].strip()
    assert "1/2 cells" in written(monkeypatch, io.StringIO(), progress=True)  # no terminal either


def test_a_sweep_shows_a_bar_where_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(monkeypatch, Terminal()) == ""  # too short to wait for
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    assert "2/2 cells" in written(monkeypatch, Terminal())
    assert written(monkeypatch, io.StringIO()) == ""
    assert written(monkeypatch, Terminal(), progress=False) == ""
