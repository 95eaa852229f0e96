"""Expressions that are said to raise on no value are tried on nasty values, and those that may raise are known."""

from __future__ import annotations

import re

import pytest

from connectors.spark.jvm import optimized_plan
from connectors.spark.plan_reader import SparkPlan
from pruning.query import fallible

pytestmark = pytest.mark.spark

ANSI = "spark.sql.ansi.enabled"
LONG, INT = (-(2**63), -1, 0, 1, 2**63 - 1), (-(2**31), -1, 0, 1, 2**31 - 1)
# Every date and timestamp that the types hold, and texts that are no numbers.
NASTY = """
    SELECT k, i, l, CAST(i % 128 AS TINYINT) AS t, x, f, n, CAST(n AS DECIMAL(38, 10)) AS wide, m,
           date_from_unix_date(i) AS d, timestamp_micros(l) AS ts, s, x > 0 AS b, array(l, NULL) AS a,
           map(s, l) AS p, named_struct('y', l, 'z', s) AS r
    FROM VALUES {rows} AS v(k, i, l, x, f, n, m, s)"""
FLOATS = ("double('NaN')", "double('-Infinity')", "-0.0D", "1.7976931348623157E308D", "4.9E-324D")
DECIMALS = ("999999999999999999.9999999999", "-999999999999999999.9999999999", "0", "0.0000000001", "-1")
SHORT = ("99999.99", "-99999.99", "0", "0.01", "-0.01")
TEXTS = ("''", "'no number'", "'\U0001f600 \u00e9'", "repeat('long ', 2000)", "'2147483648'")

# An expression for each kind, over the columns of `nasty`; none of them may raise, with ANSI or without it.
ROWS = {
    "Abs": "abs(x)",
    "Add": "x + x",
    "And": "b AND x > 1",
    "CaseWhen": "CASE WHEN b THEN l WHEN x > 1 THEN l * 0.5D END",
    "Cast": "CAST(x AS STRING)",
    "Ceil": "ceil(x)",
    "Coalesce": "coalesce(s, upper(s))",
    "Concat": "concat(s, s)",
    "Contains": "contains(s, 'o')",
    "CreateArray": "array(l, k)",
    "CreateNamedStruct": "named_struct('one', l)",
    "DateAdd": "date_add(d, 30)",
    "DateDiff": "datediff(d, DATE '2020-01-01')",
    "DateSub": "date_sub(d, i)",
    "DayOfMonth": "dayofmonth(d)",
    "DayOfWeek": "dayofweek(d)",
    "Divide": "n / 7",
    "EndsWith": "s LIKE '%r'",
    "EqualNullSafe": "x <=> f",
    "EqualTo": "x = f",
    "Floor": "floor(l / 7)",
    "GetMapValue": "p['no number']",
    "GetStructField": "r.y",
    "GreaterThan": "x > f",
    "GreaterThanOrEqual": "x >= f",
    "Greatest": "greatest(x, f)",
    "If": "IF(b, x, f)",
    "In": "l IN (1, 2, k)",
    "InSet": "l IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "IntegralDivide": "l DIV 7",
    "IsNaN": "isnan(x)",
    "IsNotNull": "l IS NOT NULL",
    "IsNull": "l IS NULL",
    "LastDay": "last_day(d)",
    "Least": "least(x, f)",
    "Length": "length(s)",
    "LessThan": "x < f",
    "LessThanOrEqual": "x <= f",
    "Lower": "lower(s)",
    "Month": "month(d)",
    "Multiply": "m * m",
    "NaNvl": "nanvl(x, f)",
    "Not": "NOT contains(s, 'o')",
    "Or": "b OR x > 1",
    "Pmod": "pmod(l, 7)",
    "Quarter": "quarter(d)",
    "Remainder": "l % -1",
    "Round": "round(x, 2)",
    "StartsWith": "s LIKE 'n%'",
    "StringTrim": "trim(s)",
    "Substring": "substring(s, -3, 2)",
    "Subtract": "m - m",
    "ToUnixTimestamp": "to_unix_timestamp(ts)",
    "TruncDate": "trunc(d, 'MM')",
    "TryEval": "try_add(d, INTERVAL 1 YEAR)",
    "UnaryMinus": "-x",
    "UnixMicros": "unix_micros(ts)",
    "UnixMillis": "unix_millis(ts)",
    "UnixSeconds": "unix_seconds(ts)",
    "UnixTimestamp": "unix_timestamp(ts)",
    "Upper": "upper(s)",
    "Year": "year(d)",
}
# Further forms of kinds that have rules.
FORMS = (
    *("x / nullif(f, 0)", "CASE WHEN f = 0 THEN 1 ELSE x / f END", "IF(f <> 0, x / f, 0)", "IF(i > 0, x / i, 0)"),
    *("x % nullif(f, 0)", "IF(l = 0, NULL, l % l)", "IF(m = 0, NULL, m / m)", "x / 0.5D", "l DIV 2", "l % 7"),
    *("try_divide(x, f)", "try_add(l, l)", "try_cast(s AS INT)", "try_cast(x AS TINYINT)", "try_multiply(l, l)"),
    *(
        "CAST(i AS BIGINT)",
        "CAST(l AS DOUBLE)",
        "CAST(wide AS DOUBLE)",
        "CAST(l AS FLOAT)",
        "CAST(m AS DECIMAL(20, 4))",
    ),
    *("CAST(i AS DECIMAL(12, 1))", "CAST(ts AS DATE)", "CAST(d AS STRING)", "CAST(ts AS STRING)", "CAST(b AS STRING)"),
    *("CAST(b AS DOUBLE)", "CAST(f AS DOUBLE)", "abs(wide)", "-wide", "m + m", "x * f", "n - 1", "round(f, -3)"),
    *("trunc(d, 'week')", "trunc(d, 'YEAR')", "trunc(d, 'none')"),
    *(
        "floor(wide)",
        "ceil(wide)",
        "ceil(m)",
        "floor(f)",
    ),
)
GROUPS = {
    "aggregate.AggregateExpression": "count(*)",
    "aggregate.Average": "avg(m)",
    "aggregate.CollectList": "collect_list(l)",
    "aggregate.CollectSet": "collect_set(l)",
    "aggregate.Count": "count(l)",
    "aggregate.First": "first(l)",
    "aggregate.HyperLogLogPlusPlus": "approx_count_distinct(s)",
    "aggregate.Last": "last(l)",
    "aggregate.Max": "max(x)",
    "aggregate.MaxBy": "max_by(l, x)",
    "aggregate.Min": "min(s)",
    "aggregate.MinBy": "min_by(l, x)",
    "aggregate.StddevPop": "stddev_pop(x)",
    "aggregate.StddevSamp": "stddev_samp(x)",
    "aggregate.Sum": "sum(n)",
    "aggregate.VariancePop": "var_pop(x)",
    "aggregate.VarianceSamp": "var_samp(x)",
    "MakeDecimal": "sum(m)",
    "UnscaledValue": "avg(m) + 0",
}
GROUP_FORMS = ("sum(x)", "avg(l)", "avg(x)", "avg(n)", "sum(x + f)", "try_sum(l)", "count(DISTINCT l)")
BY = "OVER (PARTITION BY k ORDER BY l, x)"
WINDOWS = {
    "CumeDist": f"cume_dist() {BY}",
    "CurrentRow$": f"max(x) {BY}",
    "DenseRank": f"dense_rank() {BY}",
    "NTile": f"ntile(3) {BY}",
    "PercentRank": f"percent_rank() {BY}",
    "Rank": f"rank() {BY}",
    "RowNumber": f"row_number() {BY}",
    "SortOrder": f"count(*) {BY}",
    "SpecifiedWindowFrame": f"sum(x) {BY}",
    "UnboundedFollowing$": "sum(m) OVER (PARTITION BY k)",
    "UnboundedPreceding$": "avg(m) OVER (PARTITION BY k)",
    "WindowExpression": f"min(s) {BY}",
    "WindowSpecDefinition": f"max(s) {BY}",
}
# No query has these alone.
EVERYWHERE = frozenset({"Alias", "AttributeReference", "Literal"})
# Expressions that raise on some value, and how messages about them begin.
RAISING = {
    "x / f": "a division",
    "n / wide": "a division",
    "IF(f = 0, x / f, 0)": "a division",
    "l DIV -1": "a division",
    "l % l": "a remainder",
    "CAST(s AS INT)": "a cast",
    "CAST(x AS INT)": "a cast",
    "CAST(l AS INT)": "a cast",
    "CAST(x AS DECIMAL(5, 2))": "a cast",
    "CAST(d AS TIMESTAMP)": "a cast",
    "l + 1": "an addition",
    "wide * wide": "a multiplication",
    "i - 1": "a subtraction",
    "abs(l)": "abs(l)",
    "-l": "-l",
    "a[7]": "an access to an element",
    "element_at(a, i)": "an access to an element",
    "map(i, l, k, l)": "create_map(i, l, ",
    "raise_error(s)": "raise_error",
    "assert_true(b)": "raise_error",
    "make_date(i, 1, 1)": "make_date(i, 1, 1)",
    "d + INTERVAL 1 YEAR": "date_add_yminterval(d, ",
    "ts + INTERVAL 1 DAY": "ts + ",
    "date_trunc('HOUR', ts)": "date_trunc('HOUR', ts)",
    "date_format(ts, s)": "date_format(ts, s)",
    # The legacy formatter overflows on the least timestamps.
    "date_format(ts, 'yyyyMM')": "date_format(ts, 'yyyyMM')",
    "date_format(d, 'yyyy')": "date_format(CAST(",
    "unix_timestamp(d)": "unix_timestamp(d, ",
    "trunc(d, 'QUARTER')": "trunc(d, 'QUARTER')",
    "(SELECT l FROM nasty)": "a subquery that may give several rows",
}
WITHOUT_ANSI = {
    *("raise_error(s)", "element_at(a, i)", "map(i, l, k, l)", "assert_true(b)", "(SELECT l FROM nasty)"),
    *("date_trunc('HOUR', ts)", "trunc(d, 'QUARTER')", "date_format(ts, 'yyyyMM')"),
}


@pytest.fixture(scope="module")
def nasty(spark, tmp_path_factory):
    """The view `nasty`; each column has all its values beside several of the others, and NULL."""
    rows = []
    for at in range(25):
        one, other = at % 5, at // 5
        numbers = (INT[one], f"{LONG[other]}L" if LONG[other] > LONG[0] else "-9223372036854775807L - 1L")
        values = (*numbers, FLOATS[one], FLOATS[other], f"CAST({DECIMALS[one]} AS DECIMAL(28, 10))")
        rows.append(f"({at % 3}, {', '.join(map(str, values))}, CAST({SHORT[other]} AS DECIMAL(7, 2)), {TEXTS[one]})")
    rows += ["(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL)", "(7, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"]
    folder = str(tmp_path_factory.mktemp("nasty") / "rows")
    # A key of a map is not NULL.
    text = NASTY.format(rows=", ".join(rows)).replace("map(s, l)", "map(coalesce(s, ''), l)")
    spark.sql(text).repartition(2).write.parquet(folder)
    spark.read.parquet(folder).createOrReplaceTempView("nasty")
    yield
    spark.catalog.dropTempView("nasty")


def kinds_of(df) -> set[str]:
    """The kinds of the expressions in an optimised plan."""
    text = str(optimized_plan(df).toJSON())
    return set(re.findall(r'"org\.apache\.spark\.sql\.catalyst\.expressions\.([\w.$]+)"', text))


def raising(df) -> list[str]:
    return [each.may_raise for each in SparkPlan.of(df).root.walk() if each.may_raise]


def query(expression: str) -> str:
    if expression in GROUPS.values() or expression in GROUP_FORMS:
        return f"SELECT k, {expression} AS made FROM nasty GROUP BY k"
    return f"SELECT *, {expression} AS made FROM nasty"


KINDS = {**ROWS, **GROUPS, **WINDOWS}


def test_every_kind_is_tried():
    assert fallible.INFALLIBLE <= KINDS.keys() | EVERYWHERE


@pytest.mark.usefixtures("nasty")
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.quick(2)
def test_kinds_are_in_their_plans_and_do_not_raise(spark, conf, ansi):
    conf(ANSI, ansi)
    for kind, expression in KINDS.items():
        df = spark.sql(query(expression))
        assert (kind, [], True) == (kind, raising(df), kind in kinds_of(df))
    for expression in (*FORMS, *GROUP_FORMS):
        assert (expression, []) == (expression, raising(spark.sql(query(expression))))


@pytest.mark.usefixtures("nasty")
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("generated", [True, False], ids=["generated code", "interpreted"])
@pytest.mark.quick(4)
def test_nasty_values_raise_no_error(spark, conf, ansi, generated):
    conf(ANSI, ansi)
    conf("spark.sql.codegen.wholeStage", str(generated).lower())
    conf("spark.sql.codegen.factoryMode", "CODEGEN_ONLY" if generated else "NO_CODEGEN")
    grouped, rows = [*GROUPS.values(), *GROUP_FORMS], [*ROWS.values(), *FORMS, *WINDOWS.values()]
    for names, group in ((rows, ""), (grouped, " GROUP BY k")):
        named = ", ".join(f"{each} AS c{at}" for at, each in enumerate(names))
        df = spark.sql(f"SELECT {named} FROM nasty{group}")
        # An aggregate over all columns has each of them computed.
        every = [f"count(c{at})" for at in range(len(names))]
        assert (27 if not group else 4) == df.count()
        assert 1 == len(df.selectExpr(*every).collect())
        # Python has no date of most of these years.
        df.write.format("noop").mode("overwrite").save()


@pytest.mark.usefixtures("nasty")
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.quick(2)
def test_expressions_that_may_raise_are_known(spark, conf, ansi):
    conf(ANSI, ansi)
    for expression, name in RAISING.items():
        if ansi == "true" or expression in WITHOUT_ANSI:
            (found, *_) = raising(spark.sql(query(expression)))
            assert (expression, name) == (expression, found[: len(name)])


@pytest.mark.usefixtures("nasty")
@pytest.mark.parametrize(("made", "read"), [("false", "true"), ("true", "false")])
def test_mode_of_a_view_counts_not_that_of_the_session(spark, conf, made, read):
    conf(ANSI, made)
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW moded AS SELECT k, l + 1 AS made FROM nasty")
    conf(ANSI, read)
    try:
        assert (["an addition, l + 1"] if made == "true" else []) == raising(spark.sql("SELECT * FROM moded"))
    finally:
        spark.catalog.dropTempView("moded")


# The second, the day, the year or the quarter of the least moments begins before them.
@pytest.mark.usefixtures("nasty")
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/St_Johns"])
@pytest.mark.parametrize(
    "expression",
    [
        *(f"date_trunc('{unit}', ts)" for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")),
        "trunc(d, 'QUARTER')",
    ],
)
def test_the_units_of_the_least_moments_overflow(spark, conf, ansi, zone, expression):
    conf(ANSI, ansi)
    conf("spark.sql.session.timeZone", zone)
    with pytest.raises(Exception, match="overflow"):
        spark.sql(f"SELECT count({expression}) FROM nasty WHERE l < -1 OR i < -1").collect()
    assert spark.sql(f"SELECT count({expression}) FROM nasty WHERE l > -2 AND i > -2").collect()
