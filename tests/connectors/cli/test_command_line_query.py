"""`CommandLineQuery`: arguments of a command; mistakes are reported before Spark starts, in one line."""

from __future__ import annotations

import pytest

from connectors.cli.query import CommandLineQuery
from pruning.errors import InvalidOptionError, InvalidQueryError, PruningError, SourceNotFoundError


def query_of(text="SELECT 1", file=None, tables=(), conf=()):
    return CommandLineQuery.of(text, file, tables, conf)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"text": None}, InvalidQueryError, "found neither SQL nor a file"),
        ({"text": " ; "}, InvalidQueryError, "without any text"),
        ({"text": "@/no/such.sql"}, InvalidQueryError, "from '/no/such.sql': No such file or directory"),
        ({"tables": ["sales"]}, InvalidQueryError, "from 'sales': expected name=path"),
        ({"tables": ["=/tmp"]}, InvalidQueryError, "call a table '': expected a name"),
        ({"tables": ["a b=/tmp"]}, InvalidQueryError, "call a table 'a b': expected a name of letters"),
        ({"tables": ["1=/tmp"]}, InvalidQueryError, "call a table '1'"),
        ({"tables": ["a=/tmp", "A=/tmp"]}, InvalidQueryError, "which table 'A' is: found two paths"),
        ({"tables": ["a=no/such/path"]}, SourceNotFoundError, "No table 'a' at 'no/such/path': there is no such path"),
        ({"tables": ["a=/tmp/no-such-*.parquet"]}, SourceNotFoundError, "there is no such path"),
        ({"conf": ["spark.x"]}, InvalidQueryError, "from 'spark.x': expected name=value"),
        ({"conf": ["min_probe=1"]}, InvalidQueryError, "'min_probe': expected .*top_k, or limits.<name>"),
        ({"conf": ["limits.max_ranges=0"]}, InvalidOptionError, "limits.max_ranges' to 0: expected a number"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused_before_spark_starts(arguments, error, message):
    with pytest.raises(error, match=message):
        query_of(**arguments)


def test_sql_is_read_from_a_file(tmp_path):
    file = tmp_path / "q.sql"
    file.write_text("\nSELECT 'é';\n", encoding="utf-8")
    assert "SELECT 'é'" == query_of(f"@{file}").sql == query_of(None, file).sql
    with pytest.raises(InvalidQueryError, match="found both SQL and a file"):
        query_of("SELECT 1", file)
    file.write_bytes(b"SELECT '\xff'")
    with pytest.raises(InvalidQueryError, match="it is no text in UTF-8"):
        query_of(None, file)


def test_paths_are_absolute_and_options_need_no_prefix(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").touch()
    monkeypatch.chdir(tmp_path)
    found = query_of(
        tables=["a=a.parquet", "b=*.parquet", "c=s3a://bucket/key"], conf=["limits.max_ranges=9", "spark.x=a=b"]
    )
    assert {"a": f"{tmp_path}/a.parquet", "b": f"{tmp_path}/*.parquet", "c": "s3a://bucket/key"} == found.tables
    assert {"spark.pruning.limits.max_ranges": "9", "spark.x": "a=b"} == found.conf


@pytest.fixture(scope="module")
def days(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("query_of")
    spark.range(0, 10, 1, 2).write.format("delta").save(str(folder / "days"))
    spark.range(0, 10, 1, 2).write.parquet(str(folder / "files"))
    (folder / "text").mkdir()
    (folder / "text" / "a.txt").write_text("a")
    yield folder
    for name in ("days", "files", "some"):
        spark.catalog.dropTempView(name)


@pytest.mark.spark
def test_format_of_tables_is_detected(spark, days):
    tables = [f"days={days}/days", f"files={days}/files", f"some={days}/files/part-00000*"]
    query = "SELECT (SELECT count(*) FROM days), (SELECT count(*) FROM files), (SELECT count(*) FROM some)"
    assert [(10, 10, 5)] == list(map(tuple, query_of(query, tables=tables).frame(spark).collect()))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT FORM days", "Cannot understand the query: .*UNRESOLVED_COLUMN"),
        ("SELEC 1", r"Cannot understand the query: \[PARSE_SYNTAX_ERROR\] Syntax error at or near 'SELEC'"),
        ("SELECT * FROM nowhere", r"`nowhere` cannot be found.*; tables are named by --table, found days$"),
        ("CREATE TABLE made AS SELECT 1", "that Spark would run at once"),
        ("WITH a AS (SELECT 1) INSERT INTO days SELECT * FROM a", "that Spark would run at once"),
        ("DROP VIEW days", "that Spark would run at once"),
    ],
)
def test_invalid_sql_is_a_one_line_error_and_is_not_run(spark, days, text, message):
    with pytest.raises(InvalidQueryError, match=message) as raised:
        query_of(text, tables=[f"days={days}/days"]).frame(spark)
    assert "\n" not in str(raised.value)
    assert 10 == spark.table("days").count()
    assert not spark.catalog.tableExists("made")


@pytest.mark.spark
@pytest.mark.parametrize("path", ["text", "text/a.txt"])
def test_unreadable_files_are_a_one_line_error(spark, days, path):
    with pytest.raises(PruningError, match=f"Cannot read the table 'a' from '{days}/{path}'") as raised:
        query_of("SELECT * FROM a", tables=[f"a={days}/{path}"]).frame(spark).collect()
    assert "\n" not in str(raised.value)
