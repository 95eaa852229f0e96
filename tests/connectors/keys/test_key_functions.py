"""Spark's own values of functions lie in the preimages of their results, in every time zone that Java has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from connectors.spark.plan_reader import SparkPlan
from pruning.query.key_functions import KeyPath, key_path
from pruning.query.plan import Project
from pruning.values.coercion import Coerced, coerce
from pruning.values.domain import Domain
from pruning.values.functions import FunctionKind, preimage
from pruning.values.types import ValueType

pytestmark = pytest.mark.spark

CENTS = "cast(n / 100 AS decimal(12,2)) AS p"
LONGS = [0, 1, -1, 999, 1000, 1001, -999, -1000, -1001, 123_456_789, -123_456_789]
MOST = (1 << 63) - 1
ENDS = [MOST, -MOST - 1, MOST - 1, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1, 1 << 62]
DAYS = [0, -1, 1, 58, 59, 60, 364, 365, 19_783, -141_427, -141_428, -719_162, 2_932_896]
TEXTS = ["", "a", "ab", "abc", "abcd", "äöü", "日本語", "😀😀😀", "C0000017", "C0000018", "\x7f", "\uffff\uffff"]
FUNCTIONS = {
    "long": ("n DIV 1", "n DIV 1000", "n DIV 7", "floor(n / 1000)", "floor(n / 0.5D)", "CAST(n AS STRING)"),
    "quotient": ("ceil(n / 1000)", "ceil(n / 0.5D)", "ceil(n / 7)", "coalesce(n, 5)"),
    "small": ("i + 17", "17 + i", "i - 17", "17 - i", "-i", "i DIV 10", "floor(i / 10)", "CAST(i AS STRING)"),
    "product": ("i * 2", "7 * i", "ceil(i / 10)", "-i * 3 + 1", "CAST(CAST(i AS BIGINT) DIV 2 AS INT)"),
    "decimal": ("floor(p)", "ceil(p)", "floor(CAST(p AS DECIMAL(15, 3)))"),
    "date": (
        "date_add(d, 30)",
        "date_sub(d, 30)",
        "d + 1",
        "year(d)",
        "trunc(d, 'week')",
        "trunc(d, 'MM')",
        "trunc(d, 'QUARTER')",
        "trunc(d, 'yy')",
        "last_day(d)",
        "last_day(date_add(d, 30))",
        "year(trunc(d, 'MM'))",
        "CAST(d AS STRING)",
        "date_format(d, 'yyyy/MM')",
    ),
    "local": (
        "CAST(l AS DATE)",
        "year(l)",
        "trunc(CAST(l AS DATE), 'MM')",
        "l + INTERVAL 1 DAY",
        "l - INTERVAL 90 MINUTES",
    ),
    "text": ("substring(s, 1, 3)", "substring(s, 0, 2)", "left(s, 1)", "substring(s, 1, 100)"),
}
MOMENT_FUNCTIONS = (
    "to_date(t)",
    "CAST(t AS DATE)",
    "year(t)",
    "date_trunc('MILLISECOND', t)",
    "date_trunc('second', t)",
    "date_trunc('MINUTE', t)",
    "date_trunc('HOUR', t)",
    "date_trunc('DD', t)",
    "date_trunc('WEEK', t)",
    "date_trunc('MONTH', t)",
    "date_trunc('QUARTER', t)",
    "date_trunc('YEAR', t)",
    "t + INTERVAL 1 DAY",
    "t - INTERVAL 30 DAYS",
    "t + INTERVAL 9000 DAYS",
    "t + INTERVAL 25000 DAYS",
    "t + INTERVAL 90 MINUTES",
    "unix_timestamp(t)",
    "to_unix_timestamp(t)",
    "unix_seconds(t)",
    "unix_millis(t)",
    "unix_micros(t)",
    "CAST(t AS TIMESTAMP_NTZ)",
    "CAST(t + INTERVAL 1 DAY AS TIMESTAMP_NTZ)",
    "last_day(to_date(t))",
    "date_add(to_date(t), 3)",
    "trunc(to_date(t), 'MM')",
    "date_format(t, 'yyyy-MM-dd')",
    "date_format(t, 'yyyyMM')",
    "date_format(t, 'yyyy-MM-dd HH:mm:ss')",
    "date_format(t, 'yyyy')",
    "date_format(to_date(t), 'dd.MM.yyyy')",
    "CAST(to_date(t) AS STRING)",
)
# A wall clock as if it were one of UTC.
CODES = {
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "unix_micros(CAST(CAST({} AS STRING) || 'Z' AS TIMESTAMP))",
}
# Functions of wall clocks that the time zone of the session makes.
CLOCK_FUNCTIONS = ("CAST(l AS TIMESTAMP)", "date_trunc('DAY', l)", "unix_timestamp(CAST(l AS TIMESTAMP))")


def paths_of(spark, table: str, functions: Sequence[str]) -> dict[str, KeyPath]:
    """The path of each function, as the plan of a query has it."""
    df = spark.table(table).selectExpr(*(f"{each} AS x{at}" for at, each in enumerate(functions)))
    plan = SparkPlan.read(spark, None, df._jdf.queryExecution().optimizedPlan())
    node = next(each for each in plan.root.walk() if isinstance(each, Project))
    found = {text: key_path(node.made[at]) for text, at in zip(functions, node.output, strict=True)}
    assert not [text for text, path in found.items() if path is None or not path.functions]
    return found


def results(spark, table: str, value: str, paths: dict[str, KeyPath]) -> list[tuple]:
    """Rows of a value and the results of all functions, as codes."""
    codes = [CODES.get(str(path.type), "{}").format(text) for text, path in paths.items()]
    return spark.table(table).selectExpr(value, *(f"{each} AS x{at}" for at, each in enumerate(codes))).collect()


def assert_values_lie_in_preimages(paths: dict[str, KeyPath], column: ValueType, rows: Iterable[Sequence]) -> None:
    for value, *found in rows:
        for (text, path), result in zip(paths.items(), found, strict=True):
            domain = preimage(path.functions, Domain.of(path.type, result))
            values = coerce(domain, column, text) if isinstance(domain, Domain) else domain
            assert isinstance(values, Coerced), values
            assert values.domain.contains(value), (text, value, result, values.domain)


@pytest.fixture(scope="module")
def stored(spark, tmp_path_factory):
    """A function that stores values of one column, so that Spark does not compute functions of them while planning."""

    def store(name: str, rows, columns: Sequence[str]) -> str:
        folder = str(tmp_path_factory.mktemp("functions") / name)
        rows.selectExpr(*columns).coalesce(1).write.parquet(folder)
        spark.read.parquet(folder).createOrReplaceTempView(name)
        return name

    return store


def test_functions_of_numbers_dates_and_texts(spark, stored, conf):
    conf("spark.sql.session.timeZone", "UTC")
    cases = {
        "long": ("bigint", "n", [(each,) for each in LONGS + ENDS], "n bigint", ["n"]),
        "quotient": ("bigint", "n", [(each,) for each in LONGS + ENDS], "n bigint", ["n"]),
        "decimal": ("decimal(12,2)", "p", [(each,) for each in LONGS], "n bigint", [CENTS]),
        "product": ("int", "i", [(each,) for each in LONGS], "n bigint", ["cast(n AS int) AS i"]),
        "small": ("int", "i", [(each,) for each in LONGS], "n bigint", ["cast(n AS int) AS i"]),
        "date": ("date", "unix_date(d)", [(each,) for each in DAYS], "n int", ["date_from_unix_date(n) AS d"]),
        "local": (
            "timestamp_ntz",
            "unix_micros(cast(l AS timestamp))",
            [(each,) for each in [*LONGS, 1_700_000_000_000_000, -86_400_000_000]],
            "n bigint",
            ["cast(timestamp_micros(n) AS timestamp_ntz) AS l"],
        ),
        "text": ("string", "s", [(each,) for each in TEXTS], "s string", ["s"]),
    }
    for name, (type_, value, values, schema, columns) in cases.items():
        table = stored(f"of_{name}", spark.createDataFrame(values, schema), columns)
        paths = paths_of(spark, table, FUNCTIONS[name])
        assert_values_lie_in_preimages(paths, ValueType.parse(type_), results(spark, table, value, paths))


def test_every_function_of_the_table_is_tried(spark, stored):
    columns = ["id AS n", "cast(id AS int) AS i", "cast(id AS decimal(12,2)) AS p", "cast(id AS string) AS s"]
    columns += ["timestamp_micros(id) AS t", "cast(timestamp_micros(id) AS timestamp_ntz) AS l", "current_date() AS d"]
    table = stored("of_each", spark.range(1), columns)
    tried = [*(each for texts in FUNCTIONS.values() for each in texts), *MOMENT_FUNCTIONS, *CLOCK_FUNCTIONS]
    paths = paths_of(spark, table, tried).values()
    assert {*FunctionKind} == {each.kind for path in paths for each in path.functions}


# Zones whose clocks skipped a day, changed at midnight, went back over it, had seconds, or differ most from UTC.
STRANGE = [
    "UTC",
    "Pacific/Apia",
    "Pacific/Kanton",
    "Pacific/Kwajalein",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Manila",
    "Africa/Monrovia",
    "+18:00",
]
# Years 0, 1494 (before the calendar of 1582), 1621, and those that need six digits.
FAR = [-62_200_000_000, -15_000_000_000, -11_000_000_000, 1 << 42, -(1 << 42)]


def seconds_of(rules) -> tuple[list[int], int]:
    """Seconds at which the clocks of a zone changed, all at which they went back to another day, and their number."""
    transitions = rules.getTransitions()
    every = [transitions[at] for at in range(transitions.size())]
    back = [
        each
        for each in every
        if each.getDateTimeAfter().toLocalDate().toEpochDay() < each.getDateTimeBefore().toLocalDate().toEpochDay()
    ]
    return [each.toEpochSecond() for each in [*every[:: 1 + len(every) // 8], *back[:8]]], len(back)


@pytest.mark.parametrize("takes_all", [False, pytest.param(True, marks=pytest.mark.full)], ids=["strange", "all"])
def test_functions_of_moments_in_every_zone(spark, stored, conf, takes_all):
    instants = stored("moments", spark.range(1), ["timestamp_micros(id) AS t"])
    clocks = stored("clocks", spark.range(1), ["cast(timestamp_micros(id) AS timestamp_ntz) AS l"])
    of_instants, of_clocks = paths_of(spark, instants, MOMENT_FUNCTIONS), paths_of(spark, clocks, CLOCK_FUNCTIONS)
    zone_ids, went_back, had_seconds = spark._jvm.java.time.ZoneId, 0, 0
    long_ago = spark._jvm.java.time.Instant.ofEpochSecond(-(1 << 32))
    for number, zone in enumerate(sorted(zone_ids.getAvailableZoneIds()) if takes_all else STRANGE):
        conf("spark.sql.session.timeZone", zone)
        rules = zone_ids.of(zone).getRules()
        known, count = seconds_of(rules)
        went_back += count
        had_seconds += rules.getOffset(long_ago).getTotalSeconds() % 60 > 0
        moments = [0, -1, 1_700_000_000, *FAR, *(second + by for second in known for by in (-1, 0, 1800))]
        rows = spark.createDataFrame([(each * 1_000_000 + number,) for each in moments], "n bigint")
        rows.selectExpr("timestamp_micros(n) AS t").createOrReplaceTempView("moments")
        rows.selectExpr("cast(timestamp_micros(n) AS timestamp_ntz) AS l").createOrReplaceTempView("clocks")
        found = results(spark, instants, "unix_micros(t)", of_instants)
        assert_values_lie_in_preimages(of_instants, ValueType("timestamp"), found)
        found = results(spark, clocks, CODES["timestamp_ntz"].format("l"), of_clocks)
        assert_values_lie_in_preimages(of_clocks, ValueType("timestamp_ntz"), found)
    assert went_back
    assert had_seconds
