"""Choosing arms that span the space."""

from typing import Annotated

import numpy as np

from tailproof.policies.base import Array, Index, picked
from tailproof.policies.state.base import Rule

__all__ = ["Basis", "spanning", "spanning_basis"]


Basis = Annotated[Index, Rule(("dim",), least=-1, names_arms=True, blank=-1)]
"""Arms that span the space, −1 before they are found."""


def spanning(arms: Array) -> tuple[Index, Array]:
    """Return d arms that span the space, and the smallest eigenvalue of the sum of their x xᵀ.

    Each arm is the farthest from the span of the arms before it.

    >>> basis, least = spanning(np.array([[[1.0, 0.0], [2.0, 0.0], [2.0, 1.0]]]))
    >>> basis.tolist(), least.round(2).tolist()
    ([[2, 1]], [0.47])
    """
    paths, _, dim = arms.shape
    basis, left = np.empty((paths, dim), dtype=np.int64), arms
    nothing = 1e-24 * np.vecdot(arms, arms)  # rounding errors of a dependent arm are smaller
    for k in range(dim):
        norms = np.vecdot(left, left)
        norms = np.where(norms > nothing, norms, 0.0)
        if not (norms.max(axis=1) > 0).all():
            raise ValueError(f"the arms span {k} of {dim} dimensions; add arms or drop dimensions")
        basis[:, k] = norms.argmax(axis=1)
        x = picked(left, basis[:, k]) / np.sqrt(norms.max(axis=1))[:, None]
        left = left - np.matvec(left, x)[:, :, None] * x[:, None, :]
    spanned = arms[np.arange(paths)[:, None], basis]
    least: Array = np.asarray(np.linalg.svd(spanned, compute_uv=False)[:, -1] ** 2)
    return basis, least


def spanning_basis(basis: Index, arms: Array) -> Index:
    """Return a `Basis` in which paths without spanning arms have got them from these arms."""
    completed = basis.copy()
    new = np.flatnonzero(basis[:, 0] < 0)
    if len(new):
        completed[new] = spanning(arms[new])[0]
    return completed
