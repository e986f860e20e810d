"""Rules: what else could have been chosen, as a probability of each arm in each row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof.checks import array, require
from tailproof.policies.base import Policy
from tailproof.policies.state.base import State
from tailproof.tables import Records
from tailproof.tables.columns import ROUNDING
from tailproof.typing import Array

__all__ = ["named", "probabilities", "vectors"]

_ROWS = 4096
"""How many rows a policy is asked about at a time."""
_DRAWS = 32
"""How many choices are drawn for each row if a policy does not report its propensities. Their
shares are right on average, which is all that weights need."""


def named(rules: Any) -> dict[str, Any]:
    """Return rules by name: of a mapping, of a sequence, or of a single rule.

    >>> named(["A", "even"])
    {'always A': 'A', 'even': 'even'}
    """
    if isinstance(rules, Mapping) and rules and not _is_rule(rules):
        return {str(name): rule for name, rule in rules.items()}
    several = isinstance(rules, Sequence) and not isinstance(rules, str) and not _is_frozen(rules)
    by_name: dict[str, Any] = {}
    for given in rules if several else [rules]:
        rule = str(given) if isinstance(given, int) else given
        name = _name(rule)
        require(name not in by_name, "rules", "rules with names of their own: pass a mapping", name)
        by_name[name] = rule
    require(bool(by_name), "rules", "at least one rule", rules)
    return by_name


def _is_rule(given: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is one rule: a probability for each arm."""
    return all(isinstance(value, int | float) for value in given.values())


def _is_frozen(rule: Any) -> bool:
    return isinstance(rule, tuple) and len(rule) == 2 and isinstance(rule[0], Policy)


def _name(rule: Any) -> str:
    if isinstance(rule, str):
        return rule if rule == "even" else f"always {rule.removeprefix('always:')}"
    if _is_frozen(rule):
        return f"{type(rule[0]).__name__} as it stands"
    if isinstance(rule, Policy):
        return f"{type(rule).__name__} from scratch"
    if isinstance(rule, Mapping) and _is_rule(rule):
        return ", ".join(f"{share:.0%} {arm}" for arm, share in rule.items())
    return str(getattr(rule, "__name__", "rule"))


def probabilities(name: str, rule: Any, log: Records, rng: np.random.Generator) -> Array:
    """Return the probability of each arm in each row, of shape (n, K), checked.

    See `tailproof.judge` for what a rule may be.
    """
    if isinstance(rule, str):
        shares = _always(name, rule, log)
    elif _is_frozen(rule):
        shares = _policy_propensities(rule[0], rule[1], log, rng)
    elif isinstance(rule, Mapping):
        shares = _from_table(name, rule, log)
    elif callable(rule):
        shares = _from_function(name, rule(_context(log)), log)
    else:
        shares = _from_function(name, rule, log)
    total = shares.sum(axis=1)
    ok = bool(np.isfinite(shares).all()) and bool((shares >= 0).all())
    if not (ok and np.abs(total - 1).max() <= ROUNDING):
        row = int((~(np.abs(total - 1) <= ROUNDING) | (shares < 0).any(axis=1)).argmax())
        raise ValueError(
            f"rule {name!r} must give probabilities that are at least 0 and add up to 1, got "
            f"{shares[row].tolist()} in row {row + 1}"
        )
    if log.offered is not None and (shares[~log.offered] > 0).any():
        row = int(((shares > 0) & ~log.offered).any(axis=1).argmax())
        arm = log.arms[int(((shares[row] > 0) & ~log.offered[row]).argmax())]
        raise ValueError(
            f"rule {name!r} chooses {arm} in row {row + 1}, where it was not offered: pass a "
            "function that says what it does there"
        )
    return shares


def _arm_number(name: str, arm: Any, log: Records) -> int:
    """Return the number of an arm."""
    if str(arm) not in log.arms:
        raise ValueError(f"rule {name!r}: no arm {arm!r} in the log; it has {', '.join(log.arms)}")
    return log.arms.index(str(arm))


def _always(name: str, rule: str, log: Records) -> Array:
    shares = np.zeros((log.n, len(log.arms)))
    if rule == "even" and rule not in log.arms:
        shares += 1.0 if log.offered is None else log.offered
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))
    arm = rule if rule in log.arms else rule.removeprefix("always:")
    shares[:, _arm_number(name, arm, log)] = 1.0
    return shares


def _from_table(name: str, rule: Mapping[Any, Any], log: Records) -> Array:
    """Return the shares of a table: shares of arms, or an arm or shares of arms for each group."""
    k = len(log.arms)

    def row(chosen: Any) -> Array:
        filled = np.zeros(k)
        shares = chosen if isinstance(chosen, Mapping) else {chosen: 1.0}
        for arm, share in shares.items():
            filled[_arm_number(name, arm, log)] = share
        return filled

    if _is_rule(rule):
        return np.tile(row(rule), (log.n, 1))
    if log.group is None:
        raise ValueError(f"rule {name!r} is a table by group, but the log has no column group")
    table = {str(group): row(chosen) for group, chosen in rule.items()}
    missing = sorted(set(log.group) - table.keys())
    if missing:
        raise ValueError(f"rule {name!r} does not say what it does for the group {missing[0]!r}")
    groups, place = np.unique(log.group.astype(str), return_inverse=True)
    return np.asarray(np.stack([table[group] for group in groups])[place])


def _context(log: Records) -> Any:
    """Return the argument of a function: a table of features, with the group if there is one.

    An array if features have no names of their own.
    """
    if log.group is None and (log.features is None or log.names[0] == "x0"):
        return log.features
    import pandas

    columns = {} if log.features is None else dict(zip(log.names, log.features.T, strict=True))
    return pandas.DataFrame(columns | ({} if log.group is None else {"group": log.group}))


def _from_function(name: str, given: Any, log: Records) -> Array:
    """Return probabilities from an array of them, or from the names of the chosen arms."""
    columns = getattr(given, "columns", None)
    if columns is not None:
        shares = np.zeros((len(given), len(log.arms)))
        for arm in columns:
            shares[:, _arm_number(name, arm, log)] = given[arm].to_numpy()
    else:
        values = np.asarray(given)
        if isinstance(given, str):  # the same arm for every visitor
            values = np.full(log.n, given)
        if values.ndim == 1 and values.dtype.kind in "OUS":
            shares = np.zeros((len(values), len(log.arms)))
            unique, place = np.unique(values.astype(str), return_inverse=True)
            codes = np.array([_arm_number(name, str(arm), log) for arm in unique])
            shares[np.arange(len(values)), codes[place]] = 1.0
        else:
            shares = array(f"rule {name!r}", given)
    expected = (log.n, len(log.arms))
    if shares.shape != expected:
        raise ValueError(
            f"rule {name!r} must give an arm for each row, or probabilities of shape {expected}, "
            f"got shape {shares.shape}"
        )
    return shares


def vectors(policy: Policy[Any], log: Records, rows: Any, dim: int | None = None) -> Array:
    """Return the vectors that a policy chooses among in some rows, of shape (rows, K, d).

    A policy that knows arms by number gets unit vectors; arms with features keep their features; a
    policy with one context gets the visitor's features. Other policies get features crossed with
    the arms, see `tailproof.features`, or uncrossed features if the state expects them.
    """
    k = len(log.arms)
    m = len(np.arange(log.n)[rows])
    if policy.view == "arms":
        return np.broadcast_to(np.eye(k), (m, k, k))
    if log.vectors is not None:
        return np.asarray(log.vectors[rows])
    if log.features is None:
        if policy.view == "context":
            raise ValueError(f"{policy!r} needs features, and the log has none: pass features=")
        return np.broadcast_to(np.eye(k), (m, k, k))
    x = log.features[rows]
    if policy.view == "context" or dim == x.shape[1]:
        return np.broadcast_to(x[:, None, :], (m, k, x.shape[1]))
    lifted = np.concatenate([np.ones((m, 1)), x], axis=1)
    return np.asarray(np.einsum("ab,nf->nabf", np.eye(k), lifted).reshape(m, k, -1))


def _policy_propensities(
    policy: Policy[Any], state: Any, log: Records, rng: np.random.Generator
) -> Array:
    """Return the propensities of a policy, which learns nothing here."""
    k = len(log.arms)
    ok = isinstance(state, State) and state.paths == 1
    require(ok, "state", "the state of one path: a rule is (policy, state)", state)
    if log.offered is not None:
        raise ValueError("offers change in this log: pass a function that asks the policy")
    if state.arms != k:
        raise ValueError(
            f"the state knows {state.arms} arms, the log has {k}: {', '.join(log.arms)}"
        )
    propensities = np.empty((log.n, k))
    step = log.n if policy.view == "arms" else _ROWS
    for start in range(0, log.n, step):
        rows = slice(start, min(start + step, log.n))
        arms = vectors(policy, log, slice(0, 1) if policy.view == "arms" else rows, state.dim)
        if arms.shape[2] != state.dim:
            raise ValueError(
                f"the state expects vectors of length {state.dim}, the log's features "
                f"make {arms.shape[2]}"
            )
        copies = state.take(np.zeros(len(arms), dtype=np.int64))
        shares = policy.propensities(copies, arms)
        if shares is None:
            drawn = [policy.choose(copies, arms, rng) for _ in range(_DRAWS)]
            shares = np.stack([np.bincount(picks, minlength=k) for picks in np.transpose(drawn)])
            shares = shares / _DRAWS
        propensities[rows] = shares
    return propensities
