"""What the results of regret and of best arms share: arrays for each policy, and one file."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import meant, require
from tailproof.formatting import several
from tailproof.notebooks import cells, html, latex
from tailproof.results.files import opened, write_file

if TYPE_CHECKING:
    import pandas

__all__ = ["BaseResult", "PolicyResult"]


class PolicyResult:
    """The result of one policy: a dataclass of arrays with the paths axis first."""

    _shared: ClassVar[tuple[str, ...]] = ()  # arrays without that axis

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without None; arrays of a mapping have two names.

        The array "a" of a mapping "metrics" has the name "metrics.a".
        """
        arrays: dict[str, NDArray[Any]] = {}
        for name, value in vars(self).items():
            if isinstance(value, Mapping):
                arrays |= {f"{name}.{key}": array for key, array in value.items()}
            elif value is not None:
                arrays[name] = value
        return arrays

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a result made of these arrays."""
        given: dict[str, Any] = {}
        for name, array in arrays.items():
            field, dot, key = name.partition(".")
            if dot:
                given.setdefault(field, {})[key] = array
            else:
                given[name] = array
        return cls(**given)

    @classmethod
    def _has_shape(cls, name: str, shape: tuple[int, ...], paths: int, row: Any) -> bool:
        """Return whether an array of a file has the shape of its name; a row is for one path."""
        return shape == (row if name in cls._shared else (paths, *row))

    def __repr__(self) -> str:
        shapes = (f"{name} of shape {array.shape}" for name, array in self.arrays().items())
        return f"<{type(self).__name__}: {', '.join(shapes)}>"

    @classmethod
    def joined(cls, chunks: Sequence[Self]) -> Self:
        """Return chunks of paths as one."""
        arrays = chunks[0].arrays()
        for name in arrays.keys() - set(cls._shared):
            arrays[name] = np.concatenate([chunk.arrays()[name] for chunk in chunks])
        return cls.of(arrays)


P = TypeVar("P", bound=PolicyResult)


class BaseResult(Generic[P]):
    """A comparison of policies, with its settings."""

    settings: Mapping[str, Any]
    _format: ClassVar[str]  # how its files begin
    _by_policy: ClassVar[tuple[str, type[PolicyResult]]]  # a field that is a mapping
    _common: ClassVar[tuple[str, ...]] = ()  # arrays that all policies and paths share

    def summary(self) -> dict[str, dict[str, float]]:
        """Return a row of numbers for each policy."""
        raise NotImplementedError

    def to_frame(self) -> "pandas.DataFrame":
        """Return the summary as a table with a row for each policy."""
        import pandas

        return pandas.DataFrame.from_dict(self.summary(), orient="index")

    def __repr__(self) -> str:
        count = self.settings.get("paths")
        paths = "some paths" if count is None else several(count, "path")
        return f"<{type(self).__name__} of {', '.join(self.summary())}: {paths}>"

    def _repr_html_(self) -> str:
        return html(self._cells())

    def _cells(self) -> list[list[str]]:
        """Return the summary as text, with a header, for notebooks and papers."""
        return cells(self.to_frame(), "policy")

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """Return the summary as a table for LaTeX with the package booktabs.

        With a caption the table floats; `label` is its name for references.
        """
        return latex(self._cells(), caption, label)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file of plain arrays and text; an existing file is refused."""
        by_policy: Mapping[str, P] = getattr(self, self._by_policy[0])
        arrays = {name: getattr(self, name) for name in self._common}
        for i, result in enumerate(by_policy.values()):
            arrays |= {_numbered(name, i): array for name, array in result.arrays().items()}
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
                for name in names:
                    start = f"{name}{i}."
                    more = [key for key in arrays if key.startswith(start)]
                    saved |= {f"{name}.{key.removeprefix(start)}": arrays[key] for key in more}
                for name, array in saved.items():
                    ok = kind._has_shape(name, array.shape, settings["paths"], row)
                    require(ok, name, f"of the shape of {row} on each path", array.shape)
                by_policy[policy] = kind.of(saved)
            return cls(**{field: by_policy, "settings": settings}, **common)

    def _of(self, policy: str) -> P:
        by_policy: Mapping[str, P] = getattr(self, self._by_policy[0])
        if policy not in by_policy:
            raise ValueError(
                f"policy must be one of {', '.join(by_policy)}, got {policy!r}"
                f"{meant(str(policy), by_policy)}"
            )
        return by_policy[policy]


def _numbered(name: str, i: int) -> str:
    """Return the name in a file of an array of the i-th policy.

    >>> _numbered("regret", 2), _numbered("metrics.a1", 2)
    ('regret2', 'metrics2.a1')
    """
    field, dot, key = name.partition(".")
    return f"{field}{i}{dot}{key}"
