"""Joins by a column that another one is generated from, and by the generated one: each prunes by what is known of both.

40 days of 6 rows each, in UTC, of which Delta writes one file for each day.
"""

from __future__ import annotations

import pytest

from pruning import explain, history
from sample_data.rows import Rows
from tests.catalogue.facts import OPTIONS, files, refusal_codes
from tests.in_session import in_session

pytestmark = pytest.mark.spark

ROWS, FILES = 240, 40
# Every fourth hour from 2024-01-01.
EVENTS = ("id", "timestamp_seconds(1704067200 + 14400 * id) AS at", "concat('v', id) AS v")
DAYS = (
    "id",
    "date_add(date'2024-01-01', cast(id AS int)) AS day",
    "timestamp_seconds(1704067200 + 86400 * id) AS midnight",
    "timestamp_seconds(1704067200 + 86400 * id + 43200) AS noon",
    "cast(2024 + id AS int) AS year",
    "cast(id AS int) AS number",
)
# The day 2024-01-21.
ONE_DAY = "(SELECT * FROM some_days WHERE id = 20)"
NO_STATISTICS = "'delta.dataSkippingNumIndexedCols' = '0'"
BY_DAY = "id BIGINT, at TIMESTAMP, v STRING, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))"
UTC, KIRITIMATI, LOS_ANGELES = "UTC", "Pacific/Kiritimati", "America/Los_Angeles"


@pytest.fixture(scope="module")
def made(spark, ways, tmp_path_factory):
    """A function that makes a table of events, once for each name, and returns its folder; `conf` is for its writer."""
    folders: dict[str, str] = {}

    def make(name, columns, rest, events=EVENTS, *, names=(), zone=UTC):
        if name not in folders:
            folders[name] = str(tmp_path_factory.mktemp("generated") / name)
            before = spark.conf.get("spark.sql.session.timeZone")
            spark.conf.set("spark.sql.session.timeZone", zone)
            try:
                spark.sql(f"CREATE TABLE delta.`{folders[name]}` ({columns}) USING delta {rest}")
                # One task writes a file for each partition.
                source = spark.range(0, ROWS, 1, 1 if "PARTITIONED" in rest else FILES).selectExpr(*events)
                source = source.toDF(*names) if names else source
                source.write.format("delta").mode("append").save(folders[name])
            finally:
                spark.conf.set("spark.sql.session.timeZone", before)
            spark.read.format("delta").load(folders[name]).createOrReplaceTempView(name)
            ways.names[name] = None
        return folders[name]

    return make


@pytest.fixture(scope="module", autouse=True)
def some_days(stored, spark):
    stored("some_days", spark.range(0, FILES, 1, 1).selectExpr(*DAYS))


@pytest.fixture
def partitioned(made):
    return made("partitioned", BY_DAY, f"PARTITIONED BY (day) TBLPROPERTIES ({NO_STATISTICS})")


@pytest.fixture
def clustered(made):
    return made("clustered", BY_DAY, "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'at')")


def joined(table: str, condition: str) -> str:
    return f"SELECT e.id, e.v, d.id FROM {table} e JOIN {ONE_DAY} d ON {condition}"


# The hours of every time zone, and the two days by which Delta's own partition filters may err, on both sides.
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("e.at = d.noon", 7),
        ("e.at BETWEEN d.midnight AND d.noon", 7),
        ("to_date(e.at) = d.day", 9),
        ("date_trunc('DAY', e.at) = d.midnight", 9),
        ("e.at >= d.midnight", 23),
        ("e.at < d.midnight", 23),
        ("e.day = d.day", 1),
    ],
)
@pytest.mark.usefixtures("partitioned")
def test_keys_of_the_source_give_partitions(agreed, condition, kept):
    _, result = agreed(joined("partitioned", condition), OPTIONS, by_duck=False)
    assert {"partitioned": kept} == files(result)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        # A day of UTC has rows of three local days.
        ("e.day = d.day", 3),
        ("e.day BETWEEN d.day AND date_add(d.day, 5)", 8),
        ("trunc(e.day, 'MM') = d.day - 20", 33),
        ("e.at = d.noon", 1),
    ],
)
@pytest.mark.usefixtures("clustered")
def test_keys_of_the_generated_column_give_files(agreed, condition, kept):
    _, result = agreed(joined("clustered", condition), OPTIONS, by_duck=False)
    assert {"clustered": kept} == files(result)


ZONES = [(KIRITIMATI, LOS_ANGELES), (LOS_ANGELES, KIRITIMATI), ("Pacific/Niue", KIRITIMATI), ("+18:00", "-18:00")]


# Failure catalogue 98: the days of the writer are not those of the reader.
@pytest.mark.parametrize(("writer", "reader"), ZONES)
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("e.at = d.noon", 7),
        ("to_date(e.at) = d.day", 9),
        ("e.at BETWEEN d.midnight AND d.noon", 7),
        ("date_trunc('HOUR', e.at) = d.noon", 9),
    ],
)
def test_days_of_a_writer_in_another_zone(agreed, made, conf, writer, reader, condition, kept):
    name = f"written_{ZONES.index((writer, reader))}"
    made(name, BY_DAY, f"PARTITIONED BY (day) TBLPROPERTIES ({NO_STATISTICS})", zone=writer)
    conf("spark.sql.session.timeZone", reader)
    df, result = agreed(joined(name, condition), OPTIONS, by_duck=False)
    assert df.count()
    assert {name: kept} == files(result)


@pytest.mark.parametrize(("writer", "reader"), ZONES)
def test_generated_days_of_a_writer_in_another_zone(agreed, made, conf, writer, reader):
    name = f"clustered_{ZONES.index((writer, reader))}"
    made(name, BY_DAY, "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'at')", zone=writer)
    conf("spark.sql.session.timeZone", reader)
    df, result = agreed(joined(name, "e.day = d.day"), OPTIONS, by_duck=False)
    assert df.count() == 6
    assert {name: 3} == files(result)


@pytest.mark.parametrize("condition", ["e.at = d.noon", "e.at <=> d.noon"])
@pytest.mark.parametrize("has_null", [False, True])
def test_rows_without_a_time_lie_in_the_partition_without_a_day(agreed, made, condition, has_null):
    some = ("id", "if(id % 6 = 5, NULL, timestamp_seconds(1704067200 + 14400 * id)) AS at", "concat('v', id) AS v")
    made("missing", BY_DAY, f"PARTITIONED BY (day) TBLPROPERTIES ({NO_STATISTICS})", some)
    null = "UNION ALL SELECT NULL, NULL" if has_null else ""
    query = f"""SELECT e.id, d.id FROM missing e JOIN (SELECT id, noon FROM some_days WHERE id = 20 {null}) d
        ON {condition}"""
    df, result = agreed(query, OPTIONS, by_duck=False)
    is_null_key = has_null and "<=>" in condition
    assert (ROWS // 6 if is_null_key else 0) + 1 == df.count()
    # No filter goes by keys of which one is NULL.
    assert ({} if is_null_key else {"missing": 7}) == files(result)


# Expressions of which nothing is known, or which are of several columns.
@pytest.mark.parametrize(
    ("name", "type_", "expression"),
    [("months", "INT", "month(at)"), ("sums", "BIGINT", "id + length(v)"), ("texts", "STRING", "date_format(at, 'E')")],
)
def test_other_expressions_tell_nothing(agreed, made, name, type_, expression):
    columns = f"id BIGINT, at TIMESTAMP, v STRING, part {type_} GENERATED ALWAYS AS ({expression})"
    made(name, columns, f"TBLPROPERTIES ({NO_STATISTICS})")
    df, result = agreed(joined(name, "e.at = d.noon"), OPTIONS, by_duck=False)
    assert files(result).get(name, FILES) == FILES
    assert refusal_codes(df, result) & {"NO_STATISTICS", "UNCLUSTERED", "INT96"}


@pytest.mark.parametrize(
    ("name", "type_", "expression", "condition", "kept"),
    [
        ("hours", "TIMESTAMP", "date_trunc('HOUR', at)", "e.part = d.noon", 3),
        ("none_of_years", "INT", "YEAR(at)", "e.part = d.year", 0),
        ("tens", "BIGINT", "id DIV 10", "e.part = d.id", 2),
        ("later", "BIGINT", "id + 7", "e.part = d.id", 1),
        ("seconds", "BIGINT", "unix_timestamp(at)", "e.part = unix_timestamp(d.noon)", 1),
        ("letters", "STRING", "substring(v, 1, 3)", "e.part = concat('v', d.id)", 6),
    ],
)
def test_functions_of_the_table_bound_generated_columns(agreed, made, name, type_, expression, condition, kept):
    columns = f"id BIGINT, at TIMESTAMP, v STRING, part {type_} GENERATED ALWAYS AS ({expression})"
    made(name, columns, "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'id, at, v')")
    _, result = agreed(joined(name, condition), OPTIONS, by_duck=False)
    assert {name: kept} == files(result)


def test_partitions_bound_other_generated_columns(agreed, made):
    columns = f"{BY_DAY}, month DATE GENERATED ALWAYS AS (trunc(CAST(at AS DATE), 'MM'))"
    made("siblings", columns, f"PARTITIONED BY (month) TBLPROPERTIES ({NO_STATISTICS})")
    _, result = agreed(joined("siblings", "e.day = date_add(d.day, 19)"), OPTIONS, by_duck=False)
    # January and February have a file each.
    assert {"siblings": 1} == files(result)


ODD = """`the id` BIGINT, `at.the ``time` TIMESTAMP, v STRING,
    `of day` DATE GENERATED ALWAYS AS (CAST(`at.the ``time` AS DATE))"""


@pytest.mark.parametrize("is_renamed", [False, True])
def test_mapped_columns_with_odd_names(spark, agreed, made, is_renamed):
    name = f"odd_{is_renamed}"
    mapping = "'delta.columnMapping.mode' = 'name'"
    rest = f"PARTITIONED BY (`of day`) TBLPROPERTIES ({NO_STATISTICS}, {mapping})"
    folder = made(name, ODD, rest, names=("the id", "at.the `time", "v"))
    if is_renamed:
        spark.sql(f"ALTER TABLE delta.`{folder}` RENAME COLUMN v TO `of day 2`")
        spark.read.format("delta").load(folder).createOrReplaceTempView(name)
    query = f"SELECT e.`the id`, d.id FROM {name} e JOIN {ONE_DAY} d ON e.`at.the ``time` = d.noon"
    _, result = agreed(query, OPTIONS, by_duck=False)
    assert {name: 7} == files(result)


def test_deleted_rows_leave_the_bounds_of_their_files(spark, agreed, made):
    vectors = "'delta.enableDeletionVectors' = 'true'"
    folder = made("thinned", BY_DAY, f"PARTITIONED BY (day) TBLPROPERTIES ({NO_STATISTICS}, {vectors})")
    spark.sql(f"DELETE FROM delta.`{folder}` WHERE id % 6 = 3")
    spark.read.format("delta").load(folder).createOrReplaceTempView("thinned")
    df, result = agreed(
        joined("thinned", "e.at BETWEEN d.midnight AND d.noon + INTERVAL 1 HOUR"), OPTIONS, by_duck=False
    )
    assert 3 == df.count()
    assert {"thinned": 7} == files(result)


@pytest.mark.parametrize("direction", ["", "DESC"])
@pytest.mark.usefixtures("partitioned")
def test_the_first_rows_lie_in_few_partitions(agreed, direction):
    query = f"SELECT id, at FROM partitioned ORDER BY at {direction} LIMIT 3"
    _, result = agreed(query, OPTIONS, by_duck=False)
    assert {"partitioned": 5} == files(result)


def test_a_merge_by_the_source_looks_into_few_partitions(spark, made):
    tables = {
        name: made(name, BY_DAY, f"PARTITIONED BY (day) TBLPROPERTIES ({NO_STATISTICS})")
        for name in ("stock", "merged")
    }
    source = f"(SELECT id, noon AS at, 'new' AS v FROM {ONE_DAY} UNION ALL SELECT -1, TIMESTAMP'2030-01-01', 'other')"
    upsert = """MERGE INTO delta.`{}` t USING {} s ON t.at = s.at WHEN MATCHED THEN UPDATE SET v = s.v
        WHEN NOT MATCHED THEN INSERT (id, at, v) VALUES (s.id, s.at, s.v)"""
    spark.sql(upsert.format(tables["stock"], source))
    in_session(spark, OPTIONS, lambda: spark.sql(upsert.format(tables["merged"], source)))
    assert any("read 7 of 40 files" in each.verdict for each in history(spark)), [*history(spark)]
    rows = [Rows(spark.read.format("delta").load(each).collect()) for each in tables.values()]
    assert rows[0] == rows[1]
    assert ROWS + 1 == len(rows[0])


@pytest.mark.usefixtures("partitioned")
def test_a_column_that_the_query_computes_is_a_function_of_the_source(agreed):
    query = f"""SELECT e.id FROM (SELECT id, CAST(at AS DATE) AS day FROM partitioned) e JOIN {ONE_DAY} d
        ON e.day = d.day"""
    _, result = agreed(query, OPTIONS, by_duck=False)
    assert {"partitioned": 9} == files(result)
    assert "CAST(at AS DATE)" in str(explain(result))


# Delta checks what is written against the expression, and takes no expression for rows that are there.
@pytest.mark.parametrize(
    "command",
    [
        "INSERT INTO delta.`{}` (id, at, v, day) VALUES (1, TIMESTAMP'2024-01-01 12:00:00', 'x', DATE'2024-05-05')",
        "INSERT INTO delta.`{}` (id, at, v, day) VALUES (1, NULL, 'x', DATE'2024-05-05')",
        "ALTER TABLE delta.`{}` ADD COLUMN month DATE GENERATED ALWAYS AS (trunc(at, 'MM'))",
    ],
    ids=["another day", "a day without a time", "a further column"],
)
def test_delta_keeps_to_the_expression(spark, partitioned, command):
    with pytest.raises(Exception, match=r"(?i)constraint|generated|parse"):
        spark.sql(command.format(partitioned))
