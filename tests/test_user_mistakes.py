"""User mistakes raise an error that names the input and the remedy; failures inside pruning keep every row."""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from connectors.columns import resolve
from connectors.keys.local import summary_of
from connectors.pipeline import table_scan as pipeline
from connectors.scan.decision import decide
from pruning import PruningOptions, explain, prune, pruned_read, report
from pruning.errors import (
    ColumnNotFoundError,
    InvalidDataFrameError,
    InvalidKeysError,
    InvalidOptionError,
    NotPrunedReadError,
    PruningError,
    SourceNotFoundError,
)
from pruning.values.types import ValueType
from sample_data.confs import conf

HOSTILE = ["it's", 'say "x"', "back`tick", "new\nline", "a.b", "x; DROP TABLE t; --", "UPPER lower"]


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("mistakes") / "orders")
    rows = spark.range(0, 100, 1, 4).selectExpr("id", "cast(id as int) n", "cast(id as string) text", "array(id) list")
    rows.write.format("delta").save(path)
    return path


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"source": "/no/such/table"}, SourceNotFoundError, "/no/such/table"),
        ({"source": "no_such_name"}, SourceNotFoundError, "no_such_name"),
        ({"source": "x'; DROP TABLE t; --"}, SourceNotFoundError, "DROP TABLE"),
        ({"source": None}, SourceNotFoundError, "Cannot read None, a NoneType: expected the path"),
        ({"source": ""}, SourceNotFoundError, "Cannot read an empty text: expected the path"),
        ({"source": b"/lake"}, SourceNotFoundError, "a bytes: expected the path"),
        ({"version": 7}, SourceNotFoundError, "7"),
        ({"version": 0, "timestamp": "2020-01-01"}, InvalidOptionError, "give one of them"),
        ({"timestamp": "1999-01-01"}, SourceNotFoundError, "1999"),
        ({"format": "orc"}, InvalidOptionError, "expected one of delta, parquet"),
        ({"format": "ORC"}, InvalidOptionError, "as 'ORC'"),
        ({"keys": {"idd": [1]}}, ColumnNotFoundError, "did you mean 'id'"),
        ({"columns": ["nope"]}, ColumnNotFoundError, "nope"),
        ({"keys": {}}, InvalidKeysError, "empty"),
        ({"keys": [1]}, InvalidKeysError, "list"),
        ({"keys": {"id": 5}}, InvalidKeysError, "int"),
        ({"keys": {"id": "abc"}}, InvalidKeysError, "str"),
        ({"keys": {"id": ["a"]}}, InvalidKeysError, "bigint"),
        ({"keys": {"text": [1]}}, InvalidKeysError, "string"),
        ({"keys": {"id": [dt.date(2020, 1, 1)]}}, InvalidKeysError, "bigint"),
        ({"keys": {("id", "id"): [(1, 1)]}}, InvalidKeysError, "twice"),
        ({"keys": {("id", "n"): [1]}}, InvalidKeysError, "tuples"),
        ({"keys": {(): [1]}}, InvalidKeysError, "column name"),
    ],
)
def test_mistakes_raise_their_error_without_java_traces(spark, table, arguments, error, message):
    call = {"source": table, "keys": {"id": [1]}, **arguments}
    with pytest.raises(error, match=message) as caught:
        pruned_read(spark, **call)
    assert isinstance(caught.value, PruningError)
    assert "Py4J" not in str(caught.value)
    assert "\tat " not in str(caught.value)


def test_key_frame_with_wrong_column_count_is_refused(spark, table):
    with pytest.raises(InvalidKeysError, match="found 2 columns, expected 1"):
        pruned_read(spark, table, keys={"id": spark.range(3).selectExpr("id", "id AS other")})


def test_version_of_a_parquet_table_is_refused(spark, tmp_path):
    spark.range(3).write.parquet(str(tmp_path / "p"))
    with pytest.raises(InvalidOptionError, match=r"expected a table with versions \(delta\), found one of parquet"):
        pruned_read(spark, str(tmp_path / "p"), keys={"id": [1]}, version=1)


def test_format_is_case_insensitive(spark, table):
    assert 1 == pruned_read(spark, table, keys={"id": [1]}, format="Delta", exact=True).count()


def test_delta_table_is_not_read_as_parquet(spark, table):
    with pytest.raises(InvalidOptionError, match="as 'parquet': it is a table of delta, leave `format` out"):
        pruned_read(spark, table, keys={"id": [1]}, format="parquet")


@pytest.mark.parametrize(("given", "found"), [(5, "found int"), (b"delta", "found bytes"), ("", "found an empty name")])
def test_format_that_is_no_name_is_refused(spark, table, given, found):
    with pytest.raises(InvalidOptionError, match=f"Cannot read the format {given!r}: expected the name .*{found}"):
        pruned_read(spark, table, keys={"id": [1]}, format=given)


@pytest.mark.parametrize("source", [None, 5, b"path", [], ""])
def test_other_sources_are_refused(spark, source):
    with pytest.raises(
        SourceNotFoundError, match="expected the path of a table, its name in the catalog, or a DataFrame"
    ):
        pruned_read(spark, source, keys={"id": [1]})


def test_a_command_that_has_run_is_refused(spark, table):
    for command in (f"DELETE FROM delta.`{table}` WHERE id < 0", "SHOW TABLES"):
        for call in (prune, explain):
            with pytest.raises(InvalidDataFrameError, match=r"has run already: expected a query; enable\(spark\)"):
                call(spark.sql(command))


def test_unknown_name_prints_nothing(spark, capfd):
    with pytest.raises(SourceNotFoundError):
        pruned_read(spark, "no_such_name", keys={"id": [1]})
    assert ("", "") == capfd.readouterr()


def test_a_bad_conf_names_field_value_and_range(spark, table):
    with (
        conf(spark, {"spark.pruning.limits.max_ranges": "lots"}),
        pytest.raises(
            InvalidOptionError, match=r"Cannot set 'spark\.pruning\.limits\.max_ranges' to 'lots': expected a"
        ),
    ):
        pruned_read(spark, table, keys={"id": [1]})


def test_report_refuses_a_derived_dataframe(spark, table):
    read = pruned_read(spark, table, keys={"id": [1]})
    with pytest.raises(NotPrunedReadError, match="pass the one it returned"):
        report(read.where("id = 1"))


@pytest.mark.parametrize("value", [None, "text", 5])
def test_objects_other_than_dataframes_are_refused(value):
    with pytest.raises(NotPrunedReadError):
        report(value)
    for call in (explain, prune):
        with pytest.raises(InvalidDataFrameError, match=f"expected a DataFrame, found {type(value).__name__}"):
            call(value)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_hostile_column_names_and_paths(spark, tmp_path, name, format_):
    path = str(tmp_path / name.replace("/", "_"))
    quoted = "`" + name.replace("`", "``") + "`"
    frame = spark.range(0, 100, 1, 4).selectExpr(f"id AS {quoted}", "id AS plain")
    writer = frame.write.format(format_)
    if format_ == "delta":
        writer = writer.option("delta.columnMapping.mode", "name")
    writer.save(path)
    read = pruned_read(spark, path, keys={quoted: [7, 99]}, exact=True)
    assert [7, 99] == sorted(row.plain for row in read.collect())
    (planned,) = explain(read).tables
    assert (4, 2) == (planned.files_total, planned.files_kept)
    assert "<script>" not in explain(read)._repr_html_()


def test_empty_and_null_keys_read_no_file(spark, table):
    for keys in ([], [None], [None, None], (), spark.range(0), spark.sql("SELECT CAST(NULL AS BIGINT)")):
        read = pruned_read(spark, table, keys={"id": keys})
        assert [] == read.collect()
        (planned,) = explain(read).tables
        assert (4, 0, {"no keys": 4}) == (planned.files_total, planned.files_kept, planned.files_skipped_by)


@pytest.mark.parametrize("exact", [False, True])
def test_unsupported_type_reads_the_whole_table(spark, table, exact, caplog):
    keys = spark.sql("SELECT array(5L) AS list")
    with caplog.at_level(logging.WARNING, "scanprune"):
        read = pruned_read(spark, table, keys={"list": keys}, exact=exact)
    assert ([5] if exact else list(range(100))) == sorted(row.id for row in read.collect())
    (filter_,) = explain(read).tables[0].filters
    assert ["UNSUPPORTED_TYPE"] == [reason.code.name for reason in filter_.reasons]
    assert 1 == len(caplog.records)


def test_failed_build_reads_the_whole_table(spark, table, caplog):
    fails = spark.sql("SELECT CAST(raise_error('no keys today') AS BIGINT) AS id")
    with caplog.at_level(logging.WARNING, "scanprune"):
        read = pruned_read(spark, table, keys={"id": fails})
    assert 100 == read.count()
    (filter_,) = explain(read).tables[0].filters
    assert ["BUILD_RAISED"] == [reason.code.name for reason in filter_.reasons]
    assert 1 == len(caplog.records)


def test_disabled_pruning_is_still_exact(spark, table):
    off = PruningOptions(enabled=False)
    read = pruned_read(spark, table, keys={"id": [5]}, options=off)
    assert (100, ["SWITCHED_OFF"]) == (
        read.count(),
        [reason.code.name for reason in explain(read).tables[0].filters[0].reasons],
    )
    exact = pruned_read(spark, table, keys={"id": [5, None, 77]}, options=off, exact=True)
    assert [5, 77] == sorted(row.id for row in exact.collect())


def test_key_values_stay_out_of_the_log(spark, table, caplog):
    with caplog.at_level(logging.INFO):
        pruned_read(spark, table, keys={"text": ["secret-4711", "7"]}).collect()
    assert "secret-4711" not in caplog.text


def test_corrupt_footer_keeps_its_file(spark, tmp_path):
    path = tmp_path / "p"
    spark.range(0, 100, 1, 4).write.parquet(str(path))
    victim = max(path.glob("*.parquet"))  # Spark takes the schema from the first file
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-6] + b"\xff\xff\xff\x7fPAR1"[-6:])
    read = pruned_read(spark, str(path), keys={"id": [7]})
    (planned,) = explain(read).tables
    assert (4, 2) == (planned.files_total, planned.files_kept)
    assert any("footer" in str(reason) or victim.name in str(reason) for reason in planned.reasons)


@pytest.mark.full
def test_table_of_ten_thousand_columns_is_planned(spark, tmp_path):
    path = str(tmp_path / "wide")
    spark.range(0, 2, 1, 2).selectExpr(*(f"id AS c{at}" for at in range(10_000))).write.parquet(path)
    read = pruned_read(spark, path, keys={"c9999": [1]}, columns=["c0"], exact=True)
    assert [1] == [row.c0 for row in read.collect()]
    assert (2, 1) == (explain(read).tables[0].files_total, explain(read).tables[0].files_kept)


def test_ten_million_keys_stay_within_the_limits(spark, table):
    read = pruned_read(spark, table, keys={"id": np.arange(50, 10_000_050)}, exact=True)
    assert list(range(50, 100)) == sorted(row.id for row in read.collect())
    assert 2 == report(read).measured.files_read


def test_paths_with_special_characters(spark, tmp_path):
    path = tmp_path / "a b%20c" / "ü'#?"
    path.parent.mkdir()
    spark.range(0, 100, 1, 4).write.parquet(str(path))
    assert [7] == [row.id for row in pruned_read(spark, path, keys={"id": [7]}, exact=True).collect()]
    assert [7] == [row.id for row in pruned_read(spark, Path(path), keys={"id": [7]}, exact=True).collect()]


@pytest.mark.parametrize(
    "make",
    [
        iter,
        pa.array,
        lambda values: pd.DataFrame({"whatever": values}),
        np.array,
    ],
    ids=["generator", "arrow", "pandas", "numpy"],
)
@pytest.mark.parametrize(
    "options", [PruningOptions().with_limits(max_build_keys=1), PruningOptions(enabled=False)], ids=["over", "off"]
)
def test_local_keys_over_the_limit_are_exact(spark, table, make, options):
    read = pruned_read(spark, table, keys={"id": make([5, 77, 1000])}, options=options, exact=True)
    assert [5, 77] == sorted(row.id for row in read.collect())


@pytest.mark.parametrize(
    "options", [PruningOptions().with_limits(max_build_keys=1), PruningOptions(enabled=False)], ids=["over", "off"]
)
def test_local_pairs_over_the_limit_are_exact(spark, table, options):
    pairs = {("id", "n"): [(5, 5), (77, 5), (6, 6), (7, None)]}
    read = pruned_read(spark, table, keys=pairs, options=options, exact=True)
    assert [5, 6] == sorted(row.id for row in read.collect())


def test_approximate_summary_is_refused_for_exact_reads(spark, table):
    summary = summary_of([1, 2, 3], [ValueType("bigint")], PruningOptions().with_limits(max_build_keys=1), "id")
    with pytest.raises(InvalidKeysError, match="the summary does not hold each of them"):
        pruned_read(spark, table, keys={"id": summary}, exact=True)
    assert {1, 2, 3} <= {row.id for row in pruned_read(spark, table, keys={"id": summary}).collect()}


@pytest.mark.parametrize("exact", [False, True])
def test_failure_in_pruning_keeps_rows_and_warns_once(spark, table, exact, monkeypatch, caplog):
    attempts = []

    def failing_once(*arguments):
        attempts.append(arguments)
        if len(attempts) == 1:
            msg = "statistics went missing"
            raise RuntimeError(msg)
        return decide(*arguments)

    monkeypatch.setattr(pipeline, "decide", failing_once)
    with caplog.at_level(logging.WARNING, "scanprune"):
        read = pruned_read(spark, table, keys={"id": [5, 77]}, columns=["n"], exact=exact)
    assert ([5, 77] if exact else list(range(100))) == sorted(row.n for row in read.collect())
    assert {"STATISTICS_FAILED"} == {reason.code.name for reason in explain(read).tables[0].reasons}
    assert 1 == len(caplog.records)


def test_char_inside_a_struct_is_refused():
    nested = StructType([StructField("c", StringType())])
    schema = StructType([StructField("s", nested, metadata={"__CHAR_VARCHAR_TYPE_STRING": "struct<c:char(5)>"})])
    assert "CHAR_PADDED" == resolve(schema, "s.c", table="t", case_sensitive=False).refusal.code.name


def test_entries_without_a_common_key_read_no_file(spark, table):
    read = pruned_read(spark, table, keys={"id": [1], ("id", "n"): [(2, 2)]})
    assert [] == read.collect()
    assert 0 == explain(read).tables[0].files_kept


@pytest.mark.parametrize("keys", [pa.table({"c": ["ab"]}), pd.DataFrame({"c": ["ab"]})], ids=["arrow", "pandas"])
def test_key_tables_of_unordered_columns_are_refused(spark, table, keys):
    with pytest.raises(InvalidKeysError, match="pass them as a DataFrame"):
        pruned_read(spark, table, keys={"list": keys}, exact=True)
