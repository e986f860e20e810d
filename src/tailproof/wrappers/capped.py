"""A cap on extreme rewards, learned from them: the policy maximises the capped mean."""

from dataclasses import dataclass, field
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import Range
from tailproof.policies.base import Array, Index, State
from tailproof.policies.state.base import ROOM, Finite
from tailproof.policies.state.sales import SalesHistogram
from tailproof.wrappers.pilot import Piloted, Relearning

__all__ = ["Capped"]

_ENOUGH = 256
"""Purchases after which the unit stays: capped, they tell it to about a tenth."""
_FIRST = 4096
"""Decisions after which the unit stays in any case: to learn them again takes about 0.1 s."""


@dataclass(eq=False)
class Ranged(Piloted):
    """The state of the policy inside, its first decisions, and the purchases so far.

    Attributes
    ----------
    sales : SalesHistogram
        The purchases, that is, the rewards that are not zero, and the range.
    offset, unit : arrays of shape (paths,)
        A sees the reward `offset` as 0 and `offset` + `unit` as 1; both are in units of the first
        purchase, and `unit` is 0 while all rewards are equal.
    """

    sales: SalesHistogram
    offset: Finite
    unit: Finite

    def keeps(self, decisions: Index) -> NDArray[np.bool_]:
        """Return which paths, after this many decisions, keep the next decision."""
        few: NDArray[np.bool_] = self.sales.bought.sum(axis=1) < _ENOUGH
        return super().keeps(decisions) & few

    def cut(self, rewards: Array) -> Array:
        """Return rewards of shape (paths, n) within the range, in units of the first purchase."""
        rows = np.arange(self.paths).repeat(rewards.shape[1])
        x = self.sales.relative(rows, rewards.ravel())
        return np.clip(x, self.sales.low[rows], self.sales.high[rows]).reshape(rewards.shape)


@dataclass(frozen=True)
class Capped(Relearning[Ranged]):
    """Any policy A, given rewards clipped to one range for all arms, in units of their spread.

    A learns (min(max(r, low), high) − offset)/unit, where high = max(Q(share), 0), low =
    min(Q(1 − share), 0), Q the quantiles of the rewards that are not zero, each arm weighing the
    same, and unit is the standard deviation of all rewards within the range

    So A maximises `tailproof.CappedMean`, up to the width of a bin, and sees noise of scale one, as
    `UCB1` and `OFUL` assume. The offset is the number nearest to zero between the (1 − share)- and
    share-quantiles of all rewards: zero if many visitors buy nothing, and otherwise most of a
    constant that all rewards share. Multiples of all rewards change no decision.

    The range is learned as long as rewards come, from a histogram of 4 kB an arm, whose bins
    are a factor 2^¼ wide. When the number of decisions has doubled, offset and unit are learned
    anew, and A learns all of them again. This ends with 256 rewards that are not zero or 4096
    decisions, which are kept until then, at 8(K d + pulls + 1) bytes each for every path.
    `estimate` is in the units of the rewards, less the offset.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    share : float
        The share of the rewards that are not zero below the cap, above ½.

    Examples
    --------
    >>> from tailproof import UCB1
    >>> policy, rng = Capped(UCB1(), share=0.95), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(2000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, 100 * chosen[:, None] + 50 * rng.pareto(0.9, (1, 1)))
    >>> int(state.inner.counts[0].argmax())
    1

    Source: capping at a percentile is common in experiment platforms; Dixon 1960 for winsorising.
    Differences: the range is learned, not given; later changes of it hold for new rewards only.
    A reward beyond 2³² times the first nonzero reward counts as 2³² times that reward.

    Kind: around a policy.
    Needs: nothing.
    Pulls: as its policy.
    Learns without a mean: yes.
    """

    share: Annotated[float, Range(above=0.5, below=1)] = field(kw_only=True, default=0.99)

    @property
    def invariances(self) -> frozenset[str]:
        """The unit does not matter; zero means no purchase, so that an offset does."""
        return frozenset({"units"})

    def with_scale(self, scale: float) -> Self:
        """Raise ``ValueError``: capped rewards are brought to a scale of one."""
        raise ValueError(f"the noise scale cannot be set: {self!r} learns it")

    def estimate(self, state: Ranged) -> Array | None:
        """Return the estimate of the policy inside, in the units of the rewards."""
        inside = super().estimate(state)
        return None if inside is None else inside * (state.unit * state.sales.unit)[:, None]

    def _init(self, paths: int, arms: int, dim: int) -> Ranged:
        return Ranged.around(
            self.policy.init(paths, arms, dim),
            sales=SalesHistogram.start(paths, arms, dim),
            settle=_FIRST,
            pilot_rewards=np.zeros((paths, ROOM, self.pulls)),
        )

    def _rewards(self, state: Ranged, rewards: Array) -> Array:
        unit = np.where(state.unit > 0, state.unit, 1.0)
        return (state.cut(rewards) - state.offset[:, None]) / unit[:, None]

    def _due(self, age: Index) -> NDArray[np.bool_]:
        powers_of_two: NDArray[np.bool_] = age & (age - 1) == 0
        return powers_of_two

    def _take_in(self, state: Ranged, chosen: Index, rewards: Array) -> None:
        for reward in rewards.T:
            state.sales.update(chosen, reward, self.share)
        asleep = state.unit == 0
        if asleep.any():  # A learned zeros so far, which are the same in any unit
            squares = np.square(state.cut(rewards) - state.offset[:, None]).sum(axis=1)
            seen = (state.decisions + 1) * self.pulls
            state.unit[asleep] = np.sqrt(squares / seen)[asleep]

    def _learn_on(
        self,
        state: Ranged,
        inner: State,
        rows: Index | slice,
        arms: Array,
        chosen: Index,
        raw: Array,
        propensity: Array | None,
    ) -> None:
        cut = self._rewards(state, raw)
        self.policy.learn_unchecked(inner, arms[rows], chosen[rows], cut[rows], propensity)

    def _learn_again(self, part: Ranged, age: int) -> None:
        rewards = part.pilot_rewards[:, :age].reshape(part.paths, -1)
        seen = np.sort(part.cut(rewards))
        beyond = int((1 - self.share) * seen.shape[1] + 1e-9)
        part.offset = np.clip(0.0, seen[:, beyond], seen[:, -1 - beyond])
        part.unit = seen.std(axis=1)
        part.inner = self.policy.init(part.paths, part.arms, part.dim)
        again = self._rewards(part, rewards).reshape(part.paths, age, -1)
        part.teach(self.policy, part.inner, part.pilot_arms, again)
