"""Expressions of generated columns: which of them tell how a column follows another one, and when they count."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from connectors.delta.generated import generated_columns
from connectors.delta.table import DeltaTable
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.connectors.delta_logs import kept_files, opened, schema_of, write_log

pytestmark = pytest.mark.spark

TYPES = {
    "at": "timestamp",
    "local": "timestamp_ntz",
    "day": "date",
    "id": "long",
    "number": "int",
    "text": "string",
    "s": {"at": "timestamp"},
    "odd `name.x": "timestamp",
}
EXPRESSION, CHANGES = "delta.generationExpression", "delta.typeChanges"


def table_of(spark, folder, type_, expression, *, protocol=(1, 4), changes=None, **add) -> DeltaTable:
    """A table with a column `made`; `changes` has the former types of columns."""
    schema = schema_of({**TYPES, "made": type_})
    schema["made"].metadata = {EXPRESSION: expression}
    for name, former in (changes or {}).items():
        schema[name].metadata = {**schema[name].metadata, CHANGES: [{"fromType": former, "toType": "x"}]}
    source = write_log(folder / "t", schema, [add], partitions=["made"] if "partitionValues" in add else [])
    log = next(Path(source, "_delta_log").glob("*.json"))
    versions = f'"minReaderVersion": {protocol[0]}, "minWriterVersion": {protocol[1]}'
    log.write_text("\n".join([f'{{"protocol": {{{versions}}}}}', *log.read_text().splitlines()[1:]]) + "\n")
    table = opened(spark, source)
    assert isinstance(table, DeltaTable)
    return table


def found(table: DeltaTable) -> list[str]:
    return [str(each) for each in generated_columns(table._df.sparkSession, table._snapshot)]


@pytest.mark.parametrize(
    ("type_", "expression", "expected"),
    [
        ("date", "CAST(at AS DATE)", "CAST(at AS DATE)"),
        ("date", "to_date(AT)", "CAST(at AS DATE)"),
        ("date", "DATE(local)", "CAST(local AS DATE)"),
        ("date", "CAST(`odd ``name.x` AS DATE)", "CAST(odd `name.x AS DATE)"),
        ("timestamp", "date_trunc('HOUR', at)", "date_trunc('HOUR', at)"),
        ("int", "year(at)", "year(CAST(at AS DATE))"),
        ("date", "trunc(day, 'MM')", "trunc(day, 'MM')"),
        ("date", "date_add(day, 1 + 2)", "date_add(day, 3)"),
        ("long", "id DIV 1000", "id DIV 1000"),
        ("long", "CAST(number AS BIGINT)", "number"),
        ("string", "date_format(at, 'yyyy-MM')", "date_format(CAST(at AS DATE), 'yyyy-MM')"),
        ("string", "substring(text, 1, 3)", "substring(text, 1, 3)"),
        ("int", "month(at)", None),
        ("int", "hour(at)", None),
        ("long", "id + number", None),
        ("long", "id * 2", "id * 2"),
        ("long", "id % 7", None),
        ("long", "7L", None),
        ("date", "CAST(s.at AS DATE)", None),
        ("date", "CAST(gone AS DATE)", None),
        ("date", "CAST(at AS", None),
        # The column has another type than its expression.
        ("long", "year(at)", None),
        ("int", "id DIV 1000", None),
        ("decimal(20,0)", "CAST(id DIV 1000 AS DECIMAL(20,0))", "id DIV 1000"),
    ],
)
def test_expressions(spark, tmp_path, caplog, type_, expression, expected):
    with caplog.at_level(logging.INFO, "scanprune"):
        table = table_of(spark, tmp_path, type_, expression)
        assert ([] if expected is None else [f"made = {expected}"]) == found(table)
    assert not [each for each in caplog.records if each.name == "scanprune"]


@pytest.mark.parametrize(("protocol", "counts"), [((1, 2), False), ((1, 3), False), ((1, 4), True), ((2, 6), True)])
def test_expressions_count_where_the_protocol_has_them(spark, tmp_path, protocol, counts):
    table = table_of(spark, tmp_path, "date", "CAST(at AS DATE)", protocol=protocol)
    assert counts is bool(found(table))


@pytest.mark.parametrize(("name", "former"), [("number", "short"), ("made", "short")])
def test_expressions_of_former_types_do_not_count(spark, tmp_path, name, former):
    table = table_of(spark, tmp_path, "int", "number + 1", changes={name: former})
    assert [] == found(table)


def test_an_expression_is_parsed_once_for_all_versions(spark, tmp_path, monkeypatch):
    table = table_of(spark, tmp_path, "date", "CAST(at AS DATE)")
    known = generated_columns(spark, table._snapshot)
    monkeypatch.setattr("connectors.delta.generated._generated", None)
    assert known == generated_columns(spark, opened(spark, table._snapshot.root)._snapshot)


DAY, NOON = "2024-01-05", 1_704_456_000_000_000
HOUR = 3_600_000_000


# A day begins 18 hours earlier or later in some time zone.
@pytest.mark.parametrize(("hours", "kept"), [(-31, set()), (-30, {0}), (0, {0}), (29, {0}), (30, set())])
def test_a_partition_bounds_the_source(spark, tmp_path, hours, kept):
    table = table_of(spark, tmp_path, "date", "CAST(at AS DATE)", partitionValues={"made": DAY})
    assert kept == kept_files(table, "at", Domain.of(ValueType("timestamp"), NOON + hours * HOUR))
    assert {0} == kept_files(table, "local", Domain.of(ValueType("timestamp_ntz"), NOON))


def test_a_partition_of_null_has_a_source_of_null(spark, tmp_path):
    stats = {"numRecords": 3}
    table = table_of(spark, tmp_path, "date", "CAST(at AS DATE)", partitionValues={"made": None}, stats=stats)
    assert set() == kept_files(table, "at", Domain.of(ValueType("timestamp"), NOON))
    assert {0} == kept_files(table, "at", Domain.only_null(ValueType("timestamp")))


def test_the_source_bounds_a_column_without_statistics(spark, tmp_path):
    moment = "2024-01-05T12:00:00.000Z"
    stats = {"numRecords": 3, "minValues": {"at": moment}, "maxValues": {"at": moment}, "nullCount": {"at": 0}}
    table = table_of(spark, tmp_path, "date", "CAST(at AS DATE)", stats=stats)
    day = 19_727
    kept = {days for days in range(-3, 4) if kept_files(table, "made", Domain.of(ValueType("date"), day + days))}
    assert {-1, 0, 1} == kept
    assert set() == kept_files(table, "made", Domain.only_null(ValueType("date")))
