"""`with_copies()`: which ranges may be pushed although Spark copies them to the columns of other scans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.sql.types import StructType

from connectors.columns import Column, resolve
from connectors.pipeline import copied_conditions
from connectors.pipeline.copied_conditions import with_copies
from connectors.spark.files import FOOTER_THREADS
from pruning.limits import LIMITS
from pruning.query.plan import Node, Relation
from pruning.reasons import ReasonCode
from pruning.scan.pushdown import PushdownCapabilities
from pruning.scan.statistics import ColumnStatistics
from pruning.values.domain import Domain
from pruning.values.ranges import RangeSet

VALUES = {
    "string": "a",
    "binary": b"a",
    "decimal(10,2)": Decimal(1),
    "long": 1,
    "integer": 1,
    "boolean": True,
    "date": date(2026, 1, 1),
    "timestamp": datetime(2026, 1, 1),  # noqa: DTZ001 - codes have no zone
    "double": 1.0,
}
PUSHED = PushdownCapabilities(
    accepts_file_list=True, push_refusal=None, tests_keys=True, must_be_exact=False, widen=lambda _, ranges: ranges
)
TOO_MANY = LIMITS.max_footers + 1


@dataclass
class Erring:
    """A table whose footers name a writer that errs; the statistics of one with a log do not come from footers."""

    type: str
    count: int = 3
    has_log: bool = False
    partition_columns: tuple[str, ...] = ()
    has_bloom_filter: bool | None = None
    name: str = "p"
    is_known: bool = field(default=False, init=False)

    @property
    def schema(self) -> StructType:
        return StructType.fromJson({"type": "struct", "fields": [{"name": "k", "type": self.type, "nullable": True}]})

    def files(self, columns: object) -> range:  # noqa: ARG002
        self.is_known |= not self.has_log and self.count <= LIMITS.max_footers
        return range(self.count)

    def row_groups(self, files: Sequence[int], columns: Sequence[Column], projected: object) -> Any:  # noqa: ARG002
        self.is_known = True
        (column,) = columns
        assert column.type is not None
        seen = ColumnStatistics.unknown(column.type, len(files))
        blooms = None if self.has_bloom_filter is None else np.full(len(files), self.has_bloom_filter)
        return SimpleNamespace(columns={column.name: replace(seen, has_bloom_filter=blooms)})

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:  # noqa: ARG002
        return RangeSet.all(ranges.type) if self.is_known else ranges


IsPushed = Callable[..., bool]
Copies = Mapping[str, Sequence[tuple[Node, int]]]


def copied_to(table: Erring) -> tuple[Copies, Any]:
    """The copies of a column `k` to the one of a table, and the metadata of the plan."""
    metadata = SimpleNamespace(
        plan=SimpleNamespace(spark=None), limits=LIMITS, table=lambda _: table, needed=lambda _: ("k",)
    )
    copy = Relation(0, 0, "LogicalRelation", (1,), names=("k",), types=(table.type,), table=table.name)
    return {"k": [(copy, 1)]}, metadata


@pytest.fixture
def is_pushed(monkeypatch: pytest.MonkeyPatch) -> IsPushed:
    """A function: True if one value may be pushed although Spark copies it to the column of a table."""

    def asked(table: Erring, refusal: ReasonCode | None = None) -> bool:
        found = replace(PUSHED, push_refusal=refusal)
        monkeypatch.setattr(copied_conditions, "capabilities_of", lambda *_, **__: found)
        type_ = resolve(table.schema, "k", table=table.name, case_sensitive=True).type
        assert type_ is not None
        one = Domain.of(type_, VALUES[table.type]).ranges
        widened = with_copies(PUSHED, *copied_to(table)).widen("k", one)
        assert widened in (one, RangeSet.all(type_))
        return widened == one

    return asked


@pytest.mark.parametrize("type_", VALUES)
def test_files_of_a_writer_that_errs_get_no_copy_of_any_type(is_pushed, type_):
    assert not is_pushed(Erring(type_))


@pytest.mark.parametrize("type_", VALUES)
def test_footers_of_a_table_with_a_log_are_read_for_types_that_many_writers_get_wrong(is_pushed, type_):
    may_err = type_ in {"string", "binary", "decimal(10,2)"}
    assert may_err is not is_pushed(Erring(type_, has_log=True))
    # Decimals of fewer digits would lose rows of writers that do not err.
    assert (type_ != "decimal(10,2)") is is_pushed(Erring(type_, count=TOO_MANY, has_log=True))


@pytest.mark.parametrize("type_", VALUES)
def test_partition_values_are_not_in_footers(is_pushed, type_):
    assert is_pushed(Erring(type_, partition_columns=("k",)))


def test_nothing_is_copied_to_a_scan_that_takes_no_literals(is_pushed):
    assert not is_pushed(Erring("long", has_log=True), ReasonCode.NOT_VECTORISED)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (Erring("long", has_bloom_filter=False), True),
        (Erring("long", has_bloom_filter=False, has_log=True), True),
        (Erring("long", has_bloom_filter=True), False),
        (Erring("long", has_bloom_filter=None), False),
        (Erring("long", has_bloom_filter=False, count=FOOTER_THREADS + 1), False),
        (Erring("long", has_bloom_filter=True, partition_columns=("k",)), True),
    ],
    ids=["none", "none beside a log", "some", "not known", "too many files", "partition values"],
)
def test_lists_are_copied_to_files_without_bloom_filters(table, expected):
    assert expected is with_copies(PUSHED, *copied_to(table)).may_list("k")


def test_lists_are_copied_to_no_other_storage():
    (metadata,) = copied_to(Erring("long", has_bloom_filter=False))[1:]
    leaf = Node(0, 0, "DataSourceV2Relation", (1,))
    assert not with_copies(PUSHED, {"k": [(leaf, 1)]}, metadata).may_list("k")
    assert with_copies(PUSHED, {"k": []}, metadata).may_list("k")
