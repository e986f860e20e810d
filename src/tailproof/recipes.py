"""Recipes as text: ``filtered(oful(noise_scale=0.45), repeats=15)``.

The text is the Python call, with names in any case and with or without underscores. It can name
whatever the library exports. A guest takes the name of its bandit as a string:
``auto_filtered(river('UCB', delta=1))``. A class of your own is ``module:Class``, where the caller
allows imports: ``filtered(mine:MedSA(bonus=2), repeats=15)``.
"""

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tailproof import bestarm, environments, noise, policies, wrappers
from tailproof.checks import meant
from tailproof.integrations import guests
from tailproof.own_code import imported, placeholders
from tailproof.stats import aims, estimators

__all__ = ["build", "names", "snake_case"]

_KINDS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "noise": ((noise,), (noise.Noise, noise.Varying)),
    "policy": ((policies, wrappers, bestarm), policies.Policy),
    "estimator": ((estimators,), estimators.Estimator),
    "aim": ((estimators, aims), aims.Aim),
    "environment": ((environments,), None),
    "motion": ((environments.motions,), environments.motions.Motion),
    "guest": ((guests,), guests.Guest),
    "part": ((guests,), guests.Made),
}
"""The modules of each kind, and the class of what is built."""
_WORDS = {"true": True, "false": False, "none": None}  # in any case


@cache
def names(kind: str) -> dict[str, Callable[..., Any]]:
    """Return what can be built, by its name on the command line.

    >>> sorted(names("aim"))
    ['capped_mean', 'location', 'mean', 'median', 'quantile']
    """
    modules, base = _KINDS[kind]
    builders = {}
    for module in modules:
        for name in module.__all__:
            thing = vars(module).get(name)  # without importing what a module loads lazily
            if kind == "environment":
                fits = inspect.isfunction(thing) and "noise" in thing.__annotations__
            elif kind in ("guest", "part"):
                made = inspect.isfunction(thing) and thing.__annotations__["return"]
                fits = inspect.isclass(made) and issubclass(made, base)
            else:
                fits = inspect.isclass(thing) and issubclass(thing, base)
            if fits and thing is not wrappers.Wrapper and not inspect.isabstract(thing):
                builders[snake_case(name)] = thing
    return builders


def build(kind: str, text: str, *first: Any, imports: bool = False) -> Any:
    """Build what the text describes; the arguments `first` go before those in the text.

    With `imports`, ``module:name`` is imported, which runs the code of that module: only for text
    that the user types, not for text from a file or a request.

    >>> build("policy", "filtered(oful(noise_scale=0.45), repeats=15, estimator=median)")
    Filtered(policy=OFUL(noise_scale=0.45, norm_bound=1.0, ridge=1.0, delta=0.01, bonus=1.0),
    repeats=15, estimator=Median(), fewest=None)
    >>> build("policy", "auto_filtered(vw('--cb_explore_adf --squarecb', view='arms'))").policy
    VW(arguments='--cb_explore_adf --squarecb', looks_at='arms')
    >>> build("aim", "quantile(0.95)")
    Quantile(level=0.95)
    >>> build("noise", "mixture((normal, student_t(1, scale=9)), (0.9, 0.1))")
    Mixture(laws=(Normal(scale=1.0), StudentT(df=1, scale=9)), weights=(0.9, 0.1), scale=1.0)
    >>> build("aim", "mode")
    Traceback (most recent call last):
    ValueError: aim must be one of capped_mean, location, mean, median, quantile, got 'mode'
    """
    plain, references = placeholders(text.strip())
    if references and not imports:
        raise ValueError(
            f"{kind} {text!r} names code of your own, which can only be typed where policies are "
            "simulated or judged: text from a file or a journal imports nothing"
        )
    try:
        tree = ast.parse(plain, mode="eval").body
        ast.unparse(tree)  # fails here if it is nested too deeply
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _not_a_recipe(kind, text) from None
    return _Reader(references).recipe(kind, tree, *first)


def snake_case(name: str) -> str:
    """Return a class name in lower case, with underscores between its words.

    >>> [snake_case(name) for name in ("MeanOfMedians", "SupBTC", "StudentT", "MoM", "LinGapE")]
    ['mean_of_medians', 'sup_btc', 'student_t', 'mom', 'lin_gap_e']
    >>> [snake_case(name) for name in ("ClippedSGDUCB", "XYAdaptive", "HvtUCB", "UCB1")]
    ['clipped_sgd_ucb', 'xy_adaptive', 'hvt_ucb', 'ucb1']
    """
    return re.sub(
        r"(?<=\w)(?=[A-Z][a-z])|(?<=[a-z]{2})(?=[A-Z])|(?<=[A-Z])(?=UCB)", "_", name
    ).lower()


@dataclass(frozen=True)
class _Reader:
    """Builds what a syntax tree describes; `own` maps stand-ins to the ``module:name`` meant."""

    references: Mapping[str, str]

    def recipe(self, kind: str, tree: ast.expr, *first: Any, nested: bool = False) -> Any:
        """Return what a name or a call describes."""
        call = tree if isinstance(tree, ast.Call) else ast.Call(func=tree, args=[], keywords=[])
        text = self._text(tree)
        if not isinstance(call.func, ast.Name) or any(word.arg is None for word in call.keywords):
            raise _not_a_recipe(kind, text)
        name = call.func.id
        if name in self.references:
            make = imported(self.references[name])
            ready = call is not tree and not callable(make)  # such as LAW = Odd(2.0)
            if ready or (inspect.isclass(make) and not nested and not _is_kind(kind, make)):
                return _checked(kind, self.references[name], make, nested)
        else:
            make = _known(kind, name)
        args = [*first, *(self.value(arg, kind) for arg in call.args)]
        keywords = {word.arg: self.value(word.value, kind) for word in call.keywords if word.arg}
        made = _called(make, text, args, keywords, len(first))
        return (
            _checked(kind, self.references[name], made, nested) if name in self.references else made
        )

    def value(self, tree: ast.expr, near: str) -> Any:
        """Return a literal, a tuple of values, or a recipe, of the kind `near` if it has one."""
        if isinstance(tree, ast.Tuple | ast.List):
            return tuple(self.value(part, near) for part in tree.elts)
        name = tree.func if isinstance(tree, ast.Call) else tree
        if isinstance(name, ast.Name):
            if name.id in self.references:
                return self.recipe(near, tree, nested=True)
            key = name.id.replace("_", "").lower()
            if key in _WORDS:
                return _WORDS[key]
            for kind in (near, *_KINDS):
                if key in {known.replace("_", "") for known in names(kind)}:
                    return self.recipe(kind, tree)
        try:
            return ast.literal_eval(tree)
        except (ValueError, TypeError):
            text = self._text(tree)
            known = [other for kind in _KINDS for other in names(kind)]
            hint = meant(name.id, known) if isinstance(name, ast.Name) else ""
            raise ValueError(f"{text!r} is neither a value nor a known name{hint}") from None

    def _text(self, tree: ast.expr) -> str:
        text = ast.unparse(tree)
        for stand_in, reference in self.references.items():
            text = text.replace(stand_in, reference)
        return text


def _known(kind: str, name: str) -> Callable[..., Any]:
    """Return what a name stands for, in any case and with or without underscores."""
    among = names(kind) | (names("guest") if kind == "policy" else {})
    known = {other.replace("_", ""): thing for other, thing in among.items()}
    key = name.replace("_", "").lower()
    if key in known:
        return known[key]
    choices, hint = sorted(names(kind)), meant(name, among)
    if hint and len(choices) > 10:
        raise ValueError(f"{kind} {name!r} is unknown{hint}")
    raise ValueError(f"{kind} must be one of {', '.join(choices)}, got {name!r}{hint}")


def _called(
    make: Callable[..., Any], text: str, args: list[Any], keywords: dict[str, Any], hidden: int
) -> Any:
    """Call what was named; the `hidden` first arguments were not typed."""
    signature = inspect.signature(make)
    if hidden and not signature.parameters:
        raise ValueError(f"{text} must take the noise: def {make.__name__}(noise)")
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        parameters = list(signature.parameters)[hidden:]
        hint = "".join(meant(word, parameters) for word in keywords if word not in parameters)
        raise ValueError(
            f"{text}: {error}; it takes {', '.join(parameters) or 'nothing'}{hint}"
        ) from None
    return make(*args, **keywords)


def _checked(kind: str, name: str, thing: Any, nested: bool) -> Any:
    """Raise ``ValueError`` unless the thing is of the kind that was asked for."""
    if not nested and not _is_kind(kind, type(thing)):
        made = thing if isinstance(thing, type) else type(thing)
        raise ValueError(f"{name} must make a {kind} of this library, got {made.__name__}")
    return thing


def _is_kind(kind: str, thing: type) -> bool:
    """Return whether the objects of a class are of a kind."""
    return issubclass(thing, environments.Bandit if kind == "environment" else _KINDS[kind][1])


def _not_a_recipe(kind: str, text: str) -> ValueError:
    return ValueError(
        f"{kind} must be a name or a call like name(key=1), got {text!r}; code of your own is "
        "module:Name"
    )


def __dir__() -> list[str]:
    return __all__
