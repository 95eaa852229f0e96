"""Columns are identified by id: keys reach the compared column, whatever its name."""

from __future__ import annotations

import pytest

from pruning import explain
from tests.catalogue.facts import ALWAYS_BUILD, fact_rows, files

pytestmark = pytest.mark.spark

DIM = "(SELECT * FROM dims WHERE grp = 2)"


# Both sides have `k`, `id` and `item`; keys of one `id` on the other would leave no row.
@pytest.mark.parametrize(
    ("query", "kept"),
    [
        # Failure catalogue 3.
        pytest.param("SELECT f.id, d.id FROM facts f JOIN {dim} d ON f.k = d.id", {"facts": 1}, id="crossed"),
        pytest.param("SELECT f.id, k FROM facts f JOIN {dim} d USING (k)", {"facts": 1}, id="using"),
        pytest.param(
            "SELECT count(*) FROM (SELECT k, maybe FROM plain) f NATURAL JOIN (SELECT k, grp FROM {dim}) d",
            *({"plain": 1},),
            id="natural",
        ),
        # Failure catalogue 4: a chain with three columns of one name.
        pytest.param(
            """SELECT a.id, b.id, c.id FROM facts a JOIN (dims b
               JOIN (SELECT id + 300 AS id, k FROM {dim}) c ON b.k = c.k) ON a.k = b.id""",
            *({"facts": 1},),
            id="nested",
        ),
        # Failure catalogue 5: projections that swap names.
        pytest.param(
            """SELECT f.id FROM (SELECT id AS k, k AS id, item FROM (SELECT id AS k, k AS id, item FROM facts)
               WHERE item > 2 AND k > 10000) f JOIN {dim} d ON f.k = d.k""",
            *({"facts": 1},),
            id="swapped-twice",
        ),
        pytest.param(
            "SELECT f.item FROM (SELECT k AS id, id AS k, item FROM facts WHERE k > 3) f JOIN {dim} d ON f.id = d.k",
            {"facts": 1},
            id="swapped",
        ),
        pytest.param(
            """SELECT x.a, x.b FROM (SELECT f.k AS a, f.k AS b, f.id FROM facts f) x JOIN {dim} d ON x.a = d.k
               JOIN (SELECT k FROM dims WHERE item = 1) e ON x.b = e.k""",
            *({"facts": 1},),
            id="one-column-under-two-names",
        ),
        # Failure catalogue 6: the operand order of the text is not the side of the keys.
        pytest.param("SELECT f.id FROM {dim} d JOIN facts f ON d.k = f.k", {"facts": 1}, id="build-first"),
        # Failure catalogue 8: each comparison has a key of its own.
        pytest.param(
            """SELECT f.id FROM plain f JOIN {dim} d ON f.item <= d.item AND f.id >= d.id + 10000 AND f.maybe <= d.k
               AND f.k = d.k""",
            *({"plain": 1},),
            id="comparisons-in-any-order",
        ),
        # Failure catalogue 51.
        pytest.param(
            "SELECT a.id, b.id FROM facts a JOIN facts b ON a.k = b.k + 20 JOIN {dim} d ON d.k = a.k WHERE b.item = 3",
            {"facts#1": 1},
            id="with-itself",
        ),
        pytest.param(
            """SELECT a.id, b.id FROM facts a JOIN facts b ON a.item = b.item JOIN {dim} d ON d.k = a.k
               JOIN (SELECT k FROM dims WHERE grp = 5) e ON e.k = b.k WHERE a.item = 3""",
            # A build has read the first scan by keys of `dims`, and the query joins its rows.
            *({"facts#2": 1},),
            id="with-itself-by-two-dimensions",
        ),
    ],
)
def test_columns_of_one_name(agreed, query, kept):
    _, result = agreed(query.replace("{dim}", DIM))
    assert kept == files(result)


NAMES = ("a.b", "x y", "`q`", "GROUP", "Ünï", "k#1", "select")


# Failure catalogue 3, 128: names with characters or words that have a meaning.
def test_names_that_need_quotes(spark, agreed, stored):
    facts = fact_rows(spark).selectExpr("id", *(f"k + {at} AS `{n.replace('`', '``')}`" for at, n in enumerate(NAMES)))
    stored("quoted", facts.selectExpr("*", "named_struct('b', 999, 'x y', 999) AS a"), "parquet")
    for name in NAMES:
        sql, other = (mark + name.replace(mark, mark * 2) + mark for mark in '`"')
        query = f"SELECT f.id FROM quoted f JOIN {DIM} d ON f.%s = d.k"
        _, result = agreed(query % sql, duck=query % other)
        (table,) = explain(result).tables
        assert (1 if name == NAMES[0] else 2) == table.files_kept == files(result)["quoted"]


def test_struct_fields_are_columns(spark, agreed, stored):
    facts = fact_rows(spark).selectExpr("id", "named_struct('k', item, 'in', named_struct('k', k, 'id', id)) AS s")
    stored("nested", facts, "parquet")
    for query in (
        f"SELECT f.id FROM nested f JOIN {DIM} d ON f.s.in.k = d.k",
        f"SELECT f.id FROM (SELECT id, s.in AS k FROM nested) f JOIN {DIM} d ON f.k.k = d.k",
    ):
        _, result = agreed(query, duck=query.replace("s.in", "s['in']").replace("s['in'].k", "s['in']['k']"))
        assert {"nested": 1} == files(result)


# Failure catalogue 129: `K` is the join key, and `k` is another column, whose values lie in all files.
def test_names_that_differ_only_by_case(spark, agreed, conf, tmp_path):
    conf("spark.sql.caseSensitive", "true")
    fact_rows(spark).selectExpr("k AS K", "item + 40 AS k", "id AS n").write.parquet(str(tmp_path / "cased"))
    for name, same, kept in (("K", "k", {"cased": 1}), ("k", "item + 40", {})):
        _, result = agreed(
            f"SELECT f.n FROM parquet.`{tmp_path}/cased` f JOIN {DIM} d ON f.{name} = d.k",
            duck=f"SELECT f.id FROM facts f JOIN {DIM} d ON f.{same} = d.k",
        )
        assert kept == files(result)


# Failure catalogue 129: one column in any case.
def test_names_in_another_case_than_in_the_table(agreed):
    _, result = agreed(f"SELECT F.ID FROM FACTS F JOIN (SELECT K AS Key FROM {DIM}) D ON F.K = D.kEY")
    assert {"facts": 1} == files(result)


# Failure catalogue 126, 127: a name that belonged to another column, under which older files still have it.
@pytest.mark.full
def test_reused_names_of_renamed_columns(spark, agreed, stored, ways):
    folder = stored("renamed", fact_rows(spark).selectExpr("k", "id", "item"))
    table = f"delta.`{folder}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    for name, new in (("item", "between"), ("k", "item"), ("between", "k")):
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN {name} TO {new}")
    ways.view("renamed", spark.read.format("delta").load(folder))
    _, result = agreed(f"SELECT r.id, r.k FROM renamed r JOIN {DIM} d ON r.item = d.k")
    assert {"renamed": 1} == files(result)
    # Every file has all items, and no item is a key, since keys begin with 40.
    _, result = agreed(f"SELECT r.id, r.item FROM renamed r JOIN {DIM} d ON r.k = d.k", ALWAYS_BUILD)
    assert {"renamed": 0} == files(result)
    _, result = agreed("SELECT r.id, r.item FROM renamed r JOIN dims d ON r.k = d.k WHERE d.k < 3", ALWAYS_BUILD)
    assert {"renamed": 8} == files(result)
    # Both columns, in files from before and after the renaming.
    spark.sql(f"INSERT INTO {table} (k, id, item) VALUES (41, 7, 3), (3, 8, 41)")
    ways.view("renamed", spark.read.format("delta").load(folder))
    _, result = agreed(f"SELECT r.id, r.k FROM renamed r JOIN {DIM} d ON r.item = d.k JOIN dims e ON r.k = e.item")
    assert {"renamed": 2} == files(result)
    _, result = agreed(f"SELECT r.id, r.k FROM renamed r JOIN {DIM} d ON r.k = d.k")
    assert {"renamed": 1} == files(result)
