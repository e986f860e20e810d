"""Policies, noise and bandits as scalar code of one path, for every core and for a GPU.

`simulate(…, engine="compiled")` plays whole paths in one compiled loop, and ``engine="cuda"`` does
so on a GPU. They need the extras `compiled` and `cuda`; importing this room imports neither.
"""

from tailproof.compiled.engine import FORMS, Game

__all__ = ["FORMS", "Game"]
