"""The settings of a recipe: an error for a misspelled setting names the right one."""

from functools import cache
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, Self

from tailproof.checks import meant
from tailproof.formatting import several

__all__ = ["Named"]


class _OwnSignature:
    """Shows the signature of ``__init__`` for a class that also has a ``__new__``."""

    def __get__(self, instance: object, kind: type) -> Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        return _signature(kind)


class Named:
    """A base class of recipes; an error for a misspelled setting suggests the right one.

    >>> from tailproof import OFUL, UCB1
    >>> OFUL(noise_scal=1)
    Traceback (most recent call last):
    TypeError: OFUL has no setting noise_scal; did you mean noise_scale? It has noise_scale,
    norm_bound, ridge, delta, bonus
    >>> UCB1(2.0)
    Traceback (most recent call last):
    TypeError: UCB1 takes its settings by name, such as UCB1(bonus=2.0)
    """

    if not TYPE_CHECKING:  # type checkers read __init__
        __signature__ = _OwnSignature()

        def __new__(cls, *args: Any, **settings: Any) -> Self:
            """Check the names of settings before ``__init__`` takes them."""
            if args or settings:
                _check(cls, args, settings)
            return super().__new__(cls)


@cache
def _signature(kind: type) -> Signature:
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return Signature()
    of_init = signature(kind.__init__)  # type: ignore[misc]
    return of_init.replace(parameters=list(of_init.parameters.values())[1:])


def _check(kind: type, args: tuple[Any, ...], settings: dict[str, Any]) -> None:
    """Raise ``TypeError`` for unknown settings; Python itself reports missing settings."""
    parameters = _signature(kind).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    if Parameter.VAR_KEYWORD not in kinds:
        for name in settings.keys() - parameters.keys():
            hint = meant(name, parameters) or "."
            takes = ", ".join(parameters) or "none"
            raise TypeError(f"{kind.__name__} has no setting {name}{hint} It has {takes}")
    by_place = sum(k in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for k in kinds)
    if len(args) > by_place and Parameter.VAR_POSITIONAL not in kinds:
        first = next(iter(parameters), None)
        if by_place or first is None:
            most = several(by_place, "setting") if by_place else "no settings"
            raise TypeError(f"{kind.__name__} takes {most} by place, got {len(args)}")
        example = f"{kind.__name__}({first}={args[0]!r:.40})"
        raise TypeError(f"{kind.__name__} takes its settings by name, such as {example}")
