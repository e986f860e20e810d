"""A policy that learns, judged by playing it on a log.

Rows are kept with probability c/p, so that kept rows are as if every arm had been drawn evenly,
whatever policy made the log. The kept rows are dealt into parts that share nothing. In each part
the policy starts from scratch and plays a horizon that the part can serve, several times in random
orders. Parts are independent, so Student's interval over parts holds.

A policy that knows arms by number takes the next rewards of the arm that it wants. A policy that
looks at features is asked at every row, and a row counts if it has the arm that the policy wants.

Source: Li, Chu, Langford and Wang 2011. Differences: rows are thinned, so that the log need not be
even; queues, so that nothing is rejected without features; parts, for an interval.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from tailproof.judging.rules import vectors
from tailproof.judging.scores import Estimate
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim
from tailproof.tables import Records
from tailproof.typing import Array, Index

__all__ = ["PARTS", "Replay", "replay"]

PARTS = 8
"""Parts of the kept rows, for Student's interval; more parts would be shorter."""
RUNS = 8
"""Random orders in which each part is played; their mean is the value of the part."""
LEAST = 20
"""The fewest decisions of a replay for an answer."""


class Replay(NamedTuple):
    """Rewards of shape (parts, runs, horizon), or the reason why there are none."""

    rewards: Array | None
    reason: str = ""

    def value(self, aim: Aim, ends: tuple[float, float] | None, level: float) -> Estimate:
        """Return estimate and interval, by Student's test over parts."""
        assert self.rewards is not None
        parts = len(self.rewards)
        bar = float(stdtrit(parts - 1, (1 + level) / 2))
        if aim.averages:
            x = self.rewards if ends is None else np.clip(self.rewards, *ends)
            means = x.mean(axis=(1, 2))
            off = (means - means.mean()) / math.sqrt(parts * (parts - 1))
            value, half = float(means.mean()), bar * math.sqrt(float(off @ off))
            return Estimate(value, value - half, value + half, off)
        tau = aim.level
        values = np.sort(self.rewards.ravel())
        ranked = np.sort(self.rewards.reshape(parts, -1), axis=1)
        ranks = np.stack([np.searchsorted(rewards, values, side="right") for rewards in ranked])
        shares = ranks / ranked.shape[1] - tau
        error = shares.std(axis=0, ddof=1) / math.sqrt(parts)
        middle = shares.mean(axis=0)
        places = [int(np.searchsorted(middle, 0.0))]
        places += [int((middle > side * bar * error).argmax()) for side in (-1, 1)]
        value, low, high = values[np.minimum(places, len(values) - 1)].tolist()
        off = -shares[:, min(places[0], len(values) - 1)]
        off -= off.mean()
        size = math.sqrt(float(off @ off))
        return Estimate(value, low, high, off * ((high - low) / (2 * bar * size) if size else 0.0))


def replay(policy: Policy[Any], log: Records, rng: np.random.Generator) -> Replay:
    """Return the value of a policy that starts from scratch on the traffic of a log."""
    if log.offered is not None:
        return Replay(None, "offers change in this log, so no row stands for another")
    k, looks = len(log.arms), policy.view != "arms" and log.features is not None
    if looks and policy.pulls > 1:
        return Replay(
            None,
            f"a decision takes {policy.pulls} rewards of the same features, which never repeat",
        )
    finite = ~np.isnan(log.reward) & ~np.isinf(log.reward)
    counts = np.bincount(log.arm[finite], minlength=k)
    if counts.min() == 0:
        return Replay(None, f"the log has no reward of {log.arms[int(counts.argmin())]}")
    least = np.array([log.known_propensity[finite & (log.arm == a)].min() for a in range(k)])
    if looks:
        least[:] = least.min()
    kept = np.flatnonzero(finite & (rng.random(log.n) * log.known_propensity < least[log.arm]))
    part = rng.permutation(len(kept)) % PARTS
    groups = [kept[part == number] for number in range(PARTS)]
    rows_of_arm = np.array([np.bincount(log.arm[rows], minlength=k) for rows in groups])
    # rows hit with probability 1/K; queues are as long as the rarest arm's
    horizon = int(0.8 * (rows_of_arm.sum(axis=1).min() / k if looks else rows_of_arm.min()))
    horizon -= horizon % policy.pulls
    if horizon < LEAST:
        return Replay(
            None,
            f"after thinning to even choices it can be replayed for {max(horizon, 0)} decisions "
            f"only, and {LEAST} are needed: the log is too short or too uneven",
        )
    play = _rows if looks else _queues
    return Replay(play(policy, log, groups, horizon, rng))


def _queues(
    policy: Policy[Any], log: Records, groups: list[Index], horizon: int, rng: np.random.Generator
) -> Array:
    paths, k, pulls = len(groups) * RUNS, len(log.arms), policy.pulls
    queue = np.empty((paths, k, horizon))
    for path in range(paths):
        rows = groups[path // RUNS]
        for a in range(k):
            picked = rng.permutation(rows[log.arm[rows] == a])[:horizon]
            queue[path, a] = log.reward[picked]
    vectors_of_arms = np.eye(k) if log.vectors is None or policy.view == "arms" else log.vectors[0]
    state, head = policy.init(paths, k, vectors_of_arms.shape[1]), np.zeros((paths, k), np.int64)
    arms, at = np.broadcast_to(vectors_of_arms, (paths, *vectors_of_arms.shape)), np.arange(paths)
    rewards = np.empty((paths, horizon))
    for t in range(0, horizon, pulls):
        chosen = policy.choose(state, arms, rng)
        take = head[at, chosen][:, None] + np.arange(pulls)
        rewards[:, t : t + pulls] = queue[at[:, None], chosen[:, None], take]
        policy.learn(state, arms, chosen, rewards[:, t : t + pulls])
        head[at, chosen] += pulls
    return rewards.reshape(len(groups), RUNS, horizon)


def _rows(
    policy: Policy[Any], log: Records, groups: list[Index], horizon: int, rng: np.random.Generator
) -> Array:
    paths, k = len(groups) * RUNS, len(log.arms)
    length = min(map(len, groups))
    order = np.array([rng.permutation(groups[path // RUNS])[:length] for path in range(paths)])
    state = policy.init(paths, k, vectors(policy, log, order[:, 0]).shape[2])
    count, rewards = np.zeros(paths, np.int64), np.full((paths, horizon), np.nan)
    for t in range(length):
        rows = order[:, t]
        arms = vectors(policy, log, rows)
        chosen = policy.choose(state, arms, rng)
        hit = np.flatnonzero((chosen == log.arm[rows]) & (count < horizon))
        if not len(hit):
            continue
        some = state.take(hit)
        policy.learn(some, arms[hit], chosen[hit], log.reward[rows[hit]][:, None])
        state.put(hit, some)
        rewards[hit, count[hit]] = log.reward[rows[hit]]
        count[hit] += 1
        if count.min() == horizon:
            break
    return rewards[:, : int(count.min())].reshape(len(groups), RUNS, -1)
