"""What notebooks show: a table, never pages of arrays."""

from typing import Any

import numpy as np
import pytest

import tailproof as tp
from tailproof import environments, noise
from tailproof.live import Agent


def shown() -> list[Any]:
    rng = np.random.default_rng(0)
    arm = ["<a>", "b"] * 200
    reward = np.where(rng.random(400) < 0.3, rng.lognormal(3, 1, 400), 0.0)
    known = tp.records(arm=arm, reward=reward, propensity=np.full(400, 0.5))
    agent = Agent(tp.UCB1(), ":memory:")
    for x in range(6):
        agent.tell(agent.ask(["<a>", "b"]).id, float(x))
    bandit = environments.k_armed(noise.Normal(), locations=(0.0, 2.0))
    policies: dict[str, Any] = {"<a>": tp.Uniform(), "b": tp.UCB1()}
    return [
        known,
        tp.calibrate(known),
        tp.judge(known, ["b"], tp.CappedMean(0.99)),
        agent,
        tp.simulate({"<a>": tp.Uniform()}, bandit, horizon=40, paths=4),
        tp.identify({"<a>": tp.bestarm.QuantileLUCB()}, bandit, paths=4, max_pulls=2000),
        tp.gauntlet.run({"<a>": tp.UCB1()}, problems=["k5-t1"], size="smoke", workers=1),
        tp.sweep(
            {"<a>": tp.Plan(policies=policies, environment=bandit, horizon=40, paths=4)},
            engine="serial",
        ),
        tp.simulate(policies, bandit, horizon=40, paths=4).difference("<a>", "b"),
    ]


@pytest.fixture(scope="module", name="things")
def _things() -> list[Any]:
    return shown()


@pytest.mark.parametrize("place", range(9))
def test_each_is_a_table_and_a_picture(things: list[Any], place: int) -> None:
    thing = things[place]
    page = thing._repr_html_()
    assert page.startswith("<table>")
    assert "&lt;a&gt;" in page or "always b" in page
    assert "<a>" not in page
    assert len(repr(thing)) < 1500
    assert thing.plot().axes
    assert len(thing.to_frame())
