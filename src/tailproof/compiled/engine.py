"""Which policies have a compiled form, and how a compiled policy is played."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tailproof.checks import require
from tailproof.compiled import (
    arms,
    huber,
    loop,
    money,
    published,
    quantiles,
    replicated,
    ridge,
    student,
)
from tailproof.compiled.filters import filtered
from tailproof.compiled.forms import Form, Sizes, none_to_estimate
from tailproof.compiled.streams import stream_keys
from tailproof.compiled.targets import Bound, Target, apart, bind, compile_for, lent, numpy_of_numba
from tailproof.compiled.tuned import auto_filtered
from tailproof.compiled.worlds import World, world_of
from tailproof.environments.linear import Bandit
from tailproof.policies import (
    CRT,
    MENU,
    OFUL,
    UCB1,
    LinStudentUCB,
    LinTS,
    MoM,
    OrderStatisticUCB,
    Policy,
    RevenueUCB,
    SupBMM,
    SymmetricOFUL,
    ThompsonSampling,
    Uniform,
)
from tailproof.typing import Array, Index
from tailproof.wrappers.auto import AutoFiltered
from tailproof.wrappers.filtered import Filtered

__all__ = ["FORMS", "Game", "form_of"]

FORMS: dict[type[Policy[Any]], Callable[[Any, Sizes], Form]] = {
    UCB1: arms.ucb1,
    ThompsonSampling: arms.thompson_sampling,
    Uniform: arms.uniform_choice,
    OFUL: ridge.oful,
    LinTS: ridge.lin_ts,
    LinStudentUCB: student.lin_student_ucb,
    RevenueUCB: money.revenue_ucb,
    SymmetricOFUL: huber.symmetric_oful,
    OrderStatisticUCB: quantiles.order_statistic_ucb,
    CRT: published.crt,
    MoM: published.mom,
    MENU: replicated.menu,
    SupBMM: replicated.sup_bmm,
}
"""The policies that have a compiled form, alone and in `tailproof.Filtered`."""
_MOST_LOCAL = 2**16  # floats that a thread of a GPU may keep: 512 kB
_LANES = 8  # numbers that a core with AVX-512 adds at a time
_1D, _2D, _BITS = "float64[::1]", "float64[:, ::1]", "uint64[::1]"
_INDEX = f"void({_1D}, {_1D}, {_2D}, int64, {_BITS}, {_1D}, {_1D})"
_LEARN = f"void({_1D}, {_1D}, {_2D}, int64, {_1D}, int64, {_1D})"
"""The signatures of `Form.index` and `Form.learn`."""
_THREADS = 64  # of a block: two warps, so that each thread has the most registers


def form_of(policy: Policy[Any], sizes: Sizes) -> Form:
    """Return the compiled form of a policy, or raise if it has none.

    >>> form_of(UCB1(), Sizes(arms=3, dim=3, decisions=100, width=8)).state
    16
    """
    if type(policy) is Filtered:
        return filtered(policy, lambda inside: form_of(inside, sizes))
    if type(policy) is AutoFiltered:
        return auto_filtered(policy, sizes, form_of)
    make = FORMS.get(type(policy))
    if make is None:
        names = ", ".join(kind.__name__ for kind in FORMS)
        raise ValueError(
            f"{type(policy).__name__} has no compiled form; these have one: {names}, alone, "
            "Filtered and AutoFiltered; the other engines run every policy"
        )
    return make(policy, sizes)


@dataclass(frozen=True, eq=False)
class Game:
    """A policy in a bandit, ready to be played on any paths.

    A path depends on the seed, the name and the settings, and not on the paths it is played with.

    Parameters
    ----------
    policy, bandit, name, seed :
        As for `simulate`.
    horizon, delay : int
    marks : tuple of int
        The checkpoints, in ascending order; the last is the horizon.
    """

    policy: Policy[Any]
    bandit: Bandit
    name: str
    horizon: int
    marks: tuple[int, ...]
    seed: int = 0
    delay: int = 0

    @cached_property
    def form(self) -> Form:
        """The policy, behind its filter if it has one."""
        arms, dim = self.bandit.contexts.arms, self.bandit.contexts.dim
        width = -(-arms // _LANES) * _LANES
        return form_of(self.policy, Sizes(arms, dim, self.horizon // self.policy.pulls, width))

    @cached_property
    def world(self) -> World:
        """The bandit."""
        form = self.form
        world = world_of(
            self.bandit, self.horizon, form.vectors, self.policy.pulls, general=form.large
        )
        if self.delay and world.fresh:
            raise ValueError(
                f"delay={self.delay} has no compiled form where every decision has new arms; "
                "the other engines take it"
            )
        return world

    def tree(self, loop_over: Callable[..., None], **more: Any) -> Bound:
        """Return the loop over paths with all its placeholders filled, and `more` of the cores'."""
        form, world = self.form, self.world
        lanes = _LANES if loop_over is loop.on_cores else 1
        width = -(-world.arms // lanes) * lanes
        played = bind(
            loop.play,
            start=form.start,
            index=apart(form.index, _INDEX) if form.large else form.index,
            begin=world.begin,
            renew=world.renew,
            move=world.move,
            learn=apart(form.learn, _LEARN) if form.large else form.learn,
            miss=bind(loop.miss, estimate=form.estimate or none_to_estimate),
            pay=bind(loop.pay, draw=world.draw),
        )
        inside = {"play": played}
        if loop_over is loop.on_cores:
            inside = {"each_path": bind(loop.each_path, **inside, **more)}
        return bind(
            loop_over,
            **inside,
            ARMS=world.arms,
            DIM=world.dim,
            WIDTH=width,
            LANES=lanes,
            OFFERS=(world.dim + form.rows, width) if world.reads else (1, 1),
            STATE=form.state,
            WORK=form.work,
            PULLS=form.pulls,
            LATE=max(1, self.delay * (form.pulls + 1)),
            FRESH=world.fresh,
            MORE_ROWS=form.rows > 0,
            PAYS_LOCATION=world.pays_location,
            ESTIMATES=form.estimate is not None,
        )

    @cached_property
    def on_cores(self) -> Any:
        """The compiled loop over paths, built once, since its tree of functions is large."""
        return compile_for("cores", self.tree(loop.on_cores, lend=lent()), entry=True)

    @cached_property
    def inputs(self) -> tuple[Any, ...]:
        """The arrays that all paths share."""
        form, world = self.form, self.world
        purposes = ("environment", "noise", f"policy {self.name}")
        keys = np.stack([stream_keys(self.seed, purpose) for purpose in purposes])
        plan: Index = np.array([self.horizon, self.policy.pulls, self.delay])
        p: Array = np.array(form.settings, dtype=np.float64)
        return (
            plan, np.array(self.marks), keys, p, world.numbers, world.vectors, world.laws,
            world.values, world.rows, world.changes, world.moves,
        )  # fmt: skip

    def play(self, first: int, paths: int, target: Target = "cores") -> tuple[Array, Array | None]:
        """Return regret and error at the marks, each of shape (paths, marks), from a path on."""
        regret = np.empty((paths, len(self.marks)))
        estimates = self.form.estimate is not None
        error = np.empty(regret.shape if estimates else (1, 1))
        if target == "gpu":
            with numpy_of_numba():
                self._on_gpu(first, regret, error)
        elif target == "cores":
            self.on_cores(first, *self.inputs, regret, error)
        else:
            run = compile_for(target, self.tree(loop.on_cores), entry=True)
            with np.errstate(all="ignore"):
                run(first, *self.inputs, regret, error)
        return regret, error if estimates else None

    def _on_gpu(self, first: int, regret: Array, error: Array) -> None:
        form, world = self.form, self.world
        floats = form.state + form.work + world.arms * (world.dim + form.rows) * world.reads
        require(
            floats <= _MOST_LOCAL,
            "engine",
            f"'compiled' for {self.policy!r}: on a GPU a path may take {_MOST_LOCAL} numbers",
            floats,
        )
        from numba import cuda

        tree = self.tree(loop.on_gpu)
        kernel = compile_for("gpu", bind(tree.function, **dict(tree.names), cuda=cuda), entry=True)
        blocks = -(-len(regret) // _THREADS)
        simulated = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
        threads = min(_THREADS, len(regret)) if simulated else _THREADS
        device = [cuda.to_device(array) for array in (regret, error)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*Grid size")  # few paths are no mistake
            if simulated:  # in Python, where words of 64 bits warn when they wrap around
                warnings.simplefilter("ignore", RuntimeWarning)
            kernel[blocks, threads](first, *map(cuda.to_device, self.inputs), *device)
        for array, on_device in zip((regret, error), device, strict=True):
            on_device.copy_to_host(array)
