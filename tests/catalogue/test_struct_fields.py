"""Joins by fields of structs: the statistics of a field filter the scan as those of a column do, in both formats."""

from __future__ import annotations

import pytest

from pruning import explain, report
from tests.catalogue.facts import OPTIONS, files

pytestmark = pytest.mark.spark

FORMATS = ("delta", "parquet")
ROWS, FILES = 1600, 8
# 200 rows in each file; all columns follow the same order. Each third struct is NULL, each fifth number in one.
BUYERS = (
    "id",
    "cast(id AS int) AS plain",
    """if(id % 3 = 1, NULL, named_struct(
        'number', if(id % 5 = 2, NULL, id),
        'code', concat('C', lpad(cast(id AS string), 6, '0')),
        'at', timestamp_seconds(1703030400 + 3600 * id),
        'price', cast(id / 10 AS decimal(12, 2)),
        'inner', named_struct('number', id + 10000, 'a.b`c', cast(id AS int)))) AS buyer""",
    "named_struct('number', id) AS `dotted.name`",
    "array(named_struct('number', id)) AS several",
)
KEYS = (
    "id",
    "id * 150 AS number",
    "id * 150 + 10000 AS inner_number",
    "concat('C', lpad(cast(id * 150 AS string), 6, '0')) AS code",
    "cast(id * 15 AS decimal(12, 2)) AS price",
    "cast(timestamp_seconds(1703030400 + 3600 * 150 * id) AS date) AS day",
    "named_struct('number', id * 150) AS owner",
    "id = 2 AS chosen",
)
# The numbers 300 and 450, of which the struct of each row is there.
SOME = "(SELECT * FROM owners WHERE id IN (2, 3))"


@pytest.fixture(scope="module", autouse=True)
def structs(spark, stored):
    rows = spark.range(0, ROWS, 1, FILES).selectExpr(*BUYERS)
    folders = {format_: stored(f"sales_{format_}", rows, format_) for format_ in FORMATS}
    stored("owners", spark.range(0, 11, 1, 1).selectExpr(*KEYS))
    return folders


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        pytest.param("s.buyer.number = o.number", 2, id="a field"),
        pytest.param("s.buyer.inner.number = o.inner_number", 2, id="a field of a field"),
        pytest.param("s.buyer.inner.`a.b``c` = o.number", 2, id="a name with a dot and a backtick"),
        pytest.param("s.`dotted.name`.number = o.number", 2, id="a struct with a dot in its name"),
        pytest.param("s.buyer.code = o.code", 2, id="a text"),
        pytest.param("s.buyer.price = o.price * 2", 2, id="a decimal"),
        pytest.param("CAST(s.buyer.inner.`a.b``c` AS bigint) = o.number", 2, id="below a cast"),
        pytest.param("to_date(s.buyer.at) = o.day", 2, id="below a function"),
        pytest.param("s.buyer.number = o.owner.number", 2, id="of both sides"),
        pytest.param("s.buyer.number BETWEEN o.number AND o.number + 20", 2, id="a range"),
        pytest.param("s.buyer.number = o.number AND s.buyer.inner.number = o.inner_number", 2, id="two fields"),
        pytest.param("s.buyer.number = o.number AND s.plain = o.number", 2, id="a field and a column"),
        pytest.param("coalesce(s.buyer.number, -1) = o.number AND s.buyer.number = o.number", 2, id="a test of NULL"),
    ],
)
def test_keys_filter_fields_of_structs(agreed, format_, condition, kept):
    query = f"SELECT s.id, o.id FROM sales_{format_} s JOIN {SOME} o ON {condition}"
    df, result = agreed(query, OPTIONS, by_duck=False)
    assert 0 < df.count()
    # Parquet files of Spark have no statistics of timestamps.
    is_known = format_ == "delta" or "buyer.at" not in condition
    assert ({f"sales_{format_}": kept} if is_known else {}) == files(result)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT id FROM sales_delta WHERE buyer.number IN (SELECT number FROM owners WHERE chosen)", 1),
        (
            "SELECT id FROM sales_delta s WHERE EXISTS (SELECT 1 FROM owners WHERE s.buyer.number = number AND id = 2)",
            1,
        ),
        ("SELECT o.id, s.id FROM owners o LEFT JOIN sales_delta s ON s.buyer.number = o.number WHERE o.chosen", 1),
        (
            """SELECT n FROM (SELECT buyer.number AS number, count(*) AS n FROM sales_delta GROUP BY 1) JOIN owners
            USING (number) WHERE chosen""",
            1,
        ),
        ("SELECT b.code FROM (SELECT buyer AS b FROM sales_delta) JOIN owners ON b.number = number WHERE chosen", 1),
        ("SELECT c.number FROM (SELECT buyer.inner AS c FROM sales_delta) JOIN owners ON c.number = inner_number", 8),
        (
            """SELECT c.number FROM (SELECT buyer.inner AS c, id FROM sales_delta WHERE buyer.number > 5)
            JOIN owners ON c.number = inner_number WHERE chosen""",
            1,
        ),
        (
            """SELECT count(*) FROM (SELECT buyer FROM sales_delta UNION ALL SELECT buyer FROM sales_parquet) u
            JOIN owners ON u.buyer.number = number WHERE chosen""",
            1,
        ),
        (
            """SELECT later.id FROM sales_delta first JOIN sales_delta later ON first.buyer.number = later.buyer.number
            WHERE first.plain BETWEEN 250 AND 260""",
            1,
        ),
        ("SELECT id FROM sales_delta WHERE buyer.number = (SELECT max(number) FROM owners WHERE id < 4)", 1),
    ],
    ids=[
        "in",
        "exists",
        "outer join",
        "groups",
        "a struct by another name",
        "every key",
        "a struct of a struct",
        "union",
        "the same table twice",
        "scalar subquery",
    ],
)
def test_every_shape_of_a_join_passes_fields(agreed, query, kept):
    _, result = agreed(query, OPTIONS, by_duck=False)
    # A table that a query names twice has the number of each scan.
    assert {kept} == set(files(result).values())


# Spark reads all fields of a struct, or those that the query names.
@pytest.mark.parametrize("columns", ["s.id, s.buyer, o.owner", "count(*), max(s.buyer.code)", "s.*"])
@pytest.mark.parametrize("format_", FORMATS)
def test_scans_keep_the_fields_that_a_query_reads(agreed, format_, columns):
    query = f"SELECT {columns} FROM sales_{format_} s JOIN {SOME} o ON s.buyer.number = o.owner.number"
    _, result = agreed(query, OPTIONS, by_duck=False)
    assert {f"sales_{format_}": 2} == files(result)


@pytest.mark.parametrize("columns", ["s.id", "s.*"])
def test_messages_name_fields_as_queries_do(agreed, columns):
    query = f"SELECT {columns} FROM sales_delta s JOIN owners o ON {{}} WHERE o.chosen"
    df, result = agreed(query.format("s.buyer.number = o.number"), OPTIONS, by_duck=False)
    assert "sales_delta.buyer.number" in str(explain(result))
    assert "buyer.number" in str(report(result))
    df, result = agreed(query.format("reverse(s.buyer.code) = o.code"), OPTIONS, by_duck=False)
    explained = str(explain(df, options=OPTIONS))
    assert "since reverse(buyer.code): the key is computed" in explained
    assert "extract" not in explained
    assert not files(result)


# Failure catalogue 115: the fields of these structs are in no file, which does not make them NULL.
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.id FROM {sales} s JOIN names n ON s._metadata.file_name = n.name",
        "SELECT s.id FROM {sales} s JOIN names n ON s._metadata.file_name = n.name AND s.plain = n.number",
        """SELECT o.id, s.id FROM {sales} o JOIN {sales} s ON s.plain = o.plain + 1
        WHERE o._metadata.file_size > 5 AND o.plain BETWEEN 300 AND 302""",
    ],
    ids=["key", "two keys", "condition of a build"],
)
def test_metadata_of_files_is_not_missing_in_them(spark, stored, structs, agreed, format_, query):
    # A view has no such columns.
    table = f"{format_}.`{structs[format_]}`"
    names = spark.sql(f"SELECT DISTINCT _metadata.file_name AS name, 300 AS number FROM {table} WHERE id IN (300, 900)")
    stored("names", names.coalesce(1))
    df, result = agreed(query.format(sales=table), OPTIONS, by_duck=False)
    assert 0 < df.count()
    # Other columns filter the scan as ever.
    assert (set() if "n.name" in query and "s.plain" not in query else {1}) == set(files(result).values())


# Writers differ in whether a NULL struct counts for its fields.
@pytest.mark.parametrize("format_", FORMATS)
def test_counts_of_null_in_fields_prove_no_first_rows(agreed, format_):
    query = f"SELECT id, buyer.number FROM sales_{format_} ORDER BY buyer.number DESC NULLS LAST, id LIMIT 3"
    _, result = agreed(query, OPTIONS, by_duck=False)
    assert not files(result)


@pytest.mark.parametrize("annotates", ["true", "false"])
@pytest.mark.parametrize("format_", FORMATS)
def test_parts_of_variants_are_not_missing_in_files(spark, stored, agreed, conf, format_, annotates):
    conf("spark.sql.parquet.annotateVariantLogicalType", annotates)
    variant = "parse_json(concat('{\"a\": ', id, '}')) AS v"
    stored(f"variants_{format_}", spark.range(0, 400, 1, 4).selectExpr("id", variant), format_)
    query = f"""SELECT id, a FROM (SELECT id, variant_get(v, '$.a', 'bigint') AS a FROM variants_{format_})
    JOIN (SELECT number FROM owners WHERE id IN (1, 2)) ON a = number"""
    df, result = agreed(query, OPTIONS, by_duck=False)
    assert 2 == df.count()
    assert not files(result)


def test_conditions_on_fields_of_equal_structs_are_not_copied(agreed):
    query = """SELECT a.id FROM sales_delta a JOIN sales_parquet b ON a.buyer = b.buyer JOIN owners o
    ON a.buyer.number = o.number WHERE o.chosen"""
    df, result = agreed(query, OPTIONS, by_duck=False)
    assert 1 == df.count()
    assert not files(result)
