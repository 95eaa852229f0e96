"""Costs of a scan by each reader, from statistics and keys, and the choice of the cheaper reader.

predicate: all columns and rows of the row groups that the ranges keep, a row filter, the join above
arrow: key columns of the row groups that the keys keep, other columns where a row passes, those rows sent to Spark
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from pruning.cost.rates import CostRates
from pruning.limits import LIMITS
from pruning.options import ARROW, PREDICATE
from pruning.reasons import size
from pruning.values.byte_strings import IntArray

FloatArray = npt.NDArray[np.float64]

_NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class Estimate:
    """The bytes that one reader reads, and the core seconds that it takes."""

    bytes: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s of a core for {size(self.bytes)}"


@dataclass(frozen=True, slots=True)
class ReaderChoice:
    """The reader of a scan, and the estimates of both readers; `survivors` is the share of rows that pass, 0 to 1."""

    scan: str
    predicate: Estimate
    arrow: Estimate
    survivors: float

    def __str__(self) -> str:
        share = f"{self.survivors:.2%} of the rows expected to pass"
        return f"expected to take {self.predicate} by Spark's reader, {self.arrow} by pyarrow; {share}"


@dataclass(frozen=True, slots=True, eq=False)
class RowGroupWork:
    """Row groups that a scan reads: the `rows` of each, the `bytes` of its needed columns, the number of `columns`.

    `is_remote`: the files lie in an object store, not on a local disk.
    """

    rows: IntArray
    bytes: IntArray
    columns: int
    is_remote: bool = False

    def byte(self, costs: CostRates) -> float:
        """Nanoseconds of a core for reading one byte."""
        return costs.remote_byte if self.is_remote else costs.byte


@dataclass(frozen=True, slots=True, eq=False)
class KeyWork:
    """A key column: the share of rows whose value is a key, and its bytes in each row group.

    `is_dense`: values are looked up in a table, or compared with few range ends. `nanoseconds` is the measured time for
    decoding and testing a value, None if it was not measured.
    """

    ratio: float
    bytes: IntArray
    is_dense: bool = True
    nanoseconds: float | None = None

    def value(self, costs: CostRates) -> float:
        """Nanoseconds of a core for decoding and testing one value, at least those of a number."""
        least = costs.arrow_value + costs.arrow_test
        if self.nanoseconds is not None:
            return max(least, self.nanoseconds)
        return least if self.is_dense else max(least, costs.arrow_search)

    def as_seen(self, seen: KeySample | None) -> KeyWork:
        """The key column with the ratio and time measured in a sample, if there is one."""
        return self if seen is None else replace(self, ratio=seen.ratio, nanoseconds=seen.nanoseconds)


@dataclass(frozen=True, slots=True)
class KeySample:
    """A key column measured in some rows of one row group: the share of rows whose value is a key.

    `nanoseconds` is the core time for decoding and testing a value, None if the rows are too few to measure it.
    """

    ratio: float
    nanoseconds: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of one row group: the share that passes all tests, and each key column, None if it was not read."""

    survivors: float
    keys: tuple[KeySample | None, ...]

    def __str__(self) -> str:
        spent = [each.nanoseconds for each in self.keys if each is not None and each.nanoseconds is not None]
        told = f"; its keys take {sum(spent):.0f} ns a row" if spent else ""
        return f"{self.survivors:.2%} of the rows of a row group pass{told}"


@dataclass(frozen=True, slots=True, eq=False)
class ReaderCase:
    """The inputs of the cost model for one scan.

    `tests` are the shares of rows that pass each row filter above Spark's reader; `tasks` is the number of Python
    tasks. pyarrow is chosen where Spark's reader takes more than `reader_factor` times as long.
    """

    by_ranges: RowGroupWork
    tests: Sequence[float]
    by_keys: RowGroupWork
    keys: Sequence[KeyWork]
    tasks: int
    costs: CostRates
    reader_factor: float = LIMITS.reader_factor

    def choice(self, sample: Sample | None = None) -> ReaderChoice:
        """The reader: pyarrow if it is clearly cheaper; the values of a sample replace estimates.

        Without a sample, keys of several columns are assumed to be independent.
        """
        keys, left = self.keys, prod(each.ratio for each in self.keys)
        if sample is not None:
            left = sample.survivors
            keys = [each.as_seen(seen) for each, seen in zip(keys, sample.keys, strict=True)]
        predicate = by_predicate(self.by_ranges, self.tests, self.costs)
        arrow = by_arrow(self.by_keys, keys, left, self.tasks, self.costs)
        is_cheaper = arrow.seconds * self.reader_factor < predicate.seconds
        return ReaderChoice(ARROW if is_cheaper else PREDICATE, predicate, arrow, left)


def by_predicate(work: RowGroupWork, tests: Sequence[float], costs: CostRates) -> Estimate:
    """The estimate for Spark's reader."""
    rows, read = float(work.rows.sum()), int(work.bytes.sum())
    spent = read * work.byte(costs) + rows * work.columns * costs.spark_value
    spent += rows * len(tests) * costs.spark_test + rows * prod(tests) * costs.joined_row
    return Estimate(read, spent / _NANOSECONDS)


def by_arrow(work: RowGroupWork, keys: Sequence[KeyWork], survivors: float, tasks: int, costs: CostRates) -> Estimate:
    """The estimate for pyarrow, which reads key columns most selective first, each only in row groups with a row left.

    Rows that pass are assumed to be spread evenly; if they are clustered, fewer row groups are read.
    """
    reach, left, others = np.ones(len(work.rows)), 1.0, work.bytes.astype(np.float64)
    read = spent = 0.0
    for key in sorted(keys, key=lambda each: each.ratio):
        read += float(reach @ key.bytes)
        spent += float(reach @ work.rows) * key.value(costs)
        others -= key.bytes
        left *= key.ratio
        reach = _any_of(work.rows, left)
    reach = _any_of(work.rows, survivors)
    read += float(reach @ np.maximum(others, 0.0))
    spent += float(reach @ work.rows) * max(0, work.columns - len(keys)) * costs.arrow_value
    passed = float(work.rows.sum()) * survivors
    spent += passed * (work.columns * costs.arrow_handed + costs.joined_row)
    spent += read * work.byte(costs) + tasks * costs.arrow_task + costs.arrow_scan
    return Estimate(int(read), spent / _NANOSECONDS)


def _any_of(rows: IntArray, ratio: float) -> FloatArray:
    """The probability for each row group that one of its rows passes."""
    if ratio >= 1.0:
        return np.ones(len(rows))
    chances: FloatArray = -np.expm1(np.maximum(rows, 0) * np.log1p(-ratio))
    return chances
