"""Catoni's mean of every arm, at the confidence δ = t⁻² of the next decision."""

from dataclasses import dataclass

import numpy as np

from tailproof.chunking import chunks
from tailproof.policies.state.base import Array, Index
from tailproof.policies.state.robust_means import RobustMeans

__all__ = ["CatoniMeans"]


@dataclass(eq=False)
class CatoniMeans(RobustMeans):
    """The root m of Σ_i ψ(α(X_i − m)), ψ(x) = sign(x) ln(1 + |x| + x²/2), where v ≥ Var X.

    α² = 2 ln(1/δ) / (n (v + 2v ln(1/δ)/(n − 2 ln(1/δ)))), for n ≥ 4 ln(1/δ)

    α and every mean change at each decision: Newton's method starts from the last root and takes
    two or three passes over all samples.
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
            found: Array = np.pad(values, ((0, 0), (1, 0))).ravel()[place]
            return found

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
