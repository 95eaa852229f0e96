"""Joins by functions of a column: the values that the function maps to keys filter the scan, in both formats."""

from __future__ import annotations

import pytest

from pruning import explain, prune
from pruning.reasons import ReasonCode
from tests.catalogue.facts import OPTIONS, files, refusal_codes
from tests.costs import ALWAYS

pytestmark = pytest.mark.spark

FORMATS = ("delta", "parquet")
HOURS, FILES = 1600, 8
# One row for each hour from 2023-12-20, 200 in each file; the columns follow the same order.
EVENTS = (
    "id",
    "cast(id AS int) AS number",
    "timestamp_seconds(1703030400 + 3600 * id) AS at",
    "cast(timestamp_seconds(1703030400 + 3600 * id) AS timestamp_ntz) AS local",
    "cast(timestamp_seconds(1703030400 + 3600 * id) AS date) AS day",
    "concat('C', lpad(cast(id AS string), 6, '0')) AS code",
    "cast(id / 10 AS decimal(12, 2)) AS price",
    "cast(id AS string) AS digits",
    "cast(date_add(date'2023-12-20', cast(id div 24 AS int)) AS string) AS iso",
    "if(id % 7 = 1, NULL, id) AS maybe",
    "if(id % 7 = 2, NULL, concat('C', lpad(cast(id AS string), 6, '0'))) AS maybe_code",
)
DAYS = (
    "id",
    "date_add(date'2023-12-20', cast(id AS int)) AS day",
    "cast(id AS string) AS text",
    "id IN (1, 5, 45) AS chosen",
    "cast(date_add(date'2023-12-20', cast(id AS int)) AS timestamp) AS midnight",
    "add_months(date'2023-12-01', cast(id AS int)) AS month",
    "cast(2020 + id AS int) AS year",
    "concat('C', lpad(cast(id AS string), 4, '0')) AS prefix",
)
# The days 1, 5 and 45 after the first.
SOME_DAYS = "(SELECT * FROM days WHERE chosen)"


@pytest.fixture(scope="module", autouse=True)
def events(spark, stored):
    rows = spark.range(0, HOURS, 1, FILES).selectExpr(*EVENTS)
    for format_ in FORMATS:
        stored(f"events_{format_}", rows, format_)
    stored("days", spark.range(0, 66, 1, 1).selectExpr(*DAYS))


# The condition of a join with the chosen days, and the files of eight that are read.
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        pytest.param("to_date(e.at) = d.day", 2, id="to_date"),
        pytest.param("CAST(e.local AS DATE) = d.day", 2, id="date of a local time"),
        pytest.param("date_trunc('DAY', e.at) = d.midnight", 2, id="date_trunc of a day"),
        pytest.param("date_trunc('hour', e.at) = d.midnight", 2, id="date_trunc of an hour"),
        pytest.param("trunc(e.day, 'MM') = d.month AND d.id = 1", 5, id="trunc of a month"),
        pytest.param("year(e.at) = d.year + 2 AND d.id = 1", 2, id="year of a time"),
        pytest.param("year(e.day) = d.year + 2 AND d.id = 1", 2, id="year of a day"),
        pytest.param("date_add(e.day, 1) = d.day", 2, id="date_add"),
        pytest.param("e.day - 2 = d.day", 2, id="date_sub"),
        pytest.param("e.id DIV 100 = d.id", 2, id="div"),
        pytest.param("floor(e.number / 100) = d.id", 2, id="floor"),
        pytest.param("CAST(e.number AS STRING) = d.text", 1, id="text"),
        pytest.param("CAST(e.day AS STRING) = CAST(d.day AS STRING)", 2, id="text of a day"),
        pytest.param("date_format(e.at, 'yyyyMMdd') = date_format(d.day, 'yyyyMMdd')", 2, id="format of a day"),
        pytest.param("date_format(e.at, 'yyyy-MM') = left(d.day, 7) AND d.id = 45", 3, id="format of a month"),
        pytest.param("substring(e.code, 1, 5) = d.prefix", 2, id="substring"),
        pytest.param("left(e.code, 5) = d.prefix", 2, id="left"),
        pytest.param("unix_timestamp(e.at) = unix_timestamp(d.midnight)", 2, id="unix_timestamp"),
        pytest.param("e.at + INTERVAL 1 DAY = d.midnight", 2, id="interval later"),
        pytest.param("e.at - INTERVAL 36 HOURS = d.midnight", 2, id="interval before"),
        pytest.param("e.number + 150 = d.id + 300", 1, id="sum"),
        pytest.param("-e.id = -(d.id * 20 + 200)", 2, id="negative"),
        pytest.param("1000 - e.number = d.id", 1, id="difference"),
        pytest.param("e.id * 2 = d.id * 40 + 400", 2, id="product"),
        pytest.param("CAST(e.id AS INT) = d.id * 20 + 200", 2, id="fewer bits"),
        pytest.param("ceil(e.number / 100) = d.id", 2, id="ceil"),
        pytest.param("floor(e.price) = d.id", 2, id="floor of a decimal"),
        pytest.param("ceil(e.price) = d.id", 2, id="ceil of a decimal"),
        pytest.param("last_day(e.day) = last_day(d.month) AND d.id = 1", 5, id="last_day"),
        pytest.param("unix_millis(e.at) = unix_millis(d.midnight)", 2, id="unix_millis"),
        pytest.param("CAST(e.local AS TIMESTAMP) = d.midnight", 2, id="local time as instant"),
        pytest.param("CAST(e.at AS TIMESTAMP_NTZ) = CAST(d.day AS TIMESTAMP_NTZ)", 2, id="instant as local time"),
        pytest.param("date_trunc('DAY', e.local) = d.midnight", 2, id="date_trunc of a local time"),
        pytest.param("date_format(e.local, 'yyyy-MM-dd') = CAST(d.day AS STRING)", 2, id="format of a local time"),
        pytest.param("e.local + INTERVAL 1 DAY = CAST(d.day AS TIMESTAMP_NTZ)", 2, id="interval of a local time"),
        pytest.param("-e.id <= d.id - 1500 AND d.id = 45", 1, id="negative range"),
        pytest.param("date_format(e.at, 'yyyy-MM-dd HH') = concat(d.day, ' 05')", 2, id="format of an hour"),
        pytest.param(
            "date_format(e.at, 'yyyyMMdd') <= date_format(d.day, 'yyyyMMdd') AND d.id = 1", 1, id="days until"
        ),
        pytest.param("date_format(e.local, 'yyyy-MM') >= left(d.day, 7) AND d.id = 45", 4, id="months from on"),
        pytest.param("to_date(e.at) BETWEEN d.day AND date_add(d.day, 2) AND d.id = 45", 1, id="between"),
        pytest.param("to_date(e.at) >= d.day AND d.id = 45", 3, id="from a day on"),
        pytest.param("year(date_add(e.day, 10)) = d.year + 2 AND d.id = 1", 1, id="a function of a function"),
    ],
)
def test_keys_of_functions_filter_the_column(agreed, format_, condition, kept):
    query = f"SELECT e.id, d.id FROM events_{format_} e JOIN {SOME_DAYS} d ON {condition}"
    df, result = agreed(query, OPTIONS, by_duck=False)
    assert 0 < df.count()
    # Parquet files of Spark have no statistics of timestamps.
    is_known = format_ == "delta" or "e.at" not in condition
    assert ({f"events_{format_}": kept} if is_known else {}) == files(result)


# Failure catalogue 104: INT96 has no statistics, so that ranges of it skip nothing and no build is worth its seconds.
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("to_date(e.at) = d.day", "CAST(at AS DATE)"),
        ("date_trunc('DAY', e.at) = d.midnight", "date_trunc('DAY', at)"),
        ("year(e.at) = d.year + 2 AND d.id = 1", "year(CAST(at AS DATE))"),
        ("e.at >= d.midnight AND d.id = 45", "at"),
    ],
)
def test_ranges_of_a_column_without_statistics_need_no_build(agreed, format_, condition, named):
    query = f"SELECT e.id, d.id FROM events_{format_} e JOIN {SOME_DAYS} d ON {condition}"
    _, result = agreed(query, OPTIONS, by_duck=False)
    told = explain(result)
    refused = [str(each) for each in told.causes if each.code is ReasonCode.INT96]
    if format_ == "delta":
        assert ([], True) == (refused, bool(told.builds and told.tables))
    else:
        assert ([f"{named}: {ReasonCode.INT96.value}"], ()) == (refused, told.builds)
        assert (
            f"nothing was pruned, since {refused[0]}; try: set `spark.sql.parquet.outputTimestampType`" in told.verdict
        )
    # Every sound filter tries, and skips no more.
    _, result = agreed(query, ALWAYS, by_duck=False)
    assert (format_ == "delta") == bool(files(result))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM events_delta WHERE to_date(at) IN (SELECT day FROM days WHERE chosen)",
        "SELECT id FROM events_delta e WHERE EXISTS (SELECT 1 FROM days d WHERE d.day = to_date(e.at) AND d.chosen)",
        """SELECT n FROM (SELECT to_date(at) AS day, count(*) AS n FROM events_delta GROUP BY 1) JOIN days USING (day)
        WHERE chosen""",
        "SELECT d.id, e.id FROM days d LEFT JOIN events_delta e ON to_date(e.at) = d.day WHERE d.chosen",
        """SELECT id FROM (SELECT id, CAST(at AS DATE) AS day FROM events_delta) e
        WHERE day IN (SELECT day FROM days WHERE chosen)""",
    ],
    ids=["in", "exists", "groups", "outer join", "a projection below"],
)
def test_every_shape_of_a_join_passes_functions(agreed, query):
    _, result = agreed(query, OPTIONS, by_duck=False)
    assert {"events_delta": 2} == files(result)


# Keys 220, 300 and 1100, or the codes of them.
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        pytest.param("coalesce(e.maybe, 0) = d.id * 20 + 200", 2, id="coalesce"),
        pytest.param("coalesce(e.maybe, NULL, -1L) = d.id * 20 + 200", 2, id="coalesce of several"),
        pytest.param("nvl(e.maybe, -1) + 100 = d.id * 20 + 300", 2, id="below a sum"),
        pytest.param("coalesce(to_date(e.local), date'1970-01-01') = d.day", 2, id="above a date"),
        pytest.param("CASE WHEN e.id >= 0 THEN e.maybe ELSE -1 END = d.id * 20 + 200", 2, id="case"),
        pytest.param(
            "CASE WHEN e.id % 2 = 0 THEN e.maybe WHEN e.id > 3 THEN -5L END = d.id * 20 + 200", 2, id="no else"
        ),
        pytest.param("if(e.number > 100, e.maybe, -1) = d.id * 20 + 200", 2, id="if"),
        pytest.param("nullif(e.maybe, 220) = d.id * 20 + 200", 2, id="nullif"),
        pytest.param("nvl2(e.maybe, e.maybe, 5L) = d.id * 20 + 200", 2, id="nvl2"),
        pytest.param(
            "coalesce(e.maybe_code, 'none') = concat('C', lpad(string(d.id * 20 + 200), 6, '0'))", 2, id="text"
        ),
        # Every row without a value has a key.
        pytest.param("coalesce(e.maybe, 220) = d.id * 20 + 200", FILES, id="a constant that is a key"),
        pytest.param(
            "CASE WHEN e.id > 500 THEN 300L ELSE e.maybe END = d.id * 20 + 200", FILES, id="a constant of a case"
        ),
    ],
)
def test_constants_beside_a_column_leave_its_keys(agreed, format_, condition, kept):
    query = f"SELECT e.id, d.id FROM events_{format_} e JOIN {SOME_DAYS} d ON {condition}"
    df, result = agreed(query, OPTIONS, by_duck=False)
    assert 0 < df.count()
    assert ({f"events_{format_}": kept} if kept < FILES else {}) == files(result)
    if kept == FILES:
        assert "CONSTANT_KEY" in {each.code.name for each in explain(result).reasons}


# December 2023, the chosen days, and February 2024.
@pytest.mark.parametrize(
    ("query", "kept"),
    [
        pytest.param(
            f"""SELECT e.id FROM events_delta e
            JOIN (SELECT DISTINCT year(day) AS y, month(day) AS m FROM {SOME_DAYS} WHERE id < 40) d
            ON year(e.at) = d.y AND month(e.at) = d.m""",
            2,
            id="months",
        ),
        pytest.param(
            f"""SELECT e.id FROM events_delta e WHERE (year(e.day), month(e.day), day(e.day)) IN
            (SELECT year(day), month(day), day(day) FROM {SOME_DAYS})""",
            2,
            id="days",
        ),
        pytest.param(
            """SELECT e.id FROM events_delta e WHERE EXISTS (SELECT 1 FROM VALUES (2024, 13), (NULL, 1), (2024, NULL),
            (2024, 2), (5881580, 7) AS d (y, m) WHERE d.y = year(e.local) AND d.m = month(e.local))""",
            3,
            id="months that are none",
        ),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Pacific/Kiritimati"])
def test_parts_of_a_date_filter_together(agreed, conf, query, kept, zone):
    conf("spark.sql.session.timeZone", zone)
    # A month is half of the table, which is no gain.
    df, result = agreed(query, ALWAYS, by_duck=False)
    assert 0 < df.count()
    assert kept == files(result)["events_delta"]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/St_Johns", "Pacific/Kiritimati"])
def test_local_days_follow_the_zone_of_the_session(agreed, conf, zone):
    conf("spark.sql.session.timeZone", zone)
    query = f"SELECT e.id, d.id FROM events_delta e JOIN {SOME_DAYS} d ON to_date(e.at) = d.day"
    _, result = agreed(query, OPTIONS, by_duck=False)
    assert {"events_delta": 2} == files(result)


# Each gives values of which nothing tells where they lie.
@pytest.mark.parametrize(
    "condition",
    [
        "month(e.at) = d.id",
        "CAST(e.code AS STRING) = upper(d.prefix) AND reverse(e.code) = d.prefix",
        "e.id % 100 = d.id",
        "CAST(e.number AS STRING) >= d.text",
        "e.id * e.number = d.id",
    ],
    ids=["month", "reverse", "remainder", "order of texts", "product"],
)
def test_other_functions_are_named_in_a_reason(agreed, condition):
    query = f"SELECT e.id, d.id FROM events_delta e JOIN {SOME_DAYS} d ON {condition.split(' AND ')[-1]}"
    df, result = agreed(query, OPTIONS, by_duck=False)
    assert "COMPUTED" in refusal_codes(df, result)


@pytest.mark.parametrize(
    ("condition", "key", "cause"),
    [
        (
            "CAST(e.digits AS BIGINT) = d.id",
            "CAST(digits AS bigint)",
            "texts do not follow the order of numbers, and several are the same number",
        ),
        (
            "to_date(e.iso) = d.day",
            "CAST(iso AS date)",
            "a text that is no date may stand between any two, and raise an error",
        ),
    ],
)
def test_casts_of_texts_say_why_they_tell_nothing(agreed, condition, key, cause):
    query = f"SELECT e.id, d.id FROM events_delta e JOIN {SOME_DAYS} d ON {condition}"
    df, result = agreed(query, OPTIONS, by_duck=False)
    assert 0 < df.count()
    assert {} == files(result)
    found = explain(result)
    reason = f"{key}: {ReasonCode.COMPUTED.value} ({cause})"
    assert reason in {*map(str, found.reasons), *(stop for edge in found.edges for stop in edge.stops)}


# Stock Spark raises an error for the last row, whatever is joined with it.
@pytest.mark.parametrize("ansi", [True, False])
def test_a_row_on_which_the_function_raises_is_read(spark, stored, conf, ansi):
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    rows = spark.range(0, 80, 1, 8).selectExpr("cast(if(id = 79, 2147483647, id) AS int) AS n", "id")
    stored(f"near_the_end_{ansi}", rows)
    df = spark.sql(f"SELECT e.id FROM near_the_end_{ansi} e JOIN {SOME_DAYS} d ON e.n + 1 = d.id")
    result = prune(df, options=OPTIONS)
    if ansi:
        for each in (df, result):
            with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
                each.collect()
    else:
        assert df.collect() == result.collect()


# Literals of such moments overflow where Spark plans a scan.
@pytest.mark.parametrize(
    ("type_", "least"),
    [("timestamp", "timestamp_micros(-9223372036854775808L)"), ("date", "date_from_unix_date(int(-2147483648))")],
)
@pytest.mark.parametrize("comparison", ["=", ">=", "<="])
@pytest.mark.parametrize("is_known", [False, True], ids=["nullable", "not null"])
def test_keys_of_the_least_moment(spark, stored, type_, least, comparison, is_known):
    name = f"moments_{type_}"
    made = "timestamp_seconds(id)" if type_ == "timestamp" else "date_from_unix_date(cast(id AS int))"
    if not spark.catalog.tableExists(name):
        rows = spark.range(0, 80, 1, 8).selectExpr("id", f"if(id = 0, {least}, {made}) AS at")
        stored(name, rows)
        keys = spark.range(1).selectExpr(f"{least} AS at").union(spark.range(1).selectExpr(f"{made} AS at"))
        stored(f"keys_{type_}", keys.coalesce(1))
        spark.sql(f"CREATE TABLE {name}_known (id BIGINT, at {type_} NOT NULL) USING delta")
        rows.write.format("delta").mode("append").saveAsTable(f"{name}_known")
    probe = f"{name}_known" if is_known else name
    keys = f"(SELECT at FROM keys_{type_} WHERE at IS NOT NULL)"
    df = spark.sql(f"SELECT m.id FROM {probe} m JOIN {keys} k ON m.at {comparison} k.at")
    assert sorted(df.collect()) == sorted(prune(df, options=OPTIONS).collect())


# A column may have the name of a unit or of a pattern.
@pytest.mark.parametrize("key", ["date_trunc(day, at)", "trunc(to_date(at), day)"])
def test_a_unit_that_is_a_column_is_no_unit(spark, stored, key):
    if not spark.catalog.tableExists("units"):
        columns = ("id", "if(id % 2 = 0, 'YEAR', 'DAY') AS day", "timestamp_seconds(1703030400 + 3600 * id) AS at")
        stored("units", spark.range(0, HOURS, 1, FILES).selectExpr(*columns))
        stored("one_day", spark.sql("SELECT 'YEAR' AS day, TIMESTAMP '2024-01-09 00:00:00' AS at"))
    chosen = f"(SELECT {key} AS x FROM one_day)"
    df = spark.sql(f"SELECT e.id FROM units e JOIN {chosen} k ON {key} = k.x")
    assert sorted(df.collect()) == sorted(prune(df, options=OPTIONS).collect())


@pytest.mark.parametrize("condition", ["e.number + 1 = d.id", "to_date(e.at) = d.day", "date_add(e.day, 1) = d.day"])
def test_an_empty_build_leaves_no_row(agreed, conf, condition):
    conf("spark.sql.ansi.enabled", "false")
    query = f"SELECT e.id, d.id FROM events_delta e JOIN (SELECT * FROM days WHERE id < 0) d ON {condition}"
    _, result = agreed(query, OPTIONS, by_duck=False)
    assert [] == result.collect()
    assert not [each for each in explain(result).reasons if "failed" in str(each)]


# With more keys than the limit, texts are known by the least and the greatest alone.
@pytest.mark.parametrize("limit", [1_000_000, 10])
def test_prefixes_of_more_keys_than_the_limit(spark, stored, limit):
    if not spark.catalog.tableExists("codes"):
        code = "concat('C', if(id % 3 = 0, lpad(string(id), 6, '0'), lpad(string(id DIV 100), 4, '0'))) AS code"
        stored("codes", spark.range(100, 1250).selectExpr(code, "id > 101 AS chosen").distinct().coalesce(1))
    keys = "(SELECT * FROM codes WHERE chosen)"
    df = spark.sql(f"SELECT e.id FROM events_delta e JOIN {keys} k ON substring(e.code, 1, 5) = k.code")
    result = prune(df, options=OPTIONS.with_limits(max_build_keys=limit))
    assert df.count()
    assert sorted(df.collect()) == sorted(result.collect())


@pytest.mark.parametrize(
    "condition", ["<= d.longer", "BETWEEN 'A' AND d.longer", "<= (SELECT max(longer) FROM longer)"]
)
def test_prefixes_up_to_a_longer_text(spark, stored, condition):
    if not spark.catalog.tableExists("longer"):
        stored("longer", spark.range(1).selectExpr("'C000345' AS longer"))
    source = "FROM events_delta e" if "SELECT" in condition else "FROM events_delta e CROSS JOIN longer d"
    df = spark.sql(f"SELECT e.id {source} WHERE substring(e.code, 1, 5) {condition}")
    assert 400 == df.count()
    assert sorted(df.collect()) == sorted(prune(df, options=OPTIONS).collect())


# Preimages of keys near the ends of a type lie beyond it, where no literal is.
NEAR_THE_ENDS = {
    "e.number + 17": "(CAST(-2147483640 AS INT)), (20)",
    "date_add(e.day, 3)": "(date_from_unix_date(int(-2147483648))), (DATE '2023-12-30')",
    "year(e.day) + 1": "(CAST(-2147483648 AS INT)), (2024)",
}


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("key", NEAR_THE_ENDS)
def test_keys_near_the_ends_of_a_type(spark, stored, conf, ansi, key):
    conf("spark.sql.ansi.enabled", ansi)
    name = f"ends_{[*NEAR_THE_ENDS].index(key)}_{ansi}"
    stored(name, spark.sql(f"SELECT * FROM VALUES {NEAR_THE_ENDS[key]} AS (k)").coalesce(1))
    df = spark.sql(f"SELECT e.id FROM events_delta e JOIN (SELECT k FROM {name} WHERE k IS NOT NULL) d ON {key} = d.k")
    expected = sorted(df.collect())
    assert expected
    assert expected == sorted(prune(df, options=OPTIONS).collect())


def test_the_report_names_the_function(agreed):
    query = f"SELECT e.id, d.id FROM events_delta e JOIN {SOME_DAYS} d ON to_date(e.at) = d.day"
    _, result = agreed(query, OPTIONS, by_duck=False)
    (table,) = explain(result).tables
    assert ["days.day for CAST(at AS DATE)"] == [each.source for each in table.filters]
