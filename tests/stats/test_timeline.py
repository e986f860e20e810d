"""The timeline of a chart, whose memory does not grow."""

import numpy as np

from tailproof.stats.timeline import Timeline


def test_memory_does_not_grow_with_the_tickets() -> None:
    history, arms = Timeline(0.5), 3
    for _ in range(40):
        chosen = np.arange(50_000) % arms
        history.add(chosen, np.zeros(50_000), np.ones(50_000), arms)
    assert history._cells.shape == (3, 32, arms)
    assert 32 * 100 < len(history._rewards) < 32 * 300
    found = history.to_dict(["a", "b", "c"], [0])
    totals = [sum(arm["pulls"]) for arm in found["arms"]]
    assert totals == [666_680, 666_680, 666_640]
    sampled = np.bincount(history._arms)
    assert sampled.max() < 1.1 * sampled.min()  # although the arms take turns


def test_quantiles_of_a_bucket() -> None:
    """Of ten rewards the first, fifth and ninth."""
    history = Timeline(0.5)
    rewards = np.array([3, 1, 2, 10, 9, 8, 7, 6, 5, 4], dtype=float)
    history.add(np.zeros(10, dtype=np.int64), np.zeros(10), rewards, 1)
    (arm,) = history.to_dict(["a"], [0])["arms"]
    assert (arm["low"], arm["middle"], arm["high"]) == ([1], [5], [9])
