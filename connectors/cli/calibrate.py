"""`scanprune calibrate`: the rates of the cost model on this machine, from small tables and steps over them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.types import IntegerType

from connectors.cli.calibrate_rows import builds, few_rows, rows_above
from connectors.cli.calibrate_trials import Measure, Step, Trials, credible
from connectors.columns import Column
from connectors.registry import open_table
from connectors.scan.spark_scan import in_bitmap_column, might_contain_column
from pruning import PruningOptions, pruned_read
from pruning.cost.rates import NANOSECONDS
from pruning.errors import EnvironmentProblem
from pruning.keys.bitmap import Bitmap
from pruning.keys.bloom import BloomFilter
from pruning.keys.key_set import row_hashes
from pruning.query.decoding import DECODED_TEXT
from pruning.values.byte_strings import IntArray
from pruning.values.types import ValueType

Progress = Callable[[str, float], None]

_NAMES = ("a", "b", "c", "d")
_FIRST = Column(("a",), IntegerType(), ValueType("int"), None)
_TRIALS = Trials()


@dataclass(frozen=True, slots=True, eq=False)
class _Files:
    """Two tables of as many rows, each a file of one row group; files are read from the page cache.

    `numbers` has dictionary-encoded integers in all columns; `wide` has values that no dictionary holds.
    """

    numbers: Path
    wide: Path

    @staticmethod
    def made(folder: Path, trials: Trials) -> _Files:
        random, rows = np.random.default_rng(0), trials.rows
        values = random.integers(0, trials.values, (len(_NAMES), rows), np.int32)
        columns = [pa.array(each, mask=random.random(rows) < trials.nulls) for each in values]
        ids = pa.array(random.integers(0, 1 << 62, rows))
        files = _Files(folder / "numbers.parquet", folder / "wide.parquet")
        pq.write_table(pa.table(columns, list(_NAMES)), files.numbers, row_group_size=rows)
        plain = pa.table([ids, pc.cast(ids, pa.string())], ["id", "text"])
        pq.write_table(plain, files.wide, row_group_size=rows, use_dictionary=False)
        return files


def calibrated(
    spark: SparkSession, folder: Path, progress: Progress = lambda *_: None, trials: Trials = _TRIALS
) -> dict[str, float]:
    """The rates of this machine in nanoseconds, by name; temporary files are made in `folder`.

    Those of stores are not among them.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        files = _Files.made(Path(made), trials)
        steps = (
            *_by_spark(spark, files, trials),
            *_of_files(spark, files, trials),
            *rows_above(spark, trials),
            *builds(spark, Path(made), trials),
        )
        found: dict[str, float] = {}
        for at, (name, measure) in enumerate(steps):
            progress(name, at / len(steps))
            found[name] = measure() * NANOSECONDS
        texts = (DECODED_TEXT - 1) * trials.rows / _more_bytes(files)
        return {name: credible(name, rate) for name, rate in _apart(found, trials, texts).items()}


def _apart(found: dict[str, float], trials: Trials, texts: float) -> dict[str, float]:
    """Rates of steps without what other rates say of the same steps.

    `texts` are the further numbers that the texts in a byte take as long as.
    """
    decoded = credible("decoded_byte", found["decoded_byte"] - found["byte"] - texts * found["decoded_value"])
    few = few_rows(trials)
    rows = {"build_job": few * found["kept_row"], "driver_build": few * found["driver_row"]}
    builds = {name: found[name] - own for name, own in rows.items()}
    return {**found, **builds, "decoded_byte": decoded}


def _more_bytes(files: _Files) -> float:
    """The bytes of both wide columns beyond those of two columns of numbers."""
    return _chunk_bytes(files.wide) - _chunk_bytes(files.numbers) * 2 / len(_NAMES)


def _chunk_bytes(file: Path) -> int:
    """Compressed bytes of the column chunks of a file."""
    group = pq.read_metadata(file).row_group(0)
    return sum(group.column(at).total_compressed_size for at in range(group.num_columns))


def _by_spark(spark: SparkSession, files: _Files, trials: Trials) -> Iterator[Measure]:
    keys, rows = trials.wanted(), trials.rows
    whole, wide = (spark.read.parquet(f"file://{each}") for each in (files.numbers, files.wide))
    two, every = (_greatest(whole, count) for count in (2, len(_NAMES)))
    kept = _greatest(whole.where("a + b <> c - d"), len(_NAMES))
    listed = _greatest(whole.where(F.col("a").isin(keys)), 2)
    small = F.broadcast(spark.createDataFrame([(each,) for each in keys], "a int"))
    joined = _greatest(whole.join(small, "a"), 2)
    more_bytes = _more_bytes(files)

    # A bloom filter is a subquery, which takes its time once: what a second pass over the rows takes are tests alone.
    once, twice = (_repeated(whole, count) for count in (1, 2))
    plain = _greatest(once, 2), _greatest(twice, 2)

    def tested(by: SparkColumn) -> float:
        steps = _greatest(once.where(by), 2), _greatest(twice.where(by), 2)
        return (trials.more(steps[1], steps[0]) - trials.more(plain[1], plain[0])) / rows

    bloom = might_contain_column(whole, ["a"], _bloom(trials))
    bitmap = in_bitmap_column(whole, _FIRST, Bitmap.of(_tenth(trials)))

    def both() -> object:
        return wide.agg(F.max("id"), F.max(F.octet_length("text"))).collect()

    yield "decoded_value", lambda: trials.more(every, two) / (len(_NAMES) - 2) / rows
    # As many values, and more bytes; `_apart` takes off what other rates say of them.
    yield "decoded_byte", lambda: trials.more(both, two) / more_bytes
    yield "row", lambda: trials.more(kept, every) / rows
    yield "spark_compared", lambda: trials.more(listed, two) / rows
    yield "spark_test", lambda: tested(bloom)
    yield "spark_lookup", lambda: tested(bitmap)
    yield "joined_row", lambda: trials.more(joined, two) / rows


def _repeated(rows: DataFrame, count: int) -> DataFrame:
    """Rows that one task reads `count` times."""
    return reduce(DataFrame.union, [rows] * count).coalesce(1)


def _tenth(trials: Trials) -> IntArray:
    """A tenth of the values."""
    return np.arange(0, trials.values, 10, dtype=np.int64)


def _bloom(trials: Trials) -> bytes:
    """A bloom filter of a tenth of the values, in Spark's binary form."""
    codes = _tenth(trials)
    bloom = BloomFilter.of_capacity(len(codes), PruningOptions().limits.bloom_fpp)
    if not isinstance(bloom, BloomFilter):
        raise EnvironmentProblem(f"Cannot measure a bloom filter of {len(codes)} keys: it would be too large")
    return bloom.adding(row_hashes([ValueType("int")], (codes,))).to_bytes()


def _of_files(spark: SparkSession, files: _Files, trials: Trials) -> Iterator[Measure]:
    file, keys = files.numbers, trials.wanted()
    yield "byte", lambda: trials.growth(lambda count: lambda: _read(file, count), file.stat().st_size)
    yield "planned_scan", lambda: trials.more(_planned(spark, file, keys), lambda: _opened(spark, file))


def _read(file: Path, count: int) -> int:
    with file.open("rb") as opened:
        return len(opened.read(count))


def _greatest(rows: DataFrame, count: int) -> Step:
    """A step that reads the first columns and returns one row; planned anew each time, since plans keep shuffles."""
    return lambda: rows.agg(*(F.max(each) for each in _NAMES[:count])).collect()


def _planned(spark: SparkSession, file: Path, keys: Sequence[int]) -> Step:
    options = PruningOptions(always=True)
    return lambda: pruned_read(spark, str(file), keys={"a": keys}, options=options)


def _opened(spark: SparkSession, file: Path) -> object:
    return open_table(spark, str(file), format_=None, version=None, timestamp=None, limits=PruningOptions().limits)
