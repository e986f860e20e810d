"""What the results of regret and of best arms share: arrays for each policy, and one file."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require
from tailproof.formatting import short
from tailproof.notebooks import html
from tailproof.results.files import opened, write_file

if TYPE_CHECKING:
    import pandas

__all__ = ["BaseResult", "PolicyResult"]


class PolicyResult:
    """The result of one policy: a dataclass of arrays with the paths axis first."""

    _shared: ClassVar[tuple[str, ...]] = ()  # arrays without that axis

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without those that are None."""
        return {name: array for name, array in vars(self).items() if array is not None}

    def __repr__(self) -> str:
        shapes = (f"{name} of shape {array.shape}" for name, array in self.arrays().items())
        return f"<{type(self).__name__}: {', '.join(shapes)}>"

    @classmethod
    def joined(cls, chunks: Sequence[Self]) -> Self:
        """Return chunks of paths as one."""
        arrays = chunks[0].arrays()
        for name in arrays.keys() - set(cls._shared):
            arrays[name] = np.concatenate([chunk.arrays()[name] for chunk in chunks])
        return cls(**arrays)


P = TypeVar("P", bound=PolicyResult)


class BaseResult(Generic[P]):
    """A comparison of policies, with its settings."""

    settings: Mapping[str, Any]
    _format: ClassVar[str]  # how its files begin
    _by_policy: ClassVar[tuple[str, type[PolicyResult]]]  # a field and what it maps names to
    _common: ClassVar[tuple[str, ...]] = ()  # arrays that all policies and paths share

    def summary(self) -> dict[str, dict[str, float]]:
        """Return a row of numbers for each policy."""
        raise NotImplementedError

    def to_frame(self) -> "pandas.DataFrame":
        """Return the summary as a table with a row for each policy."""
        import pandas

        return pandas.DataFrame.from_dict(self.summary(), orient="index")

    def __repr__(self) -> str:
        paths = self.settings.get("paths", "some")
        return f"<{type(self).__name__} of {', '.join(self.summary())}: {paths} paths>"

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        rows = [[str(name), *map(short, row)] for name, *row in frame.itertuples()]
        words = [name.replace("_", " ") for name in map(str, frame.columns)]
        return html([["policy", *words], *rows])

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file of plain arrays and text; an existing file is refused."""
        by_policy: Mapping[str, P] = getattr(self, self._by_policy[0])
        arrays = {name: getattr(self, name) for name in self._common}
        for i, result in enumerate(by_policy.values()):
            arrays |= {f"{name}{i}": array for name, array in result.arrays().items()}
        header = {"format": self._format, "policies": list(by_policy), "settings": self.settings}
        return write_file(path, header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        field, kind = cls._by_policy
        names, by_policy = [part.name for part in fields(kind)], {}  # type: ignore[arg-type]
        with opened(path, cls._format) as (header, arrays):
            settings, common = header["settings"], {name: arrays[name] for name in cls._common}
            row = next((array.shape for array in common.values()), ())
            for i, policy in enumerate(header["policies"]):
                saved = {name: arrays[f"{name}{i}"] for name in names if f"{name}{i}" in arrays}
                for name, array in saved.items():
                    shape = row if name in kind._shared else (settings["paths"], *row)
                    require(array.shape == shape, name, f"of shape {shape}", array.shape)
                by_policy[policy] = kind(**saved)
            return cls(**{field: by_policy, "settings": settings}, **common)

    def _of(self, policy: str) -> P:
        by_policy: Mapping[str, P] = getattr(self, self._by_policy[0])
        require(policy in by_policy, "policy", f"one of {', '.join(by_policy)}", policy)
        return by_policy[policy]
