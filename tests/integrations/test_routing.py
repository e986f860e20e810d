"""The router: tails, outages, recoveries, many calls at once, and what it refuses."""

import asyncio
import math
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailproof import OFUL, UCB1, AutoFiltered, Mean, Median, Negated, OrderStatisticUCB, Quantile
from tailproof.integrations.routing import OUTAGE, Call, Router, tail_policy


def calls(router: Router, costs: Any, count: int) -> list[str]:
    """Make calls one after the other; `costs` returns a cost, or None for a failure."""
    found = []
    for t in range(count):
        arm = router.choose()
        cost = costs(arm, t)
        if cost is None:
            router.fail(arm)
        else:
            router.tell(arm, cost)
        found.append(arm)
    return found


def test_the_tail_decides_and_not_the_median() -> None:
    """A call in five to "moody" is slow; its median is half of the other's."""
    rng = np.random.default_rng(0)

    def cost(arm: str, t: int) -> float:
        return float(rng.exponential() + (10 if arm == "moody" and rng.random() < 0.2 else 0))

    share = Counter(calls(Router(["steady", "moody"]), cost, 600)[200:])
    assert share["steady"] > 360
    for_medians = Router(["steady", "moody"], aim=Median(), memory=10_000)
    rng = np.random.default_rng(0)
    slow = calls(for_medians, lambda arm, t: cost("moody", t) / (1 + (arm == "moody")), 600)
    assert Counter(slow[300:])["moody"] > 150


def test_gains_are_made_large() -> None:
    rng = np.random.default_rng(1)
    router = Router(["low", "high"], aim=Quantile(0.1), costs=False)
    found = calls(router, lambda arm, t: rng.exponential() + 2 * (arm == "high"), 300)
    assert Counter(found[100:])["high"] > 150
    assert router.failure == -math.inf


def test_an_arm_that_is_dead_gets_probes_only_and_comes_back() -> None:
    rng = np.random.default_rng(2)

    def cost(arm: str, t: int) -> float | None:
        if arm == "best" and 500 <= t < 1000:
            return None
        return float(rng.exponential() + 2 * (arm == "other"))

    router = Router(["best", "other"], probe=50)
    found = calls(router, cost, 1400)
    assert Counter(found[510:1000])["best"] <= 10
    assert Counter(found[1050:1150])["best"] > 80  # what it did before is not forgotten
    assert router.down == []


def test_failures_that_are_no_outage_are_learned() -> None:
    """Two in a row, then a success: both count as infinitely long, in their order."""
    router = Router(["a"])
    for cost in (None, None, 1.0):
        arm = router.choose()
        router.tell(arm, cost) if cost else router.fail(arm)
    assert router._core.state.decisions.tolist() == [3]
    assert router._core.state.inner.inner.samples[0, :3].tolist() == [-math.inf, -math.inf, -1.0]
    assert router.down == []
    for _ in range(OUTAGE):
        router.fail(router.choose())
    assert router.down == ["a"]
    assert router._core.state.decisions.tolist() == [3]
    router.tell(router.choose(), 1.0)
    assert router.down == []


def test_a_stated_cost_of_failures() -> None:
    router = Router(["a"], failure=30)
    router.fail(router.choose())
    router.tell(router.choose(), 1)
    assert router._core.state.inner.inner.samples[0, :2].tolist() == [-30.0, -1.0]


def test_a_block_is_measured_and_an_error_is_a_failure() -> None:
    router = Router(["a"])
    call = router.call()
    with call as arm:
        assert arm == "a"
    assert call.cost is not None
    assert 0 <= call.cost < 10
    failed = router.call()
    with pytest.raises(OSError, match="gone"), failed:
        raise OSError("gone")
    assert failed.cost == math.inf
    given_up = router.call()
    with pytest.raises(KeyboardInterrupt), given_up:
        raise KeyboardInterrupt
    assert given_up.cost is None
    told = router.call()
    with told:
        told.tell(0.25)
    told.fail()  # it has ended
    assert told.cost == 0.25
    assert [record.flying for record in router._records] == [0]
    assert router._core.state.decisions.tolist() == [3]


@pytest.mark.parametrize(("timeout", "cost"), [(math.inf, None), (1e-9, math.inf)])
def test_a_cancelled_call_failed_if_it_took_long(timeout: float, cost: float | None) -> None:
    async def main() -> Call:
        call = Router(["a"], timeout=timeout).call()
        try:
            async with asyncio.timeout(0.01), call:
                await asyncio.sleep(10)
        except TimeoutError:
            pass
        return call

    assert asyncio.run(main()).cost == cost


def test_many_calls_at_once_in_one_loop() -> None:
    """10⁴ calls are under way together; none waits for another, and all are learned."""
    router, most, now = Router(["a", "b", "c"]), 0, 0

    async def one(gate: asyncio.Event) -> None:
        nonlocal most, now
        async with router.call():
            now += 1
            most = max(most, now)
            await gate.wait()
            now -= 1

    async def main() -> None:
        gate = asyncio.Event()
        tasks = [asyncio.create_task(one(gate)) for _ in range(10_000)]
        while now < 10_000:
            await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert most == 10_000
    assert sum(record.landed for record in router._records) == 10_000
    assert min(record.landed for record in router._records) > 2_000  # no herd


def test_threads_share_a_router_and_no_lock_is_held_during_a_call() -> None:
    router, meet = Router(["a", "b"]), threading.Barrier(8, timeout=30)

    def work(_: int) -> None:
        with router.call():
            meet.wait()  # all eight are in their calls at the same time
        for _ in range(50):
            with router.call():
                pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert sum(record.landed for record in router._records) == 8 * 51
    assert router._core.state.decisions.tolist() == [8 * 51]


def test_a_new_arm_does_not_get_all_calls_of_a_busy_moment() -> None:
    router = Router(["old"])
    calls(router, lambda arm, t: 1.0, 100)
    flying = [router.call(["old", "new"]).arm for _ in range(50)]
    assert Counter(flying)["new"] == 1


def test_arms_may_come_and_go() -> None:
    router = Router(["a"])
    calls(router, lambda arm, t: 1.0 + t % 3, 20)
    for _ in range(60):
        arm = router.choose(["b", "c"])
        router.tell(arm, 2.0 if arm == "b" else 9.0)
    assert router.arms == ["a", "b", "c"]
    assert router.choose(["c"]) == "c"
    assert Counter(router.choose() for _ in range(10)).keys() <= {"a", "b"}
    router.tell("a", 1.0)
    router.tell("c", 1.0)
    router.tell("c", 1.0)  # stray


def test_a_journal_keeps_what_was_learned(tmp_path: Path) -> None:
    def cost(arm: str, t: int) -> float:
        return 5.0 + t % 3 if arm == "a" else 1.0 + t % 2

    with Router(["a", "b"], journal=tmp_path / "calls.db") as router:
        found = calls(router, cost, 60)
        assert Counter(found[30:])["b"] > 20
    with Router(["a", "b"], journal=tmp_path / "calls.db") as router:
        with router.call() as arm:
            assert arm == "b"
        assert router._core.agent.standing().outcomes == 61


def test_the_policy_for_a_quantile() -> None:
    slow: Any = tail_policy(Quantile(0.9), costs=True, memory=50)
    assert slow.policy == Negated(
        OrderStatisticUCB(quantile=0.1, index="binomial", bonus=slow.policy.policy.bonus)
    )
    middle: Any = tail_policy(Median(), costs=False, memory=50)
    assert middle.policy.quantile == 0.5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"arms": []}, "arms must be a sequence of different names"),
        ({"arms": "ab"}, "arms must be a sequence of different names, got 'ab'"),
        ({"arms": ["a", "a"]}, "different names"),
        ({"aim": Mean()}, "aim must be a Quantile or Median"),
        ({"aim": Median(), "policy": UCB1()}, "either aim or policy"),
        ({"policy": OFUL()}, "knows arms by number"),
        ({"policy": AutoFiltered(UCB1())}, "learns from single rewards"),
        ({"failure": math.nan}, "failure"),
        ({"timeout": 0}, "timeout"),
        ({"probe": 1}, "probe"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Router(**({"arms": ["a", "b"]} | settings))


def test_a_cost_must_be_a_number() -> None:
    router = Router(["a"])
    router.choose()
    with pytest.raises(ValueError, match="cost must be"):
        router.tell("a", math.nan)
    with pytest.raises(ValueError, match="arm must be one of a, got 'b'"):
        router.tell("b", 1.0)
    with pytest.raises(ValueError, match="cost must be"):
        router.call().tell(math.nan)
