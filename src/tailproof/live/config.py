"""The configuration file of a service, ``shop.toml``; each mistake is reported in a sentence."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tailproof import recipes
from tailproof.checks import require, whole
from tailproof.live.offer import Offer
from tailproof.live.recipe import Recipe
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim
from tailproof.wrappers import Negated, Renewed, Vigilant

__all__ = ["Arms", "Config", "Settings", "load"]

Arms = list[str] | dict[str, list[float]] | None
"""The arms for requests without an offer: names, or names with features."""

_WORDS = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "a table",
}
_SERVICE = {"address": str, "port": int, "hosts": list, "journal": str, "durable": bool}
_RULES = ("wait", "silence", "rewards", "floor", "explore", "seed", "dim")
"""Keys that say what the rule of a recipe with their name says, which checks them."""
_EXPERIMENT = {
    "recipe": str,
    "aim": str,
    "costs": bool,
    "arms": object,
    **dict.fromkeys(_RULES, object),
    "forget": object,
    "control": dict,
    "open": bool,
}
_SILENCE = (
    "silence is required: the meaning of a request whose reward did not come within `wait`. "
    "silence = 0.0: it brought 0, as when only purchases are told; every outcome is then learned "
    'when its window ends. silence = "lost": its reward exists but is unknown, as with latencies, '
    "sensors and surveys; the other rewards are learned when they come"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
"""Names of experiments become parts of file names, schemas and URLs."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one experiment.

    The policy of its `recipe` is wrapped in `Vigilant` or `Renewed` if it is to forget, and in
    `Negated` if rewards are `costs`. The page compares arms by the `aim`. A request without an
    offer gets one of `arms`; an offer may have other arms only if the file says ``open = true``.
    """

    name: str
    recipe: Recipe
    aim: Aim
    costs: bool = False
    arms: Arms = None

    @property
    def policy(self) -> Policy[Any]:
        """The policy of the recipe."""
        assert isinstance(self.recipe.policy, Policy)
        return self.recipe.policy

    @property
    def offer(self) -> Offer | None:
        """The arms for requests without an offer."""
        return None if self.arms is None else Offer.of(self.arms)

    @classmethod
    def of(cls, name: str, table: Mapping[str, Any]) -> Self:
        """Return the settings in a table of the file; raises ``ValueError`` if one is invalid."""
        rule = "1 to 40 letters, digits, - or _, starting with a letter or digit"
        require(_NAME.fullmatch(name) is not None, "an experiment name", rule, name)
        where = f"experiments.{name}"
        _check(where, table, _EXPERIMENT)
        if "recipe" not in table:
            raise ValueError(f'{where}.recipe is required, such as recipe = "auto_filtered(ucb1)"')
        try:
            policy = _forgetting(recipes.build("policy", table["recipe"]), table.get("forget"))
            costs, arms = table.get("costs", False), table.get("arms")
            if arms is not None:
                rule = "a list of names or a table of features"
                require(isinstance(arms, list | dict), "arms", rule, arms)
                Offer.of(arms)
            recipe = Recipe(
                policy=Negated(policy) if costs else policy,
                control=_control(table.get("control")),
                arms=None if arms is None or table.get("open", False) else list(arms),
                **{name: table[name] for name in _RULES if name in table},
            )
            aim = recipes.build("aim", table.get("aim", "median"))
            if "silence" not in table:
                raise ValueError(_SILENCE)
            return cls(name=name, recipe=recipe, aim=aim, costs=costs, arms=arms)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Config:
    """The configuration of a service: its address, its journals and its experiments by name.

    Port zero is any free one. Requests may be for `hosts`, beside the names of this machine; see
    docs/how-to/security.md. The `journal` is a folder, with a SQLite file for each experiment, or
    ``postgresql://…``; a `durable` one waits for the disk, see `SQLite`.
    """

    experiments: Mapping[str, Settings]
    address: str = "127.0.0.1"
    port: int = 8000
    hosts: Sequence[str] = ()
    journal: str = "."
    durable: bool = True

    def at(self, address: str | None, port: int | None) -> Self:
        """Return a copy with another address or port, where given."""
        port = self.port if port is None else whole("port", port, at_least=0, at_most=65535)
        return replace(self, address=address or self.address, port=port)


def load(path: str | Path) -> Config:
    """Load a configuration file; folders in it are relative to the file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "shop.toml")
    ...     written = file.write_text('experiments.shop.recipe = "ucb2"')
    ...     load(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...shop.toml: experiments.shop: policy 'ucb2' is unknown; did you mean ucb1?
    """
    path = Path(path)
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
        return _config(parsed, path.resolve().parent)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _config(parsed: Mapping[str, Any], folder: Path) -> Config:
    _check("", parsed, {"service": dict, "experiments": dict})
    service, tables = parsed.get("service", {}), parsed.get("experiments", {})
    _check("service", service, _SERVICE)
    _check("experiments", tables, dict.fromkeys(tables, dict))
    for host in service.get("hosts", []):
        require(isinstance(host, str), "service.hosts", "a list of names", host)
    if not tables:
        raise ValueError("there is no experiment: add a table [experiments.NAME]")
    journal = service.get("journal", ".")
    if "://" in journal:
        rule = "a folder or a postgresql:// URL"
        scheme = journal.partition("://")[0]  # the rest may have a password
        require(scheme in ("postgresql", "postgres"), "service.journal", rule, f"{scheme}://…")
    else:
        journal = str(folder / journal)
    experiments = {name: Settings.of(name, table) for name, table in tables.items()}
    more = {key: service[key] for key in ("address", "hosts", "durable") if key in service}
    return Config(experiments=experiments, journal=journal, **more).at(None, service.get("port"))


def _check(where: str, table: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for unknown keys and for values of the wrong type."""
    for key, value in table.items():
        path = f"{where}.{key}" if where else key
        if key not in known:
            raise ValueError(f"unknown key {path}: use one of {', '.join(known)}")
        kind = known[key]
        ok = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        require(ok, path, _WORDS.get(kind, ""), value)


def _control(table: Mapping[str, Any] | None) -> tuple[str, float] | None:
    if table is None:
        return None
    ok = table.keys() == {"arm", "share"}
    require(ok, "control", 'a table such as { arm = "red", share = 0.1 }', table)
    return table["arm"], table["share"]


def _forgetting(policy: Policy[Any], forget: Any) -> Policy[Any]:
    """Return the policy that forgets as the file says."""
    if forget is None:
        return policy
    if forget == "auto":
        return Vigilant(policy)
    if isinstance(forget, int) and not isinstance(forget, bool):
        return Renewed(policy, memory=whole("forget", forget, at_least=2))
    raise ValueError(
        'forget must be "auto", which restarts the policy when rewards change, or a whole number '
        f"of decisions to remember, got {forget!r}; for a time, multiply it by the decisions that "
        "come in it"
    )
