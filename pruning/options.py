"""`PruningOptions`: every knob, as one frozen object and as Spark confs `spark.pruning.<field>`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pruning.errors import InvalidOptionError

CONF_PREFIX = "spark.pruning."


def _ranged(default: float, least: float, most: float) -> Any:
    return field(default=default, metadata={"least": least, "most": most})


@dataclass(frozen=True, slots=True)
class PruningOptions:
    """Limits and switches of one pruned read.

    - `enabled`: False reads unpruned (and still returns exactly what was asked for)
    - `max_build_keys`, `max_build_bytes`: an exact key set larger than this becomes min-max and a bloom filter
    - `build_timeout_seconds`: a build that takes longer is cancelled and its filter dropped
    - `max_ranges`: how many ranges a pushed predicate may have per column
    - `max_in_list`: how many keys may be pushed as an IN list, for dictionaries, Parquet blooms and rows
    - `max_footers`: how many Parquet footers one read may open for row-group statistics
    - `bloom_fpp`: false positive probability that blooms are sized for
    - `min_filter_ratio`: the share of rows a row filter must be expected to drop to be worth its cost

    >>> PruningOptions(max_ranges=0)
    Traceback (most recent call last):
    ...
    pruning.errors.InvalidOptionError: Cannot set 'max_ranges' to 0: expected a number from 1 to 1000
    """

    enabled: bool = True
    max_build_keys: int = _ranged(10_000_000, 1, 1_000_000_000)
    max_build_bytes: int = _ranged(150 << 20, 1, 1 << 36)
    build_timeout_seconds: float = _ranged(120.0, 0.001, 86_400.0)
    max_ranges: int = _ranged(64, 1, 1000)
    max_in_list: int = _ranged(500, 0, 10_000)
    max_footers: int = _ranged(1000, 0, 10_000_000)
    bloom_fpp: float = _ranged(0.01, 0.000_001, 0.5)
    min_filter_ratio: float = _ranged(0.5, 0.0, 1.0)

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each.name, getattr(self, each.name), type(each.default), each.metadata)

    @staticmethod
    def from_conf(get: Callable[[str], str | None]) -> PruningOptions:
        """Options from Spark confs: `get` returns the text of a conf, or None where it is not set."""
        found = {each.name: get(CONF_PREFIX + each.name) for each in fields(PruningOptions)}
        texts = {name: text for name, text in found.items() if text is not None}
        return PruningOptions().with_texts(texts)

    def with_texts(self, texts: Mapping[str, str]) -> PruningOptions:
        """These options with some fields parsed from text."""
        kinds = {each.name: type(each.default) for each in fields(self)}
        if unknown := sorted(set(texts) - set(kinds)):
            msg = f"Cannot set {', '.join(map(repr, unknown))}: expected one of {', '.join(kinds)}"
            raise InvalidOptionError(msg)
        parsed: dict[str, Any] = {name: _parse(name, text, kinds[name]) for name, text in texts.items()}
        return replace(self, **parsed)


def _parse(name: str, text: str, kind: type) -> object:
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.strip().lower()]
        return kind(text)
    except (KeyError, ValueError) as error:
        expected = "true or false" if kind is bool else "a number"
        msg = f"Cannot set {name!r} to {text!r}: expected {expected}"
        raise InvalidOptionError(msg) from error


def _check(name: str, value: Any, kind: type, allowed: Mapping[str, Any]) -> None:
    if kind is bool:
        if not isinstance(value, bool):
            msg = f"Cannot set {name!r} to {value!r}: expected True or False"
            raise InvalidOptionError(msg)
        return
    numeric = isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
    if not numeric or not allowed["least"] <= value <= allowed["most"]:
        msg = f"Cannot set {name!r} to {value!r}: expected a number from {allowed['least']} to {allowed['most']}"
        raise InvalidOptionError(msg)
