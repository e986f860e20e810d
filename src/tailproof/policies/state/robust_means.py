"""Robust means of every arm, each at the confidence δ = t⁻² of the next decision.

Each is exact at every decision. All but Catoni's read old samples only when they must.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from tailproof.chunking import chunks
from tailproof.policies.state.base import ArmCounts, ArmValues, Array, Buffer, Index, Rule
from tailproof.policies.state.counts import RewardHistory

__all__ = ["ESTIMATORS", "CatoniMeans", "MediansOfMeans", "RobustMeans", "TruncatedMeans"]


@dataclass(eq=False)
class RobustMeans(RewardHistory):
    """A history, and the means of its arms at the next decision (`means`), of shape (paths, K)."""

    means: ArmValues
    first: ClassVar[int] = 1
    """The number of pulls that a mean needs."""

    def needed(self, log: Array) -> Array:
        """Return the number of samples that a mean needs, where `log` is ln(1/δ)."""
        return np.full_like(log, self.first)

    @staticmethod
    @abstractmethod
    def width(n: Index, log: Array, epsilon: float, v: float) -> Array:
        """Return the width of a mean of n samples at confidence 1 − δ."""

    @abstractmethod
    def update(self, chosen: Index, rewards: Array, epsilon: float, v: float) -> None:
        """Learn one reward in each path, and compute the means of the next decision."""

    def _next_log(self) -> Array:
        """Return ln(1/δ) = ln t² of the next decision, of shape (paths, 1)."""
        return 2 * np.log(self.decisions[:, None] + 2)


@dataclass(eq=False)
class TruncatedMeans(RobustMeans):
    """(1/n) Σ_j X_j 1{|X_j| ≤ (v j/ln(1/δ))^{1/(1+ε)}}, where v bounds E|X|^{1+ε}.

    X_j counts until ln(1/δ) exceeds its life v j/|X_j|^{1+ε}, and never again, so a path reads old
    samples only when a life ends. Few do: about ln(1/δ)/j of the j-th samples.

    `sums`, of shape (paths, K), adds up the samples that count; `lives`, of shape (paths, room),
    holds all lives and `soonest`, of shape (paths,), the shortest life that counts.
    """

    sums: ArmValues
    soonest: Annotated[Array, Rule(blank=math.inf)]
    lives: Buffer

    @staticmethod
    def width(n: Index, log: Array, epsilon: float, v: float) -> Array:
        """Return the width of a mean of n samples at confidence 1 − δ."""
        return np.asarray(4 * v ** (1 / (1 + epsilon)) * (log / n) ** (epsilon / (1 + epsilon)))

    def update(self, chosen: Index, rewards: Array, epsilon: float, v: float) -> None:
        """Learn one reward in each path, and compute the means of the next decision."""
        x, log, path = self.append(chosen, rewards), self._next_log(), np.arange(self.paths)
        with np.errstate(divide="ignore", over="ignore"):
            life = v * self.counts[path, chosen] / np.abs(x) ** (1 + epsilon)
        self.lives[path, self.decisions] = life
        counts = life >= log[:, 0]
        self.sums[path, chosen] += np.where(counts, x, 0.0)
        self.soonest = np.minimum(self.soonest, np.where(counts, life, np.inf))
        (rows,) = np.nonzero(self.soonest < log[:, 0])
        if len(rows):
            lives = self.lives[rows, self.used]
            alive = lives >= log[rows]
            place = np.arange(len(rows))[:, None] * self.arms + self.pulled[rows, self.used]
            kept = self.samples[rows, self.used][alive]
            sums = np.bincount(place[alive], kept, minlength=len(rows) * self.arms)
            self.sums[rows] = sums.reshape(-1, self.arms)
            self.soonest[rows] = np.where(alive, lives, np.inf).min(axis=1)
        self.means = self.sums / np.maximum(self.counts, 1)


@dataclass(eq=False)
class MediansOfMeans(RobustMeans):
    """The median of k means of N samples, k = ⌊min(8 ln(e^⅛/δ), n/2)⌋ and N = ⌊n/k⌋.

    v bounds E|X − μ|^{1+ε}. The blocks change only with k or N: at every second pull of an arm at
    first, at every k-th pull later. `blocks` and `length`, of shape (paths, K), hold k and N.
    """

    blocks: ArmCounts
    length: ArmCounts
    first: ClassVar[int] = 2

    @staticmethod
    def width(n: Index, log: Array, epsilon: float, v: float) -> Array:
        """Return the width of a mean of n samples at confidence 1 − δ."""
        rate = 16 * (1 / 8 + log) / n
        return np.asarray((12 * v) ** (1 / (1 + epsilon)) * rate ** (epsilon / (1 + epsilon)))

    def update(self, chosen: Index, rewards: Array, epsilon: float, v: float) -> None:
        """Learn one reward in each path, and compute the means of the next decision."""
        self.append(chosen, rewards)
        n = self.counts
        blocks = np.minimum(1 + 8 * self._next_log(), n / 2).astype(np.int64)
        length = n // np.maximum(blocks, 1)
        stale = (blocks > 0) & ((blocks != self.blocks) | (length != self.length))
        self.blocks, self.length = blocks, length
        path, arm = np.nonzero(stale)
        for part in chunks(len(path), self.used.stop):
            self._refresh(path[part], arm[part])

    def _refresh(self, path: Index, arm: Index) -> None:
        at = path, arm
        n, k, length = (a[at][:, None] for a in (self.counts, self.blocks, self.length))
        samples, given = self.given_by(path, arm)
        block = np.arange(int(k.max()) + 1)
        begun: Index = np.minimum(block, k)
        edges = np.cumsum(n)[:, None] - n + begun * length
        sums = np.add.reduceat(np.append(samples[given], 0.0), edges.ravel())
        means = np.where(block < k, sums.reshape(edges.shape) / length, np.inf)
        means.sort(axis=1)
        middle = np.take_along_axis(means, np.concatenate([(k - 1) // 2, k // 2], axis=1), axis=1)
        self.means[at] = middle.mean(axis=1)


@dataclass(eq=False)
class CatoniMeans(RobustMeans):
    """The root m of Σ_i ψ(α(X_i − m)), ψ(x) = sign(x) ln(1 + |x| + x²/2), where v ≥ Var X.

    α² = 2 ln(1/δ) / (n (v + 2v ln(1/δ)/(n − 2 ln(1/δ)))), for n ≥ 4 ln(1/δ)

    α changes at every decision: Newton's method reads all samples two or three times.
    """

    def needed(self, log: Array) -> Array:
        """Return the number of samples that a mean needs, where `log` is ln(1/δ)."""
        return np.maximum(4 * log, self.first)

    @staticmethod
    def width(n: Index, log: Array, epsilon: float, v: float) -> Array:
        """Return the width of a mean of n samples at confidence 1 − δ."""
        return 2 * np.sqrt(v * log / n)

    def update(self, chosen: Index, rewards: Array, epsilon: float, v: float) -> None:
        """Learn one reward in each path, and compute the means of the next decision."""
        self.append(chosen, rewards)
        log, n = self._next_log(), self.counts
        ready = n >= self.needed(log)
        n = np.where(ready, n, 4 * log)  # any number for which there is an α
        alpha = np.sqrt(2 * log / (n * (v + 2 * v * log / (n - 2 * log)))) * ready
        for rows in chunks(self.paths, self.used.stop):
            if ready[rows].any():
                self._solve(rows, alpha[rows])

    def _solve(self, rows: slice, alpha: Array) -> None:
        """Find the roots by Newton's method, halving steps that lead away from the root.

        The last step, of at most 1e-6/α, leaves an error of about its square, 1e-12/α.
        """
        x, pulled = self.samples[rows, self.used], self.pulled[rows, self.used]
        size = self.arms + 1  # column 0 takes the samples that do not exist yet
        place = np.arange(len(x))[:, None] * size + pulled + 1

        def at(values: Array) -> Array:
            spread_out: Array = np.pad(values, ((0, 0), (1, 0))).ravel()[place]
            return spread_out

        def total(values: Array) -> Array:
            sums: Array = np.zeros(len(x) * size)
            sums += np.bincount(place.ravel(), values.ravel(), minlength=len(sums))
            return sums.reshape(-1, size)[:, 1:]

        alphas, root = at(alpha), self.means[rows]
        step, smallest, active = np.zeros_like(root), np.full_like(root, np.inf), alpha > 0
        for _ in range(200):
            z = alphas * (x - at(root + step))
            excess = np.abs(z) + z * z / 2
            psi = total(np.copysign(np.log1p(excess), z))
            slope = total((1 + np.abs(z)) / (1 + excess))
            better = active & (np.abs(psi) < smallest)
            root = np.where(better, root + step, root)
            smallest = np.where(better, np.abs(psi), smallest)
            newton = np.divide(psi, alpha * slope, out=np.zeros_like(psi), where=better)
            step = np.where(better, newton, np.where(active, step / 2, step))
            active = active & (alpha * np.abs(step) > 1e-6 + 1e-15 * alpha * np.abs(root))
            if not active.any():
                break
        self.means[rows] = root + step


ESTIMATORS: dict[str, type[RobustMeans]] = {
    "truncated": TruncatedMeans,
    "median_of_means": MediansOfMeans,
    "catoni": CatoniMeans,
}
