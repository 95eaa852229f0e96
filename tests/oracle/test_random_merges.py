"""Seeded random MERGE statements: pruned == stock Spark on a copy == DuckDB, by rows, metrics and changes.

`SCANPRUNE_SEEDS=100-199 SCANPRUNE_MERGES=50 pytest tests/oracle/test_random_merges.py` runs more and others.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from connectors.session.session_pruning import records
from pruning import disable, enable
from sample_data.plain_duckdb import load
from sample_data.rows import Rows
from tests.costs import ALWAYS
from tests.oracle.draws import Draws
from tests.oracle.random_merges import CHECKPOINT, ITSELF, LIST, Merge, random_merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MERGES = int(os.environ.get("SCANPRUNE_MERGES", "8"))
_TIMES = ("Ms", "Bytes")
_VIEW = "merge_source"


def seeds() -> range:
    """The seeds to run: the same in every run, unless `make fuzz` or a user sets others."""
    first, _, last = os.environ.get("SCANPRUNE_SEEDS", "1-20").partition("-")
    return range(int(first), int(last or first) + 1)


@dataclass(slots=True)
class Outcome:
    """The target after a MERGE: rows, the metrics of its commit, the rows of its change feed, and the error."""

    rows: Rows
    counted: dict[str, str]
    changes: Rows | None
    error: str


@dataclass(slots=True)
class Merges:
    """The files of targets that MERGE statements of one seed have left out, and those of all."""

    spark: SparkSession
    duck: duckdb.DuckDBPyConnection
    folder: Path
    skipped: list[int] = field(default_factory=list)

    def check(self, merge: Merge) -> None:
        made = self._made(merge)
        stock, pruned = (self._run(merge, made, way) for way in ("stock", "pruned"))
        assert stock.error == pruned.error
        assert stock.rows == pruned.rows, f"lost {stock.rows - pruned.rows!r}, invented {pruned.rows - stock.rows!r}"
        assert stock.counted == pruned.counted
        assert stock.changes == pruned.changes
        if not stock.error:
            assert stock.rows == self._by_duck(merge), "the oracles differ"

    def _made(self, merge: Merge) -> Path:
        made = self.folder / "made"
        self.spark.sql(f"CREATE TABLE delta.`{made}` ({merge.schema}) USING delta {merge.properties}")
        # Slices of a list are as even as the files.
        rows = self.spark.sparkContext.parallelize([row for rows in merge.files for row in rows], len(merge.files))
        self._frame(merge, rows).write.format("delta").mode("append").save(str(made))
        return made

    def _frame(self, merge: Merge, rows: Any) -> Any:
        return self.spark.createDataFrame(rows, merge.schema)

    def _run(self, merge: Merge, made: Path, way: str) -> Outcome:
        target = self.folder / way / "target"
        shutil.copytree(made, target)
        before = {id(each) for each in records(self.spark)}
        error = ""
        try:
            source = self._source(merge, target)
            if way == "pruned":
                enable(self.spark, options=ALWAYS)
            self.spark.sql(merge.command.format(target=f"delta.`{target}`", source=source))
        except Exception as failed:  # noqa: BLE001 - both have to fail alike
            error = f"{type(failed).__name__} {str(failed).split(' ')[0]}"
        finally:
            disable(self.spark)
        if way == "pruned":
            self._note(before)
        version, metrics = (
            self.spark.sql(f"DESCRIBE HISTORY delta.`{target}` LIMIT 1").select("version", "operationMetrics").first()
        )
        counted = {name: value for name, value in metrics.items() if not any(each in name for each in _TIMES)}
        rows = Rows(self.spark.read.format("delta").load(str(target)).collect())
        return Outcome(rows, counted, self._changes(merge, target, version), error)

    def _note(self, before: set[int]) -> None:
        new = [each for each in records(self.spark) if id(each) not in before]
        for table in (table.planned for each in new for table in each.report().tables):
            if table.table == "target" and table.files_total is not None and table.files_kept is not None:
                self.skipped.append(table.files_total - table.files_kept)

    def _changes(self, merge: Merge, target: Path, version: int) -> Rows | None:
        if "ChangeData" not in merge.properties:
            return None
        feed = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version)
        return Rows(feed.load(str(target)).drop("_commit_timestamp").collect())

    def _source(self, merge: Merge, target: Path) -> str:
        """The text that names the source in the statement."""
        if merge.kind == ITSELF:
            return f"(SELECT `k.1`, grp, a + 1 AS a, b FROM delta.`{target}` WHERE grp = 3)"
        frame = self._frame(merge, merge.source)
        if merge.kind not in {LIST, CHECKPOINT}:
            stored = self.folder / "source"
            if not stored.exists():
                frame.coalesce(1).write.format("delta").save(str(stored))
            return f"delta.`{stored}`"
        (frame.localCheckpoint() if merge.kind == CHECKPOINT else frame).createOrReplaceTempView(_VIEW)
        return _VIEW

    def _by_duck(self, merge: Merge) -> Rows:
        """The rows that DuckDB leaves in the target."""
        load(self.duck, "merged", self._frame(merge, [row for rows in merge.files for row in rows]).toArrow())
        load(self.duck, "arrived", self._frame(merge, merge.source).toArrow())
        itself = '(SELECT "k.1", grp, a + 1 AS a, b FROM merged WHERE grp = 3)'
        command = merge.command.format(target="merged", source=itself if merge.kind == ITSELF else "arrived")
        self.duck.execute(command.replace("`", '"').replace("<=>", "IS NOT DISTINCT FROM"))
        return Rows(self.duck.execute("FROM merged").fetchall())


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", seeds())
def test_random_merges(spark, duck, tmp_path, seed):
    skipped, failures = [], []
    for number in range(MERGES):
        draws = Draws(f"merge {seed} {number}")
        merge = random_merge(draws)
        merges = Merges(spark, duck, tmp_path / str(number))
        try:
            merges.check(merge)
        except Exception as error:  # noqa: BLE001 - any failure is shown with its statement
            failures.append(f"SCANPRUNE_SEEDS={seed}, statement {number}: {error}\n{merge}")
        skipped += merges.skipped
        shutil.rmtree(tmp_path / str(number), ignore_errors=True)
    assert not failures, "\n\n".join(failures)
    # Statements that read every file would pass every comparison.
    assert any(each > 0 for each in skipped), f"{skipped} files were left out"
