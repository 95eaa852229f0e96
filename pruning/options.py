"""`PruningOptions`: every knob, as one frozen object and as Spark confs `spark.pruning.<field>`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from enum import Enum
from typing import Any

from pruning.errors import InvalidOptionError
from pruning.limits import LIMITS, Limits
from pruning.settings import Duration, Size, check_all, number, parsed, set_texts, table, word

CONF_PREFIX = "spark.pruning."
# The switch of a session that `enable()` prunes; no option of a query.
AUTO_CONF = f"{CONF_PREFIX}auto"
SESSION, MACHINE, GIVEN = "SESSION", "MACHINE", "GIVEN"
_LIMITS = "limits."
# Tests and benchmarks set it, so that their decisions repeat.
_DEFAULT_RATES = os.environ.get("SCANPRUNE_COST_RATES", "").strip().upper() or SESSION


class BroadcastStrategy(Enum):
    """The strategy for broadcasts in a pruned query."""

    AUTO = "builds that have run by the size they had, all else as Spark plans it"
    RUNTIME_ONLY = "builds that have run by the size they had, no hash join on an estimate"
    NONE = "as Spark plans it: the query runs each build again"


@dataclass(frozen=True, slots=True)
class PruningOptions:
    """The options of pruning.

    - `enabled`: False reads unpruned (and still returns exactly what was asked for)
    - `max_build_bytes`: an exact key set larger than this becomes min-max and a bloom filter; a number of bytes, or a
      text as Spark reads sizes, such as "150MB"
    - `always`: `prune()` uses every sound filter, whatever it is expected to cost and to save; for tests of soundness,
      and for people who know better
    - `build_timeout_seconds`: a build that takes longer is cancelled and its filter dropped; a number of seconds, or a
      text as Spark reads durations, such as "2min"
    - `broadcast_strategy`: of a pruned query. `AUTO` joins builds that have run as the rows they gave, broadcast where
      these take no more than `spark.sql.autoBroadcastJoinThreshold`, and leaves other joins to Spark; `RUNTIME_ONLY`
      keeps Spark from broadcasting those on an estimate; `NONE` leaves all joins to Spark, and runs builds again
    - `cost_rates`: the times of the steps of a query. `MACHINE` has those that `scanprune calibrate` measured on this
      machine, or defaults; `SESSION` also corrects those of an object store by what the session saw; `GIVEN`
      takes `limits.costs` as they are. Rates in `limits.costs` go before those of the machine. The environment variable
      SCANPRUNE_COST_RATES sets the default
    - `top_k`: `prune()` filters scans also by the first rows of ORDER BY ... LIMIT, where metadata proves them
    - `limits`: the numbers behind the decisions, for tests and ablations; as confs `spark.pruning.limits.<name>`. They
      may change with any release

    >>> PruningOptions(max_build_bytes="150MB").max_build_bytes
    157286400
    >>> PruningOptions(max_build_bytes=0)
    Traceback (most recent call last):
    ...
    pruning.errors.InvalidOptionError: Cannot set 'max_build_bytes' to 0: expected a number from 1 to 68719476736
    """

    enabled: bool = True
    max_build_bytes: Size = number(150 << 20, 1, 1 << 36)  # noqa: RUF009 - a field
    always: bool = False
    build_timeout_seconds: Duration = number(120.0, 0.001, 86_400.0)  # noqa: RUF009 - a field
    broadcast_strategy: str = word("AUTO", *BroadcastStrategy.__members__)
    cost_rates: str = word(_DEFAULT_RATES, SESSION, MACHINE, GIVEN)
    top_k: bool = True
    limits: Limits = table(LIMITS, "a `Limits`, or one of them by its name after 'limits.'")  # noqa: RUF009 - a field

    def __post_init__(self) -> None:
        set_texts(self)
        check_all(self)

    @staticmethod
    def from_confs(confs: Mapping[str, str]) -> PruningOptions:
        """Options from all confs of a Spark session; `InvalidOptionError` for a `spark.pruning.` conf of no field."""
        own = {name: text for name, text in confs.items() if name.startswith(CONF_PREFIX) and name != AUTO_CONF}
        return _with_texts(PruningOptions(), own, CONF_PREFIX)

    def with_limits(self, **limits: Any) -> PruningOptions:
        """These options with some limits replaced; `InvalidOptionError` for a name that is no limit."""
        known = [each.name for each in fields(Limits)]
        if unknown := sorted(set(limits) - set(known)):
            similar = dict.fromkeys(close for each in unknown for close in get_close_matches(each, known))
            names = (
                f"a limit such as {', '.join(map(repr, similar))}" if similar else "a field of pruning.limits.Limits"
            )
            msg = f"Cannot set the limits {', '.join(map(repr, unknown))}: expected {names}"
            raise InvalidOptionError(msg)
        return replace(self, limits=replace(self.limits, **limits))

    def with_texts(self, texts: Mapping[str, str]) -> PruningOptions:
        """These options with some fields parsed from text."""
        return _with_texts(self, texts, "")


def check_switch(confs: Mapping[str, str]) -> None:
    """Raises `InvalidOptionError` if the switch of a session is neither on nor off."""
    if (text := confs.get(AUTO_CONF, "true")).strip().lower() not in {"true", "false"}:
        raise InvalidOptionError(f"Cannot set {AUTO_CONF!r} to {text!r}: expected true or false")


def option_names() -> tuple[str, ...]:
    """The names by which an option or a limit is set as text."""
    own = (each.name for each in fields(PruningOptions) if not isinstance(each.default, Limits))
    return (*own, *(f"{_LIMITS}{each.name}" for each in fields(Limits)))


def _with_texts(options: PruningOptions, texts: Mapping[str, str], prefix: str) -> PruningOptions:
    """Errors name a field as the caller did, by its name after the prefix."""
    if unknown := sorted(set(texts) - {prefix + each for each in option_names()}):
        options_alone = ", ".join(each for each in option_names() if not each.startswith(_LIMITS))
        names = f"{options_alone}, or {_LIMITS}<name>" + (f" after {prefix!r}" if prefix else "")
        msg = f"Cannot set {', '.join(map(repr, unknown))}: expected one of {names}"
        raise InvalidOptionError(msg)
    known = {prefix + each.name: each for each in fields(options)}
    own = {known[name].name: parsed(known[name], texts[name], name) for name in texts if name in known}
    limits = {name.removeprefix(prefix + _LIMITS): (name, text) for name, text in texts.items() if name not in known}
    return replace(options, limits=options.limits.with_texts(limits), **own)
