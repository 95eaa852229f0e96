"""Columns go by their ids: whatever they are called, keys reach the one that is compared."""

from __future__ import annotations

import pytest

from pruning import explain
from tests.catalogue.facts import WHATEVER, fact_rows, files, why_not

pytestmark = pytest.mark.spark

DIM = "(SELECT * FROM dims WHERE grp = 2)"


# Both sides have `k`, `id` and `item`; keys of an `id` on the other's would leave nothing.
@pytest.mark.parametrize(
    ("query", "kept"),
    [
        # 3
        pytest.param("SELECT f.id, d.id FROM facts f JOIN {dim} d ON f.k = d.id", {"facts": 1}, id="crossed"),
        pytest.param("SELECT f.id, k FROM facts f JOIN {dim} d USING (k)", {"facts": 1}, id="using"),
        pytest.param(
            "SELECT count(*) FROM (SELECT k, maybe FROM plain) f NATURAL JOIN (SELECT k, grp FROM {dim}) d",
            *({"plain": 1},),
            id="natural",
        ),
        # 4: three columns of one name along a chain.
        pytest.param(
            """SELECT a.id, b.id, c.id FROM facts a JOIN (dims b
               JOIN (SELECT id + 300 AS id, k FROM {dim}) c ON b.k = c.k) ON a.k = b.id""",
            *({"facts": 1},),
            id="nested",
        ),
        # 5: names that change places in projections.
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
        # 6: the side on which keys are is not that of the text.
        pytest.param("SELECT f.id FROM {dim} d JOIN facts f ON d.k = f.k", {"facts": 1}, id="build-first"),
        # 8: each comparison has its own key.
        pytest.param(
            """SELECT f.id FROM plain f JOIN {dim} d ON f.item <= d.item AND f.id >= d.id + 10000 AND f.maybe <= d.k
               AND f.k = d.k""",
            *({"plain": 1},),
            id="comparisons-in-any-order",
        ),
        # 51
        pytest.param(
            "SELECT a.id, b.id FROM facts a JOIN facts b ON a.k = b.k + 20 JOIN {dim} d ON d.k = a.k WHERE b.item = 3",
            {"facts#1": 1},
            id="with-itself",
        ),
        pytest.param(
            """SELECT a.id, b.id FROM facts a JOIN facts b ON a.item = b.item JOIN {dim} d ON d.k = a.k
               JOIN (SELECT k FROM dims WHERE grp = 5) e ON e.k = b.k WHERE a.item = 3""",
            *({"facts#1": 1, "facts#2": 1},),
            id="with-itself-by-two-dimensions",
        ),
    ],
)
def test_columns_of_one_name(agreed, query, kept):
    _, result = agreed(query.replace("{dim}", DIM))
    assert kept == files(result)


NAMES = ("a.b", "x y", "`q`", "GROUP", "Ünï", "k#1", "select")


# 3, 128: names that mean something to somebody.
def test_names_that_have_to_be_quoted(spark, agreed, stored):
    facts = fact_rows(spark).selectExpr("id", *(f"k + {at} AS `{n.replace('`', '``')}`" for at, n in enumerate(NAMES)))
    stored("quoted", facts.selectExpr("*", "named_struct('b', 999, 'x y', 999) AS a"), "parquet")
    for name in NAMES:
        sql, other = (mark + name.replace(mark, mark * 2) + mark for mark in '`"')
        query = f"SELECT f.id FROM quoted f JOIN {DIM} d ON f.%s = d.k"
        _, result = agreed(query % sql, duck=query % other)
        (table,) = explain(result).tables
        assert (1 if name == NAMES[0] else 2) == table.files_kept == files(result)["quoted"]


def test_fields_of_structs(spark, agreed, stored):
    facts = fact_rows(spark).selectExpr("id", "named_struct('k', item, 'in', named_struct('k', k, 'id', id)) AS s")
    stored("nested", facts, "parquet")
    for query in (
        f"SELECT f.id FROM nested f JOIN {DIM} d ON f.s.in.k = d.k",
        f"SELECT f.id FROM (SELECT id, s.in AS k FROM nested) f JOIN {DIM} d ON f.k.k = d.k",
    ):
        df, result = agreed(query, duck=query.replace("s.in", "s['in']").replace("s['in'].k", "s['in']['k']"))
        assert {} == files(result)
        assert "COMPUTED" in why_not(df, result)


# 129: `K` is the key of the dimension, `k` another column, whose values lie in all files.
def test_names_that_differ_in_case(spark, agreed, conf, tmp_path):
    conf("spark.sql.caseSensitive", "true")
    fact_rows(spark).selectExpr("k AS K", "item + 40 AS k", "id AS n").write.parquet(str(tmp_path / "cased"))
    for name, same, kept in (("K", "k", {"cased": 1}), ("k", "item + 40", {})):
        _, result = agreed(
            f"SELECT f.n FROM parquet.`{tmp_path}/cased` f JOIN {DIM} d ON f.{name} = d.k",
            duck=f"SELECT f.id FROM facts f JOIN {DIM} d ON f.{same} = d.k",
        )
        assert kept == files(result)


# 129: one column, however it is written.
def test_names_in_another_case_than_the_tables(agreed):
    _, result = agreed(f"SELECT F.ID FROM FACTS F JOIN (SELECT K AS Key FROM {DIM}) D ON F.K = D.kEY")
    assert {"facts": 1} == files(result)


# 126, 127: a name that was another column's, whose files still have it.
@pytest.mark.full
def test_names_that_were_those_of_other_columns(spark, agreed, stored, ways):
    folder = stored("renamed", fact_rows(spark).selectExpr("k", "id", "item"))
    table = f"delta.`{folder}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    for name, new in (("item", "between"), ("k", "item"), ("between", "k")):
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN {name} TO {new}")
    ways.view("renamed", spark.read.format("delta").load(folder))
    _, result = agreed(f"SELECT r.id, r.k FROM renamed r JOIN {DIM} d ON r.item = d.k")
    assert {"renamed": 1} == files(result)
    # Every file has every one of these, and none has keys from 40 on.
    _, result = agreed(f"SELECT r.id, r.item FROM renamed r JOIN {DIM} d ON r.k = d.k", WHATEVER)
    assert {"renamed": 0} == files(result)
    _, result = agreed("SELECT r.id, r.item FROM renamed r JOIN dims d ON r.k = d.k WHERE d.k < 3", WHATEVER)
    assert {"renamed": 8} == files(result)
    # Both of them, in files of before and after.
    spark.sql(f"INSERT INTO {table} (k, id, item) VALUES (41, 7, 3), (3, 8, 41)")
    ways.view("renamed", spark.read.format("delta").load(folder))
    _, result = agreed(f"SELECT r.id, r.k FROM renamed r JOIN {DIM} d ON r.item = d.k JOIN dims e ON r.k = e.item")
    assert {"renamed": 2} == files(result)
    _, result = agreed(f"SELECT r.id, r.k FROM renamed r JOIN {DIM} d ON r.k = d.k")
    assert {"renamed": 1} == files(result)
