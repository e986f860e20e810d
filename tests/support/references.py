"""Plain one-path references, written from the pseudo-code.

They keep all history and solve afresh.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tailproof import CRT, MENU, TOFU, MoM
from tailproof.typing import Array

Reference = Callable[[Any, Array, Array], list[int]]
Appraise = Callable[[list[Array], list[Array], Array, int], tuple[float, float]]


def norm(x: Array, form: Any) -> float:
    return math.sqrt(x @ form @ x)


def crt(policy: CRT, arms: Array, rewards: Array) -> list[int]:
    e, d = policy.epsilon, arms.shape[-1]
    a, b, beta, chosen = np.eye(d), np.zeros(d), 1.0, []
    for t, (xs, ys) in enumerate(zip(arms, rewards, strict=True), start=1):
        inverse = np.linalg.inv(a)
        index = [x @ inverse @ b + policy.bonus * beta * norm(x, inverse) for x in xs]
        best = int(np.argmax(index))
        y = ys[best, 0]
        y = y if abs(y) <= t ** (1 / (2 * (1 + e))) else 0.0
        a, b = a + np.outer(xs[best], xs[best]), b + y * xs[best]
        log = math.log(math.sqrt(np.linalg.det(a)) / policy.delta)
        beta = 2 * math.sqrt(2 * t ** (1 / (1 + e)) * log)
        beta += math.sqrt(2 * policy.moment_bound**2 * math.log(t)) + 1
        chosen.append(best)
    return chosen


def mom(policy: MoM, arms: Array, rewards: Array) -> list[int]:
    e, horizon, d = policy.epsilon, policy.horizon, arms.shape[-1]
    m = horizon ** (2 * e / (1 + 3 * e))
    r = math.floor(horizon / m)
    k = policy.blocks or math.ceil(8 * math.log(2 * m / policy.delta))
    a, b, beta, chosen = np.eye(d), np.zeros(d), 1.0, []
    for t, (xs, ys) in enumerate(zip(arms, rewards, strict=True), start=1):
        inverse = np.linalg.inv(a)
        index = [x @ inverse @ b + policy.bonus * beta * norm(x, inverse) for x in xs]
        best = int(np.argmax(index))
        n = r // k
        y = np.median([np.mean(ys[best, j * n : (j + 1) * n]) for j in range(k)])
        a, b = a + np.outer(xs[best], xs[best]), b + y * xs[best]
        beta = (12 * policy.moment_bound) ** (1 / (1 + e)) * (
            8 * math.log(2 * m / policy.delta) / r
        ) ** (e / (1 + e))
        beta *= math.sqrt(2 * math.log(m * math.sqrt(np.linalg.det(a)))) + math.sqrt(t + 1)
        beta += 1
        chosen.append(best)
    return chosen


def menu(policy: MENU, arms: Array, rewards: Array) -> list[int]:
    e, k, d = policy.epsilon, policy.pulls, arms.shape[-1]
    start = math.sqrt(policy.ridge) * policy.norm_bound
    v, b, theta, beta, chosen = policy.ridge * np.eye(d), np.zeros((k, d)), np.zeros(d), start, []
    for n, (xs, ys) in enumerate(zip(arms, rewards, strict=True), start=1):
        inverse = np.linalg.inv(v)
        index = [x @ theta + policy.bonus * beta * norm(x, inverse) for x in xs]
        best = int(np.argmax(index))
        v = v + np.outer(xs[best], xs[best])
        b = b + np.outer(ys[best], xs[best])
        thetas = np.linalg.solve(v, b.T).T
        spread = []
        for j in range(k):
            others = [norm(thetas[j] - thetas[s], v) for s in range(k) if s != j]
            spread.append(np.median(others))
        theta = thetas[int(np.argmin(spread))]
        growth = n ** ((1 - e) / (2 * (1 + e)))
        beta = 3 * ((9 * d * policy.moment_bound) ** (1 / (1 + e)) * growth + start)
        chosen.append(best)
    return chosen


def tofu_theta(policy: TOFU, xs: list[Array], ys: list[float]) -> Array:
    """TOFU's estimate from all that was pulled, every term truncated afresh."""
    e, t, d = policy.epsilon, len(xs), len(xs[0])
    x, y = np.array(xs), np.array(ys)
    values, vectors = np.linalg.eigh(policy.ridge * np.eye(d) + x.T @ x)
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    level = (policy.moment_bound / math.log(2 * policy.horizon / policy.delta)) ** (1 / (1 + e))
    level *= t ** ((1 - e) / (2 * (1 + e)))
    terms = root @ x.T * y
    return np.asarray(root @ np.where(abs(terms) <= level, terms, 0).sum(axis=1))


def tofu(policy: TOFU, arms: Array, rewards: Array) -> list[int]:
    e, horizon, d = policy.epsilon, policy.horizon, arms.shape[-1]
    start = math.sqrt(policy.ridge) * policy.norm_bound
    v, theta, beta, chosen = policy.ridge * np.eye(d), np.zeros(d), start, []
    past_x: list[Array] = []
    past_y: list[float] = []
    for t, (xs, ys) in enumerate(zip(arms, rewards, strict=True), start=1):
        inverse = np.linalg.inv(v)
        index = [x @ theta + policy.bonus * beta * norm(x, inverse) for x in xs]
        best = int(np.argmax(index))
        past_x.append(xs[best])
        past_y.append(ys[best, 0])
        v = v + np.outer(xs[best], xs[best])
        growth = t ** ((1 - e) / (2 * (1 + e)))
        theta = tofu_theta(policy, past_x, past_y)
        log = math.log(2 * d * horizon / policy.delta)
        beta = (
            4 * math.sqrt(d) * policy.moment_bound ** (1 / (1 + e)) * log ** (e / (1 + e)) * growth
            + start
        )
        chosen.append(best)
    return chosen


def layered(
    policy: Any,
    arms: Array,
    rewards: Array,
    appraise: Appraise,
    learned: list[int],
) -> list[int]:
    """The loop of section 3 of the algorithms: a sample set for each level.

    `learned` is told the level of each sample, 0 where nothing was learned.
    """
    levels = policy.levels
    sets: list[list[tuple[Array, Array]]] = [[] for _ in range(levels)]
    chosen = []
    for t, (xs, ys) in enumerate(zip(arms, rewards, strict=True), start=1):
        race, s, pick, learn = list(range(len(xs))), 1, -1, 0
        while pick < 0:
            past = sets[s - 1]
            looks = {
                a: appraise([x for x, _ in past], [y for _, y in past], xs[a], t) for a in race
            }
            widest = max(looks[a][1] for a in race)
            if widest <= 1 / math.sqrt(policy.horizon) or (s == levels and widest <= 2.0**-s):
                pick = max(race, key=lambda a: looks[a][0] + looks[a][1])
            elif widest <= 2.0**-s:
                top = max(sum(looks[a]) for a in race)
                race = [a for a in race if sum(looks[a]) >= top - 2.0 ** (1 - s)]
                s += 1
            else:
                pick, learn = max(race, key=lambda a: looks[a][1]), s
        if learn:
            sets[learn - 1].append((xs[pick], ys[pick]))
        learned.append(learn)
        chosen.append(pick)
    return chosen


def flat(arms: Array, rewards: Array, appraise: Appraise) -> list[int]:
    """The version without layers: every sample counts."""
    past_x: list[Array] = []
    past_y: list[Array] = []
    chosen = []
    for t, (xs, ys) in enumerate(zip(arms, rewards, strict=True), start=1):
        index = [sum(appraise(past_x, past_y, x, t)) for x in xs]
        best = int(np.argmax(index))
        past_x.append(xs[best])
        past_y.append(ys[best])
        chosen.append(best)
    return chosen


def gram(past: list[Array], d: int) -> Array:
    x = np.array(past).reshape(-1, d)
    return np.asarray(np.eye(d) + x.T @ x)


def sup(policy: Any, arms: Array, rewards: Array, learned: list[int] | None = None) -> list[int]:
    e, (k, d) = getattr(policy, "epsilon", 1), arms.shape[1:]

    def bmm(xs: list[Array], ys: list[Array], x: Array, t: int) -> tuple[float, float]:
        inverse = np.linalg.inv(gram(xs, d))
        moment = sum(
            (np.outer(y, z) for y, z in zip(ys, xs, strict=True)), np.zeros((policy.pulls, d))
        )
        scripts = policy.width == "experiments"
        t = max(t - 1, 1) if scripts else t
        alpha = (12 * policy.moment_bound) ** (1 / (1 + e)) * t ** ((1 - e) / (2 * (1 + e)))
        scale = policy.bonus * (alpha if scripts else alpha + 1)
        return float(np.median(moment @ inverse @ x)), scale * norm(x, inverse)

    def btc(xs: list[Array], ys: list[Array], x: Array, t: int) -> tuple[float, float]:
        inverse = np.linalg.inv(gram(xs, d))
        beta = np.array([x @ inverse @ z for z in xs])
        y = np.array([y[0] for y in ys])
        order = 2 if policy.threshold == "euclidean" else 1 + e
        h = np.sum(np.abs(beta) ** order) ** (1 / order)
        value = float(np.sum(beta * np.where(np.abs(beta * y) <= h, y, 0)))
        load = math.log(2 * policy.horizon * k * math.log(policy.horizon) / policy.delta)
        t = max(t - 1, 1) if policy.width == "experiments" else t
        growth = t ** ((1 - e) / (2 * (1 + e)))
        alpha = (
            2 / 3 * load + math.sqrt(2 * policy.moment_bound * load) + policy.moment_bound
        ) * growth
        scale = policy.moment_bound * growth if policy.width == "experiments" else alpha + 1
        return value, policy.bonus * scale * norm(x, inverse)

    def ucb(xs: list[Array], ys: list[Array], x: Array, t: int) -> tuple[float, float]:
        inverse = np.linalg.inv(gram(xs, d))
        moment = sum((y[0] * z for y, z in zip(ys, xs, strict=True)), np.zeros(d))
        alpha = math.sqrt(0.5 * math.log(2 * policy.horizon * k / policy.delta))
        return float(x @ inverse @ moment), policy.bonus * alpha * norm(x, inverse)

    def rel(xs: list[Array], ys: list[Array], x: Array, t: int) -> tuple[float, float]:
        values, vectors = np.linalg.eigh(gram(xs, d) - np.eye(d))
        moment = sum((y[0] * z for y, z in zip(ys, xs, strict=True)), np.zeros(d))
        turned, load = vectors.T @ x, math.log(2 * policy.horizon * k / policy.delta)
        good = [j for j in range(d) if values[j] >= 1 - 1e-9]
        value = sum(turned[j] * (vectors.T @ moment)[j] / values[j] for j in good)
        a = math.sqrt(sum(turned[j] ** 2 / values[j] for j in good))
        rest = math.sqrt(sum(turned[j] ** 2 for j in range(d) if j not in good))
        return float(value), policy.bonus * (a * math.sqrt(load) + rest)

    by_name = {"SupBMM": bmm, "SupBTC": btc, "SupLinUCB": ucb, "SupLinRel": rel}
    appraise = by_name[type(policy).__name__]
    if not policy.layered:
        return flat(arms, rewards, appraise)
    return layered(policy, arms, rewards, appraise, [] if learned is None else learned)
