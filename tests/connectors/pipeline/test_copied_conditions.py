"""`with_copies()`: which ranges may be pushed although Spark copies them to the columns of other scans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from connectors.columns import resolve
from connectors.pipeline import copied_conditions
from connectors.pipeline.copied_conditions import with_copies
from pruning.limits import LIMITS
from pruning.query.plan import Relation
from pruning.reasons import ReasonCode
from pruning.scan.pushdown import PushdownCapabilities
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
    name: str = "p"
    is_known: bool = field(default=False, init=False)

    @property
    def schema(self) -> StructType:
        return StructType.fromJson({"type": "struct", "fields": [{"name": "k", "type": self.type, "nullable": True}]})

    def files(self, columns: object) -> range:  # noqa: ARG002
        self.is_known |= not self.has_log and self.count <= LIMITS.max_footers
        return range(self.count)

    def row_groups(self, files: object, columns: object, projected: object) -> None:  # noqa: ARG002
        self.is_known = True

    def storage_safe_ranges(self, column: str, ranges: RangeSet) -> RangeSet:  # noqa: ARG002
        return RangeSet.all(ranges.type) if self.is_known else ranges


IsPushed = Callable[..., bool]


@pytest.fixture
def is_pushed(monkeypatch: pytest.MonkeyPatch) -> IsPushed:
    """A function: True if one value may be pushed although Spark copies it to the column of a table."""

    def asked(table: Erring, refusal: ReasonCode | None = None) -> bool:
        found = replace(PUSHED, push_refusal=refusal)
        monkeypatch.setattr(copied_conditions, "capabilities_of", lambda *_, **__: found)
        plan = SimpleNamespace(spark=None)
        metadata: Any = SimpleNamespace(plan=plan, limits=LIMITS, table=lambda _: table, needed=lambda _: ("k",))
        copy = Relation(0, 0, "LogicalRelation", (1,), names=("k",), types=(table.type,), table=table.name)
        type_ = resolve(table.schema, "k", table=table.name, case_sensitive=True).type
        assert type_ is not None
        one = Domain.of(type_, VALUES[table.type]).ranges
        widened = with_copies(PUSHED, {"k": [(copy, 1)]}, metadata).widen("k", one)
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
