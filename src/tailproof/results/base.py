"""What results of regret and of best arms share: arrays for each policy, and one file."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require
from tailproof.results.files import opened, write_file

__all__ = ["BaseResult", "PolicyResult"]


class PolicyResult:
    """The result of one policy: a dataclass of arrays, most of them with the paths axis first."""

    _shared: ClassVar[frozenset[str]] = frozenset()
    """The arrays that are the same for all paths."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without those that are None."""
        return {name: array for name, array in vars(self).items() if array is not None}

    @classmethod
    def joined(cls, chunks: Sequence[Self]) -> Self:
        """Return the chunks of paths as one result."""
        parts = [chunk.arrays() for chunk in chunks]
        return cls(
            **{
                name: first if name in cls._shared else np.concatenate([p[name] for p in parts])
                for name, first in parts[0].items()
            }
        )


P = TypeVar("P", bound=PolicyResult)


class BaseResult(Generic[P]):
    """A comparison of policies, and where it came from: the base of `Result` and `Identification`.

    A subclass is a dataclass.
    """

    settings: Mapping[str, Any]
    _format: ClassVar[str]
    """How its files begin, with a version."""
    _kind: ClassVar[type[PolicyResult]]
    """The type of the result of one policy."""
    _field: ClassVar[str]
    """The field that maps the policies' names to their results."""
    _common: ClassVar[tuple[str, ...]] = ()
    """The fields that are arrays for all policies, of the shape that each path has."""

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file of plain arrays and text; an existing file is refused."""
        arrays = {name: getattr(self, name) for name in self._common}
        for i, own in enumerate(self._each.values()):
            arrays |= {f"{name}{i}": array for name, array in own.arrays().items()}
        header = {"format": self._format, "policies": list(self._each), "settings": self.settings}
        return write_file(path, header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        with opened(path, cls._format) as (header, arrays):
            settings, common = header["settings"], {name: arrays[name] for name in cls._common}
            row = next((array.shape for array in common.values()), ())
            each, names = {}, [part.name for part in fields(cast(Any, cls._kind))]
            for i, policy in enumerate(header["policies"]):
                own = {name: arrays[f"{name}{i}"] for name in names if f"{name}{i}" in arrays}
                for name, array in own.items():
                    shape = row if name in cls._kind._shared else (settings["paths"], *row)
                    require(array.shape == shape, name, f"of shape {shape}", array.shape)
                each[policy] = cls._kind(**own)
            return cls(**{cls._field: each, "settings": settings}, **common)

    @property
    def _each(self) -> Mapping[str, P]:
        each: Mapping[str, P] = getattr(self, self._field)
        return each

    def _of(self, policy: str) -> P:
        require(policy in self._each, "policy", f"one of {', '.join(self._each)}", policy)
        return self._each[policy]
