"""The remedy of each reason helps: a query is refused, what its reason says is done, and the query is pruned."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pruning import PruningOptions, disable, enable, explain, prune, pruned_read, report
from pruning.reasons import Reason, ReasonCode
from sample_data.confs import conf as session_conf
from sample_data.rows import Rows
from tests.catalogue.facts import FILES, OPTIONS, fact_rows
from tests.connectors.delta.other_writers import mapped_before
from tests.costs import ALWAYS, NO_FIXED_COSTS, PLANNED_SCANS
from tests.in_session import recorded_in_session
from tests.oracle.other_writers import inverted_page_index

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pruning import Explanation, PruneReport

DIM = "(SELECT * FROM dims WHERE grp = 2)"
JOIN = f"SELECT f.id FROM facts f JOIN {DIM} d ON f.k = d.k"
BY_ROWS = replace(OPTIONS, broadcast_strategy="NONE")

# Names of plans and not of SQL, which no text for a user has.
INTERNAL = re.compile(
    r"static_invoke|string_[lr]pad|collation_key|is_(not_)?null\(|_extract_|Cast\(|EqualTo|\w#\d+L?\b(?!\.)"
)

# ------------------------------------------------------------------------------ questions and answers


@dataclass(slots=True)
class Bench:
    """The session of a test, a folder of its own, and views and cached rows that end with the test."""

    spark: SparkSession
    folder: Path
    names: list[str] = field(default_factory=list)
    cached: list[DataFrame] = field(default_factory=list)

    def view(self, name: str, df: DataFrame) -> DataFrame:
        """Registers a view, in place of one with the same name."""
        df.createOrReplaceTempView(name)
        self.names.append(name)
        return df

    def cache(self, df: DataFrame) -> DataFrame:
        """The DataFrame with its rows kept in memory."""
        self.cached.append(df.cache())
        df.count()
        return df

    def stored(self, name: str, df: DataFrame, format_: str = "delta") -> DataFrame:
        """Writes a table of the test, anew if there is one, and registers it."""
        path = str(self.folder / name)
        df.write.format(format_).mode("overwrite").option("overwriteSchema", "true").save(path)
        return self.view(name, self.spark.read.format(format_).load(path))

    def end(self) -> None:
        """Leaves the session as it was."""
        for df in self.cached:
            df.unpersist(blocking=True)
        for name in self.names:
            self.spark.catalog.dropTempView(name)


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a question, which stock Spark gives, too, with its explanation and its report."""

    rows: Rows
    explanation: Explanation
    report: PruneReport

    @property
    def reads(self) -> dict[str, str]:
        """The files that each scan with a filter has read, of all, after a check that they are the planned ones."""
        for each in self.report.tables:
            assert each.measured is None or each.measured.files_read == each.planned.files_kept, each
        tables = {each.planned.table.rpartition("/")[2]: each.planned for each in self.report.tables}
        return {name: f"{each.files_kept} of {each.files_total} files" for name, each in tables.items()}

    @property
    def lines(self) -> list[str]:
        """The text of every reason."""
        told = self.explanation
        tables = [reason for each in told.tables for it in each.filters for reason in it.reasons]
        tables += [reason for each in told.tables for reason in each.reasons]
        stops = [stop for edge in told.edges for stop in edge.stops]
        return [*map(str, (*told.reasons, *told.causes, *tables)), *stops, self.report.verdict]

    @property
    def text(self) -> str:
        """The whole explanation in one line."""
        return " ".join(str(self.explanation).split())


@dataclass(frozen=True, slots=True)
class Query:
    """A query that an enabled session runs."""

    query: str | Callable[[Bench], DataFrame]
    options: PruningOptions | None = OPTIONS
    confs: Mapping[str, str] = field(default_factory=dict)

    def ask(self, bench: Bench) -> Answer:
        """Its answer, by stock Spark and by the session."""
        with session_conf(bench.spark, dict(self.confs)):
            stock = Rows(self._df(bench).collect())
            rows, record = recorded_in_session(bench.spark, self.options, lambda: Rows(self._df(bench).collect()))
        assert stock == rows
        assert record is not None
        return Answer(rows, record.explanation(), record.report())

    def _df(self, bench: Bench) -> DataFrame:
        return bench.spark.sql(self.query) if isinstance(self.query, str) else self.query(bench)


@dataclass(frozen=True, slots=True)
class Read:
    """A `pruned_read()` of a stored view by keys that a query gives, whose columns have the names of the table's."""

    table: str
    keys: str | Callable[[Bench], DataFrame]
    options: PruningOptions | None = None

    def ask(self, bench: Bench) -> Answer:
        """Its answer, joined with the keys, and that of the same join by stock Spark."""
        keys = bench.spark.sql(self.keys) if isinstance(self.keys, str) else self.keys(bench)
        table, columns = bench.spark.table(self.table), keys.columns
        name = columns[0] if len(columns) == 1 else tuple(columns)
        read = pruned_read(bench.spark, table, keys={name: keys}, options=self.options)
        rows = Rows(read.join(keys, columns, "left_semi").collect())
        assert Rows(table.join(keys, columns, "left_semi").collect()) == rows
        read.collect()
        return Answer(rows, explain(read), report(read))


Question = Query | Read


@dataclass(frozen=True, slots=True)
class Case:
    """A refused question, and the same question after the remedy of its reason.

    - `subject`: the expression, operator or scan that the reason names, as the user wrote it
    - `remedy`: what is done between the questions; `after`: the mended question, None for the same one
    - `reads`: the files that are read after it; `before`: those that are read before it, where other filters are used
    - `is_same`: False where the remedy changes the question, as a condition does
    """

    reason: ReasonCode
    subject: str
    asked: Question
    after: Question | None
    reads: Mapping[str, str]
    remedy: Callable[[Bench], object] | None = None
    setup: Callable[[Bench], object] | None = None
    before: Mapping[str, str] = field(default_factory=dict)
    is_same: bool = True
    name: str = ""

    @property
    def id(self) -> str:
        """Its name among the tests."""
        return f"{self.reason.name}{f'-{self.name}' * bool(self.name)}"


ONE = {"facts": f"1 of {FILES} files"}


# ------------------------------------------------------------------------------ tables of single cases


def events(spark: SparkSession, *columns: str) -> DataFrame:
    """A thousand rows in the order of time, in eight files."""
    return spark.range(0, 1000, 1, FILES).selectExpr("id", *columns)


def shuffled(bench: Bench) -> None:
    """Events whose column `spread` has values of the whole span in each file."""
    bench.stored("events", events(bench.spark, "cast((id * 7919) % 1000 AS int) AS spread"))


def clustered(bench: Bench) -> None:
    """Spark compacts files of a table into files of this size."""
    with session_conf(bench.spark, {"spark.databricks.delta.optimize.maxFileSize": "2500"}):
        bench.spark.sql(f"OPTIMIZE delta.`{bench.folder / 'events'}` ZORDER BY (spread)")


def kinds(bench: Bench) -> None:
    """Columns that storage or Spark orders in another way, beside one that says the same."""
    columns = (
        "cast(id AS int) AS k",
        "array(cast(id AS int)) AS list",
        "cast(id AS decimal(38, 0)) AS wide",
        "lpad(cast(id AS string), 4, '0') COLLATE UTF8_LCASE AS folded",
        "lpad(cast(id AS string), 4, '0') AS code",
        "cast(timestamp_seconds(id * 3600) AS timestamp_ntz) AS local",
        "timestamp_seconds(id * 3600) AS at",
        "cast(id AS string) AS text",
    )
    with session_conf(bench.spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        bench.stored("kinds", bench.spark.range(0, 160, 1, FILES).selectExpr(*columns), "parquet")


def chars(bench: Bench) -> None:
    path = bench.folder / "chars"
    bench.spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, code CHAR(6)) USING delta")
    rows = bench.spark.range(0, 160, 1, FILES).selectExpr("id", "lpad(cast(id AS string), 4, '0') AS code")
    rows.write.format("delta").mode("append").save(str(path))
    bench.view("chars", bench.spark.read.format("delta").load(str(path)))
    bench.stored("codes", rows.where("id IN (41, 42)").select("code"), "parquet")


def as_string(bench: Bench) -> None:
    path = bench.folder / "strings"
    bench.spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, code STRING) USING delta")
    bench.spark.table("chars").write.format("delta").mode("append").save(str(path))
    with session_conf(bench.spark, {"spark.sql.shuffle.partitions": "8"}):
        trimmed = bench.spark.table("chars").selectExpr("id", "rtrim(code) AS code").repartitionByRange(FILES, "id")
        bench.stored("chars", trimmed)


def without_statistics(bench: Bench) -> None:
    """A table of which the log counts no column but `a`, and whose footers have no bounds of timestamps."""
    path = bench.folder / "unseen"
    properties = "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'a')"
    bench.spark.sql(f"CREATE TABLE delta.`{path}` (a BIGINT, at TIMESTAMP) USING delta {properties}")
    rows = events(bench.spark, "timestamp_seconds(id * 3600) AS at").withColumnRenamed("id", "a")
    rows.write.format("delta").mode("append").save(str(path))
    bench.view("unseen", bench.spark.read.format("delta").load(str(path)))


def times_stored_as(bench: Bench, type_: str) -> None:
    with session_conf(bench.spark, {"spark.sql.parquet.outputTimestampType": type_}):
        bench.stored("times", events(bench.spark, "timestamp_seconds(id * 3600) AS at"), "parquet")


def with_statistics(bench: Bench) -> None:
    path = bench.folder / "unseen"
    bench.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'a,at')")
    rows = bench.spark.read.format("delta").load(str(path)).repartitionByRange(FILES, "at")
    rows.write.format("delta").mode("overwrite").save(str(path))


def stale_names(bench: Bench) -> None:
    path = mapped_before(bench.folder / "stale", "none")
    bench.view("stale", bench.spark.read.format("delta").load(path))
    ids = bench.spark.sql("SELECT * FROM VALUES (7L, true), (1000L, false) AS (id, chosen)")
    bench.stored("ids", ids.coalesce(1), "parquet")


def wrong_metadata(bench: Bench) -> None:
    inverted_page_index(bench.folder / "texts", "ClickHouse version 26.3.3 (build 1f)")
    bench.view("texts", bench.spark.read.parquet(str(bench.folder / "texts")))


def broken(bench: Bench) -> None:
    """A file that cannot be read, which Spark is told to leave out."""
    path = bench.folder / "broken"
    fact_rows(bench.spark).write.parquet(str(path))
    victim = max(path.glob("*.parquet"))
    (bench.folder / "whole").write_bytes(victim.read_bytes())
    victim.write_bytes(b"no table" * 100)
    bench.view("broken", bench.spark.read.schema(bench.spark.table("facts").schema).parquet(str(path)))


def repaired(bench: Bench) -> None:
    victim = max((bench.folder / "broken").glob("*.parquet"))
    victim.write_bytes((bench.folder / "whole").read_bytes())
    bench.view("broken", bench.spark.read.parquet(str(bench.folder / "broken")))


def observed(*, is_kept: bool) -> Callable[[Bench], DataFrame]:
    """Facts joined with groups that are observed, or with a checkpoint of these."""

    def query(bench: Bench) -> DataFrame:
        from pyspark.sql import Observation  # noqa: PLC0415 - tests without Spark load none
        from pyspark.sql.functions import count  # noqa: PLC0415 - the same

        groups = bench.spark.sql("SELECT item, max(k) AS top FROM plain GROUP BY item")
        groups = groups.observe(Observation(), count("*").alias("rows"))
        beside = groups.localCheckpoint() if is_kept else groups
        facts = bench.spark.table("facts").join(bench.spark.sql(DIM).select("k"), "k")
        return facts.join(beside, "item").select("id")

    return query


def slow_keys(bench: Bench) -> DataFrame:
    """The keys of group 2, from a function that takes longer than the case waits."""

    def late(batches: Iterator[Any]) -> Iterator[Any]:
        time.sleep(0.5)
        yield from batches

    return bench.spark.sql(DIM).select("k").mapInArrow(late, "k int")


def kept_join(bench: Bench) -> DataFrame:
    """The join of the facts, which are in no cache, with its result in one."""
    while bench.cached:
        bench.cached.pop().unpersist(blocking=True)
    bench.cached.append(bench.spark.sql(JOIN).cache())
    return bench.cached[-1]


def facts_of(keys: Callable[[Bench], DataFrame]) -> Callable[[Bench], DataFrame]:
    return lambda bench: bench.spark.table("facts").join(keys(bench), "k").select("id")


def shops(bench: Bench) -> None:
    """Orders of eight shops, each in four files by their numbers."""
    columns = ("cast(id DIV 100 AS int) AS shop", "cast(id % 100 AS int) AS number", "id")
    bench.stored("orders", bench.spark.range(0, 800, 1, 32).selectExpr(*columns), "parquet")


def of_python(name: str, *, is_pure: bool) -> Callable[[Bench], None]:
    """Registers a function of Python, which ends with the test."""

    def register(bench: Bench) -> None:
        from pyspark.sql.functions import udf  # noqa: PLC0415 - tests without Spark load none

        function = udf(lambda value: value in {2, 41}, "boolean")
        bench.spark.udf.register(name, function if is_pure else function.asNondeterministic())

    return register


# ------------------------------------------------------------------------------ the cases

SOME = "(SELECT * FROM dims WHERE grp = 2 AND rand() + k >= 0)"
RISKED = OPTIONS.with_limits(
    costs=replace(NO_FIXED_COSTS, build_job=4e3, driver_build=4e3), risked_seconds=0.0, risked_share=0.0
)
# The last condition leaves no text but numbers, which Spark tests beside a copy of a filter.
SPARED = f"{DIM} d ON f.k = d.k WHERE t.j IS NOT NULL"
COSTLY = OPTIONS.with_limits(costs=replace(NO_FIXED_COSTS, build_job=1e5, driver_build=1e5))
# Small results of jobs are refused by the driver; the keys themselves would be few.
LISTED = "SELECT cast(id * 5 AS int) AS k FROM range(32)"
SHARES = f"""SELECT t.k, share FROM (
    SELECT k, %s AS share FROM (SELECT k, 1D AS cost, 0D AS units FROM plain UNION ALL SELECT k, 0D, 1D FROM facts)
    GROUP BY k
) t JOIN {DIM} d ON t.k = d.k"""
BOTH = {**ONE, "plain": f"1 of {FILES} files"}
CODES = "SELECT e.id FROM events e JOIN (SELECT lpad(string(k), 3, '0') AS c FROM dims WHERE grp = 2)"
FEWER = "FROM texts t JOIN (SELECT k FROM dims WHERE grp < 7) g ON t.k = g.k"
OTHERS = JOIN.replace("grp = 2", "grp = 2 AND k <> 41")
WEIGHTS = "SELECT f.id FROM facts f JOIN (SELECT * FROM keys WHERE kind IN ('nan', 'one')) d ON f.weight = d.x"
COLLATED = "SELECT f.text FROM kinds f JOIN (SELECT * FROM kinds WHERE k IN (41, 42)) d ON f.%s = d.%s"
MONTHS = "SELECT f.id FROM {} f JOIN (SELECT * FROM dims WHERE id = 2) d ON month(to_date(f.at)) = d.k"

CASES = (
    # -------------------------------------------------------------------------- options and confs
    Case(
        ReasonCode.SWITCHED_OFF,
        "the query",
        Query(JOIN, replace(OPTIONS, enabled=False)),
        Query(JOIN, replace(OPTIONS, enabled=True)),
        ONE,
    ),
    Case(
        ReasonCode.SWITCHED_OFF,
        "the query",
        Query(JOIN, None, {"spark.pruning.enabled": "false", "spark.pruning.always": "true"}),
        Query(JOIN, None, {"spark.pruning.enabled": "true", "spark.pruning.always": "true"}),
        ONE,
        name="conf",
    ),
    Case(
        ReasonCode.INVALID_OPTION,
        "the query",
        Query(JOIN, None, {"spark.pruning.limits.max_ranges": "lots", "spark.pruning.always": "true"}),
        Query(JOIN, None, {"spark.pruning.always": "true"}),
        ONE,
    ),
    Case(
        ReasonCode.SKIPPING_DISABLED,
        "facts",
        Query(JOIN, confs={"spark.databricks.delta.stats.skipping": "false"}),
        Query(JOIN),
        ONE,
    ),
    Case(
        ReasonCode.NOT_VECTORISED,
        "k",
        Query(JOIN, confs={"spark.sql.parquet.enableVectorizedReader": "false"}),
        Query(JOIN),
        ONE,
        before={"facts": "8 of 8 files"},
    ),
    Case(ReasonCode.NOT_WORTH, "the query", Query(JOIN, PruningOptions()), Query(JOIN, ALWAYS), ONE, name="small"),
    Case(ReasonCode.NOT_WORTH, "k", Query(JOIN, COSTLY), Query(JOIN, replace(COSTLY, always=True)), ONE),
    Case(ReasonCode.RISKY, "k", Query(JOIN, RISKED), Query(JOIN, replace(RISKED, always=True)), ONE),
    # -------------------------------------------------------------------------- storage
    Case(
        ReasonCode.NOT_FILES,
        "k",
        Query(JOIN.replace("facts", "rows"), PLANNED_SCANS),
        None,
        {"rows": f"1 of {FILES} files"},
        lambda bench: bench.stored("rows", fact_rows(bench.spark)),
        lambda bench: bench.stored("rows", fact_rows(bench.spark), "orc"),
    ),
    Case(
        ReasonCode.NO_STATISTICS,
        "at",
        Query(
            "SELECT a FROM unseen f JOIN (SELECT timestamp_seconds(k * 3600) AS at FROM dims WHERE grp = 2) USING (at)"
        ),
        None,
        {"unseen": f"1 of {FILES} files"},
        with_statistics,
        without_statistics,
    ),
    Case(
        ReasonCode.INT96,
        "at",
        Query(
            "SELECT id FROM times f JOIN (SELECT timestamp_seconds(k * 3600) AS at FROM dims WHERE grp = 2) USING (at)"
        ),
        None,
        {"times": f"1 of {FILES} files"},
        lambda bench: times_stored_as(bench, "TIMESTAMP_MICROS"),
        lambda bench: times_stored_as(bench, "INT96"),
    ),
    Case(
        ReasonCode.STALE_NAMES,
        "stale",
        Query("SELECT f.* FROM stale f JOIN (SELECT * FROM ids WHERE chosen) USING (id)", ALWAYS),
        None,
        {"stale_again": "1 of 2 files"},
        lambda bench: bench.view(
            "stale",
            bench.stored("stale_again", bench.spark.table("stale").repartitionByRange(2, "id")),
        ),
        stale_names,
        before={"stale": "2 of 2 files"},
    ),
    Case(
        ReasonCode.WRONG_METADATA,
        "k",
        Query(
            "SELECT f.* FROM texts f JOIN VALUES ('dddd', 1), ('x', 2) AS d(k, n) ON f.k = d.k WHERE n = 1",
            ALWAYS,
        ),
        None,
        {"again": "1 of 4 files"},
        lambda bench: bench.view(
            "texts", bench.stored("again", bench.spark.table("texts").repartitionByRange(4, "k"), "parquet")
        ),
        wrong_metadata,
        before={"texts": "1 of 4 files"},
    ),
    Case(
        ReasonCode.STATISTICS_FAILED,
        "",
        Query(JOIN.replace("facts", "broken"), confs={"spark.sql.files.ignoreCorruptFiles": "true"}),
        Query(JOIN.replace("facts", "broken")),
        {"broken": f"1 of {FILES} files"},
        repaired,
        broken,
        before={"broken": f"2 of {FILES} files"},
    ),
    Case(
        ReasonCode.UNCLUSTERED,
        "spread",
        Query(f"SELECT f.id FROM events f JOIN {DIM} d ON f.spread = d.k"),
        None,
        {"events": "1 of 5 files"},
        clustered,
        shuffled,
        before={"events": f"{FILES} of {FILES} files"},
    ),
    Case(
        ReasonCode.TOO_FEW_FIRST_ROWS,
        "id",
        Query("SELECT id FROM facts WHERE item < 10 ORDER BY id LIMIT 5"),
        Query("SELECT id FROM facts ORDER BY id LIMIT 5"),
        ONE,
        name="conditions",
    ),
    Case(
        ReasonCode.NO_STATISTICS,
        "at",
        Query("SELECT a FROM unseen ORDER BY at LIMIT 5"),
        None,
        {"unseen": f"1 of {FILES} files"},
        with_statistics,
        without_statistics,
        name="first rows",
    ),
    Case(
        ReasonCode.NO_READER_FILTER,
        "local",
        Read("kinds", "SELECT cast(timestamp_seconds(k * 3600) AS timestamp_ntz) AS local FROM dims WHERE grp = 2"),
        Read("kinds", "SELECT timestamp_seconds(k * 3600) AS at FROM dims WHERE grp = 2"),
        {"kinds": f"1 of {FILES} files"},
        setup=kinds,
        before={"kinds": f"1 of {FILES} files"},
    ),
    Case(
        ReasonCode.COLLATED,
        "folded",
        Query(COLLATED % ("folded", "folded")),
        Query(COLLATED % ("code", "code")),
        {"kinds#1": f"1 of {FILES} files"},
        setup=kinds,
    ),
    Case(
        ReasonCode.COLLATED,
        "folded",
        Read("kinds", "SELECT folded FROM kinds WHERE k IN (41, 42)"),
        Read("kinds", "SELECT code FROM kinds WHERE k IN (41, 42)"),
        {"kinds": f"1 of {FILES} files"},
        setup=kinds,
        before={"kinds": f"{FILES} of {FILES} files"},
        name="read",
    ),
    Case(
        ReasonCode.CHAR_PADDED,
        "code",
        Query("SELECT f.id FROM chars f JOIN codes d ON f.code = rpad(d.code, 6, ' ')"),
        Query("SELECT f.id FROM chars f JOIN codes d ON f.code = d.code"),
        {"chars": f"1 of {FILES} files"},
        as_string,
        chars,
    ),
    Case(
        ReasonCode.UNSUPPORTED_TYPE,
        "list",
        Query("SELECT f.text FROM kinds f JOIN (SELECT array(k) AS list FROM dims WHERE k IN (41, 42)) USING (list)"),
        Query("SELECT f.text FROM kinds f JOIN (SELECT k FROM dims WHERE k IN (41, 42)) d ON f.k = d.k"),
        {"kinds": f"1 of {FILES} files"},
        setup=kinds,
    ),
    Case(
        ReasonCode.INEXACT_CAST,
        "wide",
        Read("kinds", "SELECT cast(k AS decimal(38, 10)) AS wide FROM dims WHERE grp = 2"),
        Read("kinds", "SELECT cast(k AS decimal(38, 0)) AS wide FROM dims WHERE grp = 2"),
        {"kinds": f"1 of {FILES} files"},
        setup=kinds,
        before={"kinds": f"{FILES} of {FILES} files"},
    ),
    # -------------------------------------------------------------------------- keys
    Case(
        ReasonCode.COMPUTED,
        # Spark keeps a cast of `to_date`.
        "month(CAST(at AS date))",
        Query(MONTHS.format("events")),
        Query(MONTHS.format("events").replace("month(to_date(f.at))", "f.month")),
        {"events": f"2 of {FILES} files"},
        setup=lambda bench: bench.stored(
            "events",
            events(bench.spark, "timestamp_seconds(1704067200 + id * 18000) AS at").selectExpr(
                "*", "month(to_date(at)) AS month"
            ),
        ),
        name="stored column",
    ),
    Case(
        ReasonCode.COMPUTED,
        "s.k % 1000",
        Query(f"SELECT e.id FROM events e JOIN {DIM} d ON e.s.k % 1000 = d.k"),
        Query(f"SELECT e.id FROM events e JOIN {DIM} d ON e.s.k = d.k"),
        {"events": f"1 of {FILES} files"},
        setup=lambda bench: bench.stored("events", events(bench.spark, "named_struct('k', cast(id AS int)) AS s")),
        name="field",
    ),
    Case(
        ReasonCode.COMPUTED,
        "rtrim(lpad(code, 3, '0'))",
        Query(f"{CODES} ON rtrim(lpad(code, 3, '0')) = c"),
        Query(f"{CODES} ON left(three, 3) = c"),
        {"events": f"1 of {FILES} files"},
        setup=lambda bench: bench.stored(
            "events", events(bench.spark, "string(id) AS code", "lpad(string(id), 3, '0') AS three")
        ),
        name="listed function",
    ),
    Case(
        ReasonCode.COMPUTED,
        "abs(id)",
        Query("SELECT id, k FROM facts ORDER BY abs(id) LIMIT 5"),
        Query("SELECT id, k FROM facts ORDER BY id LIMIT 5"),
        ONE,
        name="order",
    ),
    Case(
        ReasonCode.CONSTANT_KEY,
        "coalesce(maybe, 41)",
        Query(JOIN.replace("f.k =", "coalesce(f.maybe, 41) =")),
        Query(OTHERS.replace("f.k =", "coalesce(f.maybe, 41) =")),
        ONE,
        is_same=False,
    ),
    Case(
        ReasonCode.CONSTANT_KEY,
        "CASE WHEN item > 3 THEN k ELSE 41 END",
        Query(f"SELECT f.id FROM facts f JOIN {DIM} d ON CASE WHEN f.item > 3 THEN f.k ELSE 41 END = d.k"),
        Query(OTHERS.replace("f.k =", "CASE WHEN f.item > 3 THEN f.k ELSE 41 END =")),
        ONE,
        is_same=False,
        name="case",
    ),
    Case(
        ReasonCode.NAN_KEYS,
        "weight",
        Query(WEIGHTS),
        Query(f"{WEIGHTS} WHERE NOT isnan(d.x)"),
        ONE,
        before={"facts": f"{FILES} of {FILES} files"},
        is_same=False,
    ),
    Case(
        ReasonCode.NULL_SAFE,
        "k",
        Query("SELECT f.id FROM facts f JOIN (SELECT * FROM keys WHERE kind = 'both') d ON f.k <=> d.k"),
        Query(
            "SELECT f.id FROM facts f JOIN (SELECT * FROM keys WHERE kind = 'both' AND k IS NOT NULL) d ON f.k <=> d.k"
        ),
        ONE,
        name="no NULL",
    ),
    Case(
        ReasonCode.NULL_SAFE,
        "k",
        Query("SELECT f.id FROM facts f JOIN (SELECT * FROM keys WHERE kind = 'both') d ON f.k <=> d.k"),
        Query("SELECT f.id FROM facts f JOIN (SELECT * FROM keys WHERE kind = 'both') d ON f.k = d.k"),
        ONE,
        name="equals",
    ),
    Case(
        ReasonCode.NULL_AWARE,
        "maybe",
        Query("SELECT k FROM dims WHERE grp = 2 AND k NOT IN (SELECT maybe FROM facts WHERE item > 1)"),
        Query(
            "SELECT k FROM dims d WHERE grp = 2 AND NOT EXISTS (SELECT 1 FROM facts f WHERE item > 1 AND f.maybe = d.k)"
        ),
        ONE,
        is_same=False,
        name="NOT EXISTS",
    ),
    Case(
        ReasonCode.NULL_AWARE,
        "maybe",
        Query("SELECT k FROM dims WHERE grp = 2 AND k NOT IN (SELECT maybe FROM facts WHERE item > 1)"),
        Query(
            """SELECT k FROM dims WHERE grp = 2
               AND k NOT IN (SELECT maybe FROM facts WHERE item > 1 AND maybe IS NOT NULL)"""
        ),
        ONE,
        is_same=False,
        name="IS NOT NULL",
    ),
    Case(
        ReasonCode.COLUMNS_APART,
        "shop, number",
        Read("orders", "SELECT * FROM VALUES (1BD, 5BD), (3BD, 95BD) AS (shop, number)"),
        Read("orders", "SELECT * FROM VALUES (1, 5), (3, 95) AS (shop, number)"),
        {"orders": "2 of 32 files"},
        setup=shops,
        before={"orders": "4 of 32 files"},
    ),
    Case(
        ReasonCode.NO_ROW_GROUPS_READ,
        "",
        Read("plain", "SELECT k FROM dims WHERE grp = 2", PruningOptions().with_limits(max_footers=3)),
        Read("plain", "SELECT k FROM dims WHERE grp = 2", PruningOptions().with_limits(max_footers=FILES)),
        {"plain": f"1 of {FILES} files"},
        before={"plain": f"{FILES} of {FILES} files"},
    ),
    Case(
        ReasonCode.KEYS_OVER_LIMIT,
        "k",
        Read("facts", "SELECT k FROM dims WHERE k IN (1, 41, 141)", ALWAYS.with_limits(max_build_keys=2)),
        Read("facts", "SELECT k FROM dims WHERE k IN (1, 41, 141)", ALWAYS.with_limits(max_build_keys=3)),
        {"facts": f"3 of {FILES} files"},
        before={"facts": f"3 of {FILES} files"},
    ),
    Case(
        ReasonCode.BLOOM_TOO_FULL,
        "k",
        Read("facts", LISTED, ALWAYS.with_limits(max_build_keys=1)),
        Read("facts", LISTED, ALWAYS.with_limits(max_build_keys=32)),
        {"facts": f"{FILES} of {FILES} files"},
        before={"facts": f"{FILES} of {FILES} files"},
    ),
    Case(
        ReasonCode.UNPINNED_KEYS,
        "k",
        Read("facts", "SELECT k FROM dims WHERE grp = 2"),
        Read("facts", lambda bench: bench.cache(bench.spark.sql("SELECT k FROM dims WHERE grp = 2"))),
        ONE,
        before=ONE,
    ),
    # -------------------------------------------------------------------------- builds
    Case(
        ReasonCode.UNSELECTIVE_BUILD,
        "k",
        Query("SELECT f.id FROM facts f JOIN dims d ON f.k = d.k"),
        Query(JOIN),
        ONE,
        is_same=False,
    ),
    Case(
        ReasonCode.BUILD_TIMED_OUT,
        "k",
        Query(facts_of(slow_keys), replace(OPTIONS, build_timeout_seconds=0.1)),
        Query(facts_of(slow_keys), replace(OPTIONS, build_timeout_seconds=60.0)),
        ONE,
        name="longer",
    ),
    Case(
        ReasonCode.BUILD_TIMED_OUT,
        "k",
        Query(facts_of(slow_keys), replace(OPTIONS, build_timeout_seconds=0.1)),
        Query(facts_of(lambda bench: bench.spark.table("kept")), replace(OPTIONS, build_timeout_seconds=60.0)),
        ONE,
        lambda bench: bench.view("kept", bench.cache(slow_keys(bench))),
        name="cached",
    ),
    Case(
        ReasonCode.UNREPEATABLE_KEYS,
        "k",
        Query(JOIN.replace(DIM, "some"), BY_ROWS),
        None,
        ONE,
        lambda bench: bench.view("some", bench.spark.sql(SOME).localCheckpoint()),
        lambda bench: bench.view("some", bench.spark.sql(SOME)),
    ),
    Case(
        ReasonCode.UNREPEATABLE_KEYS,
        "k",
        Query(f"{JOIN.replace(DIM, 'some')} UNION ALL {JOIN.replace(DIM, 'some').replace('facts', 'plain')}"),
        None,
        BOTH,
        lambda bench: bench.view("some", bench.spark.sql(SOME).localCheckpoint()),
        lambda bench: bench.view("some", bench.cache(bench.spark.sql(SOME))),
        name="cached",
    ),
    Case(
        ReasonCode.UNREPEATABLE_KEYS,
        "k",
        Read("facts", "SELECT k FROM dims WHERE grp = 2 AND rand() + k >= 0"),
        Read(
            "facts",
            lambda bench: bench.spark.sql("SELECT k FROM dims WHERE grp = 2 AND rand() + k >= 0").localCheckpoint(),
        ),
        ONE,
        before={"facts": f"{FILES} of {FILES} files"},
        name="read",
    ),
    Case(ReasonCode.EFFECT_BESIDE, "k", Query(observed(is_kept=False)), Query(observed(is_kept=True)), ONE),
    # -------------------------------------------------------------------------- operators
    Case(
        ReasonCode.LIMITED,
        "GlobalLimit",
        Query(f"SELECT f.id FROM (SELECT * FROM facts ORDER BY id LIMIT 1000) f JOIN {DIM} d ON f.k = d.k"),
        Query(f"{JOIN} ORDER BY id LIMIT 1000"),
        ONE,
    ),
    Case(
        ReasonCode.SAMPLED,
        "Sample",
        Query(f"SELECT f.id FROM (SELECT * FROM facts TABLESAMPLE (100 PERCENT)) f JOIN {DIM} d ON f.k = d.k"),
        Query(f"SELECT * FROM ({JOIN}) TABLESAMPLE (100 PERCENT)"),
        ONE,
    ),
    Case(
        ReasonCode.GROUPING_SETS,
        "Expand",
        Query(f"""SELECT f.k, f.item, n FROM (SELECT k, item, count(*) AS n FROM facts GROUP BY ROLLUP (k, item)) f
                  JOIN {DIM} d ON f.k = d.k"""),
        Query(f"""SELECT k, item, count(*) AS n FROM (SELECT f.* FROM facts f JOIN {DIM} d ON f.k = d.k)
                  GROUP BY ROLLUP (k, item) HAVING grouping(k) = 0"""),
        ONE,
    ),
    Case(
        ReasonCode.NOT_GROUPED,
        "Window",
        Query(f"""SELECT f.id, n FROM (SELECT *, count(*) OVER (PARTITION BY item) AS n FROM facts) f
                  JOIN {DIM} d ON f.k = d.k"""),
        Query(f"""SELECT f.id, n FROM (SELECT *, count(*) OVER (PARTITION BY item, k) AS n FROM facts) f
                  JOIN {DIM} d ON f.k = d.k"""),
        ONE,
        is_same=False,
    ),
    Case(
        ReasonCode.NOT_GROUPED,
        "Aggregate",
        Query(
            f"SELECT f.k, f.item FROM (SELECT item, max(k) AS k FROM facts GROUP BY item) f JOIN {DIM} d ON f.k = d.k"
        ),
        Query(f"SELECT f.k, f.item FROM (SELECT item, k FROM facts GROUP BY item, k) f JOIN {DIM} d ON f.k = d.k"),
        ONE,
        is_same=False,
        name="aggregate",
    ),
    Case(
        ReasonCode.NONDETERMINISTIC,
        "Project",
        Query(f"SELECT f.id, r >= 0 FROM (SELECT *, rand() AS r FROM facts) f JOIN {DIM} d ON f.k = d.k"),
        Query(f"SELECT f.id, rand() >= 0 FROM facts f JOIN {DIM} d ON f.k = d.k"),
        ONE,
    ),
    Case(
        ReasonCode.OPAQUE,
        "MapInArrow",
        Query(
            lambda bench: (
                bench.spark.table("facts")
                .select("k", "id")
                .mapInArrow(same, "k int, id long")
                .join(bench.spark.sql(DIM).select("k"), "k")
            )
        ),
        Query(
            lambda bench: bench.spark.sql(f"SELECT f.k, f.id FROM facts f JOIN {DIM} d ON f.k = d.k").mapInArrow(
                same, "k int, id long"
            )
        ),
        ONE,
        name="map",
    ),
    Case(
        ReasonCode.OPAQUE,
        "ArrowEvalPython",
        Query(f"{JOIN} WHERE is_two(f.k)"),
        Query(f"{JOIN} WHERE is_two(f.k)"),
        ONE,
        of_python("is_two", is_pure=False),
        of_python("is_two", is_pure=True),
        name="function",
    ),
    Case(
        ReasonCode.CACHED,
        "InMemoryRelation",
        Query(JOIN.replace("facts", "kept")),
        Query(kept_join),
        ONE,
        setup=lambda bench: bench.cache(bench.view("kept", bench.spark.table("plain").where("k >= 0"))),
    ),
    Case(
        ReasonCode.MAY_RAISE,
        "k",
        Query(f"SELECT f.id FROM facts f JOIN texts t ON f.k = CAST(t.s AS INT) JOIN {SPARED}"),
        Query(f"SELECT f.id FROM facts f JOIN texts t ON f.k = try_cast(t.s AS INT) JOIN {SPARED}"),
        ONE,
        setup=lambda bench: bench.stored(
            "texts", bench.spark.range(0, 160, 1, 1).selectExpr("string(id) AS s", "id AS j")
        ),
        name="try_cast",
    ),
    Case(
        ReasonCode.MAY_RAISE,
        "Union",
        Query(SHARES % "sum(cost) / sum(units)"),
        Query(SHARES % "sum(cost) / nullif(sum(units), 0)"),
        BOTH,
        name="nullif",
    ),
    Case(
        ReasonCode.MAY_RAISE,
        "Union",
        Query(SHARES % "sum(cost) / sum(units)"),
        Query(SHARES % "try_divide(sum(cost), sum(units))"),
        BOTH,
        name="try_divide",
    ),
    Case(
        ReasonCode.MAY_MOVE,
        "k",
        Query(f"{JOIN} WHERE f.k IN (SELECT CAST(t.s AS INT) {FEWER})"),
        Query(f"{JOIN} WHERE f.k IN (SELECT try_cast(t.s AS INT) {FEWER})"),
        ONE,
        setup=lambda bench: bench.stored(
            "texts", bench.spark.range(0, 160, 1, 1).selectExpr("int(id) AS k", "string(id) AS s")
        ),
    ),
)


def same(batches: Iterator[Any]) -> Iterator[Any]:
    """The rows as they come."""
    return batches


@pytest.fixture
def bench(spark, tables, tmp_path) -> Iterator[Bench]:  # noqa: ARG001 - the views of the tables
    made = Bench(spark, tmp_path)
    yield made
    made.end()


@pytest.mark.quick(6)
@pytest.mark.parametrize("case", CASES, ids=[each.id for each in CASES])
def test_the_remedy_of_a_reason_helps(bench, case):
    if case.setup is not None:
        case.setup(bench)
    refused = case.asked.ask(bench)
    said = f"{case.subject}: {case.reason.value}"
    assert [each for each in refused.lines if said in each], refused.lines
    remedy = Reason(case.reason, "").remedy
    assert f"{case.reason.value}: {remedy}" in refused.text or remedy in refused.report.verdict
    assert [] == [each for each in refused.lines if INTERNAL.search(each)]
    assert case.before == {name: each for name, each in refused.reads.items() if name in {*case.reads, *case.before}}
    if case.remedy is not None:
        case.remedy(bench)
    pruned = (case.after or case.asked).ask(bench)
    assert case.reads == {name: each for name, each in pruned.reads.items() if name in case.reads}, pruned.lines
    assert [] == [each for each in pruned.lines if said in each]
    assert (refused.rows == pruned.rows) is case.is_same


# ------------------------------------------------------------------------------ other doors, and builds that fail


def divided(divisor: str) -> Callable[[Bench], DataFrame]:
    """The keys of group 2, with a condition that divides by zero, or does not."""
    return lambda bench: bench.spark.sql(f"SELECT k FROM dims WHERE grp = 2 AND 100 / {divisor} IS DISTINCT FROM 7")


def mapped(*, fails: bool) -> Callable[[Bench], DataFrame]:
    """The keys of group 2, from a function of Python that fails, or does not."""

    def function(batches: Iterator[Any]) -> Iterator[Any]:
        if fails:
            msg = "no number"
            raise ValueError(msg)
        return batches

    return lambda bench: bench.spark.sql(DIM).select("k").mapInArrow(function, "k int")


@pytest.mark.parametrize(
    ("code", "fails", "mended", "error"),
    [
        (ReasonCode.BUILD_RAISED, divided("(k - 41)"), divided("nullif(k - 41, 0)"), "DIVIDE_BY_ZERO"),
        (ReasonCode.BUILD_FAILED, mapped(fails=True), mapped(fails=False), "no number"),
    ],
    ids=["BUILD_RAISED", "BUILD_FAILED"],
)
def test_the_small_side_by_itself_shows_the_error_of_a_build(bench, code, fails, mended, error):
    enable(bench.spark, options=OPTIONS)
    try:
        with pytest.raises(Exception, match=error):
            facts_of(fails)(bench).collect()
        told = records(bench)[0].explanation()
    finally:
        disable(bench.spark)
    assert code in {each.code for each in told.reasons}
    assert f"{code.value}: run the small side by itself to see its error" in " ".join(str(told).split())
    with pytest.raises(Exception, match=error):
        fails(bench).collect()
    answer = Query(facts_of(mended)).ask(bench)
    assert ONE == answer.reads
    assert code not in {each.code for each in answer.explanation.reasons}


def records(bench: Bench) -> list[Any]:
    """The records of the latest queries of a session that prunes, the newest first."""
    from connectors.session import session_pruning  # noqa: PLC0415 - tests without Spark load none

    return [*session_pruning.records(bench.spark)]


def test_a_cancelled_query_runs_again(bench):
    context, has_ended = bench.spark.sparkContext, threading.Event()
    endless = "AND NOT exists(sequence(k, 500), x -> exists(sequence(k, 500), y -> x + y < k))"
    options = OPTIONS.with_limits(driver_scan_files=0)

    def cancel() -> None:
        while not has_ended.wait(0.05):
            if any(each.name.startswith("build of") for each in threading.enumerate()):
                context.cancelJobGroup("mine")

    other = threading.Thread(target=cancel, daemon=True)
    enable(bench.spark, options=options)
    try:
        context.setJobGroup("mine", "a query")
        other.start()
        with pytest.raises(Exception, match="cancelled job group mine"):
            bench.spark.sql(JOIN.replace("grp = 2", f"grp = 2 {endless}")).collect()
        told = records(bench)[0].explanation()
    finally:
        has_ended.set()
        other.join()
        disable(bench.spark)
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    assert ReasonCode.BUILD_CANCELLED in {each.code for each in told.reasons}
    assert f"{ReasonCode.BUILD_CANCELLED.value}: run the query again" in " ".join(str(told).split())
    assert ONE == Query(JOIN, options).ask(bench).reads


def test_a_larger_result_for_the_driver_lets_a_build_give_its_rows(bench):
    texts = "(SELECT DISTINCT k, sha2(string(k), 512) AS text FROM dims WHERE grp = 2 OR k < 0)"
    question = Query(
        f"SELECT /*+ MERGE(d) */ max(text) FROM facts f JOIN {texts} d ON f.k = d.k",
        OPTIONS.with_limits(driver_scan_files=0),
    )
    settings = bench.spark.sparkContext._jsc.sc().conf()
    before = settings.get("spark.driver.maxResultSize", None)
    settings.set("spark.driver.maxResultSize", "1000b")
    try:
        refused = question.ask(bench)
    finally:
        # Else sessions that begin later have a conf that the shared one has not.
        if before is None:
            settings.remove("spark.driver.maxResultSize")
        else:
            settings.set("spark.driver.maxResultSize", before)
    code = ReasonCode.RESULT_TOO_LARGE
    assert code in {each.code for each in refused.explanation.reasons}
    assert f"{code.value}: {Reason(code, '').remedy}" in refused.text
    pruned = question.ask(bench)
    assert ONE == pruned.reads
    assert code not in {each.code for each in pruned.explanation.reasons}
    assert refused.rows == pruned.rows


@pytest.fixture
def arriving(bench) -> DataFrame:
    """A stream of a file with the keys 41 and 42."""
    path = str(bench.folder / "arriving")
    bench.spark.range(41, 43).selectExpr("cast(id AS int) AS k", "id AS arrived").write.format("delta").save(path)
    return bench.spark.readStream.format("delta").load(path)


def streamed(bench: Bench, name: str, df: DataFrame, mode: str = "append", each: Any = None) -> Rows:
    """The rows that a stream has written."""
    path, writer = str(bench.folder / name), df.writeStream.trigger(availableNow=True).outputMode(mode)
    writer = writer.option("checkpointLocation", str(bench.folder / "checkpoints" / name))
    started = writer.format("delta").start(path) if each is None else writer.foreachBatch(partial(each, path)).start()
    started.awaitTermination()
    return Rows(bench.spark.read.format("delta").load(path).collect())


def told_since(bench: Bench, before: list[Any]) -> list[PruneReport]:
    """The reports of a session since it had these records, the oldest first."""
    new = [each for each in records(bench) if not any(each is known for known in before)]
    return [each.report() for each in reversed(new)]


def stream_reads(told: list[PruneReport]) -> list[str]:
    """The files of the facts that pruned scans have read, of all."""
    tables = [each.planned for one in told for each in one.tables if each.planned.table == "facts"]
    return [f"{each.files_kept} of {each.files_total}" for each in tables]


def join_batch(path: str, batch: DataFrame, _: int) -> None:
    rows = batch.join(batch.sparkSession.table("facts"), "k").select("id")
    rows.write.format("delta").mode("append").save(path)


def prune_batch(path: str, batch: DataFrame, _: int) -> None:
    result = prune(batch.join(batch.sparkSession.table("facts"), "k").select("id"), options=OPTIONS)
    result.write.format("delta").mode("append").save(path)
    assert ["1 of 8"] == [f"{each.planned.files_kept} of {each.planned.files_total}" for each in report(result).tables]


def test_streams_are_pruned_batch_by_batch(bench, arriving):
    joined = arriving.join(bench.spark.table("facts"), "k").select("id")
    told = explain(prune(joined, options=OPTIONS))
    (reason,) = told.reasons
    assert ReasonCode.STREAMING is reason.code
    assert told.verdict.endswith("enable(spark) before the stream starts, or prune the batch inside of foreachBatch")
    stock = streamed(bench, "stock", joined)
    assert stock == streamed(bench, "pruned", arriving, each=prune_batch)
    before = records(bench)
    enable(bench.spark, options=OPTIONS)
    try:
        assert stock == streamed(bench, "enabled", joined)
        assert ["1 of 8"] == stream_reads(told_since(bench, before))
    finally:
        disable(bench.spark)


def test_the_join_of_a_stream_with_state_has_a_stream_of_its_own(bench, arriving):
    def counted(df: DataFrame) -> DataFrame:
        return df.groupBy("id").count()

    joined = arriving.join(bench.spark.table("facts"), "k").select("id")
    stock, before = streamed(bench, "stock", counted(joined), "complete"), records(bench)
    enable(bench.spark, options=OPTIONS)
    try:
        assert stock == streamed(bench, "refused", counted(joined), "complete")
        (refused,) = told_since(bench, before)
        assert ReasonCode.STATEFUL.value in refused.verdict
        assert refused.verdict.endswith(Reason(ReasonCode.STATEFUL, "").remedy)
        streamed(bench, "own", joined)
        own = bench.spark.readStream.format("delta").load(str(bench.folder / "own"))
        assert stock == streamed(bench, "of_own", counted(own), "complete")
        assert ["1 of 8"] == stream_reads(told_since(bench, before))
        streamed(bench, "batches", arriving, each=join_batch)
        batches = bench.spark.read.format("delta").load(str(bench.folder / "batches"))
        assert stock == Rows(counted(batches).collect())
        assert ["1 of 8"] * 2 == stream_reads(told_since(bench, before))
    finally:
        disable(bench.spark)


# ------------------------------------------------------------------------------ every reason

# The reasons of the tests above.
DOORS = frozenset(
    {
        ReasonCode.BUILD_CANCELLED,
        ReasonCode.BUILD_FAILED,
        ReasonCode.BUILD_RAISED,
        ReasonCode.RESULT_TOO_LARGE,
        ReasonCode.STATEFUL,
        ReasonCode.STREAMING,
    }
)
# Their remedies are tested elsewhere, or cannot be done here.
ELSEWHERE: Mapping[ReasonCode, str] = {
    ReasonCode.NO_JVM: "needs a server of Spark Connect: tests/queries/test_connect.py does what the remedy says",
    ReasonCode.PRUNING_FAILED: "an error of scanprune, after which only a new version helps",
    ReasonCode.UNKNOWN_VERSION: "needs another Spark: tests/connectors/spark/test_versions.py has its text",
}


@pytest.mark.parametrize("code", ReasonCode)
def test_each_reason_with_a_remedy_has_a_case(code):
    cases = {each.reason for each in CASES}
    assert not cases & DOORS
    assert not ELSEWHERE.keys() & (cases | DOORS)
    has_remedy = not Reason(code, "").remedy.startswith(("nothing:", "nothing "))
    assert has_remedy is (code in cases | DOORS | ELSEWHERE.keys()) or Reason(code, "").remedy.startswith("nothing, or")
