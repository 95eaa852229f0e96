"""Tables, sessions and plans for the tests of file lists from memory, which have nothing known when they begin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from connectors.delta import file_index
from connectors.delta.file_index import PREPARED_INDEX
from connectors.spark.jvm import jvm_session
from connectors.spark.session_state import state_of
from pruning import disable, enable
from pruning.limits import LIMITS, Limits
from sample_data import confs
from sample_data.rows import Rows
from tests.connectors.delta.test_file_index import jobs
from tests.costs import COSTLY_BUILDS

# No filter pays: the plans are those that Delta's scans give.
OPTIONS = COSTLY_BUILDS
PREPARED, UNPREPARED = PREPARED_INDEX.rpartition(".")[2], "TahoeLogFileIndex"
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
# Delta's lists then have the number of rows of each file.
COUNTED = "spark.databricks.delta.alwaysCollectStats.enabled"
VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
PATIENCE = 60.0
_FILE_LISTS = file_index._file_lists


@contextmanager
def unlisted(spark: SparkSession, limits: Limits = LIMITS) -> Iterator[None]:
    """Sessions with the extensions of `spark` have an empty memory in this block, and their former one afterwards."""
    extensions = jvm_session(spark).extensions()
    field = extensions.getClass().getDeclaredField("preCBORules")
    field.setAccessible(True)
    slot = state_of(spark).slot(file_index._FileLists)
    makers, java = field.get(extensions), slot.java
    field.set(extensions, without_lists(makers))
    slot.java = None
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(file_index, "_file_lists", lambda session, delta: _FILE_LISTS(session, delta, limits))
            yield
    finally:
        disable(spark)
        field.set(extensions, makers)
        slot.java = java


def without_lists(makers: Any) -> Any:
    """A copy of the makers of rules without those of file lists."""
    others = makers.clone()
    for at in reversed(range(others.size())):
        if kind(others.apply(at)) == "EarlyLists":
            others.remove(at)
    return others


def makers_of(spark: SparkSession) -> list[str]:
    """The makers of rules of a session that run before plans are estimated; those of Delta are lambdas."""
    extensions = jvm_session(spark).extensions()
    field = extensions.getClass().getDeclaredField("preCBORules")
    field.setAccessible(True)
    found = field.get(extensions)
    names = [kind(found.apply(at)) for at in range(found.size())]
    return ["Delta" if "Delta" in name else name for name in names]


def kind(java: Any) -> str:
    return str(java.getClass().getSimpleName())


@pytest.fixture(autouse=True, scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Tables of a few rows, without the time that compiling takes."""
    with confs.conf(
        spark, dict.fromkeys(confs.CODE_GENERATION, "false") | {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    ):
        yield


@pytest.fixture(autouse=True)
def memory(spark: SparkSession) -> Iterator[None]:
    """Each test begins with nothing known, and ends with a session that is not enabled."""
    with unlisted(spark):
        yield


@pytest.fixture
def stock(spark: SparkSession) -> SparkSession:
    """A session with equal confs and the same extensions that is not enabled."""
    return confs.same_session(spark)


@pytest.fixture
def on(spark: SparkSession, stock: SparkSession) -> SparkSession:  # noqa: ARG001 - before it is enabled
    enable(spark, options=OPTIONS)
    return spark


@dataclass(frozen=True)
class Lake:
    """Tables of a few rows in a folder, whose versions no test changes."""

    folder: Path

    def __call__(self, text: str) -> str:
        """A query with the tables in place of their names in braces."""
        return re.sub(r"\{(\w+)\}", lambda found: f"delta.`{self.folder / found[1]}`", text)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    found = Lake(tmp_path_factory.mktemp("early"))
    # Four files, of ten ids each.
    spark.range(0, 40, 1, 4).selectExpr("id", "id % 10 AS k").write.format("delta").save(str(found.folder / "facts"))
    spark.range(0, 10, 1, 1).selectExpr("id AS k", "concat('x', id) AS name").write.format("delta").save(
        str(found.folder / "dims")
    )
    # Three files, one of them of rows without a part.
    parts = spark.range(0, 30, 1, 1).selectExpr(
        "id", "id % 5 AS k", "nullif(concat('p ', id % 3), 'p 2') AS part", "CAST(id % 3 AS INT) AS number"
    )
    parts.write.format("delta").partitionBy("part", "number").save(str(found.folder / "parts"))
    spark.sql(found(f"CREATE TABLE {{vectors}} USING delta {VECTORS} AS SELECT * FROM {{facts}}"))
    spark.sql(found("DELETE FROM {vectors} WHERE id IN (3, 13)"))
    spark.sql(
        found(
            "CREATE TABLE {made} (at TIMESTAMP, v LONG, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) "
            "USING delta PARTITIONED BY (day)"
        )
    )
    spark.sql(found("INSERT INTO {made} (at, v) SELECT timestamp_seconds(id * 43200), id FROM range(6)"))
    for name in ("facts", "dims", "parts", "vectors", "made"):
        # Delta makes the state of a version by jobs of its own.
        Planned.of(spark, found(f"SELECT * FROM {{{name}}}"))
    return found


@dataclass(frozen=True)
class Planned:
    """A query as it was planned: the jobs of its optimisation, and what the plan shows of its scans."""

    df: DataFrame
    jobs: int

    @staticmethod
    def of(session: SparkSession, query: str | DataFrame) -> Planned:
        df = session.sql(query) if isinstance(query, str) else query
        before = jobs(session)
        df._jdf.queryExecution().optimizedPlan()
        return Planned(df, jobs(session) - before)

    @property
    def plan(self) -> Any:
        return self.df._jdf.queryExecution().optimizedPlan()

    def rows(self) -> Rows:
        return Rows(self.df.collect())

    def shown(self) -> tuple[list[list[str]], str, list[str]]:
        """The indexes of the scans, the text of `explain("cost")`, with numbers in the order of their columns, and the
        input files.
        """
        java: Any = self.df.sparkSession._jvm
        text = java.PythonSQLUtils.explainString(self.df._jdf.queryExecution(), "cost")
        return scans(self.plan), numbered(text), sorted(self.df.inputFiles())


def numbered(text: str) -> str:
    """A text of a plan with the same numbers for the same columns, and without those that each query has anew."""
    known: dict[str, str] = {}
    text = re.sub(r"plan_id=\d+|(?<=rand\()-?\d+", "", text)
    return re.sub(r"#\d+L?", lambda found: known.setdefault(found[0], f"#{len(known)}"), text)


def nameless(condition: str) -> str:
    """A condition without the ids of columns and without seeds."""
    return re.sub(r"#\d+L?|(?<=rand\()-?\d+", "", condition)


def leaves(plan: Any) -> Iterator[Any]:
    """The relations of files in a plan and in its subqueries."""
    if kind(plan) == "LogicalRelation":
        yield plan
    for inner in (plan.children(), plan.subqueries()):
        for at in range(inner.size()):
            yield from leaves(inner.apply(at))


def indexes(planned: Planned) -> list[str]:
    return [kind(leaf.relation().location()) for leaf in leaves(planned.plan)]


def scans(plan: Any) -> list[list[str]]:
    """All that Delta's indexes in a plan hold, except for ids of columns and times."""
    return [described(leaf.relation().location()) for leaf in leaves(plan)]


def described(index: Any) -> list[str]:
    if kind(index) != PREPARED:
        return [kind(index)]
    scan = index.preparedScan()
    sets = (scan.partitionFilters(), scan.dataFilters(), scan.partitionLikeDataFilters(), scan.unusedFilters())
    filters = [sorted(map(nameless, each.mkString("\n").splitlines())) for each in sets]
    files = sorted(str(scan.files().mkString("\n")).splitlines())
    sizes = [scan.total(), scan.partition(), scan.scanned(), scan.dataSkippingType(), index.versionScanned()]
    texts = [str(each.toString()) if each is not None else "" for each in sizes]
    return [PREPARED, str(scan.version()), str(index.path()), *map(str, filters), *files, *texts]


def ids(planned: Planned) -> list[int]:
    """The first column of the rows of a query, in their order."""
    return sorted(row[0] for row in planned.rows())


def warm(stock: SparkSession, query: str) -> Planned:
    """The query of stock Spark when the states of its versions are known."""
    Planned.of(stock, query)
    return Planned.of(stock, query)


def check_equal(expected: Planned, *found: Planned) -> None:
    shown, rows = expected.shown(), expected.rows()
    for each in found:
        assert shown == each.shown()
        assert rows == each.rows()


# The jobs of stock Spark, and those of the first time, which has them at once.
QUERIES = {
    "plain": ("SELECT * FROM {facts}", 1, 1),
    "filter": ("SELECT * FROM {facts} WHERE id > 17", 1, 1),
    "partition": ("SELECT * FROM {parts} WHERE part = 'p 1'", 1, 1),
    "null": ("SELECT * FROM {parts} WHERE part IS NULL", 1, 1),
    "both": ("SELECT * FROM {parts} WHERE part = 'p 1' AND id > 3 AND k + 1 < 4", 1, 1),
    "none-left": ("SELECT * FROM {facts} WHERE id > 400", 1, 1),
    "join": (
        "SELECT f.id, d.name FROM {facts} f JOIN {dims} d ON f.k = d.k JOIN {parts} p ON f.id = p.id WHERE f.id > 7",
        3,
        3,
    ),
    "outer": ("SELECT f.id, p.part FROM {facts} f LEFT JOIN {parts} p ON f.id = p.id AND p.part = 'p 0'", 2, 2),
    "self-join": ("SELECT a.id FROM {facts} a JOIN {facts} b ON a.id = b.k", 2, 2),
    "self-join-on-one-column": ("SELECT a.id FROM {facts} a JOIN {facts} b ON a.id = b.id", 1, 1),
    "union": ("SELECT id FROM {facts} WHERE id > 5 UNION ALL SELECT k FROM {parts} WHERE part = 'p 0'", 2, 2),
    "union-of-one": ("SELECT id FROM {facts} WHERE id > 5 UNION ALL SELECT k FROM {facts} WHERE id < 5", 2, 2),
    "scalar-subquery": ("SELECT * FROM {facts} WHERE id > (SELECT min(id) + 3 FROM {parts} WHERE k > 1)", 2, 2),
    "in-subquery": ("SELECT * FROM {facts} WHERE id IN (SELECT k FROM {parts} WHERE part = 'p 1')", 2, 2),
    "exists": ("SELECT * FROM {facts} f WHERE EXISTS (SELECT 1 FROM {parts} p WHERE p.id = f.id AND p.k = 2)", 2, 2),
    "with": ("WITH w AS (SELECT id FROM {facts} WHERE k = 3) SELECT * FROM w a JOIN w b ON a.id = b.id", 1, 1),
    "aggregate": ("SELECT k, count(*) FROM {facts} WHERE id >= 20 GROUP BY k", 1, 1),
    # Delta makes the state of an older version anew for each query.
    "version": ("SELECT * FROM {vectors} VERSION AS OF 0 WHERE id > 2", 2, 2),
    "two-versions": ("SELECT * FROM {vectors} VERSION AS OF 0 WHERE id NOT IN (SELECT id FROM {vectors})", 5, 5),
    "deletion-vectors": ("SELECT * FROM {vectors} WHERE id < 15", 1, 1),
    "generated-column": ("SELECT * FROM {made} WHERE at >= TIMESTAMP'1970-01-02 06:00:00'", 1, 1),
    "random": ("SELECT * FROM {facts} WHERE rand() + k >= 0 AND id > 17", 1, 1),
    "in-list": (f"SELECT * FROM {{facts}} WHERE id IN ({', '.join(map(str, range(15)))})", 1, 1),
    "text": ("SELECT * FROM {dims} WHERE name LIKE 'x%' AND name <> 'it''s'", 1, 1),
}


MERGE = """
    MERGE INTO {own} t USING (SELECT id + 10 AS id, k FROM {own} WHERE id > 25) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET k = -1 WHEN NOT MATCHED THEN INSERT *"""
COMMITS = {
    "insert": "INSERT INTO {own} VALUES (900, 4)",
    "delete": "DELETE FROM {own} WHERE id IN (4, 25)",
    "update": "UPDATE {own} SET k = -5 WHERE id = 33",
    "merge": MERGE,
    "optimize": "OPTIMIZE {own}",
    "restore": "RESTORE TABLE {own} TO VERSION AS OF 0",
    "truncate": "DELETE FROM {own}",
    "add-column": "ALTER TABLE {own} ADD COLUMN (more STRING)",
}
OF_OWN = "SELECT id, k FROM {own} WHERE id >= 12"


@pytest.fixture
def own(spark: SparkSession, lake: Lake, tmp_path: Path) -> Callable[[str], str]:
    """Queries over a table of the test, which has deletion vectors and two versions."""
    found = Lake(tmp_path)
    spark.sql(found(f"CREATE TABLE {{own}} USING delta {VECTORS} AS ") + lake("SELECT * FROM {facts} WHERE id < 30"))
    spark.sql(found("INSERT INTO {own} ") + lake("SELECT * FROM {facts} WHERE id >= 30"))
    return found
