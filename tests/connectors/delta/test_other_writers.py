"""Statistics of other writers: a pruned query has the rows of a stock one, and a healthy twin is still skipped."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pruning import PruningOptions, explain, prune, pruned_read, report
from pruning.reasons import ReasonCode
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from sample_data.rows import Rows
from tests.connectors.delta.other_writers import (
    FIELD_ID,
    FILES,
    PHYSICAL_NAME,
    ROWS,
    SAME_NAMES,
    STALE,
    copy,
    counts,
    mapped_before,
    recounted,
    thinned,
)
from tests.connectors.delta_logs import (
    column_of,
    files_delta_keeps,
    ids,
    kept_files,
    opened,
    pushed,
    schema_of,
    write_log,
)
from tests.costs import ALWAYS, COSTLY_BUILDS
from tests.in_session import in_session, kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BIGINT, STRING = ValueType("bigint"), ValueType("string")
MODES = pytest.mark.parametrize("mode", [None, "none"])


def keys(spark: SparkSession, folder: Path, *values: object) -> str:
    """A small table of these keys, beside one that its condition leaves out."""
    rows = ", ".join(f"({value!r}, 'y')" for value in values)
    type_ = "STRING" if isinstance(values[0], str) else "BIGINT"
    other = "'q'" if isinstance(values[0], str) else "1000"
    frame = spark.sql(f"SELECT CAST(k AS {type_}) AS k, flag FROM VALUES {rows}, ({other}, 'n') d(k, flag)")
    frame.coalesce(1).write.format("delta").save(str(folder))
    return f"(SELECT k FROM delta.`{folder}` WHERE flag = 'y')"


def both_ways(spark: SparkSession, query: str, options: PruningOptions = ALWAYS) -> list[tuple[str, int | None]]:
    """The files that pruning keeps of each scan, after it gave the rows of stock Spark in both ways."""
    df = spark.sql(query)
    rows = Rows(df.collect())
    result = prune(df, options=options)
    assert rows == Rows(result.collect())
    again, _ = in_session(spark, options, lambda: Rows(spark.sql(query).collect()))
    assert rows == again
    return kept(report(result))


def merged(spark: SparkSession, target: str, source: str, on: str, values: str, folder: Path) -> list[dict[str, str]]:
    """The counts of a MERGE into copies of a table, by stock Spark and by a session that prunes, with equal rows."""
    found, rows = [], []
    for name in ("stock", "enabled"):
        own = copy(target, folder / name / "target")
        text = (
            f"MERGE INTO delta.`{own}` t USING {source} s ON t.{on} = s.k WHEN MATCHED THEN UPDATE SET t.{values} = -1"
            f" WHEN NOT MATCHED THEN INSERT ({on}, {values}) VALUES (s.k, -2)"
        )
        if name == "stock":
            spark.sql(text)
        else:
            in_session(spark, ALWAYS, partial(spark.sql, text))
        metrics = spark.sql(f"DESCRIBE HISTORY delta.`{own}` LIMIT 1").first()["operationMetrics"]
        found.append({each: metrics[each] for each in ("numTargetRowsUpdated", "numTargetRowsInserted")})
        rows.append(Rows(spark.read.format("delta").load(own).collect()))
    assert rows[0] == rows[1]
    return found


# ------------------------------------------------------------------------------ names of a mapping that is off


@MODES
def test_statistics_under_stale_names_skip_nothing(spark, tmp_path, mode):
    source = keys(spark, tmp_path / "d", 7)
    query = "SELECT t.* FROM delta.`{}` t JOIN {} d ON t.id = d.k"
    table = mapped_before(tmp_path / "stale", mode)
    assert {FILES} >= {count for _, count in both_ways(spark, query.format(table, source))}
    assert ReasonCode.STALE_NAMES.value in str(explain(prune(spark.sql(query.format(table, source)), options=ALWAYS)))
    for notes in ({}, SAME_NAMES):
        twin = mapped_before(tmp_path / f"twin{len(notes)}", mode, notes)
        assert [(f"twin{len(notes)}", 1)] == both_ways(spark, query.format(twin, source))


@MODES
def test_merge_into_a_table_with_stale_names_inserts_no_duplicate(spark, tmp_path, mode):
    source = keys(spark, tmp_path / "d", 7, 77)
    for notes in (STALE, {}):
        table = mapped_before(tmp_path / f"t{len(notes)}", mode, notes)
        stock, enabled = merged(spark, table, source, "id", "price", tmp_path / f"merged{len(notes)}")
        assert {"numTargetRowsUpdated": "2", "numTargetRowsInserted": "0"} == stock == enabled


@MODES
def test_no_literal_reaches_the_listing_of_a_table_with_stale_names(spark, tmp_path, mode):
    source = mapped_before(tmp_path / "t", mode)
    table = opened(spark, source)
    for domain in (Domain.of(BIGINT, 7), Domain.of(BIGINT, 7, 77)):
        assert table.storage_safe_ranges("id", domain.ranges).is_all
        scan = pushed(table, "id", domain)
        assert FILES == files_delta_keeps(scan)
    for exact in (False, True):
        read = pruned_read(spark, source, keys={"id": [7, 77]}, exact=exact, options=ALWAYS)
        assert {7, 77} <= set(ids(read.select("id")))
        assert FILES == report(read).measured.files_read
    twin = opened(spark, mapped_before(tmp_path / "twin", mode, SAME_NAMES))
    assert 1 == files_delta_keeps(pushed(twin, "id", Domain.of(BIGINT, 7)))


@MODES
def test_keys_and_first_rows_are_not_proved_by_stale_names(spark, tmp_path, mode):
    table = mapped_before(tmp_path / "t", mode)
    probe = mapped_before(tmp_path / "probe", None, {})
    for query in (
        # A build that is not run gives keys by its statistics.
        f"SELECT p.* FROM delta.`{probe}` p JOIN delta.`{table}` t ON p.id = t.id WHERE t.price BETWEEN 1005 AND 1009",
        f"SELECT * FROM delta.`{table}` ORDER BY id DESC LIMIT 3",
        f"SELECT * FROM delta.`{table}` ORDER BY price LIMIT 3",
    ):
        for options in (ALWAYS, COSTLY_BUILDS):
            both_ways(spark, query, options)


# Delta takes partition values by the noted name, other writers store them by the name of the column.
@pytest.mark.parametrize("partition", ["part", "col-9c2e"])
def test_partition_values_under_stale_names_skip_nothing(spark, tmp_path, partition):
    source = keys(spark, tmp_path / "d", 1)
    query = "SELECT t.* FROM delta.`{}` t JOIN {} d ON t.part = d.k"
    notes = {"part": {PHYSICAL_NAME: "col-9c2e", FIELD_ID: 3}}
    table = mapped_before(tmp_path / "stale", "none", notes, partition=partition)
    # Delta itself finds no value under the name of the column, so that each is NULL and equals no key.
    is_null = partition == "part"
    assert (0 if is_null else ROWS) == spark.sql(query.format(table, source)).count()
    assert [("stale", 0 if is_null else FILES)] == both_ways(spark, query.format(table, source))
    both_ways(spark, f"SELECT t.* FROM delta.`{table}` t LEFT ANTI JOIN {source} d ON t.part = d.k")
    twin = mapped_before(tmp_path / "twin", "none", {}, partition="part")
    assert ROWS == spark.sql(query.format(twin, source)).count()
    assert [("twin", 1)] == both_ways(spark, query.format(twin, source))


@MODES
@pytest.mark.parametrize("with_null", [False, True])
def test_null_safe_joins_of_tables_with_stale_names_lose_no_row(spark, tmp_path, mode, with_null):
    """Keys without NULL are tested by a bitmap beside all files; with it there is no filter."""
    null = "UNION ALL SELECT NULL, 'y'" if with_null else ""
    rows = spark.sql(f"SELECT id AS k, IF(id % 2 = 0, 'y', 'n') AS flag FROM range(40) {null}")
    rows.coalesce(1).write.format("delta").save(str(tmp_path / "d"))
    source = f"(SELECT k FROM delta.`{tmp_path / 'd'}` WHERE flag = 'y')"
    query = "SELECT t.* FROM delta.`{}` t JOIN {} d ON t.id <=> d.k"
    for name, notes, expected in (("stale", STALE, FILES), ("twin", {}, 1)):
        table = mapped_before(tmp_path / name, mode, notes)
        assert 20 == spark.sql(query.format(table, source)).count()
        assert ([] if with_null else [(name, expected)]) == both_ways(spark, query.format(table, source))


def test_ids_and_names_count_where_the_mapping_is_on(spark, tmp_path):
    """These notes are the names of columns once the property says so."""
    for mode in (None, "none", "name"):
        table = opened(spark, mapped_before(tmp_path / str(mode), mode, protocol=(2, 5)))
        column = column_of(table, "id")
        assert (("price",) if mode == "name" else ("id",)) == table._snapshot.physical_path(column)
        assert () == table._snapshot.field_ids(column)
        assert bool(table._snapshot.stale_names) is (mode != "name")


@pytest.mark.parametrize(("protocol", "is_source"), [((1, 2), False), ((1, 3), False), ((1, 4), True), ((2, 6), True)])
def test_generated_columns_count_where_the_protocol_has_them(spark, tmp_path, protocol, is_source):
    schema = schema_of({"text": "string", "part": "date"})
    schema["part"].metadata = {"delta.generationExpression": "trunc(text, 'quarter')"}
    source = write_log(tmp_path / "t", schema, [{"partitionValues": {"part": "2024-01-01"}}], partitions=["part"])
    log = next(Path(source, "_delta_log").glob("*.json"))
    lines = log.read_text().splitlines()
    versions = f'"minReaderVersion": {protocol[0]}, "minWriterVersion": {protocol[1]}'
    log.write_text("\n".join([f'{{"protocol": {{{versions}}}}}', *lines[1:]]) + "\n")
    table = opened(spark, source)
    points = Domain.of(STRING, "b").ranges
    assert is_source is table.storage_safe_ranges("text", points).is_all


def test_former_types_of_a_field_count_without_the_feature(spark, tmp_path):
    """They only widen bounds, so that a table whose feature was dropped without rewriting files loses no row."""
    schema = schema_of({"x": "double"})
    schema["x"].metadata = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    tenth = float(np.float32(0.1))
    stats = {"numRecords": 1, "minValues": {"x": 0.1}, "maxValues": {"x": 0.1}, "nullCount": {"x": 0}}
    table = opened(spark, write_log(tmp_path / "t", schema, [{"stats": stats}]))
    assert {0} == kept_files(table, "x", Domain.of(ValueType("double"), tenth))


# ----------------------------------------------------------------------- counts beside deletion vectors

# numRecords and nullCount of a file of six rows, three of them NULL, of which a NULL and two values were deleted.
CONVENTIONS = {
    "rows visible, NULL of all": (3, 3),
    "rows visible, NULL visible": (3, 2),
    "all rows, NULL of all": (6, 3),
    "all rows, NULL visible": (6, 2),
}
CONVENTION = pytest.mark.parametrize(("rows", "nulls"), CONVENTIONS.values(), ids=CONVENTIONS)


@pytest.fixture(scope="module")
def recount(spark, tmp_path_factory) -> Callable[..., str]:
    """A function that gives a table with these counts of its file with deleted rows."""
    folder = tmp_path_factory.mktemp("recounted")
    made = thinned(spark, folder / "made")
    return cache(lambda *given, **named: recounted(made, folder / f"{given}{named}" / "t", counts(*given, **named)))


@CONVENTION
def test_counts_beside_deleted_rows_prove_no_file_of_null_alone(spark, tmp_path, recount, rows, nulls):
    table = recount(rows, nulls)
    source = keys(spark, tmp_path / "d", "u1", "zz")
    # Stock Spark asks Delta for files without NULL alone below an equality, but not below this comparison.
    found = both_ways(spark, f"SELECT t.* FROM delta.`{table}` t JOIN {source} d ON t.k <=> d.k")
    assert ("t", 1) not in found
    stock, enabled = merged(spark, table, source, "k", "v", tmp_path / "merged")
    assert {"numTargetRowsUpdated": "2", "numTargetRowsInserted": "0"} == stock == enabled


# One file has NULL, "u1" and deleted rows, the other "zz" alone.
@pytest.mark.parametrize(
    ("join", "values", "expected"),
    [
        ("=", ("u1",), [("t", 1)]),
        ("=", ("zz",), [("t", 1)]),
        ("=", ("u1", "zz"), [("t", 2)]),
        ("<=>", ("zz",), [("t", 1)]),
        # No filter is made of NULL.
        ("<=>", ("zz", None), []),
    ],
)
def test_right_counts_beside_deleted_rows_skip_files(spark, tmp_path, recount, join, values, expected):
    frame = spark.createDataFrame([*((each, "y") for each in values), ("qq", "n")], "k string, flag string")
    frame.coalesce(1).write.format("delta").save(str(tmp_path / "d"))
    query = f"SELECT t.* FROM delta.`{{}}` t JOIN delta.`{tmp_path / 'd'}` d ON t.k {join} d.k WHERE d.flag = 'y'"
    assert expected == both_ways(spark, query.format(recount(6, 3, wide=True, bounds=True)))
    both_ways(spark, query.format(recount(3, 3, bounds=True)))


@CONVENTION
@pytest.mark.parametrize("bounds", [False, True])
def test_delta_is_asked_by_nothing_that_mixed_counts_mislead(spark, tmp_path, recount, rows, nulls, bounds):
    source = recount(rows, nulls, bounds=bounds)
    table = opened(spark, source)
    is_misleading = rows == nulls
    domain = Domain.of(STRING, "u1")
    assert is_misleading is table.storage_safe_ranges("k", domain.ranges).is_all
    (row,) = pruned_read(spark, source, keys={"v": [4]}, options=ALWAYS).collect()
    assert ("u1", 4) == tuple(row)
    # A query built on the pruned one makes Delta list again, among the files that were kept.
    query = f"SELECT t.* FROM delta.`{source}` t JOIN {keys(spark, tmp_path / 'd', 'u1', 'zz')} d ON t.k <=> d.k"
    pruned = prune(spark.sql(query), options=ALWAYS)
    for condition in ("v > 3", "v < 9"):
        assert Rows(spark.sql(query).where(condition).collect()) == Rows(pruned.where(condition).collect())


@CONVENTION
@pytest.mark.parametrize("order", ["k DESC", "k NULLS LAST", "v"])
def test_counts_beside_deleted_rows_prove_no_more_first_rows_than_there_are(spark, recount, rows, nulls, order):
    table = recount(rows, nulls, bounds=True)
    for limit in (2, 3):
        both_ways(spark, f"SELECT * FROM delta.`{table}` ORDER BY {order}, v LIMIT {limit}")


VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}


@pytest.mark.parametrize("is_wide", [False, True])
def test_files_of_null_alone_with_deleted_rows_are_known_by_wide_bounds(spark, tmp_path, is_wide):
    """The protocol says what counts mean beside `tightBounds: false`, which Delta writes itself."""
    stats = {"numRecords": 10, "nullCount": {"i": 10}, **({"tightBounds": False} if is_wide else {})}
    add = {"stats": stats, "deletionVector": {**VECTOR, "cardinality": 3}}
    table = opened(spark, write_log(tmp_path / "t", schema_of({"i": "bigint"}), [add]))
    assert (set() if is_wide else {0}) == kept_files(table, "i", Domain.of(BIGINT, 5))


def test_stale_names_are_found_at_every_depth(spark, tmp_path):
    schema = schema_of({"id": "bigint", "nested": {"leaf": "int", "deep": {"last": "int"}}})
    deep = schema["nested"].dataType["deep"].dataType
    deep["last"].metadata = {PHYSICAL_NAME: "other"}
    table = opened(spark, write_log(tmp_path / "t", schema, [{"stats": {"numRecords": ROWS, "nullCount": {"id": 0}}}]))
    assert ("last: other",) == table._snapshot.stale_names
    assert {} == dict(table.files([column_of(table, "id")]).columns)
    assert [ReasonCode.STALE_NAMES] == [each.code for each in table.problems]
