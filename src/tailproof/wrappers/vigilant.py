"""A monitor that restarts any policy when the rewards of its arms have changed."""

import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from tailproof.checks import Count, Range, whole
from tailproof.policies.base import Array, Index, State
from tailproof.policies.state.base import ONE, ArmCounts, Counts, Rule
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["Vigilant"]

_FIRST = 15
"""The first rewards of an arm that differ divide the line into bins for its later ones."""
_MOST = 300
"""Rewards in which these are looked for: where a twentieth of visitors buy, 15 of them buy."""
_POWERS = np.array([1.5, 6.0])
_SHIFTS = np.array([0.4, 1.0, 2.5])
_BETS = len(_POWERS) + len(_SHIFTS)


@dataclass(eq=False)
class Watched(Wrapped):
    """The state inside, and the monitor's ranks of rewards since the last restart.

    Where the offers vary, all arms share the place of arm 0.

    Attributes
    ----------
    since, restarts : arrays of shape (paths,)
        Decisions since the last restart, and how many restarts there were.
    offer, varies : arrays of shape (paths, K, d) and (paths,)
        The vectors on offer at first, and 1 once there were others.
    seen, edges : arrays of shape (paths, K, phases) and (paths, K, phases, 15)
        How many rewards of each arm in each phase, and the first of them that differ in ascending
        order, +inf where missing.
    counts : array of shape (paths, K, phases, 31)
        How many of the later ones are below the first edge, equal to it, between it and the second…
    bets : array of shape (paths, K)
        How many of an arm's rewards were ranked.
    evidence : array of shape (paths, K, 2, bets)
        M of every bet that the rewards have fallen, and that they have risen.
    told : array of shape (paths,)
        The phase that `Vigilant.tell_phase` gave, −1 where decisions are counted.
    """

    since: Counts
    restarts: Counts
    offer: Annotated[Array, Rule(("arms", "dim"), finite=True)]
    varies: Counts
    seen: Annotated[Index, Rule(("arms", 1), least=0)]
    edges: Annotated[Array, Rule(("arms", 1, _FIRST), blank=math.inf)]
    counts: Annotated[Index, Rule(("arms", 1, 2 * _FIRST + 1), least=0)]
    bets: ArmCounts
    told: Annotated[Index, Rule(least=-1, blank=-1)]
    evidence: Annotated[Array, Rule(("arms", 2, _BETS), finite=True)]

    def forget(self, rows: Index) -> None:
        """Forget the rewards of some paths."""
        for name in ("since", "seen", "counts", "bets", "evidence"):
            getattr(self, name)[rows] = 0
        self.edges[rows] = math.inf

    def compare(self, arms: Array) -> None:
        """Note where the offer differs from the first offer; there, begin again with all arms."""
        first = np.flatnonzero(self.decisions == 0)
        k = arms.shape[1]
        self.offer[first, :k] = arms[first]
        same = (self.offer[:, :k] == arms).all(axis=(1, 2)) & (k == self.arms)
        new = np.flatnonzero(~same & (self.varies == 0))
        if len(new):
            self.forget(new)
            self.varies[new] = 1

    def watch(self, chosen: Index, y: Array, phase: Index) -> Array:
        """Add one reward in each path; return the evidence on its arm, of shape (paths, 2)."""
        key = np.where(self.varies > 0, 0, chosen)
        paths = np.arange(self.paths)
        self.seen[paths, key, phase] += ONE
        few = np.isinf(self.edges[paths, key, phase, -1])
        few &= self.seen[paths, key, phase] <= _MOST
        young, old = np.flatnonzero(few), np.flatnonzero(~few)
        if len(young):
            self._divide((young, key[young], phase[young]), y[young])
        if len(old):
            self._bet((old, key[old], phase[old]), y[old])
        evidence: Array = self.evidence[paths, key].mean(axis=2)
        return evidence

    def _divide(self, at: tuple[Index, Index, Index], y: Array) -> None:
        """Make rewards of some paths edges if they differ from those before."""
        edges = self.edges[at]
        new = np.flatnonzero((edges != y[:, None]).all(axis=1))
        edges[new, -1] = y[new]
        self.edges[at] = np.sort(edges, axis=1)

    def _bet(self, at: tuple[Index, Index, Index], y: Array) -> None:
        """Update the evidence of some paths by a reward, ranked among those in the bins."""
        edges = self.edges[at]
        place = 2 * (edges < y[:, None]).sum(axis=1) + (edges == y[:, None]).any(axis=1)
        self.counts[*at, place] += ONE
        upto = self.counts[at].cumsum(axis=1)
        n = upto[:, -1]
        upto = upto[np.arange(len(y)), place] / n
        share = self.counts[*at, place] / n
        fall, rise = _mass(1 - upto, share), _mass(upto - share, share)
        factor = np.stack([fall, rise], axis=1) / share[:, None, None]
        arm = at[:2]
        self.bets[arm] += ONE
        m = self.bets[arm]
        new = math.log(2) * (1 / np.log(m + 1) - 1 / np.log(m + 2))
        self.evidence[arm] = (self.evidence[arm] + new[:, None, None]) * factor


def _mass(low: Array, share: Array) -> Array:
    """Return the mass that every bet on a rise has between `low` and `low + share`."""
    u = np.clip(np.stack([low, low + share]), 0, 1)[..., None]
    shifted = np.arctan(np.tan(math.pi * (u - 0.5)) - _SHIFTS) / math.pi
    below: Array = np.concatenate([u**_POWERS, shifted], axis=-1)
    return np.asarray(below[1] - below[0])


@dataclass(frozen=True)
class Vigilant(Wrapper[Watched]):
    """Any policy A, restarted where its rewards have changed.

    Restart when (M_1 + … + M_m)/m ≥ K/level for an arm,  M_j ← (M_j + w_n)·f_j(u),
    w_n = ln 2·(1/ln(n + 1) − 1/ln(n + 2)),  f_j densities on [0, 1] (the bets)

    u is the rank of the arm's n-th reward among the n so far, divided by n. Under no change the
    ranks are independent and uniform, whatever the law of the rewards, so that M_j has the mean
    Σ w ≤ 1: a bet of w_n that a change begins with reward n, which pays f_j(u) from then on.

    *Where nothing changes, a path is restarted with probability at most `level`, ever*, for any
    continuous law, without a mean, of any scale, and for any policy inside (Ville's inequality for
    every arm, and a union bound; arms that come later add level·ln(K/K₀)). Where rewards tie, as
    zeros do, bets are fair on average over all orders but not after each tie: measured, 3 to 12 %
    of paths are restarted in 3000 decisions at level = 0.1. All of this holds where arms are known
    by number, and for vectors as long as the offer stays the same. Where offers vary, as with
    contexts, all rewards are ranked together, only bets on a fall count, and M ≥ 1/level restarts:
    the statement is then for policies that do not get worse and offers that come from one law, and
    measured.

    With a `period`, such as a week, rewards are ranked among those of the same arm and the same
    phase, such as the day of the week, and the bets of an arm go on over its phases. So a cycle is
    no change, and a price that changes still is a change; `level` holds if each phase has laws of
    its own. Rewards that vary in common without a period, as on a holiday or in a campaign, restart
    the policy. Where the best arm changes with the weekday, let the weekday be a feature.

    It sees changes of the arms that are pulled: in the size of rewards; with many zeros, in the
    share of rewards that are not zero; with several pulls a decision, in their median. Much less
    noise is a change, too; more noise moves ranks both ways, and hardly counts. It cannot see that
    an arm which is not pulled has become better. Where that matters, let A forget in any case:
    ``Vigilant(Renewed(policy, memory=20_000))``.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    level : float
        The probability of a restart where nothing changes.
    period : int, optional
        The length of a cycle of the rewards, in decisions. Where a clock says the phase, see
        `tell_phase`.
    phases : int
        Into how many equal parts the period is cut; each needs 15 different rewards of an arm, or
        300, before the next reward is ranked.

    Examples
    --------
    >>> from tailproof import LinStudentUCB, environments, noise, simulate
    >>> moving = environments.k_armed(
    ...     noise.Cauchy(), locations=(0, 2), motion=environments.motions.Swap(at=(1000,))
    ... )
    >>> student = LinStudentUCB()
    >>> result = simulate(
    ...     {"alone": student, "watched": Vigilant(student)}, moving, horizon=2000, paths=20
    ... )
    >>> bool(result.mean("watched")[-1] < 0.5 * result.mean("alone")[-1])
    True

    A state has `restarts`, how many there were, and `since`, the decisions since the last restart.

    The first 15 rewards of an arm that differ, among 300 at most, only divide the line: later ones
    are ranked by the edge that they equal, or the edges that they lie between, ties sharing the bet
    evenly, so that a state takes 460 bytes an arm. The bets are b u^(b−1)
    with b = 1.5, 6, which suit light tails, and (1 + x²)/(1 + (x − Δ)²), x = tan π(u − ½), the
    likelihood ratios of Cauchy noise shifted by Δ = 0.4, 1, 2.5; each for rises and mirrored.

    Source: our own. Ranks as bets are the conformal martingales of Vovk, Nouretdinov and Gammerman
    2003; bets on every time of change follow Shiryaev 1963 and Roberts 1966; the inequality is
    Ville's of 1939. Differences: bins; weights w that sum to one, so that the level holds for ever.

    Kind: around a policy.
    Needs: nothing.
    Pulls: as its policy.
    Learns without a mean: as its policy.
    """

    level: Annotated[float, Range(at_least=1e-12, below=1)] = field(kw_only=True, default=0.01)
    period: Count | None = field(kw_only=True, default=None)
    phases: Annotated[int, Range(at_least=1, at_most=1000)] = field(kw_only=True, default=7)

    def tell_phase(self, state: Watched, phase: int) -> None:
        """Say in which phase the decisions were made whose rewards are learned next.

        For a clock: the day of the week, say. Until it is called, decisions are counted, and a
        period has `period` decisions.

        >>> from tailproof import UCB1
        >>> weekly = Vigilant(UCB1(), period=7000, phases=7)
        >>> state = weekly.init(paths=1, arms=2, dim=2)
        >>> weekly.tell_phase(state, 6)
        >>> weekly.learn(state, np.eye(2)[None], [0], [[1.0]])
        >>> state.seen[0, 0].tolist()
        [0, 0, 0, 0, 0, 0, 1]
        """
        last = state.seen.shape[2] - 1
        state.told[:] = whole("phase", phase, at_least=0, at_most=last)

    def _init(self, paths: int, arms: int, dim: int) -> Watched:
        phases = 1 if self.period is None else self.phases
        return Watched.around(
            self.policy.init(paths, arms, dim),
            seen=np.zeros((paths, arms, phases), dtype=np.int64),
            edges=np.full((paths, arms, phases, _FIRST), math.inf),
            counts=np.zeros((paths, arms, phases, 2 * _FIRST + 1), dtype=np.int64),
        )

    def _phase(self, state: Watched) -> Index:
        if self.period is None:
            return np.zeros(state.paths, dtype=np.int64)
        counted = state.decisions % self.period * self.phases // self.period
        return np.where(state.told >= 0, state.told, counted)

    def _learn_weighted(
        self, state: Watched, arms: Array, chosen: Index, rewards: Array, propensity: Array | None
    ) -> None:
        super()._learn_weighted(state, arms, chosen, rewards, propensity)
        if self.view != "arms":
            state.compare(arms)
        middle = (rewards.shape[1] - 1) // 2
        y = rewards[:, 0] if middle == 0 else np.partition(rewards, middle, axis=1)[:, middle]
        fall, rise = state.watch(chosen, y, self._phase(state)).T
        state.since += ONE
        together = state.varies > 0
        changed = np.where(together, fall, (fall + rise) / (2 * state.arms)) >= 1 / self.level
        if changed.any():
            self._restart(state, np.flatnonzero(changed))

    def _restart(self, state: Watched, rows: Index) -> None:
        blank: State = self.policy.init(len(rows), state.arms, state.dim)
        state.inner.put(rows, blank)
        state.forget(rows)
        state.restarts[rows] += 1
