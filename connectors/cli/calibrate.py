"""`scanprune calibrate`: the costs of the steps of a scan on this machine, by Spark's reader and by pyarrow."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.arrow_scan.files import FilePart
from connectors.arrow_scan.reader import ArrowReader, KeyTest, ReadColumn
from pruning import PruningOptions, pruned_read
from pruning.cost.rates import CostRates
from pruning.keys.membership import MembershipTest
from pruning.options import ARROW, PREDICATE
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.types import ValueType

Progress = Callable[[str, float], None]

_NAMES = ("a", "b", "c", "d")
# The least cost: a difference of two times may be negative.
_LEAST = 0.01
_NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class Trials:
    """The size of the table that is read, and the number of runs.

    - `rows`: rows of the only row group, which one core reads; `nulls`: the share of NULL
    - `values`: distinct values of a column, dictionary-encoded; `keys`: how many of them are looked up
    - `warm`: first runs of a step, while Java compiles its plan; `runs`: later runs, of which the fastest counts
    - `rounds`: tasks for each core in the measurement of the cost of a task
    """

    rows: int = 8_000_000
    nulls: float = 0.04
    values: int = 20_000
    keys: int = 500
    warm: int = 3
    runs: int = 7
    rounds: int = 8

    def wanted(self) -> list[int]:
        """The keys that are looked up."""
        return list(range(0, self.values, self.values // self.keys))

    def more(self, run: Callable[[], object], other: Callable[[], object]) -> float:
        """Seconds of `run` minus seconds of `other`; the steps alternate, so that compiled code helps both."""
        one, two = self._least(run, other)
        return one - two

    def seconds(self, run: Callable[[], object]) -> float:
        """Seconds of one step."""
        return self._least(run)[0]

    def _least(self, *steps: Callable[[], object]) -> list[float]:
        """The fastest of the warm runs of each step, since other load only makes a run slower."""
        for _ in range(self.warm):
            for step in steps:
                step()
        runs = [[_timed(step) for step in steps] for _ in range(self.runs)]
        return list(map(min, zip(*runs, strict=True)))


_TRIALS = Trials()


def calibrated(
    spark: SparkSession, folder: Path, progress: Progress = lambda *_: None, trials: Trials = _TRIALS
) -> CostRates:
    """The costs on this machine; temporary files in `folder` are read from the page cache."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        file = Path(made, "calibration.parquet")
        random = np.random.default_rng(0)
        rows = trials.rows
        values = random.integers(0, trials.values, (len(_NAMES), rows), np.int32)
        columns = [pa.array(each, mask=random.random(rows) < trials.nulls) for each in values]
        pq.write_table(pa.table(columns, list(_NAMES)), file, row_group_size=rows)
        names = pa.DictionaryArray.from_arrays(columns[0], [_name(at) for at in range(trials.values)])
        texts = file.with_name("texts.parquet")
        pq.write_table(pa.table([names], ["name"]), texts, row_group_size=rows, store_schema=False)
        of_texts = ("arrow_search", lambda: trials.seconds(_searched(texts, trials)) / rows)
        by_arrow = _by_arrow(spark, file, values[0].astype(np.int64), trials)
        steps = (*_by_spark(spark, file, trials), *by_arrow, of_texts)
        found: dict[str, float] = {}
        for at, (name, measure) in enumerate(steps):
            progress(name, at / len(steps))
            found[name] = max(_LEAST, measure() * _NANOSECONDS)
    return CostRates(**found)


def _by_spark(spark: SparkSession, file: Path, trials: Trials) -> Iterator[tuple[str, Callable[[], float]]]:
    keys = trials.wanted()
    whole = spark.read.parquet(file.as_uri())
    one, two, every = (_greatest(whole, count) for count in (1, 2, len(_NAMES)))
    listed = _greatest(whole.where(F.col("a").isin(keys)), 2)
    small = F.broadcast(spark.createDataFrame([(each,) for each in keys], "a int"))
    joined = _greatest(whole.join(small, "a"), 2)
    yield "spark_value", lambda: trials.more(every, one) / (trials.rows * (len(_NAMES) - 1))
    yield "spark_test", lambda: trials.more(listed, two) / trials.rows
    yield "joined_row", lambda: trials.more(joined, two) / trials.rows


def _by_arrow(
    spark: SparkSession, file: Path, column: IntArray, trials: Trials
) -> Iterator[tuple[str, Callable[[], float]]]:
    keys, values = trials.wanted(), trials.rows * len(_NAMES)
    columns = [ReadColumn(name, pa.int32()) for name in _NAMES]
    part = FilePart(str(file), (0,), tuple(range(len(_NAMES))), (None,) * len(_NAMES))
    rows = MembershipTest.of(Domain.of(ValueType("int"), *keys))
    cores = spark.sparkContext.defaultParallelism
    few, many = _tasks(spark, cores), _tasks(spark, cores * trials.rounds)
    handed = _handed(spark, trials.rows)
    one = _tasks(spark, 1)
    by_arrow, by_predicate = (_planned(spark, file, keys, scan) for scan in (ARROW, PREDICATE))
    yield "byte", lambda: trials.seconds(file.read_bytes) / file.stat().st_size
    yield "arrow_value", lambda: trials.seconds(lambda: list(ArrowReader(columns, []).read(part))) / values
    yield "arrow_test", lambda: trials.seconds(lambda: rows.contains(column)) / trials.rows
    yield "arrow_handed", lambda: trials.more(handed, one) / values
    yield "arrow_scan", lambda: trials.more(by_arrow, by_predicate)
    yield "arrow_task", lambda: trials.more(many, few) / (trials.rounds - 1)


def _searched(file: Path, trials: Trials) -> Callable[[], object]:
    """A step that reads texts and tests them; a few in a hundred pass."""
    text = ValueType("string")
    test = KeyTest(0, text, MembershipTest.of(Domain.of(text, *map(_name, trials.wanted()))))
    part = FilePart(str(file), (0,), (0,), (None,))
    return lambda: sum(map(len, ArrowReader([ReadColumn("name", pa.string())], [test]).read(part)))


def _name(number: int) -> str:
    return f"customer {number:08}"


def _greatest(rows: DataFrame, count: int) -> Callable[[], object]:
    """A step that reads the first columns and returns one row; planned anew each time, since plans keep shuffles."""
    return lambda: rows.agg(*(F.max(each) for each in _NAMES[:count])).collect()


def _tasks(spark: SparkSession, count: int) -> Callable[[], object]:
    ids = spark.range(0, count, 1, count)
    return lambda: ids.mapInArrow(lambda batches: batches, ids.schema).agg(F.max("id")).collect()


def _planned(spark: SparkSession, file: Path, keys: Sequence[int], scan: str) -> Callable[[], object]:
    options = PruningOptions(scan=scan).with_limits(min_filter_ratio=0.0)
    return lambda: pruned_read(spark, str(file), keys={"a": keys}, options=options)


def _handed(spark: SparkSession, count: int) -> Callable[[], object]:
    """A step in which one Python task returns `count` rows."""
    names, batch = _NAMES, 1 << 16

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            made = pa.record_batch([pa.array(range(batch), pa.int32())] * len(names), names=list(names))
            for begin in range(0, count, batch):
                yield made.slice(0, min(batch, count - begin))

    schema = ", ".join(f"{name} int" for name in names)
    return _greatest(spark.range(0, 1, 1, 1).mapInArrow(rows, schema), len(names))


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
