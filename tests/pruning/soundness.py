"""Checks of soundness without a test framework; all of them take about a second.

The tests of this folder import these checks, and `tests/test_mutations.py` runs all of them on mutants of the package.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np

from pruning.keys.builder import IncompleteBuildError, KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.options import PruningOptions
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values import byte_strings as string_order
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.coercion import Coerced, coerce
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray
from pruning.values.types import ValueType
from tests.pruning.plain_pruning import (
    ALL_KNOWN,
    NOTHING_KNOWN,
    PARTLY_KNOWN,
    Column,
    Knowledge,
    Table,
    assert_compacts_well,
    is_nan,
    numbers,
)
from tests.pruning.samples import NAN, Spec
from tests.pruning.spark_equality import assert_matches_spark

DOUBLE, BIGINT, INT, STRING = (ValueType(name) for name in ("double", "bigint", "int", "string"))
# Values at which two doubles may compare wrong: neighbours, both zeros, NULL, NaN.
UNIVERSE = (0.0, 1.0, 2.0, 3.0, None, NAN, -0.0)
EVERY_CONTENT = tuple(content for size in (0, 1, 2) for content in combinations_with_replacement(UNIVERSE, size))
EVERY_KEY_SET = tuple(keys for size in range(len(UNIVERSE) + 1) for keys in combinations(UNIVERSE, size))


def key_spec(keys: Sequence[Any]) -> Spec:
    """Doubles, NULL and NaN as a set."""
    return Spec(DOUBLE, tuple((key, key) for key in numbers(keys)), None in keys, any(map(is_nan, keys)))


def check_every_small_set(knowledge: Knowledge) -> tuple[int, int]:
    """Prunes every container of up to two values by every set of up to seven keys: (skipped, checked)."""
    known = (knowledge,) * len(EVERY_CONTENT)
    table = Table({"k": Column(DOUBLE, EVERY_CONTENT, known)}, known)
    skipped = sum(len(known) - table.prune({"k": key_spec(keys)}).kept_count for keys in EVERY_KEY_SET)
    return skipped, len(known) * len(EVERY_KEY_SET)


def _seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  examples, not secrets


@dataclass(frozen=True)
class _Batch:
    type: ValueType
    codes: IntArray
    valid: BoolArray
    nan: BoolArray


def check_several_columns(seed: int = 0, rounds: int = 12) -> None:
    """Prunes random tables of three columns, two of one type; keys are ANDed in either order."""
    rng = _seeded(seed)
    for _ in range(rounds):
        known = tuple(rng.choice((ALL_KNOWN, NOTHING_KNOWN, *PARTLY_KNOWN.values())) for _ in range(12))
        sizes = [rng.randrange(4) for _ in known]
        columns = {
            name: Column(type_, tuple(tuple(rng.choice(values) for _ in range(size)) for size in sizes), known)
            for name, type_, values in (("a", BIGINT, _INTEGERS), ("b", BIGINT, _INTEGERS), ("c", STRING, _TEXTS))
        }
        keys = {name: _random_points(rng) for name in ("a", "b")}
        keys["c"] = Spec(STRING, (("a", rng.choice(("a", "a\0", None))),), null=rng.random() < 0.3)
        table = Table(columns, known)
        table.prune({name: keys[name] for name in ("a", "b")})
        first, second = table.prune(keys), table.prune(dict(reversed(keys.items())))
        assert first.causes.tolist() == second.causes.tolist()


# Numbers around zero, because zero stands where a bound is unknown.
_INTEGERS = (*range(-6, 6), None)
_TEXTS = ("", "a", "a\0", "b", "é", None)


def _random_points(rng: random.Random) -> Spec:
    points = [rng.randrange(-6, 6) for _ in range(rng.randrange(4))]
    return Spec(BIGINT, tuple((point, point) for point in points), null=rng.random() < 0.3)


def check_wrong_statistics() -> None:
    """Contradictory statistics keep the container."""
    nan_low, nan_high = (np.array([value]).view(np.int64) for value in (NAN, -1.0))
    column = replace(ColumnStatistics.of(DOUBLE, [(0.0, 0.0, 0)]), lows=nan_low, highs=nan_high)
    inverted = ColumnStatistics.of(DOUBLE, [(9.0, 1.0, 0)])
    for wrong in (column, replace(column, has_high=np.array([False])), inverted):
        files = Containers(ContainerKind.FILE, ["f"], np.array([5]), np.array([1]), {"k": wrong})
        assert prune_containers(files, {"k": Domain.of(DOUBLE, -5.0)}).kept.all()
    all_null_with_bounds = Containers(
        ContainerKind.FILE, ["f"], np.array([2]), np.array([1]), {"k": ColumnStatistics.of(DOUBLE, [(1.0, 9.0, 2)])}
    )
    assert prune_containers(all_null_with_bounds, {"k": Domain.of(DOUBLE, 5.0)}).kept.all()


def check_coercion() -> None:
    """Compares coerced keys with Spark's `=` for keys that a cast would wrap, round or truncate."""
    decimal, wide = ValueType("decimal", 5, 2), ValueType("decimal", 38, 0)
    table = [
        (BIGINT, INT, (7, 3_000_000_000, (1 << 32) + 5, -(1 << 63), (1 << 31) - 1)),
        (BIGINT, ValueType("float"), ((1 << 60) + (1 << 36) + 1, 16_777_217)),
        (DOUBLE, BIGINT, (1.5, 2.0**63, -0.0, 1e300, 2.0**60)),
        (wide, BIGINT, (10**20, (1 << 63) - 1, 1 << 63)),
        (INT, decimal, (1, 2, 1000)),
        (ValueType("date"), ValueType("timestamp"), (0, -1, 200_000_000)),
        (ValueType("timestamp"), ValueType("date"), (0, -1, (1 << 63) - 1)),
    ]
    for source, column, keys in table:
        for pairs in (tuple((key, key) for key in keys), ((min(keys), max(keys)),)):
            spec = Spec(source, pairs, null=True)
            found = coerce(spec.domain(), column, "`k`")
            assert isinstance(found, Coerced)
            assert found.domain.null
            assert_matches_spark(spec, column, found)


def check_compaction(seed: int = 0, rounds: int = 60) -> None:
    """Compares compaction with the best of all choices on random small cases."""
    rng = _seeded(seed)
    for _ in range(rounds):
        keys = [rng.randrange(30) for _ in range(rng.randrange(1, 8))]
        files = [(low, low + rng.randrange(4)) for low in (rng.randrange(30) for _ in range(rng.randrange(1, 9)))]
        assert_compacts_well(keys, files, [rng.randrange(4) for _ in files], rng.randrange(1, 5))


def assert_ranked(items: Sequence[bytes], ranks: IntArray) -> None:
    """Ranks order byte strings as Python orders bytes."""
    _, dense = np.unique(ranks, return_inverse=True)
    distinct = sorted(set(items))
    assert [distinct.index(item) for item in items] == dense.tolist()


def check_byte_order() -> None:
    """Compares the order of byte strings with Python's."""
    rng = _seeded(0)
    items = [bytes(rng.choice(b"\0\0a\xff") for _ in range(rng.randrange(19))) for _ in range(400)]
    assert_ranked(items, string_order.ranks(ByteStrings.of(items)))


def check_builds() -> None:
    """A summary holds every key of every partition; an incomplete build gives no summary."""
    limits = KeyLimits.of(PruningOptions())
    partitions = [[5, None, 7], [1 << 40], []]
    builders = []
    for at, values in enumerate(partitions):
        valid = np.array([value is not None for value in values], bool)
        codes = np.array([value or 0 for value in values], np.int64)
        builder = KeyBuilder([BIGINT], limits)
        builder.add([_Batch(BIGINT, codes, valid, np.zeros(len(values), bool))])
        builder.close(at)
        builders.append(builder)
    merged = builders[0]
    merged.merge(builders[1])
    try:
        merged.finish(3, source="two of three partitions")
    except IncompleteBuildError:
        pass
    else:
        raise AssertionError("published a partial build")
    merged.merge(KeyBuilder.from_bytes(builders[2].to_bytes()))
    summary = merged.finish(3, source="three partitions")
    assert ((Domain.of(BIGINT, 5, 7, 1 << 40),), 4, 1) == (summary.domains, summary.rows, summary.null_rows)


def check_all() -> None:
    """Runs every check of this module on a few examples."""
    check_builds()
    check_byte_order()
    check_compaction()
    check_wrong_statistics()
    check_coercion()
    for knowledge in (ALL_KNOWN, NOTHING_KNOWN, PARTLY_KNOWN["nulls"]):
        check_every_small_set(knowledge)
    check_several_columns()
