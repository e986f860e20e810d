"""Recipes as text: ``filtered(oful(noise_scale=0.45), repeats=15)``.

The text is the Python call, with names in any case and with or without underscores. It can name
whatever the library exports. A guest takes the name of its bandit as a string:
``auto_filtered(river('UCB', delta=1))``.
"""

import ast
import inspect
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any

from tailproof import bestarm, environments, noise, policies, wrappers
from tailproof.integrations import guests
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
    found = {}
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
                found[snake_case(name)] = thing
    return found


def build(kind: str, text: str, *first: Any) -> Any:
    """Build what the text describes; the arguments `first` go before those in the text.

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
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        ast.unparse(tree)  # fails here if it is nested too deeply
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _not_a_recipe(kind, text) from None
    return _recipe(kind, tree, *first)


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


def _recipe(kind: str, tree: ast.expr, *first: Any) -> Any:
    call = tree if isinstance(tree, ast.Call) else ast.Call(func=tree, args=[], keywords=[])
    text = ast.unparse(tree)
    if not isinstance(call.func, ast.Name) or any(word.arg is None for word in call.keywords):
        raise _not_a_recipe(kind, text)
    among = names(kind) | (names("guest") if kind == "policy" else {})
    known = {name.replace("_", ""): thing for name, thing in among.items()}
    key = call.func.id.replace("_", "").lower()
    if key not in known:
        choices = ", ".join(sorted(names(kind)))
        near = get_close_matches(call.func.id.lower(), among, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{kind} must be one of {choices}, got {call.func.id!r}{hint}")
    args = [*first, *(_value(arg, kind) for arg in call.args)]
    keywords = {word.arg: _value(word.value, kind) for word in call.keywords if word.arg}
    signature = inspect.signature(known[key])
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        takes = ", ".join(list(signature.parameters)[len(first) :]) or "nothing"
        raise ValueError(f"{text}: {error}; it takes {takes}") from None
    return known[key](*args, **keywords)


def _not_a_recipe(kind: str, text: str) -> ValueError:
    return ValueError(f"{kind} must be a name or a call like name(key=1), got {text!r}")


def _value(tree: ast.expr, near: str) -> Any:
    """Return a literal, a tuple of values, or a recipe, of the kind `near` if it has that name."""
    if isinstance(tree, ast.Tuple | ast.List):
        return tuple(_value(part, near) for part in tree.elts)
    name = tree.func if isinstance(tree, ast.Call) else tree
    if isinstance(name, ast.Name):
        key = name.id.replace("_", "").lower()
        if key in _WORDS:
            return _WORDS[key]
        for kind in (near, *_KINDS):
            if key in {known.replace("_", "") for known in names(kind)}:
                return _recipe(kind, tree)
    try:
        return ast.literal_eval(tree)
    except (ValueError, TypeError):
        raise ValueError(f"{ast.unparse(tree)!r} is neither a value nor a known name") from None
