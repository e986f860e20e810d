"""A clock that tests set by hand."""

from dataclasses import dataclass

__all__ = ["Clock"]


@dataclass
class Clock:
    """The time of an agent, in seconds."""

    now: float = 1e9

    def __call__(self) -> float:
        return self.now
