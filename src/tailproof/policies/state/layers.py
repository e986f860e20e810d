"""Samples kept apart on each level of accuracy."""

from dataclasses import dataclass

from tailproof.policies.state.base import Array, State

__all__ = ["Layers"]


@dataclass(eq=False)
class Layers(State):
    """The samples of each level: A = I + Σ x xᵀ, and a regression for each of r replicates.

    Attributes
    ----------
    blocks : array of shape (paths, levels, d, d + r)
        [S | θ¹ … θʳ] with A⁻¹ = SSᵀ, see `tailproof.policies.state.regression.absorb`.
    """

    blocks: Array
