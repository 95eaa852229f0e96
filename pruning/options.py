"""`PruningOptions`: every knob, as one frozen object and as Spark confs `spark.pruning.<field>`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from enum import Enum
from typing import Any

from pruning.errors import InvalidOptionError

CONF_PREFIX = "spark.pruning."
PREDICATE, ARROW, AUTO = "PREDICATE", "ARROW", "AUTO"


class BroadcastStrategy(Enum):
    """Who decides on broadcasts in a pruned query."""

    AUTO = "builds that have run by the size they had, all else as Spark plans it"
    RUNTIME_ONLY = "builds that have run by the size they had, no hash join on an estimate"
    NONE = "as Spark plans it: the query runs each build again"


@dataclass(frozen=True, slots=True)
class ScanCosts:
    """Nanoseconds of a core for one of each; `scanprune calibrate` measures them.

    - `byte`: a byte of a file on this machine, read by either reader; `remote_byte`: one of a store, which is not
      measured but taken to be a hundredth of a microsecond, as 100 MB/s are
    - `spark_value`: a value decoded by Spark's reader; `spark_test`: a row tested above it by keys
    - `arrow_value`: a value decoded by pyarrow; `arrow_test`: one looked up in a table of keys
    - `arrow_search`: a value decoded and tested where there is no such table, as of texts, decimals, keys far apart
    - `arrow_handed`: a value of a row that passed, from Python to Spark
    - `arrow_task`: a task in a Python worker; `arrow_scan`: what a scan by pyarrow takes longer to plan
    - `joined_row`: a row that reaches a join above the scan

    >>> ScanCosts.parse("byte=2, arrow_task=1e7").arrow_task
    10000000.0
    """

    byte: float = 0.6
    remote_byte: float = 10.0
    spark_value: float = 6.0
    spark_test: float = 12.0
    arrow_value: float = 6.0
    arrow_test: float = 2.0
    arrow_search: float = 100.0
    arrow_handed: float = 16.0
    arrow_task: float = 50e6
    arrow_scan: float = 100e6
    joined_row: float = 30.0

    @staticmethod
    def parse(text: str) -> ScanCosts:
        """Costs as `str()` tells them, those that are not named as they are by default; `ValueError` for others."""
        named = dict(_entry(each) for each in text.split(",") if each.strip())
        known = {each.name for each in fields(ScanCosts)}
        if unknown := sorted(set(named) - known):
            raise ValueError(f"found {', '.join(map(repr, unknown))}, expected some of {', '.join(sorted(known))}")
        return replace(ScanCosts(), **named)

    def __post_init__(self) -> None:
        for each in fields(self):
            if not 0.0 <= getattr(self, each.name) < float("inf"):
                raise ValueError(f"found {each.name}={getattr(self, each.name)}, expected nanoseconds, 0 or more")

    def __str__(self) -> str:
        return ",".join(f"{each.name}={getattr(self, each.name):.4g}" for each in fields(self))


def _entry(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise ValueError(f"found {text.strip()!r}, expected name=nanoseconds") from None


_COSTS = ScanCosts()


def _ranged(default: float, least: float, most: float) -> Any:
    return field(default=default, metadata={"least": least, "most": most})


@dataclass(frozen=True, slots=True)
class PruningOptions:
    """Limits and switches of pruning.

    - `enabled`: False reads unpruned (and still returns exactly what was asked for)
    - `max_build_keys`, `max_build_bytes`: an exact key set larger than this becomes min-max and a bloom filter
    - `max_build_scan_bytes`: `prune()` runs no build side that reads more
    - `min_probe_bytes`: `prune()` leaves alone scans that read less, and runs no build that may spare them less
    - `build_timeout_seconds`: a build that takes longer is cancelled and its filter dropped
    - `all_builds_timeout_seconds`: so are all builds of one `prune()` that are not done by then
    - `broadcast_strategy`: of a pruned query. `AUTO` joins builds that have run as the rows they gave, broadcast where
      these take no more than `spark.sql.autoBroadcastJoinThreshold`, and leaves other joins to Spark; `RUNTIME_ONLY`
      keeps Spark from broadcasting those on an estimate; `NONE` leaves all joins to Spark, and runs builds again
    - `scan`: `PREDICATE` has Spark's own reader make every pruned scan, `ARROW` has pyarrow make those that it can,
      `AUTO` those of `prune()` that it is expected to make at clearly less cost
    - `costs`: what that expectation rests on, as `scanprune calibrate` prints it: name=nanoseconds, separated by commas
    - `top_k`: `prune()` filters scans also by the first rows of ORDER BY ... LIMIT, where metadata proves them
    - `max_ranges`: how many ranges the pushed predicate of a scan may have
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
    max_build_scan_bytes: int = _ranged(150 << 20, 0, 1 << 40)
    min_probe_bytes: int = _ranged(8 << 20, 0, 1 << 50)
    build_timeout_seconds: float = _ranged(120.0, 0.001, 86_400.0)
    all_builds_timeout_seconds: float = _ranged(300.0, 0.001, 86_400.0)
    scan: str = field(default=PREDICATE, metadata={"names": (PREDICATE, ARROW, AUTO)})
    costs: ScanCosts = field(default=_COSTS)
    broadcast_strategy: str = field(default="AUTO", metadata={"names": tuple(BroadcastStrategy.__members__)})
    top_k: bool = True
    max_ranges: int = _ranged(64, 1, 1000)
    max_in_list: int = _ranged(500, 0, 10_000)
    max_footers: int = _ranged(1000, 0, 10_000_000)
    bloom_fpp: float = _ranged(0.01, 0.000_001, 0.5)
    min_filter_ratio: float = _ranged(0.5, 0.0, 1.0)

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each, getattr(self, each.name), each.name)

    @staticmethod
    def from_confs(confs: Mapping[str, str]) -> PruningOptions:
        """Options from all confs of a Spark session; `InvalidOptionError` for a `spark.pruning.` conf of no field."""
        own = {name: text for name, text in confs.items() if name.startswith(CONF_PREFIX)}
        return _with_texts(PruningOptions(), own, CONF_PREFIX)

    def with_texts(self, texts: Mapping[str, str]) -> PruningOptions:
        """These options with some fields parsed from text."""
        return _with_texts(self, texts, "")


def _with_texts(options: PruningOptions, texts: Mapping[str, str], prefix: str) -> PruningOptions:
    """Errors name a field as the caller did, by its name after the prefix."""
    known = {prefix + each.name: each for each in fields(options)}
    if unknown := sorted(set(texts) - set(known)):
        names = ", ".join(each.name for each in fields(options)) + (f" after {prefix!r}" if prefix else "")
        msg = f"Cannot set {', '.join(map(repr, unknown))}: expected one of {names}"
        raise InvalidOptionError(msg)
    parsed: dict[str, Any] = {known[name].name: _parsed(known[name], text, name) for name, text in texts.items()}
    return replace(options, **parsed)


def _parsed(known: Field[Any], text: str, name: str) -> object:
    try:
        value = _parse(known, text)
    except (KeyError, ValueError) as error:
        raise _refused(known, text, name) from error
    _check(known, value, name)
    return value


def _parse(known: Field[Any], text: str) -> object:
    match known.default:
        case bool():
            return {"true": True, "false": False}[text.strip().lower()]
        case str():
            return text.strip().upper()
        case ScanCosts():
            return ScanCosts.parse(text)
        case _:
            return int(text) if isinstance(known.default, int) else float(text)


def _check(known: Field[Any], value: Any, name: str) -> None:
    match known.default:
        case bool():
            valid = isinstance(value, bool)
        case str():
            valid = value in known.metadata["names"]
        case ScanCosts():
            valid = isinstance(value, ScanCosts)
        case _:
            numbers = (int, float) if isinstance(known.default, float) else int
            valid = isinstance(value, numbers) and not isinstance(value, bool)
            valid = valid and known.metadata["least"] <= value <= known.metadata["most"]
    if not valid:
        raise _refused(known, value, name)


def _refused(known: Field[Any], value: object, name: str) -> InvalidOptionError:
    match known.default:
        case bool():
            expected = "true or false"
        case str():
            expected = f"one of {', '.join(known.metadata['names'])}"
        case ScanCosts():
            expected = "costs as `scanprune calibrate` prints them, such as 'byte=1,arrow_task=3e7'"
        case _:
            expected = f"a number from {known.metadata['least']} to {known.metadata['most']}"
    return InvalidOptionError(f"Cannot set {name!r} to {value!r}: expected {expected}")
