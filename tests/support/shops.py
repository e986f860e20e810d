"""Journals of simulated shops, written by hand so that a test knows every row."""

import numpy as np

from tailproof import RevenueUCB
from tailproof.live import Journal, Recipe
from tailproof.live.journal import Request
from tailproof.live.learner import packed as as_text
from tailproof.live.offer import Offer

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
    first = journal.outcome_count()
    held = (names[0], control) if control else None
    recipe = Recipe(
        policy=RevenueUCB(), wait=60.0, silence=0.0, control=held, explore=explore, seed=0
    )
    packed = as_text(shares[sorted(range(k), key=lambda i: names[i])])
    with journal.transaction():
        number = journal.add_recipe(recipe.text, recipe.rules, start)
        if not first:
            journal.add_arms({name: i for i, name in enumerate(names)})
        for row in range(visitors):
            i, chosen = first + row, int(arm[row])
            offer, at = Offer.of(list(names)), start + apart * i
            if vectors is not None:
                offer = Offer.of({name: vectors[row] + j for j, name in enumerate(names)})
            known = journal.offer_ids([offer.key]).get(offer.key)
            if known is None:
                journal.add_offer(i, offer.key, *offer.row())
                known = i
            group, share = "control" if lot[row] else None, float(shares[chosen])
            about = (i, f"v{i}", None, at, at + 60.0, number)
            journal.add_requests([(*about, known, chosen, share, packed, group, 0, None, 0)])
            request, value = Request(*about, chosen, share, group, 0), float(reward[row])
            if buys[row]:
                request.events[""] = (value, at + 1, 0)
                journal.add_events([(i, "", value, at + 1, 0)])
            why = "told" if buys[row] else "silent"
            journal.add_outcomes([(request, value, why)], at + 60.0, i)
    return {"arm": arm, "group": lot.astype(int), "share": shares[arm], "reward": reward}
