"""Journals of simulated shops, written by hand so that a test knows every row."""

import numpy as np

from tailproof.live.journal import Counts, Decision, DecisionRow, Journal
from tailproof.live.offers import Offer

__all__ = ["write"]


def write(
    journal: Journal,
    visitors: int,
    *,
    names: tuple[str, ...] = ("red", "blue"),
    policy: tuple[float, ...] = (0.2, 0.8),
    conversion: tuple[float, ...] = (0.03, 0.045),
    basket: float = 40.0,
    control: float = 0.1,
    explore: float = 0.1,
    features: bool = False,
    seed: int = 0,
    start: float = 1.7e9,
    apart: float = 60.0,
) -> dict[str, np.ndarray]:
    """Write visitors, with the first arm as control, and return arm, group, share and reward.

    `policy` are the probabilities of its own choices, so that those of the arms are known.
    """
    rng, k = np.random.default_rng(seed), len(names)
    own = np.array(policy)
    shares = (1 - control) * (explore / k + (1 - explore) * own) + control * (np.arange(k) == 0)
    lot = rng.random(visitors) < control
    rule = rng.choice(k, size=visitors, p=explore / k + (1 - explore) * own)
    arm = np.where(lot, 0, rule)
    buys = rng.random(visitors) < np.array(conversion)[arm]
    reward = np.where(buys, basket * np.exp(rng.standard_normal(visitors)), 0.0)
    vectors = rng.standard_normal((visitors, 2)) if features else None
    first = journal.counts()[0]
    with journal.transaction():
        if not first:
            journal.set_meta(seed="0", wait="60.0", silence="0.0", rewards="first", version="0")
            if control:
                journal.set_meta(control=f'{{"arm": "{names[0]}", "share": {control}}}')
            journal.add_recipe("RevenueUCB(share=0.99)", 0, start)
            journal.add_arms({name: i for i, name in enumerate(names)})
        ordered = sorted(range(k), key=lambda i: names[i])
        packed = shares[ordered].astype("<f4").tobytes()
        counts = {i: Counts() for i in range(k)}
        for i in range(visitors):
            at = start + apart * (first + i)
            offer = Offer.of(list(names))
            if vectors is not None:
                offer = Offer.of({name: vectors[i] + j for j, name in enumerate(names)})
            number, place = first + i, offer.names.index(names[arm[i]])
            decision = Decision(number, offer, place, float(shares[arm[i]]))
            group = "control" if lot[i] else None
            row = DecisionRow(decision, packed, explore, group, 0, 0, 0, 0, at)
            journal.add_decisions([(row, int(arm[i]))])
            journal.add_tickets([(number, 0, f"v{number}", None, at, at + 60.0)])
            counts[int(arm[i])].asked += 1
            if buys[i]:
                journal.add_events([(number, 0, "", float(reward[i]), at + 1)])
                counts[int(arm[i])].told += 1
        rows = [(first + i, reward[i : i + 1].astype("<f8").tobytes(), 1) for i in range(visitors)]
        journal.add_outcomes(rows, start + apart * (first + visitors))
        journal.count(0, counts)
    return {"arm": arm, "group": lot.astype(int), "share": shares[arm], "reward": reward}
