"""Errors are part of the answer: a pruned query fails only where the query fails.

Each query has an expression between a scan and the join above it that fails for rows which the query does not have
without pruning: a part of a group, a padded row, a survivor of an anti join. All run under ANSI, Spark's default.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.errors import ArithmeticException

from pruning import explain
from pruning.reasons import ReasonCode
from sample_data.confs import CODE_GENERATION
from tests.costs import ALWAYS, FREE_BUILDS
from tests.oracle.raising_values import REFUSE_NULL, refuse_null
from tests.queries.star import files

pytestmark = pytest.mark.spark

FILES, ROWS = 20, 4_000
# A key has 99 rows, so that each end of a file parts the rows of a key.
ROWS_PER_KEY = 99
ABOVE = "t JOIN {d} d ON t.k = d.k WHERE d.name = 'x'"


@pytest.fixture(scope="module", params=["delta", "parquet"])
def lake(spark, tmp_path_factory, request):
    """The names of the tables of these tests, by what queries call them."""
    folder, names = tmp_path_factory.mktemp(request.param), dict[str, str]()
    ids = spark.range(0, ROWS, 1, FILES)
    # The rows of key 6 begin in the third file, where all its units are 0, and end in the fourth.
    units = f"IF(id BETWEEN {6 * ROWS_PER_KEY} AND {3 * ROWS // FILES - 1}, 0, 1)"
    tables = {
        "f": ids.selectExpr(f"id DIV {ROWS_PER_KEY} AS k", "id AS v", f"{units} AS units"),
        "sales": ids.selectExpr("id AS k", "1 AS x", "2147483646 AS much"),
        "guarded": ids.selectExpr("id AS k", "id % 2 AS x", "IF(id % 2 = 1, string(id), 'no number') AS s"),
        "listed": ids.selectExpr("id AS k").where("k >= 1000"),
        "d": spark.range(0, 5).selectExpr("id AS k", "'x' AS name"),
        "nulled": ids.selectExpr("id AS k", "IF(id < 5, string(id), 'no number') AS s", "IF(id < 5, 1, NULL) AS b"),
        # A key has 100 rows. Its last one has no divisor, and no row of `some`.
        "parts": ids.selectExpr("id DIV 100 AS k", "id % 100 AS j", "IF(id % 100 = 99, 0, 1) AS x", "uuid() AS long"),
        # Without pruning smaller than `parts`, and greater than its files that are left.
        "some": spark.range(0, 99).selectExpr("id AS j", f"concat({', '.join(['uuid()'] * 16)}) AS text"),
    }
    for name, df in tables.items():
        df.write.format(request.param).save(f"{folder}/{name}")
        names[name] = f"{request.param}_errors_{name}"
        spark.read.format(request.param).load(f"{folder}/{name}").createOrReplaceTempView(names[name])
    names["wide"] = f"{request.param}_errors_wide"
    wide = spark.range(0, ROWS).selectExpr("id AS k", "IF(id >= 1000, 'no number', cast(id AS string)) AS s")
    wide.createOrReplaceTempView(names["wide"])
    yield names
    for name in names.values():
        spark.catalog.dropTempView(name)


def grouped(value: str, rows: str) -> str:
    """A query whose groups by `k` have a value that each of them has to compute before the join with `d`."""
    return (
        f"SELECT t.k, y FROM (SELECT l.k, max({value}) AS y FROM {rows} GROUP BY l.k HAVING max({value}) > 0) {ABOVE}"
    )


OUTER = "{wide} l LEFT JOIN {sales} r ON l.k = r.k"
RIGHT = "{sales} r RIGHT JOIN {wide} l ON l.k = r.k"
UNION = "(SELECT k, 1 AS cost, 0 AS units FROM {wide} UNION ALL SELECT k, 0, 1 FROM {sales}) l"
CHAIN = "{wide} l LEFT JOIN {sales} q ON l.k = q.k LEFT JOIN {sales} r ON q.k = r.k"
EXISTS = "EXISTS (SELECT 1 FROM {sales} b WHERE b.k = w.k)"
REFUSALS = {
    "outer-division": grouped("100 / coalesce(r.x, 0)", OUTER),
    "right-outer-division": grouped("100 / coalesce(r.x, 0)", RIGHT),
    "chain-remainder": grouped("100 % coalesce(r.x, 0) + 1", CHAIN),
    "outer-overflow": grouped("coalesce(r.much, 2147483647) + 1", OUTER),
    "outer-array": grouped("array(1, 2)[coalesce(r.x, 7)]", OUTER),
    "outer-map": grouped("element_at(map(3, 1, coalesce(r.x, 3), 2), 3)", OUTER),
    "outer-error": grouped("IF(r.x IS NULL, raise_error('padded'), 1)", OUTER),
    "outer-assert": grouped("coalesce(length(string(assert_true(r.x IS NOT NULL))), 1)", OUTER),
    "outer-date": grouped("year(make_date(2020, coalesce(r.x, 13), 1))", OUTER),
    "anti-cast": grouped("cast(l.s AS INT) + 1", "(SELECT w.* FROM {wide} w LEFT ANTI JOIN {listed} b ON w.k = b.k) l"),
    "existence-cast": grouped("cast(l.s AS INT)", f"(SELECT k, IF({EXISTS}, '1', s) AS s FROM {{wide}} w) l"),
    "union-ratio": grouped("sum(cost) / sum(units)", UNION).replace(
        "max(sum(cost) / sum(units))", "sum(cost) / sum(units)"
    ),
}


@pytest.fixture
def answered(spark, pruned_frame, lake):
    """A function that gives the pruned DataFrame of a query, after it gave the rows of stock Spark."""

    def run(query: str, options=FREE_BUILDS):
        text = query.format(**lake)
        expected = sorted(map(tuple, spark.sql(text).collect()))
        result = pruned_frame(spark.sql(text), options=options)
        assert expected == sorted(map(tuple, result.collect()))
        return result

    spark.udf.register(REFUSE_NULL, refuse_null, "int")
    yield run
    spark.sql(f"DROP TEMPORARY FUNCTION {REFUSE_NULL}")


@pytest.mark.parametrize("query", REFUSALS.values(), ids=REFUSALS)
def test_rows_that_lose_their_match_raise_no_error(answered, query):
    result = answered(query)
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.MAY_RAISE.value in stop for stop in stops)


def test_python_function_stops_keys(answered):
    result = answered(grouped(f"{REFUSE_NULL}(r.x)", OUTER))
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.OPAQUE.value in stop for stop in stops)


# The row for which the expression fails is part of a key whose other rows lie in a file that is skipped.
@pytest.mark.parametrize(
    "rows",
    [
        "(SELECT k, v / sum(units) OVER (PARTITION BY k) AS y FROM {f})",
        "(SELECT k, sum(v) / sum(units) AS y FROM {f} GROUP BY k HAVING sum(v) / sum(units) >= 0)",
        "(SELECT k, 1 % n AS y FROM (SELECT k, max(units) AS n FROM {f} GROUP BY k) WHERE 1 % n >= 0)",
        "(SELECT k, cast(IF(n = 0, 1000, n) AS TINYINT) AS y FROM (SELECT k, max(units) AS n FROM {f} GROUP BY k))",
        "(SELECT l.k, 100 / max(r.units) AS y FROM {wide} l JOIN {f} r ON l.k = r.k GROUP BY l.k)",
    ],
    ids=["window", "having", "filter", "cast", "inner-join"],
)
def test_scan_below_a_group_gives_all_rows_of_a_key_or_none(answered, rows):
    result = answered(f"SELECT t.k, y FROM {rows} {ABOVE} AND y >= 0")
    assert {"f": (3, 3, FILES)} == {name.rpartition("_")[2]: each for name, each in files(result).items()}
    (table,) = explain(result).tables
    assert [{"k": 1}] == [each.ranges for each in table.filters]


@pytest.mark.parametrize(
    "query",
    [
        grouped("100 / nullif(coalesce(r.x, 0), 0)", OUTER),
        grouped("CASE WHEN coalesce(r.x, 0) = 0 THEN 1 ELSE 100 / coalesce(r.x, 0) END", OUTER),
        grouped("try_divide(100, coalesce(r.x, 0))", OUTER),
        grouped("try_cast(concat('n', r.x) AS INT)", OUTER).replace(" > 0", " IS NULL"),
        grouped("coalesce(r.x, 0) + 0.5D", OUTER),
        grouped("coalesce(r.x, 0)", OUTER),
    ],
    ids=["nullif", "case", "try_divide", "try_cast", "double", "column"],
)
def test_expression_that_cannot_raise_leaves_the_filter(answered, query):
    result = answered(query)
    assert {"sales": (1, 1, FILES)} == {name.rpartition("_")[2]: each for name, each in files(result).items()}


# Spark would copy a range of `r.k` to the cast, below the semi join that drops the row with no number.
@pytest.mark.parametrize("rows", ["VALUES (7, '7'), (2000, 'no number') t(k, s)", "(SELECT k, s FROM {wide}) t"])
def test_condition_is_not_copied_to_a_cast_that_may_raise(answered, rows):
    small = f"(SELECT t.s FROM {rows} LEFT SEMI JOIN {{d}} g ON t.k = g.k + 3)"
    query = (
        f"SELECT r.k, r.x FROM {{sales}} r JOIN {small} t ON r.k = cast(t.s AS BIGINT) JOIN {{d}} d ON r.k = d.k + 5"
    )
    answered(f"{query} WHERE d.name = 'x'")
    answered(query.replace("r.k = cast(t.s AS BIGINT)", "r.k <=> cast(t.s AS BIGINT)"))


# Without whole-stage code Spark computes the cast, which then stands twice in one condition, before all parts of it.
@pytest.mark.parametrize("spares", ["t.b IS NOT NULL", "t.b = r.x"])
def test_condition_is_not_copied_to_a_cast_that_a_null_of_another_column_spares(spark, answered, conf, spares, lake):
    conf("spark.sql.codegen.wholeStage", "false")
    rows = "{sales} r JOIN {nulled} t ON r.k = cast(t.s AS BIGINT) JOIN {d} d ON r.k = d.k"
    query = f"SELECT r.k, r.x FROM {rows} WHERE {spares} AND d.name = 'x'"
    result = answered(query)
    assert spark.sql(query.format(**lake)).count() == result.count()
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.MAY_RAISE.value in stop for stop in stops)


@pytest.mark.parametrize(
    "spares", ["LEFT SEMI JOIN {d} g ON t.k = g.k", "LEFT ANTI JOIN {listed} b ON t.k = b.k"], ids=["semi", "anti"]
)
def test_condition_is_not_copied_to_an_expression_that_is_never_null(answered, spares):
    small = f"(SELECT coalesce(cast(t.s AS BIGINT), 0) AS k FROM {{wide}} t {spares})"
    result = answered(f"SELECT r.k, r.x FROM {{sales}} r JOIN {small} q ON r.k = q.k JOIN {{d}} d ON r.k = d.k")
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.MAY_MOVE.value in stop for stop in stops)


# Generated code computes the column for the rows that the lower join leaves.
@pytest.mark.parametrize("lower", ["JOIN", "LEFT SEMI JOIN"])
def test_condition_is_not_copied_below_a_join_to_a_computed_column(spark, answered, lake, conf, lower):
    for name, value in CODE_GENERATION.items():
        conf(name, value)
    made = "(SELECT coalesce(cast(t.s AS BIGINT), 0) AS k, t.k AS j FROM {wide} t)"
    small = f"(SELECT q.k FROM {made} q {lower} (SELECT k FROM {{d}}) g ON q.j = g.k)"
    query = f"SELECT r.k, r.x FROM {{sales}} r JOIN {small} q ON r.k = q.k JOIN {{d}} d ON r.k = d.k WHERE d.name = 'x'"
    result = answered(query)
    assert spark.sql(query.format(**lake)).count() == result.count()
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.MAY_MOVE.value in stop for stop in stops)


# The plan that Spark optimises again tests a copy before what `try_cast` drops.
@pytest.mark.parametrize("type_", ["INT", "BIGINT"])
@pytest.mark.parametrize("kind", ["JOIN {small} q ON r.k = q.k", "LEFT SEMI JOIN {small} q ON r.k = q.k"])
def test_condition_is_not_copied_to_a_cast_that_a_try_cast_guards(spark, answered, lake, kind, type_):
    small = f"(SELECT cast(t.s AS BIGINT) AS k FROM {{nulled}} t WHERE try_cast(t.s AS {type_}) IS NOT NULL)"
    joined = f"{{sales}} r {kind.replace('{small}', small)} JOIN {{d}} d ON r.k = d.k"
    query = f"SELECT r.k, r.x FROM {joined} WHERE d.name = 'x'"
    result = answered(query, FREE_BUILDS.with_limits(joined_rows=0, joined_long_rows=0))
    assert spark.sql(query.format(**lake)).count() == result.count()


DIVIDED = "SELECT k, j, long, 100 / x AS y FROM {parts}"
GROUP_DIVIDED = "SELECT k, j, 1 / max(x) AS y FROM {parts} GROUP BY k, j"


# Spark computes a column of the side that it streams only where a row has a match. Keys make that side the smaller one.
@pytest.mark.parametrize(
    ("column", "strategy"),
    [(DIVIDED, "AUTO"), (DIVIDED, "RUNTIME_ONLY"), (DIVIDED, "NONE"), (GROUP_DIVIDED, "AUTO")],
)
def test_side_stays_streamed_whose_column_may_raise(answered, conf, column, strategy):
    for name, value in {**CODE_GENERATION, "spark.sql.adaptive.enabled": "false"}.items():
        conf(name, value)
    result = answered(
        f"SELECT t.*, length(text) FROM ({column}) t JOIN {{some}} s ON t.j = s.j JOIN {{d}} d ON t.k = d.k",
        replace(FREE_BUILDS, broadcast_strategy=strategy),
    )
    read = {name.rpartition("_")[2]: each for name, each in files(result).items()}
    assert (3, 3, FILES) == read["parts"]


# `IN` becomes a join after Spark has inferred its tests for NULL; in a pruned plan it is one already, so the cast would
# be tested below the join that drops the rows with no number.
@pytest.mark.parametrize("spares", ["JOIN", "LEFT SEMI JOIN"])
@pytest.mark.parametrize("kind", ["r.k IN (SELECT q.k FROM {small})", "EXISTS (SELECT 1 FROM {small} WHERE q.k = r.k)"])
def test_plan_that_is_optimised_again_tests_no_key_that_may_raise(answered, spares, kind):
    small = f"(SELECT cast(t.s AS BIGINT) AS k FROM {{wide}} t {spares} {{d}} g ON t.k = g.k) q"
    query = f"SELECT r.k, r.x FROM {{sales}} r JOIN {{d}} d ON r.k = d.k WHERE d.name = 'x' AND {kind}"
    result = answered(query.replace("{small}", small))
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.MAY_MOVE.value in stop for stop in stops)


# A condition above makes an inner join of the outer one, after Spark has inferred its tests for NULL.
@pytest.mark.parametrize("key", ["100 DIV p.x", "cast(if(p.x = 0, 'no number', '100') AS BIGINT)"])
@pytest.mark.parametrize("outer", ["LEFT", "FULL"])
def test_outer_join_that_becomes_inner_tests_no_key_that_may_raise(answered, conf, outer, key):
    conf("spark.sql.adaptive.enabled", "false")
    kept = "FROM {parts} p JOIN {some} s ON p.j = s.j JOIN {d} d ON p.k = d.k"
    joined = f"{outer} JOIN {{sales}} b ON t.k = b.k JOIN {{d}} c ON b.x = c.k JOIN {{f}} f ON t.i = f.k"
    query = f"SELECT count(*) FROM (SELECT {key} AS k, p.k AS i, p.long {kept}) t {joined}"
    result = answered(query, FREE_BUILDS.with_limits(joined_rows=1, joined_long_rows=1))
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.MAY_MOVE.value in stop for stop in stops)


# Rows of `wide` with a number as text, the last condition on which the join of a query drops all others.
NUMBERED = "(SELECT t.*, t.k % 3 AS a, IF(t.k >= 1000, 0, 1) AS z FROM {wide} t LEFT ANTI JOIN {listed} b ON t.k = b.k)"
NUMBER = "cast(t.s AS BIGINT)"
DEFERRED = f"(SELECT coalesce({NUMBER}, 0) AS k, t.k AS j FROM {{wide}} t) q JOIN (SELECT k FROM {{d}}) g ON q.j = g.k"
LATE = {
    "expand": f"""r.v IN (SELECT q.k FROM (SELECT {NUMBER} AS k, t.a, t.z FROM {NUMBERED} t) q GROUP BY q.k
                  HAVING count(DISTINCT a) + count(DISTINCT z) > 0)""",
    "extra-predicate": f"""EXISTS (SELECT 1 FROM {NUMBERED} q WHERE q.k = r.v
                           AND ((q.a < 2 AND cast(q.s AS INT) >= 0) OR (q.a = 2 AND r.v > 2)))""",
    "existence": f"(r.x = 2 OR EXISTS (SELECT 1 FROM {NUMBERED} t WHERE {NUMBER} = r.v AND t.a + r.x > 0))",
    "literal": f"r.v > 3 AND EXISTS (SELECT 1 FROM {NUMBERED} t WHERE {NUMBER} = r.v)",
    "literal-of-anti": f"r.v > 3 AND NOT EXISTS (SELECT 1 FROM {NUMBERED} t WHERE {NUMBER} = r.v)",
    "deferred": f"r.v IN (SELECT q.k FROM {DEFERRED})",
}


# Joins of `IN` and `EXISTS` are in a pruned plan from the start, where Spark infers and moves conditions by joins.
@pytest.mark.parametrize("condition", LATE.values(), ids=LATE)
def test_plan_that_is_optimised_again_moves_no_condition_that_may_raise(spark, answered, lake, conf, condition):
    for name, value in CODE_GENERATION.items():
        conf(name, value)
    rows = "(SELECT *, k % 7 AS v FROM {sales}) r JOIN {d} d ON r.k = d.k"
    query = f"SELECT r.k, r.x FROM {rows} WHERE d.name = 'x' AND {condition}"
    result = answered(query)
    assert spark.sql(query.format(**lake)).count() == result.count()
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.MAY_MOVE.value in stop for stop in stops)


EVERY_ROW = {
    "in": "r.v IN (SELECT k + 1 FROM {sales})",
    "in-text": "r.v IN (SELECT cast(cast(k AS STRING) AS BIGINT) FROM {sales})",
    "exists": "EXISTS (SELECT 1 FROM {sales} t WHERE t.k + 1 = r.v)",
    "not-exists": "NOT EXISTS (SELECT 1 FROM {sales} t WHERE t.k = r.v - 100)",
}


# Nothing spares the subquery a row, so that its key is computed for each in stock, too.
@pytest.mark.parametrize("condition", EVERY_ROW.values(), ids=EVERY_ROW)
def test_key_that_is_computed_for_every_row_keeps_filters(spark, answered, lake, condition):
    rows = "(SELECT *, k % 7 AS v FROM {sales}) r JOIN {d} d ON r.k = d.k"
    query = f"SELECT r.k, r.x FROM {rows} WHERE d.name = 'x' AND {condition}"
    result = answered(query)
    assert spark.sql(query.format(**lake)).count() == result.count()
    read = {each.table: each.files_kept for each in explain(result).tables if each.files_kept < each.files_total}
    assert read


# Spark copies the condition of the user to the cast, once the outer join is an inner one. A condition on a computed
# column is not known to the rule: only the rules that are left out when the pruned plan is optimised keep it.
@pytest.mark.parametrize("key", ["k", "v"])
def test_condition_of_an_outer_join_that_becomes_inner_is_not_copied(spark, answered, lake, key):
    some = f"(SELECT k, x, k % 7 AS v FROM {{sales}} WHERE {'k' if key == 'k' else 'k % 7'} > 3)"
    joined = f"LEFT JOIN {some} b ON {NUMBER} = b.{key} JOIN {{d}} c ON b.x = c.k"
    query = f"SELECT r.k FROM {NUMBERED} t {joined} JOIN {{sales}} r ON r.k = t.k JOIN {{d}} d ON r.k = d.k"
    result = answered(f"{query} WHERE d.name = 'x'", FREE_BUILDS.with_limits(joined_rows=1, joined_long_rows=1))
    if key == "k":
        assert spark.sql(f"{query} WHERE d.name = 'x'".format(**lake)).count() == result.count()


# A copy of our filter would be tested before the join, or before the condition beside it, that spares the cast values.
@pytest.mark.parametrize("options", [FREE_BUILDS, ALWAYS], ids=["chosen", "always"])
@pytest.mark.parametrize(
    "rows",
    [
        f"{DEFERRED} JOIN {{sales}} r ON r.k = q.k",
        "{guarded} r",
    ],
    ids=["deferred-column", "condition-beside-it"],
)
def test_condition_is_not_copied_to_rows_that_a_query_spares(spark, answered, lake, conf, rows, options):
    for name, value in CODE_GENERATION.items():
        conf(name, value)
    guarded = " AND r.x = 1 AND cast(r.s AS BIGINT) = r.k" if "guarded" in rows else ""
    query = f"SELECT r.k, r.x FROM {rows} JOIN {{d}} d ON r.k = d.k WHERE d.name = 'x'{guarded}"
    result = answered(query, options)
    assert spark.sql(query.format(**lake)).count() == result.count()


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("operator", ["{} % {}", "pmod({}, {})", "try_mod({}, {})"])
def test_remainder_of_decimals_may_raise(answered, conf, operator, ansi):
    conf("spark.sql.ansi.enabled", ansi)
    great = "coalesce(cast(r.x AS DECIMAL(38, 0)), cast(repeat('9', 38) AS DECIMAL(38, 0)))"
    result = answered(grouped(operator.format(great, "0.0000000007"), OUTER).replace(" > 0", " >= 0"))
    stops = [stop for edge in explain(result).edges for stop in edge.stops]
    assert any(ReasonCode.MAY_RAISE.value in stop for stop in stops)


def test_adaptive_execution_alone_decides_whether_a_query_without_pruning_raises(spark, pruned_frame, lake, conf):
    for name, value in CODE_GENERATION.items():
        conf(name, value)
    empty = "(SELECT k FROM {d} WHERE length(name) > 1) e"
    query = f"SELECT /*+ BROADCAST(e) */ t.k FROM (SELECT k FROM {{f}} WHERE 1 / units > 0) t JOIN {empty} ON t.k = e.k"
    text = query.format(**lake)
    # The broadcast has no row, so adaptive execution does not read the other side.
    assert [] == spark.sql(text).collect()
    conf("spark.sql.adaptive.enabled", "false")
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        spark.sql(text).collect()
    result = pruned_frame(spark.sql(text), options=FREE_BUILDS)
    assert [] == result.collect()
