"""Measures what the steps of a scan cost on this machine, by Spark's reader and by pyarrow."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.arrow_scan.files import FilePart
from connectors.arrow_scan.reader import ArrowReader, KeyTest, ReadColumn
from pruning import PruningOptions, pruned_read
from pruning.keys.membership import MembershipTest
from pruning.limits import ScanCosts
from pruning.options import ARROW, PREDICATE
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.types import ValueType

Progress = Callable[[str, float], None]

# Keys of a dimension, as a dictionary holds them; one row group, which one core reads.
_ROWS, _VALUES, _KEYS = 8_000_000, 20_000, 500
# A reader is fastest where there are none.
_NULLS = 0.04
_NAMES = ("a", "b", "c", "d")
# The first runs of a plan are those that Java compiles.
_WARM, _RUNS = 3, 7
_ROUNDS = 8
# A difference of two times may come out below nothing.
_LEAST = 0.01
_NANOSECONDS = 1e9


def calibrated(spark: SparkSession, folder: Path, progress: Progress = lambda *_: None) -> ScanCosts:
    """Costs as they are here; files are made in `folder` meanwhile, and read from the page cache."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        file = Path(made, "calibration.parquet")
        random = np.random.default_rng(0)
        values = random.integers(0, _VALUES, (len(_NAMES), _ROWS), np.int32)
        columns = [pa.array(each, mask=random.random(_ROWS) < _NULLS) for each in values]
        pq.write_table(pa.table(columns, list(_NAMES)), file, row_group_size=_ROWS)
        names = pa.DictionaryArray.from_arrays(columns[0], [_name(at) for at in range(_VALUES)])
        texts = file.with_name("texts.parquet")
        pq.write_table(pa.table([names], ["name"]), texts, row_group_size=_ROWS, store_schema=False)
        of_texts = ("arrow_search", lambda: _seconds(_searched(texts)) / _ROWS)
        steps = (*_by_spark(spark, file), *_by_arrow(spark, file, values[0].astype(np.int64)), of_texts)
        found: dict[str, float] = {}
        for at, (name, measure) in enumerate(steps):
            progress(name, at / len(steps))
            found[name] = max(_LEAST, measure() * _NANOSECONDS)
    return ScanCosts(**found)


def _by_spark(spark: SparkSession, file: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    whole = spark.read.parquet(file.as_uri())
    one, two, every = (_greatest(whole, count) for count in (1, 2, len(_NAMES)))
    listed = _greatest(whole.where(F.col("a").isin(_keys())), 2)
    small = F.broadcast(spark.createDataFrame([(each,) for each in _keys()], "a int"))
    joined = _greatest(whole.join(small, "a"), 2)
    yield "spark_value", lambda: _more(every, one) / (_ROWS * (len(_NAMES) - 1))
    yield "spark_test", lambda: _more(listed, two) / _ROWS
    yield "joined_row", lambda: _more(joined, two) / _ROWS


def _by_arrow(spark: SparkSession, file: Path, column: IntArray) -> Iterator[tuple[str, Callable[[], float]]]:
    columns = [ReadColumn(name, pa.int32()) for name in _NAMES]
    part = FilePart(str(file), (0,), tuple(range(len(_NAMES))), (None,) * len(_NAMES))
    rows = MembershipTest.of(Domain.of(ValueType("int"), *_keys()))
    cores = spark.sparkContext.defaultParallelism
    few, many = _tasks(spark, cores), _tasks(spark, cores * _ROUNDS)
    handed = _handed(spark)
    one = _tasks(spark, 1)
    yield "byte", lambda: _seconds(file.read_bytes) / file.stat().st_size
    yield "arrow_value", lambda: _seconds(lambda: list(ArrowReader(columns, []).read(part))) / (_ROWS * len(_NAMES))
    yield "arrow_test", lambda: _seconds(lambda: rows.contains(column)) / _ROWS
    yield "arrow_handed", lambda: _more(handed, one) / (_ROWS * len(_NAMES))
    yield "arrow_scan", lambda: _more(_planned(spark, file, ARROW), _planned(spark, file, PREDICATE))
    yield "arrow_task", lambda: _more(many, few) / (_ROUNDS - 1)


def _searched(file: Path) -> Callable[[], object]:
    """Reads and tests texts of which a few in a hundred pass."""
    text = ValueType("string")
    test = KeyTest(0, text, MembershipTest.of(Domain.of(text, *map(_name, _keys()))))
    part = FilePart(str(file), (0,), (0,), (None,))
    return lambda: sum(map(len, ArrowReader([ReadColumn("name", pa.string())], [test]).read(part)))


def _keys() -> list[int]:
    return list(range(0, _VALUES, _VALUES // _KEYS))


def _name(number: int) -> str:
    return f"customer {number:08}"


def _greatest(rows: DataFrame, count: int) -> Callable[[], object]:
    """Reads the first columns, and gives hardly anything; planned anew each time, since a plan keeps its shuffles."""
    return lambda: rows.agg(*(F.max(each) for each in _NAMES[:count])).collect()


def _tasks(spark: SparkSession, count: int) -> Callable[[], object]:
    ids = spark.range(0, count, 1, count)
    return lambda: ids.mapInArrow(lambda batches: batches, ids.schema).agg(F.max("id")).collect()


def _planned(spark: SparkSession, file: Path, scan: str) -> Callable[[], object]:
    options = PruningOptions(scan=scan).with_limits(min_filter_ratio=0.0)
    return lambda: pruned_read(spark, str(file), keys={"a": _keys()}, options=options)


def _handed(spark: SparkSession) -> Callable[[], object]:
    """One task that hands over as many rows as the file has."""
    names, batch = _NAMES, 1 << 16

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            made = pa.record_batch([pa.array(range(batch), pa.int32())] * len(names), names=list(names))
            for begin in range(0, _ROWS, batch):
                yield made.slice(0, min(batch, _ROWS - begin))

    schema = ", ".join(f"{name} int" for name in names)
    return _greatest(spark.range(0, 1, 1, 1).mapInArrow(rows, schema), len(names))


def _more(run: Callable[[], object], other: Callable[[], object]) -> float:
    """By how many seconds one step takes longer than another, by turns: what is compiled meanwhile helps both."""
    one, two = _least(run, other)
    return one - two


def _seconds(run: Callable[[], object]) -> float:
    return _least(run)[0]


def _least(*steps: Callable[[], object]) -> list[float]:
    """The least of some runs of each step, warm: whatever else the machine does only adds to it."""
    for _ in range(_WARM):
        for step in steps:
            step()
    runs = [[_timed(step) for step in steps] for _ in range(_RUNS)]
    return list(map(min, zip(*runs, strict=True)))


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
