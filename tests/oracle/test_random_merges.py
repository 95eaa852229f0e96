"""Seeded random MERGE statements: pruned == stock Spark on a copy == DuckDB, by rows, metrics and changes.

Each statement reads of its target no more files than those whose bounds have room for a key of the source, which are
computed from the rows alone, and no fewer than those that hold a match. Where it reads them all, the reason says why.

`SCANPRUNE_SEEDS=100-199 SCANPRUNE_MERGES=50 pytest tests/oracle/test_random_merges.py` runs more and others;
`SCANPRUNE_SEEDS=7 SCANPRUNE_MERGE=3` runs one statement of one seed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from connectors.session.session_pruning import records
from pruning import disable, enable
from pruning.results.table_explanation import TableExplanation
from sample_data.confs import conf
from sample_data.plain_duckdb import load
from sample_data.rows import Rows, by_value
from tests.costs import ALWAYS
from tests.oracle.draws import Draws
from tests.oracle.merge_files import expected_files, stored_files
from tests.oracle.random_merges import (
    CHECKPOINT,
    DUCKDB,
    FEED,
    ITSELF,
    LIST,
    SPARK,
    TRACKING,
    Merge,
    random_merge,
)
from tests.oracle.test_random_queries import without_zones
from tests.session.merging import latest_commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MERGES = int(os.environ.get("SCANPRUNE_MERGES", "8"))
_EVERY_SURE = 4
_VIEW = "merge_source"
_EVOLVES = "spark.databricks.delta.schema.autoMerge.enabled"


def seeds() -> range:
    """The seeds to run: the same in every run, unless `make fuzz` or a user sets others."""
    first, _, last = os.environ.get("SCANPRUNE_SEEDS", "1-20").partition("-")
    return range(int(first), int(last or first) + 1)


def numbers() -> Sequence[int]:
    """The statements of a seed that run."""
    one = os.environ.get("SCANPRUNE_MERGE", "")
    return [int(each) for each in one.split(",")] if one else range(MERGES)


@dataclass(slots=True)
class Outcome:
    """The target after a MERGE: rows, metrics of its commit, rows of its change feed, row ids, and the error."""

    rows: Rows
    counted: dict[str, str]
    changes: Rows | None
    ids: Rows | None
    error: str


@dataclass(slots=True)
class Searched:
    """The plans in which files of the target were left out, and the verdicts on all plans of the MERGE."""

    tables: list[TableExplanation]
    verdicts: list[str]


@dataclass(slots=True)
class Engines:
    """Spark, without pruning and with it, and DuckDB, each with a target of its own."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    folder: Path

    def check(self, merge: Merge) -> int:
        """The number of files that the pruned MERGE left out, after every comparison."""
        made = self._made(merge)
        stock, _ = self._run(merge, made, "stock")
        pruned, searched = self._run(merge, made, "pruned")
        assert stock.error == pruned.error
        assert stock.rows == pruned.rows, f"lost {stock.rows - pruned.rows!r}, invented {pruned.rows - stock.rows!r}"
        assert stock.counted == pruned.counted
        assert stock.changes == pruned.changes
        assert stock.ids == pruned.ids
        held = self._load(merge)
        if searched.tables or not stock.error:
            check_files(merge, searched, held)
        if not stock.error:
            found, answer = Rows(stock.rows, by_value), self._by_duck(merge)
            assert found == answer, f"the oracles differ: {found - answer!r}, DuckDB {answer - found!r}"
        return sum((each.files_total or 0) - (each.files_kept or 0) for each in searched.tables)

    def _made(self, merge: Merge) -> Path:
        made = self.folder / "made"
        self.spark.sql(merge.table(str(made)))
        # Slices of a list are as even as those of the target.
        rows = [merge.shape.row(row, is_source=False) for rows in merge.slices for row in rows]
        sliced = self.spark.sparkContext.parallelize(rows, len(merge.slices))
        frame = self.spark.createDataFrame(sliced, merge.shape.schema(is_source=False))
        frame.write.format("delta").mode("append").save(str(made))
        if thinning := merge.thinning(f"delta.`{made}`", SPARK):
            self.spark.sql(thinning)
        return made

    def _run(self, merge: Merge, made: Path, way: str) -> tuple[Outcome, Searched]:
        target = self.folder / way / "target"
        shutil.copytree(made, target)
        before = {id(each) for each in records(self.spark)}
        error = ""
        try:
            source = self._source(merge, target)
            if way == "pruned":
                enable(self.spark, options=ALWAYS)
            with conf(self.spark, {_EVOLVES: str(merge.shape.evolves == "conf").lower()}):
                self.spark.sql(merge.command(f"delta.`{target}`", source, SPARK))
        except Exception as failed:  # noqa: BLE001 - both have to fail alike
            error = f"{type(failed).__name__} {str(failed).split(' ')[0]}"
        finally:
            disable(self.spark)
        searched = self._searched(before)
        version, metrics = latest_commit(self.spark, str(target))
        rows = Rows(self.spark.read.format("delta").load(str(target)).collect())
        return Outcome(rows, metrics, self._changes(merge, target, version), self._ids(merge, target), error), searched

    def _searched(self, before: set[int]) -> Searched:
        new = [each for each in records(self.spark) if id(each) not in before]
        reports = [each.report() for each in new]
        tables = [table.planned for report in reports if not report.nothing for table in report.tables]
        # A number follows the name of a table that is read twice.
        tables = [each for each in tables if each.table.partition("#")[0] == "target"]
        return Searched(tables, [each.verdict for each in reports])

    def _changes(self, merge: Merge, target: Path, version: int) -> Rows | None:
        if FEED not in merge.features:
            return None
        feed = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version)
        return Rows(feed.load(str(target)).drop("_commit_timestamp").collect())

    def _ids(self, merge: Merge, target: Path) -> Rows | None:
        """The rows that the target had before, with their row ids; those of new rows depend on the order of tasks."""
        if TRACKING not in merge.features:
            return None
        rows = self.spark.read.format("delta").load(str(target)).select("*", "_metadata.row_id")
        return Rows(rows.where(f"row_id < {sum(map(len, merge.slices))}").collect())

    def _source(self, merge: Merge, target: Path) -> str:
        """The text that names the source in the statement."""
        if merge.kind == ITSELF:
            return merge.itself(f"delta.`{target}`", SPARK)
        frame = self._frame(merge)
        if merge.kind not in {LIST, CHECKPOINT}:
            stored = self.folder / "source"
            if not stored.exists():
                mapped = {"delta.columnMapping.mode": "name"}
                frame.coalesce(1).write.format("delta").options(**mapped).save(str(stored))
            return f"delta.`{stored}`"
        (frame.localCheckpoint() if merge.kind == CHECKPOINT else frame).createOrReplaceTempView(_VIEW)
        return _VIEW

    def _frame(self, merge: Merge) -> Any:
        rows = [merge.shape.row(row, is_source=True) for row in merge.source]
        return self.spark.createDataFrame(rows, merge.shape.schema(is_source=True))

    def _load(self, merge: Merge) -> int:
        """Loads target and source into DuckDB; returns the number of files that hold a match."""
        files = stored_files(merge)
        rows = [merge.shape.row(row, is_source=False) for file in files for row in file.live]
        numbers = [at for at, file in enumerate(files) for _ in file.live]
        stored = self.spark.createDataFrame(rows, merge.shape.schema(is_source=False)).toArrow()
        load(self.duck, "merged", without_zones(stored))
        load(self.duck, "arrived", without_zones(self._frame(merge).toArrow()))
        load(self.duck, "filed", without_zones(stored.append_column("the file", pa.array(numbers, pa.int32()))))
        held = merge.join("filed", self._duck_source(merge))
        return int(self.duck.execute(f'SELECT count(DISTINCT t."the file") FROM {held}').fetchone()[0])

    def _duck_source(self, merge: Merge) -> str:
        return merge.itself("merged", DUCKDB) if merge.kind == ITSELF else "arrived"

    def _by_duck(self, merge: Merge) -> Rows:
        """The rows that DuckDB leaves in the target."""
        words = merge.shape.words(DUCKDB)
        if merge.gains_a_column:
            self.duck.execute(f"ALTER TABLE merged ADD COLUMN {words['fresh']} INTEGER")
        self.duck.execute(merge.command("merged", self._duck_source(merge), DUCKDB))
        columns = [words[role] for role, _ in merge.shape.columns(is_source=False)]
        columns += [f"{words['a']} + 1"] if merge.shape.is_computed else []
        columns += [words["fresh"]] if merge.gains_a_column else []
        return Rows(map(_unpacked, self.duck.execute(f"SELECT {', '.join(columns)} FROM merged").fetchall()), by_value)


def _unpacked(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row of DuckDB with structs as Spark gives them, without names."""
    return tuple(tuple(each.values()) if isinstance(each, dict) else each for each in row)


def check_files(merge: Merge, searched: Searched, held: int) -> None:
    """The search reads the files that hold a match, and at most those whose bounds have room for a key."""
    expected = expected_files(merge, held)
    if not searched.tables:
        is_excused = any(each in verdict for each in expected.excuses for verdict in searched.verdicts)
        # A target of which Delta has chosen no file is not planned.
        is_excused |= merge.is_narrowed and not held and not searched.verdicts
        assert is_excused, f"{expected.most} of {expected.total} files may hold a key: {searched.verdicts}"
        return
    (table,) = searched.tables
    # Delta itself leaves out files by conditions of clauses, too.
    least = 0 if merge.is_narrowed else held
    assert least <= table.files_kept <= expected.most, f"{least} to {expected.most} of {table.files_kept} files"
    assert table.files_total <= expected.total
    assert table.files_total == expected.total or merge.is_narrowed


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", seeds())
def test_random_merges(spark, duck, tmp_path, seed):
    skipped, failures = {}, []
    for number in numbers():
        merge = random_merge(Draws(f"merge {seed} {number}"), is_sure=number % _EVERY_SURE == 0)
        engines = Engines(spark, duck, tmp_path / str(number))
        try:
            skipped[number] = engines.check(merge)
        except Exception as error:  # noqa: BLE001 - any failure is shown with its statement
            failures.append(f"SCANPRUNE_SEEDS={seed} SCANPRUNE_MERGE={number}: {error}\n{merge}")
        shutil.rmtree(tmp_path / str(number), ignore_errors=True)
    assert not failures, "\n\n".join(failures)
    # Statements that read every file would pass every comparison.
    assert all(skipped[each] > 0 for each in skipped if each % _EVERY_SURE == 0), f"{skipped} files were left out"
